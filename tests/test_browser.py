"""HTML in a browser: tables show whole maps, in exported notebooks too."""

import json
import shutil
import subprocess
from html import unescape
from pathlib import Path
from typing import Any

import pytest

import hlo
import indexing
from hlo.html import preformatted_html

BROWSER = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)
EXAMPLE = Path(__file__).parent.parent / "examples" / "attention.opt.hlo"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(BROWSER is None, reason="no Chromium: apt-get install chromium"),
]

# For the cells with maps, and for preformatted texts: the height in lines, and whether a part of
# the text lies beyond the right end.
MEASURE = """
<script>
window.onload = () => {
  const lines = e => {
    const style = getComputedStyle(e);
    const padding = parseFloat(style.paddingTop) + parseFloat(style.paddingBottom);
    const probe = document.createElement("span");
    probe.textContent = "x"; probe.style.whiteSpace = "pre"; e.appendChild(probe);
    const line = probe.getBoundingClientRect().height; probe.remove();
    const range = document.createRange(); range.selectNodeContents(e);
    return Math.round(range.getBoundingClientRect().height / line);
  };
  const found = [...document.querySelectorAll("td, pre")].filter(e => e.textContent.includes("->"));
  const result = found.map(e => [e.textContent.trim(), lines(e), e.scrollWidth > e.clientWidth]);
  const out = document.createElement("textarea");
  out.id = "measured"; out.textContent = JSON.stringify([result, document.images.length]);
  document.body.appendChild(out);
};
</script>
"""


def render(html: str, directory: Path) -> Any:
    """Return what `MEASURE` finds of each text with a map, and the number of images."""
    page = directory / "page.html"
    page.write_text(f"<meta charset='utf-8'>{html}{MEASURE}", encoding="utf-8")
    assert BROWSER is not None
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--window-size=700,500", "--dump-dom"]
    options += [f"--user-data-dir={directory / 'profile'}", "--host-resolver-rules=MAP * ~NOTFOUND"]
    run = subprocess.run(
        [BROWSER, *options, page.as_uri()], capture_output=True, text=True, check=True, timeout=300
    )
    measured = run.stdout.partition('<textarea id="measured">')[2].partition("</textarea>")[0]
    return json.loads(unescape(measured))


def test_answers_show_whole_maps_and_a_long_map_has_one_line(tmp_path: Path) -> None:
    module = hlo.load(EXAMPLE)
    answers = [indexing.to_parameters(i) for i in module.find(opcode="fusion")]
    maps = [m for answer in answers for own in answer.maps for m in own if not m.runtime]
    long = indexing.IndexingMap.identity(tuple(range(2, 40)))
    pages = [answer._repr_html_() for answer in answers] + [long._repr_html_()]
    hostile = preformatted_html("-> <img src=x>")
    texts, images = render("".join(pages) + hostile, tmp_path)
    shown = {text: (lines, is_cut) for text, lines, is_cut in texts}
    assert all(lines <= 4 and not is_cut for lines, is_cut in (shown[str(m)] for m in maps))
    assert shown[str(long)] == (1, True)  # scrolled
    assert images == 0


def test_an_exported_notebook_shows_whole_maps(tmp_path: Path) -> None:
    nbformat = pytest.importorskip("nbformat", reason="needs the extra notebook")
    nbconvert = pytest.importorskip("nbconvert", reason="needs the extra notebook")
    module = hlo.load(EXAMPLE)
    fusion = max(module.find(opcode="fusion"), key=lambda i: len(i.operands))
    answer = indexing.output_to_input(fusion)
    values: list[Any] = [answer, answer.maps[0][0]]
    notebook = nbformat.v4.new_notebook()
    for value in values:
        data = {"text/html": value._repr_html_(), "text/plain": repr(value)}
        output = nbformat.v4.new_output("execute_result", data)
        notebook.cells.append(nbformat.v4.new_code_cell("value", outputs=[output]))
    exporter = nbconvert.HTMLExporter(template_name="lab", mathjax_url="", require_js_url="")
    html, _ = exporter.from_notebook_node(notebook)
    texts, _ = render(html, tmp_path)
    shown = [each for each in texts if each[0].startswith("(")]
    whole = {text for text, lines, is_cut in shown if lines <= 4 and not is_cut}
    assert whole == {str(m) for own in answer.maps for m in own}
    assert [lines for _, lines, is_cut in shown if is_cut] == [1]  # a map alone is scrolled

"""HTML in a browser: a rendered answer has one line for each map, in exported notebooks too."""

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

# Heights in lines of the cells with maps, and of preformatted texts.
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
  const result = found.map(e => [e.textContent.trim(), lines(e)]);
  const out = document.createElement("textarea");
  out.id = "measured"; out.textContent = JSON.stringify([result, document.images.length]);
  document.body.appendChild(out);
};
</script>
"""


def rendered(html: str, directory: Path) -> Any:
    """Return the texts with maps and their heights in lines, and the number of images."""
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


def test_answers_and_maps_have_one_line_for_each_map(tmp_path: Path) -> None:
    module = hlo.load(EXAMPLE)
    answers = [indexing.to_parameters(i) for i in module.find(opcode="fusion")]
    maps = [m for answer in answers for own in answer.maps for m in own if not m.runtime]
    long = indexing.IndexingMap.identity(tuple(range(2, 40)))
    pages = [answer._repr_html_() for answer in answers] + [long._repr_html_()]
    hostile = preformatted_html("-> <img src=x>")
    texts, images = rendered("".join(pages) + hostile, tmp_path)
    assert [lines for _, lines in texts] == [1] * len(texts)
    assert {text for text, _ in texts} >= {str(m) for m in (*maps, long)}
    assert images == 0


def test_an_exported_notebook_has_one_line_for_each_map(tmp_path: Path) -> None:
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
    texts, _ = rendered(html, tmp_path)
    shown = {text: lines for text, lines in texts if text.startswith("(")}
    expected = {str(m): 1 for own in answer.maps for m in own}
    assert shown == expected

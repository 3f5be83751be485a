"""Values as notebooks show them, in Chromium: readable in light and dark, opened by a click."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import hlo
import indexing
from tests.browser.conftest import SCREENSHOTS, Open

EXAMPLES = Path(__file__).parents[2] / "examples"
MODULE = hlo.load(EXAMPLES / "attention.opt.hlo")
BEFORE = hlo.load(EXAMPLES / "attention.pre.hlo")
FUSION = MODULE.entry["ynn_fusion.7"]
CONTRAST = 4.5
"""The least ratio of luminances of a text and its background. Source: WCAG 2.1, 1.4.3."""

VALUES: dict[str, Any] = {
    "module": MODULE,
    "computation": MODULE.entry,
    "shape": FUSION.shape,
    "answer": indexing.output_to_input(FUSION),
    "property": indexing.is_injective(
        indexing.IndexingMap.over((2, 8), lambda d: [d[0] * 7 + d[1]])
    ),
    "verdict": indexing.equivalent(BEFORE, MODULE),
    "undecided": indexing.Undecided("`topk` has no formula"),
    "tiling": indexing.tile(FUSION, (32, 32)),
    "tilings": indexing.best_tilings(FUSION),
    "plan": indexing.shard(BEFORE, "x=2", {"p0": "x,_"}),
    "traffic": indexing.traffic(MODULE),
}
PAGES = {
    "jupyterlab-light": (
        "<body data-jp-theme-light='true' style='background:#fff;color:#111'>",
        "dark",
    ),
    "jupyterlab-dark": (
        "<body data-jp-theme-light='false' style='background:#111;color:#eee'>",
        "light",
    ),
    "vscode-dark": ("<body class='vscode-dark' style='background:#1e1e1e;color:#ccc'>", "light"),
    "browser-light": ("<body style='background:#fff;color:#111'>", "light"),
    "browser-dark": ("<body style='background:#111;color:#eee'>", "dark"),
}
COLOURS = """() => {
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (walker.currentNode.textContent.trim() && element.tagName !== "STYLE")
      found.push([getComputedStyle(element).color, walker.currentNode.textContent.slice(0, 40)]);
  }
  return [getComputedStyle(document.body).backgroundColor, found];
}"""


def luminance(colour: str) -> float:
    """Return the relative luminance of ``rgb(r, g, b)``."""
    channels = [int(n) / 255 for n in re.findall(r"\d+", colour)[:3]]
    r, g, b = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def contrast(one: str, other: str) -> float:
    low, high = sorted([luminance(one), luminance(other)])
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("name", PAGES)
def test_every_text_is_readable(name: str, open_page: Open) -> None:
    body, theme = PAGES[name]
    html = "".join(value._repr_html_() for value in VALUES.values())
    page = open_page(
        f"<!DOCTYPE html><html lang='en' data-ready>{body}{html}</body></html>", theme=theme
    )
    background, texts = page.evaluate(COLOURS)
    assert len(texts) > 100
    faint = {text: colour for colour, text in texts if contrast(colour, background) < CONTRAST}
    assert faint == {}
    assert len({colour for colour, _ in texts}) >= 4, "no colours"
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SCREENSHOTS / f"values-{name}.png", full_page=True)


def test_panels_open_by_a_click(open_page: Open) -> None:
    page = open_page(f"<html data-ready><body>{MODULE._repr_html_()}</body></html>")
    inner = page.locator("details details")
    assert inner.count() == len(MODULE.computations)
    assert inner.first.get_attribute("open") is not None, "ENTRY"
    assert inner.nth(1).get_attribute("open") is None
    assert not inner.nth(1).locator("pre").is_visible()
    inner.nth(1).locator("summary").click()
    assert inner.nth(1).locator("pre").is_visible()
    page.locator("details").first.locator("summary").first.click()
    assert not inner.first.is_visible()


JUPYTERLAB = """<style>:not(.jp-RenderedMarkdown).jp-RenderedHTMLCommon td,
:not(.jp-RenderedMarkdown).jp-RenderedHTMLCommon th,
:not(.jp-RenderedMarkdown).jp-RenderedHTMLCommon tr { text-align: right; white-space: normal }
</style>"""
"""Source: JupyterLab 4, ``packages/rendermime/style/base.css``."""


def test_rules_of_jupyterlab_do_not_align_texts_at_the_right(open_page: Open) -> None:
    html = "".join(VALUES[name]._repr_html_() for name in ("answer", "traffic"))
    page = open_page(
        f"<html data-ready><head>{JUPYTERLAB}</head><body>"
        f"<div class='jp-RenderedHTMLCommon jp-RenderedHTML'>{html}</div></body></html>"
    )
    cells = page.evaluate(
        "() => [...document.querySelectorAll('td')].map(c => [c.className,"
        " getComputedStyle(c).textAlign, getComputedStyle(c).whiteSpace])"
    )
    expected = {"right": ("right", "pre"), "wrapped": ("left", "pre-wrap"), "": ("left", "pre")}
    assert {name for name, *_ in cells} == expected.keys()
    assert [cell for cell in cells if tuple(cell[1:]) != expected[cell[0]]] == []

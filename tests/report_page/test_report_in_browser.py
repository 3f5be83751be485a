"""Pages in Chromium: they open without a request, answer the mouse and the keyboard, stay quiet.

The screenshots are in build/screenshots.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import hlo
import indexing
from tests.report_page.reading import HOSTILE, hostile_module_text

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
SCREENSHOTS = ROOT / "build" / "screenshots"
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
OPTIONS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]

playwright = pytest.importorskip(
    "playwright.sync_api", reason="no playwright: pip install 'hlo-indexing[browser]'"
)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(BROWSER is None, reason="no Chromium: apt-get install chromium"),
]

Open = Callable[..., Any]


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A browser with an empty profile."""
    with playwright.sync_playwright() as started:
        profile = tmp_path_factory.mktemp("profile")
        browser = started.chromium.launch_persistent_context(
            profile, executable_path=BROWSER, args=OPTIONS, headless=True
        )
        yield browser
        browser.close()


@pytest.fixture
def open_page(context: Any, tmp_path: Path) -> Iterator[Open]:
    """Opens a report; at the end, the console is empty and no request left the page."""
    messages: list[str] = []
    requests: list[str] = []
    pages: list[Any] = []

    def opened(report: Any, size: tuple[int, int] = (1280, 800), theme: str = "light") -> Any:
        path = tmp_path / f"{len(pages)}.html"
        report.save(path)
        page = context.new_page()
        pages.append(page)
        page.set_viewport_size({"width": size[0], "height": size[1]})
        page.emulate_media(color_scheme=theme)
        page.on("console", lambda message: messages.append(message.text))
        page.on("pageerror", lambda error: messages.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-ready]", state="attached")
        return page

    yield opened
    for page in pages:
        page.close()
    assert messages == []
    assert [url for url in requests if not url.startswith("file:")] == []
    assert len(requests) == len(pages)


def shoot(page: Any, name: str) -> None:
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SCREENSHOTS / f"{name}.png")


@pytest.fixture(scope="module")
def attention() -> Any:
    return indexing.report(hlo.load(EXAMPLES / "attention.opt.hlo"))


def test_a_search_and_a_click_open_the_details(open_page: Open, attention: Any) -> None:
    page = open_page(attention)
    page.keyboard.press("/")
    page.keyboard.type("transpose_copy_fusion.1")
    page.wait_for_selector("#results [role=option]")
    shoot(page, "search")
    page.keyboard.press("Enter")
    page.wait_for_selector("#details h2:has-text('transpose_copy_fusion.1')")
    assert page.locator(".node.selected").count() == 1
    module = hlo.load(EXAMPLES / "attention.opt.hlo")
    answer = indexing.output_to_input(module.entry["transpose_copy_fusion.1"])
    section = page.locator("#details details[data-section=Maps]")
    shown = section.locator("pre").all_inner_texts()
    assert shown == [str(m) for maps in answer.maps for m in maps]
    shoot(page, "details")
    page.locator("#details .link", has_text="ynn_fusion.6").first.click()
    page.wait_for_selector("#details h2:has-text('ynn_fusion.6')")


def test_the_table_ranks_by_bytes_and_is_filtered(open_page: Open, attention: Any) -> None:
    page = open_page(attention)
    page.click("#tab-table")
    first = page.locator("#table-view tbody tr").first
    ranked = indexing.traffic(hlo.load(EXAMPLES / "attention.opt.hlo")).instructions
    most = max(each.bytes.number for each in ranked)
    assert f"{most:,}" in first.inner_text()
    module = hlo.load(EXAMPLES / "attention.opt.hlo")
    dots = sum(i.opcode == "dot" for i in module.instructions)
    page.select_option("#opcode", label=f"dot ({dots})")
    assert page.locator("#table-view tbody tr").count() == dots
    page.click("#reset")
    page.click("#table-view th button:has-text('flops') >> nth=0")
    flops = [
        int(cell.replace(",", "") or 0)
        for cell in page.locator("#table-view td.flops").all_inner_texts()
    ]
    assert flops == sorted(flops, reverse=True)
    page.locator("#table-view tbody tr").first.click()
    page.locator("#table-view table").focus()
    page.keyboard.press("ArrowDown")
    assert page.locator("#table-view tbody tr").nth(1).get_attribute("class") == "selected"
    shoot(page, "table")


def test_a_slider_moves_the_tile(open_page: Open, attention: Any) -> None:
    page = open_page(attention)
    page.fill("#search", "ynn_fusion.6")
    page.press("#search", "Enter")
    page.wait_for_selector("#details input[type=range]")
    captions = page.locator("#details figcaption .mono")
    before = captions.all_inner_texts()
    page.locator("#details input[type=range]").first.focus()
    page.keyboard.press("ArrowRight")
    after = captions.all_inner_texts()
    module = hlo.load(EXAMPLES / "attention.opt.hlo")
    tiling = indexing.tile(module.entry["ynn_fusion.6"], [8, 16])
    assert before[1:] == [str(region) for region in tiling.at(0, 0)]
    assert after[1:] == [str(region) for region in tiling.at(1, 0)]
    page.click("text=some elements")
    assert captions.first.inner_text() == "element [0, 0]"


def test_a_fusion_unfolds(open_page: Open, attention: Any) -> None:
    page = open_page(attention)
    before = page.locator(".node").count()
    page.locator(".toggle .hit").first.click()
    assert page.locator(".node.cluster").count() == 1
    assert page.locator(".node").count() > before
    page.locator(".cluster .toggle .hit").first.click()
    assert page.locator(".node").count() == before
    page.locator(".toggle .hit").first.click()
    shoot(page, "unfolded")


@pytest.mark.parametrize(
    "theme, paper", [("light", "rgb(255, 255, 255)"), ("dark", "rgb(20, 24, 29)")]
)
def test_the_theme_is_that_of_the_reader(
    open_page: Open, attention: Any, theme: str, paper: str
) -> None:
    page = open_page(attention, theme=theme)
    colour = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(colour) == paper
    page.locator(".node").nth(3).click()
    page.wait_for_selector("#details h3")
    shoot(page, theme)


def test_a_small_window_has_all_parts(open_page: Open, attention: Any) -> None:
    page = open_page(attention, size=(420, 800))
    page.locator(".node").first.click()
    page.wait_for_selector("#details summary")
    assert page.evaluate("document.documentElement.scrollWidth") <= 420
    shoot(page, "small")


def test_changes_lead_to_the_instructions(open_page: Open) -> None:
    text = "ENTRY e { p = f32[4] parameter(0)  ROOT r = f32[4] negate(p) }"
    modules = [hlo.parse(t, f"{t[-9:-2]}.hlo") for t in (text, text.replace("negate", "cosine"))]
    page = open_page(indexing.report(*modules))
    assert page.locator(".verdict").get_attribute("class") == "verdict differs"
    shoot(page, "changes")
    page.locator("#changes-view .link", has_text="r").click()
    page.wait_for_selector("#details :text('cosine')")
    assert page.locator("#modules").input_value() == "1"


def test_a_folder_of_dumps_lists_its_passes(open_page: Open) -> None:
    page = open_page(indexing.report_passes(EXAMPLES / "passes" / "rms_pad"))
    page.locator("#changes-view summary").first.click()
    page.wait_for_selector(".verdict")
    shoot(page, "passes")


def test_hostile_text_is_text(open_page: Open) -> None:
    module = hlo.parse(hostile_module_text(), f"{HOSTILE}.hlo")
    page = open_page(indexing.report(module, module))
    page.click("#tab-table")
    page.fill("#search", "onerror")
    page.wait_for_selector("#results [role=option]")
    page.press("#search", "Enter")
    page.wait_for_selector("#details summary")
    for summary in page.locator("#details summary").all():
        if summary.locator("..").get_attribute("open") is None:
            summary.click()
    assert "</script><img" in page.locator("#details").inner_text()
    assert page.locator("img").count() == 0
    assert "\u202e" not in page.locator("body").inner_text()
    shoot(page, "hostile")


def test_a_model_opens_within_a_second(open_page: Open) -> None:
    report = indexing.report(hlo.load(EXAMPLES / "gpt2_tiny.opt.hlo"))
    assert len(report.html) < 3_000_000
    page = open_page(report)
    assert page.locator(".node").count() > 20
    shoot(page, "gpt2_tiny")


def test_a_large_computation_is_drawn_in_part(open_page: Open) -> None:
    """The limits are those of a model with 65,757 instructions: 5 s and 60 MB."""
    lines = [f"v{k} = f32[8,4] add(v{k - 1}, v{k // 2})" for k in range(1, 10_000)]
    text = "\n".join(["v0 = f32[8,4] parameter(0)", *lines, "ROOT r = f32[8,4] negate(v9999)"])
    report = indexing.report(hlo.parse(f"ENTRY e {{ {text} }}"), tiled=3)
    assert len(report.html) < 10_000_000
    page = open_page(report)
    assert int(page.evaluate("document.documentElement.dataset.ready")) < 5000
    assert 10 < page.locator(".node").count() <= 60
    assert "10,001 instructions: those near" in page.locator("#graph-note").inner_text()
    page.fill("#search", "v7777")
    page.press("#search", "Enter")
    page.wait_for_selector("#details h2:has-text('v7777')")
    assert page.locator(".node.selected").count() == 1
    shoot(page, "large")

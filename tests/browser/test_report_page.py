"""Reports in Chromium: they open without a request, answer the mouse and the keyboard."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import hlo
import indexing
from tests.report_page.reading import HOSTILE, hostile_module_text

EXAMPLES = Path(__file__).parents[2] / "examples"

Open = Callable[..., Any]
Shoot = Callable[[Any, str], None]


@pytest.fixture(scope="module")
def attention() -> str:
    html: str = indexing.report(hlo.load(EXAMPLES / "attention.opt.hlo")).html
    return html


def test_a_search_and_a_click_open_the_details(
    open_page: Open, shoot: Shoot, attention: str
) -> None:
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
    fusion = module.entry["transpose_copy_fusion.1"]
    for name, maps in (
        ("Maps to parameters", maps_to_parameters(fusion)),
        ("Input-to-output maps", forward_maps(fusion)),
    ):
        section = page.locator(f"#details details[data-section='{name}']")
        section.locator("summary").click()
        section.locator("pre").first.wait_for()
        assert section.locator("pre").all_inner_texts() == maps
    page.locator("#details .link", has_text="ynn_fusion.6").first.click()
    page.wait_for_selector("#details h2:has-text('ynn_fusion.6')")


def maps_to_parameters(instruction: hlo.Instruction) -> list[str]:
    answers = indexing.dataflow.all_to_parameters(instruction.computation)
    (answer,) = [each for each in answers if each.instruction is instruction]
    return [str(m) for maps in answer.maps for m in maps]


def forward_maps(instruction: hlo.Instruction) -> list[str]:
    answers = [indexing.input_to_output(instruction, k) for k in range(len(instruction.operands))]
    return [str(m) for answer in answers for maps in answer.maps for m in maps]


def test_the_table_ranks_by_bytes_and_is_filtered(
    open_page: Open, shoot: Shoot, attention: str
) -> None:
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


def test_the_memory_lists_the_buffers_at_their_instructions(open_page: Open, shoot: Shoot) -> None:
    module = hlo.load(EXAMPLES / "targets" / "attention.tpu_v5e.hlo")
    profile = indexing.memory_profile(module)
    page = open_page(indexing.report(module, tiled=0).html)
    page.click("#tab-memory")
    page.wait_for_selector("#memory-view svg")
    titles = page.locator("#memory-view h3").all_inner_texts()
    assert [title.split(":")[0] for title in titles] == ["HBM", "VMEM", "semaphores"]
    assert f"{profile.peaks[1].stored_bytes:,} bytes" in titles[1]
    assert page.locator("#memory-view tbody tr").count() == len(profile.buffers)
    shoot(page, "memory")
    page.locator("#memory-view .link", has_text="online-softmax").click()
    page.wait_for_selector("#details h2:has-text('online-softmax')")


def test_the_kernels_select_their_fusions(open_page: Open, shoot: Shoot) -> None:
    (file,) = (EXAMPLES / "kernels" / "transpose_2d").glob("*after_optimizations.txt")
    page = open_page(indexing.report(hlo.load(file), tiled=0).html)
    page.click("#tab-kernels")
    page.wait_for_selector("#kernels-view tbody tr")
    assert page.locator("#kernels-view td.proved").all_inner_texts() == ["proved"]
    shoot(page, "kernels")
    page.locator("#kernels-view .link").click()
    page.wait_for_selector("#details h2:has-text('input_transpose_fusion')")


def test_a_module_without_kernels_has_no_tab_of_them(open_page: Open, attention: str) -> None:
    assert not open_page(attention).locator("#tab-kernels").is_visible()


def test_a_slider_moves_the_tile(open_page: Open, attention: str) -> None:
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


def test_a_fusion_unfolds(open_page: Open, shoot: Shoot, attention: str) -> None:
    page = open_page(attention)
    before = page.locator(".node").count()
    page.locator(".toggle .hit").first.click()
    assert page.locator(".node.cluster").count() == 1
    assert page.locator(".node").count() > before
    page.locator(".cluster .toggle .hit").first.click()
    assert page.locator(".node").count() == before
    page.locator(".toggle .hit").first.click()
    shoot(page, "unfolded")


PAPER = {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 24, 29)"}
GROUNDS = """() => [
  getComputedStyle(document.body).backgroundColor,
  getComputedStyle(document.querySelector("#details svg .paper")).fill,
]"""


@pytest.mark.parametrize("theme, other", [("light", "dark"), ("dark", "light")])
def test_the_theme_is_that_of_the_reader_or_the_chosen_one(
    open_page: Open, shoot: Shoot, attention: str, theme: str, other: str
) -> None:
    page = open_page(attention, theme=theme)
    chooser = page.get_by_label("theme")
    assert chooser.input_value() == "auto"
    assert page.evaluate(GROUNDS) == [PAPER[theme]] * 2
    page.locator("#tab-graph").focus()
    page.keyboard.press("Tab")
    page.keyboard.press(other[0])  # selects the entry with this letter
    assert chooser.input_value() == other
    assert page.evaluate(GROUNDS) == [PAPER[other]] * 2
    page.reload()
    page.wait_for_selector("html[data-ready]", state="attached")
    assert page.evaluate(GROUNDS) == [PAPER[other]] * 2
    page.locator(".node").nth(3).click()
    page.wait_for_selector("#details h3")
    shoot(page, other)
    chooser.select_option("auto")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == PAPER[theme]


def test_a_theme_can_be_chosen_where_nothing_is_stored(open_page: Open, attention: str) -> None:
    page = open_page(attention)
    denied = "Object.defineProperty(window, 'localStorage', { get() { throw new Error(); } })"
    page.add_init_script(denied)
    page.reload()
    page.wait_for_selector("html[data-ready]", state="attached")
    page.get_by_label("theme").select_option("dark")
    assert page.evaluate(GROUNDS) == [PAPER["dark"]] * 2


def test_a_small_window_has_all_parts(open_page: Open, shoot: Shoot, attention: str) -> None:
    page = open_page(attention, size=(420, 800))
    page.locator(".node").first.click()
    page.wait_for_selector("#details summary")
    assert page.evaluate("document.documentElement.scrollWidth") <= 420
    shoot(page, "small")


def test_changes_lead_to_the_instructions(open_page: Open, shoot: Shoot) -> None:
    text = "ENTRY e { p = f32[4] parameter(0)  ROOT r = f32[4] negate(p) }"
    modules = [hlo.parse(t, f"{t[-9:-2]}.hlo") for t in (text, text.replace("negate", "cosine"))]
    page = open_page(indexing.report(*modules).html)
    assert page.locator(".verdict").get_attribute("class") == "verdict differs"
    shoot(page, "changes")
    page.locator("#changes-view .link", has_text="r").click()
    page.wait_for_selector("#details :text('cosine')")
    assert page.locator("#modules").input_value() == "1"


def test_a_folder_of_dumps_lists_its_passes(open_page: Open, shoot: Shoot) -> None:
    page = open_page(indexing.report_passes(EXAMPLES / "passes" / "rms_pad").html)
    page.locator("#changes-view summary").first.click()
    page.wait_for_selector(".verdict")
    shoot(page, "passes")


def test_hostile_text_is_text(open_page: Open, shoot: Shoot) -> None:
    module = hlo.parse(hostile_module_text(), f"{HOSTILE}.hlo")
    page = open_page(indexing.report(module, module).html)
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


def test_a_model_opens_within_a_second(open_page: Open, shoot: Shoot) -> None:
    html = indexing.report(hlo.load(EXAMPLES / "gpt2_tiny.opt.hlo")).html
    assert len(html) < 3_000_000
    page = open_page(html)
    assert page.locator(".node").count() > 20
    shoot(page, "gpt2_tiny")


def test_a_large_computation_is_drawn_in_part(open_page: Open, shoot: Shoot) -> None:
    """The limits are those of a model with 65,757 instructions: 5 s and 60 MB."""
    lines = [f"v{k} = f32[8,4] add(v{k - 1}, v{k // 2})" for k in range(1, 10_000)]
    text = "\n".join(["v0 = f32[8,4] parameter(0)", *lines, "ROOT r = f32[8,4] negate(v9999)"])
    html = indexing.report(hlo.parse(f"ENTRY e {{ {text} }}"), tiled=3).html
    assert len(html) < 10_000_000
    page = open_page(html)
    assert int(page.evaluate("document.documentElement.dataset.ready")) < 5000
    assert 10 < page.locator(".node").count() <= 60
    assert "10,001 instructions: those near" in page.locator("#graph-note").inner_text()
    page.fill("#search", "v7777")
    page.press("#search", "Enter")
    page.wait_for_selector("#details h2:has-text('v7777')")
    assert page.locator(".node.selected").count() == 1
    shoot(page, "large")

"""Reports in Chromium: they open without a request, answer the mouse and the keyboard."""

from __future__ import annotations

from collections.abc import Callable
from fnmatch import fnmatchcase
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
    page.locator("#details header .link", has_text="r").last.click()  # that of the other module
    page.wait_for_selector("#details :text('negate')")
    assert page.locator("#modules").input_value() == "0"
    assert page.url.endswith("#instruction=r&module=0")


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
    assert page.locator(".node").count() > 10
    shoot(page, "gpt2_tiny")


def test_a_large_computation_is_drawn_in_groups(open_page: Open, shoot: Shoot) -> None:
    lines = [f"v{k} = f32[8,4] add(v{k - 1}, v{k // 2})" for k in range(1, 10_000)]
    text = "\n".join(["v0 = f32[8,4] parameter(0)", *lines, "ROOT r = f32[8,4] negate(v9999)"])
    html = indexing.report(hlo.parse(f"ENTRY e {{ {text} }}"), tiled=3).html
    assert len(html) < 10_000_000
    page = open_page(html)
    assert int(page.evaluate("document.documentElement.dataset.ready")) < 5000
    page.locator(".node.group", has_text="9,999 instructions").click()
    assert 10 < page.locator(".node").count() <= 60
    more = page.locator(".node.group", has_text="more")
    before = page.locator(".node").count()
    more.click()
    assert page.locator(".node").count() == before + 24
    page.fill("#search", "v7777")
    page.press("#search", "Enter")
    page.wait_for_selector("#details h2:has-text('v7777')")
    assert page.locator(".node.selected").count() == 1
    shoot(page, "large")


SIZES = [(1440, 1000), (800, 1000), (420, 800)]
MODULES = ["gpt2_tiny.opt.hlo", "attention.opt.hlo", "targets/attention.tpu_v5e.hlo"]
OVERFLOWING = """() => {
  const names = "body, #head, #filters, #left, #details, #details *, .scroll, #graph";
  const shown = [...document.querySelectorAll(names)];
  const { scrollWidth, clientWidth } = document.documentElement;
  if (scrollWidth > clientWidth) return ["the page"];
  const isBox = ({ overflowX, display }) => overflowX !== "visible" && display !== "inline";
  return shown
    .filter((each) => each.scrollWidth > each.clientWidth + 1 && each.clientWidth > 0)
    .filter((each) => isBox(getComputedStyle(each)))
    .map((each) => `${each.tagName} ${each.id} ${each.className}`);
}"""
CUT_LABELS = """() => {
  const outside = [];
  const check = (text, box) => {
    const [own, around] = [text.getBoundingClientRect(), box.getBoundingClientRect()];
    const isInside = own.left >= around.left - 1 && own.right <= around.right + 1
      && own.top >= around.top - 1 && own.bottom <= around.bottom + 1;
    if (!isInside) outside.push(text.textContent);
  };
  for (const node of document.querySelectorAll("#graph .node")) {
    const box = node.querySelector("rect");
    for (const text of node.querySelectorAll(":scope > text")) check(text, box);
  }
  for (const picture of document.querySelectorAll(".picture svg")) {
    for (const text of picture.querySelectorAll("text")) check(text, picture.closest(".picture"));
  }
  return outside;
}"""
PARTS_OUTSIDE = """() => {
  const box = document.querySelector("#graph").getBoundingClientRect();
  return [...document.querySelectorAll("#graph .node, #graph .stub")].filter((node) => {
    const own = node.getBoundingClientRect();
    return own.left < box.left - 1 || own.right > box.right + 1
      || own.top < box.top - 1 || own.bottom > box.bottom + 1;
  }).length;
}"""


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("name", MODULES)
def test_the_first_view_fits_and_no_label_is_cut(
    open_page: Open, shoot: Shoot, name: str, size: tuple[int, int]
) -> None:
    page = open_page(indexing.report(hlo.load(EXAMPLES / name), tiled=0).html, size=size)
    shoot(page, f"{Path(name).stem}-{size[0]}")
    assert page.locator("#graph .node").count() >= 5
    assert page.evaluate(PARTS_OUTSIDE) == 0
    assert page.evaluate(OVERFLOWING) == []
    assert page.evaluate(CUT_LABELS) == []
    page.goto(f"{page.url.split('#')[0]}#instruction={busiest(EXAMPLES / name)}")
    page.wait_for_selector("#details details[data-section=Maps] pre")
    shoot(page, f"{Path(name).stem}-details-{size[0]}")
    assert set(page.evaluate(OVERFLOWING)) <= {"DIV graph "}  # a large one is not shrunk
    assert page.evaluate(CUT_LABELS) == []


def busiest(file: Path) -> str:
    """Return the name of the instruction that moves the most bytes."""
    name: str = indexing.traffic(hlo.load(file)).ranked[0].instruction.name
    return name


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
def test_the_table_of_kernels_needs_no_scrolling_sideways(
    open_page: Open, shoot: Shoot, size: tuple[int, int]
) -> None:
    (file,) = (EXAMPLES / "kernels" / "transpose_2d").glob("*after_optimizations.txt")
    page = open_page(indexing.report(hlo.load(file), tiled=0).html, size=size)
    page.click("#tab-kernels")
    page.wait_for_selector("#kernels-view tbody tr")
    shoot(page, f"kernels-{size[0]}")
    assert page.evaluate(OVERFLOWING) == []
    assert page.locator("#kernels-view th:visible").first.inner_text() == "fusion"
    assert page.locator("#kernels-view td.proved").is_visible()


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
def test_tables_need_no_scrolling_sideways(
    open_page: Open, shoot: Shoot, size: tuple[int, int]
) -> None:
    module = hlo.load(EXAMPLES / "targets" / "attention.tpu_v5e.hlo")
    page = open_page(indexing.report(module, tiled=0, peak="H100").html, size=size)
    for view in ("table", "memory"):
        page.click(f"#tab-{view}")
        page.wait_for_selector(f"#{view}-view tbody tr")
        shoot(page, f"{view}-{size[0]}")
        assert page.evaluate(OVERFLOWING) == []
    page.click("#tab-table")
    hidden = page.locator("#table-view .hidden-columns")
    columns = page.locator("#table-view th:visible").all_inner_texts()
    assert columns[0] == "instruction"
    assert "bytes ▼" in columns
    assert hidden.count() == (len(columns) < page.locator("#table-view th").count())
    cells = page.locator("#table-view td.bytes, #table-view td.read, #table-view th.number")
    assert set(cells.evaluate_all("cells => cells.map(c => getComputedStyle(c).textAlign)")) == {
        "right"
    }


def test_groups_follow_op_name_and_open_by_click_and_keyboard(
    open_page: Open, shoot: Shoot
) -> None:
    scopes = [("train/encoder", "mul", 30), ("train/decoder", "add", 20), ("train", "sub", 3)]
    lines, last = ["v = f32[8] parameter(0)"], "v"
    for scope, op, count in scopes:
        for k in range(count):
            name = f"{scope.replace('/', '.')}.{op}.{k}"
            source = f'metadata={{op_name="{scope}/{op}"}}'
            lines.append(f"{name} = f32[8] negate({last}), {source}")
            last = name
    source = 'metadata={op_name="train/jvp(a/b)/mul"}'
    lines.append(f"ROOT r = f32[8] add({last}, train.encoder.mul.0), {source}")
    text = "\n".join(lines)
    page = open_page(indexing.report(hlo.parse(f"ENTRY e {{ {text} }}"), tiled=0).html)
    labels = page.locator("#graph .node.group .name").all_text_contents()
    assert sorted(labels) == ["decoder", "encoder"]
    counts = page.locator("#graph .node.group text:nth-of-type(2)").all_text_contents()
    assert sorted(counts) == ["20 instructions", "30 instructions"]
    assert page.locator("#graph .node[data-instruction]").count() == 4  # subtractions, and the root
    page.locator("#graph .node.group", has_text="decoder").click()
    assert page.locator("#graph .node.cluster", has_text="decoder").count() == 1
    assert page.locator("#graph .node[data-instruction]").count() == 24
    page.locator("#graph .node.cluster .hit").last.click()
    assert page.locator("#graph .node[data-instruction]").count() == 4
    page.locator("#graph .node.group", has_text="decoder").focus()
    page.keyboard.press("Enter")
    assert page.locator("#graph .node[data-instruction]").count() == 24
    shoot(page, "groups")


def test_long_edges_are_stubs_that_lead_to_their_ends(open_page: Open, shoot: Shoot) -> None:
    lines = [f"v{k} = f32[8] negate(v{k - 1})" for k in range(1, 9)]
    body = "\n".join(
        ["v0 = f32[8] iota(), iota_dimension=0", *lines, "ROOT r = f32[8] add(v1, v8)"]
    )
    page = open_page(indexing.report(hlo.parse(f"ENTRY e {{ {body} }}"), tiled=0).html)
    assert page.locator("#graph .edge").count() == 8  # v1 to v8, and v8 to r
    assert page.locator("#graph .stub text").all_text_contents() == ["r", "v1"]
    page.locator("#graph .stub text", has_text="v1").click()
    page.wait_for_selector("#details h2:has-text('v1')")
    shoot(page, "stubs")


ON_LABELS = """() => {
  const labels = [...document.querySelectorAll("#graph .stub text")].map((text) => text.getBBox());
  return [...document.querySelectorAll("#graph .edge")].filter((edge) => {
    const length = edge.getTotalLength();
    for (let at = 0; at <= length; at += 1) {
      const { x, y } = edge.getPointAtLength(at);
      if (labels.some((box) => x > box.x + 1 && x < box.x + box.width - 1
          && y > box.y + 2 && y < box.y + box.height - 2)) return true;
    }
    return false;
  }).map((edge) => `${edge.dataset.start} ${edge.dataset.end}`);
}"""


def test_edges_pass_beside_the_labels_of_stubs(open_page: Open, shoot: Shoot) -> None:
    lines = [f"v{k} = f32[8] negate(v{k - 1})" for k in range(1, 9)]
    body = "\n".join(["v0 = f32[8] iota(), iota_dimension=0", *lines])
    root = "ROOT a_name_that_is_longer_than_its_node = f32[8] add(v1, v8)"
    page = open_page(indexing.report(hlo.parse(f"ENTRY e {{ {body} {root} }}"), tiled=0).html)
    assert page.locator("#graph .stub text").count() == 2
    assert page.evaluate(ON_LABELS) == []
    shoot(page, "edges-and-labels")


DIVIDED_WORDS = """() => {
  const divided = [];
  for (const cell of document.querySelectorAll("td.instruction, td.shape, td.array")) {
    let before = null;
    const walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const text = walker.currentNode.data;
      for (let k = 0; k < text.length; k++) {
        const range = document.createRange();
        range.setStart(walker.currentNode, k);
        range.setEnd(walker.currentNode, k + 1);
        const { top, width } = range.getBoundingClientRect();
        if (width === 0) continue;
        if (before !== null && top > before.top + 4 && !" _/,-.".includes(before.c)) {
          divided.push(cell.textContent);
        }
        before = { top, c: text[k] };
      }
    }
  }
  return divided;
}"""


@pytest.mark.parametrize("tab", ["#tab-table", "#tab-memory"])
def test_names_and_shapes_break_between_words(open_page: Open, shoot: Shoot, tab: str) -> None:
    module = hlo.load(EXAMPLES / "targets" / "attention.h100.hlo")
    page = open_page(indexing.report(module, tiled=0).html, size=(800, 1000))
    page.click(tab)
    page.wait_for_selector("td.shape, td.array")
    shoot(page, f"words{tab.removeprefix('#tab')}")
    assert page.locator("td.instruction, td.array").count() > 3
    assert page.evaluate(DIVIDED_WORDS) == []


def test_a_link_opens_and_selects_its_instruction(open_page: Open, attention: str) -> None:
    page = open_page(attention)
    address = page.url
    for link, name, computation in (
        ("#instruction=ynn_fusion.6", "ynn_fusion.6", "main.5"),
        ("#instruction=main.5/ynn_fusion.6", "ynn_fusion.6", "main.5"),
        ("#instruction=dot.8&computation=ynn_fusion.6", None, None),
    ):
        page.goto(address.split("#")[0] + link)
        if name is None:
            assert "no instruction" in page.locator("#matching").inner_text()
            continue
        page.wait_for_selector(f"#details h2:has-text('{name}')")
        assert page.locator(".node.selected").count() == 1
        assert page.locator("#details header .link").inner_text() == computation
    module = hlo.load(EXAMPLES / "attention.opt.hlo")
    inner = next(i for c in module.computations.values() if not c.is_entry for i in c.instructions)
    page.goto(
        f"{address.split('#')[0]}#instruction={inner.name}&computation={inner.computation.name}"
    )
    page.wait_for_selector(f"#details header .link:has-text('{inner.computation.name}')")
    assert page.locator("#details h2").inner_text() == inner.name
    page.reload()
    page.wait_for_selector("html[data-ready]", state="attached")
    assert page.locator("#details h2").inner_text() == inner.name
    page.locator(".node[data-instruction]").first.click()
    assert "#instruction=" in page.url


@pytest.mark.parametrize(
    "pattern",
    ["ynn_fusion.[1-3]", "ynn_fusion.[!1-3]*", "*fusion", "YNN*?", "[a-", "*[z-a]*", "f*[", "*]*"],
)
def test_the_search_takes_globs_of_the_shell(open_page: Open, attention: str, pattern: str) -> None:
    module = hlo.load(EXAMPLES / "attention.opt.hlo")
    page = open_page(attention)
    glob = f"*{pattern}" if not set("*?") & set(pattern) else pattern  # without, it is a part
    names = page.evaluate(
        """(pattern) => {
          const { text } = searchTests(pattern);
          return start.state.module.names.filter(text);
        }""",
        glob,
    )
    matching = [i.name for i in module.instructions if fnmatchcase(i.name.lower(), glob.lower())]
    assert sorted(names) == sorted(matching)

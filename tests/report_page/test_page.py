"""The data of a page are those of the commands and of the module, and hostile text stays data."""

import itertools
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import hlo
import indexing
from indexing import cli
from indexing.equivalence.correspondence import correspondence
from indexing.views.report_page.changes import changes, page_correspondence
from indexing.views.report_page.chunks import chunks
from indexing.views.report_page.tile_details import MAX_TILES, picture_sizes
from indexing.views.verdict_tables import verdict_record
from tests.report_page.reading import HOSTILE, details, hostile_module_text, scripts

EXAMPLES = Path(__file__).parents[2] / "examples"
MODULE = EXAMPLES / "attention.opt.hlo"
KERNELS = EXAMPLES / "kernels"
TESTED = Path(__file__).parents[1] / "kernels" / "data"
ON_TPU = Path(__file__).parents[1] / "memory" / "data" / "buffers" / "tpu_scan_rnn.hlo"
TILED = """ENTRY e {
  p = f32[6,5] parameter(0)
  q = f32[5] parameter(1)
  b = f32[6,5] broadcast(q), dimensions={1}
  a = f32[6,5] add(p, b)
  r = f32[6,5] reverse(a), dimensions={1}
  t = f32[5,6] transpose(r), dimensions={1,0}
  ROOT s = f32[3,3] slice(t), slice={[0:5:2], [1:6:2]}
}"""


def test_the_structure_is_that_of_the_module() -> None:
    module = hlo.load(MODULE)
    html = indexing.report(module, tiled=0).html
    (data,) = scripts(html)["structure"]["modules"]
    computations = [module.computations[c["name"]] for c in data["computations"]]
    assert computations[0] is module.entry
    assert set(computations) == set(module.computations.values())
    instructions = [i for c in computations for i in c]
    assert data["names"] == [i.name for i in instructions]
    assert [data["opcodes"][k] for k in data["opcode"]] == [i.opcode for i in instructions]
    operands = [[instructions[k] for k in own] for own in data["operands"]]
    assert operands == [list(i.operands) for i in instructions]
    called = {k: [computations[c] for c in own] for k, own in data["calls"].items()}
    assert called == {
        str(k): list(i.called_computations)
        for k, i in enumerate(instructions)
        if i.called_computations
    }


@pytest.mark.parametrize(
    "section, option",
    [
        ("maps", "--direction=output-to-input"),
        ("forward", "--direction=input-to-output"),
        ("parameters", "--to=parameters"),
    ],
)
def test_maps_are_those_of_the_command(
    section: str, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    html = indexing.report(hlo.load(MODULE), tiled=0).html
    (data,) = scripts(html)["structure"]["modules"]
    shown = set()
    for name, each in zip(data["names"], details(html), strict=True):
        for output, _, _, rows, _ in each.get(section, ()):
            for row in rows:
                text = None if row["grade"] in ("nothing", "unknown") else row["text"]
                shown.add((name, output, row["operand"], text))
    assert cli.run(["maps", str(MODULE), "--all", option, "--format", "json"]) == 0
    lines = map(json.loads, capsys.readouterr().out.splitlines())
    printed = {(r["instruction"], r["output"], r["operand"], r["map"]) for r in lines}
    printed = {each for each in printed if each[2] is not None}
    if section == "parameters":  # where all operands are parameters, the page has these maps once
        computations = hlo.load(MODULE).computations.values()
        composed = {
            i.name
            for computation in computations
            for i in computation
            if not set(i.operands) <= set(computation.parameters)
        }
        printed = {each for each in printed if each[0] in composed}
    assert len(shown) > 20
    assert shown == printed


def test_a_large_module_has_maps_to_operands_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("indexing.views.report_page.page.MAX_MAPPED", 7)
    root = details(indexing.report(hlo.parse(TILED)).html)[-1]
    assert {"maps", "forward", "parameters"} <= root.keys()
    monkeypatch.setattr("indexing.views.report_page.page.MAX_MAPPED", 6)
    root = details(indexing.report(hlo.parse(TILED)).html)[-1]
    assert not {"forward", "parameters"} & root.keys()


def test_maps_beyond_the_limit_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("indexing.views.report_page.details.MAX_ROWS", 3)
    shape = "(f32[2], f32[2], f32[2], f32[2])"
    text = f"ENTRY e {{ p = f32[2] parameter(0)  ROOT t = {shape} tuple(p, p, p, p) }}"
    *_, whole = details(indexing.report(hlo.parse(text)).html)
    assert [(len(rows), more) for *_, rows, more in whole["maps"]] == [
        (1, 0),
        (1, 0),
        (1, 0),
        (0, 1),
    ]


def test_bytes_are_those_of_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    html = indexing.report(hlo.load(MODULE), tiled=0).html
    (data,) = scripts(html)["structure"]["modules"]
    shown = {
        name: each["traffic"]
        for name, each in zip(data["names"], details(html), strict=True)
        if "traffic" in each
    }
    assert cli.run(["bytes", str(MODULE), "--format", "json"]) == 0
    printed = json.loads(capsys.readouterr().out)["instructions"]
    assert shown == {each["instruction"]: each for each in printed}
    assert [data["names"][row[0]] for row in data["traffic"]] == [r["instruction"] for r in printed]


def test_the_table_has_stored_bytes_and_padding() -> None:
    text = "f32[64,10]{1,0:T(8,128)}"
    html = indexing.report(
        hlo.parse(f"ENTRY e {{ p = {text} parameter(0)  ROOT n = {text} negate(p) }}")
    ).html
    columns = scripts(html)["structure"]["columns"]
    ((_, *cells),) = scripts(html)["structure"]["modules"][0]["traffic"]
    shown = dict(zip(columns, cells, strict=False))
    assert (shown["read"], shown["written"]) == ("2,560", "2,560")
    assert (shown["stored"], shown["padding"]) == ("65,536", "60,416")  # 2 * 64 * 128 * 4, - 5,120
    (negated,) = [each for each in details(html) if "traffic" in each]
    (space,) = negated["traffic"]["spaces"]
    assert (space["name"], space["stored"], space["elements"]) == ("HBM", 65_536, 1280)
    (tiles,) = negated["tiles"]
    ((_, _, notes),) = tiles["entries"]
    assert notes[0].startswith("stored in HBM: ")


def test_the_memory_is_that_of_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    module = hlo.load(ON_TPU)
    data = scripts(indexing.report(module, tiled=0).html)
    names = data["structure"]["modules"][0]["names"]
    panel = data["memory-0"]
    assert cli.run(["memory", str(ON_TPU), "--limit", "100"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [space["title"] for space in panel["spaces"]] == [
        line for line in lines if " bytes at step " in line
    ]
    assert cli.run(["memory", str(ON_TPU), "--format", "json"]) == 0
    record = json.loads(capsys.readouterr().out)
    rows = [row for space in panel["spaces"] for row in space["rows"]]
    assert [(names[row[0]], row[1]) for row in rows] == [
        (each["instruction"], each["stored_bytes"]) for each in record["buffers"]
    ]
    assert (panel["steps"], panel["scheduled"]) == (record["steps"], True)
    assert panel["picture"].startswith("<svg")


def test_memory_that_is_unknown_has_its_reason() -> None:
    text = "ENTRY e { p = f32[?] parameter(0)  ROOT n = f32[?] negate(p) }"
    panel = scripts(indexing.report(hlo.parse(text)).html)["memory-0"]
    assert list(panel) == ["unknown"]
    assert "unknown size" in panel["unknown"]


def test_the_kernels_are_those_of_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    folder = KERNELS / "transpose_2d"
    (file,) = folder.glob("*after_optimizations.txt")
    module = hlo.load(file)
    data = scripts(indexing.report(module, tiled=0).html)
    (summary,) = data["structure"]["modules"]
    panel = data["kernels-0"]
    assert cli.run(["kernels", str(folder), "--format", "json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert (summary["kernels"], panel["title"]) == (1, "1 kernel: 1 proved")
    ((number, verdict, *cells),) = panel["rows"]
    assert (summary["names"][number], verdict) == (record["fusion"], record["verdict"])
    loaded = record["access"]["loaded"]["sectors"]
    assert len(cells) == len(panel["columns"])
    assert dict(zip(panel["columns"][:7], cells, strict=False)) == {
        "fusion": record["fusion"], "kind": "transpose", "verdict": "proved",
        "blocks": "6", "threads": "128", "shared bytes": "0", "loaded": f"{loaded}",
    }  # fmt: skip
    assert panel["notes"] == []


def test_a_module_without_kernels_has_no_rows() -> None:
    module = hlo.parse("ENTRY e { p = f32[3] parameter(0)  ROOT n = f32[3] negate(p) }")
    data = scripts(indexing.report(module).html)
    assert data["structure"]["modules"][0]["kernels"] == 0
    assert data["kernels-0"]["rows"] == []


def test_kernels_in_a_folder_of_passes_are_those_of_its_last_module(tmp_path: Path) -> None:
    for file in (TESTED / "h100_transpose_2d").iterdir():
        text = file.read_text()
        if "after_optimizations" in file.name:
            module = file.name.partition(".sm_")[0]
            for number in (1, 2):
                name = f"{module}.000{number}.p.after_dce.before_cse.txt"
                (tmp_path / name).write_text(text)
        (tmp_path / file.name).write_text(text.replace("math.exp %", "math.tanh %"))
    page = indexing.report_passes(tmp_path)
    panel = scripts(page.html)["kernels-0"]
    ((number, verdict, *_),) = panel["rows"]
    name = "input_transpose_fusion"
    assert (page.faults, verdict) == ((), "differs")
    assert scripts(page.html)["structure"]["modules"][0]["names"][number] == name
    assert [note.startswith(f"{name}: differs: ") for note in panel["notes"]] == [True]
    (log,) = tmp_path.glob("*.log")
    log.write_text(log.read_text().replace("math.tanh %", "math.tanh )"))
    (fault,) = indexing.report_passes(tmp_path).faults
    assert "mlir-syntax" in fault
    (dump,) = tmp_path.glob("*after_optimizations.txt")
    dump.write_text("garbage")
    (fault,) = indexing.report_passes(tmp_path).faults
    assert "garbage" in fault


def test_regions_are_the_elements_that_the_maps_give() -> None:
    module = hlo.parse(TILED)
    html = indexing.report(module).html
    (data,) = scripts(html)["structure"]["modules"]
    checked = 0
    for name, each in zip(data["names"], details(html), strict=True):
        for tiles in each.get("tiles", ()):
            answer = indexing.output_to_input(module.entry[name])
            grid = itertools.product(*map(range, tiles["grid"]))
            for index, regions in zip(grid, tiles["tiles"], strict=True):
                for (_, kind, boxes), array in zip(regions, tiles["arrays"], strict=True):
                    assert kind == "exact"
                    for k in numbers_of(array):
                        assert elements(boxes) == brute_force(answer.maps[k], tiles, index)
                        checked += 1
            for index, regions in tiles["elements"]:
                one = {"sizes": [1] * len(index), "dims": tiles["dims"]}
                for (_, _, boxes), array in zip(regions, tiles["arrays"], strict=True):
                    for k in numbers_of(array):
                        assert elements(boxes) == brute_force(answer.maps[k], one, index)
    assert checked > 50


def numbers_of(array: Sequence[Any]) -> list[int]:
    """Return the numbers of the operands that an entry about an array describes."""
    number, label, _, alike = array
    numbers = [int(each.split()[1]) for each in (label, *alike)]
    assert numbers[0] == number
    return numbers


def test_operands_with_the_same_maps_are_described_once() -> None:
    sizes = "p = f32[6,5] parameter(0)  q = f32[6,5] parameter(1)  s = f32[] parameter(2)"
    b = "b = f32[6,5] broadcast(s), dimensions={}"
    text = f"ENTRY e {{ {sizes}  {b}  i = s32[] parameter(3)  ROOT r = f32[6,5] clamp(p, b, q) }}"
    (tiles,) = details(indexing.report(hlo.parse(text)).html)[-1]["tiles"]
    assert [numbers_of(each) for each in tiles["arrays"]] == [[0, 1, 2]]
    assert [label for label, _, _ in tiles["entries"]] == ["operand 0 p f32[6,5]"]
    update = "u = f32[6,5] dynamic-update-slice(p, q, i, i)"
    text = text.replace("ROOT r", f"{update}  ROOT r").replace("clamp(p, b, q)", "add(p, u)")
    *_, updated, _ = details(indexing.report(hlo.parse(text)).html)
    (tiles,) = updated["tiles"]
    assert [numbers_of(each)[0] for each in tiles["arrays"]] == [0, 1, 2, 3]  # `i` twice


def brute_force(
    maps: Sequence[indexing.IndexingMap], tiles: dict[str, Any], index: Sequence[int]
) -> set[Any]:
    """Return the elements that the maps give for each element of a tile."""
    starts = [k * size for k, size in zip(index, tiles["sizes"], strict=True)]
    sides = [
        range(start, min(start + size, n))
        for start, size, n in zip(starts, tiles["sizes"], tiles["dims"], strict=True)
    ]
    return {
        m.evaluate(dims=point, ranges=values)
        for m in maps
        for point in itertools.product(*sides)
        for values in itertools.product(*[range(s.lower, s.upper + 1) for s in m.ranges])
    } - {None}


def elements(boxes: Sequence[Any]) -> set[Any]:
    """Return the elements of boxes: offsets, sizes and strides."""
    return {
        element
        for box in boxes
        for element in itertools.product(
            *[range(o, o + n * s, s) for o, n, s in zip(*box, strict=True)]
        )
    }


@pytest.mark.parametrize("dims", [(), (1,), (7,), (64, 64), (2, 3, 5, 7), (1, 1000003)])
def test_a_picture_has_few_tiles_which_cover_the_array(dims: tuple[int, ...]) -> None:
    sizes = picture_sizes(dims)
    tiles = 1
    for n, size in zip(dims, sizes, strict=True):
        assert 1 <= size <= n
        tiles *= -(-n // size)
    assert tiles <= MAX_TILES


def test_chunks_hold_all_values_in_order() -> None:
    values = [{"k": k, "text": "x" * (k * 997 % 5000)} for k in range(300)]
    html = "".join(
        f'<script type="application/octet-stream" id="c-{first}">{text}</script>'
        for first, text in chunks(values)
    )
    read = scripts(html)
    assert len(read) > 2
    assert [each for chunk in read.values() for each in chunk] == values


def test_hostile_text_is_only_in_the_data() -> None:
    module = hlo.parse(hostile_module_text(), f"{HOSTILE}.hlo")
    plain = indexing.report(hlo.parse("ENTRY e { ROOT p = f32[3] parameter(0) }")).html
    html = indexing.report(module).html
    assert html.count("<script") == html.count("</script>") == plain.count("<script")
    assert "onerror=boom" not in html.replace(title_of(html), "")
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]", html)
    names = [each["op_name"] for each in details(html) if "op_name" in each]
    assert all("</script><img" in name for name in names)
    assert len(names) == 3


def title_of(html: str) -> str:
    """Return the escaped title, which has no tags."""
    (title,) = re.findall("<title>(.*)</title>", html)
    assert "<" not in title
    return str(title)


def test_two_modules_are_compared() -> None:
    before = hlo.parse(TILED, "before.hlo")
    text = TILED.replace("reverse(a), dimensions={1}", "reverse(a), dimensions={0}")
    after = hlo.parse(text.replace("b = ", "wide = ").replace("(p, b)", "(p, wide)"), "after.hlo")
    data = scripts(indexing.report(before, after, tiled=0).html)
    (comparison,) = data["structure"]["comparisons"]
    verdict = indexing.equivalent(before, after)
    assert not verdict
    assert comparison["verdict"] == "differs"
    assert comparison["lines"][0] == str(verdict)
    assert comparison["lines"][-1].startswith("bytes: 536 read, 516 written before; ")
    listed = {key: [row[1] for row in rows] for key, rows in data["changes-0"].items()}
    assert listed == {"changed": ["r"], "renamed": ["wide", "a"], "removed": [], "added": []}
    (reverse,), (renamed, _) = (data["changes-0"][k] for k in ("changed", "renamed"))
    for row, old, new in ((reverse, "r", "r"), (renamed, "b", "wide")):
        for module, name, lines in zip((before, after), (old, new), row[4], strict=True):
            maps = [] if name is None else indexing.output_to_input(module.entry[name]).maps
            shown = [] if lines is None else [line.partition(": ")[2] for line in lines]
            assert shown == [str(m) for own in maps for m in own]


@pytest.mark.parametrize("name", ["attention.opt.hlo", "layernorm.opt.hlo", "gpt2_tiny.opt.hlo"])
def test_renamed_instructions_have_their_counterparts(name: str) -> None:
    text = (EXAMPLES / name).read_text()
    before = hlo.parse(text)
    names = [i.name for i in before.entry.instructions if i.opcode != "parameter"]
    new = {own: f"{own.split('.')[0]}.{k}x" for k, own in enumerate(reversed(names))}
    renamed = re.sub(r"%([\w.-]+)", lambda m: f"%{new.get(m[1], m[1])}", text)
    after = hlo.parse(renamed)
    kinds = changes(before, after, correspondence(before, after))
    assert not kinds["removed"]
    assert not kinds["added"]
    wrong = 0
    for row in kinds["renamed"] + kinds["changed"]:
        old, new_name = row[3][0].split(" =")[0].split("%")[-1], row[1]
        if new[old] != new_name:  # computed twice
            wrong += 1
            assert indexing.equivalent(before.entry[old], after.entry[new_name])
    assert wrong < len(names) / 4
    assert len(kinds["changed"]) <= 2 * wrong


def test_a_counterpart_has_the_value_the_op_name_or_the_name() -> None:
    head = "ENTRY e { p = f32[4] parameter(0)"
    line = '%s = f32[4] negate(%s), metadata={op_name="f/neg"}'
    ends = ["ROOT r = f32[4] exponential(%s) }", "c = f32[4] cosine(p)  ROOT r = f32[4] sine(%s) }"]
    before = hlo.parse(f"{head} {line % ('a', 'p')} {ends[0] % 'a'}")
    for own, listed in (
        (line % ("b", "c"), {"changed": ["b", "r"], "renamed": [], "removed": [], "added": ["c"]}),
        (line % ("b", "p"), {"changed": ["r"], "renamed": ["b"], "removed": [], "added": ["c"]}),
        (
            line.partition(",")[0] % ("b", "c"),
            {"changed": ["r"], "renamed": [], "removed": ["a"], "added": ["c", "b"]},
        ),
    ):
        after = hlo.parse(f"{head} {ends[1].replace('ROOT', own + ' ROOT') % 'b'}")
        kinds = changes(before, after, correspondence(before, after))
        assert {key: [row[1] for row in rows] for key, rows in kinds.items()} == listed


def test_each_instruction_is_in_one_row_at_most() -> None:
    before, after = [hlo.load(str(EXAMPLES / f"attention.{end}.hlo")) for end in ("pre", "opt")]
    kinds = changes(before, after, page_correspondence(before, after))
    for side in (0, 1):
        texts = [(row[0], row[3][side]) for rows in kinds.values() for row in rows]
        assert len({t for t in texts if t[1]}) == len([t for t in texts if t[1]])


def test_formulas_of_large_modules_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    head = "ENTRY e { p = f32[4] parameter(0) "
    before = hlo.parse(f"{head} ROOT c = f32[4] copy(p) }}")
    after = hlo.parse(f"{head} n = f32[4] negate(p)  ROOT m = f32[4] negate(n) }}")

    def how() -> str:
        links = page_correspondence(before, after).links
        return {link.after.name: link.how for link in links}["m"]

    assert how() == "value"
    monkeypatch.setattr("indexing.views.report_page.changes.MAX_COMPARED", 2)
    assert how() == "user"


def test_the_maps_of_many_changes_are_listed_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("indexing.views.report_page.changes.MAX_MAPPED", 4)
    before, after = hlo.parse(TILED), hlo.parse(TILED.replace("5]", "7]").replace("0:7", "0:5"))
    rows = changes(before, after, correspondence(before, after))["changed"]
    listed = {row[1]: row[4] != [None, None] for row in rows}
    assert listed == {"p": False, "q": False, "b": True, "a": True, "r": False}


def test_a_folder_of_dumps_has_a_comparison_for_each_pair_that_differs() -> None:
    folder = EXAMPLES / "passes"
    data = scripts(indexing.report_passes(folder, tiled=0).html)["structure"]
    results = [each for each in indexing.passes(folder) if each.verdict is not None]
    assert [c["title"] for c in data["comparisons"]] == [
        f"{each.module}: {each.pass_name}" for each in results
    ]
    verdicts = [
        verdict_record(each.verdict)["verdict"] for each in results if each.verdict is not None
    ]
    assert [c["verdict"] for c in data["comparisons"]] == verdicts


def test_the_command_writes_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.html"
    assert cli.run(["report", str(MODULE), "--tiles", "2", "-q", "-o", str(page)]) == 0
    assert page.read_text("utf-8") == indexing.report(hlo.load(str(MODULE)), tiled=2).html
    assert cli.run(["report", "a.hlo", "b.hlo", "c.hlo"]) == 2
    assert "one or two files" in capsys.readouterr().err
    broken = tmp_path / "broken.hlo"
    broken.write_text("ENTRY e { ROOT p = f32[2] no }")
    assert cli.run(["report", str(broken), "-o", str(page)]) == 1
    assert page.stat().st_size > 10_000  # not replaced


def test_the_page_loads_nothing_and_has_the_license_of_its_layout() -> None:
    html = indexing.report(hlo.parse(TILED)).html
    outside = re.findall(r"(?:src|href)\s*=|https?://|@import|url\(", html)
    assert set(outside) <= {"url("}
    assert re.findall(r"url\([^)]*\)", html) == ["url(#arrow)"]
    assert "@dagrejs/dagre 3.1.3" in html
    assert "Copyright (c) 2012-2014 Chris Pettitt" in html


def test_an_invalid_dump_is_listed(tmp_path: Path) -> None:
    text = "HloModule m ENTRY e { p = f32[3] parameter(0) ROOT r = f32[3] %s(p) }"
    for number, body in enumerate((text % "negate", "HloModule m ENTRY", text % "cosine")):
        name = f"module_0001.m.000{number}.simplification.after_p{number}.before_dce.txt"
        (tmp_path / name).write_text(body)
    data = scripts(indexing.report_passes(tmp_path, tiled=0).html)["structure"]
    assert "unknown" in [c["verdict"] for c in data["comparisons"]]
    assert data["comparisons"][-1]["verdict"] == "differs"
    (module,) = data["modules"]
    assert "cosine" in module["opcodes"]

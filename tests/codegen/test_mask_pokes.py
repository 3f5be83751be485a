"""Validation under masks: maps that miss an element, that claim too much, and that are tight.

The maps of masked fusions are replaced by maps that are wrong in one constraint only.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import hlo
from hlo.modules.module import Instruction
from indexing.codegen import checked_instruction, fusion_reads, mask_pokes
from indexing.codegen.findings import Report, Tightness
from indexing.codegen.validation import validate_instruction
from indexing.dataflow.queries import output_to_input
from indexing.maps.answers import Answer
from indexing.maps.indexing_map import IndexingMap
from simplifier.constraints import Constraint
from tests.cli.running import runner, valid_records

TEXT = """
plus {{ a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }}
fused {{
  x = f32[4,7] parameter(0)
  n = {integer} parameter(1)
  i = s32[4,7] iota(), iota_dimension=0
  j = s32[4,7] iota(), iota_dimension=1
  zero = f32[] constant(0)
  zeros = f32[4,7] broadcast(zero), dimensions={{}}
  {mask}
  ROOT r = f32[4,7] select(p, x, zeros)
}}
ENTRY e {{
  x = f32[4,7] parameter(0)
  n = {integer} parameter(1)
  ROOT f = f32[4,7] fusion(x, n), kind=kLoop, calls=fused
}}"""
POSITION = "b = s32[4,7] broadcast(n), dimensions={}  "
LENGTHS = "b = s32[4,7] broadcast(n), dimensions={0}  "
# fmt: off
MASKS = {
    # the type of n, the mask
    "iota": ("s32[]", "p = pred[4,7] compare(i, j), direction=GE"),
    "up to a position": ("s32[]", POSITION + "p = pred[4,7] compare(j, b), direction=LE"),
    "a window before a position": (
        "s32[]", POSITION + "a = pred[4,7] compare(j, b), direction=LE  d = s32[4,7] add(j, i)"
        "  c = pred[4,7] compare(d, b), direction=GE  p = pred[4,7] and(a, c)"),
    "lengths": ("s32[4]", LENGTHS + "p = pred[4,7] compare(j, b), direction=LT"),
    "segments": ("s32[4]", LENGTHS + "p = pred[4,7] compare(j, b), direction=EQ"),
    "unsigned lengths": (
        "u32[4]", "b = u32[4,7] broadcast(n), dimensions={0}  k = u32[4,7] iota(), iota_dimension=1"
        "  p = pred[4,7] compare(k, b), direction=LT"),
    "not": (
        "s32[]", POSITION + "q = pred[4,7] compare(j, b), direction=LT  p = pred[4,7] not(q)"),
}
# fmt: on
EACH_SEED = pytest.mark.parametrize("seed", [0])


def fusion(name: str) -> Instruction:
    integer, mask = MASKS[name]
    return hlo.parse(TEXT.format(integer=integer, mask=mask)).entry.root


def tightness(report: Report) -> tuple[Tightness, ...]:
    assert [each.operand for each in report.tightness] == [0, 1]
    return report.tightness


def replace_maps(
    monkeypatch: pytest.MonkeyPatch, of: Instruction, maps: tuple[IndexingMap, ...]
) -> None:
    """Let validation check other maps to `x`."""
    answer = output_to_input(of, 0)
    wrong = replace(
        answer, maps=(maps, *answer.maps[1:]), paths=(((),) * len(maps), *answer.paths[1:])
    )

    def query(instruction: Instruction, output_id: int = 0) -> Answer:
        return wrong if instruction is of else output_to_input(instruction, output_id)

    for module in (checked_instruction, fusion_reads, mask_pokes):
        monkeypatch.setattr(module, "output_to_input", query)


@pytest.mark.parametrize("name", MASKS)
@EACH_SEED
def test_maps_under_masks_are_tight(name: str, seed: int) -> None:
    report = validate_instruction(fusion(name), seed, 4096)
    assert (report.status, report.not_observed) == ("ok", ())
    for each in tightness(report):
        assert each.is_tight, each
    assert report.is_tight
    assert report.tightness[0].claimed >= (10 if name == "iota" else 28)


def test_a_mask_that_no_value_satisfies_hides_the_operand() -> None:
    never = (
        POSITION
        + "a = pred[4,7] compare(j, b), direction=LT  c = pred[4,7] compare(j, b), direction=GE"
        "  p = pred[4,7] and(a, c)"
    )
    root = hlo.parse(TEXT.format(integer="s32[]", mask=never)).entry.root
    (x, *_) = validate_instruction(root, 0, 4096).tightness
    assert x.is_tight is (not output_to_input(root, 0).maps[0])


@pytest.mark.parametrize("name", MASKS)
@EACH_SEED
def test_a_map_that_misses_an_element_under_a_mask_is_wrong(
    monkeypatch: pytest.MonkeyPatch, name: str, seed: int
) -> None:
    """One of the 28 elements is missed, at one of its values."""
    root = fusion(name)
    (m,) = output_to_input(root, 0).maps[0]
    d1 = m.dims[1]
    missed = 0 if name == "iota" else 6
    bounds = (1, 6) if missed == 0 else (0, 5)
    less = m.with_constraints([Constraint(d1.as_expr(), *bounds)])
    replace_maps(monkeypatch, root, (less,))
    report = validate_instruction(root, seed, 4096)
    assert report.status == "wrong"
    texts = [text for f in report.findings if f.status == "wrong" for text in f.details]
    assert any(f", {missed}]" in text for text in texts), texts
    assert not report.is_tight


FAR = 1 << 33
BORDERS = [
    # a bound of `n - j` under which the map reads: it misses the border, or values far from it
    ("up to a position", 1, FAR),
    ("up to a position", 0, 6),
    ("lengths", 2, FAR),
    ("lengths", 1, 7),
    ("unsigned lengths", 1, 7),
    ("not", -FAR, -1),
    ("not", -7, 0),
]


@pytest.mark.parametrize("name, lower, upper", BORDERS)
@EACH_SEED
def test_a_map_that_misses_a_value_of_a_mask_is_wrong(
    monkeypatch: pytest.MonkeyPatch, name: str, lower: int, upper: int, seed: int
) -> None:
    root = fusion(name)
    (m,) = output_to_input(root, 0).maps[0]
    difference = m.runtime[0].variable - m.dims[1].as_expr()
    replace_maps(monkeypatch, root, (m.with_constraints([Constraint(difference, lower, upper)]),))
    assert validate_instruction(root, seed, 4096).status == "wrong"


@pytest.mark.parametrize("name", MASKS)
@EACH_SEED
def test_a_map_without_the_mask_is_not_tight(
    monkeypatch: pytest.MonkeyPatch, name: str, seed: int
) -> None:
    """Only iotas hide elements for all values: runtime masks hide none for good."""
    root = fusion(name)
    whole = output_to_input(root, 0, masks=False).maps[0]
    replace_maps(monkeypatch, root, whole)
    report = validate_instruction(root, seed, 4096)
    assert report.status == "ok"
    x, _ = tightness(report)
    hidden = {"iota": 18}.get(name, 0)
    if hidden:
        assert (x.is_tight, report.is_tight, x.claimed) == (False, False, 28)
        assert x.shown == 28 - hidden
        assert len(report.not_observed) == 1


STARTS = {
    # a start that the fusion computes from its integer, as a formula
    "from the end if negative": (
        "low = pred[] compare(n, none), direction=LT  late = s32[] add(n, four)"
        "  start = s32[] select(low, late, n)"
    ),
    "twice": "start = s32[] add(n, n)",
    "far": "lots = s32[] constant(1000)  start = s32[] subtract(n, lots)",
    "of a comparison": (
        "low = pred[] compare(n, four), direction=LT  start = s32[] select(low, none, four)"
    ),
}
WINDOWS = {
    "read": "ROOT r = f32[2] dynamic-slice(x, start), dynamic_slice_sizes={2}",
    "written": "u = f32[2] slice(x), slice={[5:7]}"
    "  ROOT r = f32[7] dynamic-update-slice(x, u, start)",
}


def window_fusion(start: str, window: str) -> Instruction:
    shape = "f32[7]" if "update" in WINDOWS[window] else "f32[2]"
    return hlo.parse(f"""
fused {{
  x = f32[7] parameter(0)
  n = s32[] parameter(1)
  none = s32[] constant(0)
  four = s32[] constant(4)
  {STARTS[start]}
  {WINDOWS[window]}
}}
ENTRY e {{
  x = f32[7] parameter(0)
  n = s32[] parameter(1)
  ROOT f = {shape} fusion(x, n), kind=kLoop, calls=fused
}}""").entry.root


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("window", WINDOWS)
@EACH_SEED
def test_starts_that_a_fusion_computes_are_reached(start: str, window: str, seed: int) -> None:
    report = validate_instruction(window_fusion(start, window), seed, 4096)
    assert report.status == "ok"
    reasons = [text for f in report.findings if f.status == "skipped" for text in f.details]
    assert not [text for text in reasons if "enumerate" in text or "reached" in text]
    (x, *_) = report.tightness
    assert x.claimed > 0
    assert x.shown >= x.claimed // 2  # `2 n` is even, and a comparison has two values


@pytest.mark.parametrize("start", STARTS)
@EACH_SEED
def test_a_map_from_another_start_is_wrong(
    monkeypatch: pytest.MonkeyPatch, start: str, seed: int
) -> None:
    root = window_fusion(start, "read")
    (m,) = output_to_input(root, 0).maps[0]
    (result,) = m.results
    replace_maps(monkeypatch, root, (replace(m, results=(result + 1,)),))
    assert validate_instruction(root, seed, 4096).status == "wrong"


def test_the_command_counts_tight_fusions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "m.hlo"
    file.write_text(
        "HloModule m\n" + TEXT.format(integer=MASKS["lengths"][0], mask=MASKS["lengths"][1])
    )
    run = runner(capsys)
    out = run(f"validate {file} --no-xla")[1]
    assert out.endswith(" 0 skipped, 0 wrong, 1 tight\n")
    tight = [line.split(": ")[3] for line in out.splitlines() if line.endswith(", tight")]
    assert tight == ["f"]
    (single,) = valid_records(run, "validate", f"validate {file} -i fused/r")
    assert single["tight"] is None
    (record,) = valid_records(run, "validate", f"validate {file} -i f")
    keys = ("output", "operand", "operand_name", "path", "tight", "shown", "claimed", "sample")
    assert record["tight"] == [
        dict(zip(keys, (0, 0, "x", [], True, 28, 28, False), strict=True)),
        dict(zip(keys, (0, 1, "n", [], True, 28, 28, False), strict=True)),
    ]


def test_a_mask_below_a_window_is_read_inside_of_the_array_alone() -> None:
    """Over padding, the mask of an element has no index; no point of the map is there."""
    root = hlo.parse("""
    add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }
    fused { x = f32[6] parameter(0)  p = pred[6] parameter(1)
      z = f32[] constant(0)  zs = f32[6] broadcast(z), dimensions={}
      s = f32[6] select(p, x, zs)
      ROOT r = f32[6] reduce-window(s, z), window={size=3 pad=1_1}, to_apply=add }
    ENTRY e { x = f32[6] parameter(0)  p = pred[6] parameter(1)
      ROOT f = f32[6] fusion(x, p), kind=kLoop, calls=fused }""").entry.root
    report = validate_instruction(root, 0, 4096)
    assert report.status == "ok"
    assert report.is_tight

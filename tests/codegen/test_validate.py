"""``hlo-indexing validate``: what is right, what is skipped and why, and what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pytest

import hlo
from hlo.ops.op import Shape
from indexing import Constraint, IndexingMap, cli
from indexing.codegen.differences import first_difference
from indexing.codegen.validation import validated
from indexing.codegen.whole_modules import MAX_MOVES, against_xla, distance, movements
from indexing.execution import random_inputs, xla
from indexing.execution import run as execute
from indexing.ops.reduce import Reduce
from indexing.ops.transpose import Transpose
from tests.ops.samples import Array

Run: TypeAlias = Callable[..., tuple[int, list[str], str]]

TEXT = """
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }
fused { x = f32[4,3] parameter(0)  ROOT y = f32[3,4] transpose(x), dimensions={1,0} }
ENTRY main {
  p = f32[4,3] parameter(0)
  zero = f32[] constant(0)
  f = f32[3,4] fusion(p), kind=kLoop, calls=fused
  s = f32[3,4] sort(f), dimensions={1}, to_apply=less
  ROOT r = f32[3] reduce(s, zero), dimensions={1}, to_apply=add
}
"""
LESS = "less { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = pred[] compare(a, b), direction=LT }\n"  # noqa: E501


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs the command in a folder with ``m.hlo``: status, lines, and what it complains about."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.hlo").write_text(LESS + TEXT)

    def run(*arguments: str) -> tuple[int, list[str], str]:
        status = cli.run(["validate", *arguments])
        captured = capsys.readouterr()
        return status, captured.out.splitlines(), captured.err

    return run


@pytest.fixture
def _forget_maps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("indexing.ops.base._MAPS", {})


def test_every_instruction_and_fusion_is_checked(run: Run) -> None:
    status, lines, complaints = run("m.hlo", "--no-xla")
    assert (status, complaints) == (0, "")
    assert lines == [
        "ok: m.hlo: less: c: compare: numpy, loops, poke",
        "ok: m.hlo: add: s: add: numpy, loops, poke",
        "ok: m.hlo: fused: y: transpose: numpy, loops, poke",
        "ok: m.hlo: main: f: fusion: numpy, loops, poke",
        "ok: m.hlo: main: s: sort: poke: nest skipped: no loop nest for sort `s`: "
        "the elements that it reads depend on their values",
        "ok: m.hlo: main: r: reduce: numpy, loops, poke",
        "m.hlo: 6 ok, 0 skipped, 0 wrong",
    ]


def test_what_is_too_large_is_skipped_and_said(run: Run) -> None:
    status, lines, _ = run("m.hlo", "--no-xla", "--most", "11", "-i", "f", "-i", "less/c")
    assert status == 0
    assert lines == [
        "ok: m.hlo: less: c: compare: numpy, loops, poke",
        "skipped: m.hlo: main: f: fusion: nothing: all skipped: an array has 12 elements, "
        "more than 11",
        "m.hlo: 1 ok, 1 skipped, 0 wrong",
    ]


def test_what_has_no_kernel_is_skipped_and_said(run: Run, tmp_path: Path) -> None:
    (tmp_path / "w.hlo").write_text("""
    going { p = (s32[]) parameter(0) i = s32[] get-tuple-element(p), index=0
      n = s32[] constant(3) ROOT c = pred[] compare(i, n), direction=LT }
    next { p = (s32[]) parameter(0) i = s32[] get-tuple-element(p), index=0
      n = s32[] constant(1) j = s32[] add(i, n) ROOT t = (s32[]) tuple(j) }
    ENTRY e { p = (s32[]) parameter(0)
      ROOT w = (s32[]) while(p), condition=going, body=next }""")
    assert run("w.hlo", "--no-xla") == (
        0,
        [
            "ok: w.hlo: going: c: compare: numpy, loops, poke",
            "ok: w.hlo: next: j: add: numpy, loops, poke",
            "skipped: w.hlo: e: w: while: nothing: all skipped: while has no kernel; what it "
            "calls is checked where it stands",
            "w.hlo: 2 ok, 1 skipped, 0 wrong",
        ],
        "",
    )


def test_a_name_that_nothing_has_is_an_error(run: Run) -> None:
    status, lines, complaints = run("m.hlo", "-i", "nobody")
    assert status == 1
    assert lines == ["m.hlo: 0 ok, 0 skipped, 0 wrong"]
    assert complaints == "error[name]: m.hlo: no instruction is called `nobody`\n"


def test_an_unsound_module_is_reported_and_not_validated(run: Run, tmp_path: Path) -> None:
    (tmp_path / "u.hlo").write_text("ENTRY e { p = s32[5] parameter(0) ROOT n = s32[6] negate(p) }")
    status, lines, complaints = run("u.hlo", "m.hlo", "--no-xla", "-i", "y")
    assert status == 1
    assert lines[-1] == "m.hlo: 1 ok, 0 skipped, 0 wrong"
    assert "u.hlo" not in "".join(lines)
    assert "error[shape]: `n` is declared s32[6], but its negate is s32[5]" in complaints


def test_sizes_that_change_with_a_poke_are_no_mistake(run: Run, tmp_path: Path) -> None:
    (tmp_path / "d.hlo").write_text("""ENTRY e { p = s32[6] parameter(0) n = s32[] parameter(1)
      ROOT d = s32[<=6] dynamic-reshape(p, n) }""")
    status, lines, complaints = run("d.hlo", "--no-xla")
    assert (status, complaints) == (0, "")
    assert lines[-1] == "d.hlo: 1 ok, 0 skipped, 0 wrong"


@pytest.mark.usefixtures("_forget_maps")
def test_a_wrong_map_is_found_with_the_place_and_what_each_side_reads(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(self: Transpose, out: Shape, operand: Shape) -> IndexingMap:
        return IndexingMap.over(out, lambda i: [i[1], (i[0] + 1) % 3])

    monkeypatch.setattr(Transpose, "output_to_input", wrong)
    status, lines, _ = run("m.hlo", "--no-xla", "-i", "y")
    assert status == 1
    assert lines[0].startswith("wrong: m.hlo: fused: y: transpose: numpy: [0, 0]: the maps give ")
    assert "wrong: m.hlo: fused: y: transpose: numpy:   the maps read x at [0, 1]" in lines
    assert "wrong: m.hlo: fused: y: transpose: numpy:   the kernel reads x at [0, 0]" in lines
    assert any(line.startswith("wrong: m.hlo: fused: y: transpose: loops: ") for line in lines)
    assert any(line.startswith("wrong: m.hlo: fused: y: transpose: poke: ") for line in lines)
    assert lines[-1] == "m.hlo: 0 ok, 0 skipped, 1 wrong"


@pytest.mark.usefixtures("_forget_maps")
def test_the_smallest_index_that_fails_is_named(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(self: Transpose, out: Shape, operand: Shape) -> IndexingMap:
        """Right but for element [1, 3] and those after it, which read the row before."""
        return IndexingMap.over(out, lambda i: [i[1] - (i[0] * 4 + i[1]) // 7, i[0]])

    monkeypatch.setattr(Transpose, "output_to_input", wrong)
    status, lines, _ = run("m.hlo", "--no-xla", "-i", "y")
    assert status == 1
    for check in ("numpy", "loops"):
        place = f"wrong: m.hlo: fused: y: transpose: {check}: "
        assert any(line.startswith(f"{place}[1, 3]: the maps give ") for line in lines)
        assert f"{place}  the maps read x at [2, 1]" in lines
        assert f"{place}  the kernel reads x at [3, 1]" in lines


def test_what_is_too_much_to_list_is_not_called_right(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("indexing.codegen.validation.MAX_LISTED", 3)
    status, lines, _ = run("m.hlo", "--no-xla", "-i", "r")
    assert status == 0
    # of the four elements that a sum reads; its start is one element, and listed
    assert "poke skipped: what the maps read of s is not listed here, for " in lines[0]


@pytest.mark.usefixtures("_forget_maps")
def test_a_fold_that_misses_an_element_is_found(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    right = Reduce.output_to_input

    def wrong(self: Reduce, out: Shape, *operands: Shape) -> list[IndexingMap]:
        values, init = right(self, out, *operands)
        s = values.ranges[0]
        but_the_last = Constraint(s.as_expr(), 0, s.upper - 1)
        return [values.with_constraints([but_the_last]), init]

    monkeypatch.setattr(Reduce, "output_to_input", wrong)
    status, lines, _ = run("m.hlo", "--no-xla", "-i", "r")
    assert status == 1
    assert any("the maps read s at [0, 0] [0, 1] [0, 2]" in line for line in lines)
    assert any("the kernel reads s at [0, 0] [0, 1] [0, 2] [0, 3]" in line for line in lines)


def test_a_wrong_kernel_is_found_too(monkeypatch: pytest.MonkeyPatch) -> None:
    module = hlo.parse(
        "ENTRY e { p = f32[5] parameter(0) ROOT n = f32[5] reverse(p), dimensions={0} }"
    )
    root = module.entry.root
    assert validated(root, 0, 100).status == "ok"
    monkeypatch.setattr(type(root.op), "kernel", lambda self, operand: operand)
    report = validated(root, 0, 100)
    assert report.status == "wrong"
    assert any("the kernel reads p at [0]" in d for f in report.findings for d in f.details)


def test_xla_is_asked_where_it_is_installed(run: Run) -> None:
    status, lines, _ = run("m.hlo")
    assert status == 0
    if xla.is_available():
        assert "ok: m.hlo: main: r: reduce: kernels = xla" in lines[-2]
    else:
        assert "xla skipped: jax is not installed" in lines[-2]


CHAOS = """ENTRY e { p = f32[9] parameter(0) c = f32[] constant(1e9)
  f = f32[9] broadcast(c), dimensions={} m = f32[9] multiply(p, f) s = f32[9] sine(m)
  n = f32[9] negate(p) ROOT t = (f32[9], f32[9]) tuple(s, n) }"""


def test_results_that_hang_on_roundings_are_told_from_those_that_do_not() -> None:
    module = hlo.parse(CHAOS)
    inputs = random_inputs(module.entry, 0)
    chaotic, steady = movements(module, inputs, execute(module, inputs), 0)
    assert chaotic > 0.1
    assert 0 < steady < 1e-6


@pytest.mark.parametrize(
    ("output", "index", "status"),
    [(0, 4, "skipped"), (1, 4, "wrong")],  # nobody knows the sine; the negation is known
)
def test_chaos_in_one_result_hides_no_mistake_in_another(
    output: int, index: int, status: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def other(module: hlo.Module, inputs: list[Array]) -> list[Array]:
        results = list(execute(module, inputs))
        results[output][index] += np.float32(0.5)
        return results

    monkeypatch.setattr(xla, "is_available", lambda: True)
    monkeypatch.setattr(xla, "run", other)
    report = against_xla(hlo.parse(CHAOS), 0, 100)
    found = {(f.status, f.details) for f in report.findings if f.status != "ok"}
    assert {said for said, _ in found} == {status}
    text = str(found)
    assert f"output {output} changes as much" in text or f"output {output} at [{index}]" in text


@pytest.mark.parametrize(
    ("here", "there", "status"),
    [
        (np.nan, np.nan, "ok"),
        (np.nan, 1.0, "wrong"),
        (1.0, np.nan, "wrong"),
        (np.inf, np.inf, "ok"),
        (np.inf, -np.inf, "wrong"),
        (3e38, np.inf, "wrong"),
    ],
)
def test_what_is_not_a_number_has_to_be_so_on_both_sides(
    here: float, there: float, status: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f"""ENTRY e {{ p = f32[3] parameter(0) c = f32[3] constant({{0, {here}, 0}})
      ROOT r = f32[3] add(p, c) }}"""

    def other(module: hlo.Module, inputs: list[Array]) -> list[Array]:
        return [inputs[0] + f32([0, there, 0])]

    monkeypatch.setattr(xla, "is_available", lambda: True)
    monkeypatch.setattr(xla, "run", other)
    assert against_xla(hlo.parse(text), 0, 100).status == status


def test_programs_for_a_mesh_are_not_given_to_xla(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would end the process."""

    def never(module: hlo.Module, inputs: list[Array]) -> list[Array]:
        raise AssertionError("XLA is asked")

    text = """ENTRY e { p = f32[3] parameter(0)
      ROOT r = f32[3] custom-call(p), custom_call_target="xla.sdy.FuncResultSharding" }"""
    monkeypatch.setattr(xla, "is_available", lambda: True)
    monkeypatch.setattr(xla, "run", never)
    (finding,) = against_xla(hlo.parse(text), 0, 100).findings
    assert finding.status == "skipped"
    assert finding.details == ("`r` is for the devices of a mesh: xla.sdy.FuncResultSharding",)


def test_distance_counts_in_the_largest_element() -> None:
    assert distance(f32([8, 1]), f32([8, 3])) == 0.25
    assert MAX_MOVES * distance(f32([0]), f32([0])) == 0


def f32(values: object) -> Array:
    return np.asarray(values, np.float32)


def integers(values: object, kind: type = np.int8) -> Array:
    return np.asarray(values, kind)


@pytest.mark.parametrize(
    ("found", "wanted", "place"),
    [
        (f32([[1, 2], [3, 4]]), f32([[1, 2], [3, 4]]), None),
        (f32([[1, 2], [3, 4]]), f32([[1, 2], [5, 6]]), (1, 0)),
        (f32([1, 1 + 1e-6]), f32([1, 1]), None),  # a few roundings
        (f32([1, 1 + 1e-3]), f32([1, 1]), (1,)),
        (f32([1e5, 1, 3]), f32([1e5, 1, 2]), (2,)),  # small beside large ones
        (f32([np.nan, np.inf]), f32([np.nan, np.inf]), None),
        (f32([np.nan, -np.inf]), f32([np.nan, np.inf]), (1,)),
        (f32([0, np.nan]), f32([0, 1]), (1,)),
        (integers([1, 2]), integers([1, 3]), (1,)),
        (integers([1, 2]), integers([1, 2], np.int16), (0,)),  # another type
        (f32(2), f32(3), ()),
    ],
)
def test_the_smallest_index_that_differs(
    found: Array, wanted: Array, place: tuple[int, ...] | None
) -> None:
    assert first_difference(np.asarray(found), np.asarray(wanted)) == place

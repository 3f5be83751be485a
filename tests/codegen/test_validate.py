"""``hlo-indexing validate``: passed, skipped and failed checks."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pytest

import hlo
from hlo.ops.op import Shape
from indexing import Constraint, IndexingMap, cli
from indexing.codegen.differences import first_difference
from indexing.codegen.validation import validate_instruction
from indexing.codegen.whole_modules import (
    MAX_PERTURBATION_RATIO,
    against_xla,
    distance,
    perturbation_effects,
)
from indexing.execution import random_inputs, xla
from indexing.execution import run as execute
from indexing.ops.reduce import Reduce
from indexing.ops.samples import instruction_of
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
    """Run the command in a folder with ``m.hlo``; return status, output lines, and stderr."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.hlo").write_text(LESS + TEXT)

    def run(*arguments: str) -> tuple[int, list[str], str]:
        status = cli.run(["validate", *arguments])
        captured = capsys.readouterr()
        return status, captured.out.splitlines(), captured.err

    return run


def test_every_instruction_and_fusion_is_checked(run: Run) -> None:
    status, lines, errors = run("m.hlo", "--no-xla")
    assert (status, errors) == (0, "")
    assert lines == [
        "ok: m.hlo: less: c: compare: numpy, loops, poke",
        "ok: m.hlo: add: s: add: numpy, loops, poke",
        "ok: m.hlo: fused: y: transpose: numpy, loops, poke",
        "ok: m.hlo: main: f: fusion: numpy, loops, poke, tight",
        "ok: m.hlo: main: s: sort: poke: nest skipped: no loop nest for sort `s`: "
        "reads depend on element values",
        "ok: m.hlo: main: r: reduce: numpy, loops, poke",
        "m.hlo: 6 ok, 0 skipped, 0 wrong, 1 tight",
    ]


def test_instructions_with_large_arrays_are_skipped_with_the_reason(run: Run) -> None:
    status, lines, errors = run(
        "m.hlo", "--no-xla", "--max-elements", "11", "-i", "f", "-i", "less/c"
    )
    assert status == 0
    assert lines == [
        "ok: m.hlo: less: c: compare: numpy, loops, poke",
        "skipped: m.hlo: main: f: fusion: no check: all skipped: an array has 12 elements, "
        "more than 11",
        "m.hlo: 1 ok, 1 skipped, 0 wrong",
    ]
    assert errors == ""


def test_instructions_without_a_kernel_are_skipped_with_the_reason(
    run: Run, tmp_path: Path
) -> None:
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
            "skipped: w.hlo: e: w: while: no check: all skipped: while has no kernel; "
            "instructions of called computations are checked separately",
            "w.hlo: 2 ok, 1 skipped, 0 wrong",
        ],
        "",
    )


def test_instructions_with_unbounded_dimensions_are_skipped_with_the_reason(
    run: Run, tmp_path: Path
) -> None:
    (tmp_path / "d.hlo").write_text(
        "ENTRY e { k = f32[?,4] parameter(0)  ROOT n = f32[?,4] negate(k) }"
    )
    assert run("d.hlo", "-i", "n") == (
        0,
        [
            "skipped: d.hlo: e: n: negate: no check: all skipped: k is f32[?,4]: "
            "execution needs bounded sizes",
            "d.hlo: 0 ok, 1 skipped, 0 wrong",
        ],
        "",
    )


@pytest.mark.parametrize(("width", "is_table"), [(120, True), (100, False)])
def test_names_are_whole_in_the_table_and_on_narrow_terminals(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, width: int, is_table: bool
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("COLUMNS", str(width))
    name = "broadcast_select_dynamic-update-slice_fusion.17"
    text = f"ENTRY e {{ p = f32[2] parameter(0) ROOT {name} = f32[2] negate(p) }}"
    (tmp_path / "n.hlo").write_text(text)
    status, lines, _ = run("n.hlo", "--no-xla")
    assert status == 0
    assert any("status" in line for line in lines) == is_table
    assert any(name in line for line in lines)


def test_a_name_without_an_instruction_is_an_error(run: Run) -> None:
    status, lines, errors = run("m.hlo", "-i", "nobody")
    assert status == 1
    assert lines == ["m.hlo: 0 ok, 0 skipped, 0 wrong"]
    assert errors.splitlines() == [
        "error[name]: m.hlo: no instruction named `nobody`",
        "  = help: `hlo-indexing ls m.hlo` lists the names",
    ]


def test_a_name_must_occur_in_one_of_several_modules(run: Run, tmp_path: Path) -> None:
    other = "ENTRY e { p = s32[5] parameter(0) ROOT n = s32[5] negate(p) }"
    (tmp_path / "two.hlo").write_text(f"{other}\n// -----\n{LESS}{TEXT}")
    status, _, errors = run("two.hlo", "--no-xla", "-i", "y")
    assert (status, errors) == (0, "")


def test_an_invalid_module_is_reported_and_not_validated(run: Run, tmp_path: Path) -> None:
    (tmp_path / "u.hlo").write_text("ENTRY e { p = s32[5] parameter(0) ROOT n = s32[6] negate(p) }")
    status, lines, errors = run("u.hlo", "m.hlo", "--no-xla", "-i", "y")
    assert status == 1
    assert lines[-1] == "m.hlo: 1 ok, 0 skipped, 0 wrong"
    assert "u.hlo" not in "".join(lines)
    assert "error[shape]: `n` is declared s32[6], but its inferred shape is s32[5]" in errors


def test_a_dynamic_size_that_changes_with_a_poke_is_not_an_error(run: Run, tmp_path: Path) -> None:
    (tmp_path / "d.hlo").write_text("""ENTRY e { p = s32[6] parameter(0) n = s32[] parameter(1)
      ROOT d = s32[<=6] dynamic-reshape(p, n) }""")
    status, lines, errors = run("d.hlo", "--no-xla")
    assert (status, errors) == (0, "")
    assert lines[-1] == "d.hlo: 1 ok, 0 skipped, 0 wrong"


@pytest.mark.usefixtures("forget_maps")
def test_a_wrong_map_is_reported_with_the_element_and_the_reads_of_both_sides(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(self: Transpose, out: Shape, operand: Shape) -> IndexingMap:
        return IndexingMap.over(out, lambda i: [i[1], (i[0] + 1) % 3])

    monkeypatch.setattr(Transpose, "output_to_input", wrong)
    status, lines, _ = run("m.hlo", "--no-xla", "-i", "y")
    assert status == 1
    assert lines[0].startswith("wrong: m.hlo: fused: y: transpose: numpy: [0, 0]: ")
    assert " by the maps, " in lines[0]
    assert lines[0].endswith(" by the kernel")
    assert "wrong: m.hlo: fused: y: transpose: numpy:   the maps read x at [0, 1]" in lines
    assert "wrong: m.hlo: fused: y: transpose: numpy:   the kernel reads x at [0, 0]" in lines
    assert any(line.startswith("wrong: m.hlo: fused: y: transpose: loops: ") for line in lines)
    assert any(line.startswith("wrong: m.hlo: fused: y: transpose: poke: ") for line in lines)
    assert lines[-1] == "m.hlo: 0 ok, 0 skipped, 1 wrong"


@pytest.mark.usefixtures("forget_maps")
def test_the_first_element_that_differs_is_reported(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(self: Transpose, out: Shape, operand: Shape) -> IndexingMap:
        """Wrong from element [1, 3] on, where elements read the next row, or the first."""
        return IndexingMap.over(out, lambda i: [(i[1] + (i[0] * 4 + i[1]) // 7) % 4, i[0]])

    monkeypatch.setattr(Transpose, "output_to_input", wrong)
    status, lines, _ = run("m.hlo", "--no-xla", "-i", "y")
    assert status == 1
    for check in ("numpy", "loops"):
        place = f"wrong: m.hlo: fused: y: transpose: {check}: "
        assert any(line.startswith(f"{place}[1, 3]: ") for line in lines)
        assert f"{place}  the maps read x at [0, 1]" in lines
        assert f"{place}  the kernel reads x at [3, 1]" in lines


def test_a_poke_with_too_many_reads_to_enumerate_is_skipped(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("indexing.codegen.images.MAX_LISTED", 3)
    status, lines, _ = run("m.hlo", "--no-xla", "-i", "r")
    assert status == 0
    # a sum reads four elements; its initial value is one element, which is enumerated
    assert " poke (partly: cannot enumerate the elements of s that the maps read, for " in lines[0]


@pytest.mark.usefixtures("forget_maps")
def test_a_reduction_map_that_omits_an_element_is_wrong(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
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


def test_a_wrong_kernel_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    module = hlo.parse(
        "ENTRY e { p = f32[5] parameter(0) ROOT n = f32[5] reverse(p), dimensions={0} }"
    )
    root = module.entry.root
    assert validate_instruction(root, 0, 100).status == "ok"
    monkeypatch.setattr(type(root.op), "kernel", lambda self, operand: operand)
    report = validate_instruction(root, 0, 100)
    assert report.status == "wrong"
    assert any("the kernel reads p at [0]" in d for f in report.findings for d in f.details)


def test_the_module_is_compared_with_xla_if_jax_is_installed(run: Run) -> None:
    status, lines, _ = run("m.hlo")
    assert status == 0
    if xla.is_available():
        assert "ok: m.hlo: main: r: reduce: kernels = xla" in lines[-2]
    else:
        assert "xla skipped: jax is not installed" in lines[-2]


CHAOS = """ENTRY e { p = f32[9] parameter(0) c = f32[] constant(1e9)
  f = f32[9] broadcast(c), dimensions={} m = f32[9] multiply(p, f) s = f32[9] sine(m)
  n = f32[9] negate(p) ROOT t = (f32[9], f32[9]) tuple(s, n) }"""


def test_ill_conditioned_results_are_distinguished_from_others() -> None:
    module = hlo.parse(CHAOS)
    inputs = random_inputs(module.entry, 0)
    ill_conditioned, stable = perturbation_effects(module, inputs, execute(module, inputs), 0)
    assert ill_conditioned > 0.1
    assert 0 < stable < 1e-6


@pytest.mark.parametrize(
    ("output", "index", "status"),
    [(0, 4, "skipped"), (1, 4, "wrong")],  # the sine is ill-conditioned, the negation is not
)
def test_an_ill_conditioned_result_does_not_hide_an_error_in_another(
    output: int, index: int, status: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def other(module: hlo.Module, inputs: Sequence[Array]) -> list[Array]:
        results = list(execute(module, inputs))
        results[output][index] += np.float32(0.5)
        return results

    monkeypatch.setattr(xla, "is_available", lambda: True)
    report = against_xla(hlo.parse(CHAOS), 0, 100, other)
    failures = {(f.status, f.details) for f in report.findings if f.status != "ok"}
    assert {kind for kind, _ in failures} == {status}
    text = str(failures)
    reason = f"output {output} is ill-conditioned"
    assert reason in text or f"output {output} at [{index}]" in text


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
def test_nan_and_infinities_must_match(
    here: float, there: float, status: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f"""ENTRY e {{ p = f32[3] parameter(0) c = f32[3] constant({{0, {here}, 0}})
      ROOT r = f32[3] add(p, c) }}"""

    def other(module: hlo.Module, inputs: Sequence[Array]) -> list[Array]:
        return [inputs[0] + f32([0, there, 0])]

    monkeypatch.setattr(xla, "is_available", lambda: True)
    assert against_xla(hlo.parse(text), 0, 100, other).status == status


def test_programs_for_a_mesh_are_not_passed_to_xla(monkeypatch: pytest.MonkeyPatch) -> None:
    """XLA would abort the process."""

    def never(module: hlo.Module, inputs: Sequence[Array]) -> list[Array]:
        raise AssertionError("XLA is called")

    text = """ENTRY e { p = f32[3] parameter(0)
      ROOT r = f32[3] custom-call(p), custom_call_target="xla.sdy.FuncResultSharding" }"""
    monkeypatch.setattr(xla, "is_available", lambda: True)
    (finding,) = against_xla(hlo.parse(text), 0, 100, never).findings
    assert finding.status == "skipped"
    assert finding.details == ("`r` needs a device mesh: xla.sdy.FuncResultSharding",)


def test_distance_is_relative_to_the_largest_element() -> None:
    assert distance(f32([8, 1]), f32([8, 3])) == 0.25
    assert MAX_PERTURBATION_RATIO * distance(f32([0]), f32([0])) == 0


def f32(values: object) -> Array:
    return np.asarray(values, np.float32)


def integers(values: object, kind: type = np.int8) -> Array:
    return np.asarray(values, kind)


@pytest.mark.parametrize(
    ("actual", "expected", "index"),
    [
        (f32([[1, 2], [3, 4]]), f32([[1, 2], [3, 4]]), None),
        (f32([[1, 2], [3, 4]]), f32([[1, 2], [5, 6]]), (1, 0)),
        (f32([1, 1 + 1e-6]), f32([1, 1]), None),  # within rounding
        (f32([1, 1 + 1e-3]), f32([1, 1]), (1,)),
        (f32([1e5, 1, 3]), f32([1e5, 1, 2]), (2,)),  # small next to a large element
        (f32([np.nan, np.inf]), f32([np.nan, np.inf]), None),
        (f32([np.nan, -np.inf]), f32([np.nan, np.inf]), (1,)),
        (f32([0, np.nan]), f32([0, 1]), (1,)),
        (integers([1, 2]), integers([1, 3]), (1,)),
        (integers([1, 2]), integers([1, 2], np.int16), (0,)),  # another type
        (f32(2), f32(3), ()),
    ],
)
def test_first_difference_returns_the_first_index_that_differs(
    actual: Array, expected: Array, index: tuple[int, ...] | None
) -> None:
    assert first_difference(np.asarray(actual), np.asarray(expected)) == index


# fmt: off
SIZES = [
    "f32[2,<=3] dynamic-reshape(f32[6] p, s32[] n, s32[] m)",
    "f32[<=6,2] dynamic-reshape(f32[<=4,3] p, s32[] n, s32[] m)",
    "f32[<=0] dynamic-reshape(f32[<=0,3] p, u8[] n)",
    "f32[3,<=5] set-dimension-size(f32[3,5] p, s32[] n), dimensions={1}",
    "f32[<=2,0] set-dimension-size(f32[2,0] p, s64[] n), dimensions={0}",
]
# fmt: on


@pytest.mark.parametrize("text", SIZES)
def test_random_sizes_are_sizes_that_the_op_accepts(text: str) -> None:
    instruction = instruction_of(text)
    for seed in range(20):
        report = validate_instruction(instruction, seed, max_elements=100)
        assert report.status == "ok", report.findings


@pytest.mark.parametrize("seed", range(6))
def test_sizes_that_do_not_fit_are_no_difference_from_xla(
    run: Run, tmp_path: Path, seed: int
) -> None:
    (tmp_path / "d.hlo").write_text("""ENTRY e { p = f32[6] parameter(0)
      n = s32[] parameter(1)  m = s32[] parameter(2)
      ROOT d = f32[2,<=3] dynamic-reshape(p, n, m) }""")
    status, lines, errors = run("d.hlo", "--seed", str(seed))
    assert (status, errors) == (0, "")
    assert lines[-1].endswith("0 wrong")


LOOPS = Path(__file__).parents[1] / "dataflow" / "data" / "loops" / "jax"


@pytest.mark.slow
def test_a_call_of_a_loop_is_validated_with_the_counters_that_the_program_passes() -> None:
    """Its maps hold for these: with other first values, other elements are read."""
    module = hlo.parse((LOOPS / "largest_three.optimized.hlo").read_text())
    (call,) = [i for i in module.entry if i.opcode == "call"]
    report = validate_instruction(call, 0, 1 << 16)
    assert report.status == "ok", report
    assert "poke" in report.checks


def test_a_call_of_a_loop_with_unknown_integers_is_skipped() -> None:
    module = hlo.parse((LOOPS / "edit_distance.optimized.hlo").read_text())
    inner = [i for i in module.instructions if i.opcode == "call" and not i.computation.is_entry]
    (report,) = [validate_instruction(call, 0, 1 << 16) for call in inner]
    assert report.status == "skipped"
    assert "the integers that the program passes" in report.findings[0].details[0]


@pytest.mark.parametrize("seed", range(8))
def test_an_instruction_that_is_two_operands_has_one_value(seed: int) -> None:
    root = hlo.parse(
        "ENTRY e { p = f32[7,7] parameter(0)  i = s32[] parameter(1) "
        "ROOT s = f32[3,3] dynamic-slice(p, i, i), dynamic_slice_sizes={3,3} }"
    ).entry.root
    report = validate_instruction(root, seed, 1 << 16)
    assert report.status == "ok", report
    assert report.checks == "numpy, loops, poke"

"""The converse of the perturbation test: elements that exact maps read influence the result."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hlo
from hlo.ops.op import OPS
from indexing import IndexingMap, cli
from indexing.codegen.findings import Report
from indexing.codegen.influence import Influence
from indexing.codegen.validation import is_checked, validate_instruction
from indexing.ops.base import MappedOp
from indexing.ops.samples import instruction_of
from indexing.ops.transpose import Transpose

NO_EFFECT = "no change there has an effect"

UNCHECKED = {"dynamic-reshape"}
"""Ops that random operands do not suit: sizes must be those of the result."""

LEFT = """
f { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT n = f32[] negate(a) }
ENTRY e { p = f32[5] parameter(0)  q = f32[5] parameter(1)
  ROOT m = f32[5] map(p, q), dimensions={0}, to_apply=f }"""

EACH = """
f { a = f32[] parameter(0)  b = s32[] parameter(1)  x = f32[] parameter(2)  y = s32[] parameter(3)
  s = f32[] add(a, x)  t = s32[] multiply(b, y)  ROOT r = (f32[], s32[]) tuple(s, t) }
ENTRY e { p = f32[4,3] parameter(0)  q = s32[4,3] parameter(1)
  y = f32[] parameter(2)  z = s32[] parameter(3)  i = s32[2,1] parameter(4)
  u = f32[2,3] parameter(5)  v = s32[2,3] parameter(6)
  ROOT m = ROOT_TEXT, to_apply=f }"""

PROGRAMS = [
    LEFT,
    EACH.replace("ROOT_TEXT", "(f32[4], s32[4]) reduce(p, q, y, z), dimensions={1}"),
    EACH.replace("ROOT_TEXT", "(f32[4,2], s32[4,2]) reduce-window(p, q, y, z), window={size=1x2}"),
    EACH.replace(
        "ROOT_TEXT",
        "(f32[4,3], s32[4,3]) scatter(p, q, i, u, v), update_window_dims={1}, "
        "inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1",
    ),
]


@pytest.mark.parametrize("op", ["xor(x, x)", "subtract(x, x)", "remainder(x, x)"])
def test_an_operand_that_cancels_is_read(op: str) -> None:
    """The map to each operand is exact: an operand is perturbed without the other one."""
    module = hlo.parse(f"ENTRY e {{ x = s16[5] parameter(0)  ROOT r = s16[5] {op} }}")
    report = validate_instruction(module.entry.root, seed=0, max_elements=100)
    assert [f.status for f in report.findings if f.check == "poke"] == ["ok"]


@pytest.fixture
def _every_operand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every op that calls a computation claim to read all of its operands."""
    for op in {type(hlo.parse(text).entry.root.op) for text in PROGRAMS}:
        assert issubclass(op, MappedOp)
        monkeypatch.setattr(op, "needed_operands", lambda *args: None)


def details(report: Report) -> list[str]:
    return [line for f in report.findings for line in f.details if NO_EFFECT in line]


@pytest.mark.parametrize("text", PROGRAMS)
def test_what_a_computation_reads_has_influence(text: str) -> None:
    for seed in range(3):
        report = validate_instruction(hlo.parse(text).entry.root, seed, 4096)
        assert report.status == "ok"
        assert not details(report)


@pytest.mark.usefixtures("_every_operand")
@pytest.mark.parametrize("text", PROGRAMS)
def test_a_read_of_what_a_computation_ignores_is_wrong(text: str) -> None:
    reports = [validate_instruction(hlo.parse(text).entry.root, seed, 4096) for seed in range(3)]
    wrong = [report for report in reports if report.status == "wrong"]
    assert all(map(details, wrong))
    assert len(wrong) == 3 or ("scatter" in text and wrong)  # indices may be out of bounds


@pytest.mark.usefixtures("_every_operand")
def test_the_command_reports_the_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "m.hlo"
    path.write_text(LEFT)
    assert cli.run(["validate", str(path), "--no-xla"]) == 1
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "wrong: " in line]
    element = line.split("[")[1][0]
    claim = f"an exact map claims that output element [{element}] needs q at [{element}]"
    assert f"e: m: map: poke: {claim}, but {NO_EFFECT}" in line


@pytest.mark.usefixtures("forget_maps")
def test_an_additional_exact_map_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    both = Transpose.output_to_input

    def with_first_element(self: Transpose, *args: Any) -> tuple[IndexingMap, ...]:
        true = both(self, *args)
        first = [true.results[0] * 0, true.results[1] * 0]
        return (true, IndexingMap.of(true.dims, first))

    root = instruction_of("f32[4,2,3] transpose(f32[2,3,4] p), dimensions={2,0,1}")
    assert not details(validate_instruction(root, 0, 4096))
    root = instruction_of("f32[9,7] transpose(f32[7,9] p), dimensions={1,0}")
    monkeypatch.setattr(Transpose, "output_to_input", with_first_element)
    monkeypatch.setattr(
        "indexing.codegen.checked_instruction.CheckedInstruction.nests", lambda *args: iter(())
    )
    assert details(validate_instruction(root, 0, 4096))


def test_values_may_hide_an_element_that_a_computation_reads() -> None:
    """A product with zero depends on both factors: this is no fault of the maps."""
    module = hlo.parse("""
f { t = f32[] parameter(0)  v = f32[] parameter(1)  zero = f32[] constant(0)
  c = f32[] constant(-200)  e = f32[] exponential(c)  no = s32[] convert(e)
  i = s32[] convert(v)  n = s32[] multiply(i, no)  x = f32[] convert(n)
  ROOT s = f32[] add(t, x) }
ENTRY e { p = f32[4,3] parameter(0)  y = f32[] parameter(1)
  ROOT m = f32[4] reduce(p, y), dimensions={1}, to_apply=f }""")
    report = validate_instruction(module.entry.root, 0, 4096)
    assert report.status == "ok"
    assert len(details(report)) == 1
    assert [f.status for f in report.findings if NO_EFFECT in str(f.details)] == ["skipped"]


def test_samples_of_ops_have_no_false_alarm_and_few_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[int] = []
    unseen_read = Influence.unseen_read

    def count(self: Influence, *args: Any) -> Any:
        before = self.runs
        unseen = unseen_read(self, *args)
        runs.append(self.runs - before)
        return unseen

    monkeypatch.setattr(Influence, "unseen_read", count)
    monkeypatch.setattr(
        "indexing.codegen.checked_instruction.CheckedInstruction.nests", lambda *args: iter(())
    )
    for op in OPS.values():
        for sample in op.samples if issubclass(op, MappedOp) else ():
            instruction = instruction_of(sample)
            if is_checked(instruction) and instruction.opcode not in UNCHECKED:
                assert not details(validate_instruction(instruction, 0, 4096)), sample
    assert sum(runs) < 6 * len(runs)
    assert max(runs) < 400


@pytest.mark.parametrize("direction", ["GE", "LT"])
@pytest.mark.parametrize("kind", ["f32", "bf16", "s8", "u8", "s2", "u2"])
def test_every_element_that_a_select_and_scatter_compares_is_seen(
    kind: str, direction: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Random values seldom let the changed element take a window from that of the result."""

    def unseen_read(self: Influence, array: Any, output: int, exact: IndexingMap) -> Any:
        for at in np.ndindex(*[d.upper + 1 for d in exact.dims]):
            for j in sorted(self.images(exact, at) or ()):
                pairs.append(j)
                if not self.is_seen(array, output, exact, at, j):
                    return at, j
        return None

    pairs: list[Any] = []
    monkeypatch.setattr(Influence, "unseen_read", unseen_read)
    scalars = f"a = {kind}[] parameter(0)  b = {kind}[] parameter(1)"
    root = hlo.parse(f"""
f {{ {scalars}  ROOT c = pred[] compare(a, b), direction={direction} }}
g {{ {scalars}  ROOT c = {kind}[] add(a, b) }}
ENTRY e {{ p = {kind}[3,2] parameter(0)  q = {kind}[2,1] parameter(1)  z = {kind}[] parameter(2)
  ROOT r = {kind}[3,2] select-and-scatter(p, q, z), window={{size=2x2}}, select=f, scatter=g }}
""").entry.root
    report = validate_instruction(root, 0, 4096)
    assert report.status == "ok"
    assert not details(report)
    assert len(pairs) == (2 * 4 + 2 * 6 + 2 * 4) + (2 + 4 + 2) + 6  # two windows share a row


CHOLESKY = "ENTRY e { p = f32[64,64] parameter(0)  ROOT r = f32[64,64] cholesky(p), lower=true }"
POTRF = """ENTRY e { p = f32[64,64]{0,1} parameter(0)
  ROOT r = (f32[64,64]{0,1}, s32[]) custom-call(p), custom_call_target="cusolver_potrf_ffi",
    operand_layout_constraints={f32[64,64]{0,1}}, backend_config={lower = true} }"""


@pytest.mark.parametrize("text", [CHOLESKY, POTRF])
def test_matrices_that_have_decompositions_are_drawn(text: str) -> None:
    report = validate_instruction(hlo.parse(text).entry.root, 0, 4096)
    assert {f.status for f in report.findings if f.check == "poke"} == {"ok"}


def test_a_read_of_an_element_that_is_always_nan_is_skipped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("indexing.codegen.influence.is_square", lambda array: False)
    report = validate_instruction(hlo.parse(CHOLESKY).entry.root, 0, 4096)
    (skipped,) = [f for f in report.findings if f.status == "skipped" and f.check == "poke"]
    assert "the output element is NaN for all operands that were drawn" in skipped.details[0]

"""Reads of exact maps through fusions that no poke shows, and reads that must be observed."""
# ruff: noqa: E501 - a row of a table is one line

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import hlo
from hlo.modules.module import Instruction
from indexing import cli
from indexing.codegen import observation
from indexing.codegen.findings import Report
from indexing.codegen.influence import Influence
from indexing.codegen.validation import validate_instruction
from tests.dataflow.test_unused_runtime import fuse
from tests.ops.samples import MAPPED, Sample, SampleChecks

CHECKS = SampleChecks()
COMPUTATIONS = """
plus { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }
larger { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] maximum(a, b) }
both { a = pred[] parameter(0)  b = pred[] parameter(1)  ROOT s = pred[] and(a, b) }
less { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = pred[] compare(a, b), direction=LT }
"""
P = "p = f32[8] parameter(0)  q = f32[8] parameter(1)  zero = f32[] constant(0)"
ZEROS = f"{P}  z = f32[8] broadcast(zero), dimensions={{}}"
IOTA = "i = s32[8] iota(), iota_dimension=0"
# roundings of transcendental functions are not evaluated, so maps do not follow their masks
POWERS = "f = f32[8] iota(), iota_dimension=0  i = f32[8] exponential(f)"
NOTHING = "t_ = f32[] constant(-200)  t = f32[8] broadcast(t_), dimensions={}  o = f32[8] exponential(t)  n = s32[8] convert(o)"
INTS = "p = s32[8] parameter(0)  q = s32[8] parameter(1)"


def constant(name: str, value: object, kind: str = "f32", size: int = 8) -> str:
    """Return lines that fill an array with a constant."""
    return (
        f"{name}_ = {kind}[] constant({value})  "
        f"{name} = {kind}[{size}] broadcast({name}_), dimensions={{}}"
    )


# Programs whose exact maps lead to elements that cannot matter, with the number of such elements.
# fmt: off
HIDDEN = {
    "a mask of powers": (f"{ZEROS}  {POWERS}  {constant('n', 50)} "
        "m = pred[8] compare(i, n), direction=LT  ROOT r = f32[8] select(m, p, z)", "p", 4),
    "a mask of one element": (f"{ZEROS}  {POWERS}  {constant('n', 1000)} "
        "m = pred[8] compare(i, n), direction=LT  ROOT r = f32[8] select(m, p, z)", "p", 1),
    "a masked sum": (f"{ZEROS}  {POWERS}  {constant('n', 50)} "
        "m = pred[8] compare(i, n), direction=LT  s = f32[8] select(m, p, z) "
        "ROOT r = f32[] reduce(s, zero), dimensions={0}, to_apply=plus", "p", 4),
    "an integer product with zero": (f"{INTS}  {NOTHING} "
        "m = s32[8] multiply(p, n)  ROOT r = s32[8] add(m, q)", "p", 8),
    "a conjunction with false": (f"{ZEROS}  c = pred[8] compare(p, z), direction=LT  {POWERS} "
        "n = pred[8] compare(i, z), direction=LT  ROOT r = pred[8] and(c, n)", "p", 8),
    "bits that are shifted out": (f"{INTS}  {constant('n', 32, 's32')} "
        "m = s32[8] shift-left(p, n)  ROOT r = s32[8] add(m, q)", "p", 8),
    "a comparison of an unsigned number with 0": (f"p = u32[8] parameter(0)  q = u32[8] parameter(1) "
        f"{constant('n', 0, 'u32')}  ROOT r = pred[8] compare(p, n), direction=GE", "p", 8),
    "a number and its double less twice itself": (f"{INTS}  {constant('n', 2, 's32')} "
        "d = s32[8] add(p, p)  e = s32[8] multiply(p, n)  f = s32[8] subtract(d, e) "
        "ROOT r = s32[8] add(f, q)", "p", 8),
}

# Programs in which every element can matter, though many values hide it.
SHOWN = {
    "a maximum": f"{P}  ROOT r = f32[8] maximum(p, q)",
    "a maximum with a large constant": f"{P}  {constant('n', 12345)}  ROOT r = f32[8] maximum(p, n)",
    "a minimum with a small constant": f"{P}  {constant('n', '-1e20')}  ROOT r = f32[8] minimum(p, n)",
    "clamp": f"{P}  {constant('n', 3)}  {constant('l', 2)}  ROOT r = f32[8] clamp(l, p, n)",
    "clamp by inputs": f"{P}  s = f32[8] add(p, q)  ROOT r = f32[8] clamp(q, p, s)",
    "a mask of inputs": f"{ZEROS}  c = pred[8] compare(q, z), direction=GT  ROOT r = f32[8] select(c, p, z)",
    "an input predicate": f"{ZEROS}  c = pred[8] parameter(2)  ROOT r = f32[8] select(c, p, q)",
    "an equality with a constant": f"{INTS}  {constant('n', 50256, 's32')}  ROOT r = pred[8] compare(p, n), direction=EQ",
    "a large bound": f"{INTS}  {constant('n', 1000000, 's32')}  ROOT r = pred[8] compare(p, n), direction=LT",
    "a one-hot": f"{INTS}  {IOTA}  c = pred[8] compare(i, p), direction=EQ  ROOT r = f32[8] convert(c)",
    "a product": f"{P}  ROOT r = f32[8] multiply(p, q)",
    "a product with zero": f"{ZEROS}  m = f32[8] multiply(p, z)  ROOT r = f32[8] add(m, q)",  # NaN
    "a large addend": f"{P}  {constant('n', '-1e30')}  s = f32[8] add(p, n)  ROOT r = f32[8] exponential(s)",
    "a narrow type": f"{P}  ROOT r = s8[8] convert(p)",
    "a float of 8 bits": f"{P}  ROOT r = f8e4m3fn[8] convert(p)",
    "floor": f"{P}  f = f32[8] floor(p)  ROOT r = s32[8] convert(f)",
    "sign": f"{P}  ROOT r = f32[8] sign(p)",
    "a saturating function": f"{P}  {constant('n', 1000)}  m = f32[8] multiply(p, n)  ROOT r = f32[8] tanh(m)",
    "low bits": f"{INTS}  {constant('n', 1, 's32')}  ROOT r = s32[8] and(p, n)",
    "high bits": f"p = u32[8] parameter(0)  q = u32[8] parameter(1)  {constant('n', 31, 'u32')}  ROOT r = u32[8] shift-right-logical(p, n)",
    "a quotient": f"{INTS}  {constant('n', 100000, 's32')}  ROOT r = s32[8] divide(p, n)",
    "a remainder": f"{INTS}  {constant('n', 2, 's32')}  ROOT r = s32[8] remainder(p, n)",
    "a sum": f"{P}  ROOT r = f32[] reduce(p, zero), dimensions={{0}}, to_apply=plus",
    "a largest element": f"{P}  ROOT r = f32[] reduce(p, zero), dimensions={{0}}, to_apply=larger",
    "a conjunction of all": f"{ZEROS}  c = pred[8] compare(p, q), direction=LT  t = pred[] constant(true)  ROOT r = pred[] reduce(c, t), dimensions={{0}}, to_apply=both",
    "a softmax": f"{P}  m = f32[] reduce(p, zero), dimensions={{0}}, to_apply=larger  b = f32[8] broadcast(m), dimensions={{}} d = f32[8] subtract(p, b)  e = f32[8] exponential(d)  s = f32[] reduce(e, zero), dimensions={{0}}, to_apply=plus  t = f32[8] broadcast(s), dimensions={{}}  ROOT r = f32[8] divide(e, t)",
    "a dot": "p = f32[5,6] parameter(0)  q = f32[6,7] parameter(1)  ROOT r = f32[5,7] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
    "a gather": "p = f32[9,4] parameter(0)  q = s32[3,1] parameter(1)  g = f32[3,4] gather(p, q), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,4}  ROOT r = f32[3,4] negate(g)",
    "a dynamic slice": "p = f32[9] parameter(0)  q = s32[] parameter(1)  s = f32[4] dynamic-slice(p, q), dynamic_slice_sizes={4}  ROOT r = f32[4] negate(s)",
    "an update": "p = f32[9] parameter(0)  q = s32[] parameter(1)  u = f32[4] parameter(2)  s = f32[9] dynamic-update-slice(p, u, q)  ROOT r = f32[9] negate(s)",
    "a scatter": "p = f32[9,4] parameter(0)  q = s32[3,1] parameter(1)  u = f32[3,4] parameter(2)  s = f32[9,4] scatter(p, q, u), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=plus  ROOT r = f32[9,4] negate(s)",
    "a sort": f"{P}  s = f32[8] sort(p), dimensions={{0}}, to_apply=less  ROOT r = f32[8] add(s, q)",
}
# fmt: on


def fusion(body: str) -> Instruction:
    """Return a fusion with this body, whose operands are the parameters of the program."""
    lines = hlo.parse(f"{COMPUTATIONS}\nENTRY f {{ {body} }}")
    parameters = lines.entry.parameters
    outside = [f"{p.name} = {p.shape} parameter({k})" for k, p in enumerate(parameters)]
    names = ", ".join(p.name for p in parameters)
    call = f"ROOT outer = {lines.entry.root.shape} fusion({names}), kind=kLoop, calls=f"
    text = f"{COMPUTATIONS}\nf {{ {body} }}\nENTRY e {{ {'  '.join(outside)}  {call} }}"
    return hlo.parse(text).entry.root


def exact_findings(report: Report) -> Iterator[str]:
    assert report.status == "ok", report.findings
    for finding in report.findings:
        if finding.check == "exact":
            assert finding.status in ("not observed", "skipped")
            yield from finding.details


@pytest.mark.parametrize("name", HIDDEN)
@pytest.mark.parametrize("seed", range(3))
def test_elements_that_cannot_matter_are_not_observed(name: str, seed: int) -> None:
    body, operand, count = HIDDEN[name]
    report = validate_instruction(fusion(body), seed, 4096)
    (text,) = report.not_observed
    element = r"\[\d*\]"
    claim = rf"an exact map claims that output element {element} needs {operand} at {element}, but "
    effect = r"none of (\d[\d,]*) executions with other values shows an effect"
    stated = re.match(claim + effect, text)
    assert stated, text
    assert 0 < int(stated[1].replace(",", "")) < observation.MAX_RUNS
    assert text.endswith(f"; {count} of 8 reads are not observed") or count == 1


@pytest.mark.parametrize("name", SHOWN)
def test_elements_that_may_matter_are_observed(name: str) -> None:
    for seed in range(5):
        assert list(exact_findings(validate_instruction(fusion(SHOWN[name]), seed, 4096))) == []


@CHECKS.of(MAPPED)
def reads_of_a_fused_op_are_observed(sample: Sample) -> None:
    report = validate_instruction(fuse(sample.text), 0, 4096)
    assert report.not_observed == ()


@pytest.mark.parametrize("opcode", MAPPED)
def test_every_read_of_a_fused_sample_is_observed(opcode: str) -> None:
    CHECKS.check(opcode)


def test_only_reads_that_are_not_observed_get_further_pokes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runs: list[int] = []
    result = Influence.result

    def count_call(self: Influence, output: int) -> object:
        runs.append(output)
        return result(self, output)

    monkeypatch.setattr(Influence, "result", count_call)
    validate_instruction(fusion(f"{P}  ROOT r = f32[8] add(p, q)"), 0, 4096)
    assert len(runs) <= 6  # each operand: before, and one or two values of all elements
    runs.clear()
    validate_instruction(fusion(HIDDEN["a mask of powers"][0]), 0, 4096)
    assert len(runs) < 500


def test_a_budget_that_ends_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observation, "MAX_RUNS", 20)
    monkeypatch.setattr("indexing.codegen.fusion_reads.MAX_RUNS", 20)
    report = validate_instruction(fusion(HIDDEN["a mask of powers"][0]), 0, 4096)
    assert report.not_observed == ()
    assert list(exact_findings(report)) == [
        "20 executions ended: 4 of 8 reads of p are not observed"
    ]


MASKED = f"""{COMPUTATIONS}
f {{ {HIDDEN["a mask of powers"][0]} }}
ENTRY e {{ p = f32[8] parameter(0)  q = f32[8] parameter(1)
  ROOT r = f32[8] fusion(p, q), kind=kLoop, calls=f }}"""


@pytest.fixture
def masked(tmp_path: Path) -> str:
    path = tmp_path / "m.hlo"
    path.write_text(MASKED)
    return str(path)


@pytest.mark.parametrize("strict", [False, True])
def test_the_command_lists_what_is_not_observed(
    masked: str, strict: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    status = cli.run(["validate", masked, "--no-xla", "-i", "e/r", *["--strict"] * strict])
    assert status == int(strict)
    line, total = capsys.readouterr().out.splitlines()
    assert line.startswith(
        f"{'not observed' if strict else 'ok'}: {masked}: e: r: fusion: numpy, loops, poke: "
        "not observed: an exact map claims that output element ["
    )
    assert "] needs p at [" in line
    assert total == f"{masked}: 1 ok, 0 skipped, 0 wrong, 1 not observed"


@pytest.mark.parametrize("strict", [False, True])
def test_json_has_what_is_not_observed(
    masked: str, strict: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["validate", masked, "--no-xla", "-i", "e/r", "--format", "json"]
    assert cli.run([*arguments, *["--strict"] * strict]) == int(strict)
    record = json.loads(capsys.readouterr().out)
    assert record["status"] == "ok"
    (check,) = [check for check in record["checks"] if check["check"] == "exact"]
    assert check["status"] == "not observed"
    assert "] needs p at [" in check["details"][0]

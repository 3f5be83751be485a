"""Executions that tell programs apart: edge values, and results that HLO leaves open."""

from __future__ import annotations

import numpy as np
import pytest

import hlo
from hlo.modules.module import Module
from indexing import equivalent
from indexing.equivalence import Differs, Undecided
from indexing.equivalence.evidence import Allowed, far_apart
from indexing.equivalence.runs import MANY_EDGE_SEEDS, MANY_SEEDS, Runs
from tests.growth.work import calls_of

F, Z = "p = f32[4] parameter(0)", "z = f32[] constant(0)  b = f32[4] broadcast(z), dimensions={}"
PQ = f"{F}  q = f32[4] parameter(1)"


def integers(kind: str, number: int) -> str:
    constant = f"c = {kind}[] constant({number})  b = {kind}[4] broadcast(c), dimensions={{}}"
    return f"p = {kind}[4] parameter(0)  {constant}"


# fmt: off
INTEGERS = {
    "a product wraps around before it is divided": (
        integers("s32", 2) + "  m = s32[4] multiply(p, b)  ROOT r = s32[4] divide(m, b)",
        "p = s32[4] parameter(0)  ROOT r = s32[4] copy(p)"),
    "the largest integer has no successor": (
        integers("s32", 1) + "  m = s32[4] add(p, b)  "
        "ROOT r = pred[4] compare(m, p), direction=GT",
        "p = s32[4] parameter(0)  t = pred[] constant(true)  "
        "ROOT r = pred[4] broadcast(t), dimensions={}"),
    "large unsigned integers become negative": (
        "p = u8[4] parameter(0)  s = s8[4] convert(p)  ROOT r = s32[4] convert(s)",
        "p = u8[4] parameter(0)  ROOT r = s32[4] convert(p)"),
    "large integers are no f32": (
        "p = s32[4] parameter(0)  f = f32[4] convert(p)  ROOT r = s32[4] convert(f)",
        "p = s32[4] parameter(0)  ROOT r = s32[4] copy(p)"),
    "an unsigned start becomes negative": (
        f"{F}  i = u8[] parameter(1)  "
        "ROOT r = f32[2] dynamic-slice(p, i), dynamic_slice_sizes={2}",
        f"{F}  i = u8[] parameter(1)  j = s8[] convert(i)  "
        "ROOT r = f32[2] dynamic-slice(p, j), dynamic_slice_sizes={2}"),
}
FLOATS = {
    "NaN is not equal to itself": (
        f"{F}  ROOT r = pred[4] compare(p, p), direction=EQ",
        f"{F}  t = pred[] constant(true)  ROOT r = pred[4] broadcast(t), dimensions={{}}"),
    "NaN is neither less nor greater": (
        f"{PQ}  c = pred[4] compare(p, q), direction=LT  ROOT r = pred[4] not(c)",
        f"{PQ}  ROOT r = pred[4] compare(p, q), direction=GE"),
    "infinity times 0 is NaN": (
        f"{F}  {Z}  ROOT r = f32[4] multiply(p, b)", f"{F}  {Z}  ROOT r = f32[4] copy(b)"),
    "-0 + 0 is 0": (f"{F}  {Z}  ROOT r = f32[4] add(p, b)", f"{F}  ROOT r = f32[4] copy(p)"),
    "exp overflows": (
        f"{F}  e = f32[4] exponential(p)  ROOT r = f32[4] log(e)", f"{F}  ROOT r = f32[4] copy(p)"),
    "a square overflows": (
        f"{F}  s = f32[4] multiply(p, p)  ROOT r = f32[4] sqrt(s)", f"{F}  ROOT r = f32[4] abs(p)"),
    "a sum of exponents overflows later": (
        f"{PQ}  e = f32[4] exponential(p)  f = f32[4] exponential(q)  "
        "ROOT r = f32[4] multiply(e, f)",
        f"{PQ}  s = f32[4] add(p, q)  ROOT r = f32[4] exponential(s)"),
    "products round in another order": (
        f"{F}  c = f32[] constant(0.1)  b = f32[4] broadcast(c), dimensions={{}}  "
        "m = f32[4] multiply(p, b)  ROOT r = f32[4] multiply(m, b)",
        f"{F}  c = f32[] constant(0.01)  b = f32[4] broadcast(c), dimensions={{}}  "
        "ROOT r = f32[4] multiply(p, b)"),
    "a quotient rounds once": (
        f"{PQ}  s = f32[4] parameter(2)  d = f32[4] divide(p, q)  ROOT r = f32[4] divide(d, s)",
        f"{PQ}  s = f32[4] parameter(2)  m = f32[4] multiply(q, s)  ROOT r = f32[4] divide(p, m)"),
}
OPEN = {
    "an integer divided by zero": (
        "p = s32[4] parameter(0)  ROOT r = s32[4] divide(p, p)",
        "p = s32[4] parameter(0)  c = s32[] constant(1)  "
        "ROOT r = s32[4] broadcast(c), dimensions={}"),
    "a quotient that overflows": (
        integers("s8", -1) + "  ROOT r = s8[4] divide(p, b)",
        integers("s8", -1) + "  m = s8[4] multiply(p, b)  w = s16[4] convert(p)  "
        "ROOT r = s8[4] negate(p)"),
    "a float beyond the integers": (
        f"{F}  i = s8[4] convert(p)  ROOT r = s32[4] convert(i)",
        f"{F}  i = s16[4] convert(p)  ROOT r = s32[4] convert(i)"),
}
# fmt: on


def modules(texts: tuple[str, str]) -> tuple[Module, Module]:
    before, after = (hlo.parse(f"ENTRY e {{ {text} }}") for text in texts)
    return before, after


@pytest.mark.parametrize("name", INTEGERS)
def test_limits_of_integers_tell_programs_apart(name: str) -> None:
    assert isinstance(equivalent(*modules(INTEGERS[name])), Differs)


@pytest.mark.parametrize("name", FLOATS)
def test_exact_arithmetic_tells_rewrites_of_the_reals_apart(name: str) -> None:
    programs = modules(FLOATS[name])
    assert not isinstance(equivalent(*programs), Differs)
    assert isinstance(equivalent(*programs, exact_arithmetic=True), Differs)


@pytest.mark.parametrize("name", OPEN)
def test_results_that_hlo_leaves_open_are_no_evidence(name: str) -> None:
    programs = modules(OPEN[name])
    for is_exact in (False, True):
        verdict = equivalent(*programs, exact_arithmetic=is_exact)
        assert not isinstance(verdict, Differs), verdict


def test_open_results_are_recorded_on_every_device() -> None:
    from indexing.execution import run
    from indexing.ops.unspecified import record_unspecified

    module = hlo.parse("""HloModule m, num_partitions=2
      ENTRY e { p = s32[] parameter(0)  q = s32[] parameter(1)  ROOT r = s32[] divide(p, q) }""")
    with record_unspecified() as seen:
        run(module, [[np.int32(6), np.int32(3)], [np.int32(6), np.int32(0)]], replicas=2)
    assert seen == {"an integer division by zero"}


def test_zeros_beside_open_results_are_still_compared() -> None:
    """A divisor may be drawn as zero; then positive numbers are drawn instead."""
    pair = "p = s32[40] parameter(0)  q = s32[40] parameter(1)  ROOT r = s32[40] "
    programs = modules((pair + "divide(p, q)", pair + "divide(q, p)"))
    assert isinstance(equivalent(*programs, level="numbers"), Differs)


def test_an_array_of_infinities_is_evidence() -> None:
    empty = "p = f32[4] parameter(0)  s = f32[0] slice(p), slice={[0:0]}  i = f32[] constant(%s)  "
    empty += "ROOT r = f32[] reduce(s, i), dimensions={0}, to_apply=m"
    larger = "m { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] maximum(a, b) }"
    programs = [hlo.parse(f"{larger} ENTRY e {{ {empty % init} }}") for init in ("-inf", "0")]
    assert isinstance(equivalent(*programs), Differs)


@pytest.mark.parametrize(
    "allowed, before, after, at",
    [
        (Allowed.ACCUMULATED, [1.0, np.nan], [1.0, 2.0], None),
        (Allowed.ACCUMULATED, [1.0, np.inf], [1.0, 2.0], None),
        (Allowed.ACCUMULATED, [np.inf, np.inf], [1.0, 2.0], (0,)),
        (Allowed.ACCUMULATED, [1e5, 1.0], [1e5, 1.1], None),
        (Allowed.ACCUMULATED, [1.0, 1.0], [1.0, 1.1], (1,)),
        (Allowed.APPROXIMATE, [1e5, 1.0], [1e5, 1.1], (1,)),
        (Allowed.APPROXIMATE, [1.0, np.nan], [1.0, 2.0], (1,)),
        (Allowed.APPROXIMATE, [-0.0, np.nan, 1.0], [0.0, np.nan, 1.0000001], None),
        (Allowed.NONE, [1.0, np.nan], [1.0, np.nan], None),
        (Allowed.NONE, [1.0, -0.0], [1.0, 0.0], (1,)),
        (Allowed.NONE, [np.inf, 1.0], [np.inf, 1.0000001], (1,)),
    ],
)
def test_differences_are_evidence(
    allowed: Allowed, before: list[float], after: list[float], at: tuple[int, ...] | None
) -> None:
    for one, other in ((before, after), (after, before)):
        assert far_apart(np.array(one, np.float32), np.array(other, np.float32), allowed) == at


def test_undecided_remains_undecided() -> None:
    same = "p = s8[4] parameter(0)  n = s8[4] negate(p)  ROOT r = s8[4] maximum(p, n)"
    verdict = equivalent(*modules((same, "p = s8[4] parameter(0)  ROOT r = s8[4] abs(p)")))
    assert not isinstance(verdict, Differs)
    assert bool(verdict) or isinstance(verdict, Undecided)


def test_executions_that_agree_are_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    """The verdicts at level reads and at level values need the same executions."""
    text = """ENTRY e {{ p = f32[6] parameter(0)  i = s32[] parameter(1)
      m = s32[] constant({mask})  k = s32[] and(i, m)  j = s32[] {start}
      ROOT s = f32[2] dynamic-slice(p, j), dynamic_slice_sizes={{2}} }}"""
    before = hlo.parse(text.format(mask=3, start="copy(k)"))
    after = hlo.parse(text.format(mask=-4, start="subtract(i, k)"))
    calls = calls_of(monkeypatch, Runs, "gap_on")
    verdict = equivalent(before, after)
    assert isinstance(verdict, Undecided)
    assert "runtime indices are different formulas" in verdict.note
    assert "executions agree" in verdict.reason
    assert len(calls) == MANY_SEEDS + MANY_EDGE_SEEDS

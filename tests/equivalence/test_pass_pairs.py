"""Modules before and after passes of XLA:CPU, made by `benchmarks.pass_pairs`."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

import hlo
from hlo.modules.module import Module
from indexing import equivalent
from indexing.equivalence import Differs, Proved, Undecided
from indexing.equivalence.pairing import Pair, pair_of
from indexing.equivalence.runs import Runs, ValueGap
from indexing.equivalence.values.engine import ValueComparison, compare_values
from indexing.equivalence.values.results import EqualFormulas, ValueResult
from indexing.equivalence.verdicts import Level
from tests.equivalence.mutants import MUTATIONS, mutants
from tests.growth.work import calls_of

DATA = Path(__file__).parent / "data"
PAIRS = sorted(path.stem for path in DATA.glob("*.hlo"))

UNDECIDED = ("cholesky_expander",)
PROVED = [name for name in PAIRS if name not in UNDECIDED]
MUTATED = (
    *("algsimp", "constant_folding", "cse", "fusion", "reshape-mover", "tuple-simplifier"),
    "select_and_scatter_expander",
)
OTHER_SEEDS = range(500, 508)


def pair(name: str) -> tuple[Module, Module]:
    before, after = hlo.load_all(DATA / f"{name}.hlo")
    return before, after


@pytest.mark.parametrize("name", PROVED)
def test_values_are_proved(name: str) -> None:
    verdict = equivalent(*pair(name))
    assert isinstance(verdict, Proved), verdict
    assert verdict.level == "values"


@pytest.mark.parametrize("name", UNDECIDED)
def test_other_pairs_are_undecided(name: str) -> None:
    assert isinstance(equivalent(*pair(name)), Undecided)


@pytest.mark.parametrize("name", PAIRS)
def test_reads_of_a_right_pass_never_differ(name: str) -> None:
    before, after = pair(name)
    for verdict in (equivalent(before, after, level="reads"), equivalent(after, before, "reads")):
        assert not isinstance(verdict, Differs), verdict


@pytest.mark.parametrize("name", MUTATED)
def test_mutants_are_told_apart(name: str) -> None:
    before, after = pair(name)
    outcomes = []
    for _, line, mutant in mutants(after, seed=5, count=4):
        numbered = pair_of(after, mutant)
        assert isinstance(numbered, Pair)
        runs = Runs(numbered)
        if any(isinstance(runs.gap_on(runs.inputs(seed)), ValueGap) for seed in OTHER_SEEDS):
            verdict = equivalent(before, mutant)
            assert isinstance(verdict, Differs), (line, verdict)
            assert verdict.before != verdict.after, line
            outcomes.append(verdict)
    assert outcomes, "no mutant computes something else"


@pytest.mark.parametrize("name", MUTATED)
def test_what_was_compared_before_changes_no_result(name: str) -> None:
    before, after = pair(name)
    programs = [before, after, *[mutant for _, _, mutant in mutants(after, seed=6, count=6)]]
    shared = ValueComparison()
    proofs = Counter[bool]()
    for one, other in [*pairwise(programs), *[(before, program) for program in programs]]:
        results = shared.results(one.entry, other.entry)
        separate = compare_values(one.entry, other.entry)
        assert list(map(laws_of, results)) == list(map(laws_of, separate))
        proofs[all(results)] += 1
    assert len(proofs) == 2


@pytest.mark.parametrize("place", [0, 1, 2])
def test_programs_are_compared_anew_after_the_first_output_that_is_not_proved(
    monkeypatch: pytest.MonkeyPatch, place: int
) -> None:
    """A comparison that is repeated without earlier programs ends before it is repeated."""
    text = """ENTRY e { p = f32[5] parameter(0)  x = f32[5] %s(p)  y = f32[5] %s(p)
      z = f32[5] %s(p)  ROOT t = (f32[5], f32[5], f32[5]) tuple(x, y, z) }"""
    opcodes = ["sine", "abs", "exponential"]
    before = hlo.parse(text % tuple(opcodes)).entry
    opcodes[place] = "cosine"
    after = hlo.parse(text % tuple(opcodes)).entry
    shared = ValueComparison()
    assert all(shared.results(before, before))
    calls = calls_of(monkeypatch, ValueComparison, "_compare_arrays")
    results = shared.results(before, after)
    assert [k for k, result in enumerate(results) if not result] == [place]
    assert len(calls) == (place + 1) + 3
    assert list(map(str, results)) == list(map(str, compare_values(before, after)))


def test_constants_that_laws_computed_for_other_programs_are_no_rounding() -> None:
    text = """ENTRY e { p = f32[6] parameter(0)  c = f32[] constant(%s)
      b = f32[6] broadcast(c), dimensions={}  ROOT r = f32[6] %s(p, b) }"""
    divided, scaled, near = (
        hlo.parse(text % each).entry
        for each in (("3", "divide"), ("0.333333343", "multiply"), ("0.333333373", "multiply"))
    )
    shared = ValueComparison()
    assert all(shared.results(divided, scaled))
    assert not any(shared.results(scaled, near))


def test_constants_that_laws_computed_for_another_output_are_no_rounding() -> None:
    text = """ENTRY e { p = f32[6] parameter(0)  q = f32[6] parameter(1)
      three = f32[] constant(3)  threes = f32[6] broadcast(three), dimensions={}
      third = f32[] constant(0.333333343)  thirds = f32[6] broadcast(third), dimensions={}
      c = f32[] constant(%s)  b = f32[6] broadcast(c), dimensions={}
      o1 = f32[6] %s  o2 = f32[6] multiply(q, b)  ROOT t = (f32[6], f32[6]) tuple(o1, o2) }"""
    before = hlo.parse(text % ("0.333333343", "divide(p, threes)")).entry
    after = hlo.parse(text % ("0.333333373", "multiply(p, thirds)")).entry
    first, second = ValueComparison().results(before, after)
    assert first
    assert not second


def test_infinite_constants_of_opposite_signs_are_no_rounding() -> None:
    text = """ENTRY e { p = f32[6] parameter(0)
      c = f32[] constant(%s)  b = f32[6] broadcast(c), dimensions={}
      d = f32[] constant(%s)  e = f32[6] broadcast(d), dimensions={}
      m = f32[6] multiply(p, b)  ROOT r = f32[6] multiply(m, e) }"""
    before, after = [hlo.parse(text % each).entry for each in (("1e38", "1e38"), ("-1e38", "1e38"))]
    assert not any(ValueComparison().results(before, after))


def laws_of(result: ValueResult) -> dict[str, int] | None:
    return dict(result.laws) if isinstance(result, EqualFormulas) else None


def test_each_mutation_applies() -> None:
    module = hlo.parse("""
      add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }
      ENTRY e { p = f32[4,4] parameter(0)  zero = f32[] constant(0)
        sl = f32[3,4] slice(p), slice={[0:3], [0:4]}
        pd = f32[4,4] pad(sl, zero), padding=1_0x0_0
        tr = f32[4,4] transpose(pd), dimensions={1,0}  rv = f32[4,4] reverse(tr), dimensions={1}
        df = f32[4,4] subtract(rv, p)  cl = f32[4,4] clamp(zero, df, zero)
        cm = pred[4,4] compare(cl, p), direction=LT  se = f32[4,4] select(cm, cl, p)
        rd = f32[4] reduce(se, zero), dimensions={1}, to_apply=add
        cc = f32[4] custom-call(rd), custom_call_target="t", backend_config={uplo = 76 : ui8}
        ROOT mx = f32[4] multiply(rd, cc) }""")
    applied = {name for name, _, _ in mutants(module, seed=1, count=1000)}
    assert applied == set(MUTATIONS)


@pytest.mark.parametrize("level", ["reads", "counts", "values", "numbers"])
def test_exchanged_parameters_are_compared_in_equal_programs(level: Level) -> None:
    text = "ENTRY e { p = f32[4] parameter(0)  q = f32[4] parameter(1)  ROOT r = f32[4] %s(p, q) }"
    subtracted, added = hlo.parse(text % "subtract"), hlo.parse(text % "add")
    differs = equivalent(subtracted, subtracted, level, parameters={0: 1, 1: 0})
    assert bool(differs) == (level in ("reads", "counts"))
    if level != "numbers":
        assert equivalent(added, added, level, parameters={0: 1, 1: 0})

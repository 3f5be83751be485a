"""Modules before and after passes of XLA:CPU, made by `benchmarks.pass_pairs`."""

from __future__ import annotations

from pathlib import Path

import pytest

import hlo
from hlo.modules.module import Module
from indexing import equivalent
from indexing.equivalence import Differs, Proved
from indexing.equivalence.pairing import Pair, pair_of
from indexing.equivalence.runs import Runs, ValueGap
from tests.equivalence.mutants import MUTATIONS, mutants

DATA = Path(__file__).parent / "data"
PAIRS = sorted(path.stem for path in DATA.glob("*.hlo"))

PROVED = (
    *("algsimp", "batch-dot-simplification", "call-inliner", "constant_folding"),
    *("convolution-canonicalization", "copy-insertion", "cse", "dce", "dot-library-rewriter"),
    *("dot_decomposer", "dynamic-dimension-simplifier", "fusion", "fusion-wrapper"),
    *("gather_simplifier", "layout-assignment", "reshape-decomposer", "reshape-mover"),
    *("scatter_simplifier", "shardy-xla", "small-while-loop-hoisting", "transpose-folding"),
    "tuple-simplifier",
)
MUTATED = ("algsimp", "constant_folding", "cse", "fusion", "reshape-mover", "tuple-simplifier")
OTHER_SEEDS = range(500, 508)


def pair(name: str) -> tuple[Module, Module]:
    before, after = hlo.load_all(DATA / f"{name}.hlo")
    return before, after


@pytest.mark.parametrize("name", PROVED)
def test_values_are_proved(name: str) -> None:
    verdict = equivalent(*pair(name))
    assert isinstance(verdict, Proved), verdict
    assert verdict.level == "values"


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
        ROOT mx = f32[4] multiply(rd, rd) }""")
    applied = {name for name, _, _ in mutants(module, seed=1, count=1000)}
    assert applied == set(MUTATIONS)

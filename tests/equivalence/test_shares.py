"""Outputs divided among processes: the results are those of one comparison, or are not used."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from itertools import combinations, pairwise
from typing import Any

import pytest

import hlo
import indexing.ops  # noqa: F401 - registers the ops
from hlo.modules.module import Module
from indexing.equivalence import shares
from indexing.equivalence.compare import compare_programs
from indexing.equivalence.shares import (
    CaseUse,
    OutputDivision,
    OutputShare,
    ShareProofs,
    share_starts,
)
from indexing.equivalence.values.engine import OutputPairs, ValueComparison
from indexing.equivalence.values.formulas import elements
from indexing.equivalence.values.formulas.numbering import needed_arrays
from indexing.equivalence.verdicts import Verdict

# fmt: off
SCALED  = "f32[5] divide(p, c)", "f32[5] multiply(p, r)"     # a law of the reals relates both
SQUARES = "f32[5] divide(q, c)", "f32[5] multiply(q, r)"
OTHER   = "f32[5] divide(w, c)", "f32[5] multiply(w, r)"
SWAPPED = "f32[5] add(p, q)", "f32[5] add(q, p)"             # one value number
FOLDED  = "f32[5] multiply(pa, b)", "f32[5] multiply(pb, a)" # laws compute the constant a * b
NEAR    = "f32[5] multiply(q, ab)", "f32[5] multiply(q, near)"  # equal only if laws computed a * b
UNEQUAL = "f32[5] exponential(p)", "f32[5] cosine(p)"
ROUNDED = "f32[5] copy(p)", "f32[5] convert(narrow)"
CALLED  = tuple([f'f32[5] custom-call(q), custom_call_target="{name}"' for name in "fg"])
TOP     = "f32[2] get-tuple-element(top), index=0", "f32[2] slice(sorted), slice={[0:2]}"
# fmt: on


NUMBERS = {
    "c": "3",
    "r": "0.333333343",
    "a": "0.1",
    "b": "0.3",
    "ab": "0.0300000012",
    "near": "0.0300000031",
}
CONSTANTS = [
    f"{name}_ = f32[] constant({text})  {name} = f32[5] broadcast({name}_), dimensions={{}}"
    for name, text in NUMBERS.items()
]


def module_of(*outputs: str) -> Module:
    """Return a module with these outputs."""
    lines = [f"  o{k} = {text}" for k, text in enumerate(outputs)]
    types = [text.split()[0] for text in outputs]
    names = [f"o{k}" for k in range(len(outputs))]
    return hlo.parse(f"""
    greater {{ x = f32[] parameter(0)  y = f32[] parameter(1)
      ROOT g = pred[] compare(x, y), direction=GT, type=TOTALORDER }}
    ENTRY e {{
      p = f32[5] parameter(0)  q = f32[5] parameter(1)  w = f32[5] parameter(2)
      {chr(10).join(CONSTANTS)}
      pa = f32[5] multiply(p, a)  pb = f32[5] multiply(p, b)
      narrow = bf16[5] convert(p)
      top = (f32[2], s32[2]) custom-call(p), custom_call_target="TopK"
      sorted = f32[5] sort(p), dimensions={{0}}, is_stable=true, to_apply=greater
      {chr(10).join(lines)}
      ROOT t = ({", ".join(types)}) tuple({", ".join(names)}) }}""")


def pair_of(*outputs: tuple[str, ...]) -> tuple[Module, Module]:
    before, after = zip(*outputs, strict=True)
    return module_of(*before), module_of(*after)


class Here:
    """Processes that are this one, and the values that they return."""

    def __init__(self, *dead: int) -> None:
        self.dead, self.given = dead, list[object]()

    def __call__(self, function: Any, tasks: Sequence[OutputShare]) -> Generator[Any]:
        for number, task in enumerate(tasks):
            self.given.append("death" if number in self.dead else function(task))
            yield self.given[-1]


def verdict_of(
    before: Module, after: Module, jobs: int, here: Here, changed: Module | None = None
) -> Verdict:
    loads = (lambda: before), (lambda: changed or after)
    division = OutputDivision(before, after, {}, jobs, here, loads) if jobs > 1 else None
    formulas = ValueComparison(divide=division)
    return compare_programs(before, after, "values", formulas, {})


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Divide the outputs of small modules too."""
    monkeypatch.setattr(shares, "MIN_INSTRUCTIONS", 0)


# fmt: off
PAIRS = [
    # outputs                    shares of others that are used with 2 and 3 processes
    ([SCALED, SQUARES],          [1, 1]),
    ([SCALED, SQUARES, OTHER],   [1, 2]),
    ([SCALED, SWAPPED, SQUARES], [1, 1]),
    ([SCALED, UNEQUAL],          [0, 0]),  # differs in the share of another process
    ([UNEQUAL, SCALED],          [0, 0]),
    ([SCALED, ROUNDED],          [0, 0]),
    ([SCALED, CALLED],           [0, 0]),  # undecided
    ([TOP, SQUARES],             [0, 0]),  # later outputs count the definition as well
    ([SQUARES, TOP],             [0, 0]),
    ([FOLDED, SQUARES],          [1, 1]),
    ([FOLDED, NEAR],             [0, 0]),
    ([SCALED],                   [0, 0]),
]
# fmt: on


@pytest.mark.parametrize("jobs", [2, 3])
@pytest.mark.parametrize("outputs, used", PAIRS)
def test_the_verdict_does_not_depend_on_the_jobs(
    outputs: list[tuple[str, ...]], used: list[int], jobs: int
) -> None:
    before, after = pair_of(*outputs)
    here = Here()
    alone, divided = verdict_of(before, after, 1, here), verdict_of(before, after, jobs, here)
    assert divided == alone
    assert str(divided) == str(alone)
    is_used = all(isinstance(each, ShareProofs) for each in here.given)
    assert (len(here.given) if is_used else 0) == used[jobs - 2]


def test_a_share_without_a_result_is_compared_here() -> None:
    before, after = pair_of(SCALED, SQUARES, OTHER)
    alone = verdict_of(before, after, 1, Here())
    for dead in ([0], [1], [0, 1]):
        here = Here(*dead)
        assert verdict_of(before, after, 3, here) == alone
        assert "death" in here.given


def test_a_file_that_changes_meanwhile_is_not_used() -> None:
    before, after = pair_of(SCALED, SQUARES)
    changed = hlo.parse(after.source.text.replace("multiply(q, r)", "multiply(q, c)"))
    here = Here()
    assert verdict_of(before, after, 2, here, changed) == verdict_of(before, after, 1, here)
    assert here.given == [None]


def test_shares_are_contiguous_and_of_similar_size() -> None:
    outputs = [SCALED, UNEQUAL, SQUARES, OTHER, SWAPPED, NEAR, CALLED, FOLDED]
    before, after = pair_of(*outputs)
    seen: list[OutputPairs] = []
    formulas = ValueComparison(divide=lambda _, pairs: seen.append(pairs))
    compare_programs(before, after, "values", formulas, {})
    (pairs,) = seen
    whole = len(needed_numbers(pairs))
    for jobs in range(1, 9):
        starts = share_starts(pairs, jobs)
        sizes = [len(needed_numbers(pairs[a:b])) for a, b in pairwise([*starts, len(pairs)])]
        assert starts[0] == 0
        assert starts == sorted(set(starts))
        assert len(starts) <= jobs
        if len(starts) > 1:
            assert max(sizes) <= shares.MAX_SHARE * whole
        best = min(
            max(len(needed_numbers(pairs[a:b])) for a, b in pairwise([0, *inner, len(pairs)]))
            for inner in combinations(range(1, len(pairs)), min(jobs, 2) - 1)
        )
        assert max(sizes) <= best or best > shares.MAX_SHARE * whole


def needed_numbers(pairs: OutputPairs) -> set[int]:
    """Return the numbers of the arrays that outputs without a common number need."""
    roots = [each for pair in pairs if pair[0] is not pair[1] for each in pair]
    return {each.number for each in needed_arrays(roots)}


def use(limited: str = "", exhausted: str = "", proved: str = "") -> CaseUse:
    return CaseUse(*[frozenset(map(int, each)) for each in (limited, exhausted, proved)])


# fmt: off
CASES = [
    # the first share              another share                  as in one comparison
    (use(),                        use(),                         True),
    (use(proved="0"),              use(proved="01"),              True),   # no limit is near
    (use("0", "0"),                use("0"),                      True),   # all cases fail
    (use("0"),                     use("0"),                      False),  # some are left
    (use(),                        use("0", "0"),                 False),
    (use("0", "0"),                use("0", proved="0"),          False),  # proved with cases that
    (use("0", "0", "0"),           use(),                         False),  # one has not got
    (use("0", "0"),                use("0", "0", "1"),            True),
    (use("1", "1"),                use("0"),                      False),
]
# fmt: on


@pytest.mark.parametrize("first, other, expected", CASES)
def test_proofs_by_cases_are_used_far_from_the_limit_or_not_at_all(
    first: CaseUse, other: CaseUse, expected: bool
) -> None:
    assert shares._are_as_in_one([first, other]) is expected


@pytest.mark.parametrize("limit", ["MAX_COMPARED", "MAX_INLINED"])
def test_proofs_near_a_limit_of_all_outputs_are_not_used(
    limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, after = pair_of(SCALED, SQUARES)
    alone = verdict_of(before, after, 1, Here())
    monkeypatch.setattr(shares, limit, 1)
    here = Here()
    assert verdict_of(before, after, 2, here) == alone
    assert here.given == []


def test_terms_of_all_shares_stay_within_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    before, after = pair_of(SCALED, SQUARES)
    formulas = ValueComparison()
    compare_programs(before, after, "values", formulas, {})
    size = len(formulas.elements.table)
    for limit, is_used in ((size, False), (2 * size, True)):
        monkeypatch.setattr(elements, "MAX_TERMS", limit)
        here = Here()
        assert verdict_of(before, after, 2, here) == verdict_of(before, after, 1, here)
        assert (here.given != []) is is_used


def test_shared_formulas_that_are_not_equal_change_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before, after = pair_of(SCALED, SQUARES)
    monkeypatch.setattr(shares, "MAX_COPIED_TERMS", 0)
    here = Here()
    assert verdict_of(before, after, 2, here) == verdict_of(before, after, 1, Here())
    assert isinstance(here.given[0], ShareProofs)

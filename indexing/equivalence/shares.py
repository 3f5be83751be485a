"""Outputs of two modules compared by several processes: a range of the outputs is a share.

Formulas, normal forms and compared pairs of terms are kept for later outputs, and their limits
count all outputs.  Therefore, results of a share are used only if a comparison of all outputs has
the same ones: proofs that need no limit, and no definition that is counted once for all outputs.
Without them, the process that has the first share compares the others as well.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from hlo.modules.module import Module
from indexing.equivalence.pairing import Pair, pair_of
from indexing.equivalence.values.engine import (
    OutputPairs,
    SharedFormulas,
    ValueComparison,
    is_independent,
)
from indexing.equivalence.values.formulas.elements import MAX_COPIED_TERMS, Elements
from indexing.equivalence.values.formulas.numbering import MAX_INLINED, needed_arrays
from indexing.equivalence.values.matching.matching import MAX_COMPARED, Matching
from indexing.equivalence.values.results import EqualFormulas

Load: TypeAlias = "Callable[[], Module]"
"""Returns a module, such as from its file."""

MIN_INSTRUCTIONS: Final = 1_000
"""Number of instructions of both modules, calls inlined, from which outputs are divided."""

MAX_SHARE: Final = 0.8
"""Limit on the arrays that a share needs, as a part of those that all outputs need."""

_STEPS: Final = 6
"""Number of bisections of the limit on the arrays of a share."""


@dataclass(frozen=True, slots=True)
class OutputShare:
    """A range of the outputs of two modules, for another process.

    Attributes:
        loads: return the modules before and after.
        digests: those of their texts.
        parameters: as of `equivalent`.
        exact_arithmetic: as of `equivalent`.
        start, stop: the range of the numbers of outputs.
        count: the number of shares.
    """

    loads: tuple[Load, Load]
    digests: tuple[str, str]
    parameters: Mapping[int, int]
    exact_arithmetic: bool
    start: int
    stop: int
    count: int


@dataclass(frozen=True, slots=True)
class OutputDivision:
    """The division of the outputs of two modules among processes, for ``ValueComparison.divide``.

    Attributes:
        before, after: the modules.
        parameters: as of `equivalent`.
        jobs: the maximum number of processes, this one included.
        results: calls a function of a module for each share, in other processes that start at once,
            and yields the results in order; other values stand for processes that have died.
        loads: as of `OutputShare`.
    """

    before: Module
    after: Module
    parameters: Mapping[int, int]
    jobs: int
    results: Callable[[Callable[[OutputShare], Any], Sequence[OutputShare]], Generator[Any]]
    loads: tuple[Load, Load]

    def __call__(self, comparison: ValueComparison, pairs: OutputPairs) -> None:
        """Compare all outputs; only the first ones, if the others need this process."""
        if comparison.numbering.instructions < MIN_INSTRUCTIONS:
            return
        starts = share_starts(pairs, self.jobs)
        count = len(starts)
        if count == 1:
            return
        digests = self.before.source.digest, self.after.source.digest
        options = self.parameters, comparison.exact_arithmetic
        ranges = list(zip(starts, [*starts[1:], len(pairs)], strict=True))
        shares = [OutputShare(self.loads, digests, *options, *each, count) for each in ranges[1:]]
        own = ranges[0][1]
        with closing(self.results(share_proofs, shares)) as received:
            cases = [_cases_alone(comparison, pairs[:own], count)]
            for made in received if cases[0] is not None else ():
                if not isinstance(made, ShareProofs):
                    break
                cases.append(made.cases)
                comparison.done += [
                    EqualFormulas(MappingProxyType(laws), is_structural)
                    for laws, is_structural in made.proofs
                ]
        if len(cases) < count or not _are_as_in_one(cases):
            del comparison.done[own:]


def share_starts(pairs: OutputPairs, jobs: int) -> list[int]:
    """Return the first output of each share, for at most `jobs` shares of similar size.

    The size is the number of arrays that the outputs need; outputs with one value number need none.
    There is one share if several would need almost all arrays each.
    """
    total = _sizes(pairs, [0])[0]
    shortest, starts, size = total // jobs, [0], total
    longest = int(total * MAX_SHARE)
    for _ in range(_STEPS):
        limit = (shortest + longest + 1) // 2
        tried = _starts(pairs, limit)
        largest = max(_sizes(pairs, tried))
        if len(tried) <= jobs and largest < size and largest <= total * MAX_SHARE:
            starts, size, longest = tried, largest, limit
        else:
            shortest = limit
    return starts


def _starts(pairs: OutputPairs, limit: int) -> list[int]:
    """Return the first output of each share, if a share of several outputs has a limited size."""
    starts, known = [0], set[int]()
    for number, pair in enumerate(pairs):
        added = _needed_numbers(pair, known)
        if known and len(known) + len(added) > limit:
            starts.append(number)
            known = _needed_numbers(pair, set())
        else:
            known |= added
    return starts


def _sizes(pairs: OutputPairs, starts: Sequence[int]) -> list[int]:
    """Return the size of each share."""
    sizes = []
    for start, stop in zip(starts, [*starts[1:], len(pairs)], strict=True):
        known = set[int]()
        for pair in pairs[start:stop]:
            known |= _needed_numbers(pair, known)
        sizes.append(len(known))
    return sizes


def _needed_numbers(pair: Sequence[Any], known: set[int]) -> set[int]:
    """Return the numbers of the arrays that an output needs, without those that are known."""
    before, after = pair
    return set() if before is after else {each.number for each in needed_arrays(pair, known)}


@dataclass(frozen=True, slots=True)
class CaseUse:
    """Use of the limit on pairs of terms that are compared in cases, by the outputs of a share.

    Each `Matching` of a `ValueComparison` has such a limit, and a number here.

    Attributes:
        limited: those of which as many as there are shares may exceed the limit.
        exhausted: those that have reached the limit.
        proved: those that have proved terms equal by cases.
    """

    limited: frozenset[int]
    exhausted: frozenset[int]
    proved: frozenset[int]


@dataclass(frozen=True, slots=True)
class ShareProofs:
    """The proofs of a share.

    Attributes:
        proofs: the laws of each output, and whether its proof is structural.
        cases: the use of cases.
    """

    proofs: tuple[tuple[dict[str, int], bool], ...]
    cases: CaseUse


def _are_as_in_one(cases: Sequence[CaseUse | None]) -> bool:
    """Return True if one comparison of all shares, in order, has the same results.

    It has more cases left than it needs; or the first share leaves no cases to the others, and no
    share has proved anything by cases.
    """
    known = [each for each in cases if each is not None]
    limited = frozenset[int]().union(*[each.limited for each in known])
    proved = frozenset[int]().union(*[each.proved for each in known])
    return limited <= known[0].exhausted and not limited & proved


class _NoProofs(Exception):
    """The results of a share may be others among more outputs."""


def share_proofs(share: OutputShare) -> ShareProofs | None:
    """Return the proofs of a share.

    None stands for results that may be others in a comparison of all outputs, and for files that
    have changed.
    """
    before, after = [load() for load in share.loads]
    if (before.source.digest, after.source.digest) != share.digests:
        return None
    pair = pair_of(before, after, share.parameters)
    if not isinstance(pair, Pair):
        return None

    cases: list[CaseUse] = []

    def prove(comparison: ValueComparison, pairs: OutputPairs) -> None:
        use = _cases_alone(comparison, pairs, share.count)
        if use is None:
            raise _NoProofs
        cases.append(use)

    sides = pair.before, pair.after
    ours, theirs = [side.arrays[share.start : share.stop] for side in sides]
    numbers = {after: before for before, after in share.parameters.items()}
    formulas = ValueComparison(exact_arithmetic=share.exact_arithmetic, divide=prove)
    try:
        results = formulas.results(ours, theirs, numbers)
    except _NoProofs:
        return None
    proofs = [each for each in results if isinstance(each, EqualFormulas)]
    if len(proofs) != share.stop - share.start:
        return None
    made = tuple([(dict(each.laws), each.is_structural) for each in proofs])
    return ShareProofs(made, *cases or [_NO_CASES])


_NO_CASES: Final = CaseUse(frozenset(), frozenset(), frozenset())


def _cases_alone(comparison: ValueComparison, pairs: OutputPairs, count: int) -> CaseUse | None:
    """Compare outputs until one has a result that may be another one in `count` times as many.

    Returns:
        None if there is one; else the use of cases, on which the results may depend.
    """
    start = comparison.numbering.instructions
    for number in range(len(pairs)):
        comparison.compare_until(number + 1, pairs)
        if not is_independent(comparison.done[number]):
            return None
    shared = [comparison.shared]
    if len(comparison.elements.table) * count > MAX_COPIED_TERMS:
        shared.append(_shared_proofs(comparison, pairs))
    matchings = [comparison.exact, comparison.quick, comparison.matching]
    matchings += [each.matching for each in shared]
    added = comparison.numbering.instructions - start
    if (
        comparison.elements.trusted
        or any(each.has_proof for each in shared)
        or start + added * count > MAX_INLINED
        or not _have_room([comparison.elements, *[each.elements for each in shared]], count)
        or not all(_has_pairs_left(each, count) for each in matchings)
    ):
        return None
    return _case_use(matchings, count)


def _have_room(formulas: Sequence[Elements], count: int) -> bool:
    """Return True if the terms of `count` shares are within the limits."""
    return all(len(each.table) * count <= each.limit for each in formulas)


def _has_pairs_left(matching: Matching, count: int) -> bool:
    """Return True if the comparisons of `count` shares are within the limits."""
    return not matching.is_limited and len(matching.compared) * count < MAX_COMPARED


def _case_use(matchings: Sequence[Matching], count: int) -> CaseUse:
    """Return the use of cases by one of `count` shares."""
    numbered = list(enumerate(matchings))
    return CaseUse(
        frozenset([k for k, each in numbered if each.case_count * count >= each.max_cases]),
        frozenset([k for k, each in numbered if each.case_count >= each.max_cases]),
        frozenset([k for k, each in numbered if each.has_case_proof]),
    )


def _shared_proofs(comparison: ValueComparison, pairs: OutputPairs) -> SharedFormulas:
    """Compare shared formulas of the outputs whose proofs use laws.

    A comparison of more outputs compares them first, and finds no laws if they are equal.
    """
    shared = SharedFormulas(comparison.numbering)
    for pair, result in zip(pairs, comparison.done, strict=True):
        if isinstance(result, EqualFormulas) and result.laws:
            shared.equal(*pair, comparison.arguments)
    return shared

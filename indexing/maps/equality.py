"""Equality of maps as relations, with a witness if they differ."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, product
from typing import Final, Literal, TypeAlias

from indexing.maps.indexing_map import Difference, IndexingMap
from indexing.maps.relation import is_empty
from indexing.maps.runtime_variable import RuntimeVariable
from simplifier import exact
from simplifier.atoms import Variable
from simplifier.exact import unions
from simplifier.unknown import Unknown, with_query

RuntimePair: TypeAlias = tuple[RuntimeVariable | None, RuntimeVariable | None]
RuntimePairs: TypeAlias = Sequence[RuntimePair]

_MAX_PAIRINGS: Final = 64
_FEW_PAIRINGS: Final = 2  # the likeliest


def difference(
    first: IndexingMap, second: IndexingMap, *, budget: int = exact.BUDGET
) -> Difference | Unknown | None:
    """Return a pair that only one of two maps relates, or `None` if the relations are equal.

    Args:
        budget: isl operations for each pairing of the maps' runtime variables.
    Raises:
        ValueError: the maps have different numbers of dimensions or results, so they relate points
            of different spaces.
    """
    if first == second:
        return None
    spaces = [(len(m.dims), len(m.results)) for m in (first, second)]
    if spaces[0] != spaces[1]:
        if is_empty(first) is True and is_empty(second) is True:
            return None
        raise ValueError(
            f"maps of different spaces: {spaces[0][0]} dimensions to {spaces[0][1]} results, and "
            f"{spaces[1][0]} to {spaces[1][1]}:\n  {first}\n  {second}"
        )
    answer: Difference | Unknown | None = None
    for pairs in _pairings(first, second):
        answer = _difference(first, second, pairs, budget)
        if answer is None or isinstance(answer, Unknown):
            break
    return answer


def are_equal(first: IndexingMap, second: IndexingMap, *, budget: int = exact.BUDGET) -> bool:
    """Return True if two maps of one space are proved to be the same relation, by a quick query.

    `difference` tries more pairings of runtime variables, and has a witness.

    Args:
        budget: isl operations for each pairing of the maps' runtime variables.

    >>> shifted = IndexingMap.over((4,), lambda d, s: [d[0] + 3 - s[0]], ranges=(4,))
    >>> are_equal(shifted, IndexingMap.over((4,), lambda d, s: [d[0] + s[0]], ranges=(4,)))
    True
    """
    for pairs in islice(_pairings(first, second), _FEW_PAIRINGS):
        left, right = _relation(first, pairs), _relation(second, [(b, a) for a, b in pairs])
        are_same = exact.are_equal(left, right, budget)
        if are_same is not False:
            return are_same is True
    return False


def is_contained(
    part: IndexingMap, whole: IndexingMap, *, budget: int = exact.BUDGET
) -> bool | Unknown:
    """Return True if `whole` relates every pair that `part` relates, for the same runtime values.

    Args:
        budget: isl operations for each pairing of the maps' runtime variables.

    >>> row = IndexingMap.over((4,), lambda d, s: [d[0], s[0]], ranges=(8,))
    >>> is_contained(IndexingMap.over((4,), lambda d: [d[0], d[0] * 2]), row)
    True
    """
    answer: bool | Unknown = False
    for pairs in _pairings(part, whole):
        left = _relation(part, pairs)
        right = _relation(whole, [(b, a) for a, b in pairs])
        outside = unions.only_first([left], [right], budget=budget)
        if outside is None:
            return True
        if isinstance(outside, Unknown):
            answer = with_query(outside, "cannot decide whether", whole, "contains", part)
    return answer


def _difference(
    first: IndexingMap, second: IndexingMap, pairs: RuntimePairs, budget: int
) -> Difference | Unknown | None:
    """The difference of the maps if paired runtime variables are the same value.

    The source element of each paired runtime variable is compared like a result, because the values
    are the same only if the elements are.
    """
    left = _relation(first, pairs)
    right = _relation(second, [(b, a) for a, b in pairs])
    gap = exact.difference(left, right, budget)
    if isinstance(gap, Unknown):
        return with_query(gap, "cannot decide whether", first, "is equal to", second)
    if gap is None:
        return None
    at = dict(zip([v.name for v in left.inputs], gap.point, strict=True))
    only_in: Literal["first", "second"] = "first" if gap.in_first else "second"
    return Difference(at, gap.results[: len(first.results)], only_in)


def _relation(m: IndexingMap, pairs: Iterable[RuntimePair]) -> exact.Relation:
    """`m` as a relation; its own runtime variables are the first of each pair, or `None`."""
    inputs = (*m.dims, *[_variable(*pair) for pair in pairs])
    hidden = [v for v in m.variables if v not in inputs]
    elements = [expr for mine, other in pairs if mine and other for expr in mine.index]
    return exact.Relation(inputs, tuple(hidden), (*m.results, *elements), m.constraints)


def _variable(mine: RuntimeVariable | None, other: RuntimeVariable | None) -> Variable:
    if mine:
        return mine.variable
    assert other, "a pair has at least one runtime variable"
    return Variable(f"other.{other.name}", *(other.clamp or other.variable.bounds))


def _pairings(first: IndexingMap, second: IndexingMap) -> Iterator[RuntimePairs]:
    """Pairings of runtime variables that may be the same value, the likeliest first.

    Variables of one source may be paired in several ways, unless their indices have the same text.
    A variable of only one map is paired with `None`: the other map does not depend on it.
    """
    same = _same_text(first, second)
    left = [rt for rt in first.runtime if all(rt is not mine for mine, _ in same)]
    right = [rt for rt in second.runtime if all(rt is not other for _, other in same)]
    choices = [[*[o for o in right if _may_be_same(mine, o)], None] for mine in left]
    for choice in islice(filter(_has_no_repeats, product(*choices)), _MAX_PAIRINGS):
        unpaired: list[RuntimePair] = [(None, other) for other in right if other not in choice]
        yield [*same, *zip(left, choice, strict=True), *unpaired]


def _same_text(
    first: IndexingMap, second: IndexingMap
) -> list[tuple[RuntimeVariable, RuntimeVariable]]:
    """Pairs of runtime variables of one source whose indices have the same text."""
    pairs = []
    right = list(second.runtime)
    for mine in first.runtime:
        for other in right:
            if _may_be_same(mine, other) and _index_text(mine) == _index_text(other):
                pairs.append((mine, other))
                right.remove(other)
                break
    return pairs


def _has_no_repeats(choice: Sequence[RuntimeVariable | None]) -> bool:
    chosen = [id(other) for other in choice if other is not None]
    return len(chosen) == len(set(chosen))


def _may_be_same(a: RuntimeVariable, b: RuntimeVariable) -> bool:
    """True if both have the same source and clamp; without a source, if they have one name."""
    if a.array is None or b.array is None:
        return a.name == b.name
    return a.array == b.array and a.clamp == b.clamp and len(a.index) == len(b.index)


def _index_text(rt: RuntimeVariable) -> list[str]:
    return [str(expr) for expr in rt.index]

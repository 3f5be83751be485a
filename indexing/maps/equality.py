"""Whether two maps are the same relation; if not, a point that only one of them relates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, product
from typing import Final, Literal, TypeAlias

from indexing.maps.indexing_map import Difference, IndexingMap
from indexing.maps.relation import is_empty
from indexing.maps.runtime_variable import RuntimeVariable
from simplifier import exact
from simplifier.atoms import Variable
from simplifier.unknown import Unknown, about

Pair: TypeAlias = tuple[RuntimeVariable | None, RuntimeVariable | None]
Pairs: TypeAlias = Sequence[Pair]

_MAX_PAIRINGS: Final = 64


def difference(
    first: IndexingMap, second: IndexingMap, *, budget: int = exact.BUDGET
) -> Difference | Unknown | None:
    """A point that only one of two maps relates, or `None` if they are the same relation.

    ISL has `budget` operations for each way to pair the runtime variables of the maps.

    Raises:
        ValueError: the maps have different numbers of dimensions or results, so that they relate
            points of different spaces.
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
    found: Difference | Unknown | None = None
    for pairs in _pairings(first, second):
        found = _difference(first, second, pairs, budget)
        if found is None or isinstance(found, Unknown):
            break
    return found


def _difference(
    first: IndexingMap, second: IndexingMap, pairs: Pairs, budget: int
) -> Difference | Unknown | None:
    """A difference, if runtime variables in pairs are the same value.

    The element that each of them is counts as a further result: they are the same value only if it
    is the same element.
    """
    left = _relation(first, pairs)
    right = _relation(second, [(b, a) for a, b in pairs])
    found = exact.difference(left, right, budget)
    if isinstance(found, Unknown):
        return about(found, "whether", first, "is equal to", second)
    if found is None:
        return None
    at = dict(zip([v.name for v in left.inputs], found.point, strict=True))
    in_first: Literal["first", "second"] = "first" if found.in_first else "second"
    return Difference(at, found.results[: len(first.results)], in_first)


def _relation(asked: IndexingMap, pairs: Iterable[Pair]) -> exact.Relation:
    """`asked`, whose runtime variables come first in `pairs`; some are only in the other map."""
    inputs = (*asked.dims, *[_variable(*pair) for pair in pairs])
    hidden = [v for v in asked.variables if v not in inputs]
    elements = [expr for mine, other in pairs if mine and other for expr in mine.index]
    return exact.Relation(inputs, tuple(hidden), (*asked.results, *elements), asked.constraints)


def _variable(mine: RuntimeVariable | None, other: RuntimeVariable | None) -> Variable:
    if mine:
        return mine.variable
    assert other, "a pair has a runtime variable of one map at least"
    return Variable(f"other.{other.name}", *other.variable.bounds)


def _pairings(first: IndexingMap, second: IndexingMap) -> Iterator[Pairs]:
    """Ways to pair the runtime variables that may be the same value, the likeliest first.

    Those of one source may be paired in several ways, unless their elements are written alike.  A
    variable that only one map has is paired with `None`: the other map does not depend on it.
    """
    alike = _written_alike(first, second)
    left = [rt for rt in first.runtime if all(rt is not mine for mine, _ in alike)]
    right = [rt for rt in second.runtime if all(rt is not other for _, other in alike)]
    choices = [[*[o for o in right if _may_be_same(mine, o)], None] for mine in left]
    for choice in islice(filter(_has_no_repeats, product(*choices)), _MAX_PAIRINGS):
        alone: list[Pair] = [(None, other) for other in right if other not in choice]
        yield [*alike, *zip(left, choice, strict=True), *alone]


def _written_alike(
    first: IndexingMap, second: IndexingMap
) -> list[tuple[RuntimeVariable, RuntimeVariable]]:
    """Pairs of runtime variables of one source whose elements have the same text."""
    pairs = []
    right = list(second.runtime)
    for mine in first.runtime:
        for other in right:
            if _may_be_same(mine, other) and _element(mine) == _element(other):
                pairs.append((mine, other))
                right.remove(other)
                break
    return pairs


def _has_no_repeats(choice: Sequence[RuntimeVariable | None]) -> bool:
    chosen = [id(other) for other in choice if other is not None]
    return len(chosen) == len(set(chosen))


def _may_be_same(a: RuntimeVariable, b: RuntimeVariable) -> bool:
    """Both are an element of the same source; without a source, they have the same name."""
    if a.array is None or b.array is None:
        return a.name == b.name
    return a.array == b.array and a.clamp == b.clamp and len(a.index) == len(b.index)


def _element(of: RuntimeVariable) -> list[str]:
    return [str(expr) for expr in of.index]

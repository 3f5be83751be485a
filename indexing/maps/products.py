"""Maps that are products: each result is a function of the dimensions or has a range of its own.

The relation of such a map is ``{(d, r): r_k = f_k(d) or r_k in R_k for each k}``, so inclusion and
unions are decided one result at a time, without ISL.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import count
from typing import Final, TypeAlias

import numpy as np

from indexing.maps.indexing_map import IndexingMap
from indexing.maps.over_approximation import over_approximate
from indexing.maps.regions.boxes import Progression, progression
from indexing.maps.space_pairs import SpacePair
from simplifier.atoms import Variable
from simplifier.interval import Interval, contains
from simplifier.linear import Expr, as_expr

MAX_SPAN: Final = 1 << 16
"""Limit on the distance between the elements of progressions whose union is enumerated."""

Outline: TypeAlias = tuple[int | Expr, ...]
"""Some results of a map, with positions instead of dimensions: their bounds may differ."""


def is_box(m: IndexingMap) -> bool:
    """True if each result depends on dimensions only, or runs over an interval of its own."""
    if m.constraints or m.runtime:
        return False
    free = [free_variable(result, m) for result in m.results]
    used = [variable for variable in free if variable is not None]
    return len(m.ranges) == len(used) == len(set(used)) and all(
        v is not None or set(result.variables()) <= set(m.dims)
        for v, result in zip(free, m.results, strict=True)
    )


def free_variable(result: Expr, m: IndexingMap) -> Variable | None:
    """The range variable s of a result ``±s + c``, which takes every value in its bounds."""
    if len(result.terms) != 1:
        return None
    ((atom, factor),) = result.terms
    return atom if isinstance(atom, Variable) and atom in m.ranges and abs(factor) == 1 else None


def reads_everything(m: IndexingMap, sizes: Sequence[int] | None) -> bool:
    """True if a map is a box that relates each index of its domain to every index below `sizes`."""
    return (
        sizes is not None
        and [result.bounds for result in m.results] == [(0, size - 1) for size in sizes]
        and all(r.is_constant or free_variable(r, m) is not None for r in m.results)
        and is_box(m)
    )


def is_full(box: IndexingMap, spaces: SpacePair) -> bool:
    """True if a box relates every index of one space to every index of another."""
    start = spaces.start
    return (
        start is not None
        and [v.bounds for v in box.dims] == [v.bounds for v in start]
        and reads_everything(box, spaces.sizes)
    )


# ---------------------------------------------------------------- inclusion


def covers(box: IndexingMap, other: IndexingMap) -> bool:
    """True if one box is a superset of another, decided dimension by dimension."""
    renamed = dict(zip(other.dims, [d.as_expr() for d in box.dims], strict=True))
    same_dims = box.dims == other.dims

    def result_covers(a: Expr, b: Expr) -> bool:
        if free_variable(a, box) is not None and contains(a.bounds, b.bounds):
            return True
        return a == b if same_dims else b.as_variable in renamed and a == renamed[b.as_variable]

    pairs = zip(box.dims, other.dims, strict=True)
    if not all(contains(a.bounds, b.bounds) for a, b in pairs):
        return False
    return all(result_covers(a, b) for a, b in zip(box.results, other.results, strict=True))


class BoxIndex:
    """Boxes by their results, to look up those that cover another box.

    A box that covers another has the same results, except for those that run over an interval.
    Only boxes with the same `Outline` of these results are compared.
    """

    __slots__ = ("_by_fixed",)

    def __init__(self, boxes: Iterable[IndexingMap]) -> None:
        self._by_fixed: Final[dict[tuple[int, ...], dict[Outline, list[IndexingMap]]]] = {}
        for box in boxes:
            results = enumerate(box.results)
            fixed = tuple([k for k, result in results if free_variable(result, box) is None])
            by_outline = self._by_fixed.setdefault(fixed, {})
            by_outline.setdefault(_outline(box, fixed), []).append(box)

    def covering(self, other: IndexingMap) -> Iterator[IndexingMap]:
        """Yield the boxes that cover the box `other`; it covers itself."""
        for fixed, by_outline in self._by_fixed.items():
            for box in by_outline.get(_outline(other, fixed), ()):
                if covers(box, other):
                    yield box


def drop_covered(maps: Iterable[IndexingMap]) -> list[IndexingMap]:
    """Return maps with the same union, without those whose bounds another exact box covers.

    >>> from indexing.maps.text import parse_map
    >>> every = "(d0)[s0] -> (s0), domain: d0 in [0, 9], s0 in [0, 4]"
    >>> some = "(d0)[s0, s1] -> (s0 + s1), domain: d0 in [2, 9], s0 in [0, 4], s1 in [0, 4], "
    >>> some += "s0 + s1 in [0, 3]"
    >>> print(*drop_covered([parse_map(some), parse_map(every)]))
    (d0)[s0] -> (s0), domain: d0 in [0, 9], s0 in [0, 4]
    """
    given = list(dict.fromkeys(maps))
    dropped = covered_maps(given, [m for m in given if m.grade == "exact" and is_box(m)])
    return [m for m in given if m not in dropped]


def covered_maps(
    maps: Iterable[IndexingMap],
    boxes: Iterable[IndexingMap],
    sizes: tuple[int, ...] | None = None,
    control: Collection[IndexingMap] = (),
) -> set[IndexingMap]:
    """Return the maps whose bounds another box covers that is not covered itself.

    Args:
        control: maps whose elements decide only control, which do not cover data.
    """
    index, dropped = BoxIndex(boxes), set[IndexingMap]()
    for m in maps:
        hull = m if is_box(m) else over_approximate(m, sizes)
        if any(
            box is not m and box not in dropped and (m in control or box not in control)
            for box in index.covering(hull)
        ):
            dropped.add(m)
    return dropped


def _outline(m: IndexingMap, positions: Iterable[int]) -> Outline:
    """The outline of some results; it is equal if `covers` compares them as equal."""
    results = [(m.results[k].as_variable, m.results[k]) for k in positions]
    return tuple([m.dims.index(v) if v in m.dims else result for v, result in results])


# ---------------------------------------------------------------- union


Pattern: TypeAlias = tuple[tuple[Variable, ...], tuple[Expr | Progression | None, ...]]
"""The dimensions of a product and the values of its results; None at one position."""


def unite_maps(maps: Sequence[IndexingMap]) -> list[IndexingMap]:
    """Return `may` maps with the same union, with fewer maps if progressions form intervals.

    Let the maps be products that differ in the values ``P_1, .., P_n`` of result k only.  A product
    distributes over a union: their union is the product with ``P_1 ∪ .. ∪ P_n`` as values of
    result k.  That set is a union of intervals, each of which is one map, with a range variable as
    result k.  The maps are replaced if there are fewer intervals than maps.

    >>> from indexing.maps.text import parse_map
    >>> halves = [parse_map(f"(d0)[s0] -> (s0 * 2 + {k}), domain: d0 in [0, 9], s0 in [0, 4]")
    ...           for k in (0, 1)]
    >>> print(*unite_maps(halves))
    (d0)[s0] -> (s0), domain: d0 in [0, 9], s0 in [0, 9]
    """
    remaining = list(maps)
    for position in range(len(maps[0].results) if maps else 0):
        groups: dict[Pattern | int, list[IndexingMap]] = {}
        for number, m in enumerate(remaining):
            groups.setdefault(_pattern(m, position) or number, []).append(m)
        remaining = [m for group in groups.values() for m in _united_along(group, position)]
    return remaining


def _united_along(group: list[IndexingMap], position: int) -> list[IndexingMap]:
    """Return maps with the same union as `group`, which differ in one result only."""
    if len(group) == 1:
        return group
    values = [_progression(m.results[position], m) for m in group]
    intervals = _intervals([each for each in values if each is not None])
    if intervals is None or len(intervals) >= len(group):
        return group
    return [_with_interval(group[0], position, interval) for interval in intervals]


def _pattern(m: IndexingMap, position: int) -> Pattern | None:
    """Return what the maps that differ only in the result at `position` share.

    None if the map is not a product or the result is not a progression.
    """
    if m.constraints or m.runtime:
        return None
    values = [_progression(result, m) for result in m.results]
    used = [v for result in m.results for v in result.variables() if v in m.ranges]
    if values[position] is None or len(used) != len(m.ranges) or len(set(used)) != len(used):
        return None
    others: list[Expr | Progression | None] = []
    for k, (result, value) in enumerate(zip(m.results, values, strict=True)):
        if value is None and not set(result.variables()) <= set(m.dims):
            return None
        others.append(None if k == position else result if value is None else value)
    return m.dims, tuple(others)


def _progression(result: Expr, m: IndexingMap) -> Progression | None:
    """Return the values of a constant or of ``factor·s + c`` with a range variable s."""
    if result.is_constant:
        return Progression(result.constant, 1)
    if len(result.terms) != 1:
        return None
    ((atom, factor),) = result.terms
    if atom not in m.ranges:
        return None
    lower, upper = result.bounds
    return progression(lower, (upper - lower) // abs(factor) + 1, abs(factor))


def _intervals(values: Sequence[Progression]) -> list[Interval] | None:
    """Return the maximal intervals of the union of progressions; None if it is too long."""
    low, high = min(each.offset for each in values), max(each.last for each in values)
    if high - low >= MAX_SPAN:
        return None
    present = np.zeros(high - low + 3, np.int8)
    for each in values:
        present[each.offset - low + 1 : each.last - low + 2 : each.stride] = 1
    steps = np.diff(present)
    first, last = np.flatnonzero(steps == 1), np.flatnonzero(steps == -1) - 1
    return [(low + int(a), low + int(b)) for a, b in zip(first, last, strict=True)]


def _with_interval(m: IndexingMap, position: int, interval: Interval) -> IndexingMap:
    """Return `m` with an interval as the values of the result at `position`."""
    old = m.results[position].variables()
    kept = [v for v in m.ranges if v not in old]
    results = list(m.results)
    if interval[0] == interval[1]:
        results[position] = as_expr(interval[0])
        return replace(m, ranges=tuple(kept), results=tuple(results))
    taken = {v.name for v in (*m.dims, *kept)}
    name = next(name for name in (f"s{k}" for k in count()) if name not in taken)
    fresh = Variable(name, *interval)
    results[position] = fresh.as_expr()
    return replace(m, ranges=(*kept, fresh), results=tuple(results))

"""Numbers of points, of distinct results and of related pairs of maps.

Closed forms come first (`indexing.maps.counts.closed`), then ISL and enumeration under a budget
(`simplifier.exact.count`); beyond it the answer is `Unknown`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import indexing.methods as methods
from hlo.arguments import checked_on_failure
from indexing.maps.counts.closed import closed_tally
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.relation import MapList, MapOrMaps, as_maps, check_spaces, quotients
from simplifier import exact
from simplifier.atoms import point_count
from simplifier.interval import intersect
from simplifier.linear import Expr
from simplifier.unknown import Unknown, with_query


@checked_on_failure
def count_image(maps: MapOrMaps) -> int | Unknown:
    """Return the number of distinct results of one map, or of the union of several.

    Runtime variables take all their values.

    Returns:
        The number; `Unknown` without a closed form, beyond the budgets of ISL and enumeration.
    Raises:
        ValueError: the maps have different numbers of dimensions or results.
    Source: isl manual, "Counting" of the range (``isl_set_card``).

    >>> evens = IndexingMap.over((500_000,), lambda d: [d[0] * 2])
    >>> count_image([evens, IndexingMap.over((6,), lambda d: [d[0] * 3])])
    500003
    """
    maps = as_maps(maps)
    check_spaces(maps)
    total = 0
    for group in _overlapping(maps):
        count = _distinct(group[0]) if len(group) == 1 else _distinct_of_union(group)
        if isinstance(count, Unknown):
            return with_query(count, "cannot count the distinct results of", MapList(group))
        total += count
    return total


@checked_on_failure
def count_domain(maps: MapOrMaps) -> int | Unknown:
    """Return the number of points of the domain; for several maps, the sum of their numbers.

    The points are values of dimensions, range and runtime variables.  A point at which a result
    divides by 0 is not in the domain.

    Source: isl manual, "Counting" of the domain (``isl_set_card``).

    >>> padded = IndexingMap.over((14, 14), lambda d, s: [d[0] + s[0] - 1, d[1]], ranges=(3,))
    >>> count_domain(padded)
    588
    """
    total = 0
    for m in as_maps(maps):
        count = _points(m)
        if isinstance(count, Unknown):
            return with_query(count, "cannot count the domain of", m)
        total += count
    return total


def count_pairs(m: IndexingMap) -> int | Unknown:
    """Return the number of pairs of a point and a needed element; see `IndexingMap.count`."""
    if not m.ranges and not m.runtime:
        return count_domain(m)
    pairs = (*[d.as_expr() for d in m.dims], *m.results)
    return with_query(_distinct_of(m, pairs), "cannot count the pairs of", m)


def _points(m: IndexingMap) -> int | Unknown:
    divided = quotients(m)
    if not divided:
        if not m.constraints:
            return point_count(m.variables)
        tally = closed_tally(m.variables, (), m.constraints)
        if tally is not None:
            return tally.total
    every = [v.as_expr() for v in m.variables]
    return exact.count(exact.Relation((), m.variables, (*every, *divided), m.constraints))


def _distinct(m: IndexingMap) -> int | Unknown:
    return _distinct_of(m, m.results)


def _distinct_of(m: IndexingMap, results: tuple[Expr, ...]) -> int | Unknown:
    tally = closed_tally(m.variables, results, m.constraints)
    if tally is not None:
        return tally.distinct
    return exact.count(exact.Relation((), m.variables, results, m.constraints))


def _distinct_of_union(maps: Sequence[IndexingMap]) -> int | Unknown:
    """The number of results of several maps, which may have results in common."""
    images = [replace(m, dims=(), ranges=(*m.dims, *m.ranges)) for m in maps]
    return methods.Region.of(images, len(maps[0].results)).count()


def _overlapping(maps: Sequence[IndexingMap]) -> list[list[IndexingMap]]:
    """The maps in groups: intervals show that maps of different groups have no common result."""
    if len(maps) < 2:
        return [[m] for m in maps]
    groups: list[list[IndexingMap]] = []
    for m in dict.fromkeys(maps):
        near = [group for group in groups if any(not are_apart(m, other) for other in group)]
        groups = [group for group in groups if group not in near]
        groups.append([m, *[other for group in near for other in group]])
    return groups


def are_apart(first: IndexingMap, second: IndexingMap) -> bool:
    """Return True if intervals show that two maps have no result in common.

    >>> low, high = [IndexingMap.over((4,), lambda d, k=k: [d[0] + k]) for k in (0, 4)]
    >>> are_apart(low, high), are_apart(low, low)
    (True, False)
    """
    pairs = zip(first.result_bounds, second.result_bounds, strict=True)
    common = [intersect(a, b) for a, b in pairs]
    return any(low > high for low, high in common)

"""Counts of the points and of the results of several maps, exact or upper bounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from hlo.shapes.shape import Shape
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.multiplicity import multiplicity
from indexing.memory.movement.amounts import Amount
from indexing.memory.movement.part_padding import ArrayPart
from indexing.memory.movement.starts import is_total, without_starts
from simplifier.atoms import Variable
from simplifier.unknown import Unknown

Maps = tuple[IndexingMap, ...]


@dataclass(slots=True)
class Counter:
    """Counts of maps, each made once: many instructions of a module have equal maps."""

    _points: dict[IndexingMap, Amount | Unknown] = field(default_factory=dict)
    _results: dict[tuple[Maps, int], Amount] = field(default_factory=dict)

    def points(self, maps: Sequence[IndexingMap]) -> Amount | Unknown:
        """Return the number of points of all maps: an element reached twice counts twice."""
        total = Amount(0)
        for m in maps:
            if m not in self._points:
                self._points[m] = _points(m)
            amount = self._points[m]
            if isinstance(amount, Unknown):
                return amount
            total = total.plus(amount)
        return total

    def results(self, maps: Sequence[IndexingMap], shape: Shape) -> Amount:
        """Return the number of distinct elements of an array that the maps reach."""
        key = tuple(maps), shape.size
        if key not in self._results:
            self._results[key] = self._counted_results(key[0], shape.size)
        return self._results[key]

    def _counted_results(self, maps: Maps, size: int) -> Amount:
        if not maps or not size:
            return Amount(0)
        exact = tuple([m for m in maps if m.grade == "exact" and all(map(is_total, m.runtime))])
        certain = _distinct(exact)
        if certain == size or (len(exact) == len(maps) and isinstance(certain, int)):
            return Amount(certain)
        most = _distinct(maps) if len(exact) < len(maps) else certain
        if isinstance(most, Unknown):
            amounts = [self._at_most(m, size) for m in maps]
            most = min(size, sum(amounts))
        return Amount(most) if most == certain else Amount(most, "may")

    def _at_most(self, m: IndexingMap, size: int) -> int:
        own = _distinct((m,))
        if isinstance(own, int):
            return own
        points = self.points((m,))
        return size if isinstance(points, Unknown) else min(size, points.number)


def _points(m: IndexingMap) -> Amount | Unknown:
    """Return the number of points, for any values of the runtime variables."""
    grade = m.grade if all(map(is_total, m.runtime)) else "may"
    counted = _total(without_starts(m))
    if isinstance(counted, int):
        return Amount(counted, grade)
    starts = {rt.variable for rt in m.runtime}
    static = [c for c in m.constraints if starts.isdisjoint(c.expr.variables())]
    results = [variable.as_expr() for variable in m.dims]
    known = IndexingMap.of(m.dims, results, ranges=m.ranges, constraints=static)
    most = _total(known)
    if isinstance(most, Unknown):
        return most
    return Amount(most, grade if len(static) == len(m.constraints) else "may")


def _total(m: IndexingMap) -> int | Unknown:
    reads = multiplicity(m)
    return reads if isinstance(reads, Unknown) else reads.total


def _distinct(maps: Maps) -> int | Unknown:
    """Return the number of distinct results, if no runtime variable affects it.

    Maps whose windows are moved by the same start reach as many elements for each start.
    """
    if not maps:
        return 0
    rank = max(len(m.dims) for m in maps)
    reads = multiplicity([_with_rank(without_starts(m), rank) for m in maps])
    distinct = reads if isinstance(reads, Unknown) else reads.distinct
    if not isinstance(distinct, Unknown) or not any(m.runtime for m in maps):
        return distinct
    part = ArrayPart.of(maps, len(maps[0].results))
    return distinct if part is None else part.size


def _with_rank(m: IndexingMap, rank: int) -> IndexingMap:
    """Return the map with further dimensions of size 1."""
    if len(m.dims) == rank:
        return m
    more = [Variable(f"d{k}", 0, 0) for k in range(len(m.dims), rank)]
    return IndexingMap((*m.dims, *more), m.ranges, m.runtime, m.results, m.constraints, m.grade)

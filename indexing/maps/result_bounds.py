"""Result bounds that the expressions of a map do not imply.

The results of ``first.then(second)`` are within the result bounds of `second`, in whatever form
they are simplified.  Composition therefore records `second` in the new map, so the next composition
needs fewer constraints.  The record is not part of the map's value: equal maps may have different
records, and ``dataclasses.replace`` drops it.
"""

from __future__ import annotations

from indexing.maps.indexing_map import IndexingMap
from indexing.maps.map_fields import MapFields, set_last_map
from simplifier import laws, trace
from simplifier.atoms import Variable
from simplifier.bounds import lies_in
from simplifier.constraints import Constraint
from simplifier.interval import Interval, contains, intersect
from simplifier.linear import Expr


def outside(indexing_map: MapFields, box: tuple[Variable, ...]) -> list[int]:
    """Indices of the results that may be out of the bounds of `box`, in order."""
    results: tuple[Expr, ...] = indexing_map.results
    places: list[int] = []
    for k, variable in enumerate(box):
        result = results[k]
        lower, upper = variable.lower, variable.upper
        own = result.bounds_memo
        if own is not None:
            if lower <= own[0] and own[1] <= upper:
                continue  # most results; no calls
        elif result.modulus and lower <= 0 and result.modulus - 1 <= upper:
            continue
        if _may_be_outside(indexing_map, k, (lower, upper)):
            places.append(k)
    return places


def _may_be_outside(m: MapFields, k: int, interval: Interval) -> bool:
    """False if result k of the map lies in `interval`."""
    last, result = m._last, m.results[k]
    if last is not None:
        recorded = last.results[k]
        if lies_in(recorded, interval) or _is_stated(recorded, last.constraints, interval):
            if trace.records and not contains(interval, result.bounds):
                lower, upper = interval
                trace.record(laws.OMIT_RESULT_BOUNDS, f"{result} in [{lower}, {upper}]", "true")
            return False
    if lies_in(result, interval) or _is_stated(result, m.constraints, interval):
        return False
    return last is None or not contains(interval, intersect(result.bounds, recorded.bounds))


def _is_stated(expr: Expr, constraints: tuple[Constraint, ...], interval: Interval) -> bool:
    """True if a constraint on precisely the terms of `expr` implies that it lies in `interval`."""
    for constraint in constraints:
        if constraint.expr.parts == expr.parts:
            offset = expr.constant - constraint.expr.constant
            if contains(interval, (constraint.lower + offset, constraint.upper + offset)):
                return True
    return False


def record_last_map(composite: MapFields, last: MapFields) -> None:
    """Record that the results of `composite` are results of `last`, or of the last map of a chain.

    A map with runtime variables is not recorded: `composite` may be memoised, and would keep a
    module alive.
    """
    known = last._last or last
    if not known.runtime:
        set_last_map(composite, known)


def copy_last_map(source: IndexingMap, target: IndexingMap) -> IndexingMap:
    """Copy the last map of `source` to `target`, which has the same values as results."""
    if target is not source and source._last is not None:
        record_last_map(target, source._last)
    return target

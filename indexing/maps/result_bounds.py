"""Result bounds that the expressions of a map do not imply.

The results of ``first.then(second)`` are within the result bounds of `second`, in whatever form
they are simplified.  Composition therefore records `second` in the new map, so the next composition
needs fewer constraints.  The record is not part of the map's value: equal maps may have different
records, and ``dataclasses.replace`` drops it.
"""

from __future__ import annotations

from indexing.maps.indexing_map import IndexingMap
from simplifier import laws, trace
from simplifier.atoms import Variable
from simplifier.bounds import lies_in
from simplifier.interval import contains, intersected
from simplifier.linear import Expr


def outside(indexing_map: IndexingMap, box: tuple[Variable, ...]) -> list[int]:
    """Indices of the results that may be out of the bounds of `box`, in order."""
    last = indexing_map._last
    results: tuple[Expr, ...] = indexing_map.results
    places: list[int] = []
    for k, variable in enumerate(box):
        result = results[k]
        own = result.bounds_memo
        if own is not None and variable.lower <= own[0] and own[1] <= variable.upper:
            continue  # most results; no calls
        recorded = None if last is None else last.results[k]
        if recorded is not None and lies_in(recorded, variable.bounds):
            if trace.records and not contains(variable.bounds, result.bounds):
                within = f"[{variable.lower}, {variable.upper}]"
                trace.record(laws.OMIT_RESULT_BOUNDS, f"{result} in {within}", "true")
        elif not lies_in(result, variable.bounds):
            both = intersected(result.bounds, recorded.bounds) if recorded else result.bounds
            if not contains(variable.bounds, both):
                places.append(k)
    return places


def record_last_map(composite: IndexingMap, last: IndexingMap) -> IndexingMap:
    """Record that the results of `composite` are results of `last`, or of the last map of a chain.

    A map with runtime variables is not recorded: `composite` may be memoised, and would keep a
    module alive.
    """
    last = last._last or last
    if not last.runtime:
        object.__setattr__(composite, "_last", last)
    return composite


def copy_last_map(source: IndexingMap, target: IndexingMap) -> IndexingMap:
    """Copy the last map of `source` to `target`, which has the same values as results."""
    if target is not source and source._last is not None:
        record_last_map(target, source._last)
    return target

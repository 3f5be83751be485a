"""Result bounds that the expressions of a map do not imply.

The results of ``first.then(second)`` are within the result bounds of `second`, in whatever form
they are simplified.  Composition therefore notes `second` in the new map, and the next composition
needs fewer constraints.  The note is not part of the map's value: equal maps may have different
notes, and ``dataclasses.replace`` drops it.
"""

from __future__ import annotations

from collections.abc import Sequence

from indexing.maps.indexing_map import IndexingMap
from simplifier import laws, trace
from simplifier.atoms import Variable
from simplifier.interval import contains, intersected


def outside(m: IndexingMap, box: Sequence[Variable]) -> list[int]:
    """Indices of the results that may be out of the bounds of `box`, in order."""
    noted = [r.bounds for r in m._last.results] if m._last else None
    places: list[int] = []
    for k, (variable, result) in enumerate(zip(box, m.results, strict=True)):
        if noted and contains(variable.bounds, noted[k]):
            if trace.records and not contains(variable.bounds, result.bounds):
                within = f"[{variable.lower}, {variable.upper}]"
                trace.record(laws.OMIT_RESULT_BOUNDS, f"{result} in {within}", "true")
            continue  # avoids computing the result's own bounds
        own = intersected(result.bounds, noted[k]) if noted else result.bounds
        if not contains(variable.bounds, own):
            places.append(k)
    return places


def record_last_map(made: IndexingMap, last: IndexingMap) -> IndexingMap:
    """Note in `made` that its results are results of `last`, or of the last map of a chain.

    A map with runtime variables is not noted: `made` may be memoised, and would keep a module
    alive.
    """
    last = last._last or last
    if not last.runtime:
        object.__setattr__(made, "_last", last)
    return made


def copy_last_map(source: IndexingMap, made: IndexingMap) -> IndexingMap:
    """Copy the note of `source` to `made`, which has the same values as results."""
    if made is not source and source._last is not None:
        record_last_map(made, source._last)
    return made

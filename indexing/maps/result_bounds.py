"""Bounds of the results of a map that its own expressions do not imply.

The results of ``first.then(second)`` lie where those of `second` do, whatever their text becomes.
So composition notes `second`, and the next composition need not ask.  A note is a fact of the
relation and no part of the map: equal maps may have different ones, and a map that ``replace``
makes has none.
"""

from __future__ import annotations

from collections.abc import Sequence

from indexing.maps.indexing_map import IndexingMap
from simplifier.atoms import Variable
from simplifier.interval import contains, intersected


def outside(found: IndexingMap, box: Sequence[Variable]) -> list[int]:
    """The places of the results that may lie outside of the intervals of `box`, in order."""
    noted = [r.bounds for r in found._last.results] if found._last else None
    places: list[int] = []
    for k, (variable, result) in enumerate(zip(box, found.results, strict=True)):
        if noted and contains(variable.bounds, noted[k]):
            continue  # the result's own bounds take longer
        own = intersected(result.bounds, noted[k]) if noted else result.bounds
        if not contains(variable.bounds, own):
            places.append(k)
    return places


def note_end(made: IndexingMap, last: IndexingMap) -> IndexingMap:
    """`made`, each of whose results is one of the map `last`; of a chain, the last one is noted.

    Not one with runtime variables: `made` may be remembered, and they lead to a whole module.
    """
    last = last._last or last
    if not last.runtime:
        object.__setattr__(made, "_last", last)
    return made


def copy_note(source: IndexingMap, made: IndexingMap) -> IndexingMap:
    """`made`, whose results have the values of those of `source`, with what is noted there."""
    if made is not source and source._last is not None:
        note_end(made, source._last)
    return made

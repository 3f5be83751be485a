"""Remove maps that are equal to another map as relations.

Composition removes structurally equal maps.  The remaining maps are compared as relations: the same
elements may be read through other range variables (``s0 - 16`` with s0 in [16, 31], and ``s0`` in
[0, 15]).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from indexing import methods
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.memoised import memoised_maps
from simplifier import laws, trace
from simplifier.atoms import Floor
from simplifier.interval import Interval

MAX_COMPARED = 32
"""Maximum number of maps to compare in pairs; more maps are returned unchanged."""

BUDGET = 20_000
"""isl operations for one pair, a few milliseconds; beyond, both maps are kept."""


def deduplicate(maps: Iterable[IndexingMap]) -> tuple[IndexingMap, ...]:
    """Return `maps` in order, one for each relation: the simplest of the equal maps.

    If ISL's budget does not suffice to compare two maps, both are kept.

    >>> from indexing.maps.text import parse_map
    >>> shifted = parse_map("()[s0] -> (s0 - 16), domain: s0 in [16, 31]")
    >>> print(*deduplicate([shifted, parse_map("()[s0] -> (s0), domain: s0 in [0, 15]")]))
    ()[s0] -> (s0), domain: s0 in [0, 15]
    """
    given = tuple(maps)
    if not 1 < len(given) <= MAX_COMPARED:
        return given
    kept: list[IndexingMap] = []
    for candidate in given:
        for k, other in enumerate(kept):
            if _same(candidate, other):
                kept[k] = min(other, candidate, key=_cost_of_map)
                if trace.records:
                    trace.record(laws.DROP_EQUAL_MAP, f"{other} or {candidate}", kept[k])
                break
        else:
            kept.append(candidate)
    return tuple(kept)


@memoised_maps(1 << 8)
def _same(a: IndexingMap, b: IndexingMap) -> bool:
    """True if both maps are proved to be the same relation.

    Different bounds or sources of runtime variables need no ISL query.
    """
    if _sources(a) != _sources(b) or hull(a) != hull(b):
        return False
    return methods.are_equal(a, b, budget=BUDGET)


def _sources(of: IndexingMap) -> Counter[object]:
    """The source and the bounds of each runtime variable."""
    return Counter(
        [
            (rt.name if rt.array is None else rt.array, rt.clamp, rt.variable.bounds)
            for rt in of.runtime
        ]
    )


def hull(of: IndexingMap) -> list[Interval]:
    """Bounds of each dimension and each result."""
    return [v.bounds for v in of.dims] + [result.bounds for result in of.results]


def _cost_of_map(of: IndexingMap) -> tuple[bool, int, int, int, int]:
    """Sort key: exact maps first; then few floors, constraints, variables, and small offsets."""
    exprs = [*of.results, *[c.expr for c in of.constraints]]
    floors = sum(isinstance(atom, Floor) for expr in exprs for atom, _ in expr.terms)
    offsets = sum(abs(expr.constant) for expr in exprs)
    return of.grade == "may", floors, len(of.constraints), len(of.variables), offsets

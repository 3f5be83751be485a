"""Remove maps that another map contains as a relation.

Composition removes structurally equal maps.  The remaining maps are compared as relations: the same
elements may be read through other range variables (``s0 - 16`` with s0 in [16, 31], and ``s0`` in
[0, 15]), or be a part of the elements that another map reads (``d0``, and ``s0`` in [0, 31]).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from indexing.maps.equality import difference, is_contained
from indexing.maps.indexing_map import IndexingMap
from simplifier import laws, trace
from simplifier.atoms import Floor
from simplifier.interval import Interval, contains

MAX_COMPARED = 32
"""Maximum number of maps to compare in pairs; more maps are returned unchanged."""

BUDGET = 20_000
"""isl operations for one pair, a few milliseconds; beyond, both maps are kept."""


def deduplicate(maps: Iterable[IndexingMap]) -> tuple[IndexingMap, ...]:
    """Return `maps` in order without those that another one contains; of equal maps, the simplest.

    An exact map is kept beside a `may` map that contains it.  If ISL's budget does not suffice to
    compare two maps, both are kept.

    >>> from indexing.maps.text import parse_map
    >>> shifted = parse_map("()[s0] -> (s0 - 16), domain: s0 in [16, 31]")
    >>> print(*deduplicate([shifted, parse_map("()[s0] -> (s0), domain: s0 in [0, 15]")]))
    ()[s0] -> (s0), domain: s0 in [0, 15]
    >>> row = parse_map("(d0)[s0] -> (s0), domain: d0 in [0, 15], s0 in [0, 15]")
    >>> print(*deduplicate([parse_map("(d0) -> (d0), domain: d0 in [0, 15]"), row]))
    (d0)[s0] -> (s0), domain: d0 in [0, 15], s0 in [0, 15]
    """
    given = tuple(maps)
    if not 1 < len(given) <= MAX_COMPARED:
        return given
    kept: list[IndexingMap] = []
    for candidate in given:
        for k, other in enumerate(kept):
            if (_same if candidate.runtime else _same_once)(candidate, other):
                kept[k] = min(other, candidate, key=_cost)
                if trace.records:
                    trace.record(laws.DROP_EQUAL_MAP, f"{other} or {candidate}", kept[k])
                break
        else:
            kept.append(candidate)
    return tuple(_uncontained(kept))


def _uncontained(maps: list[IndexingMap]) -> list[IndexingMap]:
    """The maps that no other one contains; no two of them are known to be equal."""
    kept = list(maps)
    for part in maps:
        others = [other for other in kept if other is not part]
        whole = next((other for other in others if _contains(other, part)), None)
        if whole is not None:
            kept = others
            if trace.records:
                trace.record(laws.DROP_CONTAINED_MAP, f"{part} or {whole}", whole)
    return kept


def _contains(whole: IndexingMap, part: IndexingMap) -> bool:
    """True if `whole` is proved to relate all pairs of `part`, and is exact if `part` is."""
    if part.grade == "exact" and whole.grade == "may":
        return False
    if not all(contains(b, a) for a, b in zip(_hull(part), _hull(whole), strict=True)):
        return False
    if not whole.ranges and not whole.runtime and _differs_at_a_corner(whole, part):
        return False
    return (_contains_now if part.runtime or whole.runtime else _contains_once)(whole, part)


def _differs_at_a_corner(whole: IndexingMap, part: IndexingMap) -> bool:
    """True if a function has another result than `part` at a corner of the box of `part`."""
    for end in ("lower", "upper"):
        at = {v: getattr(v, end) for v in part.variables}
        kinds = part.dims, part.ranges, [rt.variable for rt in part.runtime]
        results = part.evaluate(*[[at[v] for v in kind] for kind in kinds])
        if results is not None and whole.evaluate([at[v] for v in part.dims]) != results:
            return True
    return False


@lru_cache(maxsize=1 << 12)
def _contains_once(whole: IndexingMap, part: IndexingMap) -> bool:
    """`_contains_now`, memoised: maps without runtime variables keep no module alive."""
    return _contains_now(whole, part)


def _contains_now(whole: IndexingMap, part: IndexingMap) -> bool:
    return is_contained(part, whole, budget=BUDGET) is True


@lru_cache(maxsize=1 << 12)
def _same_once(a: IndexingMap, b: IndexingMap) -> bool:
    """`_same`, memoised: maps without runtime variables keep no module alive."""
    return _same(a, b)


def _same(a: IndexingMap, b: IndexingMap) -> bool:
    """True if both maps are proved to be the same relation; different bounds need no ISL query."""
    if len(a.runtime) != len(b.runtime) or _hull(a) != _hull(b):
        return False
    return difference(a, b, budget=BUDGET) is None


def _hull(of: IndexingMap) -> list[Interval]:
    return [v.bounds for v in of.dims] + [result.bounds for result in of.results]


def _cost(of: IndexingMap) -> tuple[bool, int, int, int, int]:
    """Sort key: exact maps first; then few floors, constraints, variables, and small offsets."""
    exprs = [*of.results, *[c.expr for c in of.constraints]]
    floors = sum(isinstance(atom, Floor) for expr in exprs for atom, _ in expr.terms)
    offsets = sum(abs(expr.constant) for expr in exprs)
    return of.grade == "may", floors, len(of.constraints), len(of.variables), offsets

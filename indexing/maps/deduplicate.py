"""Maps without those that say again what another one says.

Composition finds equal maps by structure.  What is left is compared as relations: the same elements
may be read through other range variables (``s0 - 16`` with s0 in [16, 31], and ``s0`` in [0, 15]).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from indexing.maps.equality import difference
from indexing.maps.indexing_map import IndexingMap
from simplifier.atoms import Floor
from simplifier.interval import Interval

# Every pair is compared; so many maps are left as they are.
MAX_COMPARED = 32
# Operations of ISL for one pair: some milliseconds.  Beyond, both stay.
BUDGET = 20_000


def deduplicate(maps: Iterable[IndexingMap]) -> tuple[IndexingMap, ...]:
    """`maps` in order, with the simplest of those that are equal, in place of the first of them.

    Where ISL's budget does not suffice to compare two maps, both stay.

    >>> from indexing.maps.text import parse_map
    >>> shifted = parse_map("()[s0] -> (s0 - 16), domain: s0 in [16, 31]")
    >>> print(*deduplicate([shifted, parse_map("()[s0] -> (s0), domain: s0 in [0, 15]")]))
    ()[s0] -> (s0), domain: s0 in [0, 15]
    """
    given = tuple(maps)
    if not 1 < len(given) <= MAX_COMPARED:
        return given
    kept: list[IndexingMap] = []
    for found in given:
        for k, other in enumerate(kept):
            if (_same if found.runtime else _same_once)(found, other):
                kept[k] = min(other, found, key=_cost)
                break
        else:
            kept.append(found)
    return tuple(kept)


@lru_cache(maxsize=1 << 12)
def _same_once(a: IndexingMap, b: IndexingMap) -> bool:
    """`_same` for maps that lead to no module, which the memory would keep alive."""
    return _same(a, b)


def _same(a: IndexingMap, b: IndexingMap) -> bool:
    """The same relation, as far as that is decided; bounds that differ settle it without ISL."""
    if len(a.runtime) != len(b.runtime) or _hull(a) != _hull(b):
        return False
    return difference(a, b, budget=BUDGET) is None


def _hull(of: IndexingMap) -> list[Interval]:
    return [v.bounds for v in of.dims] + [result.bounds for result in of.results]


def _cost(of: IndexingMap) -> tuple[bool, int, int, int, int]:
    """Exact before may, few floors, few constraints, few variables, small offsets."""
    exprs = [*of.results, *[c.expr for c in of.constraints]]
    floors = sum(isinstance(atom, Floor) for expr in exprs for atom, _ in expr.terms)
    offsets = sum(abs(expr.constant) for expr in exprs)
    return of.grade == "may", floors, len(of.constraints), len(of.variables), offsets

"""Maps to one array that lead only to elements to which another map leads, too."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Final

from indexing.maps.deduplicate import BUDGET, MAX_COMPARED, hull
from indexing.maps.equality import is_contained
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.memoised import memoised_maps
from simplifier.interval import contains

MAX_LARGE: Final = 4
"""The number of maps that are compared with all others, if there are too many to compare all."""


def containers(maps: Sequence[IndexingMap]) -> list[int | None]:
    """Return for each map the position of a map that contains it and is not contained itself.

    None stands for a map that no other is proved to contain; of many maps, only the largest are
    compared.  No `may` map contains an `exact` map, whose elements are certainly needed.  Of equal
    maps, the last contains the others.

    >>> row = IndexingMap.over((4,), lambda d, s: [s[0]], ranges=(4,))
    >>> containers([IndexingMap.identity((4,)), row, row.with_grade("may")])
    [1, None, 1]
    """
    inside: list[int | None] = [None] * len(maps)
    wholes = range(len(maps)) if len(maps) <= MAX_COMPARED else _largest(maps)
    for k, part in enumerate(maps):
        kept = (n for n in wholes if inside[n] is None and n != k)
        inside[k] = next((n for n in kept if _contains(maps[n], part)), None)
    return [_last(inside, k) for k in range(len(maps))]


def _largest(maps: Sequence[IndexingMap]) -> list[int]:
    """Return the positions of the maps with the largest bounds."""
    volumes = [prod(upper - lower + 1 for lower, upper in hull(m)) for m in maps]
    return sorted(sorted(range(len(maps)), key=lambda k: -volumes[k])[:MAX_LARGE])


def _last(containing: Sequence[int | None], position: int) -> int | None:
    """Follow the positions of larger maps to one that no other contains."""
    whole = containing[position]
    while whole is not None and containing[whole] is not None:
        whole = containing[whole]
    return whole


def _contains(whole: IndexingMap, part: IndexingMap) -> bool:
    """True if `whole` is proved to relate all pairs of `part`, and is exact if `part` is."""
    if part.grade == "exact" and whole.grade == "may":
        return False
    if not all(contains(b, a) for a, b in zip(hull(part), hull(whole), strict=True)):
        return False
    if not whole.ranges and not whole.runtime and _differs_at_a_corner(whole, part):
        return False
    return _is_proved(whole, part)


def _differs_at_a_corner(whole: IndexingMap, part: IndexingMap) -> bool:
    """True if a function has another result than `part` at a corner of the box of `part`."""
    for end in ("lower", "upper"):
        at = {v: getattr(v, end) for v in part.variables}
        kinds = part.dims, part.ranges, [rt.variable for rt in part.runtime]
        results = part.evaluate(*[[at[v] for v in kind] for kind in kinds])
        if results is not None and whole.evaluate([at[v] for v in part.dims]) != results:
            return True
    return False


@memoised_maps(1 << 8)
def _is_proved(whole: IndexingMap, part: IndexingMap) -> bool:
    return is_contained(part, whole, budget=BUDGET) is True

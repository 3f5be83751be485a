"""Hulls of map sets: one `may` map between two arrays instead of many maps."""

from __future__ import annotations

from indexing.maps.map_set import MapSet
from indexing.maps.options import Options
from indexing.maps.over_approximation import hull
from indexing.maps.reasons import Reason


def hull_of_set(maps: MapSet, options: Options, reason: Reason) -> MapSet:
    """Return a set with one `may` map that contains all of several maps.

    Maps that decide only control have a map of their own.

    Args:
        reason: the budget because of which the maps are united.

    >>> from indexing.maps.indexing_map import dims
    >>> from indexing.maps.space_pairs import SpacePair
    >>> from indexing.maps.text import parse_map
    >>> text = "(d0)[s0] -> (d0, s0), domain: d0 in [{0}, {1}], s0 in [{0}, {2}]"
    >>> maps = [parse_map(text.format(k, k + 2, 2 * k)) for k in range(3)]
    >>> several = MapSet(maps, SpacePair(dims((5,)), (5, 5)))
    >>> one = hull_of_set(several, Options(), Reason("budget: two maps"))
    >>> print(*one.maps, *one.reasons)
    (d0)[s0] -> (d0, s0), domain: d0 in [0, 4], s0 in [0, 4] budget: two maps
    """
    if len(maps.maps) < 2 or maps.spaces.start is None:
        return maps
    fewer = maps.copy()
    fewer.coalesce(is_readable=False)
    if len(fewer.maps) < len(maps.maps) and all(len(group) < 2 for _, group in fewer.by_control):
        return fewer
    maps = fewer
    united = maps.like(())
    for is_control, group in maps.by_control:
        if len(group) == 1:
            united.extend(group, control=group if is_control else ())
        elif group:
            whole = hull(group, maps.spaces, has_distances=not options.in_loop)
            whole = options.simplify_map(whole)
            united.extend([whole], control=[whole] if is_control else ())
    united.add_reasons([reason])
    united.is_over_budget = options.exact
    return united

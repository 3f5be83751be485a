"""Compositions of edges and map sets, each made once.

Programs repeat few relations: the layers of a network are equal, and so are the maps to most
parameters of one shape.  A walk therefore shares equal map sets, and composes an edge with a shared
set once.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable
from dataclasses import dataclass
from typing import Final

from indexing.maps.answers import Unknown
from indexing.maps.explanation import is_explaining
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.map_set import MapSet
from indexing.maps.options import Options
from indexing.maps.reasons import Reason
from indexing.maps.space_pairs import Space, SpacePair
from indexing.ops.access_edge import AccessEdge

MAX_SHARED: Final = 1 << 16
"""Limit on the maps of the sets that one walk shares; beyond it, they are composed again."""


@dataclass(frozen=True, slots=True, eq=False)
class EdgeMaps:
    """The part of an edge on which compositions depend; a walk shares equal parts."""

    maps: tuple[IndexingMap, ...]
    unknown: Unknown | None
    reasons: tuple[Reason, ...]
    control: Collection[IndexingMap]


class Compositions:
    """The map sets of one walk.

    Equal sets are one object, so they are never changed.  Certified and explained compositions are
    not shared: each of them is counted or recorded.

    Args:
        options: the options of the sets.
        edges_first: compose ``x -> maps(edge(x))``; otherwise ``x -> edge(maps(x))``.
    """

    def __init__(self, options: Options, *, edges_first: bool) -> None:
        self._options, self._edges_first = options, edges_first
        self._is_sharing = not (options.certify or is_explaining())
        self._edges: Final[dict[Hashable, EdgeMaps]] = {}
        self._sets: Final[dict[Hashable, MapSet]] = {}
        self._firsts: Final[dict[tuple[Space, EdgeMaps, MapSet], MapSet]] = {}
        self._sums: Final[dict[tuple[MapSet, EdgeMaps, MapSet], MapSet]] = {}
        self._size = 0

    def edge(self, edge: AccessEdge) -> EdgeMaps:
        """Return the part of `edge` on which compositions depend."""
        if not self._is_sharing:
            return EdgeMaps(edge.maps, edge.unknown, edge.reasons, edge.control)
        is_exact = edge.unknown is None and not edge.reasons and not edge.control
        key = (
            edge.maps
            if is_exact
            else (edge.maps, edge.unknown, edge.reasons, frozenset(edge.control))
        )
        part = self._edges.get(key)
        if part is None:
            part = EdgeMaps(edge.maps, edge.unknown, edge.reasons, edge.control)
            self._edges[key] = part
        return part

    def shared(self, maps: MapSet) -> MapSet:
        """Return the shared set that is equal to `maps`."""
        return self._sets.setdefault(maps.state, maps) if self._is_sharing else maps

    def first(self, space: Space, edge: EdgeMaps, maps: MapSet) -> MapSet:
        """Return the compositions of an edge and `maps`.

        Args:
            space: the index space of the array at the end of the edge that `maps` do not reach.
        """
        key = space, edge, maps
        known = self._firsts.get(key)
        if known is not None:
            return known
        there = maps.spaces
        spaces = (
            SpacePair(space, there.sizes) if self._edges_first else SpacePair(there.start, space)
        )
        total = MapSet((), spaces, self._options)
        self._add(total, edge, maps)
        if self._is_sharing:
            total = self._counted(total)
            self._firsts[key] = total
        return total

    def added(self, total: MapSet, edge: EdgeMaps, maps: MapSet) -> MapSet:
        """Return `total` with the compositions of an edge and `maps`.

        Args:
            total: a result of `first` or `added`, which is not used any more.
        """
        if not self._is_sharing:
            self._add(total, edge, maps)
            return total
        key = total, edge, maps
        known = self._sums.get(key)
        if known is None:
            copied = total.copy()
            self._add(copied, edge, maps)
            known = self._sums[key] = self._counted(copied)
        return known

    def _counted(self, maps: MapSet) -> MapSet:
        """Return the shared set that is equal to `maps`; forget all sets beyond the limit."""
        self._size += 1 + len(maps.maps)
        if self._size > MAX_SHARED:
            self._size = 0
            for table in (self._edges, self._sets, self._firsts, self._sums):
                table.clear()
        return self.shared(maps)

    def _add(self, total: MapSet, edge: EdgeMaps, maps: MapSet) -> None:
        first, second = (edge, maps) if self._edges_first else (maps, edge)
        total.is_over_budget |= maps.is_over_budget
        total.add_composed(
            first.maps,
            second.maps,
            maps.unknown if edge.unknown is None else edge.unknown,
            first.reasons + second.reasons,
            (first.control, second.control),
        )

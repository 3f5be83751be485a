"""Changes of the map sets of a loop, each made once.

A loop carries many arrays of one shape, such as the weights of equal layers.  Most of their map
sets are equal, and so are the sets that are composed from them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from indexing.dataflow.loops.steps import Reads
from indexing.maps.explanation import is_explaining
from indexing.maps.map_set import MapSet
from simplifier.unknown import first_unknown


class Sharing:
    """The map sets of one loop.  Equal changes of equal sets give one set, which never changes.

    Explained changes are not shared: each of them is recorded.
    """

    def __init__(self) -> None:
        self._known: dict[Hashable, MapSet] = {}

    def of(self, maps: MapSet, name: str, change: Callable[[MapSet], MapSet]) -> MapSet:
        """Return ``change(maps)``.

        Args:
            name: the name of the change.
        """
        if is_explaining():
            return change(maps)
        key = (name, maps.state)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = change(maps)
        return known

    def change_copy(self, total: MapSet, key: Hashable, change: Callable[[MapSet], None]) -> MapSet:
        """Return a copy of `total` to which `change` was applied.

        Args:
            key: what the change depends on, besides `total`.
        """

        def copy(maps: MapSet) -> MapSet:
            copied = maps.copy()
            change(copied)
            return copied

        if is_explaining():
            return copy(total)
        place = (total.state, key)
        known = self._known.get(place)
        if known is None:
            known = self._known[place] = copy(total)
        return known

    def compose_reads(
        self, total: MapSet, reads: Reads, maps: MapSet, *, only_control: bool = False
    ) -> MapSet:
        """Return `total` with ``x -> maps(reads(x))``.

        Args:
            only_control: mark all maps of the result as control.
        """
        unknown = first_unknown(reads.unknown, maps.unknown)
        reasons = (*reads.reasons, *maps.all_reasons)

        def compose(copied: MapSet) -> None:
            control = ((), ()) if only_control else (reads.control, maps.control)
            copied.add_composed(reads.maps, maps.effective, unknown, reasons, control)
            if only_control:
                copied.control.update(copied.maps)

        read = (tuple(reads.maps), reads.unknown, reads.reasons, frozenset(reads.control))
        return self.change_copy(total, (read, maps.state, only_control), compose)

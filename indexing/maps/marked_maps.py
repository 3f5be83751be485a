"""`MarkedMaps`: maps between two arrays, with the reasons why they are inexact or incomplete."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from indexing.maps.answers import Unknown
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.reasons import MAX_REASONS, OMITTED, UNDECLARED, Reason


class MarkedMaps:
    """Maps between two arrays, with their marks.

    Attributes:
        maps: the maps, as the keys of a dictionary in insertion order.
        control: the maps whose elements decide only control: which iterations or branches are
            executed.
        unknown: the reason why some accesses are unknown, or `None`.
        is_over_budget: True if maps were over-approximated although the option `exact` is set:
            the maps of this set, or of a set that it is composed from, had too many parts.
    """

    __slots__ = ("_hull", "_reasons", "control", "is_over_budget", "maps", "unknown")

    def __init__(self, maps: Iterable[IndexingMap]) -> None:
        self.maps: Final[dict[IndexingMap, None]] = dict.fromkeys(maps)
        self.control: Final[set[IndexingMap]] = set()
        self.unknown: Unknown | None = None
        self.is_over_budget = False
        self._reasons: dict[Reason, None] = {}
        self._hull: IndexingMap | None = None  # a `may` map that contains all, beyond the limit

    @property
    def effective(self) -> tuple[IndexingMap, ...]:
        """The maps; only the hull of them beyond the limit."""
        return tuple(self.maps) if self._hull is None else (self._hull,)

    @property
    def by_control(self) -> Iterator[tuple[bool, list[IndexingMap]]]:
        """The maps whose elements are data, with False, and those that decide only control."""
        for is_control in (False, True) if self.control else (False,):
            yield is_control, [m for m in self.effective if (m in self.control) == is_control]

    @property
    def lost_exactness(self) -> bool:
        """True if all maps are `may` because of the budget: exact pieces cannot make them exact."""
        return self.is_over_budget and all(m.grade == "may" for m in self.maps)

    @property
    def uncounted(self) -> Unknown | None:
        """Why the points of the maps may be fewer than the reads; `None` if they are not."""
        beyond = [r.text for r in self.reasons if r is OMITTED or r.text.startswith("budget")]
        return Unknown(f"cannot count reads: {beyond[0]}") if beyond else None

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """Why maps of the set have the grade "may"; ``()`` if all of them are exact.

        A reason is kept if the maps that it led to are subsumed by other `may` maps.
        """
        if self._reasons and any(m.grade == "may" for m in self.maps):
            return tuple(self._reasons)
        return ()

    @property
    def all_reasons(self) -> tuple[Reason, ...]:
        """Why maps of the set have, or may get, the grade "may"."""
        return tuple(self._reasons)

    def reasons_of(self, m: IndexingMap) -> tuple[Reason, ...]:
        """The reasons for the grade "may" of one map of the set; ``()`` if it is exact."""
        return self.reasons or (UNDECLARED,) if m.grade == "may" else ()

    def add_unknown(self, unknown: Unknown | None) -> None:
        """Record why maps may be missing; the first reason is kept."""
        if self.unknown is None:
            self.unknown = unknown

    def add_reasons(self, reasons: Iterable[Reason]) -> None:
        """Record why maps have the grade "may"; the first `MAX_REASONS` are kept."""
        for reason in reasons:
            if OMITTED in self._reasons:
                return
            if reason not in self._reasons:
                self._reasons[reason if len(self._reasons) < MAX_REASONS else OMITTED] = None

    def _keep(self, maps: Iterable[IndexingMap]) -> None:
        """Replace all maps; those of the new ones that decide only control are marked already."""
        kept = dict.fromkeys(maps)
        self.maps.clear()
        self.maps.update(kept)
        self.control.intersection_update(kept)

    def _replace(self, others: Callable[[list[IndexingMap]], list[IndexingMap]]) -> None:
        """Replace the maps of data, and those that decide only control, by `others` of them."""
        for is_control in (False, True) if self.control else (False,):
            old = [m for m in self.maps if (m in self.control) == is_control]
            new = others(old)
            if new == old:
                continue
            if not self.control:
                self._keep(new)
                continue
            gone = set(old).difference(new)
            for m in gone:
                del self.maps[m]
            self.control.difference_update(gone)
            if is_control:
                self.control.update([m for m in new if m not in self.maps])
            else:
                self.control.difference_update(new)
            self.maps.update(dict.fromkeys(new))

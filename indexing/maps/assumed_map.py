"""Maps that hold under assumptions about values, which `indexing.maps.assumptions` lists."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from indexing.maps.indexing_map import IndexingMap


class AssumedMap(IndexingMap):
    """A map of an answer that needs assumptions, by name.

    What is computed from it, such as its simplest form, is a plain map.
    """

    __slots__ = ("assumptions",)
    assumptions: tuple[str, ...]  # type: ignore[misc]

    def __eq__(self, other: object) -> bool:
        """Return True for a map of the same structure that needs the same assumptions."""
        equal = IndexingMap.__eq__(self, other)
        return equal and isinstance(other, AssumedMap) and self.assumptions == other.assumptions

    __hash__ = IndexingMap.__hash__

    def __str__(self) -> str:
        return super().__str__() + assuming_text(self.assumptions)

    def __reduce__(self) -> tuple[Any, ...]:
        cls, fields = IndexingMap.__reduce__(self)
        return _restore_map, (cls, fields, self.assumptions)


def _restore_map(
    cls: type[IndexingMap], fields: tuple[Any, ...], assumptions: tuple[str, ...]
) -> AssumedMap:
    """Return the pickled map."""
    return assumed_map(cls(*fields), assumptions)


def assuming_text(assumptions: tuple[str, ...]) -> str:
    """Return the end of the text of what needs assumptions; empty without any."""
    return f" assuming {', '.join(assumptions)}" if assumptions else ""


def assumed_map(m: IndexingMap, assumptions: tuple[str, ...]) -> AssumedMap:
    """Return a map that needs assumptions.

    >>> print(assumed_map(IndexingMap.identity((4,)), ("masked-softmax",)))
    (d0) -> (d0), domain: d0 in [0, 3] assuming masked-softmax
    """
    made = AssumedMap(m.dims, m.ranges, m.runtime, m.results, m.constraints, m.grade)
    object.__setattr__(made, "assumptions", assumptions)
    return made


def mark_assumptions(
    maps: Iterable[IndexingMap], others: Iterable[IndexingMap], assumptions: tuple[str, ...]
) -> tuple[IndexingMap, ...]:
    """Return the maps to an operand; all need the assumptions if without them, it has others."""
    maps = tuple(maps)
    if set(maps) == set(others):
        return maps
    return tuple([assumed_map(m, assumptions) for m in maps])

"""`AccessEdge`: how one instruction connects an array that it reads with one that it writes."""

from __future__ import annotations

from dataclasses import dataclass

from indexing.maps.answers import Unknown
from indexing.maps.arrays import ArrayRef, Path
from indexing.maps.indexing_map import IndexingMap


@dataclass(frozen=True, slots=True)
class AccessEdge:
    """How one instruction connects one array that it reads with one array that it writes.

    Attributes:
        operand, operand_path: the array that is read: a leaf of this operand.
        output_path: the leaf of the result that is written.
        maps: from output to operand where edges go backward, from operand to output where forward.
        unknown: why the maps cannot be said.
    """

    operand: int
    operand_path: Path
    output_path: Path
    maps: tuple[IndexingMap, ...] = ()
    unknown: Unknown | None = None


def identity(array: ArrayRef) -> tuple[IndexingMap, ...]:
    """Each element to itself; no map for a leaf without elements, such as a token."""
    shape = array.array_shape
    return () if shape is None else (IndexingMap.identity(shape),)

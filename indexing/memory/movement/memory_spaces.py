"""Traffic by memory space, with the padding of tiled layouts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from hlo.shapes.shape import Shape
from indexing.memory.executions import Executions
from indexing.memory.movement.amounts import Amount, TotalBounds, total_amount
from indexing.memory.movement.writes import Writes
from indexing.memory.spaces import space_of
from simplifier.unknown import Unknown


class SpaceTraffic(NamedTuple):
    """The bytes that one execution of an instruction moves from and to one memory space.

    Attributes:
        read: the bytes of the distinct elements that are read.
        written: the bytes of the arrays that are written.
        stored: both, with padding.
        elements: the number of elements that are read and written.
        padding: the bytes without an element in the tiles of layouts that hold these elements; the
            tiles of a part of an array may hold neighbours, too, which are not counted.
    """

    read: Amount = Amount(0)
    written: Amount = Amount(0)
    stored: Amount = Amount(0)
    elements: Amount = Amount(0)
    padding: Amount = Amount(0)

    @property
    def dense(self) -> Amount:
        """The bytes of elements that are read and written."""
        return self.read.plus(self.written)

    def plus(self, other: SpaceTraffic) -> SpaceTraffic:
        """Return the sum of both."""
        return SpaceTraffic(*[a.plus(b) for a, b in zip(self, other, strict=True)])


class SpaceTotals(NamedTuple):
    """Bounds of the bytes of all executions that are moved from and to one memory space."""

    read: TotalBounds
    written: TotalBounds
    stored: TotalBounds
    elements: TotalBounds
    padding: TotalBounds

    @classmethod
    def of(cls, own: SpaceTraffic, times: Executions) -> SpaceTotals:
        """Return the bounds for a number of executions."""
        return cls(*[TotalBounds.of(amount, times) for amount in own])

    def plus(self, other: SpaceTotals) -> SpaceTotals:
        """Return the bounds of the sum."""
        return SpaceTotals(*[a.plus(b) for a, b in zip(self, other, strict=True)])


def traffic_by_space(
    reads: Iterable[tuple[Shape, Amount, Amount, Amount]], writes: Writes
) -> dict[int, SpaceTraffic]:
    """Return the bytes that reads and writes move from and to each memory space.

    Args:
        reads: the shape of each array, with the elements and the bytes of it that are read, and the
            bytes of padding in their tiles.
        writes: the arrays that are written; unknown ones count nothing.
    """
    parts: dict[int, tuple[list[Amount], ...]] = {}  # read, written, elements, padding

    def add(shape: Shape, part: int, dense: Amount, elements: Amount, padding: Amount) -> None:
        own = parts.setdefault(space_of(shape), ([], [], [], []))
        for k, amount in ((part, dense), (2, elements), (3, padding)):
            own[k].append(amount)

    for shape, elements, dense, padding in reads:
        add(shape, 0, dense, elements, padding)
    for shape, padding in () if isinstance(writes, Unknown) else writes:
        add(shape, 1, Amount(shape.bytes), Amount(shape.size), padding)
    sums: dict[int, SpaceTraffic] = {}
    for space, own in sorted(parts.items()):
        read, written, elements, padding = map(total_amount, own)
        stored = total_amount([read, written, padding])
        sums[space] = SpaceTraffic(read, written, stored, elements, padding)
    return sums

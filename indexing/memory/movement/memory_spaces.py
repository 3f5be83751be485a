"""Traffic by memory space, with the padding of tiled layouts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from hlo.shapes.shape import Shape
from indexing.maps.indexing_map import Grade
from indexing.memory.executions import Executions
from indexing.memory.movement.amounts import Amount, TotalBounds, bytes_of
from indexing.memory.movement.writes import Writes
from indexing.memory.spaces import space_of
from simplifier.unknown import Unknown


class SpaceTraffic(NamedTuple):
    """The bytes that one execution of an instruction moves from and to one memory space.

    Attributes:
        read: the bytes of the distinct elements that are read.
        written: the bytes of the arrays that are written.
        stored: both, with padding; an upper bound if parts of arrays with padding are moved: a part
            moves at most the bytes of its array.
        elements: the number of elements that are read and written.
        padding: the stored bytes that hold no element; an upper bound if parts of arrays are moved.
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
    reads: Iterable[tuple[Shape, Amount, Amount]], writes: Writes
) -> dict[int, SpaceTraffic]:
    """Return the bytes that reads and writes move from and to each memory space.

    Args:
        reads: the shape of each array, with the elements and the bytes of it that are read.
        writes: the arrays that are written; unknown ones count nothing.
    """
    sums: dict[int, SpaceTraffic] = {}

    def add(shape: Shape, own: SpaceTraffic) -> None:
        space = space_of(shape)
        sums[space] = sums.get(space, SpaceTraffic()).plus(own)

    none = Amount(0)
    for shape, elements, dense in reads:
        own = _moved(shape, elements, elements.number == shape.size)
        add(shape, SpaceTraffic(dense, none, *own))
    for written in () if isinstance(writes, Unknown) else writes:
        shape, elements = written.shape, Amount(written.shape.size)
        own = _moved(shape, elements, not written.is_part)
        add(shape, SpaceTraffic(none, Amount(shape.bytes), *own))
    return dict(sorted(sums.items()))


def _moved(shape: Shape, elements: Amount, is_whole: bool) -> tuple[Amount, Amount, Amount]:
    """Return the bytes in memory of elements, their number, and the bytes of padding.

    A part of an array has at most the bytes of the array, and at most its padding.
    """
    padding = shape.physical_bytes - shape.bytes
    if not padding or not elements.number:
        return bytes_of(elements, shape), elements, Amount(0)
    grade: Grade = elements.grade if is_whole else "may"
    return Amount(shape.physical_bytes, grade), elements, Amount(padding, grade)

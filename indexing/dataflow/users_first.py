"""The order of a walk: users before operands."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from heapq import heappop, heappush

from hlo.modules.module import Instruction
from indexing.maps.arrays import ArrayRef


class UsersFirst:
    """The arrays that a walk has reached, by instruction; iterates over users before operands.

    A walk takes time for the arrays that it reaches, not for all arrays of the computation.

    Args:
        within: skip all other instructions; by default, none.
    """

    def __init__(self, start: ArrayRef, within: Collection[Instruction] | None) -> None:
        self._within = None if within is None else set(within)
        self._arrays: dict[int, list[ArrayRef]] = {}
        self._order: list[int] = []  # a heap of negated positions in the computation
        self.add(start)

    def add(self, array: ArrayRef) -> None:
        """Add an array of an instruction that has not been visited yet."""
        instruction = array.instruction
        if self._within is not None and instruction not in self._within:
            return
        index = instruction.index
        arrays = self._arrays.get(index)
        if arrays is None:
            self._arrays[index] = [array]
            heappush(self._order, -index)
        else:
            arrays.append(array)

    def __iter__(self) -> Iterator[tuple[Instruction, list[ArrayRef]]]:
        order, arrays = self._order, self._arrays
        while order:
            reached = arrays.pop(-heappop(order))
            yield reached[0].instruction, reached

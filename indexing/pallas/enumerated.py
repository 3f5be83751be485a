"""Answers from tables of blocks, where isl cannot decide: index maps with products of program ids.

All blocks start at multiples of their sizes, so that they are equal or disjoint; for other blocks
there is no answer here.
"""

from __future__ import annotations

from math import prod
from typing import Any, Final

import numpy as np

from indexing.pallas.block_tables import MAX_STEPS, BlockTable
from indexing.pallas.bounds import ArrayIndex, GridPoint
from simplifier.unknown import Unknown

MAX_ELEMENTS: Final = 1 << 27
"""Maximum number of elements of an array that is marked for holes."""

MAX_BLOCKS: Final = 1 << 16
"""Maximum number of different blocks that are marked."""


class EnumeratedBlocks:
    """The blocks of an operand at all steps of the grid.

    Attributes:
        table: the blocks.
        keys: a number for each step: equal for equal blocks.
    """

    def __init__(self, table: BlockTable) -> None:
        self.table = table
        self.keys = table.keys[table.columns(range(len(table.grid)))]

    @classmethod
    def of(cls, table: BlockTable | Unknown) -> EnumeratedBlocks | Unknown:
        """Return the blocks of an operand; `Unknown` if there are too many, or they overlap."""
        if isinstance(table, Unknown):
            return table
        if not 0 < prod(table.grid) <= MAX_STEPS:
            return Unknown(f"more than {MAX_STEPS} grid points")
        for row, each in zip(table.starts, table.operand.block, strict=True):
            if ((row - row[0]) % each.size).any():
                return Unknown("blocks may overlap")
        return cls(table)

    def step(self, number: int) -> GridPoint:
        """Return the point of the grid of a step."""
        grid = self.table.grid
        return tuple([int(i) for i in np.unravel_index(number, grid)]) if grid else ()

    @property
    def is_shared(self) -> bool:
        """True if two steps have one block."""
        return self.table.count < len(self.keys)

    def apart(self) -> tuple[GridPoint, GridPoint] | None:
        """Return two steps with one block, and another block between them."""
        changes = np.flatnonzero(np.diff(self.keys)) + 1
        starts = np.concatenate([[0], changes])
        again = _first_again(self.keys[starts])
        return None if again is None else (self.step(starts[again[0]]), self.step(starts[again[1]]))

    def race(self) -> tuple[int, GridPoint, GridPoint, ArrayIndex] | None:
        """Return a parallel dimension, and two steps that differ in it and share an element."""
        grid = self.table.operand.call.grid
        best: tuple[int, int, int] | None = None
        for k, dimension in enumerate(grid):
            if dimension.is_parallel:
                at = np.indices(self.table.grid)[k].reshape(-1)
                pair = self._pair_that_differs(at)
                if pair is not None and (best is None or pair < best[1:]):
                    best = k, *pair
        if best is None:
            return None
        k, first, second = best
        column = self.table.columns(range(len(grid)))[first]
        element = tuple([max(0, int(e)) for e in self.table.starts[:, column]])
        return k, self.step(first), self.step(second), element

    def _pair_that_differs(self, at: Any) -> tuple[int, int] | None:
        """Return the first two steps with one block in the array, and different values `at`."""
        count = self.table.count
        low, high = np.full(count, len(at)), np.full(count, -1)
        np.minimum.at(low, self.keys, at)
        np.maximum.at(high, self.keys, at)
        columns = self.table.columns(range(len(self.table.grid)))
        shared = (low < high)[self.keys] & (self.table.volumes[columns] > 0)
        if not shared.any():
            return None
        first = int(np.argmax(shared))
        same = self.keys == self.keys[first]
        return first, int(np.argmax(same & (at != at[first])))

    def hole(self) -> ArrayIndex | Unknown | None:
        """Return the first element that is in no block."""
        sizes = self.table.sizes
        if prod(sizes) > MAX_ELEMENTS or self.table.count > MAX_BLOCKS:
            return Unknown(f"more than {MAX_ELEMENTS} elements or {MAX_BLOCKS} blocks to mark")
        visited = np.zeros(sizes, bool)
        for start in np.unique(self.table.starts, axis=1).T:
            ends = [int(s) + each.size for s, each in zip(start, self._block, strict=True)]
            visited[
                tuple([slice(max(0, int(s)), max(0, e)) for s, e in zip(start, ends, strict=True)])
            ] = True
        if visited.all():
            return None
        return tuple([int(i) for i in np.unravel_index(int(np.argmin(visited)), sizes)])

    @property
    def _block(self) -> tuple[Any, ...]:
        return self.table.operand.block


def _first_again(keys: Any) -> tuple[int, int] | None:
    """Return the places of the first two equal keys.

    >>> _first_again(np.array([3, 1, 2, 1, 3]))
    (0, 4)
    """
    order = np.argsort(keys, kind="stable")
    same = np.flatnonzero(keys[order][1:] == keys[order][:-1])
    if not len(same):
        return None
    first = min(same, key=lambda place: order[place])
    return int(order[first]), int(order[first + 1])

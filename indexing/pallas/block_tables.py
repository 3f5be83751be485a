"""Tables of blocks: all blocks of an operand as arrays, for counts and for what isl cannot decide.

A table has a column for each point of the dimensions of the grid on which the blocks depend.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from math import prod
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from indexing.pallas.block_maps import PlacedOperand
from indexing.pallas.calls import constant_sizes
from simplifier.atoms import Variable
from simplifier.unknown import Unknown

MAX_STEPS: Final = 1 << 23
"""Maximum number of grid points over the dimensions on which a block depends."""

_MIN_NUMBERS: Final = 1 << 20
"""Fewer numbers of blocks need no sorting."""

_Table: TypeAlias = "npt.NDArray[Any]"


class BlockTable:
    """The blocks of an operand, as arrays over the dimensions of the grid that they depend on.

    Attributes:
        grid: the sizes of the grid.
        used: the dimensions on which the blocks depend, without those of one step.
        starts: the first element of each block, a row for each dimension of the array.
        volumes: the number of elements of each block that are in the array.
    """

    def __init__(
        self, operand: PlacedOperand, grid: tuple[int, ...], sizes: tuple[int, ...]
    ) -> None:
        self.operand, self.grid, self.sizes = operand, grid, sizes
        mentioned = {v for e in operand.starts.results for v in e.variables()}
        dims = operand.starts.dims
        self.used = [k for k, v in enumerate(dims) if v in mentioned and grid[k] > 1]
        self.starts = self._starts(self.used)
        self.volumes = self._volumes(self.starts)

    @classmethod
    def of(cls, operand: PlacedOperand) -> BlockTable | Unknown:
        """Return the table of an operand; `Unknown` for symbolic or too many blocks."""
        if operand.scalars:
            return Unknown("the blocks depend on scalars")
        grid, sizes = operand.call.static_grid, constant_sizes(operand.spec.sizes)
        if grid is None or sizes is None:
            return Unknown("the grid or the array has a symbolic size")
        mentioned = {v for e in operand.starts.results for v in e.variables()}
        points = [n for v, n in zip(operand.starts.dims, grid, strict=True) if v in mentioned]
        if prod(points) > MAX_STEPS:
            return Unknown(f"the block depends on more than {MAX_STEPS} grid points")
        return cls(operand, grid, sizes)

    @cached_property
    def keys(self) -> _Table:
        """A number for each block: equal for equal blocks."""
        key = np.zeros(self.starts.shape[1], np.int64)
        if not len(key):
            return key
        limit = max(_MIN_NUMBERS, 2 * len(key))
        count = 1
        for row, each in zip(self.starts, self.operand.block, strict=True):
            offsets = row - row.min()
            if each.kind == "blocked":
                offsets //= each.size
            width = int(offsets.max()) + 1
            key, count = key * width + offsets, count * width
            if count > limit:
                _, key = np.unique(key, return_inverse=True)
                count = int(key.max()) + 1
        is_used = np.zeros(count, bool)
        is_used[key] = True
        numbers: _Table = np.cumsum(is_used)[key] - 1
        return numbers

    @cached_property
    def count(self) -> int:
        """The number of different blocks; 0 for a grid without steps."""
        return 0 if 0 in self.grid else int(self.keys.max(initial=0)) + 1

    @property
    def is_injective(self) -> bool:
        """True if no two steps that differ in a used dimension have one block."""
        return self.count == len(self.volumes)

    def moves(self, order: Sequence[int]) -> tuple[int, int] | Unknown:
        """Return how often the block changes, and the elements of these blocks in the array.

        The first block counts as a change.  Dimensions within the last used one do not move a
        block.  If blocks are injective, each step of the others moves it.  If not, those around the
        first used one repeat all moves, without the first if the last block is the first one.

        Args:
            order: the dimensions of the grid, outermost first.
        """
        if 0 in self.grid:
            return 0, 0
        places = [n for n, k in enumerate(order) if k in self.used]
        if not places:
            return 1, int(self.volumes[0])
        if self.is_injective:
            steps = prod(self.grid[k] for k in order[: places[-1] + 1])
            return steps, int(self.volumes.sum()) * (steps // self.starts.shape[1])
        repeats = prod(self.grid[k] for k in order[: places[0]])
        inner = order[places[0] : places[-1] + 1]
        if prod(self.grid[k] for k in inner) > MAX_STEPS:
            return Unknown(f"the block depends on more than {MAX_STEPS} grid points")
        at = self.columns(inner)
        keys, volumes = self.keys[at], self.volumes[at]
        moves = np.ones(len(at), bool)
        moves[1:] = keys[1:] != keys[:-1]
        kept = (repeats - 1) * int(keys[0] == keys[-1])
        volume = repeats * int(volumes[moves].sum()) - kept * int(volumes[0])
        return repeats * int(moves.sum()) - kept, volume

    def columns(self, inner: Sequence[int]) -> _Table:
        """Return the numbers of the columns of the table at each step of these dimensions."""
        shape = [self.grid[k] for k in inner]
        column = np.zeros(shape, np.int64)
        for k in self.used:
            along = [1] * len(shape)
            along[inner.index(k)] = self.grid[k]
            column = column * self.grid[k] + np.arange(self.grid[k]).reshape(along)
        flat: _Table = np.broadcast_to(column, shape).reshape(-1)
        return flat

    def visit_counts(self, step: Sequence[int] | None = None) -> _Table:
        """Return the number of steps whose block touches each cell of the array.

        A cell has the sizes of a block; the first one starts at element 0.

        Args:
            step: count only this step.
        """
        sizes = [each.size for each in self.operand.block]
        counts = np.zeros([-(-n // s) for n, s in zip(self.sizes, sizes, strict=True)], np.int64)
        steps = prod(self.grid) // len(self.volumes) if len(self.volumes) else 0
        starts = self.starts
        if step is not None:
            at = int(np.ravel_multi_index(tuple(step), self.grid)) if self.grid else 0
            column = int(self.columns(range(len(self.grid)))[at])
            starts, steps = starts[:, column : column + 1], 1
        for start in starts.T:
            pairs = zip(start.tolist(), sizes, counts.shape, strict=True)
            inside = [(max(0, s // n), min(count, -(-(s + n) // n))) for s, n, count in pairs]
            counts[tuple([slice(low, max(low, high)) for low, high in inside])] += steps
        return counts

    def _starts(self, dimensions: Sequence[int]) -> _Table:
        shape = [self.grid[k] for k in dimensions]
        places = np.unravel_index(np.arange(prod(shape)), shape) if shape else ()
        at: dict[Variable, Any] = dict.fromkeys(self.operand.starts.dims, 0)
        at |= {self.operand.starts.dims[k]: p for k, p in zip(dimensions, places, strict=True)}
        rows = [
            np.broadcast_to(np.asarray(e.value(at)), (prod(shape),))
            for e in self.operand.starts.results
        ]
        return np.array(rows, np.int64).reshape(len(rows), prod(shape))

    def _volumes(self, starts: _Table) -> _Table:
        volume = np.ones(starts.shape[1], np.int64)
        for row, each, size in zip(starts, self.operand.block, self.sizes, strict=True):
            inside = np.minimum(row + each.size, size) - np.maximum(row, 0)
            volume = volume * np.maximum(inside, 0)
        return volume

"""The cache lines that blocks of an array touch, and the units of lines that no block divides.

Every array begins at a boundary of a line.  A line is touched if any of its bits is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hlo.shapes.tiling import position_of
from indexing.maps.arrays import ArrayRef, array_name
from indexing.memory.caches.accesses import MAX_ROWS, CacheBudgetError, TiledAccess

MAX_UNITS: Final = 1 << 22
"""Maximum number of units of all blocks of an array."""


@dataclass(frozen=True, eq=False)
class Units:
    """The units of lines that blocks touch, in the order of addresses.

    The lines of a unit are touched one after the other by each block that touches one of them.
    Therefore all lines of a unit have the same reuse distance.

    Attributes:
        first: the position in `numbers` of the first unit of each block, and the end.
        numbers: the units of each block.
        lines: the number of lines of each unit.
    """

    first: NDArray[Any]
    numbers: NDArray[Any]
    lines: NDArray[Any]

    @property
    def lines_of_blocks(self) -> NDArray[Any]:
        """The number of lines of each block."""
        total = np.concatenate([[0], np.cumsum(self.lines[self.numbers])])
        return np.asarray(total[self.first[1:]] - total[self.first[:-1]])


@dataclass(frozen=True, eq=False)
class LineRuns:
    """The lines of blocks as disjoint runs, sorted by block and line: ``start <= line < end``."""

    block: NDArray[Any]
    start: NDArray[Any]
    end: NDArray[Any]


def line_runs(access: TiledAccess, line_bits: int) -> LineRuns:
    """Return the lines that each block touches.

    Raises:
        CacheBudgetError: the blocks have more rows than `MAX_ROWS`.
    """
    counts = np.array([len(s.lengths) for s in access.sets], np.int64)[access.set_of]
    if (total := int(counts.sum())) > MAX_ROWS:
        raise CacheBudgetError(
            f"budget: all tiles have {total} rows of `{array_name(access.array)}`, more than "
            f"{MAX_ROWS}"
        )
    shape, layout = access.shape, access.shape.layout_or_default
    parts = [np.zeros((3, 0), np.int64)]
    for number, rows in enumerate(access.sets):
        (blocks,) = np.nonzero(access.set_of == number)
        index = rows.starts[None] + access.shifts[blocks][:, None]
        columns = [index[..., k] for k in range(shape.rank)]
        position = np.zeros(index.shape[:2], np.int64) + position_of(columns, shape.dims, layout)
        start = position * shape.element_bits // line_bits
        last = ((position + rows.lengths) * shape.element_bits - 1) // line_bits
        owner = np.repeat(blocks, len(rows.lengths))
        parts.append(np.stack([owner, start.reshape(-1), last.reshape(-1) + 1]))
    block, start, end = np.concatenate(parts, axis=1)
    return _merge_runs(block, start, end)


def _merge_runs(block: NDArray[Any], start: NDArray[Any], end: NDArray[Any]) -> LineRuns:
    """Runs that overlap or are adjacent, as one."""
    if not len(block):
        return LineRuns(block, start, end)
    width = int(end.max()) + 1  # runs of different blocks stay apart
    order = np.lexsort((start, block))
    block, low, high = block[order], (start + block * width)[order], (end + block * width)[order]
    reached = np.maximum.accumulate(high)
    is_first = np.concatenate([[True], low[1:] > reached[:-1]])
    (heads,) = np.nonzero(is_first)
    ends = reached[np.concatenate([heads[1:] - 1, [len(low) - 1]])]
    owner = block[heads]
    return LineRuns(owner, low[heads] - owner * width, ends - owner * width)


def units_of(accesses: Sequence[TiledAccess], line_bits: int) -> tuple[Units, ...]:
    """Return the units of the blocks of each access to one array.

    Raises:
        CacheBudgetError: the blocks have too many rows or units.
    """
    runs = [line_runs(access, line_bits) for access in accesses]
    cuts = distinct(np.concatenate([side for run in runs for side in (run.start, run.end)]))
    lengths = np.diff(cuts)
    entries: list[tuple[NDArray[Any], NDArray[Any]]] = []
    for run in runs:
        begin, end = np.searchsorted(cuts, run.start), np.searchsorted(cuts, run.end)
        if (total := int((end - begin).sum())) > MAX_UNITS:
            raise CacheBudgetError(
                f"budget: {total} units of lines of `{array_name(accesses[0].array)}`, more than "
                f"{MAX_UNITS}"
            )
        entries.append((np.repeat(run.block, end - begin), ranges(begin, end - begin)))
    touched = np.concatenate([interval for _, interval in entries])
    is_exclusive = np.bincount(touched, minlength=len(lengths)) == 1
    sizes = lengths.copy()
    kept: list[tuple[NDArray[Any], NDArray[Any]]] = []
    for block, interval in entries:
        exclusive = is_exclusive[interval]
        joins = np.zeros(len(block), bool)
        joins[1:] = exclusive[1:] & exclusive[:-1] & (block[1:] == block[:-1])
        group = np.cumsum(~joins) - 1
        heads = interval[~joins]
        sizes[heads] = np.bincount(group, lengths[interval], len(heads)).astype(np.int64)
        kept.append((block[~joins], heads))
    return tuple(
        [
            Units(np.searchsorted(block, np.arange(len(access.set_of) + 1)), heads, sizes)
            for access, (block, heads) in zip(accesses, kept, strict=True)
        ]
    )


def distinct(values: NDArray[Any]) -> NDArray[Any]:
    """Return the distinct values in ascending order; `np.unique` hashes them, five times slower.

    >>> distinct(np.array([4, 1, 4])).tolist()
    [1, 4]
    """
    ordered = np.sort(values)
    is_first = np.concatenate([[True], ordered[1:] != ordered[:-1]])[: len(ordered)]
    return np.asarray(ordered[is_first])


def ranges(starts: NDArray[Any], counts: NDArray[Any]) -> NDArray[Any]:
    """Return the concatenation of ``start, start + 1, …`` with a count each.

    >>> ranges(np.array([5, 0]), np.array([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    before = np.cumsum(counts) - counts
    return np.repeat(starts - before, counts) + np.arange(int(counts.sum()))


# ---------------------------------------------------------------- all accesses of a tiling


def line_bits(access: TiledAccess, line: int | None) -> int:
    """Return the bits of a line of the array; of an element if `line` is `None`."""
    return access.shape.element_bits if line is None else 8 * line


def units_by_access(accesses: Sequence[TiledAccess], line: int | None) -> tuple[Units, ...]:
    """Return the units that each access touches; accesses to one array share them.

    Raises:
        CacheBudgetError: there are too many rows or units.
    """
    arrays: dict[ArrayRef, list[int]] = {}
    for k, access in enumerate(accesses):
        arrays.setdefault(access.array, []).append(k)
    by_access: dict[int, Units] = {}
    for members in arrays.values():
        own = [accesses[k] for k in members]
        by_access.update(zip(members, units_of(own, line_bits(own[0], line)), strict=True))
    return tuple([by_access[k] for k in range(len(accesses))])

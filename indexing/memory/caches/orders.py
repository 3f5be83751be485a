"""`BlockOrder`: the order in which the tiles of a grid are computed, as a checked permutation.

>>> print(*BlockOrder.parse("grouped:2", grid=(4, 3)).tiles())
(0, 0) (1, 0) (0, 1) (1, 1) (0, 2) (1, 2) (2, 0) (3, 0) (2, 1) (3, 1) (2, 2) (3, 2)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hlo.arguments import checked, integers
from indexing.maps.indexing_map import IndexingMap, dims
from indexing.tiling.loops.loop_tiling import LoopTiling
from indexing.tiling.sets.tiling import Tiling
from simplifier.linear import as_expr

MAX_TILES: Final = 1 << 20
"""Maximum number of tiles to put in order."""

NAMES: Final = ("row", "column", "grouped:N", "morton", "hilbert")
"""The orders that `BlockOrder.parse` reads."""

_GROUP_SIZES: Final = (2, 4, 8, 16)


class OrderLoop(NamedTuple):
    """One loop over tiles: it adds 0, `step`, ``2 * step``, … to the index of dimension `dim`.

    Attributes:
        dim: the dimension of the grid.
        step: the distance of the tiles of two iterations.
        iterations: number of iterations.
    """

    dim: int
    step: int
    iterations: int

    def __str__(self) -> str:
        return f"tid_{self.dim}" if self.step == 1 else f"tid_{self.dim} by {self.step}"


@dataclass(frozen=True, eq=False, repr=False)
class BlockOrder:
    """An order of the tiles of a grid: each tile once.

    Attributes:
        name: the name for users.
        grid: number of tiles along each dimension.
        loops: the loops whose nest visits the tiles in this order, the outermost first; `None` if
            the order is no loop nest.
        numbers: the row-major number of each tile, in the order of visits.

    >>> order = BlockOrder.parse("column", grid=(2, 3))
    >>> print(order.loops[0], order.numbers, order.map)
    tid_1 [0 3 1 4 2 5] (d0) -> (d0 mod 2, d0 floordiv 2), domain: d0 in [0, 5]
    """

    name: str
    grid: tuple[int, ...]
    loops: tuple[OrderLoop, ...] | None
    numbers: NDArray[Any]

    # ------------------------------------------------------------ construction

    @classmethod
    @checked
    def parse(cls, name: str, grid: Sequence[int]) -> BlockOrder:
        """Return the order of a name.

        * ``row``: row-major, the last dimension varies fastest.
        * ``column``: column-major, the first dimension varies fastest.
        * ``grouped:N``: groups of N rows of the last two dimensions of the grid, and inside of a
          group column by column.  The last group may have fewer rows.
        * ``morton``, ``hilbert``: the curves of Morton and Hilbert over the last two dimensions,
          without the points outside of the grid.

        Other dimensions of the grid are outer loops.

        Raises:
            ValueError: the name is none of these, the order needs a grid of rank 2 or more, or the
                grid has more than `MAX_TILES` tiles.
        Source: Triton, tutorial "Matrix Multiplication", "L2 Cache Optimizations", for groups.
        """
        counts = _checked_grid(grid)
        if name in ("row", "column"):
            each = [OrderLoop(d, 1, n) for d, n in enumerate(counts)]
            return _nest(name, counts, each if name == "row" else each[::-1])
        group = re.fullmatch(r"grouped:([1-9][0-9]*)", name)
        if group is None and name not in ("morton", "hilbert"):
            raise ValueError(f"unknown block order {name!r}: expected one of {', '.join(NAMES)}")
        if len(counts) < 2:
            raise ValueError(f"{name!r} needs a grid of at least 2 dimensions, got {list(counts)}")
        if group is not None:
            return _grouped_order(name, counts, int(group[1]))
        return _morton(name, counts) if name == "morton" else _hilbert(name, counts)

    @classmethod
    @checked
    def of_tiles(
        cls, tiles: Iterable[Sequence[int]], grid: Sequence[int], name: str = "own order"
    ) -> BlockOrder:
        """Return the order of a list of tile indices.

        Raises:
            ValueError: the list is not a permutation of the tiles of the grid; the message has a
                tile that is missing or repeated.

        >>> BlockOrder.of_tiles([(0, 0), (0, 1), (0, 1)], grid=(1, 3))
        Traceback (most recent call last):
        ...
        ValueError: an order visits each tile once: tile [0, 1] is visited 2 times
        """
        counts = _checked_grid(grid)
        rows = [integers("BlockOrder.of_tiles", "tiles", tile) for tile in tiles]
        wrong = next((row for row in rows if len(row) != len(counts)), None)
        if wrong is not None:
            raise ValueError(
                f"a tile of the grid {list(counts)} has {len(counts)} indices: {wrong}"
            )
        table = np.array(rows, np.int64).reshape(len(rows), len(counts))
        return _checked_order(name, counts, table)

    @classmethod
    @checked
    def of_map(cls, visits: IndexingMap, grid: Sequence[int]) -> BlockOrder:
        """Return the order of a map from the number of a visit to the index of its tile.

        Args:
            visits: the map, with one dimension; `BlockOrder.map` of another order, for example.
            grid: number of tiles along each dimension.
        Raises:
            ValueError: the map is not a bijection from ``0, 1, …`` to the tiles of the grid, or
                has other variables than one dimension.

        >>> from indexing import parse_map
        >>> leftwards = parse_map("(d0) -> (d0 floordiv 3, 2 - d0 mod 3), domain: d0 in [0, 5]")
        >>> print(*BlockOrder.of_map(leftwards, grid=(2, 3)).tiles())
        (0, 2) (0, 1) (0, 0) (1, 2) (1, 1) (1, 0)
        """
        counts = _checked_grid(grid)
        others = (*visits.ranges, *visits.runtime, *visits.constraints)
        if len(visits.dims) != 1 or len(visits.results) != len(counts) or others or not counts:
            raise ValueError(
                f"an order is a map from one dimension to the {len(counts)} indices of a tile, "
                f"without constraints, got {visits}"
            )
        if visits.dims[0].bounds != (0, prod(counts) - 1):
            raise ValueError(f"the grid {list(counts)} has {prod(counts)} tiles: {visits}")
        at = {visits.dims[0]: np.arange(prod(counts))}
        columns = [np.broadcast_to(r.value(at), (prod(counts),)) for r in visits.results]
        return _checked_order(str(visits), counts, np.stack(columns, axis=1))

    # ------------------------------------------------------------ tiles

    def tiles(self) -> Iterator[tuple[int, ...]]:
        """Yield the index of each tile, in order.

        >>> list(BlockOrder.parse("grouped:2", grid=(3, 2)).tiles())  # two rows, column by column
        [(0, 0), (1, 0), (0, 1), (1, 1), (2, 0), (2, 1)]
        """
        for number in self.numbers.tolist():
            yield tuple([int(i) for i in np.unravel_index(number, self.grid)])

    @cached_property
    def map(self) -> IndexingMap | None:
        """The map from the number of a visit to the index of its tile; `None` without `loops`.

        `None` for a grid without tiles or dimensions, too.
        """
        if self.loops is None or not self.grid or 0 in self.grid:
            return None
        (visit,) = dims((prod(self.grid),))
        index = [as_expr(0)] * len(self.grid)
        inner = 1
        for loop in self.loops[::-1]:
            index[loop.dim] += visit // inner % loop.iterations * loop.step
            inner *= loop.iterations
        return IndexingMap.over((prod(self.grid),), lambda d: index).simplify()

    def __repr__(self) -> str:
        return f"<{self.name} order of {list(self.grid)} tiles>"


@checked
def block_orders(tiling: Tiling | LoopTiling) -> tuple[BlockOrder, ...]:
    """Return the orders of the tiles of a tiling that `best_block_orders` compares.

    Orders that visit the tiles as an earlier one does are left out.

    >>> import hlo, indexing
    >>> text = "ENTRY e { p = f32[64,96] parameter(0)  ROOT n = f32[64,96] negate(p) }"
    >>> tiling = indexing.tile(hlo.parse(text).entry.root, (16, 32))
    >>> [order.name for order in block_orders(tiling)]
    ['row', 'column', 'grouped:2', 'morton', 'hilbert']
    """
    names = ["row", "column"]
    if len(tiling.grid) > 1:
        names += [f"grouped:{n}" for n in _GROUP_SIZES if n < tiling.grid[-2]]
        names += ["morton", "hilbert"]
    orders: dict[bytes, BlockOrder] = {}
    for name in names:
        order = BlockOrder.parse(name, tiling.grid)
        orders.setdefault(order.numbers.tobytes(), order)
    return tuple(orders.values())


def _checked_grid(grid: Sequence[int]) -> tuple[int, ...]:
    counts = integers("BlockOrder", "grid", grid)
    if any(n < 0 for n in counts):
        raise ValueError(f"a grid has no negative number of tiles: {list(counts)}")
    if prod(counts) > MAX_TILES:
        raise ValueError(f"an order has at most {MAX_TILES} tiles, not {prod(counts)}")
    return counts


def _checked_order(name: str, grid: tuple[int, ...], table: NDArray[Any]) -> BlockOrder:
    """The order of a table of tile indices, one row each, which is a permutation."""
    outside = np.flatnonzero(((table < 0) | (table >= np.array(grid, np.int64))).any(axis=1))
    if len(outside):
        raise ValueError(f"tile {table[outside[0]].tolist()} is outside of the grid {list(grid)}")
    numbers = _row_major(table, grid)
    visits = np.bincount(numbers, minlength=prod(grid))
    (wrong,) = np.nonzero(visits != 1)
    if len(wrong):
        twice = int(max(wrong, key=lambda number: visits[number]))
        at = [int(i) for i in np.unravel_index(twice, grid)]
        raise ValueError(
            f"an order visits each tile once: tile {at} is visited {visits[twice]} times"
        )
    return BlockOrder(name, grid, None, numbers)


def _row_major(table: NDArray[Any], grid: Sequence[int]) -> NDArray[Any]:
    number = np.zeros(len(table), np.int64)
    for column, count in zip(table.T, grid, strict=True):
        number = number * count + column
    return number


def _nest(name: str, grid: tuple[int, ...], loops: Sequence[OrderLoop]) -> BlockOrder:
    """The order of a loop nest."""
    shape = [loop.iterations for loop in loops]
    at = np.indices(shape, np.int64).reshape(len(shape), prod(shape))
    table = np.zeros((prod(shape), len(grid)), np.int64)
    for loop, values in zip(loops, at, strict=True):
        table[:, loop.dim] += values * loop.step
    return BlockOrder(name, grid, tuple(loops), _row_major(table, grid))


def _outer(grid: Sequence[int]) -> list[OrderLoop]:
    """The loops over all dimensions but the last two."""
    return [OrderLoop(d, 1, n) for d, n in enumerate(grid[:-2])]


def _grouped_order(name: str, grid: tuple[int, ...], group: int) -> BlockOrder:
    first, last = len(grid) - 2, len(grid) - 1
    rows, columns = grid[-2:]
    group = min(group, max(rows, 1))
    if rows % group == 0:
        inner = [OrderLoop(first, group, rows // group), OrderLoop(last, 1, columns)]
        return _nest(name, grid, [*_outer(grid), *inner, OrderLoop(first, 1, group)])
    i, j = np.indices((rows, columns), np.int64).reshape(2, rows * columns)
    return _by_keys(name, grid, i, j, (i // group, j, i))


def _morton(name: str, grid: tuple[int, ...]) -> BlockOrder:
    rows, columns = grid[-2:]
    if rows == columns and rows & (rows - 1) == 0 < rows:
        bits = [1 << b for b in range(rows.bit_length() - 1)][::-1]
        inner = [OrderLoop(d, bit, 2) for bit in bits for d in (len(grid) - 2, len(grid) - 1)]
        return _nest(name, grid, [*_outer(grid), *inner])
    i, j = np.indices((rows, columns), np.int64).reshape(2, rows * columns)
    code = np.zeros_like(i)
    for b in range(max(rows, columns).bit_length()):
        code |= (j >> b & 1) << (2 * b) | (i >> b & 1) << (2 * b + 1)
    return _by_keys(name, grid, i, j, (code,))


def _hilbert(name: str, grid: tuple[int, ...]) -> BlockOrder:
    """The curve of Hilbert, by the position of each point on it, one quadrant at a time."""
    rows, columns = grid[-2:]
    i, j = np.indices((rows, columns), np.int64).reshape(2, rows * columns)
    x, y, position = i.copy(), j.copy(), np.zeros_like(i)
    size = 1 << max(rows, columns, 1).bit_length() >> 1
    while size:
        right, upper = (x & size) > 0, (y & size) > 0
        position += size * size * (3 * right ^ upper)
        turned = ~upper & right
        x, y = (
            np.where(turned, size - 1 - (x & (size - 1)), x & (size - 1)),
            np.where(turned, size - 1 - (y & (size - 1)), y & (size - 1)),
        )
        x, y = np.where(upper, x, y), np.where(upper, y, x)
        size >>= 1
    return _by_keys(name, grid, i, j, (position,))


def _by_keys(
    name: str,
    grid: tuple[int, ...],
    rows: NDArray[Any],
    columns: NDArray[Any],
    keys: Sequence[NDArray[Any]],
) -> BlockOrder:
    """The tiles of the last two dimensions sorted by keys, for each tile of the other ones."""
    inside = np.lexsort(keys[::-1])
    plane = (rows * grid[-1] + columns)[inside]
    outer = np.arange(prod(grid[:-2]))[:, None] * (grid[-2] * grid[-1])
    return BlockOrder(name, grid, None, (outer + plane).reshape(-1))

"""`TiledAccess`: the elements of one array that the tiles of a tiling read or write.

Tiles that need translates of one set share it: a *block* is one of these sets and a translation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hlo.shapes.shape import Shape, leaves
from indexing.maps.arrays import ArrayRef, array_name
from indexing.maps.regions.boxes import Box
from indexing.maps.regions.region import Region
from indexing.tiling.sets.distinct_rows import number_rows
from indexing.tiling.sets.operands import TiledOperand
from indexing.tiling.sets.tile_sets import TileSets, is_start
from indexing.tiling.sets.tiling import Tiling
from simplifier.unknown import Unknown

AccessKind: TypeAlias = Literal["read", "write"]

MAX_TILES: Final = 1 << 20
"""Maximum number of tiles of a tiling."""

MAX_ROWS: Final = 1 << 22
"""Maximum number of rows of adjacent elements of all blocks of an array."""


class CacheBudgetError(Exception):
    """The tiles, rows or touches are too many; the message names the budget."""


class Rows(NamedTuple):
    """A set of elements as rows: adjacent elements along one dimension, or single elements.

    Attributes:
        starts: the index of the first element of each row, ``(rows, rank)``.
        lengths: number of elements of each row.
    """

    starts: NDArray[Any]
    lengths: NDArray[Any]


@dataclass(frozen=True, eq=False)
class TiledAccess:
    """The reads or the writes of one array by all tiles.

    Attributes:
        array: the array.
        kind: "read" or "write".
        grid: number of tiles along each dimension.
        dims: the dimensions of the grid on which the block of a tile depends.
        block_of: the number of the block for each tile index over `dims`, in row-major order.
        sets: the sets, without translation.
        set_of: the set of each block.
        shifts: the translation of each block, ``(blocks, rank)``.
    """

    array: ArrayRef
    kind: AccessKind
    grid: tuple[int, ...]
    dims: tuple[int, ...]
    block_of: NDArray[Any]
    sets: tuple[Rows, ...]
    set_of: NDArray[Any]
    shifts: NDArray[Any]

    @property
    def shape(self) -> Shape:
        """The shape of the array."""
        return shape_of(self.array)

    def blocks_at(self, tiles: NDArray[Any]) -> NDArray[Any]:
        """Return the block of each tile, given by its row-major number."""
        index = np.unravel_index(tiles, self.grid)
        number = np.zeros(len(tiles), np.int64)
        for d in self.dims:
            number = number * self.grid[d] + index[d]
        return np.asarray(self.block_of[number])


def shape_of(array: ArrayRef) -> Shape:
    """Return the shape of an array of a tiling, which is no tuple."""
    shape = array.shape
    assert isinstance(shape, Shape)
    return shape


def tiled_accesses(tiling: Tiling) -> tuple[TiledAccess, ...] | Unknown:
    """Return the accesses of the tiles in their order: operands are read, then results written.

    Returns:
        The accesses; `Unknown` if elements are over-approximated or depend on runtime values,
        or exceed a budget.
    """
    if (tiles := prod(tiling.grid)) > MAX_TILES:
        return Unknown(f"budget: {tiles} tiles, more than {MAX_TILES}", tiling.instruction)
    is_output = tiling.direction == "output-to-input"
    kind: AccessKind = "read" if is_output else "write"
    others: list[TiledAccess] = []
    try:
        for operand in tiling.operands:
            access = _access(operand, kind)
            if isinstance(access, Unknown):
                return access
            others.append(access)
        array = _tiled_array(tiling)
        own_kind: AccessKind = "write" if is_output else "read"
        own = own_tiles(array, own_kind, tiling.shape, tiling.grid, tiling.sizes)
    except CacheBudgetError as error:
        return Unknown(str(error), tiling.instruction)
    return (*others, own) if is_output else (own, *others)


def own_tiles(
    array: ArrayRef, kind: AccessKind, shape: Shape, grid: tuple[int, ...], tile: Sequence[int]
) -> TiledAccess:
    """Return the tiles of the tiled array itself; each is one translate of the full or a part.

    Args:
        grid: the number of tiles along each dimension.
        tile: their sizes.
    """
    sizes = np.array(tile, np.int64)[:, None]
    index = np.indices(grid, np.int64).reshape(len(grid), prod(grid))
    shifts = index * sizes
    extents = np.minimum(np.array(shape.dims, np.int64)[:, None] - shifts, sizes)
    if grid:
        set_of, table = number_rows(list(extents))
    else:
        set_of, table = np.zeros(1, np.int64), np.zeros((1, 0), np.int64)
    minor = minor_dim(shape)
    zero = (0,) * len(grid)
    boxes = [Box(zero, tuple(extent), (1,) * len(grid)) for extent in table.tolist()]
    every = tuple(range(len(grid)))
    sets = tuple([rows_of_boxes([box], every, minor) for box in boxes])
    return TiledAccess(array, kind, grid, every, np.arange(prod(grid)), sets, set_of, shifts.T)


def _tiled_array(tiling: Tiling) -> ArrayRef:
    start, number = tiling.answer.instruction, tiling.answer.domain_id
    if tiling.direction == "input-to-output":
        start, number = start.operands[number], 0
    return ArrayRef(start, leaves(start.shape)[number][0])


# ---------------------------------------------------------------- operands


def _access(operand: TiledOperand, kind: AccessKind) -> TiledAccess | Unknown:
    sets = operand.sets
    if isinstance(sets, Unknown):
        return sets
    array = ArrayRef(operand.instruction, operand.path)
    if obstacle := _obstacle(operand):
        return Unknown(
            f"the elements of `{array_name(array)}` that a tile needs {obstacle}", array.instruction
        )
    if not sets.products:
        nothing = Rows(np.zeros((0, operand.shape.rank), np.int64), np.zeros(0, np.int64))
        shifts = np.zeros((1, operand.shape.rank), np.int64)
        one = np.zeros(1, np.int64)
        return TiledAccess(array, kind, operand.grid.counts, (), one, (nothing,), one, shifts)
    (factors,) = sets.products
    return _product(array, kind, operand, factors)


def _obstacle(operand: TiledOperand) -> str:
    """The reason why the elements of each tile are not known; empty if they are."""
    may = next((m for m in operand.maps if m.grade == "may"), None)
    if may is not None:
        return f"are over-approximated by {may}; maps with exact=True may be exact"
    if _is_at_runtime(operand):
        names = ", ".join(sorted({rt.name for m in operand.maps for rt in m.runtime}))
        return f"depend on runtime values: {names}"
    return ""


def _is_at_runtime(operand: TiledOperand) -> bool:
    """True if the set of a tile depends on runtime values."""
    sets = operand.sets
    assert not isinstance(sets, Unknown)
    if sets.runtime or len(sets.products) > 1 or sets.rows > 1:
        return True
    factors = [s for product in sets.products for s in product]
    is_added = any(start for s in factors for start in s.starts)
    return is_added or any(is_start(v) for s in factors for v in s.tile_index)


def _product(
    array: ArrayRef, kind: AccessKind, operand: TiledOperand, factors: Sequence[TileSets]
) -> TiledAccess:
    """The blocks of the products of independent sets."""
    grid, rank = operand.grid, operand.shape.rank
    place = {v: k for k, v in enumerate(grid.tile_index)}
    dims = tuple(sorted({place[v] for s in factors for v in s.tile_index}))
    shape = [grid.counts[d] for d in dims]
    index = dict(
        zip(dims, np.indices(shape, np.int64).reshape(len(dims), prod(shape)), strict=True)
    )
    classes: list[NDArray[Any]] = []
    shifts = np.zeros((prod(shape), rank), np.int64)
    for s in factors:
        own = np.zeros(prod(shape), np.int64)
        for v, count in zip(s.tile_index, s.shape, strict=True):
            own = own * count + index[place[v]]
        classes.append(np.asarray(s.class_of)[own])
        for column, k in enumerate(s.places):
            shifts[:, k] = s.shifts[own, column]
    zero = np.zeros(prod(shape), np.int64)
    set_at, combinations = number_rows([zero, *classes])
    minor = minor_dim(operand.shape)
    sets = [_product_set(factors, chosen[1:], rank, minor) for chosen in combinations.tolist()]
    return without_repetitions(array, kind, grid.counts, dims, sets, set_at, shifts)


def without_repetitions(
    array: ArrayRef,
    kind: AccessKind,
    grid: tuple[int, ...],
    dims: tuple[int, ...],
    sets: Sequence[Rows],
    set_at: NDArray[Any],
    shifts: NDArray[Any],
) -> TiledAccess:
    """The access with each set once, and without dimensions on which no block depends.

    Args:
        sets: sets that may be translates of each other.
        set_at, shifts: the set and the translation for each tile index over `dims`.
    """
    number: dict[tuple[bytes, bytes], int] = {}
    corners = np.zeros((len(sets), shifts.shape[1]), np.int64)
    kept: list[Rows] = []
    renumbered = []
    for k, rows in enumerate(sets):
        if len(rows.lengths):
            corners[k] = rows.starts.min(axis=0)
        moved = Rows(rows.starts - corners[k], rows.lengths)
        key = moved.starts.tobytes(), moved.lengths.tobytes()
        if key not in number:
            number[key] = len(kept)
            kept.append(moved)
        renumbered.append(number[key])
    places = (shifts + corners[set_at]).T
    block_of, blocks = number_rows([np.array(renumbered, np.int64)[set_at], *places])
    by_dim = block_of.reshape([grid[d] for d in dims])
    used = [k for k in range(len(dims)) if (by_dim != by_dim.take([0], axis=k)).any()]
    first = tuple([slice(None) if k in used else 0 for k in range(len(dims))])
    return TiledAccess(
        array,
        kind,
        grid,
        tuple([dims[k] for k in used]),
        by_dim[first].reshape(-1),
        tuple(kept),
        blocks[:, 0],
        blocks[:, 1:],
    )


def minor_dim(shape: Shape) -> int | None:
    """The dimension whose neighbours are adjacent in memory; `None` in tiled layouts."""
    layout = shape.layout_or_default
    return None if layout.tiles or not shape.rank else layout.minor_to_major[0]


def _product_set(
    factors: Sequence[TileSets], chosen: Sequence[int], rank: int, minor: int | None
) -> Rows:
    """The product of one class of each factor."""
    starts, lengths = np.zeros((1, rank), np.int64), np.ones(1, np.int64)
    for s, number in zip(factors, chosen, strict=True):
        part = _rows(s.classes[number].region, s.places, minor)
        count = len(lengths) * len(part.lengths)
        if count > MAX_ROWS:
            raise CacheBudgetError(f"budget: {count} rows in a tile, more than {MAX_ROWS}")
        starts = np.repeat(starts, len(part.lengths), axis=0)
        starts[:, list(s.places)] = np.tile(part.starts, (len(lengths), 1))
        lengths = np.repeat(lengths, len(part.lengths)) * np.tile(part.lengths, len(lengths))
    return Rows(starts, lengths)


def _rows(region: Region, places: tuple[int, ...], minor: int | None) -> Rows:
    """The elements of a region of some dimensions of an array."""
    boxes = region.boxes()
    if boxes is not None:
        return rows_of_boxes(boxes, places, minor)
    elements = region.elements()
    if isinstance(elements, Unknown):
        raise CacheBudgetError(f"budget: {elements}")
    return Rows(elements, np.ones(len(elements), np.int64))


def rows_of_boxes(boxes: Sequence[Box], places: tuple[int, ...], minor: int | None) -> Rows:
    along = places.index(minor) if minor in places else None
    starts = [np.zeros((0, len(places)), np.int64)]
    lengths = [np.zeros(0, np.int64)]
    for box in boxes:
        heads, length = box, 1
        if along is not None and box.strides[along] == 1:
            length = box.sizes[along]
            sizes = [1 if k == along else n for k, n in enumerate(box.sizes)]
            heads = Box(box.offsets, tuple(sizes), box.strides)
        if heads.count() > MAX_ROWS:
            raise CacheBudgetError(f"budget: {heads.count()} rows in a tile, more than {MAX_ROWS}")
        starts.append(heads.elements())
        lengths.append(np.full(heads.count(), length, np.int64))
    return Rows(np.concatenate(starts), np.concatenate(lengths))

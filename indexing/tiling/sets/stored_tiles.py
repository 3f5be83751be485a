"""The tiles of an array's layout that the tiles of a tiling touch: their bytes in memory.

In ``f32[64,10]{1,0:T(8,128)}``, the elements ``[0:4, 0:10]`` are in one tile of the layout, which
has 4,096 bytes.  Its other bytes are padding, or elements that other tiles need: a tiling has
stored bytes, but no padding of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

from hlo.shapes.layout import COMBINE
from hlo.shapes.shape import Shape
from hlo.shapes.tiling import tile_sizes
from indexing.maps.indexing_map import Grade, IndexingMap
from indexing.tiling.sets.operand_sets import operand_sets
from indexing.tiling.sets.tile_grid import TileGrid
from indexing.tiling.sets.tile_sets import BudgetError
from simplifier.unknown import Unknown


@dataclass(frozen=True, slots=True)
class StoredTiles:
    """The bytes in memory of the tiles of an array's layout that the tiles of a tiling touch.

    Attributes:
        tile_bytes: those of the tile that touches the most.
        bytes: the sum over all tiles.
        bytes_touched: those of the distinct tiles of the layout.
        grade: "may" if all of them are upper bounds.
    """

    tile_bytes: int
    bytes: int
    bytes_touched: int
    grade: Grade


class LayoutTile(NamedTuple):
    """A tile of a layout: its elements along each dimension of the array, and its bytes."""

    sizes: tuple[int, ...]
    bytes: int


def layout_tile(shape: Shape) -> LayoutTile | Unknown:
    """Return the first tile of the layout of an array, in which the others are nested.

    >>> from hlo.shapes.shape import parse_shape
    >>> layout_tile(parse_shape("bf16[500,64]{0,1:T(8,128)(2,1)}"))
    LayoutTile(sizes=(128, 8), bytes=2048)
    """
    layout = shape.layout_or_default
    if not layout.tiles:
        return Unknown(f"the layout of {shape} has no tiles")
    if COMBINE in layout.tiles[0] or layout.padded_dimensions or layout.tail_padding > 1:
        return Unknown(f"the layout of {shape} combines dimensions, or pads them otherwise")
    sizes = tile_sizes(shape.dims, layout)
    count = _count(shape, sizes)
    return LayoutTile(sizes, shape.physical_bytes // count if count else 0)


def stored_tiles(
    maps: Sequence[IndexingMap], grid: TileGrid, shape: Shape
) -> StoredTiles | Unknown:
    """Return the bytes in memory of the tiles of a layout that the tiles of a grid touch.

    Args:
        maps: the maps from the tiled array to the array.
        grid: the tiles.
        shape: the shape of the array, whose layout has tiles.
    """
    tile = layout_tile(shape)
    if isinstance(tile, Unknown):
        return tile
    number = IndexingMap.over(
        shape, lambda d: [i // size for i, size in zip(d, tile.sizes, strict=True)]
    )
    touched = [m.then(number) for m in maps]
    try:
        each = operand_sets(touched, grid)
        whole = operand_sets(touched, TileGrid(grid.dims, grid.dims))
    except BudgetError as error:
        return Unknown(str(error))
    most = _count(shape, tile.sizes)
    is_exact = all(m.grade == "exact" for m in maps) and each.is_exact and whole.is_exact
    return StoredTiles(
        min(each.largest, most) * tile.bytes,
        each.total * tile.bytes,
        min(whole.total, most) * tile.bytes,
        "exact" if is_exact else "may",
    )


def _count(shape: Shape, sizes: Sequence[int]) -> int:
    """Return the number of tiles of the layout."""
    return prod([-(-n // size) for n, size in zip(shape.dims, sizes, strict=True)])

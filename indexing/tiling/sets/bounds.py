"""Boxes that contain what a tile needs, from bounds of the results: without counting tiles.

>>> from indexing.maps.indexing_map import IndexingMap
>>> window = IndexingMap.over((100,), lambda d, s: [d[0] * 2 + s[0]], ranges=(3,))
>>> (side,) = bounding_ranges([window], TileGrid((100,), (8,)), (201,))
>>> print(*side[:3])
tid_0 * 16 min(tid_0 * -16 + 201, 17) 1
"""

from __future__ import annotations

from collections.abc import Sequence

from indexing.maps.indexing_map import IndexingMap
from indexing.tiling.sets.formulas import EMPTY
from indexing.tiling.sets.tile_grid import TileGrid
from indexing.tiling.sets.tiled_maps import Place, TiledMap, tiled_maps
from indexing.tiling.sets.translations import Separator
from indexing.tiling.symbolic.progressions import TileSide
from simplifier.linear import Expr, as_expr
from simplifier.semiaffine import maximum, minimum


def bounding_ranges(
    maps: Sequence[IndexingMap], grid: TileGrid, dims: Sequence[int]
) -> tuple[TileSide, ...]:
    """Return a box for each tile that contains the elements that it needs.

    Args:
        maps: the maps from the tiled array.
        grid: the tiles.
        dims: the dimensions of the array that the tiles need.
    """
    tiled, _ = tiled_maps(maps, grid, is_fixing=False)
    if not tiled:
        return (EMPTY,) * len(dims)
    return tuple([_range(tiled, k, n) for k, n in enumerate(dims)])


def _range(tiled: Sequence[TiledMap], k: int, size: int) -> TileSide:
    sides = [_side(m, m.places[k]) for m in tiled]
    low = maximum(minimum(*[low for low, _ in sides]), 0)
    high = maximum(*[high for _, high in sides])
    return TileSide(low, minimum(high - low + 1, size - low), as_expr(1))


def _side(m: TiledMap, place: Place) -> tuple[Expr, Expr]:
    """Bounds of one result, over the tile index."""
    shift, rest = Separator(m.tile_index)(place.expr)
    low, high = rest.bounds
    for start, factor in place.starts:
        ends = sorted([start.bounds[0] * factor, start.bounds[1] * factor])
        low, high = low + ends[0], high + ends[1]
    return shift + low, shift + high

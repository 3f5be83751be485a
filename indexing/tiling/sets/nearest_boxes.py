"""The nearest tile sizes for which every tile needs one box.

Symbolic constraints are sufficient, and not always necessary; here tilings are built.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import replace
from functools import reduce
from itertools import chain
from operator import or_
from typing import Final

from hlo.memo import Memo
from indexing.maps.regions.needed import region_inside
from indexing.maps.regions.region import Region
from indexing.tiling.sets.operands import TiledOperand
from indexing.tiling.sets.tile_grid import TileGrid
from indexing.tiling.sets.tile_sets import strided_hull
from indexing.tiling.sizes.size_violations import NearestSizes

MAX_TILINGS: Final = 8
"""Maximum number of tilings to build for one nearest size."""


def nearest_boxes(operand: TiledOperand) -> tuple[NearestSizes, ...]:
    """Return the nearest sizes of each dimension for which the tiles of an operand are boxes.

    The other sizes do not change.  Dimensions without such sizes within `MAX_TILINGS` tilings are
    left out.

    >>> import hlo, indexing
    >>> text = "ENTRY e { p = f32[3,4] parameter(0)  ROOT r = f32[12] reshape(p) }"
    >>> tiling = indexing.tile(hlo.parse(text).entry.root, [7])
    >>> nearest_boxes(tiling.operands[0])
    (NearestSizes(name='ts_0', smaller=4, larger=8),)
    """
    if any(m.runtime for m in operand.maps) or operand.unknown is not None:
        return _nearest_boxes(operand)
    key = operand.maps, operand.grid, operand.shape.rank
    known = _NEAREST.get(key)
    return _NEAREST.keep(key, _nearest_boxes(operand)) if known is None else known


_NEAREST: Final = Memo[Hashable, tuple[NearestSizes, ...]](1 << 10)
"""The sizes by the maps, the grid and the rank: many operands of a program have the same."""


def _nearest_boxes(operand: TiledOperand) -> tuple[NearestSizes, ...]:
    nearest_sizes = []
    for k, (size, n) in enumerate(zip(operand.grid.sizes, operand.grid.dims, strict=True)):
        size = min(size, n)
        nearest = NearestSizes(
            f"ts_{k}",
            _first(operand, k, range(size - 1, 0, -1)),
            _first(operand, k, range(size + 1, n + 1)),
        )
        if str(nearest):
            nearest_sizes.append(nearest)
    return tuple(nearest_sizes)


def _first(operand: TiledOperand, k: int, sizes: range) -> int | None:
    """The first size of dimension k for which the tiles are boxes; the last size is tried, too."""
    tried: Iterable[int] = sizes
    if len(sizes) > MAX_TILINGS:
        tried = chain(sizes[: MAX_TILINGS - 1], sizes[-1:])
    dims, others = operand.grid.dims, operand.grid.sizes
    for size in tried:
        grid = TileGrid(dims, (*others[:k], size, *others[k + 1 :]))
        if not _is_refuted(operand, grid) and replace(operand, grid=grid).kind == "box":
            return size
    return None


def _is_refuted(operand: TiledOperand, grid: TileGrid) -> bool:
    """True if the middle tile is no box: one tile is cheaper than the classes of all tiles."""
    if any(m.grade == "may" or m.runtime for m in operand.maps):
        return False
    middle = grid.slices([count // 2 for count in grid.counts])
    nothing = Region.of_boxes((), operand.shape.rank)
    region = reduce(or_, [region_inside(m, middle, {}) for m in operand.maps], nothing)
    if region.boxes() is None:
        return False
    hull = strided_hull(region)
    return hull is not None and hull.count() != region.count()

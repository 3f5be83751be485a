"""The nearest tile sizes for which every tile needs one box.

Symbolic constraints are sufficient, and not always necessary; here tilings are built.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain
from typing import Final

from indexing.tiling.tiles.operands import TiledOperand
from indexing.tiling.tiles.size_violations import NearestSizes
from indexing.tiling.tiles.tile_grid import TileGrid

MAX_TILINGS: Final = 8
"""Maximum number of tilings to build for one nearest size."""


def nearest_boxes(operand: TiledOperand) -> Iterator[NearestSizes]:
    """Yield the nearest sizes of each dimension for which the tiles of an operand are boxes.

    The other sizes do not change.  Dimensions without such sizes within `MAX_TILINGS` tilings are
    left out.

    >>> import hlo, indexing
    >>> text = "ENTRY e { p = f32[3,4] parameter(0)  ROOT r = f32[12] reshape(p) }"
    >>> tiling = indexing.tile(hlo.parse(text).entry.root, [7])
    >>> list(nearest_boxes(tiling.operands[0]))
    [NearestSizes(name='ts_0', smaller=4, larger=8)]
    """
    for k, (size, n) in enumerate(zip(operand.grid.sizes, operand.grid.dims, strict=True)):
        size = min(size, n)
        nearest = NearestSizes(
            f"ts_{k}",
            _first(operand, k, range(size - 1, 0, -1)),
            _first(operand, k, range(size + 1, n + 1)),
        )
        if str(nearest):
            yield nearest


def _first(operand: TiledOperand, k: int, sizes: range) -> int | None:
    """The first size of dimension k for which the tiles are boxes; the last size is tried, too."""
    tried: Iterable[int] = sizes
    if len(sizes) > MAX_TILINGS:
        tried = chain(sizes[: MAX_TILINGS - 1], sizes[-1:])
    dims, others = operand.grid.dims, operand.grid.sizes
    for size in tried:
        grid = TileGrid(dims, (*others[:k], size, *others[k + 1 :]))
        if replace(operand, grid=grid).kind == "box":
            return size
    return None

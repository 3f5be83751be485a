"""Offsets, sizes and strides of the boxes of all tiles as formulas of the tile index.

Formulas are found among few candidates, and hold for every tile: each is compared with the boxes of
all tiles.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from indexing.maps.regions.boxes import Progression
from indexing.tiling.tiles.tile_sets import TileSets, tile_points
from simplifier.atoms import Variable
from simplifier.linear import Expr, as_expr
from simplifier.semiaffine import maximum, minimum

Array = NDArray[Any]


class TileRange(NamedTuple):
    """The indices that a tile needs in one dimension: ``offset + stride * i`` with ``i < size``.

    Attributes:
        offset, size, stride: expressions of the tile index; a size of 0 means an empty set.
    """

    offset: Expr
    size: Expr
    stride: Expr


class _Lines(NamedTuple):
    """The indices of each tile in one dimension, as arrays."""

    offsets: Array
    sizes: Array
    inhabited: Array
    stride: int

    @property
    def lasts(self) -> Array:
        lasts: Array = self.offsets + self.stride * (self.sizes - 1)
        return lasts


def line_of(sets: TileSets, k: int) -> TileRange | None:
    """Return the indices of all tiles in the k-th of the places of `sets`.

    For sets that are no boxes, these are the indices of the smallest box.  `None` if no formula is
    known.
    """
    lines = [
        Progression(0, 0, 1) if c.hull is None else c.hull.progressions[k] for c in sets.classes
    ]
    strides = {p.stride for p in lines if p.size > 1}
    if len(strides) > 1:
        return None
    own = np.array(lines, np.int64)[sets.class_of]
    arrays = _Lines(
        sets.shifts[:, k] + own[:, 0], own[:, 1], own[:, 1] > 0, min(strides, default=1)
    )
    if not arrays.inhabited.any():
        return TileRange(as_expr(0), as_expr(0), as_expr(1))
    at = tile_points(sets.tile_index)
    constants = sorted({p.offset for p in lines if p.size})
    for offset in _offsets(sets.exprs[k], constants, arrays):
        if not _agrees(offset, arrays.offsets, at, arrays.inhabited):
            continue
        for size in _sizes(offset, sets.exprs[k], lines, arrays):
            if _agrees(size, arrays.sizes, at, np.ones(len(own), bool)):
                return TileRange(offset, size, as_expr(arrays.stride))
    return None


def _agrees(expr: Expr, expected: Array, at: dict[Variable, Array], where: Array) -> bool:
    values = np.broadcast_to(np.asarray(expr.value(at)), expected.shape)
    return bool((values[where] == expected[where]).all())


def _offsets(shift: Expr, constants: list[int], lines: _Lines) -> Iterator[Expr]:
    """Candidates of the offset: translated, and cut at the first index of the array."""
    offsets = lines.offsets[lines.inhabited]
    if len(constants) == 1:
        yield shift + constants[0]
        return
    low, high = int(offsets.min()), int(offsets.max())
    for c in dict.fromkeys([constants[0], constants[-1], *constants[:4]]):
        yield maximum(shift + c, low)
        yield minimum(shift + c, high)
        yield minimum(maximum(shift + c, low), high)


def _sizes(offset: Expr, shift: Expr, lines: list[Progression], at: _Lines) -> Iterator[Expr]:
    """Candidates of the size: constant, and cut at the last index of the array."""
    sizes = {p.size for p in lines if p.size}
    last = int(at.lasts[at.inhabited].max())
    largest = max(sizes)
    ends = [p.last for p in lines if p.size]
    candidates = [as_expr(largest), minimum(largest, (last - offset) // at.stride + 1)]
    candidates += [
        (minimum(shift + end, last) - offset) // at.stride + 1
        for end in dict.fromkeys([max(ends), min(ends)])
    ]
    if at.inhabited.all():
        yield from candidates
        return
    first = int(at.offsets[at.inhabited].min())
    for size in candidates:
        yield maximum(size, 0)
        yield maximum(minimum(size, (last - offset) // at.stride + 1), 0)
    for end in dict.fromkeys([max(ends), min(ends)]):
        yield maximum((minimum(shift + end, last) - maximum(offset, first)) // at.stride + 1, 0)

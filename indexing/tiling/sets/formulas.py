"""Offsets, sizes and strides of the boxes of all tiles as formulas of the tile index.

Formulas are fitted to the boxes of all tiles, and hold for each of them: every candidate is
compared with all values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product as combinations
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from indexing.maps.regions.boxes import Box, Progression
from indexing.tiling.sets.tile_sets import TileSets, shape_of, tile_points
from indexing.tiling.symbolic.progressions import TileSide
from simplifier.atoms import Variable
from simplifier.linear import Expr, as_expr
from simplifier.semiaffine import maximum, minimum

Array = NDArray[Any]


EMPTY = TileSide(as_expr(0), as_expr(0), as_expr(1))
"""The indices of an array that no tile needs."""


class _Tiles(NamedTuple):
    """The points of a tile index, and the tiles whose values are compared."""

    variables: tuple[Variable, ...]
    at: Mapping[Variable, Array]
    where: Array

    def values(self, expr: Expr) -> Array:
        """The values of an expression for all tiles."""
        values: Array = np.broadcast_to(np.asarray(expr.value(self.at)), self.where.shape)
        return values

    def agrees(self, expr: Expr, values: Array) -> bool:
        """True if the expression has these values, where they are compared."""
        return bool((self.values(expr)[self.where] == values[self.where]).all())

    def fit_formula(self, values: Array, shifts: Iterable[Expr]) -> Expr | None:
        """An expression ``clip(shift + linear)`` with these values; `None` without any."""
        low, high = (int(f(values[self.where])) for f in (np.min, np.max))
        for shift in dict.fromkeys(shifts):
            rest = (values - self.values(shift)).reshape(shape_of(self.variables))
            for linear in self._linear(rest):
                for candidate in _clippings(shift + linear, low, high):
                    if self.agrees(candidate, values):
                        return candidate
        return None

    def _linear(self, values: Array) -> Iterator[Expr]:
        """Candidates for a linear function with many of these values."""
        mask = self.where.reshape(values.shape)
        slopes = [_slopes(values, mask, axis) for axis in range(values.ndim)]
        steepest = [each[-1] for each in slopes]
        common = [each[0] for each in slopes]
        for chosen in dict.fromkeys([(0,) * values.ndim, tuple(common), tuple(steepest)]):
            linear = as_expr(0)
            for v, slope in zip(self.variables, chosen, strict=True):
                linear += v * slope
            rest = values.reshape(-1) - self.values(linear)
            own = rest[self.where]
            extremes = int(own.min()), int(own.max())
            for constant in dict.fromkeys([*_most_common(own), *extremes]):
                yield linear + constant


def _clippings(base: Expr, low: int, high: int) -> Iterator[Expr]:
    yield base
    yield maximum(base, low)
    yield minimum(base, high)
    yield minimum(maximum(base, low), high)


def _slopes(values: Array, mask: Array, axis: int) -> list[int]:
    """The most common difference of neighbours, and the most common one that is not 0."""
    size = values.shape[axis]
    near, far = np.arange(size - 1), np.arange(1, size)
    steps = values.take(far, axis) - values.take(near, axis)
    steps = steps[mask.take(far, axis) & mask.take(near, axis)]
    if not steps.size:
        return [0]
    return [_most_common(steps)[0], *_most_common(steps[steps != 0])[:1]]


def _most_common(values: Array) -> list[int]:
    """The two most common values, the first one first; nothing without values."""
    each, counts = np.unique(values, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    return [int(v) for v in each[order][:2]]


def range_of(sets: TileSets, k: int, boxes: Sequence[Box | None]) -> TileSide | None:
    """Return the indices of a box of all tiles in the k-th of the places of `sets`.

    Args:
        boxes: the box in each class, without the translation of a tile.
    Returns:
        The indices; `None` if no formula is known.
    """
    sides = [Progression(0, 0, 1) if box is None else box.progressions[k] for box in boxes]
    strides = {p.stride for p in sides if p.size > 1}
    if len(strides) > 1:
        return None
    stride = min(strides, default=1)
    own = np.array(sides, np.int64)[sets.class_of]
    offsets, sizes = sets.shifts[:, k] + own[:, 0], own[:, 1]
    if not sizes.any():
        return EMPTY
    tiles = _Tiles(sets.tile_index, tile_points(sets.tile_index), sizes > 0)
    shifts = (sets.exprs[k], *sets.corners[k])
    firsts = {p.offset for p in sides if p.size}
    if len(firsts) == 1:
        offset: Expr | None = shifts[0] + min(firsts)
    else:
        offset = tiles.fit_formula(offsets, shifts)
    if offset is None:
        return None
    lasts = offsets + stride * (sizes - 1)
    widths = {p.size for p in sides}
    if len(widths) == 1:
        return TileSide(offset, as_expr(min(widths)), as_expr(stride))
    size = _size(tiles, sizes, offset, lasts, shifts, stride)
    return None if size is None else TileSide(offset, size, as_expr(stride))


def _size(
    tiles: _Tiles,
    sizes: Array,
    offset: Expr,
    lasts: Array,
    shifts: Sequence[Expr],
    stride: int,
) -> Expr | None:
    """An expression with these sizes, 0 included."""
    everywhere = tiles._replace(where=np.ones(len(sizes), bool))
    high = int(lasts[tiles.where].max())
    cut = minimum(int(sizes.max()), (high - offset) // stride + 1)
    direct = everywhere.fit_formula(sizes, [as_expr(0), *shifts])
    known = [size for size in (cut, maximum(cut, 0)) if everywhere.agrees(size, sizes)]
    known += [] if direct is None else [direct]
    if known:
        return min(known, key=lambda size: len(str(size)))
    return _size_to_last(tiles, everywhere, sizes, offset, lasts, shifts, stride)


def _size_to_last(
    tiles: _Tiles,
    everywhere: _Tiles,
    sizes: Array,
    offset: Expr,
    lasts: Array,
    shifts: Sequence[Expr],
    stride: int,
) -> Expr | None:
    """An expression with these sizes, from one with the last indices."""
    last = tiles.fit_formula(lasts, shifts)
    if last is None:
        return None
    low, high = (int(f(lasts[tiles.where])) for f in (np.min, np.max))
    first = int(tiles.values(offset)[tiles.where].min())
    for end in (last, minimum(last, high), maximum(last, low)):
        for start in (offset, maximum(offset, first)):
            size = (end - start) // stride + 1
            inside = _limits(tiles, int(sizes.max()))
            for candidate in (size, maximum(size, 0), maximum(minimum(size, *inside), 0)):
                if everywhere.agrees(candidate, sizes):
                    return candidate
    return None


def _limits(tiles: _Tiles, largest: int) -> list[Expr]:
    """Expressions of at least `largest` between the first and last tile that need an element."""
    limits = []
    for v in tiles.variables:
        values = tiles.at[v][tiles.where]
        limits += [(v - (int(values.min()) - 1)) * largest, (int(values.max()) + 1 - v) * largest]
    return limits


def _conditions(sets: TileSets) -> list[tuple[Expr, int, int]] | None:
    """The bounds of expressions of the tile index for which the sets are not empty.

    `None` if the sets are empty for other tiles, too.
    """
    at = tile_points(sets.tile_index)
    inhabited = np.array([c.count > 0 for c in sets.classes])[sets.class_of]
    inside = np.ones(len(inhabited), bool)
    conditions = []
    for key in sets.keys:
        values = np.broadcast_to(np.asarray(key.value(at)), inhabited.shape)
        low, high = int(values[inhabited].min()), int(values[inhabited].max())
        inside &= (values >= low) & (values <= high)
        conditions.append((key, low, high))
    return conditions if (inside == inhabited).all() else None


def ranges_of(product: Sequence[TileSets]) -> tuple[TileSide, ...] | None:
    """Return the indices of the smallest boxes of all tiles in each dimension of an array.

    Args:
        product: sets whose product is needed.
    """
    return _ranges_at(product, [[c.hull for c in own.classes] for own in product])


def pieces_of(product: Sequence[TileSets], limit: int) -> list[tuple[TileSide, ...]] | None:
    """Return the indices of disjoint boxes whose union each tile needs.

    Returns:
        At most `limit` boxes, some of which may be empty for a tile; `None` if more are needed, or
        no formulas are known.
    """
    choices: list[list[list[Box | None]]] = []
    for own in product:
        boxes = [[c.hull] if c.is_box else c.region.boxes(limit) for c in own.classes]
        known = [each for each in boxes if each is not None]
        if len(known) < len(boxes):
            return None
        count = max(map(len, known))
        choices.append(
            [[each[k] if k < len(each) else None for each in known] for k in range(count)]
        )
    if prod(map(len, choices)) > limit:
        return None
    pieces = [_ranges_at(product, chosen) for chosen in combinations(*choices)]
    listed = [piece for piece in pieces if piece is not None]
    return listed if len(listed) == len(pieces) else None


def _ranges_at(
    product: Sequence[TileSets], boxes: Sequence[Sequence[Box | None]]
) -> tuple[TileSide, ...] | None:
    ranges: dict[int, TileSide] = {}
    conditions: list[TileSets] = []
    for own, chosen in zip(product, boxes, strict=True):
        if not own.places and any(not c.count for c in own.classes):
            conditions.append(own)
        for k, place in enumerate(own.places):
            line = range_of(own, k, chosen)
            if line is None:
                return None
            ranges[place] = line
    listed = [ranges[place] for place in sorted(ranges)]
    if conditions and listed:
        limited = _limit_range(listed[0], conditions)
        if limited is None:
            return None
        listed[0] = limited
    return tuple(listed)


def _limit_range(line: TileSide, conditions: Iterable[TileSets]) -> TileSide | None:
    """The range with a size of 0 for tiles whose conditions do not hold."""
    size = line.size
    largest = size.bounds[1]
    for own in conditions:
        if not own.inhabited:
            return EMPTY
        bounds = _conditions(own)
        if bounds is None:
            return None
        for key, low, high in bounds:
            inside = [(key - (low - 1)) * largest] if low > key.bounds[0] else []
            inside += [(high + 1 - key) * largest] if high < key.bounds[1] else []
            size = maximum(minimum(size, *inside), 0)
    return line._replace(size=size)

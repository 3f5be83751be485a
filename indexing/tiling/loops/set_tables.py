"""`SetTable`: the step sets of the reads of one array, memoised by the steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from math import prod
from typing import Final, NamedTuple

import numpy as np

from indexing.maps.indexing_map import IndexingMap
from indexing.tiling.loops.axes import Axes, IntArray, count_points, joint_axes
from indexing.tiling.loops.bands import BandedUnion, StepBand, band_of
from indexing.tiling.loops.sides import MapComponent, StepSide, TileRanges, components_of, sides_of
from indexing.tiling.loops.step_sets import JoinedSets, PointUnion, ProductUnion, StepSets, distinct
from indexing.tiling.sizes.tile_sizes import dimension_of
from simplifier.atoms import Variable
from simplifier.unknown import Unknown

MAX_PRODUCTS: Final = 8
"""Limit on the reads of an array that are united by inclusion and exclusion."""
MAX_POINTS: Final = 1 << 22
"""Limit on the points of maps that are enumerated for one array."""
MAX_GRID: Final = 1 << 24
"""Limit on the blocks and steps that are counted one by one."""


class PlacedRead(NamedTuple):
    """A map to an array, with the axis of each of its dimensions.

    Attributes:
        read: the map.
        numbers: the axis of each dimension of the map.
    """

    read: IndexingMap
    numbers: tuple[int, ...]

    @property
    def used(self) -> set[int]:
        """The axes on which the elements depend."""
        return set(self.numbers)


def place_read(read: IndexingMap, renamed: Mapping[int, int]) -> PlacedRead:
    """Return a map without unused dimensions.

    Args:
        read: the map, whose dimensions ``dk`` belong to axis k.
        renamed: other numbers of axes.
    """
    exprs = [*read.results, *[c.expr for c in read.constraints]]
    used = {v for expr in exprs for v in expr.variables()}
    dims = tuple([d for d in read.dims if d in used or d.is_empty])
    numbers = [dimension_of(d) for d in dims]
    return PlacedRead(replace(read, dims=dims), tuple([renamed.get(k, k) for k in numbers]))


class SetTable:
    """Step sets of one array, memoised by the steps of the axes on which they depend.

    Args:
        dims: the sizes of the array.

    Attributes:
        points: the number of points of maps that were enumerated.
    """

    def __init__(self, dims: Sequence[int]) -> None:
        self._dims = tuple(dims)
        self.points = 0
        self._components: dict[PlacedRead, tuple[MapComponent, ...]] = {}
        self._sides: dict[object, tuple[StepSide, ...] | None] = {}
        self._sets: dict[object, StepSets | Unknown] = {}
        self._listed: dict[PlacedRead, _Points | Unknown] = {}
        self._parts: dict[PlacedRead, SetTable] = {}

    def union(self, reads: Sequence[PlacedRead], axes: Axes) -> StepSets | Unknown:
        """Return the union of the elements of reads, in each tile."""
        used = sorted(set().union(*[read.used for read in reads]))
        key = (tuple(reads), tuple([(k, axes[k]) for k in used]))
        if key not in self._sets:
            self._sets[key] = self._unite(reads, axes)
        known = self._sets[key]
        if isinstance(known, StepSets) and known.all_axes is not axes:
            known = copy(known)  # other axes may have other steps
            known.all_axes = axes
        return known

    def _unite(self, reads: Sequence[PlacedRead], axes: Axes) -> StepSets | Unknown:
        products = [self._product(read, axes) for read in reads]
        listed = [sides for sides in products if sides is not None]
        if len(listed) == len(products) <= MAX_PRODUCTS and _have_equal_strides(listed):
            union = ProductUnion(listed, axes, len(self._dims))
            if len(listed) == 1 or count_points(axes, union.axes) <= MAX_GRID:
                return union
        if len(reads) <= MAX_PRODUCTS:
            joined = self._join_parts(reads, axes)
            if joined is not None and count_points(axes, joined.axes) <= MAX_GRID:
                return joined
        return self.listed(reads, axes)

    def _product(self, read: PlacedRead, axes: Axes) -> tuple[StepSide, ...] | None:
        """Return the sides of a read, by dimension, then its gates; None if it is no product."""
        if read not in self._components:
            self._components[read] = components_of(read.read)
        numbers = dict(zip(read.read.dims, read.numbers, strict=True))
        placed: dict[int, StepSide] = {}
        gates: list[StepSide] = []
        for number, component in enumerate(self._components[read]):
            own = {v: k for v, k in numbers.items() if v in component.variables}
            key = (read, number, tuple([(k, axes[k]) for k in own.values()]))
            if key not in self._sides:
                self._sides[key] = sides_of(read.read, component, TileRanges(axes, own))
            sides = self._sides[key]
            if sides is None:
                return None
            placed |= dict(zip(component.results, sides, strict=False))
            gates += sides[len(component.results) :]
        return (*[placed[k] for k in range(len(read.read.results))], *gates)

    def _join_parts(self, reads: Sequence[PlacedRead], axes: Axes) -> StepSets | None:
        """Return the union of reads by parts that share no variable.

        Parts that are no products of sides are bands, or listed, and must be the same in all
        reads; None if they are not, or if they are too many to list.
        """
        apart = self._equal_parts(reads, axes)
        if apart is None:
            return None
        banded = self._band_union(apart[0], axes) if len(apart) == 1 else None
        if banded is not None:
            return banded
        parts: list[tuple[tuple[int, ...], StepSets]] = []
        for (places, _), other in zip(apart[0].keys, apart[0].others, strict=True):
            if isinstance(other, StepBand):
                parts.append((places, BandedUnion(other.sides, (0, 1), other, axes, 2)))
            else:
                parts.append((places, other))
        dims = apart[0].rest_dims(len(self._dims))
        parts.append((dims, ProductUnion([each.rest for each in apart], axes, len(dims))))
        return JoinedSets(parts, axes, len(self._dims))

    def _equal_parts(self, reads: Sequence[PlacedRead], axes: Axes) -> list[_Apart] | None:
        """Return the parts of each read; None if they differ, except by the bounds of sides."""
        apart = [each for read in reads if (each := self._parts_of(read, axes)) is not None]
        if len(apart) < len(reads) or any(each.keys != apart[0].keys for each in apart):
            return None
        return apart if _have_equal_strides([each.rest for each in apart]) else None

    def _band_union(self, apart: _Apart, axes: Axes) -> BandedUnion | None:
        """Return the elements of a read whose only part that is no product is a band."""
        if len(apart.others) != 1:
            return None
        ((places, _),), (band,) = apart.keys, apart.others
        if not isinstance(band, StepBand):
            return None
        rank = len(self._dims)
        dims = apart.rest_dims(rank)
        placed = dict(zip(dims, apart.rest, strict=False))
        placed |= dict(zip(places, band.sides, strict=True))
        first, second = places
        sides = (*[placed[k] for k in range(rank)], *apart.rest[len(dims) :])
        return BandedUnion(sides, (first, second), band, axes, rank)

    def _parts_of(self, read: PlacedRead, axes: Axes) -> _Apart | None:
        """Return the parts of a read; None if one cannot be listed."""
        placed: dict[int, StepSide] = {}
        gates: list[StepSide] = []
        keys: list[tuple[tuple[int, ...], PlacedRead]] = []
        others: list[StepBand | PointUnion] = []
        numbers = dict(zip(read.read.dims, read.numbers, strict=True))
        for component in self._components[read]:
            own = {v: k for v, k in numbers.items() if v in component.variables}
            ranges = TileRanges(axes, own)
            sides = sides_of(read.read, component, ranges)
            if sides is not None:
                placed |= dict(zip(component.results, sides, strict=False))
                gates += sides[len(component.results) :]
                continue
            key = _part(read, component)
            other = band_of(read.read, component, ranges) or self._list_part(key, component, axes)
            if other is None:
                return None
            keys.append((component.results, key))
            others.append(other)
        rest = (*[placed[k] for k in sorted(placed)], *gates)
        return _Apart(rest, tuple(keys), tuple(others))

    def _list_part(
        self, part: PlacedRead, component: MapComponent, axes: Axes
    ) -> PointUnion | None:
        """Return the listed elements of a part of a read; None if there are too many."""
        if part not in self._parts:
            self._parts[part] = SetTable([self._dims[k] for k in component.results])
        table = self._parts[part]
        before = table.points
        listed = table.listed([part], axes)
        self.points += table.points - before
        return None if isinstance(listed, Unknown) else listed

    def listed(self, reads: Sequence[PlacedRead], axes: Axes) -> PointUnion | Unknown:
        """Return the union of the elements of reads, in each tile, as a list."""
        joint = joint_axes([read.numbers for read in reads])
        listed, total = [], 0
        for each in reads:
            free = [axes[k] for k in joint if k not in each.numbers]
            total += prod([max(1, v.size) for v in (*each.read.dims, *each.read.ranges)])
            if total * prod([axis.count for axis in free]) > MAX_POINTS:
                return Unknown(f"budget: more than {MAX_POINTS:,} points of maps to one array")
            if each not in self._listed:
                self._listed[each] = _points(each, self._dims)
            points = self._listed[each]
            if isinstance(points, Unknown):
                return points
            listed.append(self._pairs(points, axes, joint))
        self.points += sum(map(len, listed))
        pairs = distinct(np.concatenate(listed)) if listed else np.zeros(0, np.int64)
        return PointUnion(axes, joint, pairs, self._dims)

    def _pairs(self, points: _Points, axes: Axes, joint: tuple[int, ...]) -> IntArray:
        """Return ``tile * elements + element`` for all points of a map, perhaps several times."""
        along, elements = points
        tile: IntArray = np.zeros((len(elements), 1), np.int64)
        for axis in joint:
            count = axes[axis].count
            if axis in along:
                tile = tile * count + (along[axis] // axes[axis].step)[:, None]
            else:
                spread = tile[:, :, None] * count + np.arange(count)
                tile = spread.reshape(tile.shape[0], -1)
        return (tile * max(1, prod(self._dims)) + elements[:, None]).reshape(-1)


class _Apart(NamedTuple):
    """A read in parts that share no variable.

    Attributes:
        rest: the sides of all parts that are products, by dimension, then their gates.
        keys: the dimensions and the map of each other part.
        others: the elements of these.
    """

    rest: tuple[StepSide, ...]
    keys: tuple[tuple[tuple[int, ...], PlacedRead], ...]
    others: tuple[StepBand | PointUnion, ...]

    def rest_dims(self, rank: int) -> tuple[int, ...]:
        """Return the dimensions, of so many, that are products."""
        taken = {k for places, _ in self.keys for k in places}
        return tuple([k for k in range(rank) if k not in taken])


def _part(read: PlacedRead, component: MapComponent) -> PlacedRead:
    """Return the part of a read that a component is."""
    own = component.variables
    dims = tuple([d for d in read.read.dims if d in own])
    part = replace(
        read.read,
        dims=dims,
        ranges=tuple([v for v in read.read.ranges if v in own]),
        results=tuple([read.read.results[k] for k in component.results]),
        constraints=component.constraints,
    )
    numbers = dict(zip(read.read.dims, read.numbers, strict=True))
    return PlacedRead(part, tuple([numbers[d] for d in dims]))


def _have_equal_strides(products: Sequence[tuple[StepSide, ...]]) -> bool:
    """Return True if the sides of all products have the same strides, dimension by dimension."""
    if len({len(sides) for sides in products}) != 1:
        return False
    return all(len({side.stride for side in sides}) == 1 for sides in zip(*products, strict=True))


class _Points(NamedTuple):
    """The points of a map: the index along each axis, and the number of the element."""

    along: dict[int, IntArray]
    elements: IntArray


def _points(each: PlacedRead, dims: Sequence[int]) -> _Points | Unknown:
    """Return the points of a map to an array.

    `Unknown` for values at runtime that all differ, more of them than the array has elements.
    """
    read = each.read
    variables = (*read.dims, *read.ranges)
    grids = np.meshgrid(
        *[np.arange(v.lower, v.upper + 1, dtype=np.int64) for v in variables], indexing="ij"
    )
    point: dict[Variable, IntArray] = {
        v: grid.reshape(-1) for v, grid in zip(variables, grids, strict=True)
    }
    inside = np.ones(prod([v.size for v in variables]), bool)
    for constraint in read.constraints:
        value = constraint.expr.value(point)
        inside &= (value >= constraint.lower) & (value <= constraint.upper)
    point = {v: values[inside] for v, values in point.items()}
    elements: IntArray = np.zeros(int(inside.sum()), np.int64)
    for result, size in zip(read.results, dims, strict=True):
        index = np.asarray(result.value(point))
        if index.size and not 0 <= index.min() <= index.max() < size:
            return Unknown("elements at runtime values are counted only in products of ranges")
        elements = elements * size + index
    along = {k: point[d] for k, d in zip(each.numbers, read.dims, strict=True)}
    return _Points(along, elements)

"""Step sets: the elements of one array that each block reads in each step, as a union of reads.

`StepSets` counts them for all tiles of the axes at once.  Products of sides are counted in closed
form, their unions by inclusion and exclusion; other sets by enumerating the points of the maps.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from itertools import combinations, pairwise
from math import prod

import numpy as np

from indexing.tiling.loops.axes import Axes, IntArray, OverAxes, joint_axes
from indexing.tiling.loops.sides import StepSide, intersect_sides


class StepSets:
    """The elements of an array in each tile of some axes.

    Attributes:
        axes: the numbers of the axes on which they depend, ascending.
        all_axes: all axes by number.
    """

    axes: tuple[int, ...]
    all_axes: Axes

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of tiles along each axis."""
        return tuple([self.all_axes[axis].count for axis in self.axes])

    @abstractmethod
    def count(self) -> OverAxes:
        """Return the number of elements of each tile."""

    @abstractmethod
    def same(self, joint: Sequence[int], rank: int) -> IntArray:
        """Return for each step but the first if it has the elements of the step before.

        Args:
            joint: the axes of the blocks, then those of the steps, the outermost first.
            rank: the number of axes of blocks.
        Returns:
            An array with one dimension for each axis of blocks, then one for all steps together.
        """

    @abstractmethod
    def boxes(self) -> OverAxes:
        """Return the number of elements of the smallest box of each tile."""

    @property
    @abstractmethod
    def extents(self) -> tuple[int, ...]:
        """The most indices along each dimension of a box of one tile."""

    def largest(self) -> int:
        """Return the most elements of a tile."""
        return int(self.count().values.max(initial=0))

    def is_largest_at(self, position: int) -> bool:
        """Return True if the tile at this index along each axis, or its last one, is largest."""
        counts = self.count().values
        return bool(counts[tuple([min(position, n - 1) for n in counts.shape])] == self.largest())

    @property
    def are_boxes(self) -> bool:
        """True if the elements of each tile are a box."""
        return bool(np.all(self.boxes().values == self.count().values))

    def changes(self, along: Sequence[int]) -> OverAxes:
        """Return for each tile if its elements differ from those of the step before.

        Args:
            along: the axes of the steps, the outermost first.
        """
        blocks = [axis for axis in self.axes if axis not in along]
        joint = (*blocks, *along)
        counts = [self.all_axes[axis].count for axis in joint]
        same = self.same(joint, len(blocks))
        first = np.ones((*counts[: len(blocks)], 1), bool)
        changed = np.concatenate([first, ~same], axis=-1).reshape(counts)
        ordered = joint_axes([joint])
        return OverAxes(ordered, changed.transpose([joint.index(axis) for axis in ordered]))

    def loaded(self, along: Sequence[int]) -> int:
        """Return the elements that all blocks load: none where those of the step before remain.

        Blocks that differ along other axes than `axes` are counted once.
        """
        if not along:
            return int(self.count().values.sum())
        changed = self.changes(along)
        return int((self.count().along(changed.axes) * changed.values).sum())


class ProductUnion(StepSets):
    """Unions of products of sides.

    Args:
        products: for each read its sides.
        all_axes: all axes by number.
        rank: the number of dimensions of the array; further sides are gates.
    """

    def __init__(self, products: Sequence[tuple[StepSide, ...]], all_axes: Axes, rank: int) -> None:
        self.products, self.all_axes, self._rank = tuple(products), all_axes, rank
        self.axes = joint_axes([side.axes for sides in products for side in sides])

    def count(self) -> OverAxes:
        total: IntArray = np.zeros([1] * len(self.axes), np.int64)
        for size in range(1, len(self.products) + 1):
            for chosen in combinations(self.products, size):
                total = total + (-1) ** (size + 1) * _count_common(chosen, self.axes)
        return OverAxes(self.axes, np.broadcast_to(total, self.shape))

    def boxes(self) -> OverAxes:
        if len(self.products) == 1:
            return self.count()
        is_used = [_count_common([sides], self.axes) > 0 for sides in self.products]
        number: IntArray = np.ones([1] * len(self.axes), np.int64)
        for sides in list(zip(*self.products, strict=True))[: self._rank]:
            low, high, stride = _hull(sides, is_used, self.axes)
            number = number * np.maximum((high - low) // stride + 1, 0)
        number = np.where(np.logical_or.reduce(np.broadcast_arrays(*is_used)), number, 0)
        return OverAxes(self.axes, np.broadcast_to(number, self.shape))

    @property
    def extents(self) -> tuple[int, ...]:
        if len(self.products) == 1:
            sides = self.products[0][: self._rank]
            return tuple([int(side.count.values.max(initial=0)) for side in sides])
        is_used = [_count_common([sides], self.axes) > 0 for sides in self.products]
        sizes = []
        for sides in list(zip(*self.products, strict=True))[: self._rank]:
            low, high, stride = _hull(sides, is_used, self.axes)
            sizes.append(int(max(0, np.max((high - low) // stride + 1))))
        return tuple(sizes)

    def largest(self) -> int:
        if len(self.products) != 1:
            return super().largest()
        total = 1
        for sides in _connect_sides(self.products[0], ()):
            part = ProductUnion([sides], self.all_axes, len(sides))
            total *= StepSets.largest(part)
        return total

    def is_largest_at(self, position: int) -> bool:
        if len(self.products) != 1:
            return super().is_largest_at(position)
        number = 1
        for side in self.products[0]:
            counts = side.count.values
            number *= int(counts[tuple([min(position, n - 1) for n in counts.shape])])
        return number == self.largest()

    @property
    def are_boxes(self) -> bool:
        return len(self.products) == 1 or super().are_boxes

    def same(self, joint: Sequence[int], rank: int) -> IntArray:
        counts = [self.all_axes[axis].count for axis in joint]
        shape = (*counts[:rank], prod(counts[rank:]))
        same: IntArray = np.ones((*shape[:-1], shape[-1] - 1), bool)
        for sides in self.products:
            equal: IntArray = np.ones(same.shape, bool)
            is_empty: IntArray = np.zeros(shape, bool)
            for side in sides:
                if not set(side.axes).intersection(joint):
                    continue
                low, high = [
                    np.broadcast_to(OverAxes(side.axes, each).along(joint), counts).reshape(shape)
                    for each in (side.low, side.high)
                ]
                is_empty = is_empty | (high < low)
                equal &= (low[..., 1:] == low[..., :-1]) & (high[..., 1:] == high[..., :-1])
            same &= equal | (is_empty[..., 1:] & is_empty[..., :-1])
        return same

    def loaded(self, along: Sequence[int]) -> int:
        if len(self.products) != 1:
            return super().loaded(along)
        total = 1
        for sides in _connect_sides(self.products[0], along):
            part = ProductUnion([sides], self.all_axes, len(sides))
            own = set(part.axes).intersection(along)
            total *= StepSets.loaded(part, along if own else ())
        return total


def _connect_sides(sides: Sequence[StepSide], along: Sequence[int]) -> list[tuple[StepSide, ...]]:
    """Return the sides in groups that have no axis in common; all that depend on steps are one."""
    groups: list[tuple[set[int], list[StepSide]]] = []
    for side in sides:
        axes, own = set(side.axes), [side]
        if axes.intersection(along):
            axes |= set(along)
        touching = [group for group in groups if group[0] & axes]
        groups = [group for group in groups if not group[0] & axes]
        for group in touching:
            axes, own = axes | group[0], group[1] + own
        groups.append((axes, own))
    return [tuple(own) for _, own in groups]


def _hull(
    sides: Sequence[StepSide], is_used: Sequence[IntArray], joint: Sequence[int]
) -> tuple[IntArray, IntArray, int]:
    """Return the bounds of the indices of several reads, of those that read something."""
    far = np.int64(1) << 60
    low: IntArray = np.asarray(far)
    high: IntArray = np.asarray(-far)
    for side, used in zip(sides, is_used, strict=True):
        own_low, own_high = side.bounds_along(joint)
        low = np.minimum(low, np.where(used, own_low, far))
        high = np.maximum(high, np.where(used, own_high, -far))
    return low, high, sides[0].stride if len(sides) == 1 else 1


def _count_common(products: Sequence[tuple[StepSide, ...]], joint: Sequence[int]) -> IntArray:
    """Return the number of elements that all products have."""
    number: IntArray = np.ones([1] * len(joint), np.int64)
    first, *others = products
    for k, side in enumerate(first):
        common = side
        for other in others:
            both = intersect_sides(common, other[k])
            assert both is not None  # all have one stride
            common = both
        number = number * common.count.along(joint)
    return number


class PointUnion(StepSets):
    """Sets of elements that are listed: pairs of the number of a tile and of an element.

    Args:
        all_axes: the axes by number.
        axes: the axes on which the sets depend.
        pairs: ``tile * elements + element``, sorted, each once; tiles are numbered row-major.
        dims: the sizes of the array.
    """

    def __init__(
        self, all_axes: Axes, axes: tuple[int, ...], pairs: IntArray, dims: tuple[int, ...]
    ) -> None:
        self.axes, self.all_axes, self.pairs, self._dims = axes, all_axes, pairs, dims
        self._elements = max(1, prod(dims))

    def count(self) -> OverAxes:
        tiles = self.pairs // self._elements
        counts = np.bincount(tiles, minlength=prod(self.shape))
        return OverAxes(self.axes, counts.reshape(self.shape))

    @cached_property
    def _hulls(self) -> tuple[IntArray, IntArray]:
        """The first and the last index of each tile along each dimension."""
        tiles, elements = np.divmod(self.pairs, self._elements)
        indices = np.stack(np.unravel_index(elements, self._dims or (1,)), axis=-1)
        low = np.full((prod(self.shape), indices.shape[1]), self._elements, np.int64)
        high = np.full(low.shape, -1, np.int64)
        starts = np.flatnonzero(np.diff(tiles, prepend=-1))  # of the tiles with elements
        if len(starts):
            low[tiles[starts]] = np.minimum.reduceat(indices, starts)
            high[tiles[starts]] = np.maximum.reduceat(indices, starts)
        return low, high

    def boxes(self) -> OverAxes:
        low, high = self._hulls
        sizes = np.maximum(high - low + 1, 0).prod(axis=1)
        return OverAxes(self.axes, sizes.reshape(self.shape))

    @property
    def extents(self) -> tuple[int, ...]:
        low, high = self._hulls
        sizes: list[int] = np.maximum(high - low + 1, 0).max(axis=0, initial=0).tolist()
        return tuple(sizes[: len(self._dims)])

    def elements_by_tile(self) -> list[IntArray]:
        """Return the row-major numbers of the elements of each tile, ascending."""
        starts = np.searchsorted(self.pairs, np.arange(prod(self.shape) + 1) * self._elements)
        return [self.pairs[a:b] % self._elements for a, b in pairwise(starts.tolist())]

    def elements_of(self, tiles: Sequence[int]) -> int:
        """Return the number of elements that some tiles, by row-major number, have together."""
        starts = np.searchsorted(self.pairs, np.array(tiles) * self._elements)
        ends = np.searchsorted(self.pairs, (np.array(tiles) + 1) * self._elements)
        own = [self.pairs[a:b] % self._elements for a, b in zip(starts, ends, strict=True)]
        return len(distinct(np.concatenate(own))) if own else 0

    def same(self, joint: Sequence[int], rank: int) -> IntArray:
        counts = [self.all_axes[axis].count for axis in joint]
        numbers = np.arange(prod(self.shape)).reshape(self.shape)
        spread = np.broadcast_to(OverAxes(self.axes, numbers).along(joint), counts)
        shape = (*counts[:rank], prod(counts[rank:]))
        steps = self._numbers[spread.reshape(shape)]
        return np.asarray(steps[..., 1:] == steps[..., :-1])

    @cached_property
    def _numbers(self) -> IntArray:
        """A number for each tile; tiles with the same elements have the same one."""
        seen: dict[bytes, int] = {}
        return np.array([seen.setdefault(s.tobytes(), len(seen)) for s in self.elements_by_tile()])


class JoinedSets(StepSets):
    """The elements of a read whose dimensions fall into parts that share no variable.

    A tile has all combinations of an element of each part.

    Args:
        parts: the elements of each part, with the dimensions of the array that they have.
        all_axes: all axes by number.
        rank: the number of dimensions of the array.
    """

    def __init__(
        self, parts: Sequence[tuple[tuple[int, ...], StepSets]], all_axes: Axes, rank: int
    ) -> None:
        self.parts, self.all_axes, self._rank = tuple(parts), all_axes, rank
        self.axes = joint_axes([part.axes for _, part in parts])

    def count(self) -> OverAxes:
        return self._product([part.count() for _, part in self.parts])

    def boxes(self) -> OverAxes:
        return self._product([part.boxes() for _, part in self.parts])

    def _product(self, numbers: Sequence[OverAxes]) -> OverAxes:
        total: IntArray = np.ones([1] * len(self.axes), np.int64)
        for each in numbers:
            total = total * each.along(self.axes)
        return OverAxes(self.axes, np.broadcast_to(total, self.shape))

    @property
    def extents(self) -> tuple[int, ...]:
        sizes = [0] * self._rank
        for dims, part in self.parts:
            for dim, size in zip(dims, part.extents, strict=False):
                sizes[dim] = size
        return tuple(sizes)

    def same(self, joint: Sequence[int], rank: int) -> IntArray:
        counts = [self.all_axes[axis].count for axis in joint]
        shape = (*counts[:rank], prod(counts[rank:]))
        equal: IntArray = np.ones((*shape[:-1], shape[-1] - 1), bool)
        is_empty: IntArray = np.zeros(shape, bool)
        for _, part in self.parts:
            equal &= part.same(joint, rank)
            number = np.broadcast_to(part.count().along(joint), counts).reshape(shape)
            is_empty |= number == 0
        return equal | (is_empty[..., 1:] & is_empty[..., :-1])


def distinct(values: IntArray) -> IntArray:
    """Return the different values, sorted; for millions of them, faster than `np.unique`."""
    ordered = np.sort(values)
    return ordered[np.diff(ordered, prepend=ordered[:1] - 1) > 0]

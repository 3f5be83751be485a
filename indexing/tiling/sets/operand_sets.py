"""The sets that all tiles need of one array, by all of its maps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Final

import numpy as np

from indexing.maps.indexing_map import IndexingMap
from indexing.maps.runtime_variable import RuntimeVariable
from indexing.tiling.sets.distinct_rows import number_rows
from indexing.tiling.sets.runtime_values import Starts
from indexing.tiling.sets.tile_grid import TileGrid
from indexing.tiling.sets.tile_sets import (
    BudgetError,
    TileClass,
    TileSets,
    is_start,
    tile_sets,
)
from indexing.tiling.sets.tiled_maps import TiledMap, product_of, tiled_maps
from indexing.tiling.sets.united_sets import translate_region, unite_sets
from simplifier.atoms import Variable, point_count
from simplifier.interval import Interval
from simplifier.unknown import Unknown

MAX_PAIRS: Final = 1 << 12
"""Maximum number of different pairs of neighbouring tiles whose common elements are counted."""


@dataclass(frozen=True)
class OperandSets:
    """The sets that all tiles need of one array: unions of products of independent sets.

    Attributes:
        grid: the tiles.
        products: the union of these products is needed.  Usually there is one; there are several
            if it depends on runtime values whether they overlap.
        starts: the runtime values that the sets depend on.
        runtime: runtime variables that take all values: the sets are over-approximations.
    """

    grid: TileGrid
    products: tuple[tuple[TileSets, ...], ...]
    starts: Starts | None = None
    runtime: tuple[RuntimeVariable, ...] = ()

    @property
    def largest(self) -> int:
        """The number of elements of the largest tile."""
        return sum([prod([max(_counts(s), default=0) for s in p]) for p in self.products])

    @cached_property
    def bounds(self) -> Interval:
        """Bounds of the sum over all tiles of the number of elements, for any runtime values."""
        each = [self._sum(p, lambda c: c.count) for p in self.products]
        return sum([low for low, _ in each]), sum([high for _, high in each])

    @property
    def total(self) -> int:
        """The sum over all tiles of the number of elements that each needs; an upper bound."""
        return self.bounds[1]

    @property
    def hull_total(self) -> int | None:
        """The sum over all tiles of the elements of the smallest boxes, if it is constant."""
        each = [self._sum(p, lambda c: c.hull.count() if c.hull else 0) for p in self.products]
        return sum([high for _, high in each]) if all(low == high for low, high in each) else None

    @property
    def is_exact(self) -> bool:
        """True if counts are exact for all runtime values; otherwise they are upper bounds."""
        if self.runtime or len(self.products) > 1 or self.rows > 1:
            return False
        return self.bounds[0] == self.bounds[1]

    def _sum(self, sets: tuple[TileSets, ...], value: Callable[[TileClass], int]) -> Interval:
        used = {v for s in sets for v in s.tile_index}
        repeated = point_count([v for v in self.grid.tile_index if v not in used])
        each = [s.total(value) for s in sets]
        return repeated * prod([low for low, _ in each]), repeated * prod([n for _, n in each])

    @cached_property
    def rows(self) -> int:
        """Maximum number of combinations of runtime values in one tile."""
        each = [
            prod([max([c.rows for c in s.inhabited], default=0) for s in p]) for p in self.products
        ]
        return max(each, default=0)

    @property
    def boxes(self) -> int | None:
        """Maximum number of disjoint boxes of one tile; `None` if no few boxes are known."""
        if len(self.products) > 1:
            counts = [OperandSets(self.grid, (p,)).boxes for p in self.products]
            return None if None in counts else sum([c for c in counts if c is not None])
        number = 1
        for s in self.products[0] if self.products else ():
            each = [c.boxes for c in s.inhabited]
            if None in each:
                return None
            number *= max([n for n in each if n is not None], default=0)
        return number

    def halo(self, k: int) -> int | Unknown:
        """Return the maximum number of elements that two neighbouring tiles in dimension k need."""
        if self.grid.counts[k] < 2:
            return 0
        if len(self.products) > 1 or self.rows > 1:
            return Unknown("depends on runtime values")
        tid = self.grid.tile_index[k]
        counts: list[int] = []
        for s in self.products[0] if self.products else ():
            if tid in s.tile_index:
                common = _common(s, s.tile_index.index(tid))
                if isinstance(common, Unknown):
                    return common
                counts.append(common)
            else:
                counts.append(max(_counts(s), default=0))
        return prod(counts) if self.products else 0


def _counts(sets: TileSets) -> list[int]:
    return [c.count for c in sets.classes]


def _common(sets: TileSets, axis: int) -> int | Unknown:
    """The maximum number of common elements of neighbouring tiles along an axis."""
    if not sets.is_uniform or any(
        i.variables() for own in sets.starts for start, _ in own for i in start.position
    ):
        return Unknown("the runtime values of neighbouring tiles differ")
    shape = sets.shape
    class_of = sets.class_of.reshape(shape)
    shifts = sets.shifts.reshape(*shape, len(sets.places))
    size = shape[axis]
    near, far = np.arange(size - 1), np.arange(1, size)
    distance = shifts.take(far, axis) - shifts.take(near, axis)
    places = [distance[..., k] for k in range(len(sets.places))]
    columns = [class_of.take(near, axis), class_of.take(far, axis), *places]
    _, pairs = number_rows([column.reshape(-1) for column in columns])
    if len(pairs) > MAX_PAIRS:
        return Unknown(f"budget: {len(pairs)} pairs of neighbouring tiles, more than {MAX_PAIRS}")
    most = 0
    for first, second, *by in pairs.tolist():
        count = _common_count(sets.classes[first], sets.classes[second], by)
        if isinstance(count, Unknown):
            return count
        most = max(most, count)
    return most


def _common_count(first: TileClass, second: TileClass, by: Sequence[int]) -> int | Unknown:
    """The number of common elements of a set, and of the translate of another one."""
    if first.hull is None or second.hull is None:
        return 0
    sides = zip(first.hull.progressions, second.hull.progressions, by, strict=True)
    if any(a.last < b.offset + d or b.last + d < a.offset for a, b, d in sides):
        return 0
    return (first.region & translate_region(second.region, by)).count()


def operand_sets(maps: Sequence[IndexingMap], grid: TileGrid) -> OperandSets:
    """Return the sets that all tiles need by the maps of one array.

    Raises:
        BudgetError: there are more tiles or classes than their budgets.
    """
    if not all(grid.dims):
        return OperandSets(grid, ())
    listed = [m for m in maps if not m.is_known_empty]
    try:
        return _operand_sets(listed, grid, is_fixing=True)
    except BudgetError:
        if any(m.runtime for m in listed):
            return _operand_sets(listed, grid, is_fixing=False)
        raise


def _operand_sets(maps: Sequence[IndexingMap], grid: TileGrid, is_fixing: bool) -> OperandSets:
    tiled, starts = tiled_maps(maps, grid, is_fixing)
    uniform = {v for s, v in starts.names.items() if not any(i.variables() for i in s.position)}
    products = tuple(
        [
            tuple([replace(s, is_uniform=_starts_in(s) <= uniform) for s in product])
            for product in _products(tiled, grid)
        ]
    )
    runtime = tuple([rt for m in tiled for rt in m.runtime])
    return OperandSets(grid, products, starts, runtime)


def _starts_in(sets: TileSets) -> set[Variable]:
    return {v for v in sets.tile_index if is_start(v)}


def _products(tiled: Sequence[TiledMap], grid: TileGrid) -> tuple[tuple[TileSets, ...], ...]:
    factors = [m.factors() for m in tiled]
    if not factors:
        return ()
    if len(factors) == 1:
        return (tuple(map(tile_sets, factors[0])),)
    common = [f for f in factors[0] if all(f in own for own in factors[1:])]
    rests = [product_of(tuple([f for f in own if f not in common])) for own in factors]
    shared = tuple(map(tile_sets, common))
    different = [tile_sets(rest) for rest in dict.fromkeys(rests)]
    return tuple([(*shared, s) for s in _unite_sets(different, grid)])


def _unite_sets(different: Sequence[TileSets], grid: TileGrid) -> Sequence[TileSets]:
    """The union of the sets of several maps; the sets, if runtime values decide on overlaps."""
    if len(different) == 1 or not _have_equal_starts(different):
        return different
    used = {v for s in different for v in s.tile_index}
    runtime = sorted({v for v in used if is_start(v)}, key=lambda v: v.name)
    tile_index = [*[v for v in grid.tile_index if v in used], *runtime]
    return [unite_sets(different, tile_index)]


def _have_equal_starts(sets: Sequence[TileSets]) -> bool:
    """True if the sets are translated by equal runtime values, one for each tile."""
    if any(s.starts != sets[0].starts for s in sets):
        return False
    return all(c.rows == 1 for s in sets for c in s.classes)

"""The sets that all tiles need of one array: classes of tiles that read translates of one set.

A `TileSets` holds, for each tile, its class and the translation of the set of this class.  It
covers some results of the maps; the set of a tile is the product over independent `TileSets`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from math import gcd, prod
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from indexing.maps.indexing_map import IndexingMap
from indexing.maps.regions.boxes import Box, Progression, progression
from indexing.maps.regions.images import image_boxes
from indexing.maps.regions.region import Region, disjoint_region
from indexing.tiling.sets.distinct_rows import number_rows
from indexing.tiling.sets.runtime_values import Start
from indexing.tiling.sets.tiled_maps import TiledMap
from indexing.tiling.sets.translations import Key, Separator
from simplifier.atoms import Variable, point_count
from simplifier.interval import Interval
from simplifier.linear import Expr, as_expr
from simplifier.substitute import Substitution
from simplifier.unknown import Unknown

MAX_TILES: Final = 1 << 22
"""Maximum number of tiles whose translations are computed one by one."""

MAX_MEMOISED_TILES: Final = 1 << 10
"""Maximum number of tiles whose sets are memoised."""

MAX_CLASSES: Final = 1 << 10
"""Maximum number of classes of tiles whose sets are computed."""

MAX_BOXES_TOGETHER: Final = 1 << 15
"""Maximum number of boxes of the sets of all classes together: 0.1 ms each."""

MAX_DEPTH: Final = 64
"""Maximum depth of divisions in the results of a map of tiles."""

AddedStarts: TypeAlias = tuple[tuple[Start, int], ...]


class BudgetError(Exception):
    """The tiles are too many to analyse; the message names the budget."""


@dataclass(frozen=True)
class TileClass:
    """The set of tiles that are translates of each other.

    Attributes:
        region: the elements; runtime values that are added to an index are left out.
        elements: number of elements of `region`.
        rows: number of combinations of these runtime values in one tile, each with its own
            translate of the region's elements.
        count: number of elements; if `rows` exceeds 1, of pairs of a row and an element.
    """

    region: Region
    elements: int
    rows: int
    count: int

    @cached_property
    def hull(self) -> Box | None:
        """The smallest strided box that contains the region; `None` if it is empty."""
        return strided_hull(self.region)

    @cached_property
    def is_box(self) -> bool:
        """True if the set is one strided box, or empty."""
        return self.hull is None or (self.rows == 1 and self.hull.count() == self.count)

    @cached_property
    def boxes(self) -> int | None:
        """The number of disjoint boxes of a tile; `None` if no few boxes are known."""
        boxes = self.region.boxes()
        if self.hull is not None and self.hull.count() == self.elements:
            number = 1
        elif boxes is not None:
            number = len(boxes)
        else:
            return None
        return number * self.rows if self.count == self.rows * self.elements else None


@dataclass(frozen=True)
class TileSets:
    """The sets of all tiles, for some results of the maps of one array.

    Attributes:
        tile_index: the variables that the sets depend on: of the tile index, then runtime values.
        places: the numbers of the results.
        class_of: the class of each tile, in row-major order.
        shifts: the translation of each tile, ``(tiles, places)``.
        exprs: the translation as expressions of the tile index.
        corners: for each place, the result at the first and at the last element of the tile.
        keys: the values of the tile index that decide on the class.
        starts: for each place, runtime values that are added.
        classes: the sets of the classes.
        is_uniform: True if runtime values of `tile_index` are equal for all tiles.
    """

    tile_index: tuple[Variable, ...]
    places: tuple[int, ...]
    class_of: NDArray[Any]
    shifts: NDArray[Any]
    exprs: tuple[Expr, ...]
    corners: tuple[tuple[Expr, Expr], ...]
    keys: tuple[Expr, ...]
    starts: tuple[AddedStarts, ...]
    classes: tuple[TileClass, ...]
    is_uniform: bool = True

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of tiles along each dimension of `tile_index`."""
        return shape_of(self.tile_index)

    def total(self, value: Callable[[TileClass], int]) -> Interval:
        """Return bounds of the sum of a value of the classes over all tiles.

        The smallest and the largest sum for any runtime values.
        """
        numbers = list(map(value, self.classes))
        runtime = prod([n for n, v in zip(self.shape, self.tile_index, strict=True) if is_start(v)])
        if runtime == 1:
            tiles = np.bincount(self.class_of, minlength=len(numbers)).tolist()
            total = sum([n * count for n, count in zip(numbers, tiles, strict=True)])
            return total, total
        each = np.array(numbers, np.int64)[self.class_of].reshape(-1, runtime)
        if self.is_uniform:
            sums = each.sum(axis=0)
            return int(sums.min()), int(sums.max())
        return int(each.min(axis=1).sum()), int(each.max(axis=1).sum())

    @property
    def inhabited(self) -> list[TileClass]:
        """The classes whose sets are not empty."""
        return [c for c in self.classes if c.count]


def is_start(v: Variable) -> bool:
    """True for a variable of a tile index that is a runtime value."""
    return not v.name.startswith("tid_")


def strided_hull(region: Region) -> Box | None:
    """Return the smallest box, strided, that contains a region; `None` if it is empty.

    >>> print(strided_hull(Region.of_boxes([Box((0,), (2,), (4,)), Box((6,), (1,), (1,))], 1)))
    [0:7:2]
    """
    boxes = region.boxes()
    if boxes is None:
        bounding = region.bounding_box
        if isinstance(bounding, Unknown):
            raise BudgetError(f"budget: cannot bound {region}: {bounding}")
        return bounding
    if not boxes:
        return None
    sides = [_line_hull([box.progressions[k] for box in boxes]) for k in range(region.rank)]
    return Box.of(sides)


def _line_hull(parts: Sequence[Progression]) -> Progression:
    low, high = min([p.offset for p in parts]), max([p.last for p in parts])
    strides = [p.stride for p in parts if p.size > 1]
    stride = gcd(*strides, *[p.offset - low for p in parts]) or 1
    return progression(low, (high - low) // stride + 1, stride)


# ---------------------------------------------------------------- the sets of one map


def tile_sets(m: TiledMap) -> TileSets:
    """Return the sets of the tiles of one map, or of an independent part of it.

    Raises:
        BudgetError: there are more tiles or classes than their budgets.
    """
    tiles = point_count(m.tile_index)
    if tiles > MAX_TILES:
        raise BudgetError(f"budget: {tiles} tiles, more than {MAX_TILES}")
    if tiles > MAX_MEMOISED_TILES or m.refers_to_arrays:  # a cache would keep the module in memory
        return _tile_sets(m)
    return _memoised_sets(m)


@lru_cache(1024)
def _memoised_sets(m: TiledMap) -> TileSets:
    """The sets of few tiles; operands and tilings often have common parts."""
    return _tile_sets(m)


def _tile_sets(m: TiledMap) -> TileSets:
    tiles = point_count(m.tile_index)
    _check_depth(m)
    separator = Separator(m.tile_index)
    shifts, results = _separate_exprs(separator, [place.expr for place in m.places])
    positions = [start.position for place in m.places for start, _ in place.starts]
    _, rows = _separate_exprs(separator, [i for position in positions for i in position])
    constraints = tuple([separator.constraint(c) for c in m.constraints])
    inside = IndexingMap.of(
        (),
        (*results, *rows),
        ranges=(*m.variables, *[key.variable for key in separator.keys]),
        constraints=constraints,
    )
    at = tile_points(m.tile_index)
    class_of, table = classes_of([key.values(at, tiles) for key in separator.keys], tiles)
    return TileSets(
        m.tile_index,
        tuple([place.number for place in m.places]),
        class_of,
        _columns(shifts, at, tiles),
        tuple(shifts),
        tuple([_corners(place.expr, m.variables) for place in m.places]),
        tuple([key.expr for key in separator.keys]),
        tuple([place.starts for place in m.places]),
        _table_classes(inside, separator.keys, table, len(rows)),
    )


def _table_classes(
    inside: IndexingMap, keys: Sequence[Key], table: Iterable[Sequence[int]], rows: int
) -> tuple[TileClass, ...]:
    """The class of each row of a table of values of the keys."""
    classes: list[TileClass] = []
    boxes = 0
    for values in table:
        classes.append(_class_at(inside, keys, values, rows))
        boxes += len(classes[-1].region.pieces)
        if boxes > MAX_BOXES_TOGETHER:
            raise BudgetError(f"budget: {boxes} boxes in {len(classes)} sets, or more")
    return tuple(classes)


def _corners(expr: Expr, variables: Sequence[Variable]) -> tuple[Expr, Expr]:
    """The expression where all variables are smallest, and where they are largest."""
    low, high = (Substitution({v: as_expr(v.bounds[side]) for v in variables}) for side in (0, 1))
    return low(expr), high(expr)


def _columns(
    exprs: Sequence[Expr], at: Mapping[Variable, NDArray[Any]], count: int
) -> NDArray[Any]:
    columns = np.zeros((count, len(exprs)), np.int64)
    for k, expr in enumerate(exprs):
        columns[:, k] = expr.value(at)
    return columns


def _separate_exprs(separator: Separator, exprs: Iterable[Expr]) -> tuple[list[Expr], list[Expr]]:
    parts = list(map(separator, exprs))
    return [shift for shift, _ in parts], [rest for _, rest in parts]


def _class_at(
    inside: IndexingMap, keys: Sequence[Key], values: Sequence[int], rows: int
) -> TileClass:
    """The class of tiles with these values of the keys; the last results are the `rows`."""
    at = {key.variable: as_expr(value) for key, value in zip(keys, values, strict=True)}
    results, constraints = inside.substituted(at)
    own = [v for v in inside.ranges if v not in at]
    rank = len(results) - rows
    return _class_of(
        IndexingMap.of((), results[:rank], ranges=own, constraints=constraints), results[rank:]
    )


def _class_of(inside: IndexingMap, rows: list[Expr]) -> TileClass:
    region = _region_of(inside)
    if all(row.is_constant for row in rows):
        return TileClass(region, count_elements(region), 1, count_elements(region))
    pairs = replace(inside, results=(*inside.results, *rows)).count_image()
    index = replace(inside, results=tuple(rows)).count_image()
    return TileClass(region, count_elements(region), _known_count(index), _known_count(pairs))


def _region_of(m: IndexingMap) -> Region:
    """The results of a map."""
    boxes = None if m.is_known_empty else image_boxes(m.simplify())
    if boxes is None:
        return Region.of([m], len(m.results))
    return disjoint_region(boxes, len(m.results))


def count_elements(region: Region) -> int:
    """Return the number of elements of a region.

    Raises:
        BudgetError: the elements cannot be counted.
    """
    return _known_count(region.count())


def _known_count(count: int | Unknown) -> int:
    if isinstance(count, Unknown):
        raise BudgetError(f"budget: {count}")
    return count


def _check_depth(m: TiledMap) -> None:
    exprs = [*m.results, *[c.expr for c in m.constraints]]
    depth = max([getattr(atom, "depth", 0) for expr in exprs for atom in expr.parts], default=0)
    if depth > MAX_DEPTH:
        raise BudgetError(f"budget: {depth} nested divisions, more than {MAX_DEPTH}")


def shape_of(tile_index: Iterable[Variable]) -> tuple[int, ...]:
    """Return the number of values of each variable."""
    return tuple([v.size for v in tile_index])


def tile_points(tile_index: Sequence[Variable]) -> dict[Variable, NDArray[Any]]:
    """Return the values of the tile index for all tiles, in row-major order."""
    shape = shape_of(tile_index)
    arrays = np.indices(shape, np.int64).reshape(len(shape), prod(shape))
    return {v: array + v.lower for v, array in zip(tile_index, arrays, strict=True)}


def classes_of(columns: list[NDArray[Any]], tiles: int) -> tuple[NDArray[Any], list[list[int]]]:
    """Return the class of each tile, and the values of the columns in each class."""
    if not columns:
        return np.zeros(tiles, np.intp), [[]]
    class_of, table = number_rows(columns)
    if len(table) > MAX_CLASSES:
        raise BudgetError(f"budget: {len(table)} classes of tiles, more than {MAX_CLASSES}")
    return class_of, table.tolist()

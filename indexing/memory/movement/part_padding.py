"""The padding of a part of an array: bytes without elements in the tiles of its layout.

If a tile does not divide a dimension, the last tile along it is padded.  A part of the array has
the padding of the tiles that hold its elements.  The other elements in these tiles are neighbours:
they are neither elements of the part nor padding.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod
from typing import Final, NamedTuple, TypeAlias

from hlo.shapes.shape import Shape
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.regions.boxes import Box, Progression, progression
from indexing.maps.regions.region import Region
from indexing.maps.runtime_variable import RuntimeVariable
from indexing.memory.movement.amounts import Amount, bytes_of
from indexing.memory.movement.starts import is_total, without_starts
from indexing.tiling.sets.stored_tiles import LayoutTile, layout_tile
from simplifier.atoms import Variable
from simplifier.interval import Interval
from simplifier.linear import Expr, as_expr
from simplifier.unknown import Unknown

MAX_LISTED_TILES: Final = 256
"""Limit on the tiles that are listed one by one, if a stride is no multiple of their size."""

MAX_BOXES: Final = 64
"""Limit on the boxes of a part, whose tiles are united."""


Shifts: TypeAlias = tuple[tuple[Expr, ...], frozenset[RuntimeVariable]]
"""The starts that are added to the results of a map, and their sources."""


class ArrayPart(NamedTuple):
    """Elements of an array: disjoint boxes that starts move, which may be known only at run time.

    Attributes:
        boxes: the boxes, for starts of 0.
        starts: inclusive bounds of the start that is added along each dimension.
    """

    boxes: tuple[Box, ...]
    starts: tuple[Interval, ...]

    @classmethod
    def window(cls, sizes: Sequence[int], starts: Sequence[Interval]) -> ArrayPart:
        """Return a window of these sizes, of at least one element, that begins at these starts."""
        return cls((Box.of([progression(0, size, 1) for size in sizes]),), tuple(starts))

    @classmethod
    def of(cls, maps: Sequence[IndexingMap], rank: int) -> ArrayPart | None:
        """Return the results of maps; None if they are no few boxes that are moved together."""
        boxes: list[IndexingMap] = []
        shifts: set[Shifts] = set()
        for m in maps:
            split = _split_starts(without_starts(m))
            if split is None:
                return None
            boxes.append(split[0])
            shifts.add(split[1])
        united = Region.of(boxes, rank).boxes(MAX_BOXES)
        if united is None or len(shifts) != 1:
            return None
        ((every, _),) = shifts
        return cls(united, tuple([shift.bounds for shift in every]))

    @property
    def size(self) -> int:
        """The number of elements."""
        return sum(box.count() for box in self.boxes)


def padding_of_results(maps: Sequence[IndexingMap], shape: Shape, elements: Amount) -> Amount:
    """Return the bytes of padding in the tiles of a layout that hold the results of maps.

    Args:
        maps: the maps to the array.
        shape: the shape of the array.
        elements: the number of distinct results.
    Returns:
        The bytes; an upper bound if the elements or their places are not known exactly.

    >>> from hlo.shapes.shape import parse_shape
    >>> shape = parse_shape("f32[64,10]{1,0:T(8,128)}")
    >>> row = IndexingMap.over((10,), lambda d: [9, d[0]])
    >>> padding_of_results([row], shape, Amount(10))  # 118 columns of 8 rows
    Amount(number=3776, grade='exact')
    """
    padding = shape.physical_bytes - shape.bytes
    if not padding or not elements.number:
        return Amount(0)
    if elements.number == shape.size:
        return Amount(padding, elements.grade)
    part = ArrayPart.of(maps, shape.rank)
    known = None if part is None else padding_of_part(part, shape)
    if part is None or known is None:
        return Amount(padding, "may")
    is_known = all(m.grade == "exact" and all(map(is_total, m.runtime)) for m in maps)
    is_exact = is_known and elements == Amount(part.size)
    return known if is_exact else Amount(known.number, "may")


def padding_of_part(part: ArrayPart, shape: Shape) -> Amount | None:
    """Return the bytes of padding in the tiles of a layout that hold a part of an array.

    Returns:
        The bytes, an upper bound if they depend on the starts; None if the tiles are not known.

    >>> from hlo.shapes.shape import parse_shape
    >>> shape = parse_shape("f32[60,10]{1,0:T(8,128)}")
    >>> padding_of_part(ArrayPart.window((4, 10), [(0, 0), (0, 0)]), shape)
    Amount(number=3776, grade='exact')
    >>> padding_of_part(ArrayPart.window((4, 10), [(0, 56), (0, 0)]), shape)  # one tile or two
    Amount(number=7712, grade='may')
    """
    tile = layout_tile(shape)
    if isinstance(tile, Unknown):
        return None
    counts = _counts(part, shape, tile)
    if counts is None:
        return None
    bits = shape.element_bits
    every = {own.tiles * tile.bytes - -(-own.elements * bits // 8) for own in counts}
    return Amount(max(every), "exact" if len(every) == 1 else "may")


def bytes_of_tiles(region: Region, shape: Shape) -> Amount | Unknown:
    """Return the bytes in memory of the tiles of a layout that hold a region, neighbours included.

    Returns:
        The bytes, those of the elements if the layout has neither tiles nor padding; `Unknown` if
        the region is no few boxes.

    >>> from hlo.shapes.shape import parse_shape
    >>> rows = Region.of_boxes([Box((6, 0), (4, 10), (1, 1))], rank=2)
    >>> bytes_of_tiles(rows, parse_shape("f32[60,10]{1,0:T(8,128)}"))
    Amount(number=8192, grade='exact')
    """
    if not shape.layout_or_default.tiles and shape.physical_bytes == shape.bytes:
        count = region.count()
        return count if isinstance(count, Unknown) else bytes_of(Amount(count, region.grade), shape)
    tile = layout_tile(shape)
    if isinstance(tile, Unknown):
        return tile
    boxes = region.boxes(MAX_BOXES)
    part = None if boxes is None else ArrayPart(boxes, ((0, 0),) * shape.rank)
    counts = None if part is None else _counts(part, shape, tile)
    if counts is None:
        return Unknown(f"{region} is not known as few boxes of {shape}")
    return Amount(max(own.tiles for own in counts) * tile.bytes, region.grade)


# ---------------------------------------------------------------- tiles


class _Count(NamedTuple):
    """Tiles of a layout, and the elements of the array in them."""

    tiles: int
    elements: int


def _count(lines: Sequence[Progression], length: int, size: int) -> _Count:
    """Return the count of tiles of a size along a dimension of some length."""
    tiles = sum(line.size for line in lines)
    last = -(-length // size) - 1
    cut = (last + 1) * size - length if any(last in line for line in lines) else 0
    return _Count(tiles, tiles * size - cut)


def _product(counts: Sequence[_Count]) -> _Count:
    """Return the count of a box of tiles."""
    return _Count(prod([c.tiles for c in counts]), prod([c.elements for c in counts]))


def _counts(part: ArrayPart, shape: Shape, tile: LayoutTile) -> set[_Count] | None:
    """Return all counts of the tiles that hold a part, for all starts; None if not known."""
    if not part.boxes:
        return {_Count(0, 0)}
    if len(part.boxes) == 1:
        return _counts_by_starts(part, shape, tile)
    return _united_counts(part, shape, tile)


def _counts_by_starts(part: ArrayPart, shape: Shape, tile: LayoutTile) -> set[_Count] | None:
    """Return all counts of the tiles of one box, for all starts."""
    sides: list[set[_Count]] = []
    (box,) = part.boxes
    every = zip(box.progressions, part.starts, shape.dims, tile.sizes, strict=True)
    for line, starts, length, size in every:
        counts: set[_Count] = set()
        for start in _different_starts(starts, size):
            tiles = _tiles_of(line._replace(offset=line.offset + start), size)
            if tiles is None:
                return None
            counts.add(_count(tiles, length, size))
        sides.append(counts)
    return {_product(counts) for counts in product(*sides)}


def _different_starts(starts: Interval, size: int) -> Iterator[int]:
    """Yield starts that differ in their place in a tile, and in their distance from the end.

    Whether a window reaches into the last tile is decided within the last starts.
    """
    low, high = starts
    if high - low < 2 * size:
        yield from range(low, high + 1)
    else:
        yield from range(low, low + size)
        yield from range(high - size + 1, high + 1)


def _tiles_of(line: Progression, size: int) -> list[Progression] | None:
    """Return the numbers of the tiles that hold indices, disjoint; None if they are too many."""
    first = line.offset // size
    if line.size == 1 or line.stride < size:
        return [progression(first, line.last // size - first + 1, 1)]
    if line.stride % size == 0:
        return [progression(first, line.size, line.stride // size)]
    if line.size > MAX_LISTED_TILES:
        return None
    indices = range(line.offset, line.last + 1, line.stride)
    return [progression(index // size, 1, 1) for index in indices]


def _united_counts(part: ArrayPart, shape: Shape, tile: LayoutTile) -> set[_Count] | None:
    """Return the count of the tiles that hold several boxes; None if starts move them."""
    if any(low != high for low, high in part.starts):
        return None
    boxes: list[Box] = []
    for box in part.boxes:
        every = zip(box.progressions, part.starts, tile.sizes, strict=True)
        sides = [
            _tiles_of(line._replace(offset=line.offset + start), size)
            for line, (start, _), size in every
        ]
        known = [side for side in sides if side is not None]
        if len(known) < len(sides) or prod(map(len, known)) > MAX_LISTED_TILES:
            return None
        boxes += [Box.of(lines) for lines in product(*known)]
    united = Region.of_boxes(boxes, shape.rank).boxes()
    if united is None:
        return None
    counts = [
        _product(list(map(_count, [[line] for line in box.progressions], shape.dims, tile.sizes)))
        for box in united
    ]
    return {_Count(sum(c.tiles for c in counts), sum(c.elements for c in counts))}


# ---------------------------------------------------------------- starts


def _split_starts(m: IndexingMap) -> tuple[IndexingMap, Shifts] | None:
    """Return a map of ranges only, and the starts that are added to each result.

    None if runtime values decide otherwise on the results, or differ between points.  Different
    maps may give one name to different values: the starts are equal if their sources are.
    """
    runtime = {rt.variable for rt in m.runtime}
    if any(rt.index for rt in m.runtime):
        return None
    if any(not runtime.isdisjoint(c.expr.variables()) for c in m.constraints):
        return None
    rest: list[Expr] = []
    shifts: list[Expr] = []
    for result in m.results:
        starts = {v: c for v, c in result.parts.items() if isinstance(v, Variable) and v in runtime}
        shift = sum([v * c for v, c in starts.items()], as_expr(0))
        if not runtime.isdisjoint((result - shift).variables()):
            return None
        shifts.append(shift)
        rest.append(result - shift)
    ranges = (*m.dims, *m.ranges)
    own = IndexingMap.of((), rest, ranges=ranges, constraints=m.constraints, grade=m.grade)
    used = frozenset([rt for rt in m.runtime if any(rt.variable in s.variables() for s in shifts)])
    return own, (tuple(shifts), used)

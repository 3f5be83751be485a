"""Conversion between the index of an element and its position in memory, through tiles.

A tile splits the most minor dimensions in two: the number of the tile and the index in the tile.
The next tile splits the index in the tile. The resulting digits form a mixed-radix number. The
example ``f32[3,5]{1,0:T(2,2)}`` is from the source, XLA ``docs/tiled_layout.md``:

>>> position_of((2, 3), (3, 5), Layout((1, 0), tiles=((2, 2),)))
17
>>> index_at(17, (3, 5), Layout((1, 0), tiles=((2, 2),)))
(2, 3)

The formulas use only ``+ - * // %``: they apply to numbers, NumPy arrays and expressions of an
indexing map.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from hlo.shapes.layout import COMBINE, Layout
from hlo.shapes.mixed_radix import digits_of, number_of

Tile = tuple[int, ...]


class Guard(NamedTuple):
    """The condition ``value < limit`` for a position to be data, not padding."""

    value: Any
    limit: int


def position_of(index: Sequence[Any], dims: Sequence[int], layout: Layout) -> Any:
    """Return the position in memory, in elements from 0, of the element at `index`."""
    sizes = _ordered_sizes(dims, layout)
    digits = [index[d] for d in layout.major_to_minor]
    for tile in layout.tiles:
        digits, sizes = _split_digits(digits, sizes, tile), _split_sizes(sizes, tile)
    return number_of(digits, sizes)


def index_with_guards(
    position: Any, dims: Sequence[int], layout: Layout
) -> tuple[tuple[Any, ...], tuple[Guard, ...]]:
    """Return the index of the element at `position`, and the conditions for it to be data.

    >>> index_with_guards(3, (3,), Layout((0,), tiles=((2,),)))
    ((3,), (Guard(value=3, limit=3),))
    """
    order = layout.major_to_minor
    stages = [_ordered_sizes(dims, layout)]
    for tile in layout.tiles:
        stages.append(_split_sizes(stages[-1], tile))
    digits = digits_of(position, stages[-1])
    guards = []
    if math.prod(stages[-1]) != extent(dims, layout):
        guards.append(Guard(position, math.prod(stages[-1])))
    for tile, sizes in zip(reversed(layout.tiles), reversed(stages[:-1]), strict=True):
        digits, tile_guards = _join(digits, sizes, tile)
        guards += tile_guards
    index = tuple(digits[order.index(d)] for d in range(len(dims)))
    padded = padded_dims(dims, layout)
    guards += [Guard(i, n) for i, n, wide in zip(index, dims, padded, strict=True) if n < wide]
    return index, tuple(guards)


def index_at(position: int, dims: Sequence[int], layout: Layout) -> tuple[int, ...] | None:
    """Return the index of the element at `position`; None for padding or out of range.

    >>> index_at(1, (3,), Layout((0,), tiles=((2,),))), index_at(3, (3,), Layout((0,), ((2,),)))
    ((1,), None)
    """
    if not 0 <= position < extent(dims, layout):
        return None
    index, guards = index_with_guards(position, dims, layout)
    return index if all(guard.value < guard.limit for guard in guards) else None


def extent(dims: Sequence[int], layout: Layout) -> int:
    """Return the number of elements in memory, with padding.

    >>> extent((3, 5), Layout((1, 0), tiles=((2, 2),))), extent((3,), Layout((0,), tail_padding=8))
    (24, 8)
    """
    sizes = _ordered_sizes(dims, layout)
    for tile in layout.tiles:
        sizes = _split_sizes(sizes, tile)
    return -(-math.prod(sizes) // layout.tail_padding) * layout.tail_padding


def padded_dims(dims: Sequence[int], layout: Layout) -> tuple[int, ...]:
    """Return the size of each dimension with padding, before tiles.

    Raises:
        ValueError: the layout has another rank, or padded dimensions smaller than `dims`.
    """
    if layout.rank != len(dims):
        raise ValueError(f"the layout has rank {layout.rank}, but the array has rank {len(dims)}")
    padded = layout.padded_dimensions or tuple(dims)
    if any(wide < size for wide, size in zip(padded, dims, strict=True)):
        raise ValueError(f"the dimensions {tuple(dims)} exceed the padded dimensions {padded}")
    return padded


def tile_sizes(dims: Sequence[int], layout: Layout) -> tuple[int, ...]:
    """Return the number of elements of the first tile along each dimension of an array.

    >>> tile_sizes((4, 500, 64), Layout((1, 2, 0), tiles=((8, 128), (2, 1))))
    (1, 128, 8)
    """
    sizes = [1] * len(dims)
    tile = layout.tiles[0] if layout.tiles else ()
    for dimension, size in zip(layout.minor_to_major, reversed(tile), strict=False):
        sizes[dimension] = max(min(abs(size), dims[dimension]), 1)
    return tuple(sizes)


def tile_fault(tile: Tile) -> str:
    """Return the reason why a tile is invalid; empty if it is valid.

    >>> tile_fault((8, COMBINE))
    'the tile (8,*) must end in a size'
    """
    text = ",".join("*" if size == COMBINE else str(size) for size in tile)
    if not tile or tile[-1] == COMBINE:
        return f"the tile ({text}) must end in a size"
    if any(size < 1 and size != COMBINE for size in tile):
        return f"the tile ({text}) has a size that is not positive"
    return ""


def _ordered_sizes(dims: Sequence[int], layout: Layout) -> list[int]:
    """Return the padded dimensions, the slowest varying first."""
    padded = padded_dims(dims, layout)
    return [padded[d] for d in layout.major_to_minor]


# ---------------------------------------------------------------- one tile


def _split_digits(digits: list[Any], sizes: list[int], tile: Tile) -> list[Any]:
    outer, inner = _pad_to_rank(digits, len(tile), 0), _pad_to_rank(sizes, len(tile), 1)
    places = _combine_digits(outer[-len(tile) :], inner[-len(tile) :], tile)
    return [
        *outer[: -len(tile)],
        *[place // length for place, _, length in places],
        *[place % length for place, _, length in places],
    ]


def _split_sizes(sizes: list[int], tile: Tile) -> list[int]:
    sizes = _pad_to_rank(sizes, len(tile), 1)
    inner = _combine_digits([0] * len(tile), sizes[-len(tile) :], tile)
    counts = [-(-size // length) for _, size, length in inner]
    return [*sizes[: -len(tile)], *counts, *[length for _, _, length in inner]]


def _join(digits: list[Any], sizes: list[int], tile: Tile) -> tuple[list[Any], list[Guard]]:
    """Invert `_split_digits` of an array of `sizes`; the guards exclude padding."""
    groups = _groups(tile)
    rank = max(len(sizes), len(tile))
    outer = digits[: rank - len(tile)]
    numbers, places = digits[len(outer) :][: len(groups)], digits[-len(groups) :]
    inner = _pad_to_rank(sizes, len(tile), 1)[-len(tile) :]
    joined: list[Any] = []
    guards = []
    for number, place, group in zip(numbers, places, groups, strict=True):
        length, own = tile[group[-1]], [inner[d] for d in group]
        rest = number * length + place
        if math.prod(own) % length:
            guards.append(Guard(rest, math.prod(own)))
        joined += digits_of(rest, own)
    index = [*outer, *joined]
    return index[len(index) - len(sizes) :], guards


def _combine_digits(digits: list[Any], sizes: list[int], tile: Tile) -> list[tuple[Any, int, int]]:
    """Return digit, size and tile length of each group of dimensions that `COMBINE` combines."""
    return [
        (
            number_of([digits[d] for d in group], [sizes[d] for d in group]),
            math.prod(sizes[d] for d in group),
            tile[group[-1]],
        )
        for group in _groups(tile)
    ]


def _groups(tile: Tile) -> list[list[int]]:
    """Return the positions in `tile` by group: each size with the `COMBINE` entries before it."""
    if fault := tile_fault(tile):
        raise ValueError(fault)
    groups: list[list[int]] = [[]]
    for position, length in enumerate(tile):
        groups[-1].append(position)
        if length != COMBINE:
            groups.append([])
    return groups[:-1]


def _pad_to_rank(values: list[Any], rank: int, filler: int) -> list[Any]:
    """Prepend `filler` up to the rank of a tile."""
    return [filler] * (rank - len(values)) + values

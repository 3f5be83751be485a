"""Where an element lies in memory: between the index of an array and a position, through tiles.

A tile splits the most minor dimensions in two, the number of the tile and the place in it; the next
tile splits those places again. What is left is a mixed-radix number. Source: XLA
``docs/tiled_layout.md``, whose example this is, an ``f32[3,5]{1,0:T(2,2)}``:

>>> position_of((2, 3), (3, 5), Layout((1, 0), tiles=((2, 2),)))
17
>>> index_at(17, (3, 5), Layout((1, 0), tiles=((2, 2),)))
(2, 3)
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from hlo.layout import COMBINE, Layout

Tile = tuple[int, ...]


def position_of(index: Sequence[int], dims: Sequence[int], layout: Layout) -> int:
    """The position in memory, in elements from 0, of the element at `index`."""
    order = layout.minor_to_major[::-1]
    digits, sizes = [index[d] for d in order], [dims[d] for d in order]
    for tile in layout.tiles:
        digits, sizes = _split(digits, sizes, tile), _split_sizes(sizes, tile)
    return _number(digits, sizes)


def index_at(position: int, dims: Sequence[int], layout: Layout) -> tuple[int, ...] | None:
    """The index of the element at `position`; None where only padding lies.

    >>> index_at(1, (3,), Layout((0,), tiles=((2,),))), index_at(3, (3,), Layout((0,), ((2,),)))
    ((1,), None)
    """
    order = layout.minor_to_major[::-1]
    stages = [[dims[d] for d in order]]
    for tile in layout.tiles:
        stages.append(_split_sizes(stages[-1], tile))
    if not 0 <= position < math.prod(stages[-1]):
        return None
    digits = _digits(position, stages[-1])
    for tile, sizes in zip(reversed(layout.tiles), reversed(stages[:-1]), strict=True):
        joined = _join(digits, sizes, tile)
        if joined is None:
            return None
        digits = joined
    return tuple(digits[order.index(d)] for d in range(len(dims)))


def extent(dims: Sequence[int], layout: Layout) -> int:
    """The number of elements that memory has room for, padding included.

    >>> extent((3, 5), Layout((1, 0), tiles=((2, 2),))), extent((3,), Layout((0,), tail_padding=8))
    (24, 8)
    """
    sizes = [dims[d] for d in layout.minor_to_major[::-1]]
    for tile in layout.tiles:
        sizes = _split_sizes(sizes, tile)
    return -(-math.prod(sizes) // layout.tail_padding) * layout.tail_padding


# ---------------------------------------------------------------- one tile


def _split(digits: list[int], sizes: list[int], tile: Tile) -> list[int]:
    outer, inner = _aligned(digits, len(tile), 0), _aligned(sizes, len(tile), 1)
    lengths = [t for t in tile if t != COMBINE]
    places = _combined(outer[-len(tile) :], inner[-len(tile) :], tile)
    numbers = [i // t for (i, _), t in zip(places, lengths, strict=True)]
    return [
        *outer[: -len(tile)],
        *numbers,
        *(i % t for (i, _), t in zip(places, lengths, strict=True)),
    ]


def _split_sizes(sizes: list[int], tile: Tile) -> list[int]:
    sizes = _aligned(sizes, len(tile), 1)
    lengths = [t for t in tile if t != COMBINE]
    inner = _combined([0] * len(tile), sizes[-len(tile) :], tile)
    counts = [-(-n // t) for (_, n), t in zip(inner, lengths, strict=True)]
    return [*sizes[: -len(tile)], *counts, *lengths]


def _join(digits: list[int], sizes: list[int], tile: Tile) -> list[int] | None:
    """Undo `_split` of an array of `sizes`; None where the place is padding."""
    lengths = [t for t in tile if t != COMBINE]
    count, rank = len(lengths), max(len(sizes), len(tile))
    outer = digits[: rank - len(tile)]
    numbers, places = digits[rank - len(tile) :][:count], digits[-count:]
    inner = _aligned(sizes, len(tile), 1)[-len(tile) :]
    joined: list[int] = []
    rests = [n * t + p for n, t, p in zip(numbers, lengths, places, strict=True)]
    for dimensions in _groups(tile):
        rest = rests.pop(0)
        group = [inner[d] for d in dimensions]
        if rest >= math.prod(group):
            return None
        joined += _digits(rest, group)
    found = [*outer, *joined]
    return found[len(found) - len(sizes) :]


def _combined(digits: list[int], sizes: list[int], tile: Tile) -> list[tuple[int, int]]:
    """Digit and size of each dimension once those marked `COMBINE` are folded into the next."""
    return [
        (_number([digits[d] for d in group], [sizes[d] for d in group]), _size(sizes, group))
        for group in _groups(tile)
    ]


def _groups(tile: Tile) -> list[list[int]]:
    """Positions in `tile` that belong together: each size with the `COMBINE` before it."""
    groups: list[list[int]] = [[]]
    for position, length in enumerate(tile):
        groups[-1].append(position)
        if length != COMBINE:
            groups.append([])
    if groups[-1]:
        raise ValueError(f"the tile {tile} ends in `*`, which has no more minor dimension")
    return groups[:-1]


def _size(sizes: list[int], group: list[int]) -> int:
    return math.prod(sizes[d] for d in group)


def _aligned(values: list[int], rank: int, filler: int) -> list[int]:
    """`values` with as many major ones before them as a tile of `rank` needs."""
    return [filler] * (rank - len(values)) + values


def _number(digits: list[int], sizes: list[int]) -> int:
    number = 0
    for digit, size in zip(digits, sizes, strict=True):
        number = number * size + digit
    return number


def _digits(number: int, sizes: list[int]) -> list[int]:
    digits = []
    for size in reversed(sizes):
        number, digit = divmod(number, size)
        digits.append(digit)
    return digits[::-1]

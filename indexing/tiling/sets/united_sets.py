"""The unions of the sets that all tiles need by several maps of one array."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import reduce
from operator import or_
from typing import TypeAlias

import numpy as np

from indexing.maps.regions.boxes import Box
from indexing.maps.regions.region import Region
from indexing.tiling.sets.tile_sets import (
    MAX_TILES,
    BudgetError,
    TileClass,
    TileSets,
    classes_of,
    count_elements,
    tile_points,
)
from simplifier.atoms import Variable, point_count

Translates: TypeAlias = tuple[tuple[int, int, tuple[int, ...]], ...]
"""Translates of sets: the number of the map, the class, and the translation."""


def unite_sets(sets: Sequence[TileSets], tile_index: Sequence[Variable]) -> TileSets:
    """Return the unions of the sets of several maps, tile by tile.

    Args:
        sets: of the same places, with the same runtime values added.
        tile_index: the variables that any of them depends on.
    Raises:
        BudgetError: there are more tiles or classes than their budgets.
    """
    tiles = point_count(tile_index)
    if tiles > MAX_TILES:
        raise BudgetError(f"budget: {tiles} tiles, more than {MAX_TILES}")
    points = tile_points(tile_index)
    tile_of = [
        np.ravel_multi_index([points[v] - v.lower for v in own.tile_index], own.shape)
        if own.tile_index
        else np.zeros(tiles, np.intp)
        for own in sets
    ]
    class_of = [own.class_of[t] for own, t in zip(sets, tile_of, strict=True)]
    shifts = [own.shifts[t] for own, t in zip(sets, tile_of, strict=True)]
    columns = [column[:, None] for column in class_of] + [s - shifts[0] for s in shifts[1:]]
    joint, table = classes_of(list(np.concatenate(columns, axis=1).T), tiles)
    first = sets[0]
    return replace(
        first,
        tile_index=tuple(tile_index),
        class_of=joint,
        shifts=shifts[0],
        classes=tuple(_united_classes(sets, table)),
    )


def _united_classes(
    sets: Sequence[TileSets], table: Sequence[Sequence[int]]
) -> Iterator[TileClass]:
    """Yield the union of each row: the classes of the sets, and translations to the first set.

    Rows whose elements are translates of each other, as those of many tiles, have one union.
    """
    rank = len(sets[0].places)
    unions: dict[Translates, TileClass] = {}
    for values in table:
        shifts = [0] * rank + list(values[len(sets) :])
        moved = [
            (k, number, tuple(shifts[k * rank : (k + 1) * rank]))
            for k, number in enumerate(values[: len(sets)])
            if sets[k].classes[number].region.pieces
        ]
        start = moved[0][2] if moved else (0,) * rank
        key = tuple([(k, n, _minus(shift, start)) for k, n, shift in moved])
        if key not in unions:
            unions[key] = _union(sets, key)
        yield replace(unions[key], region=translate_region(unions[key].region, start))


def _union(sets: Sequence[TileSets], translates: Translates) -> TileClass:
    regions = [translate_region(sets[k].classes[number].region, by) for k, number, by in translates]
    region = reduce(or_, regions, Region.of_boxes((), len(sets[0].places)))
    count = count_elements(region)
    return TileClass(region, count, 1, count)


def _minus(first: tuple[int, ...], second: tuple[int, ...]) -> tuple[int, ...]:
    return tuple([a - b for a, b in zip(first, second, strict=True)])


def translate_region(region: Region, by: Sequence[int]) -> Region:
    """Return the region with its elements translated.

    >>> print(translate_region(Region.of_boxes([Box((0, 0), (2, 3), (1, 1))], 2), (5, 1)))
    [5:7, 1:4]
    """
    if not any(by):
        return region
    pieces = [
        replace(p, offsets=tuple([o + d for o, d in zip(p.offsets, by, strict=True)]))
        if isinstance(p, Box)
        else replace(p, results=tuple([r + d for r, d in zip(p.results, by, strict=True)]))
        for p in region.pieces
    ]
    return replace(region, pieces=tuple(pieces))

"""The elements that a tile needs, by evaluation of a map at every point of the tile.

A runtime variable has a value for each index of its source array, so that the rows of a gather
start at different places.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise, product
from math import prod
from typing import Any, TypeAlias
from zlib import crc32

import numpy as np

from indexing import IndexingMap
from indexing.maps.runtime_variable import RuntimeVariable
from indexing.tiling.symbolic.progressions import TileSide
from indexing.tiling.symbolic.symbolic_tiles import SymbolicTile, closed_form, symbolic_tile
from simplifier import Variable
from simplifier.unknown import Unknown

Point: TypeAlias = tuple[int, ...]
Elements: TypeAlias = set[Point]
Integers: TypeAlias = Any
"""An integer, or an array of integers."""
ValueOf: TypeAlias = Callable[[RuntimeVariable, list[Integers]], Integers]
"""The value of a runtime variable, by the index in its source array."""


def extents(m: IndexingMap) -> list[int]:
    """The sizes of the tiled array, of which the domain of `m` is a part."""
    return [max(1, d.upper + 1) for d in m.dims]


def tiles(sizes: Sequence[int], array: Sequence[int]) -> Iterator[tuple[Point, list[range]]]:
    """The index and the elements of each tile of an array."""
    for index in product(*[range(-(-n // size)) for size, n in zip(sizes, array, strict=True)]):
        yield index, tile_at(index, sizes, array)


def tile_at(index: Point, sizes: Sequence[int], array: Sequence[int]) -> list[range]:
    """The elements of one tile, cut to the array."""
    return [
        range(i * size, min((i + 1) * size, n))
        for i, size, n in zip(index, sizes, array, strict=True)
    ]


def runtime_value(rt: RuntimeVariable, index: Sequence[Integers], seed: int) -> Integers:
    """A value of a runtime variable within its bounds, by the index in its source array."""
    number: Integers = np.int64(crc32(f"{rt.name} {seed}".encode()) % 10_007)
    for i in index:
        number = (number * 31 + np.int64(i) * i * 17 + 7) % 10_007
    return rt.variable.lower + number % (rt.variable.upper - rt.variable.lower + 1)


def needed_elements(m: IndexingMap, tile: Sequence[range], seed: int = 1) -> Elements:
    """The results of `m` on a tile."""
    axes = [[v for v in r if d.lower <= v <= d.upper] for r, d in zip(tile, m.dims, strict=True)]
    axes += [list(range(v.lower, v.upper + 1)) for v in m.ranges]
    grids = [g.ravel() for g in np.meshgrid(*axes, indexing="ij")]
    return _results(m, grids, lambda rt, index: runtime_value(rt, index, seed))


def elements_at(
    m: IndexingMap, points: Sequence[Point], value_of: ValueOf, loops: Mapping[str, range]
) -> Elements:
    """The results of `m` at points of its dimensions.

    Args:
        loops: the values of range variables by name; the others take all their values.
    """
    inner = [*product(*[loops.get(v.name, range(v.lower, v.upper + 1)) for v in m.ranges])]
    box = [d.bounds for d in m.dims]
    rows = [
        (*point, *ranges)
        for point in points
        if all(low <= at <= high for at, (low, high) in zip(point, box, strict=True))
        for ranges in inner
    ]
    return _results(m, [*np.array(rows).T], value_of) if rows else set()


def _results(m: IndexingMap, columns: Sequence[Integers], value_of: ValueOf) -> Elements:
    """The results of `m` for these values of its dimensions and range variables."""
    count = columns[0].size if len(columns) else 1
    if not count:
        return set()
    point: dict[Variable, Integers] = dict(zip((*m.dims, *m.ranges), columns, strict=True))
    for rt in m.runtime:
        value = value_of(rt, [expr.value(point) for expr in rt.index])
        point[rt.variable] = np.broadcast_to(value, count)
    inside = np.ones(count, dtype=bool)
    for constraint in m.constraints:
        value = constraint.expr.value(point)
        inside &= (constraint.lower <= value) & (value <= constraint.upper)
    results = [np.broadcast_to(r.value(point), count)[inside].tolist() for r in m.results]
    return set(zip(*results, strict=True)) if results else ({()} if inside.any() else set())


def box_of(tile: SymbolicTile, sizes: Sequence[int], index: Point, seed: int = 1) -> Elements:
    """The elements of the box that a symbolic tile states for one tile."""
    limited = [min(s, n) for s, n in zip(sizes, extents(tile.map), strict=True)]
    point = dict(zip(tile.offsets.dims, (*limited, *index), strict=True))
    runtime = {
        rt.name: int(runtime_value(rt, [e.value(point) for e in rt.index], seed))
        for rt in tile.runtime
    }
    box = tile.box(sizes, index, **runtime)
    return set() if box is None else set(map(tuple, box.elements().tolist()))


def closed_box(
    m: IndexingMap, form: Sequence[TileSide], index: Point, tile: Sequence[range], seed: int = 1
) -> Elements:
    """The elements of the box that a closed form states for one tile."""
    at = {f"tid_{k}": i for k, i in enumerate(index)}
    start = {d: own.start for d, own in zip(m.dims, tile, strict=True)}
    for rt in m.runtime:
        place = [e.value({v: start.get(v, v.lower) for v in e.variables()}) for e in rt.index]
        at[rt.name] = int(runtime_value(rt, place, seed))
    sides = []
    for offset, size, stride, *_ in form:
        point = {v: at[v.name] for e in (offset, size) for v in e.variables()}
        first, count = offset.value(point), max(0, size.value(point))
        sides.append(range(first, first + stride.constant * count, stride.constant))
    return set(product(*sides))


def check_tiles(m: IndexingMap, sizes: Sequence[int], array: Sequence[int], seed: int = 1) -> bool:
    """Check the box of every tile of an array; return False if none is stated."""
    tile, form = symbolic_tile(m), closed_form(m, sizes, array)
    is_legal = isinstance(tile, SymbolicTile) and tile.satisfied_by(sizes)
    for index, own in tiles(sizes, array):
        elements = needed_elements(m, own, seed)
        inside = all(i * s < n for i, s, n in zip(index, sizes, extents(m), strict=True))
        if is_legal and isinstance(tile, SymbolicTile):
            box = box_of(tile, sizes, index, seed) if inside else set()
            assert box == elements, f"{m}, sizes {sizes}, tile {index}\n{tile}"
        if isinstance(form, tuple):
            box = closed_box(m, form, index, own, seed)
            assert box == elements, f"{m}, sizes {sizes}, tile {index}\n{form}"
    return is_legal or not isinstance(form, Unknown)


def is_box(elements: Elements) -> bool:
    """Return True if the elements are all combinations of arithmetic progressions."""
    columns = [sorted(set(column)) for column in zip(*elements, strict=True)]
    steps = [{b - a for a, b in pairwise(column)} for column in columns]
    return prod(map(len, columns)) == len(elements) and all(len(step) < 2 for step in steps)


def values(m: IndexingMap, point: Mapping[str, int]) -> list[int]:
    """The results of a map at the values of variables by name."""
    return [r.value({v: point[v.name] for v in r.variables()}) for r in m.results]


def values_by_name(variables: Sequence[Variable], numbers: Sequence[int]) -> dict[str, int]:
    """The values of variables by name."""
    return {v.name: number for v, number in zip(variables, numbers, strict=True)}

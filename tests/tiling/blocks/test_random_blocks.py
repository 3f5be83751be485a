"""Blocks of random maps against the elements that each element of a tile needs."""

from __future__ import annotations

from itertools import product
from random import Random

import hypothesis.strategies as st
from hypothesis import example, given

import hlo
import indexing
from indexing import IndexingMap, RuntimeVariable, TiledBlocks, TiledOperand
from indexing.tiling.blocks.tiled_blocks import tiled_blocks
from indexing.tiling.sets.tile_grid import TileGrid
from tests.oracles import fuzz
from tests.tiling.symbolic.needed import Point
from tests.tiling.symbolic.random_maps import tiled_maps


def move_results(m: IndexingMap, by: int, keeps_conditions: bool = True) -> IndexingMap:
    """The map with all results increased, and runtime values of known bounds."""
    runtime = [RuntimeVariable(rt.variable, "n", rt.index, rt.variable.bounds) for rt in m.runtime]
    results = tuple([result + by for result in m.results])
    conditions = m.constraints if keeps_conditions else m.constraints[1:]
    return IndexingMap(m.dims, m.ranges, tuple(runtime), results, conditions, m.grade)


def needed_indices(
    maps: list[IndexingMap], array: list[int], dimension: int, random: Random
) -> dict[Point, set[int]]:
    """The indices that each element needs, for pseudorandom values of the runtime variables."""
    values: dict[Point, int] = {}
    indices: dict[Point, set[int]] = {point: set() for point in product(*map(range, array))}
    for m, point in product(maps, indices):
        if not all(v.lower <= at <= v.upper for v, at in zip(m.dims, point, strict=True)):
            continue
        at = dict(zip(m.dims, point, strict=True))
        runtime = []
        for rt in m.runtime:
            element = tuple([i.value(at) for i in rt.index])
            runtime.append(values.setdefault(element, random.randint(*rt.variable.bounds)))
        for ranges in product(*[range(v.lower, v.upper + 1) for v in m.ranges]):
            result = m.evaluate(point, ranges, runtime)
            if result is not None:
                indices[point].add(result[dimension])
    return indices


def state(keys: list[set[int]], block: set[int]) -> str:
    if all(block <= own for own in keys):
        return "full"
    return "partial" if any(block & own for own in keys) else "skipped"


DIAGONAL_RESIDUES = indexing.parse_map(
    "(d0, d1) -> (d1 mod 2), domain: d0 in [1, 3], d1 in [1, 3], d0 - d1 in [0, 0]"
)
"""Complements of the cells of this map and its shifted copy take over 500,000 isl operations."""


@fuzz(120)
@given(
    tiled=tiled_maps(),
    size=st.integers(1, 5),
    second=st.sampled_from([None, 0, 1, 3]),
    seed=st.integers(0, 99),
)
@example(tiled=(DIAGONAL_RESIDUES, [4, 4], (3, 3)), size=1, second=1, seed=0)
def test_states_are_those_of_the_elements(
    tiled: tuple[IndexingMap, list[int], Point], size: int, second: int | None, seed: int
) -> None:
    drawn, array, sizes = tiled
    if drawn.is_known_empty:
        return
    shift = -min([0, *[result.bounds[0] for result in drawn.results]])
    maps = [move_results(drawn, shift)]
    if second is not None:
        maps.append(move_results(drawn, shift + second, keeps_conditions=False))
    extents = [max(m.results[k].bounds[1] for m in maps) + 1 for k in range(len(drawn.results))]
    dimension = seed % len(extents)
    shape = f"f32[{','.join(map(str, extents))}]"
    root = hlo.parse(
        f"ENTRY e {{ p = {shape} parameter(0)  ROOT r = {shape} negate(p) }}"
    ).entry.root
    grid = TileGrid(tuple(array), sizes)
    operand = TiledOperand(root.operands[0], (), 0, tuple(maps), grid)
    blocks = tiled_blocks(operand, indexing.output_to_input(root), size, dimension)
    assert isinstance(blocks, TiledBlocks), blocks
    bounds = blocks.loop_bounds
    assert isinstance(bounds, tuple)
    random = Random(seed)
    draws = [
        needed_indices(maps, array, dimension, random) for _ in range(8 if drawn.runtime else 1)
    ]
    for index in grid.tiles():
        points = list(product(*[range(s.start, s.stop) for s in grid.slices(index)]))
        pair_states = blocks.at(*index)
        for indices in draws:
            keys = [indices[point] for point in points]
            starts = range(0, extents[dimension], size)
            expected = [
                state(keys, set(range(b, min(b + size, extents[dimension])))) for b in starts
            ]
            for one, other in zip(pair_states, expected, strict=True):
                assert one in (other, "runtime"), (maps, index)
                assert one == other or drawn.runtime or drawn.grade == "may", (maps, index)
            if not drawn.runtime:
                read = [k for k, each in enumerate(expected) if each != "skipped"]
                ends = [e for m in bounds if (e := m.evaluate(index, (), ())) is not None]
                if read:
                    assert len(ends) == 1
                    assert ends[0][0] <= read[0]
                    assert ends[0][1] >= read[-1]
                if all(m.grade == "exact" for m in bounds):
                    assert [e for e in ends if e[0] <= e[1]] == [(k[0], k[-1]) for k in [read] if k]

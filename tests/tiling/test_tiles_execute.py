"""Tiles execute: programs compute the tiles of tilings, from the regions of the tilings alone."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import hlo
import indexing
from indexing import Tiling
from indexing.codegen.nest import LoopNest

ROWS = """
add { a = s32[] parameter(0)  b = s32[] parameter(1)  ROOT s = s32[] add(a, b) }
ENTRY e {
  p = s32[7,5] parameter(0)
  zero = s32[] constant(0)
  sums = s32[7] reduce(p, zero), dimensions={1}, to_apply=add
  rows = s32[5,7] broadcast(sums), dimensions={1}
  t = s32[5,7] transpose(p), dimensions={1,0}
  ROOT q = s32[5,7] subtract(rows, t)
}"""


def nest_of(text: str) -> LoopNest:
    nest = indexing.loop_nest(hlo.parse(text).entry)
    assert isinstance(nest, LoopNest), nest
    return nest


@pytest.mark.parametrize("sizes", [(1, 1), (2, 3), (5, 7), (100, 4)])
def test_programs_execute_the_tiles_of_the_tiling(sizes: tuple[int, ...]) -> None:
    nest = nest_of(ROWS)
    tiling = nest.tiling(sizes)
    assert isinstance(tiling, Tiling)
    p = np.random.default_rng(0).integers(-9, 9, (7, 5), np.int32)
    program, result = nest.vectorized(), nest.run(p)
    tiles = list(program.tiles(sizes, p))
    assert [box for box, _ in tiles] == [tiling.slices(*index) for index in tiling.tiles()]
    for index, (box, block) in zip(tiling.tiles(), tiles, strict=True):
        assert np.array_equal(block, result[box])
        assert np.array_equal(program.tile(sizes, index, p), block)


@pytest.mark.parametrize("sizes", [(2,), (2, 0), (-3, 1)])
def test_analyses_and_programs_refuse_the_same_sizes(sizes: tuple[int, ...]) -> None:
    nest, p = nest_of(ROWS), np.zeros((7, 5), np.int32)
    program = nest.vectorized()
    calls: list[Callable[[], object]] = [
        lambda: nest.tiling(sizes),
        lambda: nest.run(p, tile=sizes),
        lambda: next(program.tiles(sizes, p)),
        lambda: program.tile(sizes, (0, 0), p),
        lambda: program.tile_bytes(sizes),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=r"one size for each of the 2|sizes are at least 1"):
            call()


def test_a_tile_outside_of_the_grid_is_refused() -> None:
    program, p = nest_of(ROWS).vectorized(), np.zeros((7, 5), np.int32)
    with pytest.raises(IndexError, match=r"tid_1 = 3 is outside \[0, 2\]"):
        program.tile((5, 3), (0, 3), p)
    with pytest.raises(ValueError, match=r"one index for each of the 2 dimensions"):
        program.tile((5, 3), (0,), p)


def test_a_result_without_elements_has_no_tiles() -> None:
    nest = nest_of("ENTRY e { p = s32[0,3] parameter(0)  ROOT n = s32[0,3] negate(p) }")
    p, out = np.zeros((0, 3), np.int32), np.empty((0, 3), np.int32)
    assert nest.vectorized().run(p, out=out) is out
    assert list(nest.vectorized().tiles((2, 2), p)) == []

"""Blocks that depend on unknown values of which a tile has several: states that hold for all."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest

import hlo
import indexing
from indexing import TiledBlocks, Tiling

SEGMENTS = """
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }
ENTRY e {
  x = f32[8,8] parameter(0)
  rows = s32[8] parameter(1)
  columns = s32[8] parameter(2)
  i = s32[8,8] iota(), iota_dimension=0
  j = s32[8,8] iota(), iota_dimension=1
  row = s32[8,8] broadcast(rows), dimensions={0}
  column = s32[8,8] broadcast(columns), dimensions={1}
  equal = pred[8,8] compare(row, column), direction=EQ
  less = pred[8,8] compare(row, column), direction=LT
  below = pred[8,8] compare(j, i), direction=LE
  mask = pred[8,8] MASK
  zero = f32[] constant(0)
  zeros = f32[8,8] broadcast(zero), dimensions={}
  masked = f32[8,8] select(mask, x, zeros)
  ROOT sums = f32[8] reduce(masked, zero), dimensions={1}, to_apply=add
}
"""

MASKS = {
    "copy(equal)": lambda i, j, r, c: r == c,
    "and(equal, below)": lambda i, j, r, c: r == c and j <= i,
    "or(equal, below)": lambda i, j, r, c: r == c or j <= i,
    "or(less, equal)": lambda i, j, r, c: r <= c,
    "xor(less, below)": lambda i, j, r, c: (r < c) != (j <= i),
}


@pytest.mark.parametrize("text", MASKS)
@pytest.mark.parametrize(("tile", "size"), [(2, 2), (3, 4), (1, 1), (8, 3)])
def test_decided_states_hold_for_all_values(text: str, tile: int, size: int) -> None:
    tiling = indexing.tile(
        hlo.parse(SEGMENTS.replace("MASK", text)).entry.root, (tile,), to="parameters"
    )
    assert isinstance(tiling, Tiling)
    blocks = tiling.blocks("x", size)
    assert isinstance(blocks, TiledBlocks)
    random = Random(f"{text} {tile} {size}")
    seen: dict[tuple[int, int], set[str]] = {}
    for _ in range(60):
        high = random.choice([0, 1, 3])
        rows, columns = [[random.randint(0, high) for _ in range(8)] for _ in range(2)]
        for (tid,), b in product(tiling.tiles(), range(blocks.count)):
            pairs = product(range(8)[tid * tile :][:tile], range(8)[b * size :][:size])
            needed = {MASKS[text](i, j, rows[i], columns[j]) for i, j in pairs}
            state = "partial" if len(needed) == 2 else "full" if True in needed else "skipped"
            seen.setdefault((tid, b), set()).add(state)
    for (tid, b), states in seen.items():
        state = blocks.at(tid)[b]
        assert state == "runtime" or states == {state}
        if len(states) > 1:
            assert state == "runtime"
    assert isinstance(blocks.loop_bounds, tuple)


def test_an_over_approximation_is_never_full() -> None:
    text = """ENTRY e { x = f32[8,4] parameter(0)  u = f32[2,2] parameter(1)  n = s32[] parameter(2)
      ROOT d = f32[8,4] dynamic-update-slice(x, u, n, n) }"""
    tiling = indexing.tile(hlo.parse(text).entry.root, (8, 4))
    assert isinstance(tiling, Tiling)
    assert tiling.operands[0].maps[0].grade == "may"
    blocks = tiling.blocks(0, 4, dimension=0)
    assert isinstance(blocks, TiledBlocks)
    assert blocks.at(0, 0) == ("runtime", "runtime")
    assert isinstance(blocks.loop_bounds, tuple)
    assert [m.grade for m in blocks.loop_bounds] == ["may"]


def test_a_dimension_without_a_loop_needs_to_be_named() -> None:
    text = "ENTRY e { x = f32[6,4] parameter(0)  ROOT t = f32[4,6] transpose(x), dimensions={1,0} }"
    tiling = indexing.tile(hlo.parse(text).entry.root, (2, 3))
    assert isinstance(tiling, Tiling)
    assert str(tiling.blocks("x", 2)) == "no loop runs over a dimension of `x`"
    blocks = tiling.blocks("x", 2, dimension=0)
    assert isinstance(blocks, TiledBlocks)
    assert [blocks.at(0, k) for k in range(2)] == [
        ("partial", "partial", "skipped"),
        ("skipped", "partial", "partial"),
    ]


@pytest.mark.parametrize("shape", ["[0,4]", "[4,0]"])
def test_arrays_without_elements_have_no_blocks(shape: str) -> None:
    text = f"ENTRY e {{ x = f32{shape} parameter(0)  ROOT n = f32{shape} negate(x) }}"
    tiling = indexing.tile(hlo.parse(text).entry.root, (2, 2))
    assert isinstance(tiling, Tiling)
    assert str(tiling.blocks("x", 2, dimension=1)) == "an array has no elements"


def test_a_scalar_result_has_one_tile() -> None:
    text = """add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }
    ENTRY e { x = f32[7] parameter(0)  z = f32[] constant(0)
      ROOT r = f32[] reduce(x, z), dimensions={0}, to_apply=add }"""
    tiling = indexing.tile(hlo.parse(text).entry.root, ())
    assert isinstance(tiling, Tiling)
    blocks = tiling.blocks("x", 2**70)
    assert isinstance(blocks, TiledBlocks)
    assert blocks.at() == ("full",)
    assert blocks.bytes == {"skipped": 0, "partial": 0, "full": 28, "runtime": 0}
    assert isinstance(blocks.loop_bounds, tuple)
    (bounds,) = blocks.loop_bounds
    assert bounds() == (0, 0)


def test_wrong_arguments_name_the_value_that_is_expected() -> None:
    text = "ENTRY e { x = f32[6,4] parameter(0)  ROOT n = f32[6,4] negate(x) }"
    tiling = indexing.tile(hlo.parse(text).entry.root, (2, 3))
    assert isinstance(tiling, Tiling)
    with pytest.raises(IndexError, match="no operand 'y': there are x"):
        tiling.blocks("y", 2)
    with pytest.raises(IndexError, match="`x` has dimensions 0 to 1, got 2"):
        tiling.blocks("x", 2, dimension=2)
    with pytest.raises(ValueError, match="a block has at least 1 index, got a size of 0"):
        tiling.blocks("x", 0)
    blocks = tiling.blocks("x", 2, dimension=0)
    assert isinstance(blocks, TiledBlocks)
    with pytest.raises(TypeError, match="no runtime variable"):
        blocks.at(0, 0, pos=3)

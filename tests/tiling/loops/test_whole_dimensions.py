"""Dimensions that no block cuts: sorted and scanned ones, and those of recurrences."""

from __future__ import annotations

import pytest

import hlo
import indexing
from indexing.tiling.loops.loop_search import BestLoopTilings
from indexing.tiling.loops.loop_tiling import LoopTiling
from simplifier.unknown import Unknown

SORT = """
less { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT l = pred[] compare(a, b), direction=LT }
ENTRY e {
  p = f32[16,64] parameter(0)
  s = f32[16,64] sort(p), dimensions={1}, to_apply=less
  ROOT t = f32[64,16] transpose(s), dimensions={1,0}
}"""
TOP = """ENTRY e { p = f32[16,64] parameter(0)
  t = (f32[16,8], s32[16,8]) topk(p), k=8, largest=true
  ROOT v = f32[16,8] get-tuple-element(t), index=0 }"""
FOURIER = """ENTRY e { p = c64[4,8,16] parameter(0)
  ROOT f = c64[4,8,16] fft(p), fft_type=FFT, fft_length={8,16} }"""
SCAN = """
add { a = f32[16] parameter(0)  b = f32[16] parameter(1)  s = f32[16] add(a, b)
  ROOT t = (f32[16], f32[16]) tuple(s, s) }
ENTRY e { p = f32[16,64] parameter(0)  z = f32[16] parameter(1)
  s = (f32[16,64], f32[16]) scan(p, z), dimensions={1}, num_carries=1, to_apply=add
  ROOT o = f32[16,64] get-tuple-element(s), index=0 }"""
RECURRENCE = """
less { s = (s32[], f32[8,16]) parameter(0)  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(5)  ROOT l = pred[] compare(i, n), direction=LT }
step { s = (s32[], f32[8,16]) parameter(0)  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)  j = s32[] add(i, one)  h = f32[8,16] get-tuple-element(s), index=1
  two = f32[] constant(2)  m = f32[16,16] broadcast(two), dimensions={}
  d = f32[8,16] dot(h, m), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT t = (s32[], f32[8,16]) tuple(j, d) }
ENTRY e { p = f32[8,16] parameter(0)  zero = s32[] constant(0)
  t = (s32[], f32[8,16]) tuple(zero, p)
  w = (s32[], f32[8,16]) while(t), condition=less, body=step
  ROOT h = f32[8,16] get-tuple-element(w), index=1 }"""
POWERS = """
less { s = (s32[], f32[8,16]) parameter(0)  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(5)  ROOT l = pred[] compare(i, n), direction=LT }
step { s = (s32[], f32[8,16]) parameter(0)  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)  j = s32[] add(i, one)  h = f32[8,16] get-tuple-element(s), index=1
  d = f32[8,16] multiply(h, h)  ROOT t = (s32[], f32[8,16]) tuple(j, d) }
ENTRY e { p = f32[8,16] parameter(0)  zero = s32[] constant(0)
  t = (s32[], f32[8,16]) tuple(zero, p)
  w = (s32[], f32[8,16]) while(t), condition=less, body=step
  ROOT h = f32[8,16] get-tuple-element(w), index=1 }"""

# fmt: off
ROWS = [
    # program       tile        the dimension that is cut, or None
    (SORT,          (64, 2),    None),
    (SORT,          (32, 16),   "`s` computes dimension 1 as a whole: a tile has 32 of 64 indices"),
    (TOP,           (2, 8),     None),
    (TOP,           (2, 4),     "`t` computes dimension 1 as a whole: a tile has 4 of 8 indices"),
    (FOURIER,       (1, 8, 16), None),
    (FOURIER,       (1, 4, 16), "`f` computes dimension 1 as a whole: a tile has 4 of 8 indices"),
    (FOURIER,       (1, 8, 4),  "`f` computes dimension 2 as a whole: a tile has 4 of 16 indices"),
    (SCAN,          (16, 64),   None),
    (SCAN,          (16, 8),    "`s` computes dimension 1 as a whole: a tile has 8 of 64 indices"),
    (RECURRENCE,    (2, 16),    None),
    (RECURRENCE,    (2, 8),     "`w` computes dimension 1 as a whole: a tile has 8 of 16 indices"),
    (POWERS,        (2, 8),     None),  # each element needs itself alone
]
# fmt: on


@pytest.mark.parametrize("text, sizes, reason", ROWS)
def test_a_block_has_the_whole_of_what_is_computed_together(
    text: str, sizes: tuple[int, ...], reason: str | None
) -> None:
    root = hlo.parse(text).entry.root
    tiling = indexing.tile(root, sizes, "parameters", loop_sizes={})
    if reason is None:
        assert isinstance(tiling, LoopTiling), tiling
    else:
        assert isinstance(tiling, Unknown)
        assert reason in tiling.reason


@pytest.mark.parametrize("text, whole", [(SORT, 0), (TOP, 1), (RECURRENCE, 1)])
def test_the_search_does_not_cut_it(text: str, whole: int) -> None:
    root = hlo.parse(text).entry.root
    best = indexing.best_tilings(root, device="H100", loops=True, to="parameters", accept="boxes")
    assert isinstance(best, BestLoopTilings)
    assert len(best)
    assert {tiling.sizes[whole] for tiling in best} == {best.shape.dims[whole]}
    assert any(refused.rule == "whole dimension" for refused in best.refused)

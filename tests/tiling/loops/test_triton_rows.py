"""Shared memory of kernels of Triton without dots, beside launches that XLA:GPU compiled.

The launches are those of jaxlib 0.10.2 for an H100; layouts are those of its dumps of Triton.
"""

from __future__ import annotations

import pytest

import hlo
import indexing
from indexing.tiling.loops.triton_layouts import blocked_layout, squeezed_for_reduction, vector_of
from indexing.tiling.loops.triton_scratch import conversion_bytes, reduction_bytes
from simplifier.unknown import Unknown
from tests.tiling.loops.hand_problems import REDUCERS

SOFTMAX = """low = f32[] constant(-inf)
  top = f32[{rows}] reduce(y, low), dimensions={{{last}}}, to_apply=max
  tops = {t} broadcast(top), dimensions={{{outer}}}
  d = {t} subtract(y, tops)
  e = {t} exponential(d)
  total = f32[{rows}] reduce(e, zero), dimensions={{{last}}}, to_apply=add
  totals = {t} broadcast(total), dimensions={{{outer}}}
  r = {t} divide(e, totals)"""
SHARES = """total = f32[{rows}] reduce(y, zero), dimensions={{{last}}}, to_apply=add
  totals = {t} broadcast(total), dimensions={{{outer}}}
  r = {t} divide(y, totals)"""
SCALED = """s = {t} multiply(y, y)
  total = f32[{rows}] reduce(s, zero), dimensions={{{last}}}, to_apply=add
  root = f32[{rows}] rsqrt(total)
  roots = {t} broadcast(root), dimensions={{{outer}}}
  w = {t} multiply(y, roots)
  gs = {t} broadcast(g), dimensions={{{last}}}
  r = {t} multiply(w, gs)"""


def compiled_rows(
    body: str, dims: tuple[int, ...], kinds: str, tile: tuple[int, ...], warps: int
) -> indexing.CompiledTiling:
    """Return XLA's choice for a fusion of rows, which are read and stored with these types."""
    read, stored = kinds.split()
    sizes = ",".join(map(str, dims))
    last = len(dims) - 1
    text = body.format(
        rows=",".join(map(str, dims[:-1])),
        last=last,
        outer=",".join(map(str, range(last))),
        t=f"f32[{sizes}]",
    )
    config = ",".join([f'"{n}"' for n in tile])
    root = hlo.parse(f"""{REDUCERS}
f {{
  x = {read}[{sizes}] parameter(0)
  g = f32[{dims[-1]}] parameter(1)
  y = f32[{sizes}] convert(x)
  zero = f32[] constant(0)
  {text}
  ROOT o = {stored}[{sizes}] convert(r)
}}
ENTRY e {{
  x = {read}[{sizes}] parameter(0)
  g = f32[{dims[-1]}] parameter(1)
  ROOT o = {stored}[{sizes}] fusion(x, g), kind=kCustom, calls=f,
    backend_config={{"fusion_backend_config":{{"kind":"__triton","block_level_fusion_config":
      {{"num_warps":"{warps}","output_tiles":[{{"sizes":[{config}]}}]}}}}}}
}}""").entry.root
    compiled = indexing.compiled_tiling(root)
    assert not isinstance(compiled, Unknown)
    return compiled


# fmt: off
LAUNCHES = [
    # body     array             types        tile            warps  bytes of the launch
    (SOFTMAX,  (64, 256),        "f32 f32",   (1, 256),       1,       512),  # a row stays [1,256]
    (SOFTMAX,  (4, 8, 33),       "f32 f32",   (1, 1, 33),     1,         0),
    (SOFTMAX,  (128, 513),       "f32 f32",   (1, 513),       2,         8),  # rows not aligned
    (SOFTMAX,  (48, 128, 512),   "f32 f32",   (1, 4, 512),    4,        64),  # no layout differs
    (SOFTMAX,  (2, 12, 64, 256), "bf16 f32",  (1, 1, 8, 256), 4,     4_096),  # stores of 128 bits
    (SOFTMAX,  (2, 12, 64, 256), "bf16 bf16", (1, 1, 8, 256), 4,         0),
    (SOFTMAX,  (64, 1000),       "bf16 f32",  (1, 1000),      2,     2_048),
    (SOFTMAX,  (2, 4, 256, 256), "bf16 bf16", (2, 4, 1, 256), 4,     4_096),  # 1 beside the rows
    (SHARES,   (7, 2048),        "f32 f32",   (1, 2048),      4,     2_048),
    (SCALED,   (512, 1024),      "bf16 bf16", (2, 1024),      4,     4_096),  # a row is broadcast
    (SCALED,   (256, 96),        "bf16 bf16", (1, 96),        1,       512),
    (SCALED,   (4, 128, 128),    "bf16 bf16", (1, 4, 128),    2,       256),
]
# fmt: on


@pytest.mark.parametrize("body, dims, kinds, tile, warps, launched", LAUNCHES)
def test_shared_memory_of_rows_is_that_of_the_launch(
    body: str,
    dims: tuple[int, ...],
    kinds: str,
    tile: tuple[int, ...],
    warps: int,
    launched: int,
) -> None:
    compiled = compiled_rows(body, dims, kinds, tile, warps)
    assert indexing.triton_shared_bytes(compiled, "H100") == launched


# fmt: off
UNKNOWN = [
    (SOFTMAX, (64, 256), (1, 64),   "`x` has tiles of several sizes"),  # rows are read whole
    ("t = {t} reverse(y), dimensions={{{last}}}\n  r = {t} add(t, y)",
              (64, 256), (1, 256),  "`t` has no rule of layouts"),
    ("""n = f32[256,64] transpose(y), dimensions={{1,0}}
  r = {t} transpose(n), dimensions={{1,0}}""",
              (64, 256), (4, 256),  "`n` permutes dimensions"),
    ("""p = {t} broadcast(g), dimensions={{{last}}}
  total = f32[{rows}] reduce(p, zero), dimensions={{{last}}}, to_apply=add
  totals = {t} broadcast(total), dimensions={{{outer}}}
  r = {t} multiply(y, totals)""",
              (64, 256), (4, 256),  "reduces a broadcast value"),
]
# fmt: on


@pytest.mark.parametrize("body, dims, tile, reason", UNKNOWN)
def test_layouts_that_do_not_follow_are_unknown(
    body: str, dims: tuple[int, ...], tile: tuple[int, ...], reason: str
) -> None:
    compiled = compiled_rows(body, dims, "f32 f32", tile, 4)
    shared = indexing.triton_shared_bytes(compiled, "H100")
    assert isinstance(shared, Unknown)
    assert reason in shared.reason


def test_shared_memory_of_rows_is_unknown_on_amd() -> None:
    compiled = compiled_rows(SOFTMAX, (64, 256), "f32 f32", (1, 256), 1)
    shared = indexing.triton_shared_bytes(compiled, "MI300")
    assert isinstance(shared, Unknown)
    assert "AMD" in shared.reason


# fmt: off
CONVERSIONS = [
    # tile        from: elements, warps; to a slice of: tile, elements, dimensions; bytes
    ((2, 4, 256), 8, 4,   (2, 4, 1, 256),  1,   (2,),     4_096),
    ((4, 4, 128), 8, 4,   (4, 4, 1, 128),  1,   (2,),     4_096),
    ((512,),      2, 8,   (1, 512),        1,   (0,),     2_048),
    ((1024,),     4, 8,   (16, 1024),      8,   (0,),     4_096),
    ((128,),      2, 2,   (4, 128),        8,   (0,),       256),
    ((128,),      1, 4,   (4, 4, 128),     4,   (0, 0),     512),
    ((4, 128),    8, 2,   (4, 128),        4,   (),       2_048),
    ((4, 512),    8, 4,   (4, 512),        4,   (),       4_096),
    ((256,),      4, 1,   (1, 256),        1,   (0,),       512),
    ((8,),        1, 1,   (1, 8),          1,   (0,),         0),
    ((4, 128),    4, 4,   (4, 4, 128),     4,   (0,),         0),
]
# fmt: on


@pytest.mark.parametrize("tile, vector, warps, whole, other, dims, expected", CONVERSIONS)
def test_conversions_have_the_buffers_of_triton(
    tile: tuple[int, ...],
    vector: int,
    warps: int,
    whole: tuple[int, ...],
    other: int,
    dims: tuple[int, ...],
    expected: int,
) -> None:
    target = blocked_layout(whole, other, warps)
    for dim in dims:
        target = target.without(dim)
    assert conversion_bytes(blocked_layout(tile, vector, warps), target, 32) == expected


def test_reductions_have_a_value_of_each_warp() -> None:
    assert reduction_bytes(blocked_layout((1, 64), 1, 2), 1, 32) == 8
    assert reduction_bytes(blocked_layout((1, 64), 1, 1), 1, 32) == 0
    assert reduction_bytes(blocked_layout((4, 512), 4, 4), 1, 32) == 64
    assert (
        reduction_bytes(blocked_layout((4, 128), 8, 2), 1, 32) == 0
    )  # the warps have rows of their own


def test_threads_move_as_much_as_the_tile_has() -> None:
    assert [vector_of((4, 128), 16, n) for n in (1, 2, 4, 8)] == [8, 8, 4, 2]
    assert vector_of((16, 1024), 16, 8, run=1) == 1


def test_dimensions_of_one_beside_the_reduced_one_stay() -> None:
    """A row of one dimension cannot be reduced without another one."""
    assert squeezed_for_reduction((1, 4, 128), 2) == ((4, 128), 1)
    assert squeezed_for_reduction((2, 1, 128), 2) == ((2, 1, 128), 2)
    assert squeezed_for_reduction((1, 4, 1, 256), 3) == ((4, 1, 256), 2)
    assert squeezed_for_reduction((1, 1, 512), 2) == ((1, 512), 1)

"""XLA's verdicts on coalescing, compared with its own tests, and with the exact counts."""

from __future__ import annotations

import pytest

import hlo
import indexing
from indexing import IndexingMap
from indexing.devices.gpus import gpu
from indexing.memory.access import MemoryAccess
from indexing.memory.coalescing import (
    is_coalesced,
    is_coalesced_by_opcodes,
    is_tile_coalesced,
)

A6000 = gpu("A6000")


def entry(text: str) -> hlo.Instruction:
    return hlo.parse(text).entry.root


def known(answer: object) -> MemoryAccess:
    assert isinstance(answer, MemoryAccess)
    return answer


# Source of the modules and verdicts: XLA ``xla/service/gpu/model/coalescing_analysis_test.cc``.

TRANSPOSE_OF_BROADCAST = """
fusion {
  input = f32[1,32,6400] parameter(0)
  ROOT slice = f32[1,32,100] slice(input), slice={[0:1:1], [0:32:1], [0:6400:64]}
}
ENTRY entry {
  p0 = f32[32] parameter(0)
  broadcast = f32[1,6400,32] broadcast(p0), dimensions={2}
  transpose = f32[1,32,6400] transpose(broadcast), dimensions={0,2,1}
  ROOT fusion = f32[1,32,100] fusion(transpose), kind=kLoop, calls=fusion
}"""
TRANSPOSE_OF_ADD = """
fusion {
  p0 = f32[32,100,64] parameter(0)
  ROOT slice = f32[32,100,1] slice(p0), slice={[0:32:1], [0:100:1], [0:1:1]}
}
ENTRY entry {
  input = f32[100,64,32] parameter(0)
  add = f32[100,64,32] add(input, input)
  transpose = f32[32,100,64] transpose(add), dimensions={2,0,1}
  ROOT fusion = f32[32,100,1] fusion(transpose), kind=kLoop, calls=fusion
}"""
OUTER_DIMS = """
fusion {
  input = f32[100,32,64] parameter(0)
  ROOT transpose = f32[32,100,64] transpose(input), dimensions={1,0,2}
}
ENTRY entry {
  input = f32[100,32,64] parameter(0)
  ROOT fusion = f32[32,100,64] fusion(input), kind=kLoop, calls=fusion
}"""
DYNAMIC_SLICE = """
fusion {
  src = s32[2,2,258] parameter(0)
  of1 = s32[] parameter(1)
  of2 = s32[] parameter(2)
  of3 = s32[] parameter(3)
  ROOT ds = s32[1,2,32] dynamic-slice(src, of1, of2, of3), dynamic_slice_sizes={1,2,32}
}
ENTRY entry {
  p0 = s32[2,2,258] parameter(0)
  p1 = s32[] parameter(1)
  p2 = s32[] parameter(2)
  p3 = s32[] parameter(3)
  ROOT fusion = s32[1,2,32] fusion(p0, p1, p2, p3), kind=kLoop, calls=fusion
}"""


def test_a_transpose_of_outer_dimensions_is_coalesced() -> None:
    """``TransposeOnlyOuterDims``: rows of 64 elements, one for each 16 threads."""
    (load,) = indexing.access(entry(OUTER_DIMS), threads=128, unroll=4, device="A6000")
    assert known(load).coalesced
    assert known(load).ratio == 1


def test_a_dynamic_slice_is_coalesced_by_the_rule_but_not_at_its_worst_start() -> None:
    """``DynamicSlice``: all operands are coalesced.  A row of 32 starts anywhere: 5 sectors."""
    accesses = indexing.access(entry(DYNAMIC_SLICE), threads=64, device="A6000")
    assert [known(load).coalesced for load in accesses] == [True] * 4
    window = known(accesses[0])
    assert (window.best.sectors, window.sectors) == (9, 10)
    assert window.worst is not None
    assert window.worst.addresses[0] is not None
    assert window.worst.addresses[0] % 32 != 0


@pytest.mark.parametrize(
    ("shape", "threads", "rows"),
    [("f32[100,64,512]", 32, 8), ("f32[100,64,4]", 4, 64), ("s32[32,40]", 32, 8)],
)
def test_row_reductions_are_coalesced(shape: str, threads: int, rows: int) -> None:
    """``RowReduction``, ``MultiRowReduction``, ``VariadicReduceViaReductionEmitter``."""
    operand = hlo.parse_shape(shape)
    assert isinstance(operand, hlo.Shape)
    reads = indexing.row_map(operand, threads=threads, rows=rows)
    assert indexing.coverage(reads, operand) is True
    load = known(indexing.array_access(reads, operand, "A6000"))
    assert load.coalesced
    assert load.ratio == 1


def test_the_quick_rule_misses_strides() -> None:
    """``TransposeOfBroadcastHeuristic`` and ``TransposeOfAddHeuristic``.

    Broadcasts are exempt from the rule, whatever the consumer reads: each lane of this slice reads
    a sector of its own.
    """
    fusion = entry(TRANSPOSE_OF_BROADCAST)
    assert is_coalesced_by_opcodes(fusion.operands[0])
    assert is_coalesced_by_opcodes(fusion)
    load = known(indexing.access(fusion)[0])
    assert (load.coalesced, load.ratio) == (False, 8)
    assert load.worst is not None
    assert load.worst.addresses[:3] == (0, 256, 512)
    other = entry(TRANSPOSE_OF_ADD)
    assert not is_coalesced_by_opcodes(other.operands[0])


def test_tiles_need_rows_of_a_transaction() -> None:
    """``SmallDataTypes``: 64 bytes are a transaction from DRAM."""
    root = entry("""ENTRY main { p0 = s8[256,512] parameter(0)  p1 = s8[256,512] parameter(1)
      ROOT add = s8[256,512] add(p0, p1) }""")
    assert A6000.dram_transaction_bytes == 64
    verdicts = []
    for columns in (16, 32, 64, 128):
        tiling = indexing.tile(root, (16, columns))
        assert isinstance(tiling, indexing.Tiling)
        for k, operand in enumerate(root.operands):
            region = tiling.at(0, 0)[k]
            assert isinstance(region, indexing.maps.Region)
            assert region.box is not None
            assert isinstance(operand.shape, hlo.Shape)
            strides = [max(1, step) for step in region.box.strides]
            verdicts.append(is_tile_coalesced(operand.shape, region.box.sizes, strides, A6000))
    assert verdicts == [False] * 4 + [True] * 4


# fmt: off
RULES = [
    # reads of 128 threads                                      shape            verdict
    (lambda d: [d[0]],                                          "f32[4096]",     True),
    (lambda d: [4095 - d[0]],                                   "f32[4096]",     True),
    (lambda d: [d[0] * 2],                                      "f32[8192]",     False),
    (lambda d: [d[0] // 2],                                     "f32[4096]",     True),
    (lambda d: [d[0] * 0],                                      "f32[4096]",     True),
    (lambda d: [d[0] % 8 * 512 + d[0] // 8],                    "f32[4096]",     False),
    (lambda d: [d[0] % 2 * 2048 + d[0] // 2],                   "f64[4096]",     True),
]
# fmt: on


@pytest.mark.parametrize(("reads", "shape", "verdict"), RULES)
def test_rows_of_the_rule(reads: object, shape: str, verdict: bool) -> None:
    array = hlo.parse_shape(shape)
    assert isinstance(array, hlo.Shape)
    assert callable(reads)
    m = IndexingMap.over((4096,), reads)
    assert is_coalesced(indexing.thread_map((4096,), threads=128), m, array) is verdict

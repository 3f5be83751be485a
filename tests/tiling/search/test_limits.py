"""Limits on tilings: counted by hand for the tiles of a matrix multiplication."""

from __future__ import annotations

import pytest

from indexing.devices.gpus import GPUS
from indexing.tiling.search.limits import TileArray, TileMemory, TilingLimits

# bf16[24,1000] x bf16[1000,40] -> f32[24,40], tiles of 6 x 20: 4 * 2 tiles
MATMUL = TileMemory(
    TileArray((6, 20), 32), (TileArray((6, 1000), 16), TileArray((1000, 20), 16)), tiles=8
)
WORKING_SET = 4 * 120 + 2 * (6000 + 20000)
REGISTERS = 120 + 6000 + 20000
SHARED_MEMORY = 2 * (6000 + 20000)
PADDED = 8 * 32 + 8 * 1024 + 1024 * 32  # elements of the three padded tiles

# fmt: off
ROWS = [
    # limits that just hold                                 limits that just fail, and the words
    (TilingLimits(min_elements=120),                        TilingLimits(min_elements=121),
     "120 elements in the tile [6, 20] of the result: at least 121 required"),
    (TilingLimits(max_elements=20000),                      TilingLimits(max_elements=19999),
     "20,000 elements in the tile [1000, 20] of operand 1: at most 19,999 allowed"),
    (TilingLimits(max_elements=1024 * 32, padded=True),     TilingLimits(max_elements=1024 * 32 - 1,
                                                                         padded=True),
     "32,768 elements in the tile [1024, 32] of operand 1, with sizes padded to powers of two: at "
     "most 32,767 allowed"),
    (TilingLimits(max_working_set=WORKING_SET),             TilingLimits(max_working_set=52479),
     "a working set of 52,480 bytes: at most 52,479 allowed"),
    (TilingLimits(max_registers=REGISTERS),                 TilingLimits(max_registers=26119),
     "an estimate of 26,120 registers: at most 26,119 allowed"),
    (TilingLimits(max_registers=PADDED, padded=True),       TilingLimits(max_registers=PADDED - 1,
                                                                         padded=True),
     "an estimate of 41,216 registers, with sizes padded to powers of two: at most 41,215 allowed"),
    (TilingLimits(max_shared_memory=SHARED_MEMORY),         TilingLimits(max_shared_memory=51999),
     "an estimate of 52,000 bytes of shared memory: at most 51,999 allowed"),
    (TilingLimits(max_tiles=8),                             TilingLimits(max_tiles=7),
     "8 tiles: at most 7 allowed"),
]
# fmt: on


@pytest.mark.parametrize("enough, too_low, words", ROWS)
def test_limits_hold_up_to_their_value(
    enough: TilingLimits, too_low: TilingLimits, words: str
) -> None:
    assert enough.violation(MATMUL) is None
    assert too_low.violation(MATMUL) == words


@pytest.mark.parametrize("row", ROWS)
def test_upper_limits_remain_exceeded_with_more_operands(
    row: tuple[TilingLimits, TilingLimits, str],
) -> None:
    for count in range(3):
        part = TileMemory(MATMUL.result, MATMUL.operands[:count], MATMUL.tiles)
        for limits in row[:2]:
            assert limits.excess(part) is None or limits.excess(MATMUL) is not None


def test_elements_of_64_bits_fill_two_registers_and_bits_share_bytes() -> None:
    assert TileMemory(TileArray((3,), 64), (TileArray((5,), 8),), 1).registers == 6 + 5
    assert TileArray((3, 3), 4).bytes == 5  # 36 bits
    assert TileArray((4, 4), 32, elements=7).bytes == 28
    assert TileArray((4, 5), 32, elements=7).pad_sizes().count == 32


@pytest.mark.parametrize("name", GPUS)
def test_presets_have_the_facts_of_the_model(name: str) -> None:
    model = GPUS[name]
    own, xla = TilingLimits.of_gpu(name), TilingLimits.xla(name)
    assert own.max_registers == model.registers_per_block
    assert own.max_shared_memory == model.shared_memory_per_block
    assert xla.max_elements == model.registers_per_block * 2 // 5
    assert (own.padded, xla.padded) == (False, True)


def test_wrong_limits_are_refused() -> None:
    with pytest.raises(ValueError, match="max_tiles=-1: expected at least 0"):
        TilingLimits(max_tiles=-1)
    with pytest.raises(ValueError, match=r"unknown GPU 'h100'.*did you mean `H100`\?"):
        TilingLimits.of_gpu("h100")

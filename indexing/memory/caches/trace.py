"""The trace of an order: the units of lines that its tiles touch, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from indexing.maps.arrays import ArrayRef
from indexing.memory.caches.accesses import CacheBudgetError, TiledAccess
from indexing.memory.caches.lines import Units, line_bits, ranges
from indexing.memory.caches.orders import BlockOrder

MAX_TOUCHES: Final = 1 << 20
"""Maximum number of touches of units of lines in a trace: 4 seconds."""


@dataclass(frozen=True, eq=False)
class CacheTrace:
    """The touches of units by all tiles in an order.

    Attributes:
        tile: the position of the tile in the order, for each touch.
        access: the number of the access.
        unit: the unit; units of different arrays have different numbers.
        lines: the number of lines of each unit.
        bits: the number of bits of each unit.
    """

    tile: NDArray[Any]
    access: NDArray[Any]
    unit: NDArray[Any]
    lines: NDArray[Any]
    bits: NDArray[Any]


class Touching(NamedTuple):
    """The blocks of accesses in the order in which they are touched.

    Attributes:
        tile: the position of the tile in its order, for each block.
        access: the number of the access.
        block: the number of its block.
    """

    tile: NDArray[Any]
    access: NDArray[Any]
    block: NDArray[Any]


def touching_of(order: BlockOrder, accesses: Sequence[TiledAccess], wave: int = 1) -> Touching:
    """Return the blocks that tiles touch in an order: what they read, then what they write.

    Args:
        wave: the number of tiles that are computed in lockstep: all of them read before the first
            of them writes.
    """
    width, tiles = len(accesses), len(order.numbers)
    blocks = np.zeros((tiles, width), np.int64)
    for k, access in enumerate(accesses):
        blocks[:, k] = access.blocks_at(order.numbers)
    tile = np.repeat(np.arange(tiles), width)
    number = np.tile(np.arange(width), tiles)
    kind = np.array([access.kind == "write" for access in accesses], np.int64)[number]
    sequence = np.lexsort((number, tile, kind, tile // wave))
    return Touching(tile[sequence], number[sequence], blocks.reshape(-1)[sequence])


def cache_trace(
    touching: Touching, line: int | None, accesses: Sequence[TiledAccess], units: Sequence[Units]
) -> CacheTrace:
    """Return the touches of units, block by block.

    Raises:
        CacheBudgetError: there are more than `MAX_TOUCHES`.
    """
    offsets: dict[ArrayRef, int] = {}
    lines: list[NDArray[Any]] = []
    bits: list[NDArray[Any]] = []
    for access, own in zip(accesses, units, strict=True):
        if access.array not in offsets:
            offsets[access.array] = sum(map(len, lines))
            lines.append(own.lines)
            bits.append(own.lines * line_bits(access, line))
    start = np.zeros(len(touching.tile), np.int64)
    count = np.zeros(len(touching.tile), np.int64)
    numbers = []
    held = 0
    for k, (access, own) in enumerate(zip(accesses, units, strict=True)):
        mine = touching.access == k
        blocks = touching.block[mine]
        start[mine] = own.first[blocks] + held
        count[mine] = own.first[blocks + 1] - own.first[blocks]
        numbers.append(own.numbers + offsets[access.array])
        held += len(own.numbers)
    if (total := int(count.sum())) > MAX_TOUCHES:
        raise CacheBudgetError(
            f"budget: {total} touches of lines in all tiles, more than {MAX_TOUCHES}"
        )
    return CacheTrace(
        np.repeat(touching.tile, count),
        np.repeat(touching.access, count),
        np.concatenate(numbers)[ranges(start, count)],
        np.concatenate(lines),
        np.concatenate(bits),
    )

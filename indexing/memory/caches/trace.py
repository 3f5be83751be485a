"""The trace of an order: the units of lines that its tiles touch, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

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


def cache_trace(
    order: BlockOrder, line: int | None, accesses: Sequence[TiledAccess], units: Sequence[Units]
) -> CacheTrace:
    """Return the touches of the tiles in an order.

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
    starts, counts, numbers = [], [], []
    held = 0
    for access, own in zip(accesses, units, strict=True):
        blocks = access.blocks_at(order.numbers)
        starts.append(own.first[blocks] + held)
        counts.append(own.first[blocks + 1] - own.first[blocks])
        numbers.append(own.numbers + offsets[access.array])
        held += len(own.numbers)
    count = np.stack(counts, axis=1).reshape(-1)  # for each tile, one access after the other
    if (total := int(count.sum())) > MAX_TOUCHES:
        raise CacheBudgetError(
            f"budget: {total} touches of lines in all tiles, more than {MAX_TOUCHES}"
        )
    place = ranges(np.stack(starts, axis=1).reshape(-1), count)
    tiles, width = len(order.numbers), len(accesses)
    return CacheTrace(
        np.repeat(np.repeat(np.arange(tiles), width), count),
        np.repeat(np.tile(np.arange(width), tiles), count),
        np.concatenate(numbers)[place],
        np.concatenate(lines),
        np.concatenate(bits),
    )

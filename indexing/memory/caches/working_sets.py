"""`working_set`: the distinct bytes that tiles need which are resident together."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hlo.arguments import checked
from indexing.maps.arrays import ArrayRef, array_name
from indexing.memory.caches.accesses import CacheBudgetError, tiled_accesses
from indexing.memory.caches.distances import previous_touches
from indexing.memory.caches.lines import units_by_access
from indexing.memory.caches.orders import BlockOrder
from indexing.memory.caches.profile import check_line, order_of
from indexing.memory.caches.trace import CacheTrace, cache_trace, touching_of
from indexing.tiling.sets.tiling import Tiling
from simplifier.unknown import Unknown


@dataclass(frozen=True, eq=False)
class WindowBytes:
    """The distinct bytes of each window of consecutive tiles.

    Attributes:
        sizes: the bytes of each window, by the position of its first tile in the order.

    >>> sizes = WindowBytes(np.array([16, 8, 12]))
    >>> sizes.maximum, sizes.minimum, sizes.mean
    (16, 8, Fraction(12, 1))
    """

    sizes: NDArray[Any]

    @property
    def maximum(self) -> int:
        """The bytes of the largest window; 0 without windows."""
        return int(self.sizes.max(initial=0))

    @property
    def minimum(self) -> int:
        """The bytes of the smallest window; 0 without windows."""
        return int(self.sizes.min()) if len(self.sizes) else 0

    @property
    def mean(self) -> Fraction:
        """The average over all windows; 0 without windows."""
        return Fraction(int(self.sizes.sum()), max(len(self.sizes), 1))

    def __str__(self) -> str:
        if self.maximum == self.minimum:
            return "1 byte" if self.maximum == 1 else f"{self.maximum:,} bytes"
        return f"{self.minimum:,} to {self.maximum:,} bytes, {float(self.mean):,.1f} on average"


@dataclass(frozen=True, eq=False, repr=False)
class WorkingSet:
    """The distinct bytes that tiles need which are resident together; exact.

    Attributes:
        tiling: the tiles.
        order: their order.
        window: number of consecutive tiles that are resident together.
        line: bytes of a line, whose bytes all count; `None` if elements are counted.
        total: the bytes of all arrays.
        arrays: the bytes of each array that is read or written.

    >>> import hlo, indexing
    >>> text = "ENTRY e { p = f32[64] parameter(0)  ROOT b = f32[16,64] broadcast(p), "
    >>> tiling = indexing.tile(hlo.parse(text + "dimensions={1} }").entry.root, (8, 32))
    >>> resident = indexing.working_set(tiling, window=2)
    >>> resident.total.maximum  # two tiles of 1,024 bytes, and all 256 bytes of `p`
    2304
    """

    tiling: Tiling
    order: BlockOrder
    window: int
    line: int | None
    total: WindowBytes
    arrays: dict[ArrayRef, WindowBytes]

    def __str__(self) -> str:
        tiles = "1 tile" if self.window == 1 else f"{self.window} tiles"
        head = f"{tiles} resident together, {self.order.name} order: {self.total}"
        return "\n".join([head, *[f"  {array_name(a)}: {own}" for a, own in self.arrays.items()]])

    def __repr__(self) -> str:
        return f"<working set of {self.window} tiles of {self.tiling!r}, {self.order.name} order>"


@checked
def working_set(
    tiling: Tiling, window: int, order: BlockOrder | str = "row", line: int | None = None
) -> WorkingSet | Unknown:
    """Return the distinct bytes of all operands and of the result that consecutive tiles need.

    Tiles that are resident together are `window` consecutive ones of the order, such as the blocks
    of one wave of a GPU.  An element that several of them need counts once.

    Args:
        tiling: the tiles.
        window: number of tiles that are resident together; at most all tiles are.
        order: the order of the tiles, or its name; see `BlockOrder.parse`.
        line: bytes of a line; `None` to count elements.
    Returns:
        The bytes of all windows; `Unknown` if elements are over-approximated or depend on runtime
        values, or exceed a budget.
    Raises:
        ValueError: the order is not one of the grid of the tiling, or `window` or `line` is not
            positive.

    >>> import hlo, indexing
    >>> dot = hlo.parse('''ENTRY e {
    ...   p = f32[64,16] parameter(0)
    ...   q = f32[16,64] parameter(1)
    ...   ROOT dot = f32[64,64] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    ... }''').entry.root
    >>> tiling = indexing.tile(dot, (8, 8))
    >>> print(working_set(tiling, window=16))
    16 tiles resident together, row order: 9,216 to 9,728 bytes, 9,654.9 on average
      p: 1,024 to 1,536 bytes, 1,462.9 on average
      q: 4,096 bytes
      dot: 4,096 bytes
    >>> print(working_set(tiling, window=16, order="grouped:4").total.minimum)
    8192
    """
    if window < 1:
        raise ValueError(f"window={window}: expected at least 1 tile")
    check_line(line)
    chosen = order_of(tiling, order)
    accesses = tiled_accesses(tiling)
    if isinstance(accesses, Unknown):
        return accesses
    try:
        trace = cache_trace(
            touching_of(chosen, accesses), line, accesses, units_by_access(accesses, line)
        )
    except CacheBudgetError as error:
        return Unknown(str(error), tiling.instruction)
    tiles = len(chosen.numbers)
    window = min(window, tiles) if tiles else window
    members: dict[ArrayRef, list[int]] = {}
    for k, access in enumerate(accesses):
        members.setdefault(access.array, []).append(k)
    bits = _window_bits(trace, len(accesses), tiles, window)
    arrays = {array: WindowBytes(-(-bits[own].sum(axis=0) // 8)) for array, own in members.items()}
    total = WindowBytes(-(-bits.sum(axis=0) // 8))
    return WorkingSet(tiling, chosen, window, line, total, arrays)


def _window_bits(trace: CacheTrace, accesses: int, tiles: int, window: int) -> NDArray[Any]:
    """The distinct bits of each access in each window: ``(accesses, windows)``.

    A touch is the first one in the windows that begin after the previous touch of its unit.
    """
    windows = max(tiles - window + 1, 0)
    previous = previous_touches(trace.unit)
    before = np.where(previous >= 0, trace.tile[previous], -1)
    begin = np.minimum(np.maximum(before, trace.tile - window) + 1, windows)
    end = np.minimum(trace.tile + 1, windows)
    changes = np.zeros((accesses, windows + 1), np.int64)
    bits = trace.bits[trace.unit] * (begin < end)
    np.add.at(changes, (trace.access, begin), bits)
    np.add.at(changes, (trace.access, end), -bits)
    return np.cumsum(changes, axis=1)[:, :windows]

"""`CacheMisses`: the misses of an LRU cache, for each array that tiles touch."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from indexing.maps.arrays import ArrayRef, array_name
from indexing.memory.caches.accesses import AccessKind
from indexing.memory.caches.orders import BlockOrder
from indexing.tiling.loops.loop_tiling import LoopTiling
from indexing.tiling.sets.tiling import Tiling


def order_text(order: BlockOrder, wave: int) -> str:
    """Return the name of an order, and the number of tiles in lockstep.

    >>> order_text(BlockOrder.parse("row", (2, 2)), 4)
    'row order, 4 tiles in lockstep'
    """
    return f"{order.name} order" if wave == 1 else f"{order.name} order, {wave} tiles in lockstep"


@dataclass(frozen=True, slots=True)
class ArrayMisses:
    """The misses of the lines of one array.

    Attributes:
        array: the array.
        kind: "read" or "write".
        line_bits: bits of a line; of an element if lines are elements.
        touches: number of touches: each tile touches each line that it needs once.
        compulsory: number of touches of lines that no tile touched before, which all caches miss.
        misses: number of touches of lines that are not in the cache, compulsory ones included.
    """

    array: ArrayRef
    kind: AccessKind
    line_bits: int
    touches: int
    compulsory: int
    misses: int

    @property
    def bytes(self) -> int:
        """The bytes of the lines that miss."""
        return -(-self.misses * self.line_bits // 8)

    def __str__(self) -> str:
        return (
            f"{self.kind} {array_name(self.array)}: {self.misses:,} of {self.touches:,} touches "
            f"miss, {self.compulsory:,} of them compulsory, {self.bytes:,} bytes"
        )


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CacheMisses:
    """The misses of a fully associative LRU cache while tiles are computed in an order; exact.

    Attributes:
        tiling: the tiles.
        order: their order.
        capacity: bytes of the cache.
        line: bytes of a line; `None` if each element is a line.
        arrays: the misses of each operand, and of the result.
        method: "closed form" or "trace"; both are exact.
        wave: number of tiles that are computed in lockstep.

    >>> import hlo, indexing
    >>> text = "ENTRY e { p = f32[64] parameter(0)  ROOT b = f32[16,64] broadcast(p), "
    >>> tiling = indexing.tile(hlo.parse(text + "dimensions={1} }").entry.root, (8, 32))
    >>> misses = indexing.cache_misses(tiling, capacity=2304)
    >>> misses.misses, misses.compulsory, misses.touches
    (34, 34, 36)
    >>> misses.bytes, misses.hit_rate  # lines of 128 bytes; 2 of 36 touches hit
    (4352, Fraction(1, 18))
    """

    tiling: Tiling | LoopTiling
    order: BlockOrder
    capacity: int
    line: int | None
    arrays: tuple[ArrayMisses, ...]
    method: str
    wave: int = 1

    @property
    def misses(self) -> int:
        """The number of lines of all arrays that miss."""
        return sum([array.misses for array in self.arrays])

    @property
    def compulsory(self) -> int:
        """The number of misses of lines that no tile touched before."""
        return sum([array.compulsory for array in self.arrays])

    @property
    def touches(self) -> int:
        """The number of touches of lines of all arrays."""
        return sum([array.touches for array in self.arrays])

    @property
    def bytes(self) -> int:
        """The bytes of the lines of all arrays that miss."""
        return -(-sum([array.misses * array.line_bits for array in self.arrays]) // 8)

    @property
    def hit_rate(self) -> Fraction:
        """The share of touches that hit, 1 without touches."""
        return 1 - Fraction(self.misses, self.touches) if self.touches else Fraction(1)

    def __str__(self) -> str:
        unit = "elements" if self.line is None else f"lines of {self.line} bytes"
        head = (
            f"{order_text(self.order, self.wave)}, LRU cache of {self.capacity:,} bytes, {unit}: "
            f"{self.misses:,} of {self.touches:,} touches miss, {self.bytes:,} bytes"
        )
        return "\n".join([head, *[f"  {array}" for array in self.arrays]])

    def __repr__(self) -> str:
        return f"<{self.misses:,} misses of {self.tiling!r}, {self.order.name} order>"

"""`reuse_profile`: the reuse distances of the lines that tiles touch in an order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hlo.arguments import checked
from indexing.maps.arrays import ArrayRef, array_name
from indexing.memory.caches.accesses import AccessKind, CacheBudgetError, TiledAccess
from indexing.memory.caches.closed_forms import CarriedReuse, LoopAccess, carried_reuses
from indexing.memory.caches.distances import reuse_distances
from indexing.memory.caches.lines import Units, distinct, line_bits, units_by_access
from indexing.memory.caches.misses import ArrayMisses, CacheMisses, order_text
from indexing.memory.caches.orders import BlockOrder, OrderLoop
from indexing.memory.caches.tile_accesses import TileAccesses, tile_accesses
from indexing.memory.caches.trace import cache_trace
from indexing.tiling.loops.loop_tiling import LoopTiling
from indexing.tiling.sets.tiling import Tiling
from simplifier.unknown import Unknown

Method: TypeAlias = Literal["closed form", "trace"]


@dataclass(frozen=True, eq=False)
class ArrayReuse:
    """The reuse distances of the lines of one array.

    Attributes:
        array: the array.
        kind: "read" or "write".
        line_bits: bits of a line; of an element if lines are elements.
        distances: the different reuse distances in bits, ascending: the bits of the distinct
            lines touched since the previous touch of a line, itself included.
        lines: number of touches of a line at each distance.
        first: number of touches of lines that no tile touched before.
    """

    array: ArrayRef
    kind: AccessKind
    line_bits: int
    distances: NDArray[Any]
    lines: NDArray[Any]
    first: int

    @property
    def touches(self) -> int:
        """The number of touches: each tile touches each line that it needs once."""
        return self.first + int(self.lines.sum())

    def misses(self, capacity: int) -> ArrayMisses:
        """Return the misses of a cache of this many bytes."""
        evicted = int(self.lines[self.distances > 8 * capacity].sum())
        return ArrayMisses(
            self.array, self.kind, self.line_bits, self.touches, self.first, self.first + evicted
        )


@dataclass(frozen=True, eq=False, repr=False)
class ReuseProfile:
    """The reuse distances of all lines that tiles touch in an order, for caches of any capacity.

    Attributes:
        tiling: the tiles.
        order: their order.
        line: bytes of a line; `None` if each element is a line.
        arrays: the reuse distances of each operand, and of the result.
        method: "closed form" or "trace"; both are exact.
        carried: in closed form, the loops that carry the reuses of each array.
        wave: number of tiles that are computed in lockstep.

    >>> import hlo, indexing
    >>> text = "ENTRY e { p = f32[64] parameter(0)  ROOT b = f32[16,64] broadcast(p), "
    >>> tiling = indexing.tile(hlo.parse(text + "dimensions={1} }").entry.root, (8, 32))
    >>> profile = indexing.reuse_profile(tiling)
    >>> [profile.misses(capacity).misses for capacity in (2048, 2304)]
    [36, 34]
    """

    tiling: Tiling | LoopTiling
    order: BlockOrder
    line: int | None
    arrays: tuple[ArrayReuse, ...]
    method: Method
    carried: tuple[CarriedReuse, ...] = ()
    wave: int = 1

    @checked
    def misses(self, capacity: int) -> CacheMisses:
        """Return the misses of a fully associative LRU cache of `capacity` bytes.

        Raises:
            ValueError: the capacity is negative.

        >>> import hlo, indexing
        >>> text = "ENTRY e { p = f32[64] parameter(0)  ROOT b = f32[16,64] broadcast(p), "
        >>> tiling = indexing.tile(hlo.parse(text + "dimensions={1} }").entry.root, (8, 32))
        >>> indexing.reuse_profile(tiling).misses(capacity=2304).misses
        34
        """
        if capacity < 0:
            raise ValueError(f"the capacity of a cache is not negative: {capacity} bytes")
        arrays = tuple([array.misses(capacity) for array in self.arrays])
        return CacheMisses(
            self.tiling, self.order, capacity, self.line, arrays, self.method, self.wave
        )

    def __str__(self) -> str:
        unit = "elements" if self.line is None else f"lines of {self.line} bytes"
        lines = [f"{order_text(self.order, self.wave)}, {unit}, {self.method}:"]
        for number, own in enumerate(self.arrays):
            name = f"{own.kind} {array_name(own.array)}"
            lines.append(f"  {name}: {own.touches:,} touches, {own.first:,} first ones")
            if self.method == "trace" and len(own.lines):
                lines.append(f"    {_reuse_text(int(own.lines.sum()), own.distances)}")
            for reuse in self.carried:
                if reuse.access == number:
                    tiles = reuse.tiles * len(reuse.distances)
                    again = own.touches * tiles // len(self.order.numbers)
                    lines.append(
                        f"    {_reuse_text(again, reuse.distances)}, carried by {reuse.loop}"
                    )
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<reuse distances of {self.tiling!r}, {self.order.name} order, by {self.method}>"


def _reuse_text(touches: int, distances: NDArray[Any]) -> str:
    """The number of touches that reuse a line, and their distances in bytes."""
    low, high = (int(-(-bits // 8)) for bits in (distances.min(), distances.max()))
    span = f"{low:,}" if low == high else f"{low:,} to {high:,}"
    return f"{touches:,} at a distance of {span} bytes"


@checked
def reuse_profile(
    tiling: Tiling | LoopTiling,
    order: BlockOrder | str = "row",
    line: int | None = 128,
    wave: int = 1,
) -> ReuseProfile | Unknown:
    """Return the reuse distances of the lines that tiles touch.

    A tile touches each line that it needs once: first the lines of its operands, in the order of
    the operands, then those of its result; the lines of one array in the order of addresses.  Each
    array begins at a boundary of a line, and no two arrays share memory.  An operand that is
    passed twice is one array.  Distances count all lines touched in between, so they do not depend
    on a capacity.

    A block of a tiling with loops touches the lines that it loads in a step, step after step, then
    those of its result.  The tiles of a wave run in lockstep: each of them touches the lines of one
    step, in their order, before the next step begins.  A tiling without loops has one step.

    Args:
        tiling: the tiles.
        order: the order of the tiles, or its name; see `BlockOrder.parse`.
        line: bytes of a line; `None` if each element is a line of its own size.
        wave: number of tiles that are computed in lockstep, such as the multiprocessors of a GPU
            times the blocks of each.
    Returns:
        The distances; `Unknown` if elements are over-approximated or depend on runtime values, or
        exceed a budget, or if several loops read one array.
    Raises:
        ValueError: the order is not one of the grid of the tiling, `line` or `wave` is not
            positive, or the blocks share loops by `split_k`.

    >>> import hlo, indexing
    >>> text = "ENTRY e { p = f32[64] parameter(0)  ROOT b = f32[16,64] broadcast(p), "
    >>> tiling = indexing.tile(hlo.parse(text + "dimensions={1} }").entry.root, (8, 32))
    >>> profile = reuse_profile(tiling)
    >>> print(profile)
    row order, lines of 128 bytes, closed form:
      read p: 4 touches, 2 first ones
        2 at a distance of 2,304 bytes, carried by tid_0
      write b: 32 touches, 32 first ones
    >>> profile.misses(capacity=2048).misses, profile.misses(capacity=2304).misses
    (36, 34)
    """
    chosen = order_of(tiling, order)
    check_line(line)
    check_wave(wave)
    accesses = tile_accesses(tiling)
    if isinstance(accesses, Unknown):
        return accesses
    try:
        return profile_of(accesses, chosen, line, wave, units_by_access(accesses.listed, line))
    except CacheBudgetError as error:
        return Unknown(str(error), tiling.instruction)


@checked
def cache_misses(
    tiling: Tiling | LoopTiling,
    capacity: int,
    order: BlockOrder | str = "row",
    line: int | None = 128,
    wave: int = 1,
) -> CacheMisses | Unknown:
    """Return the misses of an LRU cache while the tiles of a tiling are computed in an order.

    The cache is fully associative, holds `capacity` bytes, and loads a line that is written (write
    allocate).  See `reuse_profile` for the touches, and for several capacities.

    Args:
        tiling: the tiles.
        capacity: bytes of the cache.
        order: the order of the tiles, or its name; see `BlockOrder.parse`.
        line: bytes of a line; `None` if each element is a line of its own size.
        wave: number of tiles that are computed in lockstep; see `reuse_profile`.
    Returns:
        The misses; `Unknown` if elements are over-approximated or depend on runtime values, or
        exceed a budget, or if several loops read one array.
    Raises:
        ValueError: the order is not one of the grid of the tiling, `line` or `wave` is not
            positive, the capacity is negative, or the blocks share loops by `split_k`.

    >>> import hlo, indexing
    >>> dot = hlo.parse('''ENTRY e {
    ...   p = f32[512,256] parameter(0)
    ...   q = f32[256,512] parameter(1)
    ...   ROOT dot = f32[512,512] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    ... }''').entry.root
    >>> tiling = indexing.tile(dot, (64, 64))
    >>> print(cache_misses(tiling, capacity=512 * 1024))
    row order, LRU cache of 524,288 bytes, lines of 128 bytes: 45,056 of 73,728 touches miss, \
5,767,168 bytes
      read p: 4,096 of 32,768 touches miss, 4,096 of them compulsory, 524,288 bytes
      read q: 32,768 of 32,768 touches miss, 4,096 of them compulsory, 4,194,304 bytes
      write dot: 8,192 of 8,192 touches miss, 8,192 of them compulsory, 1,048,576 bytes
    >>> cache_misses(tiling, capacity=512 * 1024, order="grouped:4").misses
    20480

    With loops, blocks that run in lockstep need only the steps of one wave at the same time:

    >>> looped = indexing.tile(dot, (64, 64), loop_sizes={"k": 32})
    >>> for wave in (1, 16):
    ...     misses = cache_misses(looped, capacity=128 * 1024, order="grouped:4", wave=wave)
    ...     print(misses.order.name, wave, misses.misses)
    grouped:4 1 73728
    grouped:4 16 24576
    """
    profile = reuse_profile(tiling, order, line, wave)
    return profile if isinstance(profile, Unknown) else profile.misses(capacity)


def order_of(tiling: Tiling | LoopTiling, order: BlockOrder | str) -> BlockOrder:
    """Return the order of a name, or an order that belongs to the grid of the tiling.

    Raises:
        ValueError: the name is unknown, or the order has another grid.
    """
    if isinstance(order, str):
        return BlockOrder.parse(order, tiling.grid)
    if order.grid != tiling.grid:
        raise ValueError(f"the order has the grid {list(order.grid)}, not {list(tiling.grid)}")
    return order


def check_line(line: int | None) -> None:
    """Refuse lines that have no bytes.

    Raises:
        ValueError: `line` is not positive.
    """
    if line is not None and line < 1:
        raise ValueError(f"line={line}: expected at least 1 byte, or None for elements")


def check_wave(wave: int) -> None:
    """Refuse waves without tiles.

    Raises:
        ValueError: `wave` is not positive.
    """
    if wave < 1:
        raise ValueError(f"wave={wave}: expected at least 1 tile")


def profile_of(
    accesses: TileAccesses,
    order: BlockOrder,
    line: int | None,
    wave: int,
    units: Sequence[Units],
) -> ReuseProfile:
    """Return the distances, in closed form where there is one.

    Raises:
        CacheBudgetError: the trace is too long.
    """
    closed = None
    if wave == 1 and isinstance(accesses.tiling, Tiling):
        closed = closed_profile(accesses.tiling, order, line, accesses.listed, units)
    return closed or trace_profile(accesses, order, line, wave, units)


# ---------------------------------------------------------------- closed form


def closed_profile(
    tiling: Tiling,
    order: BlockOrder,
    line: int | None,
    accesses: Sequence[TiledAccess],
    units: Sequence[Units],
) -> ReuseProfile | None:
    """Return the distances in closed form; `None` unless blocks are disjoint and of equal sizes."""
    if order.loops is None or len({access.array for access in accesses}) < len(accesses):
        return None
    listed: list[LoopAccess] = []
    for access, own in zip(accesses, units, strict=True):
        loop_access = _loop_access(access, own, order.loops, line_bits(access, line))
        if loop_access is None:
            return None
        listed.append(loop_access)
    carried = carried_reuses(listed, order.loops)
    arrays = []
    for k, (access, own) in enumerate(zip(accesses, units, strict=True)):
        bits = line_bits(access, line)
        lines_of_block = listed[k].weight // bits
        mine = [reuse for reuse in carried if reuse.access == k]
        distances = np.concatenate([np.zeros(0, np.int64), *[r.distances for r in mine]])
        tiles = [np.full(len(r.distances), r.tiles * lines_of_block) for r in mine]
        touches = np.concatenate([np.zeros(0, np.int64), *tiles])
        first = int(own.lines_of_blocks.sum())
        arrays.append(_array_reuse(access, bits, distances, touches, first))
    shown = tuple([reuse for reuse in carried if listed[reuse.access].weight])
    return ReuseProfile(tiling, order, line, tuple(arrays), "closed form", shown)


def _loop_access(
    access: TiledAccess, units: Units, loops: Sequence[OrderLoop], bits: int
) -> LoopAccess | None:
    """The access, if its blocks are disjoint, of equal sizes, and one for each tile index."""
    lines = units.lines_of_blocks
    if not lines.any():  # nothing is needed
        return LoopAccess(frozenset(), 0)
    blocks = prod([access.grid[d] for d in access.dims])
    is_disjoint = len(units.numbers) == len(lines) == len(distinct(units.numbers))
    if not is_disjoint or blocks != len(lines) or (lines != lines[0]).any():
        return None
    inside = [k for k, loop in enumerate(loops) if loop.dim in access.dims]
    return LoopAccess(frozenset(inside), int(lines[0]) * bits)


def _array_reuse(
    access: TiledAccess, bits: int, distances: NDArray[Any], touches: NDArray[Any], first: int
) -> ArrayReuse:
    """The touches of lines by distance, from distances in bits in any order."""
    different, group = np.unique(distances, return_inverse=True)
    lines = np.zeros(len(different), np.int64)
    np.add.at(lines, group.reshape(-1), touches)
    kept = lines > 0
    return ArrayReuse(access.array, access.kind, bits, different[kept], lines[kept], first)


# ---------------------------------------------------------------- trace


def trace_profile(
    accesses: TileAccesses,
    order: BlockOrder,
    line: int | None,
    wave: int,
    units: Sequence[Units],
) -> ReuseProfile:
    """Return the distances in the trace.

    Raises:
        CacheBudgetError: the trace has more than `MAX_TOUCHES`.
    """
    trace = cache_trace(accesses.touching(order, wave), line, accesses.listed, units)
    distances = reuse_distances(trace.unit, trace.bits)
    lines = trace.lines[trace.unit]
    arrays = []
    for k, access in enumerate(accesses.listed):
        again = (trace.access == k) & (distances >= 0)
        first = int(lines[(trace.access == k) & (distances < 0)].sum())
        bits = line_bits(access, line)
        arrays.append(_array_reuse(access, bits, distances[again], lines[again], first))
    return ReuseProfile(accesses.tiling, order, line, tuple(arrays), "trace", (), wave)

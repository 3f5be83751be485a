"""`best_block_orders`: the orders of tiles with the fewest misses of a cache."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

from hlo.arguments import checked
from indexing.memory.caches.accesses import CacheBudgetError
from indexing.memory.caches.lines import units_by_access
from indexing.memory.caches.misses import CacheMisses
from indexing.memory.caches.orders import BlockOrder, block_orders
from indexing.memory.caches.profile import (
    check_line,
    check_wave,
    order_of,
    profile_of,
)
from indexing.memory.caches.tile_accesses import tile_accesses
from indexing.tiling.loops.loop_tiling import LoopTiling
from indexing.tiling.sets.tiling import Tiling
from simplifier.unknown import Unknown


@dataclass(frozen=True, eq=False, repr=False)
class BestBlockOrders(Sequence[CacheMisses]):
    """The orders of the tiles of a tiling, by the misses of a cache, the fewest first.

    Attributes:
        tiling: the tiles.
        ranked: the misses in each order; all are exact.
        unknown: the orders whose misses are not known, with the reason.

    >>> import hlo, indexing
    >>> dot = hlo.parse('''ENTRY e {
    ...   p = f32[512,256] parameter(0)
    ...   q = f32[256,512] parameter(1)
    ...   ROOT dot = f32[512,512] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    ... }''').entry.root
    >>> best = indexing.best_block_orders(indexing.tile(dot, (64, 64)), capacity=512 * 1024)
    >>> best[0].order.name, best[0].misses
    ('grouped:4', 20480)
    """

    tiling: Tiling | LoopTiling
    ranked: tuple[CacheMisses, ...]
    unknown: tuple[tuple[BlockOrder, Unknown], ...]

    def __len__(self) -> int:
        return len(self.ranked)

    @overload
    def __getitem__(self, index: int) -> CacheMisses: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[CacheMisses, ...]: ...
    def __getitem__(self, index: int | slice) -> CacheMisses | tuple[CacheMisses, ...]:
        return self.ranked[index]

    def __str__(self) -> str:
        rows = [("order", "misses", "bytes", "hit rate", "method")]
        for own in self.ranked:
            rate = f"{float(own.hit_rate):.1%}"
            rows.append((own.order.name, f"{own.misses:,}", f"{own.bytes:,}", rate, own.method))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            f"{row[0]:<{widths[0]}}  "
            + "  ".join([f"{c:>{w}}" for c, w in zip(row[1:-1], widths[1:-1], strict=True)])
            + f"  {row[-1]}"
            for row in rows
        ]
        return "\n".join([*lines, *[f"{order.name}: {reason}" for order, reason in self.unknown]])

    def __repr__(self) -> str:
        return f"<misses of {self.tiling!r} in {len(self.ranked)} orders>"


@checked
def best_block_orders(
    tiling: Tiling | LoopTiling,
    capacity: int,
    orders: Sequence[BlockOrder | str] | None = None,
    line: int | None = 128,
    wave: int = 1,
) -> BestBlockOrders | Unknown:
    """Return orders of the tiles by the misses of an LRU cache, the fewest first.

    Ties are in the order of `orders`.  See `reuse_profile` for the touches of a tile.

    Args:
        tiling: the tiles.
        capacity: bytes of the cache.
        orders: the orders to compare, or their names; by default, those of `block_orders`.
        line: bytes of a line; `None` if each element is a line of its own size.
        wave: number of tiles that are computed in lockstep; see `reuse_profile`.
    Returns:
        The misses in each order; `Unknown` if elements are over-approximated or depend on runtime
        values, or exceed a budget in all orders, or if several loops read one array.
    Raises:
        ValueError: an order is not one of the grid of the tiling, `line` or `wave` is not positive,
            the capacity is negative, or the blocks share loops by `split_k`.

    >>> import hlo, indexing
    >>> dot = hlo.parse('''ENTRY e {
    ...   p = f32[512,256] parameter(0)
    ...   q = f32[256,512] parameter(1)
    ...   ROOT dot = f32[512,512] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    ... }''').entry.root
    >>> print(best_block_orders(indexing.tile(dot, (64, 64)), capacity=512 * 1024))
    order      misses      bytes  hit rate  method
    grouped:4  20,480  2,621,440     72.2%  closed form
    hilbert    25,600  3,276,800     65.3%  trace
    grouped:2  28,672  3,670,016     61.1%  closed form
    morton     30,720  3,932,160     58.3%  closed form
    row        45,056  5,767,168     38.9%  closed form
    column     45,056  5,767,168     38.9%  closed form
    """
    check_line(line)
    check_wave(wave)
    if orders is None:
        chosen = block_orders(tiling)
    else:
        chosen = tuple([order_of(tiling, order) for order in orders])
    accesses = tile_accesses(tiling)
    if isinstance(accesses, Unknown):
        return accesses
    try:
        units = units_by_access(accesses.listed, line)
    except CacheBudgetError as error:
        return Unknown(str(error), tiling.instruction)
    ranked: list[CacheMisses] = []
    unknown: list[tuple[BlockOrder, Unknown]] = []
    for order in chosen:
        try:
            profile = profile_of(accesses, order, line, wave, units)
        except CacheBudgetError as error:
            unknown.append((order, Unknown(str(error), tiling.instruction)))
        else:
            ranked.append(profile.misses(capacity))
    ranked.sort(key=lambda own: own.misses)
    return BestBlockOrders(tiling, tuple(ranked), tuple(unknown))

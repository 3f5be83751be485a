"""Reuse distances in closed form: loops over tiles, and blocks that are equal or disjoint.

Let the loops be ``l_0, l_1, …``, the outermost first.  The block of access k depends on the loops
D_k only, and each of their values has a block of its own.  A tile reuses the block of an earlier
tile if one of its loops outside of D_k is not at iteration 0.  The innermost of these loops that is
not, say m, *carries* the reuse: the earlier tile has ``l_m - 1`` and the last iterations of the
loops inside of m that are not in D_k; the later tile has iteration 0 of these loops.

Between these two tiles, access q touches the blocks of the tail of iteration ``l_m - 1`` and of the
head of iteration ``l_m``.  Both are sets of values of the loops D_q inside of m.  The tail has the
values whose last completion by the other loops is not before the earlier tile; the head has those
whose first completion is before the later tile.  `_tail`, `_head` and `_both` count them loop by
loop, for all values of the loops D_k inside of m at once.

A matrix product of M x N tiles in row-major order has ``l_0 = tid_0`` and ``l_1 = tid_1``.  The
block of the left operand depends on l_0: l_1 carries its reuse by the next tile, at a distance of
one block of each array.  The block of the right operand depends on l_1: l_0 carries its reuse, at a
distance of all N blocks of the operand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from indexing.memory.caches.orders import OrderLoop


class LoopAccess(NamedTuple):
    """An access whose blocks are disjoint: one for each combination of iterations of some loops.

    Attributes:
        loops: the numbers of these loops.
        weight: the weight of one block.
    """

    loops: frozenset[int]
    weight: int


@dataclass(frozen=True, eq=False)
class CarriedReuse:
    """The reuses of the blocks of one access that one loop carries.

    Attributes:
        access: the number of the access.
        loop: the loop that carries the reuses.
        tiles: number of tiles that reuse a block at each of the `distances`.
        distances: the weight of the blocks touched since the previous touch, itself included.
    """

    access: int
    loop: OrderLoop
    tiles: int
    distances: NDArray[Any]


def carried_reuses(
    accesses: Sequence[LoopAccess], loops: Sequence[OrderLoop]
) -> tuple[CarriedReuse, ...]:
    """Return all reuses of blocks, by the access and the loop that carries them.

    >>> loops = [OrderLoop(0, 1, 4), OrderLoop(1, 1, 3)]
    >>> lhs, rhs, result = LoopAccess({0}, 10), LoopAccess({1}, 100), LoopAccess({0, 1}, 1)
    >>> for reuse in carried_reuses([lhs, rhs, result], loops):
    ...     print(reuse.access, reuse.loop, reuse.tiles, reuse.distances.tolist())
    0 tid_1 8 [111]
    1 tid_0 3 [323, 323, 313]
    """
    counts = [loop.iterations for loop in loops]
    reuses = []
    for k, access in enumerate(accesses):
        for m, loop in enumerate(loops):
            if m not in access.loops and loop.iterations > 1:
                distances = _distances(accesses, counts, k, m)
                tiles = prod(counts[:m]) * (loop.iterations - 1)
                reuses.append(CarriedReuse(k, loop, tiles, distances))
    return tuple(reuses)


def _distances(
    accesses: Sequence[LoopAccess], counts: Sequence[int], k: int, m: int
) -> NDArray[Any]:
    """The distance of the reuses of access k that loop m carries, for each block."""
    mine = accesses[k].loops
    inner = range(m + 1, len(counts))
    shape = [counts[p] for p in inner if p in mine]
    grids = iter(np.indices(shape, np.int64))
    at = {p: next(grids) for p in inner if p in mine}
    total = np.zeros(shape, np.int64)
    for q, access in enumerate(accesses):
        if q == k:
            total += prod(shape) * access.weight  # each block of other iterations, and itself
            continue
        loops = [_InnerLoop(counts[p], p in access.loops, at.get(p)) for p in inner]
        blocks = _tail(loops, q > k) + _head(loops, q < k)
        if m not in access.loops:
            blocks = blocks - _both(loops, q > k, q < k)
        total += blocks * access.weight
    return total.reshape(-1)


class _InnerLoop(NamedTuple):
    """A loop inside of the one that carries the reuse.

    Attributes:
        iterations: number of iterations.
        is_theirs: True if the blocks to count depend on it.
        own: the iteration of the reused block, if it depends on the loop.
    """

    iterations: int
    is_theirs: bool
    own: NDArray[Any] | None


def _tail(loops: Sequence[_InnerLoop], is_inclusive: bool) -> Any:
    """The number of blocks of the iteration before, not before the earlier tile."""
    equal: Any = 1
    after: Any = 0
    for count, is_theirs, own in loops:
        if is_theirs and own is not None:
            after = after * count + equal * (count - 1 - own)
        elif is_theirs:
            after = after * count  # equal: the last iteration
        elif own is not None:
            is_after = own < count - 1  # completed by the last iteration
            after, equal = after + equal * is_after, equal * ~is_after
    return after + equal * is_inclusive


def _head(loops: Sequence[_InnerLoop], is_inclusive: bool) -> Any:
    """The number of blocks of the same iteration, before the later tile."""
    equal: Any = 1
    before: Any = 0
    for count, is_theirs, own in loops:
        if is_theirs and own is not None:
            before = before * count + equal * own
        elif is_theirs:
            before = before * count  # equal: iteration 0
        elif own is not None:
            is_before = own > 0  # completed by iteration 0
            before, equal = before + equal * is_before, equal * ~is_before
    return before + equal * is_inclusive


def _both(loops: Sequence[_InnerLoop], is_tail_inclusive: bool, is_head_inclusive: bool) -> Any:
    """The number of blocks of the tail whose values are in the head, too."""
    equal: Any = 1  # equal to the earlier tile and to the later one
    after: Any = 0  # after the earlier tile, and equal to the later one
    before: Any = 0  # equal to the earlier tile, and before the later one
    inside: Any = 0  # after the earlier tile, and before the later one
    for count, is_theirs, own in loops:
        if is_theirs and own is not None:
            inside = inside * count + after * own + before * (count - 1 - own)
        elif is_theirs:
            inside = inside * count
            equal = equal * (count == 1)  # the last iteration is iteration 0
        elif own is not None:
            is_after, is_before = own < count - 1, own > 0
            inside = inside + after * is_before + before * is_after + equal * (is_after & is_before)
            after, before, equal = (
                after * ~is_before + equal * (is_after & ~is_before),
                before * ~is_after + equal * (is_before & ~is_after),
                equal * ~(is_after | is_before),
            )
    return (
        inside
        + after * is_head_inclusive
        + before * is_tail_inclusive
        + equal * (is_tail_inclusive and is_head_inclusive)
    )

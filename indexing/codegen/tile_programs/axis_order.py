"""The order of the dimensions of values: one in which few blocks of arrays are transposed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise


def axis_order(
    first: Sequence[int], wishes: Iterable[Sequence[int]], axes: Iterable[int]
) -> list[int]:
    """Return all axes in an order that keeps `first`, and each wish that contradicts none before.

    Args:
        first: axes whose order is fixed: those of the result.
        wishes: the orders of axes in arrays, the most important first.
        axes: all axes.

    >>> axis_order([0, 1], [[0, 2], [2, 1]], [0, 1, 2])
    [0, 2, 1]
    >>> axis_order([0, 1], [[1, 0], [1, 2]], [0, 1, 2])
    [0, 1, 2]
    """
    after: dict[int, set[int]] = {axis: set() for axis in axes}
    for wish in (first, *wishes):
        for low, high in pairwise(wish):
            if not _reaches(after, high, low):
                after[low].add(high)
    order: list[int] = []
    left = sorted(after)
    while left:
        free = [axis for axis in left if not any(axis in after[other] for other in left)]
        order.append(free[0])
        left.remove(free[0])
    return order


def _reaches(after: dict[int, set[int]], start: int, goal: int) -> bool:
    seen, stack = set(), [start]
    while stack:
        axis = stack.pop()
        if axis == goal:
            return True
        if axis not in seen:
            seen.add(axis)
            stack += after[axis]
    return False

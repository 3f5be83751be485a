"""Closed integer intervals ``(lower, upper)``; ``lower > upper`` is the empty interval."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

Interval: TypeAlias = tuple[int, int]
"""``(lower, upper)``, both included."""


def scale(interval: Interval, factor: int) -> Interval:
    """``{factor·x}`` for x in `interval`.

    >>> scale((1, 3), -2)
    (-6, -2)
    """
    lower, upper = interval
    return (lower * factor, upper * factor) if factor >= 0 else (upper * factor, lower * factor)


def add(a: Interval, b: Interval) -> Interval:
    """``{x + y}`` for x in `a`, y in `b`.

    >>> add((1, 3), (-2, 2))
    (-1, 5)
    """
    return a[0] + b[0], a[1] + b[1]


def intersect(a: Interval, b: Interval) -> Interval:
    """The intersection; empty for disjoint intervals.

    >>> intersect((1, 5), (3, 9)), intersect((1, 2), (4, 5))
    ((3, 5), (4, 2))
    """
    return max(a[0], b[0]), min(a[1], b[1])


def join(intervals: Sequence[Interval]) -> Interval:
    """The smallest interval that contains all of `intervals`, of which there is at least one.

    >>> join([(1, 2), (4, 5), (3, 3)])
    (1, 5)
    """
    return min([lower for lower, _ in intervals]), max([upper for _, upper in intervals])


def floor_divide(interval: Interval, divisor: int) -> Interval:
    """``{floor(x / divisor)}`` for x in `interval` and a positive divisor.

    >>> floor_divide((-1, 9), 4)
    (-1, 2)
    """
    return interval[0] // divisor, interval[1] // divisor


def divide_exactly(interval: Interval, factor: int) -> Interval:
    """``{x | factor·x in interval}`` for a nonzero factor; empty if it has no multiple.

    >>> divide_exactly((-1, 9), 4), divide_exactly((-1, 9), -4), divide_exactly((1, 3), 4)
    ((0, 2), (-2, 0), (1, 0))
    """
    lower, upper = interval if factor > 0 else (-interval[1], -interval[0])
    factor = abs(factor)
    return -(-lower // factor), upper // factor


def contains(outer: Interval, inner: Interval) -> bool:
    """Return True if `inner` is a subset of `outer`; `inner` is not empty.

    >>> contains((0, 9), (2, 9)), contains((0, 9), (2, 10))
    (True, False)
    """
    return outer[0] <= inner[0] and inner[1] <= outer[1]

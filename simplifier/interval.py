"""Closed integer intervals ``(lower, upper)``; ``lower > upper`` is the empty interval."""

from __future__ import annotations

from typing import TypeAlias

Interval: TypeAlias = tuple[int, int]


def scaled(interval: Interval, factor: int) -> Interval:
    """``{factor·x}`` for x in `interval`.

    >>> scaled((1, 3), -2)
    (-6, -2)
    """
    lower, upper = interval
    return (lower * factor, upper * factor) if factor >= 0 else (upper * factor, lower * factor)


def added(a: Interval, b: Interval) -> Interval:
    """``{x + y}`` for x in `a`, y in `b`."""
    return a[0] + b[0], a[1] + b[1]


def intersected(a: Interval, b: Interval) -> Interval:
    """What both hold; empty when they are apart."""
    return max(a[0], b[0]), min(a[1], b[1])


def floor_divided(interval: Interval, divisor: int) -> Interval:
    """``{floor(x / divisor)}`` for a positive divisor."""
    return interval[0] // divisor, interval[1] // divisor


def contains(outer: Interval, inner: Interval) -> bool:
    """Every point of `inner` lies in `outer`."""
    return outer[0] <= inner[0] and inner[1] <= outer[1]

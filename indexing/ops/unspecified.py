"""Operations whose result HLO leaves to the implementation, recorded during executions.

Programs that are equal may differ in these results.

Sources: XLA ``docs/operation_semantics.md``: integer division by zero, and the division of the
smallest number by −1; StableHLO ``docs/spec.md``, ``convert``: numbers that the integer type cannot
represent.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

_seen: Final[ContextVar[set[str] | None]] = ContextVar("unspecified_operations", default=None)


@contextmanager
def record_unspecified() -> Iterator[set[str]]:
    """Yield a set that receives a description of each kind of unspecified operation.

    >>> from indexing.ops import numerics
    >>> with record_unspecified() as seen:
    ...     numerics.divide(np.int32([6, 7]), np.int32([3, 0])).tolist()
    [2, -1]
    >>> seen
    {'an integer division by zero'}
    """
    seen: set[str] = set()
    token = _seen.set(seen)
    try:
        yield seen
    finally:
        _seen.reset(token)


def record_division(dividend: NDArray[Any], divisor: NDArray[Any], low: int) -> None:
    """Record quotients of integers of a type whose smallest number is `low`."""
    seen = _seen.get()
    if seen is None:
        return
    if (divisor == 0).any():
        seen.add("an integer division by zero")
    if low and ((dividend == low) & (divisor == -1)).any():
        seen.add("a quotient that overflows")


def record_conversion(values: NDArray[Any], low: int, high: int) -> None:
    """Record conversions of floating-point numbers to an integer type with these limits."""
    seen = _seen.get()
    if seen is not None:
        whole = np.trunc(values.astype(np.float64))
        if not ((whole >= low) & (whole <= high)).all():
            seen.add("a conversion to an integer type that has no such number")

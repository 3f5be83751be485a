"""Comparison of results: integers must be equal, other numbers may differ by rounding."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import ml_dtypes
import numpy as np

from indexing.codegen.graph import Array
from indexing.ops.numerics import is_integer

ElementIndex: TypeAlias = tuple[int, ...]

_finfo: Final[Any] = ml_dtypes.finfo  # has no types

CANCELLATION_EPSILONS: Final = 16
"""Tolerance for sums that cancel, in epsilons of the largest element."""


def tolerance(kind: np.dtype[Any]) -> float:
    """Return the tolerance relative to an element, for sums in another order; 0 for integers.

    >>> tolerance(np.dtype(np.float32)) < 1e-4, tolerance(np.dtype(np.int32))
    (True, 0.0)
    """
    if kind.kind == "b" or is_integer(np.empty(0, kind)):
        return 0.0
    return epsilon(kind) * (4 if epsilon(kind) > 1e-6 else 512)


def epsilon(kind: np.dtype[Any]) -> float:
    """Distance from 1 to the next larger number of a floating-point type."""
    return float(_finfo(kind).eps)


def first_difference(
    actual: Array, expected: Array, min_tolerance: float = 0.0
) -> ElementIndex | None:
    """Return the first index at which two arrays differ beyond the tolerance, or None.

    The tolerance is the larger of two: `tolerance` relative to the element, and
    `CANCELLATION_EPSILONS` epsilons (at least `min_tolerance`) relative to the largest element.

    >>> huge = np.float32([1e5, 1, 0])
    >>> first_difference(np.float32([1e5, 1.5, 0]), huge), first_difference(huge + 1e-2, huge)
    ((1,), None)
    """
    if actual.shape != expected.shape or actual.dtype != expected.dtype:
        return (0,) * expected.ndim
    relative = tolerance(expected.dtype)
    if not relative:
        differs = actual != expected
    else:
        wide: Any = np.complex128 if expected.dtype.kind == "c" else np.float64
        a, b = actual.astype(wide), expected.astype(wide)
        largest = np.abs(b[np.isfinite(b)]).max(initial=0.0)
        absolute = (
            max(min(CANCELLATION_EPSILONS * epsilon(expected.dtype), relative), min_tolerance)
            * largest
        )
        with np.errstate(all="ignore"):
            near = np.abs(a - b) <= np.maximum(absolute, relative * np.abs(b))
        near &= np.isfinite(b)  # infinity is near itself only
        differs = ~(near | (a == b) | (np.isnan(a) & np.isnan(b)))
    indices = np.argwhere(differs)
    return tuple(map(int, indices[0])) if len(indices) else None

"""When two results count as the same: integers are equal, other numbers differ by roundings."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import ml_dtypes
import numpy as np

from indexing.codegen.graph import Array
from indexing.ops.numerics import is_integer

Index: TypeAlias = tuple[int, ...]

_finfo: Final[Any] = ml_dtypes.finfo  # has no types

CANCELLED: Final = 16
"""Tolerance for terms that cancel, in roundings of the largest element."""


def tolerance(kind: np.dtype[Any]) -> float:
    """Tolerance relative to the largest element: the order of summation differs.

    >>> tolerance(np.dtype(np.float32)) < 1e-4, tolerance(np.dtype(np.int32))
    (True, 0.0)
    """
    if kind.kind == "b" or is_integer(np.empty(0, kind)):
        return 0.0
    return epsilon(kind) * (4 if epsilon(kind) > 1e-6 else 512)


def epsilon(kind: np.dtype[Any]) -> float:
    """The distance from 1 to the next number of a floating type."""
    return float(_finfo(kind).eps)


def first_difference(found: Array, wanted: Array, least: float = 0.0) -> Index | None:
    """The smallest index at which two arrays differ by more than roundings, or than `least`.

    Roundings of a sum are relative to its terms: to the element itself and, for terms that cancel,
    to a fraction of the largest element of the array. `least` is relative to the largest.

    >>> huge = np.float32([1e5, 1, 0])
    >>> first_difference(np.float32([1e5, 1.5, 0]), huge), first_difference(huge + 1e-2, huge)
    ((1,), None)
    """
    if found.shape != wanted.shape or found.dtype != wanted.dtype:
        return (0,) * wanted.ndim
    relative = tolerance(wanted.dtype)
    if not relative:
        differs = found != wanted
    else:
        wide: Any = np.complex128 if wanted.dtype.kind == "c" else np.float64
        one, other = found.astype(wide), wanted.astype(wide)
        largest = np.abs(other[np.isfinite(other)]).max(initial=0.0)
        absolute = max(min(CANCELLED * epsilon(wanted.dtype), relative), least) * largest
        with np.errstate(all="ignore"):
            near = np.abs(one - other) <= np.maximum(absolute, relative * np.abs(other))
        near &= np.isfinite(other)  # nothing but itself is near infinity
        differs = ~(near | (one == other) | (np.isnan(one) & np.isnan(other)))
    places = np.argwhere(differs)
    return tuple(map(int, places[0])) if len(places) else None

"""When two results count as the same: integers are equal, other numbers differ by roundings."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import ml_dtypes
import numpy as np

from indexing.loopnest.nest import Array
from indexing.ops.numerics import is_integer

Index: TypeAlias = tuple[int, ...]

_finfo: Final[Any] = ml_dtypes.finfo  # has no types


def tolerance(kind: np.dtype[Any]) -> float:
    """By how much results may differ, relative to the largest: sums go in different orders.

    >>> tolerance(np.dtype(np.float32)) < 1e-4, tolerance(np.dtype(np.int32))
    (True, 0.0)
    """
    if kind.kind == "b" or is_integer(np.empty(0, kind)):
        return 0.0
    epsilon = float(_finfo(kind).eps)
    return epsilon * (4 if epsilon > 1e-6 else 512)


def first_difference(found: Array, wanted: Array, least: float = 0.0) -> Index | None:
    """The smallest index at which two arrays differ by more than roundings, or than `least`."""
    if found.shape != wanted.shape or found.dtype != wanted.dtype:
        return (0,) * wanted.ndim
    bound = tolerance(wanted.dtype)
    if not bound:
        differs = found != wanted
    else:
        bound = max(bound, least)
        wide: Any = np.complex128 if wanted.dtype.kind == "c" else np.float64
        one, other = found.astype(wide), wanted.astype(wide)
        largest = np.abs(other[np.isfinite(other)]).max(initial=0.0)
        with np.errstate(all="ignore"):
            near = np.abs(one - other) <= bound * largest
        differs = ~(near | (one == other) | (np.isnan(one) & np.isnan(other)))
    places = np.argwhere(differs)
    return tuple(map(int, places[0])) if len(places) else None

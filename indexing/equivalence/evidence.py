"""Differences of executions that show that two programs differ."""

from __future__ import annotations

from enum import Enum, auto
from typing import Any, Final

import numpy as np

from indexing.codegen.differences import first_difference, tolerance
from indexing.equivalence.verdicts import ElementIndex
from indexing.execution.values import Array

MARGIN: Final = 8.0
"""Factor on the tolerances for rounding, beyond which values differ."""

_NARROW: Final = tolerance(np.dtype(np.float32))
"""Tolerance of the narrowest floats whose rounding seldom reaches an integer."""


class Allowed(Enum):
    """Differences of numbers that are no evidence.

    Attributes:
        ACCUMULATED: rounding of sums in any order; NaN; infinities, unless an array has nothing
            else.
        APPROXIMATE: rounding of the functions of an element.
        NONE: none; the results are determined to the last bit.
    """

    ACCUMULATED = auto()
    APPROXIMATE = auto()
    NONE = auto()


def far_apart(
    before: Array,
    after: Array,
    allowed: Allowed = Allowed.ACCUMULATED,
    rounding: float = 0.0,
) -> ElementIndex | None:
    """Return the first index at which values differ by more than is allowed, or None.

    Integers that are computed from floats narrower than f32 are no evidence if rounding is allowed:
    another rounding may have another integer next to it.

    Args:
        rounding: the tolerance of the coarsest floats that the arrays are computed from.
    """
    if before.shape != after.shape or before.dtype != after.dtype:
        return None
    own = tolerance(before.dtype)
    if not own:
        is_open = allowed is not Allowed.NONE and rounding > _NARROW
        return None if is_open else first_difference(after, before)
    wide: Any = np.complex128 if before.dtype.kind == "c" else np.float64
    with np.errstate(all="ignore"):
        one, other = before.astype(wide), after.astype(wide)
        margin = MARGIN * max(own, rounding)
        indices = np.argwhere(_differs(one, other, margin, allowed))
    return tuple(map(int, indices[0])) if len(indices) else None


def _differs(one: Array, other: Array, margin: float, allowed: Allowed) -> Array:
    same = (one == other) | (np.isnan(one) & np.isnan(other))
    if allowed is Allowed.NONE:
        return np.asarray(~same | (np.signbit(one.real) != np.signbit(other.real)) & (one == 0))
    finite = np.isfinite(one) & np.isfinite(other)
    sizes = np.maximum(np.abs(one), np.abs(other))
    far = finite & ~same & (np.abs(one - other) > margin * sizes)
    if allowed is Allowed.APPROXIMATE:
        return np.asarray(far | ~finite & ~same)
    largest = np.max(sizes, initial=0.0, where=finite)
    if np.isinf(one).all() and np.isfinite(other).all():
        return np.isinf(one)
    if np.isinf(other).all() and np.isfinite(one).all():
        return np.isinf(other)
    return np.asarray(far & (np.abs(one - other) > margin * largest / 16))

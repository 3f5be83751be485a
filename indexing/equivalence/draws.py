"""Arrays on which programs are executed: random ones, and those with the edge values of a type."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import ml_dtypes
import numpy as np

from hlo.shapes.shape import ELEMENT_TYPES, Shape, dtype
from indexing.execution.values import Array, random_array
from indexing.ops.numerics import limits

_finfo: Final[Any] = ml_dtypes.finfo  # has no types


@dataclass(frozen=True, slots=True)
class Draw:
    """A way to draw arrays.

    Attributes:
        whole: floats are small whole numbers.
        wide: integers reach 24 instead of 12.
        positive: numbers are positive.
        edges: share of the integers, and with `float_edges` of the floats, that are edge values of
            their type: its limits, zeros, infinities, NaN.
    """

    whole: bool = False
    wide: bool = False
    positive: bool = False
    edges: float = 0.0
    float_edges: bool = False

    def array(self, shape: Shape, random: np.random.Generator) -> Array:
        """Return a random array."""
        kind = ELEMENT_TYPES[shape.element_type].kind
        values = self._values(shape, random)
        if not self.edges or not values.size:
            return values
        if kind in ("integral", "unsigned"):
            edges = integer_edges(values.dtype)
        elif kind == "floating" and self.float_edges:
            edges = float_edges(values.dtype)
        else:
            return values
        chosen = edges[random.integers(0, len(edges), shape.dims)]
        return np.where(random.random(shape.dims) < self.edges, chosen, values).astype(values.dtype)

    def _values(self, shape: Shape, random: np.random.Generator) -> Array:
        element, kind = ELEMENT_TYPES[shape.element_type], dtype(shape.element_type)
        if element.kind in ("integral", "unsigned"):
            high = min(24 if self.wide else 12, 1 << (element.bits - (element.kind == "integral")))
            low = 0 if element.kind == "unsigned" else max(-3, -high)
            low = min(1, high - 1) if self.positive else low
            return np.asarray(random.integers(low, high, shape.dims)).astype(kind)
        if element.kind != "floating":
            return random_array(shape, random)
        if self.whole:
            low = 1 if self.positive else -4
            return np.asarray(random.integers(low, 5, shape.dims)).astype(kind)
        values = random_array(shape, random)
        return np.asarray(np.abs(values) if self.positive else values)


def integer_edges(kind: np.dtype[Any]) -> Array:
    """Return numbers near the limits and the sign of an integer type.

    >>> integer_edges(np.dtype(np.int8)).tolist()
    [-128, -127, -1, 0, 1, 2, 63, 64, 126, 127]
    >>> integer_edges(np.dtype(np.uint64))[-1]
    np.uint64(18446744073709551615)
    """
    low, high = limits(kind)
    numbers = [low, low + 1, -1, 0, 1, 2, high // 2, high // 2 + 1, high - 1, high]
    return np.array(sorted({n for n in numbers if low <= n <= high}), dtype=kind)


def float_edges(kind: np.dtype[Any]) -> Array:
    """Return zeros, large and small numbers, infinities and NaN, as far as the type has them.

    >>> float_edges(np.dtype(np.float16)).tolist()[:6]
    [0.0, -0.0, 1.0, -1.0, 6.103515625e-05, 65504.0]
    """
    info = _finfo(kind)
    largest, smallest = float(info.max), float(info.smallest_normal)
    numbers = [0.0, -0.0, 1.0, -1.0, smallest, largest, -largest, largest**0.5, 128.0, -128.0]
    with np.errstate(all="ignore"):
        return np.array([*numbers, np.inf, -np.inf, np.nan], np.float64).astype(kind)

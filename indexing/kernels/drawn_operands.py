"""Operands of an instruction drawn at random, in several ways that show different faults."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from hlo.shapes.element_type import ELEMENT_TYPES, dtype, range_of
from hlo.shapes.shape import Shape
from indexing.kernels.lane_memory import Array

WAYS: Final = 6
"""Plain values; values with ties; wide ones; small integers; NaN and infinities; none negative."""
SPECIAL: Final = 4
"""The way that has NaN, infinities and zeros of both signs."""


def draw_operands(shapes: Sequence[Shape], seed: int, are_distinct: bool) -> list[Array]:
    """Return an array of each shape.

    Args:
        seed: the seed, which modulo `WAYS` is the way.
        are_distinct: True if no integer may occur twice in an array.
    """
    generator = np.random.default_rng([17, seed])
    extent = max([size for shape in shapes for size in shape.dims], default=1)
    return [_array(generator, shape, seed, extent, are_distinct) for shape in shapes]


def _array(
    generator: np.random.Generator, shape: Shape, seed: int, extent: int, are_distinct: bool
) -> Array:
    kind, dims = shape.element_type, tuple(shape.dims)
    limits = range_of(kind)
    if kind == "pred":
        return generator.integers(0, 2, dims).astype(np.bool_)
    if limits is None:
        data = _floats(generator, dims, seed % WAYS)
        if ELEMENT_TYPES[kind].kind == "complex":
            with np.errstate(invalid="ignore"):
                data = data + 1j * _floats(generator, dims, seed % WAYS)
        return np.asarray(data).astype(dtype(kind))
    if are_distinct:
        size = math.prod(dims)
        numbers = generator.permutation(max(extent, size, 40))[:size]
        return numbers.reshape(dims).astype(dtype(kind))
    low, high = [(0, 7), (-4, extent + 4), limits, (-30, 30), (-2, 2), (0, extent)][seed % WAYS]
    low, high = max(low, limits[0]), min(high, limits[1])
    if high >= 1 << 63:
        return generator.integers(low, high, dims, np.uint64, endpoint=True).astype(dtype(kind))
    return generator.integers(low, high, dims, np.int64, endpoint=True).astype(dtype(kind))


def _floats(generator: np.random.Generator, dims: tuple[int, ...], way: int) -> Any:
    values = generator.normal(size=dims)
    match way:
        case 1:
            return np.rint(values * 2) / 2
        case 2:
            return values * 8
        case 3:
            return np.rint(values * 2)
        case 4:
            special = generator.choice([np.nan, np.inf, -np.inf, 0.0, -0.0], dims)
            return np.where(generator.random(dims) < 0.1, special, values * 3)
        case 5:
            return np.abs(values) + 0.25
    return values


def perturb_operands(operands: Sequence[Array], relative: float) -> list[Array]:
    """Return operands whose floats are changed a little; equal values stay equal."""
    return [_perturb(array, relative) for array in operands]


def _perturb(array: Array, relative: float) -> Array:
    if array.dtype.kind in "iub":
        return array
    wide = array.astype(complex if array.dtype.kind == "c" else np.float64)
    with np.errstate(all="ignore"):
        moved = wide * (1 + relative * (1 + np.sin(3 * np.real(wide))))
    return np.where(np.isfinite(wide), moved, wide).astype(array.dtype)

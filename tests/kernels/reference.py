"""Values of a kernel's instruction by the execution of HLO, and operands to try."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

import indexing.execution
from hlo.modules.module import Instruction
from hlo.shapes.shape import Shape
from indexing.kernels.drawn_operands import draw_operands
from indexing.kernels.witnesses import DRAWS
from tests.kernels.memory import Array

SEEDS = (0, 1, 2, 3, 4)
DRAWN = tuple(range(100, 100 + DRAWS))
"""Seeds of the operands on which kernels are executed to refute them."""
_FLOATS = {"f32": np.float32, "bf16": ml_dtypes.bfloat16, "f16": np.float16, "f64": np.float64}


def expected_result(fusion: Instruction, operands: Sequence[Array]) -> tuple[Array, ...]:
    """Return the results of a fusion."""
    with np.errstate(all="ignore"):
        return tuple(indexing.execution.run(fusion.called_computations[0], list(operands)))


def has_unique_indices(fusion: Instruction) -> bool:
    """Return True if a fusion has a scatter whose indices may not repeat."""
    called = fusion.called_computations[0]
    return any(i.opcode == "scatter" and "unique_indices=true" in str(i) for i in called)


def operands_of(fusion: Instruction, seed: int) -> list[Array]:
    """Return operands: 0 plain values, 1 values with ties, 2 wide values, 3 ties and small
    integers, 4 values with NaN, infinities and zeros of both signs; from 100, as
    `draw_operands`."""
    shapes = [operand.shape for operand in fusion.operands if isinstance(operand.shape, Shape)]
    if seed in DRAWN:
        return draw_operands(shapes, seed - DRAWN[0], has_unique_indices(fusion))
    random = np.random.default_rng(seed + 100)
    unique = has_unique_indices(fusion)
    return [_array(random, shape, seed, unique) for shape in shapes]


def _array(random: np.random.Generator, shape: Shape, seed: int, unique: bool) -> Array:
    kind, dims = shape.element_type, tuple(shape.dims)
    if kind == "pred":
        return random.integers(0, 2, dims).astype(np.bool_)
    if kind in _FLOATS:
        values: Any = random.normal(size=dims) * (1 if seed < 2 else 3)
        if seed in (1, 3):
            values = np.rint(values * 2) / 2
        if seed == 4:
            special = random.choice([np.nan, np.inf, -np.inf, 0.0, -0.0], dims)
            values = np.where(random.random(dims) < 0.1, special, values)
        return np.asarray(values).astype(_FLOATS[kind])
    dtype = np.dtype(ml_dtypes.int4 if kind == "s4" else
                     f"{'u' if kind[0] == 'u' else ''}int{kind[1:]}")  # fmt: skip
    if unique:
        size = int(np.prod(dims))
        return random.permutation(max(40, size))[:size].reshape(dims).astype(dtype)
    bits = 4 if kind == "s4" else int(kind[1:])
    low, high = {0: (0, 7), 1: (-4, 60), 2: (-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
                 3: (-30, 30),
                 4: (-2, 2)}[seed]  # fmt: skip
    if kind[0] == "u":
        low, high = max(0, low), max(7, high)
    least, most = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    if kind[0] != "u":
        low, high = max(low, least), min(high, most)
    return np.asarray(random.integers(low, high, dims, endpoint=True)).astype(dtype)


def difference(one: Array, other: Array) -> str:
    """Return "", "rounding" or "values"."""
    one, other = np.asarray(one), np.asarray(other)
    if one.dtype == np.int8 and other.dtype == np.bool_:
        one = one != 0
    if {one.dtype.kind, other.dtype.kind} == set("iu") and one.itemsize == other.itemsize:
        one = one.view(other.dtype)  # MLIR's integers have no sign
    if one.dtype.kind in "iub" or other.dtype.kind in "iub":
        same = np.array_equal(one.astype(np.int64), other.astype(np.int64))
        return "" if same else "values"
    eps = 2.0**-7 if one.dtype == ml_dtypes.bfloat16 else 2.0**-16
    a, b = one.astype(np.float64), other.astype(np.float64)
    if np.array_equal(a, b, equal_nan=True):
        return ""
    with np.errstate(all="ignore"):
        scale = np.max(np.abs(b[np.isfinite(b)]), initial=1e-30)
        close = np.isclose(a, b, rtol=eps, atol=eps * 0.25 * scale, equal_nan=True)
    return "rounding" if close.all() else "values"

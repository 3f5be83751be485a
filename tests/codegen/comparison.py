"""Comparison of the results of loop nests with those of kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

import indexing
from hlo import Module, Shape
from hlo.ops.attributes import computation
from indexing.codegen.nest import LoopNest
from indexing.execution import run
from indexing.ops.base import MappedOp
from indexing.ops.numerics import is_integer
from tests.ops.samples import FUNCTIONS, Array, Sample

# Tolerance in epsilons of the largest number: sums may be in another order.
ROUNDINGS = 64


def agree(actual: Array, expected: Array, source: str) -> None:
    """Check that integers are equal and that other numbers differ by rounding only."""
    assert (actual.shape, actual.dtype) == (expected.shape, expected.dtype), source
    if actual.dtype.kind == "b" or is_integer(actual):
        assert np.array_equal(actual, expected), source
        return
    a, b = _wide(actual), _wide(expected)
    largest = np.abs(b[np.isfinite(b)]).max(initial=1.0)
    bound = ROUNDINGS * _epsilon(actual.dtype) * largest
    assert np.allclose(a, b, rtol=0, atol=bound, equal_nan=True), source


def checked_nest(module: Module) -> LoopNest:
    """Return the loop nest of a module; check its loops and NumPy program against the kernels.

    All parameters are integers, and the module has one result.
    """
    shapes = [parameter.shape for parameter in module.entry.parameters]
    arrays = [
        np.random.default_rng(k).integers(-99, 99, shape.dims, np.int32)
        for k, shape in enumerate(shapes)
        if isinstance(shape, Shape)
    ]
    nest = indexing.loop_nest(module.entry)
    assert isinstance(nest, LoopNest), nest
    (expected,) = run(module, arrays)
    for result in (nest.run(*arrays), nest.vectorized().run(*arrays)):
        assert np.array_equal(result, expected)
    return nest


def _wide(array: Array) -> Array:
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def _epsilon(dtype: np.dtype[Any]) -> float:
    finfo: Any = ml_dtypes.finfo  # has no types
    return float(finfo(dtype).eps)


def kernel_results(sample: Sample, inputs: Sequence[Array]) -> tuple[Array, ...]:
    """Return the outputs of the op's kernel."""
    op = sample.op
    if not isinstance(op, MappedOp):
        return (op.kernel(*inputs),)
    called = {
        name: FUNCTIONS.get(getattr(op, name))
        for name, field in op.fields.items()
        if field.kind is computation
    }
    result = op.compute(inputs, sample.shapes, **called)
    return result if isinstance(result, tuple) else (result,)

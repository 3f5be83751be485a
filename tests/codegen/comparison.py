"""When two results count as the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

from hlo.ops.attributes import computation
from indexing.ops.base import MappedOp
from indexing.ops.numerics import is_integer
from tests.ops.samples import FUNCTIONS, Array, Sample

# Sums in another order: so many roundings, relative to the largest number.
ROUNDINGS = 64


def agree(found: Array, wanted: Array, source: str) -> None:
    """Integers are equal; other numbers differ by roundings."""
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype), source
    if found.dtype.kind == "b" or is_integer(found):
        assert np.array_equal(found, wanted), source
        return
    one, other = _wide(found), _wide(wanted)
    finite = np.abs(other[np.isfinite(other)])
    largest = finite.max(initial=1.0)
    bound = ROUNDINGS * _epsilon(found.dtype) * largest
    assert np.allclose(one, other, rtol=0, atol=bound, equal_nan=True), source


def _wide(array: Array) -> Array:
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def _epsilon(dtype: np.dtype[Any]) -> float:
    finfo: Any = ml_dtypes.finfo  # has no types
    return float(finfo(dtype).eps)


def kernel_results(sample: Sample, inputs: Sequence[Array]) -> tuple[Array, ...]:
    """What the op's kernel gives."""
    op = sample.op
    if not isinstance(op, MappedOp):
        return (op.kernel(*inputs),)
    called = {
        name: FUNCTIONS.get(getattr(op, name))
        for name, field in op.fields.items()
        if field.kind is computation
    }
    found = op.compute(inputs, sample.shapes, **called)
    return found if isinstance(found, tuple) else (found,)

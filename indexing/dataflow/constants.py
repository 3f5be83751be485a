"""Integer constants: arrays as affine functions of the index, and single elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from hlo.text.source import HloError
from indexing.maps.arrays import ArrayRef
from indexing.maps.indexing_map import IndexingMap, dims
from indexing.ops.access_edge import why_unbounded
from indexing.ops.base import NullaryOp
from indexing.ops.element import ConstantRule, element_of
from indexing.ops.integer_rules import range_of
from simplifier.linear import Expr
from simplifier.sums import weighted_sum

MAX_ELEMENTS: Final = 1 << 16
"""Limit on the elements of a constant; larger constants are not read."""


def is_integral(array: ArrayRef) -> bool:
    """Return True for an array of integers or booleans with known sizes."""
    shape = array.array_shape
    is_integer = shape is not None and range_of(shape.element_type) is not None
    return is_integer and why_unbounded(array) is None


def affine_table(array: ArrayRef) -> list[IndexingMap] | None:
    """Return a list with the map from index to element of a constant array; None if not affine."""
    values = literal(array)
    if values is None:
        return None
    base = int(values[(0,) * values.ndim])
    strides = []
    for k, size in enumerate(values.shape):
        unit = tuple([int(n == k) for n in range(values.ndim)])
        strides.append(int(values[unit]) - base if size > 1 else 0)
    index = np.indices(values.shape)
    affine = sum((s * i for s, i in zip(strides, index, strict=True)), np.full(values.shape, base))
    if not (values == affine).all():
        return None
    variables = dims(values.shape)
    formula = weighted_sum(
        [(s, d.as_expr()) for s, d in zip(strides, variables, strict=True)], base
    )
    return [IndexingMap.of(variables, [formula])]


def literal(array: ArrayRef) -> np.ndarray | None:
    """Return the elements of a constant as Python integers; None if not constant or too large."""
    op, shape = array.instruction.op, array.array_shape
    if not isinstance(op, NullaryOp) or shape is None or not 0 < shape.size <= MAX_ELEMENTS:
        return None
    if element_of(array.instruction) != ConstantRule():
        return None
    try:
        return np.asarray(op.kernel()).astype(object)
    except HloError:  # an elided constant, {...}
        return None


def element_at(array: ArrayRef, index: Sequence[Expr]) -> tuple[IndexingMap, ...] | None:
    """Return the map to the element at a constant index of a constant array, or None."""
    if not all(i.is_constant for i in index) or not is_integral(array):
        return None
    table = literal(array)
    if table is None:
        return None
    number = int(table[tuple([i.constant for i in index])])
    return (IndexingMap.over(table.shape, lambda d: [number]),)

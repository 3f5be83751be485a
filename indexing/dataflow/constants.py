"""Constant arrays of integers: as formulas of the index, or one element of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from hlo.text.source import HloError
from indexing.maps.arrays import ArrayRef
from indexing.maps.indexing_map import IndexingMap, dims
from indexing.ops.base import NullaryOp
from indexing.ops.element import ConstantRule, element_of
from indexing.ops.integer_rules import range_of
from simplifier.linear import Expr, combined

MAX_ELEMENTS: Final = 1 << 16
"""Limit on the elements of a constant; larger ones are not read."""


def is_integral(place: ArrayRef) -> bool:
    """An array of integers or truth values."""
    return place.array_shape is not None and range_of(place.array_shape.element_type) is not None


def affine_table(place: ArrayRef) -> list[IndexingMap] | None:
    """A constant array whose elements are an affine function of their index."""
    values = literal(place)
    if values is None:
        return None
    base = int(values[(0,) * values.ndim])
    steps = []
    for k, size in enumerate(values.shape):
        unit = tuple([int(n == k) for n in range(values.ndim)])
        steps.append(int(values[unit]) - base if size > 1 else 0)
    places = np.indices(values.shape)
    wanted = sum((s * p for s, p in zip(steps, places, strict=True)), np.full(values.shape, base))
    if not (values == wanted).all():
        return None
    here = dims(values.shape)
    formula = combined([(s, d.as_expr()) for s, d in zip(steps, here, strict=True)], base)
    return [IndexingMap.of(here, [formula])]


def literal(place: ArrayRef) -> np.ndarray | None:
    """The elements of a constant array, as Python's integers; None for others, or if it is huge."""
    op, shape = place.instruction.op, place.array_shape
    if not isinstance(op, NullaryOp) or shape is None or not 0 < shape.size <= MAX_ELEMENTS:
        return None
    if element_of(place.instruction) != ConstantRule():
        return None
    try:
        return np.asarray(op.kernel()).astype(object)
    except HloError:  # elements are left out of the text: constant({...})
        return None


def element_at(place: ArrayRef, index: Sequence[Expr]) -> tuple[IndexingMap, ...] | None:
    """The one element of a constant array that a constant index names."""
    if not all(i.is_constant for i in index) or not is_integral(place):
        return None
    table = literal(place)
    if table is None:
        return None
    number = int(table[tuple([i.constant for i in index])])
    return (IndexingMap.over(table.shape, lambda d: [number]),)

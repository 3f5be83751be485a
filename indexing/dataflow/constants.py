"""Integer constants: whole arrays, and single elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from hlo.shapes.element_type import range_of
from hlo.text.source import HloError
from indexing.maps.arrays import ArrayRef
from indexing.maps.indexing_map import IndexingMap
from indexing.ops.access_edge import why_unbounded
from indexing.ops.base import NullaryOp
from indexing.ops.element import ConstantRule, element_of
from simplifier.linear import Expr

MAX_ELEMENTS: Final = 1 << 16
"""Limit on the elements of a constant; larger constants are not read."""


def is_integral(array: ArrayRef) -> bool:
    """Return True for an array of integers or booleans with known sizes."""
    shape = array.array_shape
    is_integer = shape is not None and range_of(shape.element_type) is not None
    return is_integer and why_unbounded(array) is None


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

"""Rows of stable sorts: each is a function of the same row of the operands and of the comparator.

An element of a sort of an array is therefore an element of the sort of one row, whatever the other
dimensions are, also if one of them is the device.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final

from indexing.equivalence.values.laws.algebra import FormulaAlgebra
from indexing.equivalence.values.terms.terms import Formula
from simplifier.atoms import Variable
from simplifier.linear import Expr

ON_EACH_DEVICE: Final = "on each device"
"""The first part of the head of an opaque array whose first dimension is the device."""

BOUND_DEVICE: Final = "q"
"""The name of this dimension in the arguments."""


@dataclass(frozen=True, slots=True)
class SortedRow:
    """An element of a sorted array, as an element of a sorted row.

    Attributes:
        key: equal for sorts of the same attributes, result, row length and comparator.
        operands: the formulas of elements of the operands, over the dimensions of the array.
        outer: the values of the dimensions that are not sorted.
        dimension: the variable of the sorted dimension in `operands`.
        at: the index in the sorted row.
    """

    key: Hashable
    operands: tuple[Formula, ...]
    outer: tuple[tuple[Variable, Expr], ...]
    dimension: Variable
    at: Expr

    @property
    def size(self) -> int:
        """The length of the row."""
        return self.dimension.upper + 1

    def operands_over(self, algebra: FormulaAlgebra, along: Variable) -> list[Formula]:
        """Return the elements of the operands' rows at `along`."""
        swap = algebra.rewriting({**dict(self.outer), self.dimension: along.as_expr()})
        return list(map(swap, self.operands))


def sorted_row(read: Formula) -> SortedRow | None:
    """Return an element of a stable sort as an element of a row; None for other terms."""
    array = read.array
    if array is None or array.kind != "opaque":
        return None
    by_device = array.head[0] == ON_EACH_DEVICE
    opcode, attributes, *rest = array.head[by_device:]
    if opcode != "sort" or not dict(attributes)["is_stable"]:
        return None
    path, sizes, *_ = rest
    count = sum(isinstance(size, tuple) for _, size in sizes)
    (along,) = dict(attributes)["dimensions"]
    dims = [Variable(f"d{k}", 0, n - 1) for k, n in enumerate(array.dims[by_device:])]
    if by_device:
        dims.insert(0, Variable(BOUND_DEVICE, 0, array.dims[0] - 1))
    outer = dict(zip(dims, read.index, strict=True))
    dimension = dims[along + by_device]
    at = outer.pop(dimension)
    others = tuple([item for item in attributes if item[0] != "dimensions"])
    comparator = tuple([term.number for term in array.arguments[count:]])
    key = array.type, others, path, count, dimension.bounds, comparator
    return SortedRow(key, array.arguments[:count], tuple(outer.items()), dimension, at)

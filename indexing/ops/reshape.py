"""Reshape: change the sizes of an array and keep the row-major order of its elements.

The dimensions of two shapes with the same number of elements are partitioned into the smallest
groups of neighbouring dimensions with equal products. Indices are linearised and delinearised only
within a group:

>>> for group in dimension_groups((32, 3, 4), (4, 8, 1, 12)):
...     print(group)
DimensionGroup(outs=(0,), ins=(0, 1))
DimensionGroup(outs=(1, 2), ins=(3,))
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from hlo.ops.attributes import int_list, integer
from hlo.ops.op import (
    HOLDS,
    Fault,
    Shape,
    attribute,
    constraint,
    declared,
    op,
    permutation_fault,
)
from hlo.ops.unify import Dim, array, dims_of
from hlo.shapes.mixed_radix import digits_of, number_of
from hlo.shapes.shape import UNBOUNDED
from indexing.maps.indexing_map import IndexingMap
from indexing.ops.base import Array, UnaryOp
from indexing.ops.element import CopyRule, ElementRule
from simplifier.linear import Affine


@dataclass(frozen=True, slots=True)
class DimensionGroup:
    """Neighbouring dimensions `ins` of the operand that a reshape turns into dimensions `outs`."""

    outs: tuple[int, ...]
    ins: tuple[int, ...]


def dimension_groups(outs: Sequence[int], ins: Sequence[int]) -> Iterator[DimensionGroup]:
    """Yield the smallest groups of dimensions, without those of size 1. No size may be 0."""
    left = [(k, n) for k, n in enumerate(ins) if n != 1]
    right = [(k, n) for k, n in enumerate(outs) if n != 1]
    i = j = 0
    while i < len(left) and j < len(right):
        start = i, j
        a, b = left[i][1], right[j][1]
        i, j = i + 1, j + 1
        while a != b:
            if a < b:
                a, i = a * left[i][1], i + 1
            else:
                b, j = b * right[j][1], j + 1
        yield DimensionGroup(
            outs=tuple([k for k, _ in right[start[1] : j]]),
            ins=tuple([k for k, _ in left[start[0] : i]]),
        )


def reindex(index: Sequence[Affine], outs: Sequence[int], ins: Sequence[int]) -> list[Affine]:
    """Return the index in sizes `ins` with the row-major position of `index` in sizes `outs`.

    >>> from indexing.maps.indexing_map import dims
    >>> d = dims((2, 6))
    >>> print(*reindex(d, (2, 6), (3, 1, 4)), sep=", ")
    (d0 * 6 + d1) floordiv 4, 0, (d0 * 2 + d1) mod 4
    """
    result: list[Affine] = [0] * len(ins)
    for group in dimension_groups(outs, ins):
        position = number_of([index[k] for k in group.outs], [outs[k] for k in group.outs])
        digits = digits_of(position, [ins[k] for k in group.ins])
        for k, digit in zip(group.ins, digits, strict=True):
            result[k] = digit
    return result


def element_count_text(sizes: tuple[int, ...]) -> str:
    """Number of elements of an array of these sizes, with the noun.

    >>> element_count_text((2, 3))
    '6 elements'
    """
    return f"{math.prod(sizes)} elements"


@op(
    "reshape",
    samples=[
        "f32[3,1,4] reshape(f32[2,6] p)",
        "f32[2,4,4] reshape(f32[4,8] p)",
        "f32[6,2,2] reshape(f32[2,3,4] p)",
        "f32[15,2] reshape(f32[5,6] p)",
        "f32[1,1] reshape(f32[] p)",
        "f32[] reshape(f32[1,1,1] p)",
        "f32[3,0] reshape(f32[0,7] p)",
        "f32[2,3,1,5] reshape(f32[1,2,15] p)",
        "f32[2,6,3]{0,1,2} reshape(f32[6,2,3]{1,0,2} p)",
        "f32[2,6,2] reshape(f32[4,2,3] p), dimensions={1,2,0}",
        "f32[4,5,3] reshape(f32[5,3,4] p), dimensions={2,0,1}",
        "f32[0,3] reshape(f32[2,0] p), dimensions={1,0}",
    ],
)
class Reshape(UnaryOp):
    """``out[i] = operand[j]`` where i and j have the same position in row-major order.

    In old HLO text, `dimensions` is the order in which the operand's dimensions are linearised, the
    most major one first. It is equivalent to a transpose before the reshape.

    Source: XLA ``docs/operation_semantics.md``, "Reshape".
    """

    is_splittable: ClassVar[bool] = True
    counts_reads: ClassVar[bool] = True
    rule: ClassVar[ElementRule] = CopyRule(is_view=True)
    shape: Shape = declared()
    inferred_dimension: int | None = attribute(integer, default=None)
    dimensions: tuple[int, ...] | None = attribute(int_list, default=None)

    @constraint("C2", "dimensions must be a permutation of the operand's dimensions")
    def orders_dimensions(self, operand: Shape) -> Fault:
        if self.dimensions is None:
            return HOLDS
        return permutation_fault(self.dimensions, operand.rank)

    @constraint("C1", "the number of elements must not change")
    def keeps_elements(self, operand: Shape) -> Fault:
        is_open = UNBOUNDED in self.shape.dims
        if UNBOUNDED in operand.dims or (is_open and not self._quotient_and_remainder(operand)[1]):
            return HOLDS
        if math.prod(operand.dims) == math.prod(self.shape.dims):
            return HOLDS
        before = math.prod(operand.dims)
        count = f"the operand has {before} element{'s' * (before != 1)}"
        if is_open:
            return Fault(f"{count}, the result is {self.shape.with_layout(None)}")
        return Fault(f"{count}, the result {math.prod(self.shape.dims)}")

    def infer_shape(self, operand: Shape) -> Shape:
        shape = self.shape.with_element_type(operand.element_type)
        if UNBOUNDED in operand.dims or self.shape.dims.count(UNBOUNDED) != 1:
            return shape
        if 0 in self.shape.dims:
            return shape
        dynamic = any(size.dynamic for size in dims_of(operand))
        rest = Dim(self._quotient_and_remainder(operand)[0], dynamic)
        return array(shape.element_type, [n if n.is_known else rest for n in dims_of(shape)])

    def _quotient_and_remainder(self, operand: Shape) -> tuple[int, int]:
        """Quotient and remainder of the number of elements by the known sizes of the result."""
        known = math.prod([n for n in self.shape.dims if n != UNBOUNDED])
        count = math.prod(operand.dims)
        return divmod(count, known) if known else (0, count)

    def _order(self, operand: Shape) -> tuple[int, ...]:
        """The operand's dimensions in the order of linearisation, the most major one first."""
        return tuple(range(operand.rank)) if self.dimensions is None else self.dimensions

    def output_to_input(self, out: Shape, operand: Shape) -> IndexingMap:
        order = self._order(operand)
        place = [order.index(k) for k in range(operand.rank)]
        sizes = [operand.dims[k] for k in order]

        def read(i: Sequence[Affine]) -> list[Affine]:
            ordered = reindex(i, out.dims, sizes)
            return [ordered[k] for k in place]

        return IndexingMap.over(out, read)

    def input_to_output(self, out: Shape, operand: Shape) -> IndexingMap:
        order = self._order(operand)
        sizes = [operand.dims[k] for k in order]
        return IndexingMap.over(operand, lambda j: reindex([j[k] for k in order], sizes, out.dims))

    def kernel(self, operand: Array) -> Array:
        order = self.dimensions
        ordered = operand if order is None else operand.transpose(order)
        return ordered.reshape(self.shape.dims)

"""Transpose and reverse: permutations of the elements of an array.

Source: XLA ``docs/operation_semantics.md``, "Transpose" and "Rev (Reverse)".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from hlo.ops.attributes import int_list
from hlo.ops.op import Fault, Shape, attribute, constraint, dimensions_fault, op, permutation_fault
from hlo.ops.unify import PartialShape, array, dims_of, with_rank
from indexing.maps.indexing_map import IndexingMap
from indexing.ops.base import Array, UnaryOp
from indexing.ops.element import CopyRule, ElementRule


@op(
    "transpose",
    samples=[
        "f32[4,2,3] transpose(f32[2,3,4] p), dimensions={2,0,1}",
        "s32[5,1] transpose(s32[1,5] p), dimensions={1,0}",
        "f32[3,0,2] transpose(f32[0,2,3] p), dimensions={2,0,1}",
        "f32[] transpose(f32[] p), dimensions={}",
    ],
)
class Transpose(UnaryOp):
    """``out[i_0, ..] = operand[j_0, ..]`` where ``i_k = j_{dimensions[k]}``."""

    is_splittable: ClassVar[bool] = True
    counts_reads: ClassVar[bool] = True
    rule: ClassVar[ElementRule] = CopyRule(is_view=True)
    dimensions: tuple[int, ...] = attribute(int_list)

    def unify_operands(self, *operands: PartialShape) -> Sequence[PartialShape]:
        return [with_rank(operand, len(self.dimensions)) for operand in operands]

    @constraint("C2", "dimensions must be a permutation of the operand's dimensions")
    def permutes(self, operand: Shape) -> Fault:
        return permutation_fault(self.dimensions, operand.rank)

    def infer_shape(self, operand: Shape) -> Shape:
        sizes = dims_of(operand)
        return array(operand.element_type, [sizes[p] for p in self.dimensions])

    def output_to_input(self, out: Shape, operand: Shape) -> IndexingMap:
        place = self.dimensions.index
        return IndexingMap.over(out, lambda i: [i[place(p)] for p in range(out.rank)])

    def kernel(self, operand: Array) -> Array:
        return operand.transpose(self.dimensions)


@op(
    "reverse",
    samples=[
        "f32[2,5,3] reverse(f32[2,5,3] p), dimensions={0,1}",
        "f32[7] reverse(f32[7] p), dimensions={0}",
        "f32[3,1] reverse(f32[3,1] p), dimensions={}",
        "f32[2,0] reverse(f32[2,0] p), dimensions={1,0}",
    ],
)
class Reverse(UnaryOp):
    """``out[i] = operand[j]`` where ``j_k = size_k − 1 − i_k`` for k in dimensions, or ``i_k``."""

    is_splittable: ClassVar[bool] = True
    counts_reads: ClassVar[bool] = True
    rule: ClassVar[ElementRule] = CopyRule(is_view=True)
    dimensions: tuple[int, ...] = attribute(int_list)

    @constraint("C1", "dimensions must be distinct dimensions of the operand")
    def names_dimensions(self, operand: Shape) -> Fault:
        return dimensions_fault(self.dimensions, operand.rank)

    def infer_shape(self, operand: Shape) -> Shape:
        return operand.with_layout(None)

    def infer_unranked(self, *operands: PartialShape) -> PartialShape:
        return operands[0]

    def output_to_input(self, out: Shape, operand: Shape) -> IndexingMap:
        return IndexingMap.over(
            out,
            lambda i: [
                out.dims[k] - 1 - i[k] if k in self.dimensions else i[k] for k in range(out.rank)
            ],
        )

    def kernel(self, operand: Array) -> Array:
        return np.flip(operand, self.dimensions)

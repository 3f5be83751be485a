"""Broadcast: each operand element is repeated along new dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from hlo.ops.attributes import int_list
from hlo.ops.op import (
    HOLDS,
    Fault,
    Shape,
    attribute,
    constraint,
    count_fault,
    declared,
    dimensions_fault,
    op,
)
from hlo.ops.unify import PartialShape, array, dims_of, may_be, with_rank
from indexing.maps.indexing_map import IndexingMap
from indexing.ops.base import Array, UnaryOp
from indexing.ops.element import CopyRule, ElementRule


@op(
    "broadcast",
    samples=[
        "f32[2,3,5] broadcast(f32[3] p), dimensions={1}",
        "f32[2,5,3] broadcast(f32[3,2] p), dimensions={2,0}",
        "f32[2,3] broadcast(f32[] p), dimensions={}",
        "f32[1,7] broadcast(f32[1] p), dimensions={0}",
        "f32[] broadcast(f32[] p), dimensions={}",
        "f32[0,3] broadcast(f32[3] p), dimensions={1}",
        "f32[4,0] broadcast(f32[0] p), dimensions={1}",
    ],
)
class Broadcast(UnaryOp):
    """``out[i] = operand[j]`` where ``j_k = i_{dimensions[k]}``; other dimensions of i are free.

    Source: XLA ``docs/operation_semantics.md``, "BroadcastInDim".
    """

    creates_dimensions: ClassVar[bool] = True
    is_splittable: ClassVar[bool] = True
    counts_reads: ClassVar[bool] = True
    rule: ClassVar[ElementRule] = CopyRule(is_view=True)
    shape: Shape = declared()
    dimensions: tuple[int, ...] = attribute(int_list, default=())

    def unify_operands(self, *operands: PartialShape) -> Sequence[PartialShape]:
        return [with_rank(operand, len(self.dimensions)) for operand in operands]

    def infer_unranked(self, *operands: PartialShape) -> PartialShape:
        return self.shape.with_layout(None)

    @constraint("C1", "dimensions must have one entry for each dimension of the operand")
    def fits(self, operand: Shape) -> Fault:
        return count_fault(self.dimensions, operand.rank, "operand dimension", "dimensions")

    @constraint("C2", "dimensions must be distinct dimensions of the result")
    def names_dimensions(self, operand: Shape) -> Fault:
        return dimensions_fault(self.dimensions, self.shape.rank)

    @constraint("C3", "operand dimension k must have the size of result dimension dimensions[k]")
    def keeps_sizes(self, operand: Shape) -> Fault:
        for k, n in enumerate(self.dimensions):
            if not may_be(operand.dims[k], self.shape.dims[n]):
                ours = f"operand dimension {k} has size {operand.dims[k]}"
                theirs = f"result dimension {n} has size {self.shape.dims[n]}"
                return Fault(f"{ours}, {theirs}", "dimensions")
        return HOLDS

    def infer_shape(self, operand: Shape) -> Shape:
        sizes = list(dims_of(self.shape))
        for size, n in zip(dims_of(operand), self.dimensions, strict=True):
            if not sizes[n].is_known:
                sizes[n] = size
        return array(operand.element_type, sizes)

    def output_to_input(self, out: Shape, operand: Shape) -> IndexingMap:
        return IndexingMap.over(out, lambda i: [i[p] for p in self.dimensions])

    def kernel(self, operand: Array) -> Array:
        order = sorted(range(operand.ndim), key=lambda k: self.dimensions[k])
        sizes = [self.shape.dims[p] if p in self.dimensions else 1 for p in range(self.shape.rank)]
        return np.broadcast_to(operand.transpose(order).reshape(sizes), self.shape.dims)

"""Slice: a strided window of the operand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from hlo.ops import attributes
from hlo.ops.attributes import slices
from hlo.ops.op import HOLDS, Fault, Shape, attribute, constraint, count_fault, op
from hlo.ops.unify import PartialShape, with_rank
from hlo.shapes.shape import UNBOUNDED
from indexing.maps.indexing_map import IndexingMap
from indexing.ops.base import Array, UnaryOp
from indexing.ops.element import CopyRule, ElementRule


@op(
    "slice",
    samples=[
        "f32[3,4] slice(f32[10,9] p), slice={[1:10:3], [2:9:2]}",
        "f32[2,3,1] slice(f32[5,3,7] p), slice={[3:5], [0:3:1], [6:7:5]}",
        "f32[3] slice(f32[10] p), slice={[1:8:3]}",
        "f32[0,2] slice(f32[4,3] p), slice={[2:2], [0:3:2]}",
        "f32[] slice(f32[] p), slice={}",
    ],
)
class Slice(UnaryOp):
    """``out[i] = operand[j]`` where ``j_k = start_k + stride_k · i_k``.

    Source: XLA ``docs/operation_semantics.md``, "Slice".
    """

    is_splittable: ClassVar[bool] = True
    counts_reads: ClassVar[bool] = True
    rule: ClassVar[ElementRule] = CopyRule(is_view=True)
    slice: tuple[attributes.SliceDimension, ...] = attribute(slices)

    def unify_operands(self, *operands: PartialShape) -> Sequence[PartialShape]:
        return [with_rank(operand, len(self.slice)) for operand in operands]

    @constraint("C1", "slice must have one entry for each dimension of the operand")
    def fits(self, operand: Shape) -> Fault:
        return count_fault(self.slice, operand.rank, "operand dimension", "slice")

    @constraint("C2", "0 <= start <= limit <= size and stride >= 1 must hold in each dimension")
    def stays_inside(self, operand: Shape) -> Fault:
        for k, (cut, size) in enumerate(zip(self.slice, operand.dims, strict=True)):
            if cut.stride < 1:
                return Fault(f"dimension {k} has stride {cut.stride}", "slice")
            bound = cut.limit if size == UNBOUNDED else size
            if cut.start > cut.limit:
                return Fault(f"start {cut.start} is greater than limit {cut.limit}", "slice")
            if not 0 <= cut.start <= cut.limit <= bound:
                return Fault(f"{cut} is out of bounds: dimension {k} has size {size}", "slice")
        return HOLDS

    def infer_shape(self, operand: Shape) -> Shape:
        return operand.with_dims(cut.count for cut in self.slice)

    def output_to_input(self, out: Shape, operand: Shape) -> IndexingMap:
        return IndexingMap.over(
            out, lambda i: [i[k] * cut.stride + cut.start for k, cut in enumerate(self.slice)]
        )

    def kernel(self, operand: Array) -> Array:
        window = tuple([slice(cut.start, cut.limit, cut.stride) for cut in self.slice])
        taken: Array = operand[window]
        return taken

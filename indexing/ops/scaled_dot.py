"""Scaled-dot: a dot of two arrays with one scale for each block of elements."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from hlo.ops.op import HOLDS, Fault, Shape, constraint, op
from hlo.ops.unify import may_divide
from indexing.maps.indexing_map import IndexingMap, dims
from indexing.ops.base import Array, Entries
from indexing.ops.dot import Dot
from indexing.ops.element import ElementRule, ShardReduction


@op(
    "scaled-dot",
    samples=[
        "f32[3,5] scaled-dot(f32[3,4] p, f32[4,5] q, f32[3,2] r, f32[1,5] s), "
        "lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        "f32[2,3,1] scaled-dot(f32[2,3,6] p, f32[2,1,6] q, f32[1,1,1] r, f32[2,1,3] s), "
        "lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, "
        "rhs_contracting_dims={2}",
        "f32[2] scaled-dot(f32[2,3] p, f32[3] q, f32[] r, f32[3] s), lhs_contracting_dims={1}, "
        "rhs_contracting_dims={0}",
    ],
)
class ScaledDot(Dot):
    """``Σ_c (left · left_scale)[b, l, c] · (right · right_scale)[b, r, c]``, as in `Dot`.

    A scale has the rank of its operand. Each element scales a block whose size along a dimension is
    the quotient of the sizes of operand and scale. A scalar scales all elements.

    Source: XLA ``xla/hlo/ir/hlo_instructions.h``, ``HloScaledDotInstruction``.
    """

    reduces_shards: ClassVar[ShardReduction] = "none"
    linear_operands: ClassVar[tuple[int, ...]] = (0, 1, 2, 3)
    min_operands: ClassVar[int] = 4
    max_operands: ClassVar[int | None] = 4

    @constraint("C5", "a scale must be a scalar, or its sizes must divide the operand's sizes")
    def has_operands(self, left: Shape, right: Shape, *scales: Shape) -> Fault:
        for number, (operand, scale) in enumerate(zip((left, right), scales, strict=True)):
            same_rank = operand.rank == scale.rank
            divides = same_rank and all(map(may_divide, scale.dims, operand.dims))
            if scale.rank and not divides:
                label = f"operand {number} is {operand.with_layout(None)}, its scale is"
                return Fault(f"{label} {scale.with_layout(None)}", number + 2)
        return HOLDS

    def output_to_input(self, out: Shape, left: Shape, right: Shape, *scales: Shape) -> Entries:
        of_left, of_right = self.factor_maps(out, left, right)
        of_scales = [
            read.then(_to_block(operand, scale))
            for read, operand, scale in zip((of_left, of_right), (left, right), scales, strict=True)
        ]
        return of_left, of_right, *of_scales

    def element(self, out: Shape, *operands: Shape) -> ElementRule:
        return self.rule

    def kernel(self, left: Array, right: Array, *scales: Array) -> Array:
        scaled = []
        for array, scale in zip((left, right), scales, strict=True):
            factor = scale.astype(np.float32)
            for axis, (n, m) in enumerate(zip(array.shape, scale.shape, strict=False)):
                factor = np.repeat(factor, n // m, axis)
            scaled.append(array.astype(np.float32) * factor)
        return Dot.kernel(self, *scaled)


def _to_block(operand: Shape, scale: Shape) -> IndexingMap:
    """The map from an element of an operand to the element of its scale."""
    j = dims(operand)
    sizes = zip(j, operand.dims, scale.dims, strict=False)  # a scalar scale has no dimensions
    return IndexingMap.of(j, [v // max(n // m, 1) for v, n, m in sizes])  # an empty block: any size

"""Dot: products of two arrays, summed over contracting dimensions."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from hlo.ops.attributes import int_list, word, word_list
from hlo.ops.op import (
    HOLDS,
    Fault,
    Shape,
    attribute,
    constraint,
    declared,
    disjoint_fault,
    op,
)
from hlo.ops.protocols import InstructionLike
from hlo.ops.unify import array, dims_of, may_be
from hlo.shapes.shape import ELEMENT_TYPES, AnyShape, dtype
from indexing.maps.answers import Unknown
from indexing.maps.indexing_map import IndexingMap, dims, ranges
from indexing.ops.base import Array, BinaryOp, Entries
from indexing.ops.element import (
    NO_DECLARED_WORK,
    ElementRule,
    ReductionRule,
    ShardReduction,
    Work,
    element_count,
)
from indexing.ops.positions import list_by_position


def sum_of_products(out: Shape, left: Shape, *_: Shape) -> ReductionRule:
    """The rule for sums of products of operands 0 and 1.

    Floating-point numbers are accumulated as f32 or wider.
    """
    kind = dtype(out.element_type)
    is_plain = dtype(left.element_type).kind in "biucO"
    wide = kind if is_plain else np.result_type(kind, np.float32)
    return ReductionRule((), (0, 1), is_product=True, accumulator_dtype=wide)


@op(
    "dot",
    samples=[
        "f32[3,5] dot(f32[3,4] p, f32[4,5] q), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        "f32[2,3,7] dot(f32[2,3,4,5] p, f32[5,4,7,2] q), lhs_batch_dims={0}, rhs_batch_dims={3}, "
        "lhs_contracting_dims={2,3}, rhs_contracting_dims={1,0}",
        "s32[3,5] dot(s8[3,4] p, s8[4,5] q), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        "f32[2,3] dot(f32[2] p, f32[3] q)",
        "f32[] dot(f32[5] p, f32[5] q), lhs_contracting_dims={0}, rhs_contracting_dims={0}",
        "f32[3,2] dot(f32[2,3] p, f32[2,3] q), lhs_batch_dims={1,0}, rhs_batch_dims={1,0}",
        "f32[2,3] dot(f32[2,0] p, f32[3,0] q), lhs_contracting_dims={1}, rhs_contracting_dims={1}",
    ],
)
class Dot(BinaryOp):
    """``out[b, l, r] = Σ_c left[b, l, c] · right[b, r, c]``.

    The batch indices b and contracting indices c are at the dimensions that the attributes name;
    l and r are the other dimensions of each operand.

    With structured sparsity, an operand stores only some elements along a contracting dimension;
    such a dot is not analysed.

    Source: XLA ``docs/operation_semantics.md``, "DotGeneral".
    """

    reduces_shards: ClassVar[ShardReduction] = "partial"
    accumulates: ClassVar[bool] = True
    is_splittable: ClassVar[bool] = True
    counts_reads: ClassVar[bool] = True

    shape: Shape | None = declared(default=None)
    lhs_batch_dims: tuple[int, ...] = attribute(int_list, default=())
    lhs_contracting_dims: tuple[int, ...] = attribute(int_list, default=())
    rhs_batch_dims: tuple[int, ...] = attribute(int_list, default=())
    rhs_contracting_dims: tuple[int, ...] = attribute(int_list, default=())
    operand_precision: tuple[str, ...] = attribute(word_list, default=(), in_value=False)
    algorithm: str = attribute(word, default="")

    @classmethod
    def why_unsupported(cls, instruction: InstructionLike) -> str:
        is_sparse = instruction.text_of("sparsity") or instruction.text_of("sparsity_config")
        return "the dot has structured sparsity" if is_sparse else ""

    @constraint("C1", "lhs dimensions must be distinct dimensions of the left operand")
    def names_left(self, left: Shape, right: Shape, *scales: Shape) -> Fault:
        return disjoint_fault(
            left.rank,
            lhs_batch_dims=self.lhs_batch_dims,
            lhs_contracting_dims=self.lhs_contracting_dims,
        )

    @constraint("C2", "rhs dimensions must be distinct dimensions of the right operand")
    def names_right(self, left: Shape, right: Shape, *scales: Shape) -> Fault:
        return disjoint_fault(
            right.rank,
            rhs_batch_dims=self.rhs_batch_dims,
            rhs_contracting_dims=self.rhs_contracting_dims,
        )

    @constraint("C3", "batch dimensions must match in number and size")
    def same_batch(self, left: Shape, right: Shape, *scales: Shape) -> Fault:
        return _pairs_fault(left, right, self.lhs_batch_dims, self.rhs_batch_dims, "rhs_batch_dims")

    @constraint("C4", "contracting dimensions must match in number and size")
    def same_contracting(self, left: Shape, right: Shape, *scales: Shape) -> Fault:
        return _pairs_fault(
            left,
            right,
            self.lhs_contracting_dims,
            self.rhs_contracting_dims,
            "rhs_contracting_dims",
        )

    def _free(self, left: int, right: int) -> tuple[list[int], list[int]]:
        """For operands of these ranks, the dimensions that are neither batch nor contracting."""
        ours = {*self.lhs_batch_dims, *self.lhs_contracting_dims}
        theirs = {*self.rhs_batch_dims, *self.rhs_contracting_dims}
        return (
            [k for k in range(left) if k not in ours],
            [k for k in range(right) if k not in theirs],
        )

    def infer_shape(self, left: Shape, right: Shape, *scales: Shape) -> Shape:
        ours, theirs = self._free(left.rank, right.rank)
        rows, columns = dims_of(left), dims_of(right)
        batch = [
            rows[k] if rows[k].is_known else columns[n]
            for k, n in zip(self.lhs_batch_dims, self.rhs_batch_dims, strict=True)
        ]
        sizes = [*batch, *[rows[k] for k in ours], *[columns[k] for k in theirs]]
        widest = max((left, right), key=lambda s: ELEMENT_TYPES[s.element_type].bits)
        return array((self.shape or widest).element_type, sizes)

    def output_to_input(self, out: Shape, left: Shape, right: Shape, *scales: Shape) -> Entries:
        return self.factor_maps(out, left, right)

    def factor_maps(self, out: Shape, left: Shape, right: Shape) -> tuple[IndexingMap, IndexingMap]:
        """The maps from the result to both factors, whose ranges are the contracting indices."""
        ours, theirs = self._free(left.rank, right.rank)
        i, s = dims(out), ranges(*[left.dims[k] for k in self.lhs_contracting_dims])
        batch = len(self.lhs_batch_dims)
        b, l, r = i[:batch], i[batch : batch + len(ours)], i[batch + len(ours) :]  # noqa: E741
        of_left = zip(
            [*self.lhs_batch_dims, *ours, *self.lhs_contracting_dims], [*b, *l, *s], strict=True
        )
        of_right = zip(
            [*self.rhs_batch_dims, *theirs, *self.rhs_contracting_dims], [*b, *r, *s], strict=True
        )
        return (
            IndexingMap.of(i, list_by_position(left.rank, of_left), ranges=s),
            IndexingMap.of(i, list_by_position(right.rank, of_right), ranges=s),
        )

    def element(self, out: Shape, *operands: Shape) -> ElementRule:
        return sum_of_products(out, *operands)

    def work(
        self, out: AnyShape, operands: tuple[AnyShape, ...], applied: tuple[Work, ...]
    ) -> Work | Unknown:
        if not isinstance(operands[0], Shape):
            return NO_DECLARED_WORK
        contracted = math.prod([operands[0].dims[k] for k in self.lhs_contracting_dims])
        return Work(flops=2 * element_count(out) * contracted)

    def kernel(self, left: Array, right: Array) -> Array:
        kind = dtype(self.shape.element_type) if self.shape else np.result_type(left, right)
        wide = np.result_type(kind, np.float32) if left.dtype.kind not in "biucO" else kind
        ours, theirs = self._free(left.ndim, right.ndim)
        rows, columns = [left.shape[k] for k in ours], [right.shape[k] for k in theirs]
        batch = [left.shape[k] for k in self.lhs_batch_dims]
        contracted = math.prod([left.shape[k] for k in self.lhs_contracting_dims])
        lhs = left.transpose(*self.lhs_batch_dims, *ours, *self.lhs_contracting_dims)
        rhs = right.transpose(*self.rhs_batch_dims, *self.rhs_contracting_dims, *theirs)
        lhs = lhs.reshape(*batch, math.prod(rows), contracted).astype(wide, copy=False)
        rhs = rhs.reshape(*batch, contracted, math.prod(columns)).astype(wide, copy=False)
        with np.errstate(all="ignore"):
            product = np.matmul(lhs, rhs).reshape([*batch, *rows, *columns])
            return np.asarray(product, kind)


def _pairs_fault(
    left: Shape, right: Shape, ours: tuple[int, ...], theirs: tuple[int, ...], at: str
) -> Fault:
    """The fault of paired dimensions that differ in number or size."""
    if len(ours) != len(theirs):
        plural = "s" * (len(theirs) != 1)
        label = f"{at} has {len(theirs)} dimension{plural}, {at.replace('rhs', 'lhs')} has"
        return Fault(f"{label} {len(ours)}", at)
    for k, n in zip(ours, theirs, strict=True):
        if not may_be(left.dims[k], right.dims[n]):
            label = f"left dimension {k} has size {left.dims[k]}, right dimension {n}"
            return Fault(f"{label} has size {right.dims[n]}", at)
    return HOLDS

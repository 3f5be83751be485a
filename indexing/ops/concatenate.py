"""Concatenate: operands joined along one dimension."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import ClassVar

import numpy as np

from hlo.ops.attributes import int_list
from hlo.ops.op import HOLDS, Fault, Shape, attribute, constraint, mismatch_fault, op
from hlo.ops.unify import UNKNOWN, Dim, PartialShape, array, dims_of, same_shape
from indexing.maps.indexing_map import IndexingMap, dims
from indexing.ops.base import Array, VariadicOp
from indexing.ops.element import CopyRule, ElementRule
from simplifier.atoms import Variable


@op(
    "concatenate",
    samples=[
        "f32[2,9,3] concatenate(f32[2,5,3] p, f32[2,1,3] q, f32[2,3,3] r), dimensions={1}",
        "f32[5] concatenate(f32[2] p, f32[0] q, f32[3] r), dimensions={0}",
        "s8[7] concatenate(s8[7] p), dimensions={0}",
        "f32[0,4] concatenate(f32[0,3] p, f32[0,1] q), dimensions={1}",
    ],
)
class Concatenate(VariadicOp):
    """``out[i] = operand_n[i − (0, .., offset_n, .., 0)]`` for the operand n that contains i.

    ``offset_n`` is the sum of the sizes of the operands before n along the dimension. The domains
    of the maps partition the result.

    Source: XLA ``docs/operation_semantics.md``, "ConcatInDim (Concatenate)".
    """

    is_splittable: ClassVar[bool] = True
    counts_reads: ClassVar[bool] = True
    types: ClassVar[tuple[str, ...]] = ("T", "..")
    dimensions: tuple[int, ...] = attribute(int_list)

    def unify_operands(self, *operands: PartialShape) -> Sequence[PartialShape]:
        """The operands agree in all dimensions but the concatenated one."""
        without_size = [self._with_size(operand, UNKNOWN) for operand in operands]
        return [
            self._with_size(shape, dims_of(operand)[self.dimension])
            if isinstance(operand, Shape) and 0 <= self.dimension < operand.rank
            else shape
            for shape, operand in zip(same_shape(*without_size), operands, strict=True)
        ]

    def _with_size(self, shape: PartialShape, size: Dim) -> PartialShape:
        if not isinstance(shape, Shape):
            return shape
        sizes = [size if k == self.dimension else n for k, n in enumerate(dims_of(shape))]
        return array(shape.element_type, sizes)

    @property
    def dimension(self) -> int:
        """The dimension along which the operands are joined."""
        return self.dimensions[0]

    @constraint("C1", "dimensions must be one dimension of the operands")
    def names_dimension(self, *operands: Shape) -> Fault:
        if len(self.dimensions) != 1:
            return Fault(f"expected one dimension, got {len(self.dimensions)}", "dimensions")
        if 0 <= self.dimension < operands[0].rank:
            return HOLDS
        return Fault(f"the operands have rank {operands[0].rank}", "dimensions")

    @constraint("C2", "the operands must have the same sizes in all other dimensions")
    def fits(self, *operands: Shape) -> Fault:
        return mismatch_fault(operands, self._others)

    def _others(self, shape: Shape) -> tuple[int, list[int]]:
        return shape.rank, [n for k, n in enumerate(shape.dims) if k != self.dimension]

    def _offsets(self, operands: tuple[Shape, ...]) -> list[int]:
        return [0, *accumulate(operand.dims[self.dimension] for operand in operands)][:-1]

    def infer_shape(self, *operands: Shape) -> Shape:
        total = sum((dims_of(operand)[self.dimension] for operand in operands), Dim(0))
        sizes = [total if k == self.dimension else n for k, n in enumerate(dims_of(operands[0]))]
        return array(operands[0].element_type, sizes)

    def output_to_input(self, out: Shape, *operands: Shape) -> list[IndexingMap]:
        k = self.dimension
        maps = []
        for operand, offset in zip(operands, self._offsets(operands), strict=True):
            i = list(dims(out))
            i[k] = Variable(i[k].name, offset, offset + operand.dims[k] - 1)
            maps.append(IndexingMap.of(i, [*i[:k], i[k] - offset, *i[k + 1 :]]))
        return maps

    def element(self, out: Shape, *operands: Shape) -> ElementRule:
        return CopyRule(tuple(range(len(operands))))

    def kernel(self, *operands: Array) -> Array:
        return np.concatenate(operands, self.dimension)

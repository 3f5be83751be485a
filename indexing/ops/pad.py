"""Pad: edge and interior padding of an array with one value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from hlo.ops.attributes import Padding, padding_config
from hlo.ops.op import HOLDS, Fault, Shape, attribute, constraint, count_fault, op
from hlo.ops.unify import PartialShape, array, dims_of, with_rank
from hlo.shapes.shape import UNBOUNDED
from indexing.maps.indexing_map import IndexingMap, dims
from indexing.ops.base import Array, BinaryOp, Maps
from indexing.ops.element import CopyRule, ElementRule
from indexing.ops.regions import WindowConstraints, complement_maps, window
from simplifier.atoms import Variable


@op(
    "pad",
    samples=[
        "f32[15,3] pad(f32[5,4] p, f32[] v), padding=-1_3_2x2_-3",
        "f32[6,3] pad(f32[2,3] p, f32[] v), padding=1_3x0_0",
        "f32[5] pad(f32[7] p, f32[] v), padding=-3_-5_1",
        "f32[3,2] pad(f32[3,2] p, f32[] v), padding=0_0x0_0",
        "f32[4] pad(f32[0] p, f32[] v), padding=1_3_2",
        "f32[3,4] pad(f32[1,2] p, f32[] v), padding=2_0_5x-1_0_3",
        "f32[2] pad(f32[3] p, f32[] v), padding=4_-5",
        "f32[0,3] pad(f32[2,1] p, f32[] v), padding=-1_-1x1_1",
    ],
)
class Pad(BinaryOp):
    """``out[i] = operand[j]`` where ``i_k = low_k + j_k · (interior_k + 1)``, else the value.

    Negative low and high padding removes elements.

    Source: XLA ``docs/operation_semantics.md``, "Pad".
    """

    is_splittable: ClassVar[bool] = True
    counts_reads: ClassVar[bool] = True
    obstacle: ClassVar[str] = "elements of operand 0 are included; `exact` leaves them out"
    rule: ClassVar[ElementRule] = CopyRule((0, 1))
    map_options: ClassVar[tuple[str, ...]] = ("exact",)
    types: ClassVar[tuple[str, ...]] = ("T", "T")
    padding: tuple[Padding, ...] = attribute(padding_config)

    def unify_operands(self, *operands: PartialShape) -> Sequence[PartialShape]:
        return [with_rank(operands[0], len(self.padding)), with_rank(operands[1], 0)]

    @constraint("C1", "padding must have one entry for each dimension of the operand")
    def fits(self, left: Shape, right: Shape) -> Fault:
        return count_fault(self.padding, left.rank, "operand dimension", "padding")

    @constraint("C2", "interior padding and the sizes of the result must not be negative")
    def leaves_sizes(self, left: Shape, right: Shape) -> Fault:
        for k, (edge, size) in enumerate(zip(self.padding, left.dims, strict=True)):
            if edge.interior < 0:
                label = f"the interior padding of dimension {k} is {edge.interior}"
                return Fault(label, "padding")
            if size != UNBOUNDED and edge.padded_size(size) < 0:
                label = f"{edge} removes more than the {size} elements of dimension {k}"
                return Fault(label, "padding")
        return HOLDS

    @constraint("C3", "the padding value must be a scalar")
    def has_value(self, left: Shape, right: Shape) -> Fault:
        return Fault(f"operand 1 is {right.with_layout(None)}", 1) if right.rank else HOLDS

    def infer_shape(self, left: Shape, right: Shape) -> Shape:
        sizes = zip(dims_of(left), self.padding, strict=True)
        return array(left.element_type, [size.map(edge.padded_size) for size, edge in sizes])

    def output_to_input(
        self, out: Shape, left: Shape, right: Shape, exact: bool = False
    ) -> tuple[IndexingMap | Maps, Maps]:
        i = dims(out)
        windows = self._windows(i, left)
        index = [(i[k] - edge.low) // edge.step for k, edge in enumerate(self.padding)]
        inside = [c for w in windows for c in w.inside if not c.is_true]
        operand = (
            () if any(c.is_false for c in inside) else IndexingMap.of(i, index, constraints=inside)
        )
        return operand, complement_maps(windows, exact, i, [])

    def _windows(self, i: tuple[Variable, ...], operand: Shape) -> list[WindowConstraints]:
        """For each dimension of the result, the constraints that select the operand's elements."""
        return [
            window(v - edge.low, size, -edge.low, v.upper - edge.low, edge.step)
            for v, edge, size in zip(i, self.padding, operand.dims, strict=True)
        ]

    def kernel(self, left: Array, right: Array) -> Array:
        sizes = [
            edge.padded_size(size) for edge, size in zip(self.padding, left.shape, strict=True)
        ]
        out = np.full(sizes, right, left.dtype)
        source, target = [], []
        for edge, size, out_size in zip(self.padding, left.shape, sizes, strict=True):
            first, last = _kept_range(edge, size, out_size)
            source.append(slice(first, last + 1))
            begin = edge.low + first * edge.step
            target.append(slice(begin, begin + max(0, last - first + 1) * edge.step, edge.step))
        if all(part.start < part.stop for part in source):
            out[tuple(target)] = left[tuple(source)]
        return out


def _kept_range(edge: Padding, size: int, out_size: int) -> tuple[int, int]:
    """First and last index of the operand that the result contains."""
    return max(0, -(edge.low // edge.step)), min(size - 1, (out_size - 1 - edge.low) // edge.step)

"""Ops on dynamic dimensions, whose sizes are computed at runtime.

A kernel's arrays have the maximum sizes (the bounds). Elements beyond the runtime size are
undefined. A runtime size is a property of every element of an array: all elements depend on it, and
an op that needs the size of an operand may read any element.

Source: XLA ``docs/operation_semantics.md``, "DynamicReshape", "GetDimensionSize" and
"SetDimensionSize".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from hlo.ops.attributes import int_list
from hlo.ops.op import HOLDS, Fault, Shape, attribute, constraint, declared, dimensions_fault, op
from hlo.ops.unify import PartialShape, is_partial
from hlo.shapes.shape import ELEMENT_TYPES
from indexing.maps.indexing_map import IndexingMap
from indexing.ops.base import Array, BinaryOp, OperandMaps, UnaryOp, VariadicOp, every_element
from indexing.ops.element import ElementRule, OpaqueRule, no_work
from indexing.ops.reshape import element_count_text, reindex


def _dimension_fault(dimensions: tuple[int, ...], operand: Shape) -> Fault:
    """The fault of `dimensions` not being one dimension of the operand."""
    if len(dimensions) != 1:
        return Fault(f"expected one dimension, got {len(dimensions)}", "dimensions")
    return dimensions_fault(dimensions, operand.rank)


def _size_fault(size: Shape, number: int) -> Fault:
    """The fault of operand `number` not being an integer scalar."""
    is_integer = ELEMENT_TYPES[size.element_type].kind in ("integral", "unsigned")
    return HOLDS if is_integer and not size.rank else Fault(f"operand {number} is {size}", number)


@op(
    "get-dimension-size",
    samples=[
        "s32[] get-dimension-size(f32[3,5] p), dimensions={1}",
        "s32[] get-dimension-size(f32[<=2,0] p), dimensions={0}",
    ],
)
class GetDimensionSize(UnaryOp):
    """The size of one dimension of the operand.

    No element's value affects it, but a dynamic size is known with the elements only.
    """

    obstacle: ClassVar[str] = "the size of the array depends on runtime values"
    work = no_work
    rule: ClassVar[ElementRule] = OpaqueRule("the shape is dynamic")
    dimensions: tuple[int, ...] = attribute(int_list)

    def infer_unranked(self, *operands: PartialShape) -> PartialShape:
        return Shape("s32", ())

    @constraint("C1", "dimensions must be one dimension of the operand")
    def names_dimension(self, operand: Shape) -> Fault:
        return _dimension_fault(self.dimensions, operand)

    def infer_shape(self, operand: Shape) -> Shape:
        return Shape("s32", ())

    def output_to_input(self, out: Shape, operand: Shape) -> OperandMaps:
        is_dynamic = any(operand.dynamic[k] for k in self.dimensions if operand.dynamic)
        return every_element(out, operand).with_grade("may") if is_dynamic else ()

    def kernel(self, operand: Array) -> Array:
        return np.asarray(operand.shape[self.dimensions[0]], np.int32)


@op(
    "set-dimension-size",
    samples=[
        "f32[3,<=5] set-dimension-size(f32[3,5] p, s32[] n), dimensions={1}",
        "f32[2] set-dimension-size(f32[<=2] p, s32[] n), dimensions={0}",
        "f32[<=2,0] set-dimension-size(f32[2,0] p, s32[] n), dimensions={0}",
    ],
)
class SetDimensionSize(BinaryOp):
    """The operand with the runtime size `right` along one dimension.

    The size affects which elements are defined, but no element's value; operations on the result,
    such as a reduction, use the defined elements only.
    """

    obstacle: ClassVar[str] = "the size affects which elements are defined, but no value"
    work = no_work
    rule: ClassVar[ElementRule] = OpaqueRule("the shape is dynamic")
    dimensions: tuple[int, ...] = attribute(int_list)

    @constraint("C1", "dimensions must be one dimension of the operand")
    def names_dimension(self, left: Shape, right: Shape) -> Fault:
        return _dimension_fault(self.dimensions, left)

    @constraint("C2", "the size must be an integer scalar")
    def has_size(self, left: Shape, right: Shape) -> Fault:
        return _size_fault(right, 1)

    def infer_shape(self, left: Shape, right: Shape) -> Shape:
        flags = left.dynamic or (False,) * left.rank
        (dimension,) = self.dimensions
        return left.with_dims(left.dims, [f or k == dimension for k, f in enumerate(flags)])

    def output_to_input(
        self, out: Shape, left: Shape, right: Shape
    ) -> tuple[OperandMaps, OperandMaps]:
        return IndexingMap.identity(out), every_element(out, right).with_grade("may")

    def valid_operands(self, operands: Sequence[Any]) -> Sequence[Any]:
        array, size = operands
        (dimension,) = self.dimensions
        inside = np.clip(size, 0, array.shape[dimension])
        return array, np.asarray(inside).astype(size.dtype)

    def kernel(self, left: Array, right: Array) -> Array:
        return left.copy()


@op(
    "dynamic-reshape",
    samples=[
        "f32[<=6,2] dynamic-reshape(f32[<=4,3] p, s32[] n, s32[] m)",
        "f32[2,<=3] dynamic-reshape(f32[<=6] p, s32[] n, s32[] m)",
        "f32[<=3,<=4] dynamic-reshape(f32[2,<=6] p, s32[] n, s32[] m)",
        "f32[3,2] dynamic-reshape(f32[6] p, s32[] n, s32[] m)",
        "f32[<=0] dynamic-reshape(f32[<=0,3] p, s32[] n)",
    ],
)
class DynamicReshape(VariadicOp):
    """The elements of operand 0 in row-major order, in an array whose sizes are the other operands.

    If only the first dimension of both arrays is dynamic, row-major positions do not depend on the
    runtime sizes, and the maps are those of a `Reshape`. Otherwise any element may be at any
    position.
    """

    obstacle: ClassVar[str] = "positions in row-major order depend on runtime sizes"
    kernel_takes_shapes: ClassVar[bool] = True
    work = no_work
    rule: ClassVar[ElementRule] = OpaqueRule("the shape is dynamic")
    min_operands: ClassVar[int] = 1
    shape: Shape = declared()

    @constraint("C1", "there must be one integer scalar for the size of each result dimension")
    def has_sizes(self, *operands: Shape) -> Fault:
        if len(operands) - 1 != self.shape.rank:
            label = f"number of sizes: expected {self.shape.rank}, got {len(operands) - 1}"
            return Fault(label)
        faults = (_size_fault(size, number) for number, size in enumerate(operands[1:], 1))
        return next(filter(None, faults), HOLDS)

    @constraint("C2", "the maximum number of elements must not change")
    def keeps_elements(self, *operands: Shape) -> Fault:
        ours, theirs = operands[0].dims, self.shape.dims
        unknown = is_partial(operands[0]) or is_partial(self.shape)
        if unknown or math.prod(ours) == math.prod(theirs):
            return HOLDS
        return Fault(f"{element_count_text(ours)} in, {element_count_text(theirs)} out")

    def infer_shape(self, *operands: Shape) -> Shape:
        return self.shape.with_element_type(operands[0].element_type).with_layout(None)

    def output_to_input(self, out: Shape, *operands: Shape) -> list[OperandMaps]:
        maps = [every_element(out, shape).with_grade("may") for shape in operands]
        if self._has_static_positions(operands[0]):
            maps[0] = IndexingMap.over(out, lambda i: reindex(i, out.dims, operands[0].dims))
        return list(maps)

    def input_to_output(self, out: Shape, *operands: Shape) -> list[OperandMaps]:
        array = operands[0]
        maps = [every_element(shape, out).with_grade("may") for shape in operands]
        if self._has_static_positions(array):
            maps[0] = IndexingMap.over(array, lambda j: reindex(j, array.dims, out.dims))
        return list(maps)

    def _has_static_positions(self, operand: Shape) -> bool:
        """Return True if no element's row-major position depends on a runtime size."""
        return not any((*operand.dynamic[1:], *self.shape.dynamic[1:]))

    def valid_operands(self, operands: Sequence[Any]) -> Sequence[Any]:
        array, *sizes = operands  # the maxima have as many elements as the array
        pairs = zip(sizes, self.shape.dims, strict=True)
        return array, *[np.full_like(size, bound) for size, bound in pairs]

    def kernel(self, *arrays: Array, operands: tuple[Shape, ...]) -> Array:
        bounds = self.shape.dims
        if self._has_static_positions(operands[0]):
            return arrays[0].reshape(bounds)
        sizes = [min(max(int(n), 0), bound) for n, bound in zip(arrays[1:], bounds, strict=True)]
        out = np.zeros(bounds, arrays[0].dtype)
        defined = arrays[0].reshape(-1)[: math.prod(sizes)]
        out[tuple([slice(0, n) for n in sizes])] = defined.reshape(sizes)
        return out

"""Select and clamp: ternary elementwise ops with implicit broadcast of scalars.

Source: XLA ``docs/operation_semantics.md``, "Select" and "Clamp".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from hlo.ops.op import HOLDS, Fault, Shape, constraint, op
from hlo.ops.unify import PartialShape, same_shape
from indexing.maps.indexing_map import IndexingMap
from indexing.ops import integer_rules
from indexing.ops.base import Array, OperandMaps, TernaryOp
from indexing.ops.element import DecidedRead
from indexing.ops.elementwise import ElementwiseOp, dims_fault
from indexing.ops.functions import ScalarFunction


def _array_or_scalar_map(out: Shape, operand: Shape) -> IndexingMap:
    """The map to an operand that is an array like the result, or a scalar."""
    return IndexingMap.over(out, lambda i: i if operand.rank else [])


def is_full(shape: PartialShape) -> bool:
    """Return True for a shape of known rank above 0."""
    return isinstance(shape, Shape) and shape.rank > 0


class TernaryElementwise(ElementwiseOp, TernaryOp):
    """``out[i] = function(first[i], second[i], third[i])``; some operands may be scalars."""

    __slots__ = ()
    arrays: ClassVar[tuple[int, ...]]  # operands that must have the result's dimensions

    def unify_operands(self, *operands: PartialShape) -> Sequence[PartialShape]:
        full = [k for k, s in enumerate(operands) if k in self.arrays or is_full(s)]
        shapes = list(operands)
        for k, shape in zip(full, same_shape(*[operands[k] for k in full]), strict=True):
            shapes[k] = shape
        return [
            shape if k in full or isinstance(shape, Shape) else Shape(self._type(k, operands), ())
            for k, shape in enumerate(shapes)
        ]

    def _type(self, number: int, operands: Sequence[PartialShape]) -> str:
        """Element type of the scalar that stands for an operand without known shape."""
        like = getattr(operands[self.arrays[0]], "element_type", "")
        return str(getattr(operands[number], "element_type", "") or like or "pred")

    def output_to_input(
        self, out: Shape, first: Shape, second: Shape, third: Shape
    ) -> tuple[OperandMaps, OperandMaps, OperandMaps]:
        return (
            _array_or_scalar_map(out, first),
            _array_or_scalar_map(out, second),
            _array_or_scalar_map(out, third),
        )


@op(
    "select",
    samples=[
        "f32[2,3] select(pred[2,3] p, f32[2,3] a, f32[2,3] b)",
        "f32[2,3] select(pred[] p, f32[2,3] a, f32[2,3] b)",
        "s8[] select(pred[] p, s8[] a, s8[] b)",
        "f32[0] select(pred[] p, f32[0] a, f32[0] b)",
    ],
)
class Select(TernaryElementwise):
    """``out[i] = on_true[i] if pred[i] else on_false[i]``; `pred` may be a scalar."""

    types: ClassVar[tuple[str, ...]] = ("pred", "T", "T")
    is_exact: ClassVar[bool] = True
    arrays: ClassVar[tuple[int, ...]] = (1, 2)

    def _type(self, number: int, operands: Sequence[PartialShape]) -> str:
        return "pred"

    @constraint("C1", "the predicate must be a scalar or have the dimensions of the result")
    def fits(self, first: Shape, second: Shape, third: Shape) -> Fault:
        return dims_fault((first, second), 0, like=1) if first.rank else HOLDS

    @constraint("C2", "both values must have the same dimensions")
    def same_dims(self, first: Shape, second: Shape, third: Shape) -> Fault:
        return dims_fault((first, second, third), 2, like=1)

    def infer_shape(self, first: Shape, second: Shape, third: Shape) -> Shape:
        return second.with_layout(None)

    @property
    def function(self) -> ScalarFunction:
        return ScalarFunction.of(np.where)

    def decided_reads(self, out: Shape) -> tuple[DecidedRead, ...]:
        return DecidedRead(1, 0, 1, True), DecidedRead(2, 0, 0, True)

    def kernel(self, first: Array, second: Array, third: Array) -> Array:
        return np.where(first, second, third)


@op(
    "clamp",
    samples=[
        "f32[2,3] clamp(f32[2,3] low, f32[2,3] x, f32[2,3] high)",
        "f32[5] clamp(f32[] low, f32[5] x, f32[] high)",
        "s32[5] clamp(s32[5] low, s32[5] x, s32[] high)",
        "f32[] clamp(f32[] low, f32[] x, f32[] high)",
    ],
)
class Clamp(TernaryElementwise):
    """``out[i] = min(max(x[i], low[i]), high[i])``; the bounds may be scalars."""

    types: ClassVar[tuple[str, ...]] = ("T", "T", "T")
    is_exact: ClassVar[bool] = True
    arrays: ClassVar[tuple[int, ...]] = (1,)

    @constraint("C1", "a bound must be a scalar or have the dimensions of the clamped operand")
    def has_bounds(self, first: Shape, second: Shape, third: Shape) -> Fault:
        shapes = first, second, third
        for number in (0, 2):
            if shapes[number].rank and (fault := dims_fault(shapes, number, like=1)):
                return fault
        return HOLDS

    def infer_shape(self, first: Shape, second: Shape, third: Shape) -> Shape:
        return second.with_layout(None)

    @property
    def function(self) -> ScalarFunction:
        return ScalarFunction("clamp", "call", self.kernel, integer_rules.clamp_rule)

    def kernel(self, first: Array, second: Array, third: Array) -> Array:
        return np.asarray(np.minimum(np.maximum(second, first), third), second.dtype)

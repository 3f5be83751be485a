"""Elementwise ops that convert numbers to another type or precision.

Source: XLA ``docs/operation_semantics.md``, "ConvertElementType" and "ReducePrecision".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from hlo.ops.attributes import at_least, integer
from hlo.ops.op import HOLDS, Fault, Shape, attribute, constraint, declared, op
from hlo.ops.unify import PartialShape, same_shape
from hlo.shapes.shape import ELEMENT_TYPES, dtype
from indexing.ops import integer_rules, numerics
from indexing.ops.base import Array
from indexing.ops.elementwise import FLOATS, BinaryElementwise, UnaryElementwise
from indexing.ops.functions import ScalarFunction


@op(
    "convert",
    samples=[
        "s8[2,3] convert(f32[2,3] p)",
        "f32[5] convert(pred[5] p)",
        "bf16[] convert(f32[] p)",
        "u8[3] convert(s16[3] p)",
        "pred[0] convert(f32[0] p)",
    ],
)
class Convert(UnaryElementwise):
    """``out[i] = operand[i]``, converted to the result's element type."""

    is_exact: ClassVar[bool] = True  # to f32 and f64, if nothing else is rounded
    shape: Shape = declared()

    @property
    def function(self) -> ScalarFunction:
        name = f"to_{self.shape.element_type}"
        to_pred = self.shape.element_type == "pred"
        rule = integer_rules.truth if to_pred else integer_rules.identity
        return ScalarFunction(name, "call", self.kernel, rule)

    def infer_shape(self, operand: Shape) -> Shape:
        return operand.with_element_type(self.shape.element_type).with_layout(None)

    def kernel(self, operand: Array) -> Array:
        with np.errstate(all="ignore"):
            return numerics.convert_array(operand, dtype(self.shape.element_type))


@op(
    "reduce-precision",
    samples=["f32[7] reduce-precision(f32[7] p), exponent_bits=5, mantissa_bits=2"],
)
class ReducePrecision(UnaryElementwise):
    """``out[i]`` is operand[i] rounded to `exponent_bits` and `mantissa_bits`."""

    takes: ClassVar[tuple[str, ...]] = FLOATS
    exponent_bits: int = attribute(at_least(integer, 1))
    mantissa_bits: int = attribute(at_least(integer, 0))

    def kernel(self, operand: Array) -> Array:
        with np.errstate(all="ignore"):
            return numerics.reduced_precision(operand, self.exponent_bits, self.mantissa_bits)


@op("stochastic-convert", samples=["s8[5] stochastic-convert(f32[5] p, u32[5] q)"])
class StochasticConvert(BinaryElementwise):
    """``out[i]`` is left[i] in the result's type, rounded by the random bits right[i]."""

    takes: ClassVar[tuple[str, ...]] = FLOATS
    types: ClassVar[tuple[str, ...]] = ("any", "unsigned")
    shape: Shape = declared()

    def unify_operands(self, *operands: PartialShape) -> Sequence[PartialShape]:
        return same_shape(*operands)

    @constraint("C3", "the random bits must have the width of the operand's elements")
    def same_bits(self, left: Shape, right: Shape) -> Fault:
        ours, theirs = ELEMENT_TYPES[left.element_type], ELEMENT_TYPES[right.element_type]
        if ours.bits == theirs.bits:
            return HOLDS
        label = f"operand 0 is {ours.name}, operand 1 is {theirs.name}"
        return Fault(label, 1, f"use u{ours.bits} for operand 1")

    def infer_shape(self, left: Shape, right: Shape) -> Shape:
        return left.with_element_type(self.shape.element_type).with_layout(None)

    def kernel(self, left: Array, right: Array) -> Array:
        with np.errstate(all="ignore"):
            return numerics.convert_stochastically(left, right, dtype(self.shape.element_type))

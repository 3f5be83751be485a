"""Complex numbers and their parts."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from hlo.ops.op import HOLDS, Fault, Shape, constraint, op
from hlo.ops.unify import PartialShape, Unranked
from indexing.maps.indexing_map import IndexingMap
from indexing.ops import numerics
from indexing.ops.base import Array, OperandMaps
from indexing.ops.element import ElementRule, ElementwiseRule
from indexing.ops.elementwise import (
    ANALYTIC,
    FLOATS,
    REAL_TYPES,
    BinaryElementwise,
    UnaryElementwise,
    real,
)
from indexing.ops.functions import ScalarFunction

_COMPLEX_TYPES = {part: whole for whole, part in REAL_TYPES.items()}


@op(
    "complex",
    samples=[
        "c64[2,3] complex(f32[2,3] x, f32[2,3] y)",
        "c64[] complex(f32[] x, f32[] y)",
        "c128[0,3] complex(f64[0,3] x, f64[0,3] y)",
    ],
)
class Complex(BinaryElementwise):
    """``out[i] = x + y·√−1``, where x and y are the operand elements at i."""

    takes: ClassVar[tuple[str, ...]] = FLOATS

    @property
    def function(self) -> ScalarFunction:
        return ScalarFunction.of(numerics.complex_number)

    @constraint("C3", "the operands must both be f32, or both be f64")
    def are_parts(self, left: Shape, right: Shape) -> Fault:
        types = left.element_type, right.element_type
        if types[0] == types[1] and types[0] in _COMPLEX_TYPES:
            return HOLDS
        return Fault(f"the operands are {types[0]} and {types[1]}")

    def infer_unranked(self, *operands: PartialShape) -> PartialShape:
        part = getattr(operands[0], "element_type", "")
        return Unranked(_COMPLEX_TYPES.get(part, ""))

    def infer_shape(self, left: Shape, right: Shape) -> Shape:
        return left.with_element_type(_COMPLEX_TYPES[left.element_type]).with_layout(None)

    def kernel(self, left: Array, right: Array) -> Array:
        return numerics.complex_number(left, right)


@op("imag", samples=["f32[2,3] imag(c64[2,3] p)", "f32[5] imag(f32[5] p)"])
class Imag(UnaryElementwise):
    """``out[i] = Im operand[i]``; real operands are not read, and the result is 0."""

    takes: ClassVar[tuple[str, ...]] = ANALYTIC

    def element(self, out: Shape, *operands: Shape) -> ElementRule:
        return ElementwiseRule(
            self.function, reads_nothing=operands[0].element_type not in REAL_TYPES
        )

    def infer_shape(self, operand: Shape) -> Shape:
        return operand.with_element_type(real(operand.element_type)).with_layout(None)

    def output_to_input(self, out: Shape, operand: Shape) -> OperandMaps:
        return IndexingMap.identity(out) if operand.element_type in REAL_TYPES else ()

    def kernel(self, operand: Array) -> Array:
        return np.imag(operand)

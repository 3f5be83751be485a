"""Ops without operands: parameter, constant and iota."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from hlo.ops.attributes import boolean, integer, list_of, raw
from hlo.ops.op import HOLDS, Fault, Shape, attribute, constraint, contents, declared, op
from hlo.shapes.shape import AnyShape, dtype
from indexing.ops import element as elements
from indexing.ops.base import Array, NullaryOp


@op("parameter", samples=["f32[2,3] parameter(0)", "(f32[2], token[]) parameter(0)"])
class Parameter(NullaryOp):
    """Argument `number` of the computation."""

    passes_leaves: ClassVar[bool] = True
    is_given: ClassVar[bool] = True
    moves_bytes: ClassVar[bool] = False
    number: int = contents(integer)
    shape: AnyShape = declared(any_shape=True)
    parameter_replication: tuple[bool, ...] = attribute(
        list_of(boolean, "a list of booleans", "{true}"), default=(), in_value=False
    )

    def infer_shape(self) -> AnyShape:
        return self.shape

    def kernel(self) -> Array:
        raise TypeError("parameter has no kernel: its value is an argument of the computation")


@op(
    "constant",
    samples=[
        "s32[] constant(-7)",
        "f32[2,3] constant({ { 1, 2.5, -3 }, { inf, 5, 1e-2 } })",
        "pred[2] constant({1, 0})",
        "f32[0] constant({})",
    ],
)
class Constant(NullaryOp):
    """The literal between the parentheses."""

    is_given: ClassVar[bool] = True
    moves_bytes: ClassVar[bool] = False
    rule: ClassVar[elements.ElementRule] = elements.ConstantRule()
    literal: str = contents(raw)
    shape: AnyShape = declared(any_shape=True)

    def infer_shape(self) -> AnyShape:
        return self.shape

    def kernel(self) -> Any:
        from hlo.shapes.literal import array  # loaded late: few runs parse literals

        return array(self.literal, self.shape)


@op(
    "iota",
    samples=[
        "s32[3,4] iota(), iota_dimension=1",
        "f32[5] iota(), iota_dimension=0",
        "s32[2,0] iota(), iota_dimension=0",
    ],
)
class Iota(NullaryOp):
    """``out[i] = i_k`` for k = iota_dimension.

    Source: XLA ``docs/operation_semantics.md``, "Iota".
    """

    creates_dimensions: ClassVar[bool] = True
    is_splittable: ClassVar[bool] = True
    shape: Shape = declared()
    iota_dimension: int = attribute(integer)

    @constraint("C1", "iota_dimension must be a dimension of the result")
    def names_dimension(self) -> Fault:
        if 0 <= self.iota_dimension < self.shape.rank:
            return HOLDS
        label = f"iota_dimension is {self.iota_dimension}, the result has rank {self.shape.rank}"
        return Fault(label, "iota_dimension")

    def infer_shape(self) -> Shape:
        return self.shape

    def element(self, out: Shape, *operands: Shape) -> elements.ElementRule:
        return elements.IotaRule(self.iota_dimension)

    def kernel(self) -> Array:
        sizes = [n if k == self.iota_dimension else 1 for k, n in enumerate(self.shape.dims)]
        count = np.arange(self.shape.dims[self.iota_dimension]).reshape(sizes)
        return np.broadcast_to(count, self.shape.dims).astype(dtype(self.shape.element_type))

"""Map: apply a computation to each element.

Source: XLA ``docs/operation_semantics.md``, "Map".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from hlo.ops.attributes import computation, int_list
from hlo.ops.op import (
    HOLDS,
    Fault,
    Shape,
    Signature,
    attribute,
    constraint,
    declared,
    mismatch_fault,
    op,
    signature,
)
from hlo.ops.protocols import InstructionLike
from hlo.ops.unify import PartialShape, same_shape
from hlo.shapes.shape import AnyShape
from indexing.maps.indexing_map import IndexingMap
from indexing.ops.base import Array, VariadicOp
from indexing.ops.element import ElementRule, ElementwiseRule, bounded_count


@op(
    "map",
    samples=[
        "f32[3,2] map(f32[3,2] p, f32[3,2] q), dimensions={0,1}, to_apply=add",
        "pred[5] map(f32[5] p, f32[5] q), dimensions={0}, to_apply=less_than",
        "f32[] map(f32[] p, f32[] q), dimensions={}, to_apply=add",
        "f32[0,3] map(f32[0,3] p, f32[0,3] q), to_apply=add",
    ],
)
class Map(VariadicOp):
    """``out[i] = to_apply(first[i], second[i], ..)``.

    The element type of the result is that of `to_apply`; it is declared in the text.
    """

    is_splittable: ClassVar[bool] = True
    rule: ClassVar[ElementRule] = ElementwiseRule(uses_computation=True)
    shape: Shape = declared()
    dimensions: tuple[int, ...] = attribute(int_list, default=())
    to_apply: str = attribute(computation)

    @classmethod
    def default_shape(cls, instruction: InstructionLike) -> AnyShape | None:
        if not instruction.called_computations or not instruction.operands:
            return None
        match instruction.called_computations[0].root.shape, instruction.operands[0].shape:
            case Shape() as scalar, Shape() as array:
                return array.with_element_type(scalar.element_type).with_layout(None)
        return None

    def unify_operands(self, *operands: PartialShape) -> Sequence[PartialShape]:
        return same_shape(*operands)

    @signature("to_apply")
    def applies(self, *operands: Shape) -> Signature:
        scalars = tuple([operand.with_dims(()) for operand in operands])
        return Signature(scalars, self.shape.with_dims(()))

    @constraint("C1", "the operands must have the same dimensions")
    def same_dims(self, *operands: Shape) -> Fault:
        return mismatch_fault(operands)

    @constraint("C2", "dimensions must be empty or list all dimensions of the operands in order")
    def names_dimensions(self, *operands: Shape) -> Fault:
        every = tuple(range(operands[0].rank))
        if self.dimensions in ((), every):
            return HOLDS
        label = f"dimensions are {list(self.dimensions)}, the operands have rank {len(every)}"
        return Fault(label, "dimensions")

    def infer_shape(self, *operands: Shape) -> Shape:
        return operands[0].with_element_type(self.shape.element_type).with_layout(None)

    def output_to_input(self, out: Shape, *operands: Shape) -> list[IndexingMap]:
        return [IndexingMap.identity(out)] * len(operands)

    def applications(self, out: AnyShape, operands: tuple[AnyShape, ...]) -> int:
        return bounded_count(out)

    def kernel(self, *operands: Array, to_apply: Callable[..., Any]) -> Array:
        with np.errstate(all="ignore"):
            return np.asarray(to_apply(*operands))

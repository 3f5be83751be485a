"""Ops that build, decompose or forward tuples, and ops that inline a computation.

Source: XLA ``docs/operation_semantics.md``, "Tuple", "GetTupleElement", "OptimizationBarrier" and
"Call".
"""

from __future__ import annotations

from typing import Any, ClassVar

from hlo.ops.attributes import boolean, computation, enum, integer, raw
from hlo.ops.op import HOLDS, Fault, attribute, constraint, op
from hlo.ops.protocols import InstructionLike
from hlo.ops.unify import PartialShape
from hlo.shapes.shape import ELEMENT_TYPES, AnyShape, Shape, TupleShape
from indexing.ops.base import Path, RoutingOp
from indexing.ops.structured_ops import InlineOp


@op(
    "tuple",
    samples=[
        "(f32[2,3], s32[]) tuple(f32[2,3] p, s32[] q)",
        "() tuple()",
        "((f32[2], s32[]), token[]) tuple((f32[2], s32[]) p, token[] q)",
    ],
)
class Tuple(RoutingOp):
    """The tuple of all operands."""

    passes_leaves: ClassVar[bool] = True

    def infer_shape(self, *operands: AnyShape) -> TupleShape:
        return TupleShape(operands)

    def route(self, path: Path) -> tuple[int, Path]:
        return path[0], path[1:]

    def route_back(self, operand: int, path: Path) -> Path:
        return operand, *path

    def kernel(self, *operands: Any) -> tuple[Any, ...]:
        return operands


@op(
    "get-tuple-element",
    samples=[
        "s32[] get-tuple-element((f32[2,3], s32[]) p), index=1",
        "(f32[2], s32[]) get-tuple-element((token[], (f32[2], s32[]), f32[5]) p), index=1",
    ],
)
class GetTupleElement(RoutingOp):
    """Element `index` of a tuple."""

    passes_leaves: ClassVar[bool] = True
    min_operands: ClassVar[int] = 1
    max_operands: ClassVar[int | None] = 1
    index: int = attribute(integer)

    @constraint("C1", "the operand must be a tuple with an element `index`")
    def has_element(self, operand: AnyShape) -> Fault:
        if not isinstance(operand, TupleShape):
            return Fault(f"the operand is {operand}, not a tuple")
        if 0 <= self.index < len(operand.elements):
            return HOLDS
        label = f"index is {self.index}, the tuple has {len(operand.elements)} elements"
        return Fault(label, "index")

    def infer_shape(self, operand: TupleShape) -> AnyShape:
        return operand.elements[self.index]

    def route(self, path: Path) -> tuple[int, Path]:
        return 0, (self.index, *path)

    def route_back(self, operand: int, path: Path) -> Path | None:
        return path[1:] if path[0] == self.index else None

    def kernel(self, operand: tuple[Any, ...]) -> Any:
        return operand[self.index]


class ForwardingOp(RoutingOp):
    """An op that forwards its operand unchanged."""

    __slots__ = ()
    min_operands: ClassVar[int] = 1
    max_operands: ClassVar[int | None] = 1

    def infer_shape(self, operand: AnyShape) -> AnyShape:
        return operand

    def route(self, path: Path) -> tuple[int, Path]:
        return 0, path

    def route_back(self, operand: int, path: Path) -> Path:
        return path

    def kernel(self, operand: Any) -> Any:
        return operand


class Done(RoutingOp):
    """The result of an asynchronous op: element 1 of ``(operands, result, ..)``."""

    __slots__ = ()
    has_local_form: ClassVar[bool] = False
    min_operands: ClassVar[int] = 1
    max_operands: ClassVar[int | None] = 1

    @constraint("C1", "the operand must be a tuple (operands, results, ..)")
    def has_result(self, operand: AnyShape) -> Fault:
        if isinstance(operand, TupleShape) and len(operand.elements) >= 2:
            return HOLDS
        return Fault(f"the operand is {operand}", 0)

    def infer_shape(self, operand: TupleShape) -> AnyShape:
        return operand.elements[1]

    def route(self, path: Path) -> tuple[int, Path]:
        return 0, (1, *path)

    def route_back(self, operand: int, path: Path) -> Path | None:
        return path[1:] if path[0] == 1 else None

    def kernel(self, operand: tuple[object, ...]) -> object:
        return operand[1]


@op(
    "copy",
    samples=[
        "f32[2,3]{0,1} copy(f32[2,3] p)",
        "pred[] copy(pred[] p)",
        "s8[0] copy(s8[0] p)",
        "(f32[2,3]{0,1}, (s32[], token[])) copy((f32[2,3], (s32[], token[])) p)",
    ],
)
class Copy(ForwardingOp):
    """``out[i] = operand[i]`` in another buffer or layout; for a tuple, a copy of each array.

    Between floating-point types, as the compiler has them after its propagation of bf16, the copy
    of an array is a `convert`.
    """

    is_view: ClassVar[bool] = False
    acts_as_others: ClassVar[bool] = True

    @classmethod
    def opcode_of(cls, instruction: InstructionLike) -> str:
        shapes = instruction.declared_shape, *[each.declared_shape for each in instruction.operands]
        types = {shape.element_type for shape in shapes if isinstance(shape, Shape)}
        is_mixed = len(types) == 2 and all(ELEMENT_TYPES[t].kind == "floating" for t in types)
        return "convert" if is_mixed else ""

    def infer_unranked(self, *operands: PartialShape) -> PartialShape:
        return operands[0]

    def infer_shape(self, operand: AnyShape) -> AnyShape:
        return operand.with_layout(None) if isinstance(operand, Shape) else operand


@op(
    "opt-barrier",
    samples=["(f32[2], token[]) opt-barrier((f32[2], token[]) p)", "f32[] opt-barrier(f32[] p)"],
)
class OptBarrier(ForwardingOp):
    """``optimization-barrier`` by its name in HLO text."""


@op("optimization-barrier", samples=["(f32[2], s32[]) optimization-barrier((f32[2], s32[]) p)"])
class OptimizationBarrier(ForwardingOp):
    """``optimization-barrier`` by its full name."""


@op("call", samples=["f32[2,3] call(f32[2,3] p), to_apply=negate"])
class Call(InlineOp):
    """The value of the called computation for these operands."""

    moves_bytes: ClassVar[bool] = False
    to_apply: str = attribute(computation)
    is_composite: bool = attribute(boolean, default=False, in_value=False)
    output_to_operand_aliasing: str = attribute(raw, default="", in_value=False)


@op("fusion", samples=["f32[2,3] fusion(f32[2,3] p), kind=kLoop, calls=negate"])
class Fusion(InlineOp):
    """The value of the fused computation for these operands; a fusion is compiled as one kernel."""

    kind: str = attribute(
        enum("kLoop", "kInput", "kOutput", "kCustom"), default="kLoop", in_value=False
    )
    calls: str = attribute(computation)
    output_to_operand_aliasing: str = attribute(raw, default="", in_value=False)

"""Ops that transfer values: to or from the host, another device or another memory.

Tokens order these ops. A token has no elements, so no map reads it. A received value reads no
array of the program, and no array of the program reads a sent value.

Sources: XLA ``docs/operation_semantics.md``, "AfterAll", "Infeed", "Outfeed", "Recv" and "Send";
``xla/service/hlo_verifier.cc`` for the shapes of start and done ops.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from hlo.modules.module import Instruction
from hlo.ops.attributes import boolean, integer, raw, string
from hlo.ops.attributes import shape as shape_kind
from hlo.ops.op import HOLDS, Fault, attribute, constraint, declared, op
from hlo.shapes.shape import AnyShape, OpaqueShape, Shape, TupleShape, leaves
from indexing.maps.answers import Path, Unknown
from indexing.maps.arrays import ArrayRef
from indexing.maps.indexing_map import IndexingMap
from indexing.ops.access_edge import AccessEdge, identity
from indexing.ops.base import OperandMaps, RoutingOp, UnaryOp
from indexing.ops.element import ElementRule, OpaqueRule, no_work
from indexing.ops.structure import ForwardingOp
from indexing.ops.structured_ops import StructuredOp, Summaries

TOKEN = OpaqueShape("token")
CONTEXT = Shape("u32", ())


def _token_fault(operands: tuple[AnyShape, ...], number: int) -> Fault:
    """Fault of an operand `number` that is not a token."""
    if operands[number] == TOKEN:
        return HOLDS
    return Fault(f"operand {number} is {operands[number]}", number)


class EndpointOp(StructuredOp):
    """An op that exchanges values with the outside of the program; it has no kernel.

    A leaf of the result is an unchanged leaf of an operand, or a value from outside.
    """

    __slots__ = ()

    has_local_form: ClassVar[bool] = False
    work = no_work

    def edges(
        self, instruction: Instruction, output: Path, summaries: Summaries
    ) -> Iterator[AccessEdge]:
        leaf = self.forwarded_leaf(output)
        if leaf:
            operand, path = leaf
            yield AccessEdge(operand, path, output, identity(ArrayRef(instruction, output)))


class SinkOp(EndpointOp):
    """An op whose result is a token or a value from outside, and forwards no operand."""

    __slots__ = ()


# ---------------------------------------------------------------- tokens


@op(
    "after-all",
    samples=["token[] after-all()", "token[] after-all(token[] p, f32[2,3] q)"],
)
class AfterAll(SinkOp):
    """Return a token after all operands are computed."""

    moves_bytes: ClassVar[bool] = False

    def infer_shape(self, *operands: AnyShape) -> AnyShape:
        return TOKEN


@op(
    "add-dependency",
    samples=[
        "f32[2,3] add-dependency(f32[2,3] p, token[] t)",
        "(f32[2], (s32[], token[])) add-dependency((f32[2], (s32[], token[])) p, token[] t)",
    ],
)
class AddDependency(RoutingOp):
    """The first operand, after the second operand is computed."""

    has_local_form: ClassVar[bool] = False
    min_operands: ClassVar[int] = 2
    max_operands: ClassVar[int | None] = 2

    def infer_shape(self, data: AnyShape, token: AnyShape) -> AnyShape:
        return data

    def route(self, path: Path) -> tuple[int, Path]:
        return 0, path

    def route_back(self, operand: int, path: Path) -> Path | None:
        return None if operand else path

    def kernel(self, data: Any, token: Any) -> Any:
        return data


@op(
    "domain",
    samples=[
        "(f32[2], token[]) domain((f32[2], token[]) p), "
        'domain={kind="sharding", entry={maximal device=0}, exit={maximal device=1}}'
    ],
)
class Domain(ForwardingOp):
    """The operand, at the boundary between program parts with different shardings."""

    domain: str = attribute(raw, default="")


# ---------------------------------------------------------------- the host


@op(
    "infeed",
    samples=[
        "(f32[2,3], token[]) infeed(token[] t)",
        '((s32[], pred[5]), token[]) infeed(token[] t), infeed_config="abc"',
    ],
)
class Infeed(SinkOp):
    """``(data from the host, token)``."""

    rule: ClassVar[ElementRule] = OpaqueRule("its values originate outside the program")
    has_effect: ClassVar[bool] = True
    max_operands: ClassVar[int | None] = 1
    shape: AnyShape = declared(any_shape=True)
    infeed_config: str = attribute(string, default="")

    @constraint("C1", "the operand must be a token")
    def has_token(self, *operands: AnyShape) -> Fault:
        return _token_fault(operands, 0) if operands else HOLDS

    @constraint("C2", "the result must be (data, token)")
    def gives_data(self, *operands: AnyShape) -> Fault:
        match self.shape:
            case TupleShape((_, token)) if token == TOKEN:
                return HOLDS
        return Fault(f"the result is {self.shape}", help=f"write ({self.shape}, token[])")

    def infer_shape(self, *operands: AnyShape) -> AnyShape:
        return self.shape


@op(
    "outfeed",
    samples=[
        "token[] outfeed(f32[2,3] p, token[] t)",
        "token[] outfeed((f32[2], s32[]) p, token[] t), outfeed_shape=(f32[2], s32[]), "
        'outfeed_config="abc"',
    ],
)
class Outfeed(SinkOp):
    """Send data to the host; the result is a token."""

    has_effect: ClassVar[bool] = True
    min_operands: ClassVar[int] = 2
    max_operands: ClassVar[int | None] = 2
    outfeed_shape: AnyShape | None = attribute(shape_kind, default=None)
    outfeed_config: str = attribute(string, default="")

    @constraint("C1", "the second operand must be a token")
    def has_token(self, *operands: AnyShape) -> Fault:
        return _token_fault(operands, 1)

    @constraint("C2", "outfeed_shape must be the shape of the first operand")
    def has_data(self, *operands: AnyShape) -> Fault:
        if self.outfeed_shape is None or operands[0].compatible(self.outfeed_shape):
            return HOLDS
        return Fault(f"operand 0 is {operands[0]}", "outfeed_shape")

    def infer_shape(self, *operands: AnyShape) -> AnyShape:
        return TOKEN


# ---------------------------------------------------------------- another device


@op(
    "send",
    samples=[
        "(f32[2,3], u32[], token[]) send(f32[2,3] p, token[] t), channel_id=7",
        "((f32[2], s32[]), u32[], token[]) send((f32[2], s32[]) p, token[] t), "
        "is_host_transfer=true",
    ],
)
class Send(EndpointOp):
    """Start to send data: ``(data, context, token)``."""

    written: ClassVar[tuple[int, ...] | None] = ()
    has_effect: ClassVar[bool] = True
    min_operands: ClassVar[int] = 2
    max_operands: ClassVar[int | None] = 2
    channel_id: int | None = attribute(integer, default=None)
    is_host_transfer: bool = attribute(boolean, default=False)

    @constraint("C1", "the second operand must be a token")
    def has_token(self, *operands: AnyShape) -> Fault:
        return _token_fault(operands, 1)

    def infer_shape(self, *operands: AnyShape) -> AnyShape:
        return TupleShape((operands[0], CONTEXT, TOKEN))

    def forwarded_leaf(self, path: Path) -> tuple[int, Path] | None:
        return (0, path[1:]) if path[0] == 0 else None

    def shared_leaf(self, path: Path) -> tuple[int, Path] | None:
        return self.forwarded_leaf(path)


@op(
    "recv",
    samples=["(f32[2,3], u32[], token[]) recv(token[] t), channel_id=7, is_host_transfer=true"],
)
class Recv(SinkOp):
    """Start to receive data: ``(buffer for the data, context, token)``."""

    rule: ClassVar[ElementRule] = OpaqueRule("its values originate outside the program")
    has_effect: ClassVar[bool] = True
    min_operands: ClassVar[int] = 1
    max_operands: ClassVar[int | None] = 1
    shape: AnyShape = declared(any_shape=True)
    channel_id: int | None = attribute(integer, default=None)
    is_host_transfer: bool = attribute(boolean, default=False)

    @constraint("C1", "the operand must be a token")
    def has_token(self, *operands: AnyShape) -> Fault:
        return _token_fault(operands, 0)

    @constraint("C2", "the result must be (data, context, token)")
    def gives_data(self, *operands: AnyShape) -> Fault:
        return _start_fault(self.shape, None)

    def infer_shape(self, *operands: AnyShape) -> AnyShape:
        return self.shape


def _start_fault(shape: AnyShape, at: int | None) -> Fault:
    """Fault of a shape that is not ``(data, u32[], token[])``: operand `at`, or the result."""
    match shape:
        case TupleShape((_, context, token)) if CONTEXT.compatible(context) and token == TOKEN:
            return HOLDS
    name = "the result" if at is None else f"operand {at}"
    return Fault(f"{name} is {shape}", at, "expected a tuple such as (f32[2,3], u32[], token[])")


@op(
    "send-done",
    samples=["token[] send-done((f32[2,3], u32[], token[]) s), channel_id=7"],
)
class SendDone(SinkOp):
    """Wait for the end of a `send`; the result is a token."""

    moves_bytes: ClassVar[bool] = False
    min_operands: ClassVar[int] = 1
    max_operands: ClassVar[int | None] = 1
    channel_id: int | None = attribute(integer, default=None)
    is_host_transfer: bool = attribute(boolean, default=False)

    @constraint("C1", "the operand must be the result of send")
    def is_started(self, *operands: AnyShape) -> Fault:
        return _start_fault(operands[0], 0)

    def infer_shape(self, *operands: AnyShape) -> AnyShape:
        return TOKEN


@op(
    "recv-done",
    samples=[
        "(f32[2,3], token[]) recv-done((f32[2,3], u32[], token[]) s), channel_id=7",
        "((f32[2], s32[]), token[]) recv-done(((f32[2], s32[]), u32[], token[]) s)",
    ],
)
class RecvDone(RoutingOp):
    """Wait for the end of a `recv` and return ``(data, token)``."""

    has_local_form: ClassVar[bool] = False
    min_operands: ClassVar[int] = 1
    max_operands: ClassVar[int | None] = 1
    channel_id: int | None = attribute(integer, default=None)
    is_host_transfer: bool = attribute(boolean, default=False)

    @constraint("C1", "the operand must be the result of recv")
    def is_started(self, operand: AnyShape) -> Fault:
        return _start_fault(operand, 0)

    def infer_shape(self, operand: TupleShape) -> AnyShape:
        data, _, token = operand.elements
        return TupleShape((data, token))

    def route(self, path: Path) -> tuple[int, Path]:
        return 0, (path[0] * 2, *path[1:])

    def route_back(self, operand: int, path: Path) -> Path | None:
        return None if path[0] == 1 else (path[0] // 2, *path[1:])

    def kernel(self, operand: tuple[Any, ...]) -> tuple[Any, Any]:
        return operand[0], operand[2]


# ---------------------------------------------------------------- another memory


@op(
    "copy-start",
    samples=[
        "(f32[2,3], f32[2,3]{0,1}, u32[]) copy-start(f32[2,3]{0,1} p)",
        "(s8[], s8[], u32[]) copy-start(s8[] p), cross_program_prefetch_index=0",
    ],
)
class CopyStart(UnaryOp):
    """Start a copy: ``(copy, operand, context)``."""

    written: ClassVar[tuple[int, ...] | None] = (0,)
    map_options: ClassVar[tuple[str, ...]] = ("output_id",)
    work = no_work
    cross_program_prefetch_index: int | None = attribute(integer, default=None, in_value=False)

    def infer_shape(self, operand: Shape) -> TupleShape:
        return TupleShape((operand.with_layout(None), operand, CONTEXT))

    def output_to_input(self, out: Shape, operand: Shape, *, output_id: int = 0) -> OperandMaps:
        return IndexingMap.identity(out) if output_id < 2 else ()

    def forwarded_leaf(self, path: Path) -> tuple[int, Path] | None:
        return (0, ()) if path[0] < 2 else None

    def shared_leaf(self, path: Path) -> tuple[int, Path] | None:
        return (0, ()) if path[0] == 1 else None

    def kernel(self, operand: Any) -> tuple[Any, Any, Any]:
        return operand.copy(), operand, np.zeros((), np.uint32)


@op("copy-done", samples=["f32[2,3] copy-done((f32[2,3], f32[2,3], u32[]) s)"])
class CopyDone(RoutingOp):
    """Wait for the end of a `copy-start` and return the copy."""

    has_local_form: ClassVar[bool] = False
    min_operands: ClassVar[int] = 1
    max_operands: ClassVar[int | None] = 1

    @constraint("C1", "the operand must be the result of copy-start")
    def is_started(self, operand: AnyShape) -> Fault:
        match operand:
            case TupleShape((_, _, context)) if CONTEXT.compatible(context):
                return HOLDS
        example = "expected a tuple such as (f32[2,3], f32[2,3], u32[])"
        return Fault(f"operand 0 is {operand}", 0, example)

    def infer_shape(self, operand: TupleShape) -> AnyShape:
        return operand.elements[0]

    def route(self, path: Path) -> tuple[int, Path]:
        return 0, (0, *path)

    def route_back(self, operand: int, path: Path) -> Path | None:
        return path[1:] if path[0] == 0 else None

    def kernel(self, operand: tuple[Any, ...]) -> Any:
        return operand[0]


# ---------------------------------------------------------------- unspecified semantics


@op("shuffle", samples=["f32[2,3] shuffle(f32[2,3] p)"])
class Shuffle(StructuredOp):
    """An opcode without published semantics."""

    has_local_form: ClassVar[bool] = False
    shape: AnyShape = declared(any_shape=True)

    def infer_shape(self, *operands: AnyShape) -> AnyShape:
        return self.shape

    def edges(
        self, instruction: Instruction, output: Path, summaries: Summaries
    ) -> Iterator[AccessEdge]:
        reason = f"shuffle `{instruction.name}`: `shuffle` has no published semantics"
        for number, operand in enumerate(instruction.operands):
            for path, shape in leaves(operand.shape):
                if isinstance(shape, Shape):
                    yield AccessEdge(number, path, output, (), Unknown(reason, instruction))

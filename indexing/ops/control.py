"""Control flow and asynchronous ops: while, conditional, async-start, async-update, async-done.

A program may leave the executed branch or the number of iterations to runtime values.  Maps that
depend on them over-approximate the access: they have the grade "may".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

import numpy as np

from hlo.modules.calls import callees_of
from hlo.modules.module import Computation, Instruction
from hlo.ops.attributes import computation, computation_list, raw, string
from hlo.ops.op import (
    HOLDS,
    Fault,
    Shape,
    Signature,
    attribute,
    constraint,
    declared,
    op,
    signature,
)
from hlo.ops.protocols import InstructionLike
from hlo.ops.unify import PartialShape
from hlo.shapes.shape import AnyShape, TupleShape, leaf_shape
from indexing.maps.answers import Path
from indexing.maps.arrays import ArrayRef
from indexing.maps.reasons import Reason
from indexing.ops.access_edge import AccessEdge, identity
from indexing.ops.element import ElementRule, OpaqueRule, Work
from indexing.ops.numerics import limits
from indexing.ops.structure import Done, ForwardingOp
from indexing.ops.structured_ops import StructuredOp, Summaries, call_edges
from simplifier.interval import Interval
from simplifier.unknown import Unknown


def callees(instruction: Instruction, *names: str) -> list[Computation]:
    """The computations that attributes of an instruction call, in the order of `names`.

    `Instruction.called_computations` has the order of the text.
    """
    called = callees_of(instruction)
    return [computation for name in names for computation in called.get(name, ())]


@op(
    "while",
    samples=[
        "(s32[], f32[2,3]) while((s32[], f32[2,3]) p), condition=less_than_five, "
        "body=next_iteration"
    ],
)
class While(StructuredOp):
    """Apply `body` repeatedly, starting with the operand, while `condition` is true for the value.

    A leaf that `body` forwards unchanged is the same leaf of the operand. The maps of any other
    leaf are those of all iterations (`indexing.dataflow.loops`).

    Source: XLA ``docs/operation_semantics.md``, "While".
    """

    is_control_flow: ClassVar[bool] = True
    passes_leaves: ClassVar[bool] = True
    moves_bytes: ClassVar[bool] = False
    rule: ClassVar[ElementRule] = OpaqueRule("it calls computations on whole arrays")
    min_operands: ClassVar[int] = 1
    max_operands: ClassVar[int | None] = 1
    condition: str = attribute(computation)
    body: str = attribute(computation)

    def infer_unranked(self, *operands: PartialShape) -> PartialShape:
        return operands[0]

    @signature("condition")
    def condition_signature(self, operand: AnyShape) -> Signature:
        return Signature((operand,), Shape("pred", ()))

    @signature("body")
    def body_signature(self, operand: AnyShape) -> Signature:
        return Signature((operand,), operand)

    def infer_shape(self, operand: AnyShape) -> AnyShape:
        return operand

    def edges(
        self, instruction: Instruction, output: Path, summaries: Summaries
    ) -> Iterator[AccessEdge]:
        for path, maps in summaries.loop(instruction, output).items():
            yield AccessEdge(
                0, path, output, maps.effective, maps.unknown, maps.reasons, maps.control
            )


def why_any_branch(conditional: Instruction) -> Reason:
    """Return the reason for the maps of all branches."""
    name = conditional.operands[0].name
    return Reason(f"the executed branch depends on data: `{name}`", conditional)


BRANCHES: Final = ("branch_computations", "true_computation", "false_computation")
"""The attributes that name the branches of a conditional, in the order of its operands."""


@op(
    "conditional",
    samples=[
        "f32[2,3] conditional(s32[] i, f32[2,3] a, f32[2,3] b), "
        "branch_computations={negate, negate}",
        "f32[2,3] conditional(pred[] p, f32[2,3] a, f32[2,3] b), true_computation=negate, "
        "false_computation=negate",
    ],
)
class Conditional(StructuredOp):
    """The result of one branch applied to its operand; operand 0 selects the branch.

    All branches return the shape of the result.  If the program determines operand 0, or there is
    one branch, only the operand of that branch is read, with the maps of the branch.

    Source: XLA ``docs/operation_semantics.md``, "Conditional".
    """

    is_control_flow: ClassVar[bool] = True
    passes_leaves: ClassVar[bool] = True
    moves_bytes: ClassVar[bool] = False
    rule: ClassVar[ElementRule] = OpaqueRule("it calls computations on whole arrays")
    min_operands: ClassVar[int] = 2
    shape: AnyShape = declared(any_shape=True)
    branch_computations: tuple[str, ...] = attribute(computation_list, default=())
    true_computation: str = attribute(computation, default="")
    false_computation: str = attribute(computation, default="")

    @constraint("C1", "operand 0 must be a scalar of type pred or s32")
    def is_index(self, *operands: AnyShape) -> Fault:
        index = operands[0]
        if isinstance(index, Shape) and not index.rank and index.element_type in ("pred", "s32"):
            return HOLDS
        return Fault(f"operand 0 is {index}", 0)

    @constraint("C2", "pred needs true_computation, false_computation; s32 branch_computations")
    def has_its_branches(self, *operands: Shape) -> Fault:
        kind, names = operands[0].element_type, BRANCHES
        needed = names[:1] if kind == "s32" else names[1:]
        given = [name for name in names if getattr(self, name)]
        repair = f"name {' and '.join(needed)}"
        for name in given:
            if name not in needed:
                return Fault(f"operand 0 is {kind}", name, repair)
        for name in needed:
            if name not in given:
                return Fault(f"operand 0 is {kind}, but {name} is missing", None, repair)
        return HOLDS

    @classmethod
    def default_shape(cls, instruction: InstructionLike) -> AnyShape | None:
        called = instruction.called_computations
        return called[0].root.shape if called else None

    @signature(*BRANCHES)
    def branches(self, index: AnyShape, *operands: AnyShape) -> list[Signature]:
        return [Signature((operand,), self.shape) for operand in operands]

    def infer_shape(self, *operands: AnyShape) -> AnyShape:
        return self.shape

    def argument(self, instruction: Instruction, parameter: Instruction) -> Instruction | None:
        pairs = zip(self._branches(instruction), instruction.operands[1:], strict=True)
        operands = {operand for branch, operand in pairs if branch is parameter.computation}
        return operands.pop() if len(operands) == 1 else None

    def edges(
        self, instruction: Instruction, output: Path, summaries: Summaries
    ) -> Iterator[AccessEdge]:
        shape = leaf_shape(instruction.shape, output)
        index = ArrayRef(instruction.operands[0])
        branches = self._branches(instruction)
        if len(branches) > 1:
            chosen = summaries.everything(shape, index.shape)
            exact = tuple([m.with_grade("exact") for m in chosen])
            yield AccessEdge(0, (), output, exact, control=exact)
        taken = self._branch_number(summaries.scalar_value(index), len(branches))
        is_known = taken is not None or summaries.restricts_branches
        for number, branch in enumerate(branches):
            if taken is not None and number != taken:
                continue
            operands, summary = range(number + 1, number + 2), summaries.of(branch, output)
            for edge in call_edges(instruction, operands, branch, summary, output):
                yield edge if is_known else edge.over_approximate(why_any_branch(instruction))

    def _branch_number(self, index: int | None, branches: int) -> int | None:
        """Return the branch that a value of operand 0 selects; None if it depends on the value."""
        if branches == 1:
            return 0
        if index is None:
            return None
        numbers = range(branches)
        return next(
            n for n in numbers if any(a <= index <= b for a, b in self.selecting(n, branches))
        )

    def selecting(self, branch: int, branches: int) -> list[Interval]:
        """Return the values of operand 0 that select a branch.

        An index out of range selects the last branch; true selects `true_computation`.
        """
        if not self.branch_computations:
            return [(1 - branch, 1 - branch)]
        if branch < branches - 1:
            return [(branch, branch)]
        low, high = limits(np.dtype(np.int32))
        return [(branch, high), (low, -1)]

    def _branches(self, instruction: Instruction) -> tuple[Computation, ...]:
        if self.branch_computations:
            return instruction.called_computations
        return tuple(callees(instruction, "true_computation", "false_computation"))


BOUND_LATE: Final = "operands or results that are bound late are not analysed"
"""Source: XLA ``docs/async_ops.md``, "Late Binding"."""

_UNBOUND: Final = TupleShape(())


@op("async-start", samples=["((f32[2,3]), f32[2,3], s32[]) async-start(f32[2,3] p), calls=negate"])
class AsyncStart(StructuredOp):
    """Start the called computation; the result is ``((operands), result, context)``.

    Source: XLA ``docs/async_ops.md``.
    """

    written: ClassVar[tuple[int, ...] | None] = (1,)
    rule: ClassVar[ElementRule] = OpaqueRule("it calls computations on whole arrays")
    shape: AnyShape = declared(any_shape=True)
    calls: str = attribute(computation)
    async_execution_thread: str = attribute(string, default="main", in_value=False)
    output_to_operand_aliasing: str = attribute(raw, default="", in_value=False)

    @classmethod
    def why_unsupported(cls, instruction: InstructionLike) -> str:
        match instruction.declared_shape, instruction.called_computations:
            case TupleShape((_, result, *_)), (called,):
                is_unbound = result == _UNBOUND != called.root.declared_shape
                lacks = len(instruction.operands) < called.opcodes.count("parameter")
                return BOUND_LATE if is_unbound or lacks else ""
            case _:
                return ""

    @constraint("C1", "the result must be a tuple ((operands), result, ..)")
    def has_operands_and_result(self, *operands: AnyShape) -> Fault:
        elements = self.shape.elements if isinstance(self.shape, TupleShape) else ()
        if len(elements) >= 2 and elements[0].compatible(TupleShape(operands)):
            return HOLDS
        return Fault(f"the operands are {TupleShape(operands)}, the result is {self.shape}")

    def work(
        self, out: AnyShape, operands: tuple[AnyShape, ...], applied: tuple[Work, ...]
    ) -> Work | Unknown:
        return applied[0]

    @signature("calls")
    def called_signature(self, *operands: AnyShape) -> Signature:
        assert isinstance(self.shape, TupleShape)  # C1
        return Signature(operands, self.shape.elements[1])

    def infer_shape(self, *operands: AnyShape) -> AnyShape:
        return self.shape

    def shared_leaf(self, path: Path) -> tuple[int, Path] | None:
        return (path[1], path[2:]) if path[0] == 0 else None

    def edges(
        self, instruction: Instruction, output: Path, summaries: Summaries
    ) -> Iterator[AccessEdge]:
        match output:
            case 0, number, *path:
                yield AccessEdge(
                    number, tuple(path), output, identity(ArrayRef(instruction, output))
                )
            case 1, *path:
                called = instruction.called_computations[0]
                operands = range(len(instruction.operands))
                summary = summaries.of(called, tuple(path))
                yield from call_edges(instruction, operands, called, summary, output)


@op(
    "async-update",
    samples=["((f32[2,3]), f32[2,3], s32[]) async-update(((f32[2,3]), f32[2,3], s32[]) s)"],
)
class AsyncUpdate(ForwardingOp):
    """The value of `async-start`, forwarded unchanged."""

    async_execution_thread: str = attribute(string, default="main", in_value=False)
    calls: str = attribute(computation, default="")

    @classmethod
    def why_unsupported(cls, instruction: InstructionLike) -> str:
        operands, own = instruction.operands, instruction.declared_shape
        before = operands[0].declared_shape if operands else None
        is_same = own is None or before is None or own.compatible(before)
        return "" if len(operands) < 2 and is_same else BOUND_LATE


@op("async-done", samples=["f32[2,3] async-done(((f32[2,3]), f32[2,3], s32[]) s)"])
class AsyncDone(Done):
    """Wait for the computation that `async-start` started and return its result."""

    async_execution_thread: str = attribute(string, default="main", in_value=False)
    calls: str = attribute(computation, default="")

    @classmethod
    def why_unsupported(cls, instruction: InstructionLike) -> str:
        own = instruction.declared_shape
        match [operand.declared_shape for operand in instruction.operands]:
            case [TupleShape((_, result, *_))] if result == _UNBOUND != own is not None:
                return BOUND_LATE
            case _:
                return ""

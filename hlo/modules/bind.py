"""Instructions against the rules of their ops: operands are checked, shapes are inferred.

An opcode that is not registered is never an error. A module holds few different ops: each is
checked once for operands of equal shapes.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Final

from hlo.modules.module import Instruction, Module, Semantics
from hlo.modules.read_op import bind_op, default_shape, op_class, read_op, unknown_attributes
from hlo.ops.op import Fault, Op, OpConstraint
from hlo.ops.unify import (
    Conflict,
    PartialShape,
    Unranked,
    is_partial,
    same_but_precision,
    same_dims,
)
from hlo.shapes.shape import AnyShape, Shape, TupleShape
from hlo.text.source import HloError, Span

_LIMIT: Final = 1 << 16
_CHECKED: Final[dict[Hashable, _Verdict]] = {}


def infer(instruction: Instruction) -> AnyShape:
    """The shape of an instruction whose text does not say it.

    Raises:
        HloError: it does not follow from the operands, or they are wrong.
    """
    op = read_op(instruction, default_shape(instruction))
    if op is None:
        raise HloError(
            f"the shape of `{instruction.name}` is missing, and {instruction.opcode} is unknown",
            instruction.span,
            "shape",
            help="write the result shape before the opcode",
        )
    inferred, error = _judged(instruction, op)
    if error:
        raise error
    if inferred is None or isinstance(inferred, Unranked):
        message = f"the shape of `{instruction.name}` is missing, and an operand has unknown sizes"
        raise HloError(message, instruction.span, "shape", help="write the result shape")
    return inferred


REGISTERED: Final = Semantics(bind_op, infer)
"""Instructions interpreted by the registered ops (`hlo.ops.op.OPS`)."""


def infer_known(
    instruction: Instruction, operands: tuple[PartialShape, ...], called: PartialShape | None
) -> PartialShape:
    """What follows about an instruction's value from what is known of its operands.

    Args:
        operands: what is known of each.
        called: what is known of the result of the computation it calls.
    Raises:
        HloError: the operands break a rule, or contradict each other.
    """
    if op_class(instruction) is None:
        return Unranked()
    try:
        op = read_op(instruction, instruction.declared_shape or default_shape(instruction))
    except HloError:
        if instruction.declared_shape is not None:
            raise
        return Unranked()  # it has to be declared, and is not
    if op is None:
        return Unranked()
    if op.runs_called:
        if error := _call_error(instruction, operands):
            raise error
        return called or Unranked()
    if error := _operands_error(instruction, op, operands):
        raise error
    verdict = _remembered(op, operands)
    if verdict.broken:
        raise _constraint_error(instruction, *verdict.broken)
    return verdict.inferred or Unranked()


def check_instruction(instruction: Instruction) -> HloError | None:
    """What is wrong with an instruction: its attributes, its operands, or its declared shape."""
    try:
        op = instruction.op
        inferred, wrong = _judged(instruction, op) if op else (None, None)
    except HloError as error:
        is_here = instruction.start <= error.span.start < instruction.end
        return error if is_here else None  # an operand's error is told once, where it is declared
    if isinstance(inferred, Unranked):
        return wrong
    if inferred is not None and not agrees(instruction.shape, inferred):
        return shape_error(instruction, inferred)
    return wrong


def verify(module: Module) -> list[HloError]:
    """Everything that is wrong with the instructions of a module, in the order of the text."""
    return [
        error
        for computation in module.computations.values()
        for instruction in computation.instructions
        for error in _errors(instruction)
    ]


def _errors(instruction: Instruction) -> Iterator[HloError]:
    if error := check_instruction(instruction):
        yield error
    yield from unknown_attributes(instruction)


def agrees(declared: AnyShape, inferred: AnyShape) -> bool:
    """Says that an instruction whose shape is inferred to be so may be declared so.

    Layouts are the compiler's choice, and so is the precision of floating types; a dimension may be
    dynamic up to its size. Source: XLA ``xla/service/hlo_verifier.cc``, ``CheckShape``.
    """
    match declared, inferred:
        case Shape(), Shape():
            return same_dims(declared.dims, inferred.dims) and same_but_precision(
                declared.element_type, inferred.element_type
            )
        case TupleShape(ours), TupleShape(theirs):
            return len(ours) == len(theirs) and all(map(agrees, ours, theirs))
        case _:
            return declared.compatible(inferred)


# ---------------------------------------------------------------- checking


@dataclass(frozen=True, slots=True)
class _Verdict:
    """What comes of an op with operands of certain shapes: its shape, or the rule they break.

    Neither, where an operand has a dimension of unknown size: that breaks no rule.
    """

    inferred: PartialShape | None = None
    broken: tuple[OpConstraint, Fault] | None = None


def _judged(instruction: Instruction, op: Op) -> tuple[PartialShape | None, HloError | None]:
    """The inferred shape, or the error; neither where sizes are unknown."""
    shapes = tuple([operand.shape for operand in instruction.operands])
    if error := _operands_error(instruction, op, shapes):
        return None, error
    if op.runs_called:
        return _called(instruction, shapes)
    verdict = _remembered(op, shapes)
    if verdict.broken:
        return None, _constraint_error(instruction, *verdict.broken)
    return verdict.inferred, None


def _remembered(op: Op, shapes: tuple[PartialShape, ...]) -> _Verdict:
    key = op.opcode, op, shapes
    verdict = _CHECKED.get(key)
    if verdict is None:
        if len(_CHECKED) >= _LIMIT:
            _CHECKED.clear()
        verdict = _CHECKED[key] = _verdict(op, shapes)
    return verdict


def _verdict(op: Op, shapes: tuple[PartialShape, ...]) -> _Verdict:
    if any(map(is_partial, shapes)):
        if not op.takes_partial:
            return _Verdict()
        try:
            shapes = tuple(op.unified(*shapes))
        except Conflict as conflict:
            at = conflict.operands[-1] if conflict.operands else None
            return _Verdict(broken=(_AGREE, Fault(str(conflict), at)))
        if any(isinstance(shape, Unranked) for shape in shapes):
            return _Verdict(op.infer_unranked(*shapes))
    broken = op.first_fault(shapes)
    return _Verdict(broken=broken) if broken else _Verdict(op.infer_shape(*shapes))


_AGREE: Final = OpConstraint("C0", "the operands must have compatible shapes", "unified")


def _operands_error(
    instruction: Instruction, op: Op, shapes: tuple[PartialShape, ...]
) -> HloError | None:
    """Too many or too few operands, or one that is no array where arrays are needed."""
    count, opcode = len(instruction.operands), instruction.opcode
    if count < op.min_operands or (op.max_operands is not None and count > op.max_operands):
        if op.min_operands == op.max_operands:
            wanted = str(op.min_operands)
        elif op.max_operands is None:
            wanted = f"at least {op.min_operands}"
        else:
            wanted = f"{op.min_operands} to {op.max_operands}"
        plural = "" if wanted == "1" else "s"
        message = f"{opcode} takes {wanted} operand{plural}, but {_given(count)}"
        return HloError(message, instruction.span, "operands", notes=_notes(instruction))
    if op.takes_arrays:
        for number, shape in enumerate(shapes):
            if not isinstance(shape, Shape | Unranked):
                message = f"{opcode} takes arrays, but operand {number} is {shape}"
                span = instruction.span
                return HloError(message, span, "operands", notes=_notes(instruction))
    return None


def _constraint_error(instruction: Instruction, rule: OpConstraint, fault: Fault) -> HloError:
    message = f"{instruction.opcode} {rule.label}: {rule.sentence}"
    return HloError(
        message,
        _fault_span(instruction, fault.at),
        "op-constraint",
        fault.label,
        _notes(instruction),
        fault.help,
    )


def _fault_span(instruction: Instruction, at: str | int | None) -> Span:
    """Where an error points: at an attribute, else at the instruction."""
    text = instruction.attributes.get(at) if isinstance(at, str) else None
    return instruction.span if text is None else text.span


def _notes(instruction: Instruction) -> list[str]:
    return [
        f"operand `{operand.name}` is {_text(shape)}, declared at {operand.span.place()}"
        for operand in dict.fromkeys(instruction.operands)
        if (shape := _shape_of(operand)) is not None
    ]


def _shape_of(instruction: Instruction) -> AnyShape | None:
    try:
        return instruction.shape
    except HloError:
        return None


def _given(count: int, what: str = "") -> str:
    return f"{count} {what} {'is' if count == 1 else 'are'} given".replace("  ", " ")


def _text(shape: AnyShape) -> str:
    return str(shape.with_layout(None) if isinstance(shape, Shape) else shape)


def shape_error(instruction: Instruction, inferred: AnyShape) -> HloError:
    """The error for an instruction that is declared to be something else than it is."""
    return HloError(
        f"`{instruction.name}` is declared {_text(instruction.shape)}, "
        f"but its {instruction.opcode} is {_text(inferred)}",
        instruction.span,
        "shape",
        notes=_notes(instruction),
        help=f"write {_text(inferred)}, or change the operands",
    )


def _called(
    instruction: Instruction, shapes: tuple[AnyShape, ...]
) -> tuple[AnyShape | None, HloError | None]:
    """The shape of what the one called computation returns, if the operands are its parameters."""
    if error := _call_error(instruction, shapes):
        return None, error
    return instruction.called_computations[0].root.shape, None


def _call_error(instruction: Instruction, shapes: tuple[PartialShape, ...]) -> HloError | None:
    """What is wrong with the operands as the parameters of the one called computation."""
    called = instruction.called_computations
    if len(called) != 1:
        message = f"{instruction.opcode} calls one computation, but {len(called)} are given"
        return HloError(message, instruction.span, "operands")
    name, parameters = called[0].name, called[0].parameters
    if len(parameters) != len(shapes):
        operands = "operand" if len(shapes) == 1 else "operands"
        message = f"`{name}` has {len(parameters)} parameters, but {_given(len(shapes), operands)}"
        return HloError(message, instruction.span, "operands", notes=_notes(instruction))
    for number, (parameter, shape) in enumerate(zip(parameters, shapes, strict=True)):
        if not isinstance(shape, Unranked) and not agrees(shape, parameter.shape):
            message = (
                f"operand {number} is {_text(shape)}, but parameter {number} of `{name}` is "
                f"{_text(parameter.shape)}"
            )
            notes = [f"the parameter is declared at {parameter.span.place()}"]
            return HloError(message, instruction.span, "operands", notes=notes)
    return None

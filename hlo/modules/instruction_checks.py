"""Checks of instructions against the constraints of their ops, and shape inference.

An unregistered opcode is not an error. Results are memoised by op and operand shapes, since a
module has few distinct ops.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from hlo.memo import Memo
from hlo.modules.bind import (
    bind_op,
    default_shape,
    misleading_attribute,
    op_class,
    read_op,
    unknown_attributes,
)
from hlo.modules.module import Instruction, Module, Semantics
from hlo.ops.op import OPS, OPS_BY_TARGET, Fault, Op, OpConstraint
from hlo.ops.unify import (
    Conflict,
    PartialShape,
    Unranked,
    is_partial,
    may_be_same_dims,
    same_but_precision,
)
from hlo.shapes.shape import AnyShape, Shape, TupleShape
from hlo.text.source import HloError, Span

_NOTHING: Final[Mapping[Instruction, AnyShape]] = MappingProxyType({})
_CHECKED: Final = Memo[Hashable, "_Inference"](1 << 12)
_VALID: Final = Memo[Hashable, None](1 << 12)
"""Ops with the declared shape and the operands' shapes of instructions that have no error."""


def infer(instruction: Instruction) -> AnyShape:
    """Infer the shape of an instruction whose text omits it.

    Raises:
        HloError: the shape cannot be inferred, or the operands violate a constraint of the op. The
            error is memoised: all users of the instruction need its shape.
    """
    errors = instruction.module.memo.setdefault((infer, len(OPS), len(OPS_BY_TARGET)), {})
    if instruction in errors:
        raise errors[instruction].with_traceback(None)
    try:
        return _shape_by_op(instruction)
    except HloError as error:
        errors[instruction] = error
        raise


def _shape_by_op(instruction: Instruction) -> AnyShape:
    op = read_op(instruction, default_shape(instruction))
    if op is None:
        raise HloError(
            f"the shape of `{instruction.name}` is missing, and opcode {instruction.opcode} is not "
            "registered",
            instruction.span,
            "shape",
            help="write the result shape before the opcode",
        )
    inferred, error = _inferred_or_error(instruction, op)
    if error:
        raise error
    if inferred is None or isinstance(inferred, Unranked):
        message = f"the shape of `{instruction.name}` is missing, and an operand has unknown sizes"
        help = "write the result shape before the opcode"  # noqa: A001 - the word of `HloError`
        raise HloError(message, instruction.span, "shape", help=help)
    return inferred


REGISTERED: Final = Semantics(bind_op, infer)
"""Instructions interpreted by the registered ops (`hlo.ops.op.OPS`)."""


def infer_partial(
    instruction: Instruction, operands: tuple[PartialShape, ...], called: PartialShape | None
) -> PartialShape:
    """Infer the partial shape of an instruction from partial shapes of its operands.

    Args:
        instruction: the instruction; its own declared shape is not merged with the result.
        operands: the partial shape of each operand.
        called: the partial result shape of the computation it calls.
    Raises:
        HloError: the operands violate a constraint or contradict each other.
    """
    if op_class(instruction) is None:
        return Unranked()
    try:
        op = read_op(instruction, instruction.declared_shape or default_shape(instruction))
    except HloError:
        if instruction.declared_shape is not None:
            raise
        return Unranked()  # the op requires a declared shape
    if op is None:
        return Unranked()
    if op.runs_called:
        if error := _call_error(instruction, operands):
            raise error
        return called or Unranked()
    if error := _operands_error(instruction, op, operands):
        raise error
    inference = _memoised_inference(op, operands)
    if inference.violation:
        raise _constraint_error(instruction, *inference.violation)
    return inference.shape or Unranked()


def check_instruction(
    instruction: Instruction, corrected: Mapping[Instruction, AnyShape] = _NOTHING
) -> HloError | None:
    """Return the error of an instruction's attributes, operands or declared shape, if any.

    Args:
        instruction: the instruction.
        corrected: shapes that replace those of operands and roots of called computations.
    """
    if error := misleading_attribute(instruction):
        return error
    try:
        if (op := instruction.op) is None:
            return None
        if corrected or op.runs_called:
            return _shape_fault(instruction, op, corrected)
        shapes = tuple([operand.shape for operand in instruction.operands])
        key = op.opcode, op, instruction.shape, shapes
        if key in _VALID:
            return None
        error = _shape_fault(instruction, op, corrected)
    except HloError as raised:
        is_here = instruction.start <= raised.span.start < instruction.end
        return raised if is_here else None  # an operand's error is reported at its declaration
    if error is None:
        _VALID.keep(key, None)
    return error


def _shape_fault(
    instruction: Instruction, op: Op, corrected: Mapping[Instruction, AnyShape]
) -> HloError | None:
    """Return the error of the operands' shapes or of the declared shape, if any."""
    inferred, error = _inferred_or_error(instruction, op, corrected)
    if isinstance(inferred, Unranked):
        return error
    if inferred is not None and not agrees(instruction.shape, inferred):
        return shape_error(instruction, inferred)
    return error


def instruction_errors(module: Module) -> list[HloError]:
    """Return all errors of the instructions of a module, in text order.

    An error that follows from an operand's wrong declared shape, itself an error, is omitted.
    """
    corrected: dict[Instruction, AnyShape] = {}
    return [
        error
        for computation in module.computations.values()
        for instruction in computation.instructions
        for error in _errors(instruction, corrected)
    ]


def _errors(instruction: Instruction, corrected: dict[Instruction, AnyShape]) -> Iterator[HloError]:
    error = check_instruction(instruction)
    if error and corrected:
        error = check_instruction(instruction, corrected)
    if error:
        yield error
        if error.code == "shape":
            inferred = _inferred_shape(instruction, corrected)
            if inferred is not None and not isinstance(inferred, Unranked):
                corrected[instruction] = inferred
    for unknown in unknown_attributes(instruction):
        if error is None or unknown.span != error.span:
            yield unknown


def _inferred_shape(
    instruction: Instruction, corrected: Mapping[Instruction, AnyShape]
) -> PartialShape | None:
    """Return the inferred shape of an instruction; None if it cannot be inferred."""
    try:
        op = instruction.op
        return _inferred_or_error(instruction, op, corrected)[0] if op else None
    except HloError:  # `check_instruction` reports it
        return None


def agrees(declared: AnyShape, inferred: AnyShape) -> bool:
    """Return True if an instruction with the `inferred` shape may be declared as `declared`.

    Layouts, the precision of floating-point types, and dynamic dimensions up to the inferred size
    may differ. Source: XLA ``xla/service/hlo_verifier.cc``, ``CheckShape``.
    """
    if declared is inferred:
        return True
    match declared, inferred:
        case Shape(), Shape():
            return may_be_same_dims(declared.dims, inferred.dims) and same_but_precision(
                declared.element_type, inferred.element_type
            )
        case TupleShape(ours), TupleShape(theirs):
            return len(ours) == len(theirs) and all(map(agrees, ours, theirs))
        case _:
            return declared.compatible(inferred)


# ---------------------------------------------------------------- checking


@dataclass(frozen=True, slots=True)
class _Inference:
    """The inferred shape of an op with operands of given shapes, or the violated constraint.

    Both are None if an operand has a dimension of unknown size and the op cannot use it.
    """

    shape: PartialShape | None = None
    violation: tuple[OpConstraint, Fault] | None = None


def _inferred_or_error(
    instruction: Instruction, op: Op, corrected: Mapping[Instruction, AnyShape] = _NOTHING
) -> tuple[PartialShape | None, HloError | None]:
    """Return the inferred shape or the error; neither if an operand has unknown sizes."""
    shapes = tuple([operand.shape for operand in instruction.operands])
    if corrected:
        shapes = tuple(
            [corrected.get(operand) or operand.shape for operand in instruction.operands]
        )
    if error := _operands_error(instruction, op, shapes):
        return None, error
    if op.runs_called:
        result, error = _called_result(instruction, shapes)
        root = instruction.called_computations[0].root if corrected and not error else None
        return (corrected.get(root, result) if root else result), error
    inference = _memoised_inference(op, shapes)
    if inference.violation:
        return None, _constraint_error(instruction, *inference.violation)
    return inference.shape, None


def _memoised_inference(op: Op, shapes: tuple[PartialShape, ...]) -> _Inference:
    key = op.opcode, op, shapes
    return _CHECKED.get(key) or _CHECKED.keep(key, _inference(op, shapes))


def _inference(op: Op, shapes: tuple[PartialShape, ...]) -> _Inference:
    if any(map(is_partial, shapes)):
        if not op.takes_partial:
            return _Inference()
        try:
            shapes = tuple(op.unify_operands(*shapes))
        except Conflict as conflict:
            at = conflict.operands[-1] if conflict.operands else None
            return _Inference(violation=(_COMPATIBLE, Fault(str(conflict), at)))
        if any(isinstance(shape, Unranked) for shape in shapes):
            return _Inference(op.infer_unranked(*shapes))
    violation = op.first_fault(shapes)
    return _Inference(violation=violation) if violation else _Inference(op.infer_shape(*shapes))


_COMPATIBLE: Final = OpConstraint(
    "C0", "the operands must have compatible shapes", "unify_operands"
)


def _operands_error(
    instruction: Instruction, op: Op, shapes: tuple[PartialShape, ...]
) -> HloError | None:
    """Return the error for the number of operands, or for an operand that is not an array."""
    count, opcode = len(instruction.operands), instruction.opcode
    if count < op.min_operands or (op.max_operands is not None and count > op.max_operands):
        if op.min_operands == op.max_operands:
            wanted = str(op.min_operands)
        elif op.max_operands is None:
            wanted = f"at least {op.min_operands}"
        else:
            wanted = f"{op.min_operands} to {op.max_operands}"
        plural = "" if wanted in ("1", "at least 1") else "s"
        message = f"{opcode} takes {wanted} operand{plural}, but {_count_given(count)}"
        return HloError(message, instruction.span, "operands", notes=_notes(instruction))
    if op.takes_arrays:
        for number, shape in enumerate(shapes):
            if not isinstance(shape, Shape | Unranked):
                message = f"{opcode} takes arrays, but operand {number} has shape {shape}"
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
    """Return the span of the attribute `at`, or that of the instruction."""
    text = instruction.attributes.get(at) if isinstance(at, str) else None
    return instruction.span if text is None else text.span


def _notes(instruction: Instruction, only: Sequence[Instruction] = ()) -> list[str]:
    """Return a note on each operand of an instruction, or on the given operands."""
    return [
        f"operand `{operand.name}` is {_shape_text(shape)}, declared at {operand.span.place()}"
        for operand in dict.fromkeys(only or instruction.operands)
        if (shape := _shape_of(operand)) is not None
    ]


def _shape_of(instruction: Instruction) -> AnyShape | None:
    try:
        return instruction.shape
    except HloError:
        return None


def _count_given(count: int, noun: str = "") -> str:
    counted = f"{count} {noun}{'s' * (count != 1)}" if noun else str(count)
    return f"{counted} {'is' if count == 1 else 'are'} given"


def _shape_text(shape: AnyShape) -> str:
    return str(shape.with_layout(None) if isinstance(shape, Shape) else shape)


def shape_error(instruction: Instruction, inferred: AnyShape) -> HloError:
    """Return the error for a declared shape that contradicts the inferred one."""
    declared, notes = instruction.shape, _notes(instruction)
    owner, reason = f"`{instruction.name}`", "its inferred shape"
    repair = "write {}, or change the operands"
    match declared, inferred:
        case TupleShape(ours), TupleShape(theirs) if len(ours) == len(theirs):
            number = next(
                k for k, pair in enumerate(zip(ours, theirs, strict=True)) if not agrees(*pair)
            )
            declared, inferred = ours[number], theirs[number]
            owner, repair = f"element {number} of {owner}", f"write {{}} as element {number}"
            if instruction.opcode == "tuple":
                operand = instruction.operands[number]
                reason, notes = f"operand {number}", _notes(instruction, [operand])
                repair += f", or change operand `{operand.name}`"
        case Shape(_, ours), Shape(_, theirs) if ours == theirs:
            repair = "change the element type of an operand, or write {}"
        case _:
            pass
    message = (
        f"{owner} is declared {_shape_text(declared)}, but {reason} is {_shape_text(inferred)}"
    )
    help = repair.format(_shape_text(inferred))  # noqa: A001 - the word of `HloError`
    return HloError(message, instruction.span, "shape", notes=notes, help=help)


def _called_result(
    instruction: Instruction, shapes: tuple[AnyShape, ...]
) -> tuple[AnyShape | None, HloError | None]:
    """Return the result shape of the called computation, or the error of a mismatched call."""
    if error := _call_error(instruction, shapes):
        return None, error
    return instruction.called_computations[0].root.shape, None


def _call_error(instruction: Instruction, shapes: tuple[PartialShape, ...]) -> HloError | None:
    """Return the error for operands that do not match the parameters of the called computation."""
    called = instruction.called_computations
    if len(called) != 1:
        message = f"{instruction.opcode} calls one computation, but {_count_given(len(called))}"
        return HloError(message, instruction.span, "operands")
    name, parameters = called[0].name, called[0].parameters
    if len(parameters) != len(shapes):
        plural = "s" * (len(parameters) != 1)
        given = _count_given(len(shapes), "operand")
        message = f"`{name}` has {len(parameters)} parameter{plural}, but {given}"
        return HloError(message, instruction.span, "operands", notes=_notes(instruction))
    for number, (parameter, shape) in enumerate(zip(parameters, shapes, strict=True)):
        if not isinstance(shape, Unranked) and not agrees(shape, parameter.shape):
            message = (
                f"operand {number} is {_shape_text(shape)}, but parameter {number} of `{name}` is "
                f"{_shape_text(parameter.shape)}"
            )
            notes = [f"the parameter is declared at {parameter.span.place()}"]
            return HloError(message, instruction.span, "operands", notes=notes)
    return None

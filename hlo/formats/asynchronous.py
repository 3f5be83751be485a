"""Asynchronous ops: ``negate-start`` and the like are short for ``async-start`` of a computation.

``s = (..) add-start(a, b)`` says that an ``add`` begins here and goes on beside other work until
``add-done(s)`` waits for it. XLA keeps it as an ``async-start`` that calls a computation with the
``add`` in it, and so do we:

>>> from hlo.formats.parser import parse
>>> module = parse('''ENTRY e {
...   p = f32[3] parameter(0)
...   s = ((f32[3]), f32[3], u32[]) negate-start(p)
...   ROOT d = f32[3] negate-done(s)
... }''')
>>> print(module.computations["async_wrapped"])
%async_wrapped {
  %async_param = f32[3] parameter(0)
  ROOT %negate = f32[3] negate(%async_param)
}
>>> print(module.entry["s"], module.entry.root, sep="; ")
%s = ((f32[3]), f32[3], u32[]) async-start(%p), calls=async_wrapped; %d = f32[3] async-done(%s)

Source: XLA ``docs/async_ops.md``; ``xla/hlo/parser/hlo_parser.cc`` for what belongs together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from hlo.formats.parser_state import ParserState
from hlo.modules.module import Computation, Instruction
from hlo.ops.opcodes import ASYNCHRONOUS, OPCODES
from hlo.shapes.shape import AnyShape, TupleShape
from hlo.text.source import HloError, Span
from hlo.text.syntax import AttributeText

SUFFIXES: Final = ("-start", "-update", "-done")
THREAD: Final = "async_execution_thread"
MAIN: Final = "main"  # the thread of whoever says none

# what is said about the start itself; everything else is said about the op that it wraps
_OF_THE_START: Final = frozenset(
    {"control-predecessors", "frontend_attributes", "metadata", "origin", "sharding", "statistics"}
)
_OF_BOTH: Final = "backend_config"


@dataclass(frozen=True, slots=True)
class ParsedInstruction:
    """What the parser has read of one instruction; `span` is its opcode."""

    span: Span
    opcode: str
    shape: AnyShape | None
    operands: tuple[Instruction, ...]
    attributes: Mapping[str, AttributeText]
    called: tuple[Computation, ...]


def resolved(parsed: ParsedInstruction, state: ParserState) -> ParsedInstruction:
    """The parsed without the short form, checked against the start that they belong to.

    Raises:
        HloError: there is no such start, or it says something else.
    """
    op, _, step = parsed.opcode.rpartition("-")
    if parsed.opcode in ASYNCHRONOUS:
        if op != "async":
            return parsed
        op = ""
    elif op not in OPCODES:
        return parsed
    if step == "start":
        _check_start(parsed)
        if op:
            parsed = _with_computation(parsed, op, state)
        return _called_once(parsed, state)
    _check_step(parsed, op, step)
    return replace(parsed, opcode=f"async-{step}")


# ---------------------------------------------------------------- a start


def _check_start(parsed: ParsedInstruction) -> None:
    match parsed.shape:
        case TupleShape((TupleShape(elements), _, *_)) if len(elements) == len(parsed.operands):
            return
        case None:
            label = "its shape does not follow from the operands"
        case _:
            label = f"its shape is {parsed.shape}"
    operands = ", ".join(str(o.declared_shape or "f32[]") for o in parsed.operands)
    message = f"the shape of {parsed.opcode} is ((operands), results, state)"
    hint = f"write (({operands}), results, u32[]) before {parsed.opcode}"
    raise HloError(message, parsed.span, "async", label, help=hint)


def _with_computation(parsed: ParsedInstruction, op: str, state: ParserState) -> ParsedInstruction:
    """An ``async-start`` of a new computation that holds the op `op`."""
    assert isinstance(parsed.shape, TupleShape)
    computation = _computation(parsed, op, state)
    attributes = {"calls": AttributeText.of(computation.name)}
    for name, value in parsed.attributes.items():
        if name in _OF_THE_START or name in (_OF_BOTH, THREAD):
            attributes[name] = value
    return replace(parsed, opcode="async-start", attributes=attributes, called=(computation,))


def _computation(parsed: ParsedInstruction, op: str, state: ParserState) -> Computation:
    """A computation of the op alone, with a parameter for each operand."""
    assert isinstance(parsed.shape, TupleShape)
    inputs, result = parsed.shape.elements[:2]
    assert isinstance(inputs, TupleShape)
    computation = Computation(state.fresh_name("async_wrapped"), state.result, parsed.span.start)
    start, end = parsed.span.start, parsed.span.end
    made = [
        Instruction(
            name=f"async_param.{number}" if number else "async_param",
            opcode="parameter",
            shape=parsed.operands[number].declared_shape or shape,
            literal=AttributeText.of(str(number)),
            computation=computation,
            index=number,
            start=start,
            end=end,
        )
        for number, shape in enumerate(inputs.elements)
    ]
    made.append(
        Instruction(
            name=op,
            opcode=op,
            shape=result,
            operands=tuple(made),
            attributes={
                name: value
                for name, value in parsed.attributes.items()
                if name not in _OF_THE_START and name != THREAD
            },
            called_computations=parsed.called,
            computation=computation,
            index=len(made),
            start=start,
            end=end,
        )
    )
    computation.instructions = tuple(made)
    computation.root = made[-1]
    computation.end = end
    if THREAD in parsed.attributes:
        computation.attributes = {"execution_thread": parsed.attributes[THREAD]}
    state.computations[computation.name] = computation
    return computation


def _called_once(parsed: ParsedInstruction, state: ParserState) -> ParsedInstruction:
    """`parsed`, unless another start calls the same computation."""
    for computation in parsed.called:
        first = state.started.setdefault(computation.name, parsed.span)
        if first is not parsed.span:
            message = f"the computation `{computation.name}` is started twice"
            note = f"the first start is at {first.place()}"
            hint = "give each start a computation of its own"
            raise HloError(message, parsed.span, "async", "the second start", [note], hint)
    return parsed


# ---------------------------------------------------------------- an update or the end


def _check_step(parsed: ParsedInstruction, op: str, step: str) -> None:
    start = _start_of(parsed.operands)
    if start is None:
        wrong = parsed.operands[0] if parsed.operands else None
        label = f"`{wrong.name}` is {wrong.opcode}" if wrong else "there is no operand"
        message = f"the operand of {parsed.opcode} is one async-start or async-update"
        raise HloError(message, parsed.span, "async", label)
    place = f"`{start.name}` is at {start.span.place()}"
    _check_wrapped(parsed, op, step, start, place)
    thread = _thread(start)
    said = parsed.attributes.get(THREAD)
    if said is not None and said.text.strip('"') != thread:
        message = f"`{start.name}` runs on the thread {thread}, not on {said.text}"
        raise HloError(message, said.span, "async", "another thread", [place])
    before = parsed.operands[0].declared_shape
    if step == "update" and before and parsed.shape and not parsed.shape.compatible(before):
        message = f"{parsed.opcode} has the shape of its operand"
        label = f"it is {parsed.shape}"
        raise HloError(message, parsed.span, "async", label, [place], f"write {before}")


def _check_wrapped(
    parsed: ParsedInstruction, op: str, step: str, start: Instruction, place: str
) -> None:
    """The op and the computation that a step names are those that its start wraps."""
    wrapped = start.called_computations[0] if start.called_computations else None
    if wrapped is None:
        return
    wanted = wrapped.root.opcode
    if op and wanted != op:
        message = f"{parsed.opcode} belongs to a start of {op}, but `{start.name}` starts {wanted}"
        hint = f"write {wanted}-{step}"
        raise HloError(message, parsed.span, "async", f"{wanted} is started", [place], hint)
    if parsed.called and parsed.called != (wrapped,):
        message = f"`{start.name}` has started `{wrapped.name}`, not `{parsed.called[0].name}`"
        span = parsed.attributes["calls"].span if "calls" in parsed.attributes else parsed.span
        raise HloError(message, span, "async", "another computation", [place])


def _start_of(operands: tuple[Instruction, ...]) -> Instruction | None:
    """The start that the one operand is, or goes back to."""
    while len(operands) == 1 and operands[0].opcode == "async-update":
        operands = operands[0].operands
    return operands[0] if len(operands) == 1 and operands[0].opcode == "async-start" else None


def _thread(start: Instruction) -> str:
    said = start.attributes.get(THREAD)
    if said is None and start.called_computations:
        said = start.called_computations[0].attributes.get("execution_thread")
    return said.text.strip('"') if said else MAIN

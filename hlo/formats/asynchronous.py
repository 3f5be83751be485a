"""Asynchronous ops: ``negate-start`` is short for an ``async-start`` of a computation.

``s = (..) add-start(a, b)`` starts an ``add`` that runs concurrently with other instructions;
``add-done(s)`` waits for its result. The parser expands the short form, as XLA does, to an
``async-start`` that calls a computation with the ``add``:

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

Operands and results may be bound late: a start has the first operands, or the result ``()``; an
update adds operands or binds the result, and so does the end.

Source: XLA ``docs/async_ops.md``; ``xla/hlo/parser/hlo_parser.cc`` for the checks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from hlo.formats.parser_state import ParserState
from hlo.modules.module import NO_ATTRIBUTES, Computation, Instruction
from hlo.ops.opcodes import ASYNCHRONOUS, OPCODES
from hlo.shapes.shape import AnyShape, TupleShape
from hlo.text.source import HloError, Span
from hlo.text.syntax import AttributeText

SUFFIXES: Final = ("-start", "-update", "-done")
THREAD: Final = "async_execution_thread"
MAIN: Final = "main"  # the default thread

# attributes of the start itself; the wrapped op has all others
_START_ATTRIBUTES: Final = frozenset(
    {"control-predecessors", "frontend_attributes", "metadata", "origin", "sharding", "statistics"}
)
_SHARED_ATTRIBUTE: Final = "backend_config"
_UNBOUND: Final = TupleShape(())  # the result of a start that binds it late


@dataclass(frozen=True, slots=True)
class ParsedInstruction:
    """The parsed parts of one instruction; `span` is the opcode's."""

    span: Span
    opcode: str
    shape: AnyShape | None
    operands: tuple[Instruction, ...]
    attributes: Mapping[str, AttributeText]
    called: tuple[Computation, ...]


def resolve_short_form(parsed: ParsedInstruction, state: ParserState) -> ParsedInstruction:
    """Expand the short form of an asynchronous op and check it against its start.

    Raises:
        HloError: an update or a done without a matching start, or an ill-formed start.
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
        if op == "call" and any(_binds_more(c, parsed.operands) for c in parsed.called):
            parsed = _with_callee(parsed)
        elif op:
            parsed = _with_computation(parsed, op, state)
        return _require_one_call(parsed, state)
    _check_step(parsed, op, step)
    return replace(parsed, opcode=f"async-{step}")


# ---------------------------------------------------------------- a start


def _check_start(parsed: ParsedInstruction) -> None:
    match parsed.shape:
        case TupleShape((TupleShape(elements), _, *_)) if len(elements) == len(parsed.operands):
            return
        case None:
            label = "missing shape"
        case _:
            label = f"its shape is {parsed.shape}"
    operands = ", ".join(str(o.declared_shape or "f32[]") for o in parsed.operands)
    message = f"{parsed.opcode} must have a shape ((operands), results, state)"
    hint = f"write (({operands}), results, u32[]) before {parsed.opcode}"
    raise HloError(message, parsed.span, "async", label, help=hint)


def _binds_more(called: Computation, operands: tuple[Instruction, ...]) -> bool:
    """True if a computation has more parameters than the operands of its start."""
    return called.opcodes.count("parameter") > len(operands)


def _with_callee(parsed: ParsedInstruction) -> ParsedInstruction:
    """Return an ``async-start`` of the callee of a call whose other operands are bound late."""
    attributes = {
        "calls" if name == "to_apply" else name: value for name, value in parsed.attributes.items()
    }
    return replace(parsed, opcode="async-start", attributes=attributes)


def _with_computation(parsed: ParsedInstruction, op: str, state: ParserState) -> ParsedInstruction:
    """Return an ``async-start`` of a new computation with the op `op`."""
    assert isinstance(parsed.shape, TupleShape)
    computation = _computation(parsed, op, state)
    attributes = {"calls": AttributeText.of(computation.name)}
    for name, value in parsed.attributes.items():
        if name in _START_ATTRIBUTES or name in (_SHARED_ATTRIBUTE, THREAD):
            attributes[name] = value
    return replace(parsed, opcode="async-start", attributes=attributes, called=(computation,))


def _computation(parsed: ParsedInstruction, op: str, state: ParserState) -> Computation:
    """Return a computation with only the op and a parameter for each operand."""
    assert isinstance(parsed.shape, TupleShape)
    inputs, result = parsed.shape.elements[:2]
    assert isinstance(inputs, TupleShape)
    computation = Computation(state.fresh_name("async_wrapped"), state.result, parsed.span.start)
    start, end = parsed.span.start, parsed.span.end
    attributes = {
        name: value
        for name, value in parsed.attributes.items()
        if name not in _START_ATTRIBUTES and name != THREAD
    }
    made = [
        Instruction(
            name=f"async_param.{number}" if number else "async_param",
            opcode="parameter",
            shape=parsed.operands[number].declared_shape or shape,
            values=(AttributeText.of(str(number)), NO_ATTRIBUTES),
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
            values=(None, attributes),
            called_computations=parsed.called,
            computation=computation,
            index=len(made),
            start=start,
            end=end,
        )
    )
    computation.complete(tuple(made), made[-1])
    computation.end = end
    if THREAD in parsed.attributes:
        computation.attributes = {"execution_thread": parsed.attributes[THREAD]}
    state.computations[computation.name] = computation
    return computation


def _require_one_call(parsed: ParsedInstruction, state: ParserState) -> ParsedInstruction:
    """Return `parsed`; raise `HloError` if another start calls the same computation."""
    for computation in parsed.called:
        first = state.started.setdefault(computation.name, parsed.span)
        if first is not parsed.span:
            message = f"two starts call the computation `{computation.name}`"
            note = f"the first start is at {first.place()}"
            hint = "call a separate computation from each start"
            raise HloError(message, parsed.span, "async", "the second start", [note], hint)
    return parsed


# ---------------------------------------------------------------- an update or the end


def _check_step(parsed: ParsedInstruction, op: str, step: str) -> None:
    start = _start_of(parsed.operands)
    if start is None or (step == "done" and len(parsed.operands) > 1):
        wrong = parsed.operands[0] if parsed.operands else None
        label = f"`{wrong.name}` is of opcode {wrong.opcode}" if wrong else "no operand"
        if start is not None:
            label = f"{len(parsed.operands)} operands"
        message = f"{parsed.opcode} must have one operand, an async-start or async-update"
        raise HloError(message, parsed.span, "async", label)
    place = f"`{start.name}` is at {start.span.place()}"
    _check_wrapped(parsed, op, step, start, place)
    thread = _thread(start)
    named = parsed.attributes.get(THREAD)
    if named is not None and named.text.strip('"') != thread:
        theirs = f'`{start.name}` runs on thread "{thread}"'
        message = f"{parsed.opcode} specifies thread {named.text}, but {theirs}"
        hint = f'write {THREAD}="{thread}"'
        raise HloError(message, named.span, "async", "different thread", [place], hint)
    before = parsed.operands[0].declared_shape
    if step == "update" and before and parsed.shape and not _may_follow(parsed, before):
        message = f"{parsed.opcode} must have the shape of its operand, {before}"
        label = f"its shape is {parsed.shape}"
        raise HloError(message, parsed.span, "async", label, [place], f"write {before}")
    _bind_result(parsed, start, step)


def _may_follow(parsed: ParsedInstruction, before: AnyShape) -> bool:
    """True if an update has the shape of its operand, up to what it binds late.

    Its other operands extend element 0, the operands that are bound.  A result that is bound
    replaces ``()``; the operands that do not extend element 0 are its buffers.
    """
    assert parsed.shape is not None
    given = [operand.declared_shape for operand in parsed.operands[1:]]
    match before, parsed.shape:
        case TupleShape((TupleShape(bound), old, *rest)), TupleShape(
            (TupleShape(now), new, *after)
        ):
            count = len(now) - len(bound)
            added = [
                a is None or a.compatible(b) for a, b in zip(given, now[len(bound) :], strict=False)
            ]
            is_bound_late = old == _UNBOUND != new
            return (
                TupleShape(now[: len(bound)]).compatible(TupleShape(bound))
                and TupleShape(tuple(after)).compatible(TupleShape(tuple(rest)))
                and (is_bound_late or new.compatible(old))
                and (count == len(given) or (0 <= count < len(given) and is_bound_late))
                and all(added)
            )
        case _:
            return not given and parsed.shape.compatible(before)


def _bind_result(parsed: ParsedInstruction, start: Instruction, step: str) -> None:
    """Declare the result that a step binds late as that of the op in the short form."""
    shape = parsed.shape
    if step == "update":
        shape = shape.elements[1] if isinstance(shape, TupleShape) else None
    for computation in start.called_computations:
        root = computation.root
        is_short_form = root.start == computation.start  # `_computation` made it
        if is_short_form and shape is not None and root.declared_shape == _UNBOUND:
            root.declared_shape = root._shape = shape


def _check_wrapped(
    parsed: ParsedInstruction, op: str, step: str, start: Instruction, place: str
) -> None:
    """Reject an update or a done whose op or computation differs from that of its start."""
    wrapped = start.called_computations[0] if start.called_computations else None
    if wrapped is None:
        return
    wanted = wrapped.root.opcode
    if _binds_more(wrapped, start.operands):
        wanted = "call"  # `_with_callee`
    if op and wanted != op:
        message = f"{parsed.opcode} requires a start of {op}, but `{start.name}` starts {wanted}"
        hint = f"write {wanted}-{step}"
        raise HloError(message, parsed.span, "async", "different op", [place], hint)
    if parsed.called and parsed.called != (wrapped,):
        callee = parsed.called[0].name
        message = f"{parsed.opcode} calls `{callee}`, but `{start.name}` calls `{wrapped.name}`"
        span = parsed.attributes["calls"].span if "calls" in parsed.attributes else parsed.span
        hint = f"write calls={wrapped.name}"
        raise HloError(message, span, "async", "different computation", [place], hint)


def _start_of(operands: tuple[Instruction, ...]) -> Instruction | None:
    """Return the start of the first operand, through updates; None if there is none."""
    while operands and operands[0].opcode == "async-update":
        operands = operands[0].operands
    return operands[0] if operands and operands[0].opcode == "async-start" else None


def _thread(start: Instruction) -> str:
    name = start.attributes.get(THREAD)
    if name is None and start.called_computations:
        name = start.called_computations[0].attributes.get("execution_thread")
    return name.text.strip('"') if name else MAIN

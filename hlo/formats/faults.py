"""Errors of the parser: invalid syntax, undefined and duplicate names, contradicting shapes."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from difflib import get_close_matches

from hlo.modules.module import Computation, Instruction
from hlo.shapes.shape import AnyShape, no_shape
from hlo.text.lexer import COMMA, NAME, expected, token
from hlo.text.source import HloError, Source, Span

_NAMELESS = token(r"[,)]")
_ELIDED = token(r"\.\.\.")
_HEADER = token(r"HloModule\b")
_OPERAND_NAME = token(rf"%?{NAME}(?!\s*[\[({{])")


def nearest(name: str, known: Collection[str]) -> str:
    """Return a hint with the known name closest to `name`; empty if none is close.

    >>> nearest("dimension", ["dimensions", "slice"])
    'did you mean `dimensions`?'
    """
    near = get_close_matches(name, known, 1)
    return f"did you mean `{near[0]}`?" if near else ""


def duplicate(kind: str, span: Span, first: Span) -> HloError:
    """Return the error for the second definition of a name."""
    note = f"`{span.text}` is first defined at {first.place()}"
    message = f"duplicate {kind} `{span.text}`"
    return HloError(message, span, "duplicate", "defined again", [note])


def second_root(span: Span, first: Instruction) -> HloError:
    """Return the error for a second ``ROOT`` in one computation."""
    note = f"the first ROOT is `{first.name}` at {first.span.place()}"
    message = "a computation must have one ROOT"
    return HloError(message, span, "duplicate", "the second ROOT", [note])


def second_entry(span: Span, first: Computation) -> HloError:
    """Return the error for a second ``ENTRY`` in one module."""
    note = f"the first ENTRY is `{first.name}` at {first.span.place()}"
    message = "a module must have one ENTRY"
    return HloError(message, span, "duplicate", "the second ENTRY", [note])


def undefined_operand(
    name: str, span: Span, known: Mapping[str, Instruction], needs_shape: bool
) -> HloError:
    """Return the error for an operand that no earlier instruction of the computation defines."""
    hint = nearest(name, known)
    if needs_shape and not hint:
        hint = f"write a shape to make the operand a parameter: f32[2] {name}"
    rule = "operands must precede their users"
    notes = _defined_later(rf"%?({re.escape(name)})\s*=", span, rule)
    return _undefined("operand", name, span, notes, hint)


def undefined_computation(name: str, span: Span, known: Mapping[str, Computation]) -> HloError:
    """Return the error for a call of a computation that is not defined before its caller."""
    rule = "callees must precede their callers, so calls cannot be recursive"
    pattern = rf"^[ \t]*(?:ENTRY\s+)?%?({re.escape(name)})\s*[({{]"
    notes = _defined_later(pattern, span, rule)
    return _undefined("computation", name, span, notes, nearest(name, known))


def _undefined(kind: str, name: str, span: Span, notes: list[str], hint: str) -> HloError:
    label = "used before its definition" if notes else f"no {kind} of this name"
    return HloError(f"{kind} `{name}` is not defined", span, "undefined", label, notes, hint)


def _defined_later(pattern: str, span: Span, rule: str) -> list[str]:
    """Return a note with the location of a later definition and the rule it breaks, if any."""
    definition = re.compile(pattern, re.MULTILINE).search(span.source.text)
    if not definition:
        return []
    place = span.source.span(*definition.span(1)).place()
    return [f"`{definition[1]}` is defined at {place}; {rule}"]


# ---------------------------------------------------------------- shapes


def wrong_operand_shape(operand: Instruction, shape: AnyShape, span: Span) -> HloError:
    """Return the error for an operand whose written shape contradicts its declaration."""
    declared = operand.declared_shape
    message = f"operand `{operand.name}` is written as {shape}, but declared {declared}"
    note = f"`{operand.name}` is declared at {operand.span.place()}"
    hint = f"write {declared}, or omit the shape of the operand"
    return HloError(message, span, "shape", f"declared {declared}", [note], hint)


def wrong_result_shape(computation: Computation, shape: AnyShape, span: Span) -> HloError:
    """Return the error for a result shape of a computation that contradicts its root."""
    root, declared = computation.root, computation.root.declared_shape
    message = f"`{computation.name}` is declared to return {shape}, but its root is {declared}"
    note = f"the root `{root.name}` is at {root.span.place()}"
    label = f"the root is {declared}"
    return HloError(message, span, "shape", label, [note], f"write {declared}")


# ---------------------------------------------------------------- syntax


def no_computation(source: Source, position: int) -> HloError:
    """Return the error for text between computations that is not a computation."""
    if _HEADER.match(source.text, position):
        hint = "separate modules by lines `// -----` and call hlo.parse_all"
        return expected("the end of the module", source, position, hint)
    return expected("a computation such as ENTRY main { ... }", source, position)


def no_module_name(source: Source, position: int) -> HloError:
    """Return the error for a header without the name of the module."""
    hint = ""
    if COMMA.match(source.text, position):
        hint = (
            "a fingerprint omits names, and calls cannot be resolved without them; "
            "print the module with names"
        )
    return expected("a name after HloModule", source, position, hint)


def no_instruction(source: Source, position: int) -> HloError:
    """Return the error for text in a computation that is not an instruction."""
    if comma := COMMA.match(source.text, position):
        message = "expected an attribute such as dimensions={0} after `,`"
        return HloError(message, source.span(comma.end() - 1), label="trailing comma")
    return expected("an instruction such as `name = f32[2] add(a, b)`, or `}`", source, position)


def no_opcode(source: Source, position: int, has_shape: bool) -> HloError:
    """Return the error for an instruction without an opcode."""
    if has_shape:
        return expected("an opcode and operands such as add(a, b)", source, position)
    if COMMA.match(source.text, position):
        return no_instruction(source, position)
    return no_shape("a shape such as f32[2,3]", source, position)


def no_operand(source: Source, position: int, is_read: bool) -> HloError:
    """Return the error for an ill-formed list of operands."""
    if _NAMELESS.match(source.text, position):
        return no_operand_name(source, position)
    if _ELIDED.match(source.text, position):
        hint = "`...` elides operands; print the module with all operands, without `compact`"
        return expected("the name of an operand", source, position, hint)
    name = _OPERAND_NAME.match(source.text, position)
    if is_read or name:
        position = name.end() if name and not is_read else position
        return expected("`,` or `)` after an operand", source, position)
    return no_shape("an operand such as %name", source, position)


def no_operand_name(source: Source, position: int) -> HloError:
    """Return the error for an operand without a name."""
    hint = "operands are resolved by name; print the module with operand names"
    return expected("the name of an operand", source, position, hint)


def no_instructions(source: Source, position: int) -> HloError:
    """Return the error for a computation without instructions."""
    message = "a computation must have at least one instruction"
    return HloError(message, source.span(position), label="empty computation")


def no_text(source: Source) -> HloError:
    """Return the error for a text of only white space and comments."""
    message = "expected HLO text, found only white space and comments"
    return HloError(message, source.span(len(source.text)), label="ends here")

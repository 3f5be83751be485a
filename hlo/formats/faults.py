"""Errors of the parser: invalid syntax, undefined and duplicate names, contradicting shapes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from hlo.modules.module import Computation, Instruction
from hlo.shapes.shape import AnyShape, no_shape
from hlo.text.lexer import COMMA, NAME, skip, syntax_error, token
from hlo.text.names import nearest
from hlo.text.source import HloError, Source, Span

_SEPARATE = (
    "separate modules by lines `// -----`: hlo.parse_all, hlo.load_all and hlo-indexing read all"
)
_NAMELESS = token(r"[,)]")
_ELIDED = token(r"\.\.\.")
_HEADER = token(r"HloModule\b")
_HEADER_OF_LINE = re.compile(rf"^([^\n\w]{{0,40}})HloModule {NAME}(?:,|[ \t]*$)", re.MULTILINE)
"""The header of a module, with the signs before it."""
_ENTRY = re.compile(r"^[ \t]*ENTRY\b", re.MULTILINE)
_COMPUTATION = token(rf"(?:ENTRY\b|%?{NAME}\s*(?:\([^\n]*)?\{{)")
_CLOSING = {"{": "}", "[": "]", "(": ")"}
_CONSTANT = re.compile(r"(?:\b([a-z]\w*)\[[^\]]*\](?:\{[^}]*\})?\s*)?\bconstant\s*\(\s*%?$")
_INSTRUCTION = re.compile(r"^\s*(?:ROOT\s+)?%?[A-Za-z_][\w.\-]*\s*=[^\n]*\(", re.MULTILINE)
_WORD = token(NAME)
_OPERAND_NAME = token(rf"%?{NAME}(?!\s*[\[({{])")


def duplicate(kind: str, span: Span, first: Span) -> HloError:
    """Return the error for the second definition of a name.

    A computation after ENTRY may belong to a second module.
    """
    note = f"`{span.text}` is first defined at {first.place()}"
    message = f"duplicate {kind} `{span.text}`"
    is_later = kind == "computation" and _ENTRY.search(span.source.text, first.start, span.start)
    hint = _SEPARATE if is_later else ""
    return HloError(message, span, "duplicate", "defined again", [note], hint)


def duplicate_attribute(span: Span, first: Span) -> HloError:
    """Return the error for the second occurrence of an attribute; `first` is the first value."""
    start = span.source.text.rfind(span.text, 0, first.start)
    note = f"`{span.text}` is first given at {span.source.span(start).place()}"
    message = f"duplicate attribute `{span.text}`"
    return HloError(message, span, "duplicate", "given again", [note])


def second_root(span: Span, first: Instruction) -> HloError:
    """Return the error for a second ``ROOT`` in one computation."""
    note = f"the first ROOT is `{first.name}` at {first.span.place()}"
    message = "a computation must have one ROOT"
    return HloError(message, span, "duplicate", "the second ROOT", [note])


def second_entry(span: Span, first: Computation) -> HloError:
    """Return the error for a second ``ENTRY`` in one module."""
    note = f"the first ENTRY is `{first.name}` at {first.span.place()}"
    message = "a module must have one ENTRY"
    return HloError(message, span, "duplicate", "the second ENTRY", [note], _SEPARATE)


def undefined_operand(
    name: str, span: Span, known: Mapping[str, Instruction], needs_shape: bool
) -> HloError:
    """Return the error for an operand that no earlier instruction of the computation defines."""
    text = span.source.text
    if constant := _CONSTANT.search(text, text.rfind("\n", 0, span.start) + 1, span.start):
        wanted = f"{constant[1]} value" if constant[1] else "literal"
        article = "an" if wanted[0] in "fs" else "a"
        return HloError(f"expected {article} {wanted}, found `{name}`", span, "literal")
    hint = nearest(name, known)
    if needs_shape and not hint:
        hint = f"write a shape to make the operand a parameter: f32[2] {name}"
    start, end = text.rfind("\n}", 0, span.start) + 1, text.find("\n}", span.start)
    pattern = re.compile(rf"(?<![\w.\-])%?({re.escape(name)})\s*=\s*[a-z(]")
    definition = pattern.search(text, start, end if end >= 0 else len(text))
    if not definition:
        label = "no operand of this name"
        message = f"operand `{name}` is not defined"
        return HloError(message, span, "undefined", label, help=hint)
    message = f"operand `{name}` is used before its definition"
    return _used_early(message, span, definition, "operands must precede their users")


def undefined_computation(name: str, span: Span, known: Mapping[str, Computation]) -> HloError:
    """Return the error for a call of a computation that is not defined before its caller."""
    pattern = rf"^[ \t]*(?:ENTRY\s+)?%?({re.escape(name)})\s*[({{]"
    definition = re.compile(pattern, re.MULTILINE).search(span.source.text)
    if not definition:
        label = "no computation of this name"
        message = f"computation `{name}` is not defined"
        return HloError(message, span, "undefined", label, help=nearest(name, known))
    if definition.start(1) < span.start:  # an enclosing computation
        message = f"computation `{name}` calls itself"
        return _used_early(message, span, definition, "calls cannot be recursive")
    message = f"computation `{name}` is used before its definition"
    return _used_early(message, span, definition, "callees must precede their callers")


def _used_early(message: str, span: Span, definition: re.Match[str], rule: str) -> HloError:
    """Return the error for a name used before its definition, with the broken rule."""
    place = span.source.span(*definition.span(1)).place()
    note = f"`{definition[1]}` is defined at {place}; {rule}"
    return HloError(message, span, "undefined", notes=[note])


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
        return syntax_error("the end of the module", source, position, _SEPARATE)
    return syntax_error("a computation such as ENTRY main { ... }", source, position)


def no_module_name(source: Source, position: int) -> HloError:
    """Return the error for a header without the name of the module."""
    hint = ""
    if COMMA.match(source.text, position):
        hint = (
            "a fingerprint omits names, and calls cannot be resolved without them; "
            "print the module with names"
        )
    return syntax_error("a name after HloModule", source, position, hint)


def no_instruction(
    source: Source,
    position: int,
    last: Instruction | None = None,
    around: Computation | None = None,
) -> HloError:
    """Return the error for text in a computation that is no instruction.

    Args:
        last: the last instruction before it.
        around: the computation.
    """
    if comma := COMMA.match(source.text, position):
        return _no_attribute(source, comma.end())
    for name, value in last.attributes.items() if last else ():
        if _INSTRUCTION.search(value.text):  # its closing bracket is one of a later line
            label = f"opened here, in the value of `{name}`"
            span = source.span(value.start)
            bracket = _CLOSING.get(span.text, "}")
            message = f"unclosed `{span.text}`: expected `{bracket}` before the next instruction"
            return HloError(message, span, label=label)
    error = syntax_error(
        "an instruction such as `name = f32[2] add(a, b)`, or `}`", source, position
    )
    if around is not None and error.span.start >= len(source.text):
        error.notes = tuple(_open_brackets(source, last, around))
    elif around is not None and _COMPUTATION.match(source.text, error.span.start):
        place = source.span(around.start).place()
        error.notes = (f"the body of `{around.name}` at {place} is not closed before it",)
    return error


def _open_brackets(source: Source, last: Instruction | None, around: Computation) -> Iterator[str]:
    """Yield notes on the brackets that are open at the end of the text, innermost first."""
    for name, value in last.attributes.items() if last else ():
        if "\n" in value.text.strip():
            place = source.span(value.start).place()
            yield f"the value of `{name}`, opened at {place}, ends on a later line"
    yield f"the body of `{around.name}`, opened at {source.span(around.start).place()}, has no `}}`"


def _no_attribute(source: Source, position: int) -> HloError:
    """Return the error for a comma after an instruction, before `position`, without attribute."""
    start = skip(source.text, position)
    if "\n" in source.text[position:start] or source.text[start : start + 1] in ("", "}"):
        message = "expected an attribute such as dimensions={0} after `,`"
        return HloError(message, source.span(position - 1), label="trailing comma")
    if name := _WORD.match(source.text, position):
        return syntax_error(f"`=` after `{name[0].strip()}`", source, name.end())
    return syntax_error("the name of an attribute", source, position)


def no_opcode(source: Source, position: int, has_shape: bool) -> HloError:
    """Return the error for an instruction without an opcode."""
    if has_shape:
        return syntax_error("an opcode and operands such as add(a, b)", source, position)
    if COMMA.match(source.text, position):
        return no_instruction(source, position)
    if source.text.startswith("\ufeff"):
        hint = "save the file as UTF-8 without a byte order mark"
        return HloError(
            "unexpected byte order mark", source.span(0), "encoding", "U+FEFF", help=hint
        )
    if position == skip(source.text, 0):
        wanted = "`HloModule NAME`, a computation such as ENTRY main { ... }, or an instruction"
        return syntax_error(wanted, source, position, _before_module(source.text))
    return no_shape("a shape such as f32[2,3]", source, position)


def _before_module(text: str) -> str:
    """Return the repair of a text that has something else before its module; empty if unknown."""
    header = _HEADER_OF_LINE.search(text)
    if header is None:
        return ""
    if header[1]:
        return f"`HloModule` is preceded by `{header[1].strip()}`: remove this from each line"
    line = text.count("\n", 0, header.start()) + 1
    return f"the module starts at line {line}: remove the lines before it"


def no_operand(source: Source, position: int, is_read: bool) -> HloError:
    """Return the error for an ill-formed list of operands."""
    if _NAMELESS.match(source.text, position):
        return no_operand_name(source, position)
    if _ELIDED.match(source.text, position):
        hint = "`...` elides operands; print the module with all operands, without `compact`"
        return syntax_error("the name of an operand", source, position, hint)
    name = _OPERAND_NAME.match(source.text, position)
    if is_read or name:
        position = name.end() if name and not is_read else position
        return syntax_error("`,` or `)` after an operand", source, position)
    return no_shape("an operand such as %name", source, position)


def no_operand_name(source: Source, position: int) -> HloError:
    """Return the error for an operand without a name."""
    hint = "operands are resolved by name; print the module with operand names"
    return syntax_error("the name of an operand", source, position, hint)


def no_instructions(source: Source, position: int) -> HloError:
    """Return the error for a computation without instructions."""
    message = "a computation must have at least one instruction"
    return HloError(message, source.span(position), label="empty computation")


def no_text(source: Source) -> HloError:
    """Return the error for an empty text, or one of only white space and comments."""
    contents = "only white space and comments" if source.text else "an empty text"
    message = f"expected HLO text, found {contents}"
    return HloError(message, source.span(len(source.text)), label="ends here")

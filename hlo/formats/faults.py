"""What the parser says is wrong: a text that is no HLO, a name that stands for nothing."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from difflib import get_close_matches

from hlo.modules.module import Computation, Instruction
from hlo.shapes.shape import AnyShape, no_shape
from hlo.text.lexer import COMMA, NAME, expected, word
from hlo.text.source import HloError, Source, Span

_NAMELESS = word(r"[,)]")
_ELIDED = word(r"\.\.\.")
_HEADER = word(r"HloModule\b")
_OPERAND_NAME = word(rf"%?{NAME}(?!\s*[\[({{])")


def nearest(name: str, known: Collection[str]) -> str:
    """A hint that names the known name most like `name`; empty when none is like it.

    >>> nearest("dimension", ["dimensions", "slice"])
    'do you mean `dimensions`?'
    """
    found = get_close_matches(name, known, 1)
    return f"do you mean `{found[0]}`?" if found else ""


def duplicate(what: str, span: Span, first: Span) -> HloError:
    """The error for a name that is given for the second time."""
    note = f"the first one is at {first.place()}"
    message = f"the {what} `{span.text}` is defined twice"
    return HloError(message, span, "duplicate", "the second one", [note])


def second_root(span: Span, first: Instruction) -> HloError:
    """The error for a second ``ROOT`` in one computation."""
    note = f"the first one is `{first.name}` at {first.span.place()}"
    return HloError("a computation has one ROOT", span, "duplicate", "the second one", [note])


def second_entry(span: Span, first: Computation) -> HloError:
    """The error for a second ``ENTRY`` in one module."""
    note = f"the first one is `{first.name}` at {first.span.place()}"
    return HloError("a module has one ENTRY", span, "duplicate", "the second one", [note])


def undefined_operand(
    name: str, span: Span, known: Mapping[str, Instruction], needs_shape: bool
) -> HloError:
    """The error for an operand that no earlier instruction of the computation defines."""
    hint = nearest(name, known)
    if needs_shape and not hint:
        hint = f"give the operand a shape to make it a parameter: f32[2] {name}"
    notes = _defined_later(rf"%?({re.escape(name)})\s*=", span, "operands come before their users")
    return _undefined("operand", name, span, notes, hint)


def undefined_computation(name: str, span: Span, known: Mapping[str, Computation]) -> HloError:
    """The error for a call of a computation that does not stand before its caller."""
    rule = "computations come before those that call them, and so cannot call in a circle"
    pattern = rf"^[ \t]*(?:ENTRY\s+)?%?({re.escape(name)})\s*[({{]"
    notes = _defined_later(pattern, span, rule)
    return _undefined("computation", name, span, notes, nearest(name, known))


def _undefined(what: str, name: str, span: Span, notes: list[str], hint: str) -> HloError:
    label = "not defined before here" if notes else f"no {what} of this name"
    return HloError(f"{what} `{name}` is not defined", span, "undefined", label, notes, hint)


def _defined_later(pattern: str, span: Span, rule: str) -> list[str]:
    """A note with the place where the name is defined all the same, and the rule it breaks."""
    found = re.compile(pattern, re.MULTILINE).search(span.source.text)
    if not found:
        return []
    place = span.source.span(*found.span(1)).place()
    return [f"`{found[1]}` is defined at {place}; {rule}"]


# ---------------------------------------------------------------- shapes


def wrong_operand_shape(operand: Instruction, shape: AnyShape, span: Span) -> HloError:
    """The error for an operand that is written with another shape than it has."""
    declared = operand.declared_shape
    message = f"operand `{operand.name}` is said to be {shape}, but it is {declared}"
    note = f"`{operand.name}` is declared at {operand.span.place()}"
    return HloError(message, span, "shape", f"it is {declared}", [note])


def wrong_result_shape(computation: Computation, shape: AnyShape, span: Span) -> HloError:
    """The error for a computation that is said to give another shape than its root has."""
    root, declared = computation.root, computation.root.declared_shape
    message = f"`{computation.name}` is said to give {shape}, but its root is {declared}"
    note = f"the root `{root.name}` is at {root.span.place()}"
    return HloError(message, span, "shape", f"the root is {declared}", [note])


# ---------------------------------------------------------------- syntax


def no_computation(source: Source, position: int) -> HloError:
    """The error for text between computations that begins none."""
    help = ""  # noqa: A001 - the word of `HloError`
    if _HEADER.match(source.text, position):
        help = "put a line `// -----` between modules and use hlo.parse_all"  # noqa: A001
        return expected("the end of the module", source, position, help)
    return expected("a computation such as ENTRY main { ... }", source, position, help)


def no_module_name(source: Source, position: int) -> HloError:
    """The error for a header without the name of a module."""
    help = ""  # noqa: A001 - the word of `HloError`
    if COMMA.match(source.text, position):
        help = (  # noqa: A001
            "names are left out, as in a fingerprint, so that it is not known what calls what; "
            "print the module with names"
        )
    return expected("a name after HloModule", source, position, help)


def no_instruction(source: Source, position: int) -> HloError:
    """The error for text in a computation that begins no instruction."""
    if comma := COMMA.match(source.text, position):
        message = "expected an attribute such as dimensions={0} after `,`"
        return HloError(message, source.span(comma.end() - 1), label="nothing follows")
    what = "an instruction such as `name = f32[2] add(a, b)`, or `}`"
    return expected(what, source, position)


def no_opcode(source: Source, position: int, has_shape: bool) -> HloError:
    """The error for an instruction without an opcode where one should be."""
    if has_shape:
        return expected("an opcode and operands such as add(a, b)", source, position)
    if COMMA.match(source.text, position):
        return no_instruction(source, position)
    return no_shape("a shape such as f32[2,3]", source, position)


def no_operand(source: Source, position: int, is_read: bool) -> HloError:
    """The error for a list of operands that goes on, or does not, in the wrong way."""
    if _NAMELESS.match(source.text, position):
        return no_operand_name(source, position)
    if _ELIDED.match(source.text, position):
        hint = "`...` stands for some: print the module with all operands, not compact"
        return expected("the name of an operand", source, position, hint)
    name = _OPERAND_NAME.match(source.text, position)
    if is_read or name:
        position = name.end() if name and not is_read else position
        return expected("`,` or `)` after an operand", source, position)
    return no_shape("an operand such as %name", source, position)


def no_operand_name(source: Source, position: int) -> HloError:
    """The error for an operand of which the text has nothing, or only its shape."""
    help = (  # noqa: A001 - the word of `HloError`
        "which instruction it is cannot be guessed: print the module with operand names"
    )
    return expected("the name of an operand", source, position, help)


def no_instructions(source: Source, position: int) -> HloError:
    """The error for a computation that holds nothing."""
    message = "a computation holds at least one instruction"
    return HloError(message, source.span(position), label="none before here")


def no_text(source: Source) -> HloError:
    """The error for a text with nothing in it but white space and comments."""
    message = "expected HLO text, but there is none"
    return HloError(message, source.span(len(source.text)), label="nothing here")

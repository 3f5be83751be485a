"""Everything that is wrong in a module: the rules of ops, and those that no single op states.

XLA's parser refuses some texts for what they mean; ours parses them, so that they can be looked at,
and says here what is wrong, all of it in one go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from hlo import bind
from hlo.attributes import Cursor, Kind, integer, number
from hlo.attributes import word as any_word
from hlo.literal import read_literal
from hlo.source import HloError

if TYPE_CHECKING:
    from hlo.module import Computation, Instruction, Module

_MODES: Final = ("default", "highest")


def verify(module: Module) -> list[HloError]:
    """Everything that is wrong with the instructions of a module, in the order of the text.

    Ops are checked if they are registered, which ``import indexing`` does for those of HLO.

    >>> from hlo.parser import parse
    >>> module = parse("ENTRY e { p = f32[] parameter(1) ROOT c = u8[] constant(256) }")
    >>> [(error.span.column, error.message) for error in verify(module)]
    [(11, 'parameter 0 of `e` is missing: there is a parameter 1'), (57, '256 is no value of u8')]
    """
    errors = bind.verify(module)
    told = {(error.span.start, error.span.end) for error in errors}
    errors += [e for e in _errors(module) if (e.span.start, e.span.end) not in told]
    return sorted(errors, key=lambda error: error.span.start)


def _errors(module: Module) -> Iterator[HloError]:
    for computation in module.computations.values():
        yield from _parameter_errors(computation)
        for instruction in computation.instructions:
            yield from _value_errors(instruction)


def _parameter_errors(computation: Computation) -> Iterator[HloError]:
    """Parameters are numbered 0, 1, .., each once."""
    seen: dict[int, Instruction] = {}
    for instruction in computation.instructions:
        if instruction.opcode != "parameter" or instruction.literal is None:
            continue
        try:
            index = integer.parse(instruction.literal.span, "the number of a parameter")
        except HloError as error:
            yield error
            return
        if index in seen:
            note = f"the first one is `{seen[index].name}` at {seen[index].span.place()}"
            message = f"`{computation.name}` has two parameters {index}"
            yield HloError(message, instruction.span, "parameter", "the second one", [note])
        seen.setdefault(index, instruction)
    if seen and max(seen) >= len(seen):
        missing = next(k for k in range(len(seen) + 1) if k not in seen)
        message = (
            f"parameter {missing} of `{computation.name}` is missing: "
            f"there is a parameter {max(seen)}"
        )
        yield HloError(message, seen[max(seen)].span, "parameter", "numbers begin with 0")


def _value_errors(instruction: Instruction) -> Iterator[HloError]:
    try:
        if instruction.opcode == "constant" and instruction.literal is not None:
            read_literal(instruction.literal.span, instruction.shape)
        if (accuracy := instruction.attributes.get("result_accuracy")) is not None:
            result_accuracy.parse(accuracy.span, "`result_accuracy`")
    except HloError as error:
        if error.code != "elided" and instruction.start <= error.span.start < instruction.end:
            yield error


# ---------------------------------------------------------------- result_accuracy


def _accuracy(cursor: Cursor) -> dict[str, float | str]:
    cursor.expect("{")
    name = any_word.read(cursor)
    found: dict[str, float | str] = {}
    cursor.expect("=")
    if name == "mode":
        found[name] = any_word.read(cursor)
        if found[name] not in _MODES:
            raise cursor.fault(f"the mode is not one of {', '.join(_MODES)}")
    elif name == "tolerance":
        cursor.expect("{")
        while not cursor.accepts("}"):
            if found:
                cursor.accepts(",")
            field = any_word.read(cursor)
            if field not in ("atol", "rtol", "ulps"):
                raise cursor.fault(f"`{field}` is not one of atol, rtol, ulps")
            cursor.expect("=")
            found[field] = number.read(cursor)
    else:
        raise cursor.fault(f"`{name}` is neither mode nor tolerance")
    cursor.expect("}")
    return found


result_accuracy: Final = Kind(
    "an accuracy", "{tolerance={atol=1e-3,rtol=0,ulps=2}}", _accuracy, str
)
"""How exact the result of a function such as exponential is to be."""

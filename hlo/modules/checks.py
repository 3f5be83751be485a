"""Everything that is wrong in a module: the rules of ops, and those that no single op states.

XLA's parser refuses some texts for what they mean; ours parses them, so that they can be looked at,
and says here what is wrong, all of it in one go.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from hlo.modules import bind
from hlo.modules.calls import signature_errors
from hlo.modules.module import Computation, Instruction, Module
from hlo.ops.attributes import Cursor, Kind, enum, integer, number
from hlo.shapes.literal import read_literal
from hlo.shapes.shape import AnyShape, Shape, leaves
from hlo.shapes.tiling import tile_fault
from hlo.text.source import HloError


def verify(module: Module) -> list[HloError]:
    """Everything that is wrong with the instructions of a module, in the order of the text.

    Ops are checked if they are registered, which ``import indexing`` does for those of HLO.

    >>> from hlo.formats.parser import parse
    >>> module = parse("ENTRY e { p = f32[] parameter(1) ROOT c = u8[] constant(256) }")
    >>> [(error.span.column, error.message) for error in verify(module)]
    [(11, 'parameter 0 of `e` is missing: there is a parameter 1'), (57, '256 is no value of u8')]
    """
    errors = bind.verify(module)
    told = set(map(_place, errors))
    errors += [error for error in _errors(module) if _place(error) not in told]
    return sorted(errors, key=lambda error: error.span.start)


def _place(error: HloError) -> tuple[int, int, str]:
    return error.span.start, error.span.end, error.code


def _errors(module: Module) -> Iterator[HloError]:
    for computation in module.computations.values():
        yield from _parameter_errors(computation)
        for instruction in computation.instructions:
            yield from _value_errors(instruction)
            yield from _call_errors(instruction)
            if instruction.declared_shape and (fault := layout_fault(instruction.declared_shape)):
                message = f"the layout of `{instruction.name}` means nothing: {fault}"
                yield HloError(message, instruction.span, "layout")


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


def _call_errors(instruction: Instruction) -> Iterator[HloError]:
    """Called computations that do not fit; not asked of an instruction with other errors."""
    if not instruction.called_computations or bind.check_instruction(instruction) is not None:
        return
    try:
        op = instruction.op
        if op is not None:
            yield from signature_errors(instruction, op)
    except HloError:  # a shape in the called computation is wrong, and told there
        return


def _value_errors(instruction: Instruction) -> Iterator[HloError]:
    try:
        if instruction.opcode == "constant" and instruction.literal is not None:
            read_literal(instruction.literal.span, instruction.shape)
        if (accuracy := instruction.attributes.get("result_accuracy")) is not None:
            result_accuracy.parse(accuracy.span, "`result_accuracy`")
    except HloError as error:
        if error.code != "elided" and instruction.start <= error.span.start < instruction.end:
            yield error


@lru_cache(maxsize=1 << 12)
def layout_fault(shape: AnyShape) -> str:
    """Why a layout in `shape` puts no element anywhere, though it can be written; empty if none is.

    >>> from hlo.shapes.shape import parse_shape
    >>> layout_fault(parse_shape("f32[2,3]{1,0:T(8,0)}"))
    'a size of the tile (8,0) is not positive'
    """
    for _, leaf in leaves(shape):
        if not isinstance(leaf, Shape) or leaf.layout is None:
            continue
        for dimension, _ in leaf.layout.splits:
            if dimension >= leaf.rank:
                return f"SC(..) splits dimension {dimension} of {leaf.rank}"
        for tile in leaf.layout.tiles:
            if fault := tile_fault(tile):
                return fault
    return ""


# ---------------------------------------------------------------- result_accuracy


_part: Final = enum("mode", "tolerance")
_mode: Final = enum("default", "highest")
_limit: Final = enum("atol", "rtol", "ulps")


def _accuracy(cursor: Cursor) -> dict[str, float | str]:
    cursor.expect("{")
    name = _part.read(cursor)
    found: dict[str, float | str] = {}
    cursor.expect("=")
    if name == "mode":
        found[name] = _mode.read(cursor)
    else:
        cursor.expect("{")
        while not cursor.accepts("}"):
            if found:
                cursor.expect(",")
            limit = _limit.read(cursor)
            cursor.expect("=")
            found[limit] = number.read(cursor)
    cursor.expect("}")
    return found


result_accuracy: Final = Kind(
    "an accuracy", "{tolerance={atol=1e-3,rtol=0,ulps=2}}", _accuracy, str
)
"""How exact the result of a function such as exponential is to be."""

"""Verification of modules: the constraints of ops, and rules beyond a single op.

XLA's parser rejects some semantic errors; this parser accepts such texts, and `verify` reports all
errors of a module together.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from functools import lru_cache
from typing import Final

from hlo.arguments import checked
from hlo.modules.bind import op_class
from hlo.modules.calls import signature_errors
from hlo.modules.instruction_checks import check_instruction, instruction_errors
from hlo.modules.module import Computation, Instruction, Module
from hlo.modules.shardings import sharding_of
from hlo.ops.attributes import Kind, enum, integer, number
from hlo.shapes.literal import read_literal
from hlo.shapes.shape import AnyShape, Shape, leaves
from hlo.shapes.tiling import tile_fault
from hlo.text.cursor import Cursor
from hlo.text.source import HloError

_SHORT_NUMBER: Final = re.compile(r"\d{1,9}", re.ASCII)


@checked
def verify(module: Module) -> list[HloError]:
    """Return all semantic errors of a module, in text order.

    Checks the attributes, operands and declared shape of each instruction, literals, parameter
    numbers, called computations, layouts, shardings and the header's
    ``entry_computation_layout``. Only registered ops are checked; ``import indexing`` registers the
    ops of HLO. A valid module gives an empty list. Frontend attributes are free text: of shardings
    there, see `hlo.modules.shardings.sharding_warnings`.

    Source: XLA ``xla/service/hlo_verifier.cc``.

    >>> from hlo.formats.parser import parse
    >>> module = parse("ENTRY e { p = f32[] parameter(1) ROOT c = u8[] constant(256) }")
    >>> [(error.span.column, error.message) for error in verify(module)]
    [(11, '`e` has a parameter 1, but no parameter 0'), (57, '`256` is not a value of u8')]
    """
    errors = instruction_errors(module)
    reported = set(map(_location, errors))
    wrong = {error.span.start for error in errors if error.code == "shape"}
    errors += [error for error in _errors(module, wrong) if _location(error) not in reported]
    return sorted(errors, key=lambda error: error.span.start)


def _location(error: HloError) -> tuple[int, int, str]:
    return error.span.start, error.span.end, error.code


def _errors(module: Module, wrong: Collection[int]) -> Iterator[HloError]:
    """Yield the errors beyond single ops; `wrong` are the starts of instructions of wrong shape."""
    yield from _entry_layout_errors(module)
    for computation in module.computations.values():
        yield from parameter_errors(computation)
        for instruction in computation.instructions:
            yield from _value_errors(instruction)
            yield from _sharding_errors(instruction)
            if not wrong or not any(operand.start in wrong for operand in instruction.operands):
                yield from _call_errors(instruction)
            if instruction.declared_shape and (fault := layout_fault(instruction.declared_shape)):
                message = f"the layout of `{instruction.name}` is invalid: {fault}"
                yield HloError(message, instruction.span, "layout")
    yield from _fused_layout_errors(module)


def _fused_layout_errors(module: Module) -> Iterator[HloError]:
    """Yield an error for each op in a fusion that must keep a layout, but has another.

    The emitters of XLA compute an element and the elements that it reads at one position.
    """
    fusions = [each for each in module.instructions if each.opcode == "fusion"]
    for fused in dict.fromkeys([called for each in fusions for called in each.called_computations]):
        for instruction in fused.instructions:
            cls = op_class(instruction)
            # a copy that changes the type is a `convert` here, and may change the layout, too
            if cls is not None and cls.keeps_layout and instruction.opcode == cls.opcode:
                yield from _layout_changes(instruction)


def _layout_changes(instruction: Instruction) -> Iterator[HloError]:
    """Yield an error for each operand of the result's rank with another order of dimensions."""
    own = _order(instruction)
    for operand in instruction.operands:
        other = _order(operand)
        if own is not None and other is not None and len(other) == len(own) and other != own:
            here, there = (",".join(map(str, order)) for order in (own, other))
            yield HloError(
                f"`{instruction.name}` has the layout {{{here}}}, but its operand "
                f"`{operand.name}` has {{{there}}}",
                instruction.span,
                "layout",
                label=f"{instruction.opcode} in a fusion keeps the layout",
                help="copy the operand to the layout of the result",
            )


def _order(instruction: Instruction) -> tuple[int, ...] | None:
    """Return the order of dimensions of an array whose layout is printed, else None."""
    shape = instruction.declared_shape
    return shape.layout.minor_to_major if isinstance(shape, Shape) and shape.layout else None


def _entry_layout_errors(module: Module) -> Iterator[HloError]:
    """Yield an error for each shape of ``entry_computation_layout`` that the entry contradicts."""
    text = module.attributes.get("entry_computation_layout")
    if text is None or next(parameter_errors(module.entry), None):
        return
    entry, layout = module.entry, module.header("entry_computation_layout")
    if len(layout.parameters) != len(entry.parameters):
        counts = f"{len(layout.parameters)}, but `{entry.name}` has {len(entry.parameters)}"
        message = f"the number of parameters in entry_computation_layout is {counts}"
        yield HloError(message, text.span, "entry-layout")
        return
    declared = [(f"parameter {k}", shape) for k, shape in enumerate(layout.parameters)]
    instructions = (*entry.parameters, entry.root)
    pairs = zip((*declared, ("the result", layout.result)), instructions, strict=True)
    for (part, shape), instruction in pairs:
        actual = instruction.declared_shape
        if actual is not None and not shape.compatible(actual):
            message = f"{part} is {shape} in entry_computation_layout, but {actual} in the entry"
            note = f"`{instruction.name}` is declared at {instruction.span.place()}"
            yield HloError(message, text.span, "entry-layout", notes=[note])


def parameter_errors(computation: Computation) -> Iterator[HloError]:
    """Yield an error for each parameter number that is missing or duplicate."""
    seen: dict[int, Instruction] = {}
    for instruction in computation.instructions:
        if instruction.opcode != "parameter" or (text := instruction.literal_text) is None:
            continue
        try:
            index = int(text) if _SHORT_NUMBER.fullmatch(text) else _parameter_number(instruction)
        except HloError as error:
            yield error
            return
        if index in seen:
            note = f"the first parameter {index} is at {seen[index].span.place()}"
            message = f"duplicate parameter {index} of `{computation.name}`"
            yield HloError(message, instruction.span, "parameter", "defined again", [note])
        seen.setdefault(index, instruction)
    if seen and max(seen) >= len(seen):
        missing = next(k for k in range(len(seen) + 1) if k not in seen)
        message = f"`{computation.name}` has a parameter {max(seen)}, but no parameter {missing}"
        label = "parameters are numbered from 0"
        yield HloError(message, seen[max(seen)].span, "parameter", label)


def _parameter_number(parameter: Instruction) -> int:
    """Return the number of a parameter, any text."""
    assert parameter.literal is not None
    span = parameter.literal.span
    number = integer.parse(span, "the number of a parameter")
    if number < 0:
        message = f"the number of a parameter must not be negative: {number}"
        raise HloError(message, span, "parameter")
    return number


def _sharding_errors(instruction: Instruction) -> Iterator[HloError]:
    """Yield the error of the attribute ``sharding``, if it is invalid."""
    if instruction.text_of("sharding") is not None:
        try:
            sharding_of(instruction)
        except HloError as error:
            yield error


def _call_errors(instruction: Instruction) -> Iterator[HloError]:
    """Yield errors of called computations, for an instruction without other errors."""
    if not instruction.called_computations or check_instruction(instruction) is not None:
        return
    try:
        op = instruction.op
        if op is not None:
            yield from signature_errors(instruction, op)
    except HloError:  # an invalid shape in the called computation, reported there
        return


def _value_errors(instruction: Instruction) -> Iterator[HloError]:
    try:
        if instruction.opcode == "constant" and instruction.literal is not None:
            read_literal(instruction.literal.span, instruction.shape)
        if instruction.text_of("result_accuracy") is not None:
            accuracy = instruction.attributes["result_accuracy"]
            result_accuracy.parse(accuracy.span, "`result_accuracy`")
    except HloError as error:
        if error.code != "elided" and instruction.start <= error.span.start < instruction.end:
            yield error


@lru_cache(maxsize=1 << 11)
def layout_fault(shape: AnyShape) -> str:
    """Return the reason why a layout in `shape` is invalid; empty if every layout is valid.

    >>> from hlo.shapes.shape import parse_shape
    >>> layout_fault(parse_shape("f32[2,3]{1,0:T(8,0)}"))
    'the tile (8,0) has a size that is not positive'
    """
    for _, leaf in leaves(shape):
        if not isinstance(leaf, Shape) or leaf.layout is None:
            continue
        for dimension, _ in leaf.layout.splits:
            if dimension >= leaf.rank:
                return f"SC(..) splits dimension {dimension}, but the rank is {leaf.rank}"
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
    accuracy: dict[str, float | str] = {}
    cursor.expect("=")
    if name == "mode":
        accuracy[name] = _mode.read(cursor)
    else:
        cursor.expect("{")
        while not cursor.accepts("}"):
            if accuracy:
                cursor.expect(",")
            limit = _limit.read(cursor)
            cursor.expect("=")
            accuracy[limit] = number.read(cursor)
    cursor.expect("}")
    return accuracy


result_accuracy: Final = Kind(
    "an accuracy", "{tolerance={atol=1e-3,rtol=0,ulps=2}}", _accuracy, str
)
"""The requested accuracy of a function such as exponential."""

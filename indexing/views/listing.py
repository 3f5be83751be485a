"""The instructions of a module as aligned text and as JSON, as ``hlo-indexing ls`` prints them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from math import inf
from typing import TYPE_CHECKING, Any, Final, Literal

from hlo.shapes.shape import AnyShape, TupleShape
from hlo.text.names import counted_noun
from indexing.views.map_tables import Paint, plain, shape_text
from indexing.views.records import SCHEMA_VERSION, shape_record, source_record
from indexing.views.selection import size_in
from indexing.views.source_lines import lines_behind
from indexing.views.tables import fit_rows, omitted_lines

if TYPE_CHECKING:
    from hlo.modules.module import Computation, Instruction, Module

MARK: Final = 5
"""Columns before the name of an instruction."""

MAX_LISTED: Final = 6
"""Maximum number of operands, or elements of a tuple shape, that a line lists."""


def computation_lines(
    computation: Computation,
    paint: Paint = plain,
    with_source: bool = False,
    selected: Collection[Instruction] | None = None,
    width: int | None = None,
) -> Iterator[str]:
    """Yield a heading and one aligned line for each instruction of a computation.

    Args:
        with_source: end each line with the source of the instruction.
        selected: the instructions that are listed, in text order; by default, all.
        width: the number of columns of a terminal, for narrower columns.

    >>> import hlo
    >>> text = "ENTRY e { p = f32[4] parameter(0)  ROOT sum = f32[4] add(p, p) }"
    >>> print(*computation_lines(hlo.parse(text, "m.hlo").entry), sep=chr(10))
    m.hlo: ENTRY e: 2 instructions
         p    parameter  f32[4]  0
    ROOT sum  add        f32[4]  p, p
    """
    entry = "ENTRY " if computation is computation.module.entry else ""
    count = len(computation.instructions)
    noun = "instruction" if count == 1 else "instructions"
    instructions = computation.instructions if selected is None else selected
    part = "" if selected is None else f"{len(instructions)} of "
    file = computation.module.filename
    yield f"{file}: {entry}{paint(computation.name, 'name')}: {part}{count} {noun}"
    rows = [_cells(instruction, with_source) for instruction in instructions]
    fitted, _ = fit_rows(rows, width=None if width is None else width - MARK)
    for instruction, (line, *rest) in zip(instructions, fitted, strict=True):
        mark = "ROOT" if instruction.is_root else "    "
        yield f"{mark} {line.replace(instruction.name, paint(instruction.name, 'name'), 1)}"
        yield from (" " * MARK + each for each in rest)


def ranked_lines(
    module: Module,
    instructions: Sequence[Instruction],
    paint: Paint = plain,
    with_source: bool = False,
    width: int | None = None,
    unit: Literal["bytes", "elements"] | None = None,
) -> Iterator[str]:
    """Yield a heading and one aligned line for each instruction, with its computation.

    Args:
        instructions: instructions of any computations of the module, in the order of the lines.
        unit: begin each line with the size of the result in this unit.
        with_source: end each line with the source of the instruction.
        width: the number of columns of a terminal, for narrower columns.
    """
    count = sum(len(each.instructions) for each in module.computations.values())
    noun = "instruction" if count == 1 else "instructions"
    order = f", by {unit} of their results" if unit is not None else ""
    yield f"{module.filename}: {len(instructions):,} of {count:,} {noun}{order}"
    rows = []
    for each in instructions:
        name, *cells = _cells(each, with_source)
        size = "" if unit is None else _size_text(size_in(unit)(each))
        rows.append([size, f"{each.computation.name}/{name}", *cells])
    room = None if width is None else width - 2
    fitted, _ = fit_rows(rows, [0], width=room)
    omits = any(len(lines) > 1 for lines in fitted)
    if omits:  # long names are flush at the end, in place of the operands
        rows = [[size, opcode, shape, *more[1:], name] for size, name, opcode, shape, *more in rows]
        fitted, _ = fit_rows(rows, [0], width=room)
    for each, lines in zip(instructions, fitted, strict=True):
        for line in lines:
            yield f"  {line.replace(each.name, paint(each.name, 'name'), 1)}"
    yield from [f"  {line}" for line in omitted_lines(["operands"] * omits)]


def _size_text(size: float) -> str:
    return "unbounded" if size == inf else f"{int(size):,}"


def _cells(instruction: Instruction, with_source: bool) -> list[str]:
    """Return the texts of the columns of an instruction."""
    shape = short_shape(instruction.shape)
    cells = [instruction.name, instruction.opcode, shape, _inputs(instruction)]
    return [*cells, _source(instruction)] if with_source else cells


def _source(instruction: Instruction) -> str:
    """Return the source of an instruction, and how many other lines made what is inside of it."""
    lines = lines_behind(instruction)
    own = instruction.source
    more = sum(map(len, lines.values())) - (own.line in lines.get(own.file or "", ()))
    others = f" and {counted_noun(more, 'more line')}" if more > 0 else ""
    return f"{own.frame}{others}: {own.op_name}" if own.frame and own.op_name else f"{own}{others}"


def short_shape(shape: AnyShape) -> str:
    """Return the text of a shape without layouts; tuples of many elements are elided.

    >>> import hlo
    >>> short_shape(hlo.parse_shape(f"({', '.join(['f32[2]'] * 9)})"))
    '(f32[2], f32[2], f32[2], f32[2], f32[2], f32[2], … 3 more)'
    """
    if not isinstance(shape, TupleShape):
        return shape_text(shape)
    return f"({_elide_list([short_shape(each) for each in shape.elements])})"


def _elide_list(texts: list[str]) -> str:
    more = len(texts) - MAX_LISTED
    return ", ".join([*texts[:MAX_LISTED], *([f"… {more} more"] if more > 0 else [])])


def _inputs(instruction: Instruction) -> str:
    """Return the operands and the called computations, or the number of a parameter."""
    if instruction.opcode == "parameter":
        return str(instruction.computation.parameters.index(instruction))
    text = _elide_list([operand.name for operand in instruction.operands])
    called = _elide_list([computation.name for computation in instruction.called_computations])
    return f"{text} -> {called}".lstrip() if called else text


def instruction_records(
    instructions: Iterable[Instruction], with_source: bool
) -> Iterator[dict[str, Any]]:
    """Yield a record for each instruction; `schemas/ls.json` is its JSON schema."""
    for instruction in instructions:
        computation = instruction.computation
        is_parameter = instruction.opcode == "parameter"
        yield {
            "file": computation.module.filename,
            "computation": computation.name,
            "entry": computation is computation.module.entry,
            "instruction": instruction.name,
            "root": instruction.is_root,
            "opcode": instruction.opcode,
            "shape": shape_record(instruction.shape),
            "operands": [operand.name for operand in instruction.operands],
            "calls": [called.name for called in instruction.called_computations],
            "parameter": computation.parameters.index(instruction) if is_parameter else None,
            "schema_version": SCHEMA_VERSION,
            **(
                {"source": source_record(instruction.source), "lines": lines_behind(instruction)}
                if with_source
                else {}
            ),
        }

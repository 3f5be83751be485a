"""Answers as text and as JSON: what `hlo-indexing maps` prints.

A `Block` is the answer to one question (one instruction, one direction, one output); its rows are
the maps. It prints as a header line and one indented line a map:

    FILE: COMPUTATION: NAME = SHAPE OPCODE, output-to-input
      operand 0 p f32[20,10]: (d0, d1) -> (d1, d0), domain: d0 in [0, 9], d1 in [0, 19]
      operand 1 start s32[]: nothing is read
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from hlo.shapes.shape import AnyShape, Shape, TupleShape, leaves
from indexing.maps.arrays import leaf_at
from indexing.maps.runtime_variable import RuntimeVariable

if TYPE_CHECKING:
    from hlo.modules.module import Computation, Instruction
    from indexing.maps.answers import Answer, Direction, Path
    from indexing.maps.indexing_map import IndexingMap

Paint = Callable[[str, str], str]  # (text, style) -> text, with or without colour

DIRECTIONS: dict[str, tuple[Direction, ...]] = {
    "output-to-input": ("output-to-input",),
    "input-to-output": ("input-to-output",),
    "both": ("output-to-input", "input-to-output"),
}
NOTATIONS: dict[str, Callable[[IndexingMap], str]] = {
    "text": lambda m: map_line(m),
    "isl": lambda m: str(m.to_isl()),
    "mlir": lambda m: str(m.to_mlir()),
    "latex": lambda m: " ".join(m.to_latex().split()),  # one map a line
}


@dataclass(frozen=True, slots=True)
class Query:
    """What is asked about each instruction."""

    directions: tuple[Direction, ...] = ("output-to-input",)
    to_parameters: bool = False
    operand: int | None = None  # only this one
    output_id: int | None = None  # only this one
    exact: bool = False
    simplify: bool = True
    verify: bool = False
    explain: bool = False

    @property
    def options(self) -> dict[str, bool]:
        """What the questions of `indexing` are asked with."""
        return {"exact": self.exact, "simplify": self.simplify, "certify": self.verify}

    def beyond(self, instruction: Instruction) -> str | None:
        """The operand or output that is asked about and that `instruction` does not have."""
        computation = instruction.computation
        operands = computation.parameters if self.to_parameters else instruction.operands
        if self.operand is not None and self.operand >= len(operands):
            return f"operand {self.operand}"
        if self.output_id is not None and self.output_id >= len(leaves(instruction.shape)):
            return f"output {self.output_id}"
        return None


@dataclass(frozen=True, slots=True)
class Row:
    """One map of one operand; or why there is none; or neither, where nothing is read."""

    operand: int
    name: str
    shape: AnyShape
    path: Path | None = None  # the leaf of a tuple-shaped operand
    map: IndexingMap | None = None
    unknown: str | None = None
    steps: tuple[str, ...] = ()  # that led to the map, where they are asked for


@dataclass(frozen=True, slots=True)
class Block:
    """The answer to one question about one instruction: one direction, one output."""

    file: str
    computation: str
    instruction: str
    opcode: str
    direction: Direction
    output: int
    outputs: int  # how many there are
    shape: AnyShape  # of this output
    rows: tuple[Row, ...]


def answer(instruction: Instruction, query: Query, file: str) -> Iterator[Block]:
    """One block for each direction and output of `instruction` that `query` asks about."""
    shapes = [leaf for _, leaf in leaves(instruction.shape)]
    asked = [n for n in range(len(shapes)) if query.output_id in (None, n)]
    for direction in query.directions:
        ask = _reads if direction == "output-to-input" else _reaches
        operands, answers = ask(instruction, query, asked)
        for output, rows in _complete(operands, answers, query):
            yield _block(instruction, direction, output, shapes, rows, file)


def answers_to_parameters(
    computation: Computation, wanted: Collection[Instruction], query: Query, file: str
) -> Iterator[Block]:
    """`answer` for several instructions of a computation, in one sweep over all of them.

    Parameters that are not read are left out: there may be hundreds in each answer.
    """
    from indexing.dataflow import all_to_parameters

    last, shapes = None, []
    number = {parameter: k for k, parameter in enumerate(computation.parameters)}
    for found in all_to_parameters(computation, **query.options):
        if found.instruction in wanted and query.output_id in (None, found.number):
            if found.instruction is not last:
                last = found.instruction
                shapes = [leaf for _, leaf in leaves(last.shape)]
            rows = [
                row
                for k, parameter in enumerate(found.operands)
                if query.operand in (None, number[parameter])
                for row in _rows(number[parameter], parameter, found, k)
            ]
            yield _block(found.instruction, found.direction, found.number, shapes, rows, file)


def _complete(
    operands: Sequence[Instruction],
    answers: Mapping[int, Mapping[int, list[Row]]],
    query: Query,
) -> Iterator[tuple[int, list[Row]]]:
    """The rows of each output, with one for each operand of which nothing is read.

    Of several outputs, none says which operands only others read: a tuple of n elements would take
    n² lines.
    """
    silent = {
        k: [Row(k, operand.name, operand.shape)]
        for k, operand in enumerate(operands)
        if query.operand in (None, k)
    }
    said = set().union(*answers.values()) if len(answers) > 1 else set()
    unread = {k: rows for k, rows in silent.items() if k not in said}
    for output, found in answers.items():
        rows = {**unread, **found} or silent
        yield output, [row for k in sorted(rows) for row in rows[k]]


def _block(
    instruction: Instruction,
    direction: Direction,
    output: int,
    shapes: Sequence[AnyShape],
    rows: Iterable[Row],
    file: str,
) -> Block:
    return Block(
        file=file,
        computation=instruction.computation.name,
        instruction=instruction.name,
        opcode=instruction.opcode,
        direction=direction,
        output=output,
        outputs=len(shapes),
        shape=shapes[output],
        rows=tuple(rows),
    )


def _reads(
    instruction: Instruction, query: Query, asked: Sequence[int]
) -> tuple[Sequence[Instruction], dict[int, dict[int, list[Row]]]]:
    """The operands or parameters, and for each output that is asked about, what it reads."""
    from indexing import dataflow

    ask = dataflow.to_parameters if query.to_parameters else dataflow.output_to_input
    operands: Sequence[Instruction] = ()
    answers: dict[int, dict[int, list[Row]]] = {}
    for output in asked:
        found = ask(instruction, output_id=output, **query.options)
        operands = found.operands
        answers[output] = {
            k: rows
            for k in range(len(operands))
            if query.operand in (None, k) and (rows := _rows(k, operands[k], found, k))
        }
    return operands, answers


def _reaches(
    instruction: Instruction, query: Query, asked: Sequence[int]
) -> tuple[Sequence[Instruction], dict[int, dict[int, list[Row]]]]:
    """The operands, and for each output that is asked about, which elements they reach."""
    from indexing import dataflow

    operands = instruction.operands
    answers: dict[int, dict[int, list[Row]]] = {output: {} for output in asked}
    for k, operand in enumerate(operands):
        if query.operand in (None, k):
            found = dataflow.input_to_output(instruction, input_id=k, **query.options)
            for output in asked:
                if rows := _rows(k, operand, found, output):
                    answers[output][k] = rows
    return operands, answers


def _rows(number: int, operand: Instruction, found: Answer, place: int) -> list[Row]:
    """What an answer says at `place`, which is about `operand`: nothing if nothing is read."""
    maps, unknown = found.maps[place], found.unknown[place]
    if not maps and unknown is None:
        return []
    from indexing.maps.explanation import steps_of

    name, whole = operand.name, operand.shape
    if not isinstance(whole, TupleShape):
        rows = [Row(number, name, whole, None, each, steps=steps_of(each)) for each in maps]
    else:
        pairs = zip(maps, found.paths[place], strict=True)
        rows = [
            Row(number, name, leaf_at(whole, path), path, each, steps=steps_of(each))
            for each, path in pairs
        ]
    if unknown is not None:
        rows.append(Row(number, name, whole, unknown=unknown.reason))
    return rows


@lru_cache(maxsize=1 << 14)
def shape_text(shape: AnyShape) -> str:
    """The HLO text of `shape` without layouts.

    >>> import hlo
    >>> shape_text(hlo.parse_shape("(f32[2,3]{1,0:T(8,128)}, token[])"))
    '(f32[2,3], token[])'
    """
    match shape:
        case TupleShape():
            return f"({', '.join(map(shape_text, shape.elements))})"
        case Shape():
            return str(replace(shape, layout=None))
        case _:
            return str(shape)


def plain(text: str, style: str) -> str:
    """`text` as it is: a `Paint` without colour."""
    return text


def lines(block: Block, notation: str, paint: Paint) -> Iterator[str]:
    """`block` in the format that ``--format`` names."""
    return json_lines(block) if notation == "json" else text_lines(block, notation, paint)


def text_lines(block: Block, notation: str = "text", paint: Paint = plain) -> Iterator[str]:
    """`block` as a header line and one indented line a map."""
    head = f"{block.file}: {block.computation}: {paint(block.instruction, 'name')} = "
    which = f", output {block.output}" if block.outputs > 1 else ""
    yield f"{head}{shape_text(block.shape)} {block.opcode}, {block.direction}{which}"
    if not block.rows:
        yield "  no operands"
    for row in block.rows:
        path = "" if row.path is None else " {" + ",".join(map(str, row.path)) + "}"
        place = f"  operand {row.operand} {paint(row.name, 'name')}{path} {shape_text(row.shape)}: "
        if row.unknown is not None:
            yield place + paint("unknown: ", "unknown") + row.unknown
        elif row.map is None:
            yield place + "nothing is read"
        else:
            grade = "" if row.map.grade == "exact" else paint(f"{row.map.grade}: ", "may")
            yield place + grade + NOTATIONS[notation](row.map)
            for variable in row.map.runtime:
                yield f"    {runtime_text(variable, paint)}"
        for step in row.steps:
            yield f"      {step}"


def runtime_text(variable: RuntimeVariable, paint: Paint = plain) -> str:
    """What `variable` is: which element of which instruction, and how the operation clamps it.

    Where its bounds are narrower than the clamp, nothing is read outside of them (scatter, say,
    skips an update that does not fit).
    """
    element = f"[{', '.join(map(str, variable.index))}]" if variable.index else ""
    clamped = ""
    if variable.clamp is not None:
        how = "clamped to" if variable.clamp == variable.variable.bounds else "if in"
        clamped = f", {how} [{variable.variable.lower}, {variable.variable.upper}]"
    path = "/".join([*variable.call_names, str(variable.source_name or "?")])
    return f"{variable.name} = {paint(path, 'name')}{element}{clamped}"


def json_lines(block: Block) -> Iterator[str]:
    """`block` as one JSON object a map; without operands one object, whose operand is null."""
    head = _json_head(block.file, block.computation)
    head += (
        f', "instruction": {_quoted(block.instruction)}, "opcode": {_quoted(block.opcode)}'
        f', "direction": "{block.direction}", "output": {block.output}'
    )
    if not block.rows:
        yield f'{head}, "operand": null, "grade": "exact", {_NOTHING}}}'
    for row in block.rows:
        path = "" if row.path is None else f', "path": {json.dumps(row.path)}'
        if row.unknown is not None:
            said = f'"grade": null, "unknown": {_quoted(row.unknown)}, "map": null, "runtime": []'
        elif row.map is None:
            said = f'"grade": "exact", {_NOTHING}'
        else:
            said = _json_map(row.map)
            said += f', "steps": {json.dumps(row.steps)}' if row.steps else ""
        yield f'{head}, "operand": {row.operand}, {said}{path}}}'


_NOTHING = '"unknown": null, "map": null, "runtime": []'
_quoted = json.encoder.encode_basestring_ascii


@lru_cache(maxsize=64)
def _json_head(file: str, computation: str) -> str:
    return f'{{"file": {_quoted(file)}, "computation": {_quoted(computation)}'


def _json_map(found: IndexingMap) -> str:
    """The keys grade, unknown, map and runtime of one map."""
    said = f'"grade": "{found.grade}", "unknown": null, "map": {_quoted(map_line(found))}'
    runtime = [
        {
            "name": v.name,
            "instruction": v.source_name,
            "calls": v.call_names,
            "map": str(found.source_map(v)),
        }
        for v in found.runtime
    ]
    return f'{said}, "runtime": {json.dumps(runtime) if runtime else "[]"}'


def map_line(found: IndexingMap) -> str:
    """``str(found)``, remembered: a program prints few maps many times.

    Runtime variables lead to a module's instructions, which no memory shall keep alive.
    """
    return str(found) if found.runtime else _map_line(found)


@lru_cache(maxsize=1 << 15)
def _map_line(found: IndexingMap) -> str:
    return str(found)

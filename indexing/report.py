"""Answers as text and as JSON: what `hlo-indexing maps` prints.

A `Block` is the answer to one question (one instruction, one direction, one output); its rows are
the maps. It prints as a header line and one indented line a map:

    FILE: COMPUTATION: NAME = SHAPE OPCODE, output-to-input
      operand 0 p f32[20,10]: (d0, d1) -> (d1, d0), domain: d0 in [0, 9], d1 in [0, 19]
      operand 1 start s32[]: nothing is read
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hlo.module import Instruction
    from hlo.shape import AnyShape
    from indexing.access import Direction, Path, Unknown
    from indexing.map import IndexingMap, RuntimeVariable

Paint = Callable[[str, str], str]  # (text, style) -> text, with or without colour

DIRECTIONS: dict[str, tuple[Direction, ...]] = {
    "output-to-input": ("output-to-input",),
    "input-to-output": ("input-to-output",),
    "both": ("output-to-input", "input-to-output"),
}
NOTATIONS: dict[str, Callable[[IndexingMap], str]] = {
    "text": str,
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
    output: int | None = None  # only this one
    exact: bool = False
    simplify: bool = True
    verify: bool = False

    @property
    def options(self) -> dict[str, bool]:
        """What the questions of `indexing` are asked with."""
        return {"exact": self.exact, "simplify": self.simplify, "certify": self.verify}

    def wants(self, operand: int, output: int) -> bool:
        return self.operand in (None, operand) and self.output in (None, output)

    def beyond(self, instruction: Instruction) -> str | None:
        """The operand or output that is asked about and that `instruction` does not have."""
        from hlo.shape import leaves

        computation = instruction.computation
        operands = computation.parameters if self.to_parameters else instruction.operands
        if self.operand is not None and self.operand >= len(operands):
            return f"operand {self.operand}"
        if self.output is not None and self.output >= len(leaves(instruction.shape)):
            return f"output {self.output}"
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

    @property
    def says_something(self) -> bool:
        """Says that something is read, or may be."""
        return self.map is not None or self.unknown is not None


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
    from hlo.shape import leaves

    outputs = leaves(instruction.shape)
    for direction in query.directions:
        ask = _reads if direction == "output-to-input" else _reaches
        for output, rows in _without_echo(list(ask(instruction, query, len(outputs)))):
            yield Block(
                file=file,
                computation=instruction.computation.name,
                instruction=instruction.name,
                opcode=instruction.opcode,
                direction=direction,
                output=output,
                outputs=len(outputs),
                shape=outputs[output][1],
                rows=tuple(rows),
            )


def _without_echo(answers: list[tuple[int, list[Row]]]) -> list[tuple[int, list[Row]]]:
    """`answers` without saying for every output which operands only other outputs read.

    A tuple of n elements would otherwise take n² lines.
    """
    if len(answers) == 1:
        return answers
    used = {row.operand for _, rows in answers for row in rows if row.says_something}
    return [
        (output, [r for r in rows if r.says_something or r.operand not in used] or rows)
        for output, rows in answers
    ]


def _reads(instruction: Instruction, query: Query, outputs: int) -> Iterator[tuple[int, list[Row]]]:
    """For each output, what it reads of each operand or parameter."""
    import indexing

    ask = indexing.to_parameters if query.to_parameters else indexing.output_to_input
    for output in range(outputs):
        if query.output not in (None, output):
            continue
        found = ask(instruction, output_id=output, **query.options)
        yield (
            output,
            [
                row
                for number, operand in enumerate(found.operands)
                if query.wants(number, output)
                for row in _rows(
                    number,
                    operand,
                    found.maps[number],
                    found.paths[number],
                    found.unknown[number],
                )
            ],
        )


def _reaches(
    instruction: Instruction, query: Query, outputs: int
) -> Iterator[tuple[int, list[Row]]]:
    """For each output, which of its elements each operand reaches."""
    import indexing

    operands = instruction.operands
    answers = {
        number: indexing.input_to_output(instruction, input_id=number, **query.options)
        for number in range(len(operands))
        if query.operand in (None, number)
    }
    for output in range(outputs):
        if query.output not in (None, output):
            continue
        yield (
            output,
            [
                row
                for number, found in answers.items()
                for row in _rows(
                    number,
                    operands[number],
                    found.maps[output],
                    found.paths[output],
                    found.unknown[output],
                )
            ],
        )


def _rows(
    number: int,
    operand: Instruction,
    maps: Sequence[IndexingMap],
    paths: Sequence[Path],
    unknown: Unknown | None,
) -> Iterator[Row]:
    from hlo.shape import TupleShape

    name, whole = operand.name, operand.shape
    is_tuple = isinstance(whole, TupleShape)
    for found, path in zip(maps, paths, strict=True):
        leaf = leaf_of(whole, path)
        yield Row(number, name, leaf, path if is_tuple else None, found)
    if unknown is not None:
        yield Row(number, name, whole, unknown=unknown.reason)
    elif not maps:
        yield Row(number, name, whole)


def leaf_of(shape: AnyShape, path: Path) -> AnyShape:
    """The part of `shape` that `path` leads to through nested tuples.

    >>> import hlo
    >>> str(leaf_of(hlo.parse_shape("(f32[2], (s32[], pred[3]))"), (1, 1)))
    'pred[3]'
    """
    from hlo.shape import TupleShape

    for step in path:
        assert isinstance(shape, TupleShape)
        shape = shape.elements[step]
    return shape


@lru_cache(maxsize=1 << 14)
def shape_text(shape: AnyShape) -> str:
    """The HLO text of `shape` without layouts.

    >>> import hlo
    >>> shape_text(hlo.parse_shape("(f32[2,3]{1,0:T(8,128)}, token[])"))
    '(f32[2,3], token[])'
    """
    from dataclasses import replace

    from hlo.shape import Shape, TupleShape

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
    head: dict[str, Any] = {
        "file": block.file,
        "computation": block.computation,
        "instruction": block.instruction,
        "opcode": block.opcode,
        "direction": block.direction,
        "output": block.output,
    }
    if not block.rows:
        yield json.dumps(head | _fields(None, None, None))
    for row in block.rows:
        path = {} if row.path is None else {"path": list(row.path)}
        yield json.dumps(head | _fields(row.operand, row.map, row.unknown) | path)


def _fields(operand: int | None, found: IndexingMap | None, unknown: str | None) -> dict[str, Any]:
    return {
        "operand": operand,
        "grade": None if unknown is not None else "exact" if found is None else found.grade,
        "unknown": unknown,
        "map": None if found is None else str(found),
        "runtime": []
        if found is None
        else [
            {
                "name": v.name,
                "instruction": v.source_name,
                "calls": v.call_names,
                "map": str(found.source_map(v)),
            }
            for v in found.runtime
        ],
    }

"""Answers as text, as `hlo-indexing maps` prints them where its output is not a terminal.

A `MapTable` has the maps of one instruction, one direction and one output, a row for each map.  It
prints as a header line and one indented line per map:

    FILE: COMPUTATION: NAME = SHAPE OPCODE, output-to-input
      operand 0 p f32[20,10]: (d0, d1) -> (d1, d0), domain: d0 in [0, 9], d1 in [0, 19]
      operand 1 start s32[]: nothing is read
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from hlo.modules.patterns import Pattern
from hlo.shapes.shape import AnyShape, Shape, TupleShape, leaves
from hlo.text.names import did_you_mean, similar
from indexing.maps.arrays import leaf_at
from indexing.maps.runtime_variable import RuntimeVariable, element_text, iterations_text

if TYPE_CHECKING:
    from hlo.modules.module import Computation, Instruction
    from hlo.modules.op_source import OpSource
    from indexing.maps.answers import Answer, Direction, Path
    from indexing.maps.indexing_map import IndexingMap
    from indexing.maps.reasons import Reason

CONTROL: Final = "decides only which iterations or branches are executed"
"""The note on maps whose elements decide only control."""

Paint = Callable[[str, str], str]  # (text, style) -> text, coloured or not

DIRECTIONS_BY_OPTION: dict[str, tuple[Direction, ...]] = {
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
    """A query about one instruction, with its options."""

    directions: tuple[Direction, ...] = ("output-to-input",)
    to_parameters: bool = False
    operand: int | str | None = None  # a number, or a pattern of names; None: all operands
    output_id: int | None = None  # None: all outputs
    exact: bool = False
    simplify: bool = True
    verify: bool = False
    explain: bool = False
    source: bool = False  # with the source of each instruction

    @property
    def options(self) -> dict[str, bool]:
        """Keyword arguments for the queries of `indexing`."""
        return {"exact": self.exact, "simplify": self.simplify, "certify": self.verify}

    def reads(self, number: int, operand: Instruction) -> bool:
        """Return True if this operand is requested."""
        if isinstance(self.operand, str):
            return Pattern(self.operand).matches(operand.name)
        return self.operand in (None, number)

    def missing_in(self, instruction: Instruction) -> str | None:
        """Return the requested operand or output that `instruction` lacks, or None."""
        computation = instruction.computation
        operands = computation.parameters if self.to_parameters else instruction.operands
        if isinstance(self.operand, str):
            if not any(self.reads(k, operand) for k, operand in enumerate(operands)):
                question = did_you_mean(similar(self.operand, [o.name for o in operands]))
                return f"operand `{self.operand}`" + (f"; {question}" if question else "")
        elif self.operand is not None and self.operand >= len(operands):
            return f"operand {self.operand} (number of operands: {len(operands)})"
        outputs = len(leaves(instruction.shape))
        if self.output_id is not None and self.output_id >= outputs:
            return f"output {self.output_id} (number of outputs: {outputs})"
        return None


class MapRow(NamedTuple):
    """One map of one operand, or the reason why it is unknown, or neither if nothing is read."""

    operand: int
    name: str
    shape: AnyShape
    path: Path | None = None  # the leaf of a tuple-shaped operand
    map: IndexingMap | None = None
    unknown: str | None = None
    steps: tuple[str, ...] = ()  # simplification steps, if requested
    parameter: int | None = None  # the number of the parameter that the operand is
    reasons: tuple[Reason, ...] = ()  # why the map has the grade `may`
    control: bool = False  # the elements decide only `CONTROL`


@dataclass(frozen=True, slots=True)
class MapTable:
    """The maps of one instruction in one direction, for one output."""

    file: str
    computation: str
    instruction: str
    opcode: str
    direction: Direction
    output: int
    outputs: int  # number of outputs
    shape: AnyShape  # of this output
    rows: tuple[MapRow, ...]
    source: OpSource | None = None  # of the instruction, if requested
    to_parameters: bool = False  # operands are the parameters of the computation


def answer(instruction: Instruction, query: Query, file: str) -> Iterator[MapTable]:
    """Yield a table for each requested direction and output of `instruction`."""
    shapes = [leaf for _, leaf in leaves(instruction.shape)]
    outputs = [n for n in range(len(shapes)) if query.output_id in (None, n)]
    for direction in query.directions:
        rows_of = _backward_rows if direction == "output-to-input" else _forward_rows
        operands, answers = rows_of(instruction, query, outputs)
        for output, rows in _complete(operands, answers, query):
            yield _table(instruction, direction, output, shapes, rows, file, query)


def answers_to_parameters(
    computation: Computation, selected: Collection[Instruction], query: Query, file: str
) -> Iterator[MapTable]:
    """Yield the tables of several instructions of a computation, in one sweep.

    Parameters that are not read are omitted: there may be hundreds for each instruction.
    """
    from indexing.dataflow import all_to_parameters

    last, shapes = None, []
    number = {parameter: k for k, parameter in enumerate(computation.parameters)}
    for result in all_to_parameters(computation, **query.options):
        if result.instruction in selected and query.output_id in (None, result.domain_id):
            if result.instruction is not last:
                last = result.instruction
                shapes = [leaf for _, leaf in leaves(last.shape)]
            rows = [
                row
                for k, parameter in enumerate(result.operands)
                if query.reads(number[parameter], parameter)
                for row in operand_rows(number[parameter], parameter, result, k)
            ]
            direction, output = result.direction, result.domain_id
            yield _table(last, direction, output, shapes, rows, file, query)


def _complete(
    operands: Sequence[Instruction],
    answers: Mapping[int, Mapping[int, list[MapRow]]],
    query: Query,
) -> Iterator[tuple[int, list[MapRow]]]:
    """Yield the rows of each output, with a row for each operand that no output reads.

    An operand read by other outputs only gets no row: a tuple of n elements would take n² lines.
    """
    requested = [k for k, operand in enumerate(operands) if query.reads(k, operand)]
    if len(answers) == 1:
        read: Collection[int] = next(iter(answers.values()))
    else:
        read = set().union(*answers.values())
    unread = {k: _unread_row(k, operands[k]) for k in requested if k not in read}
    for output, answered in answers.items():
        rows = {**unread, **answered} if unread else answered
        if not rows:
            rows = {k: _unread_row(k, operands[k]) for k in requested}
        yield output, [row for k in sorted(rows) for row in rows[k]]


def _unread_row(number: int, operand: Instruction) -> list[MapRow]:
    return [MapRow(number, operand.name, operand.shape, parameter=parameter_number(operand))]


def _table(
    instruction: Instruction,
    direction: Direction,
    output: int,
    shapes: Sequence[AnyShape],
    rows: Iterable[MapRow],
    file: str,
    query: Query,
) -> MapTable:
    return MapTable(
        file=file,
        computation=instruction.computation.name,
        instruction=instruction.name,
        opcode=instruction.opcode,
        direction=direction,
        output=output,
        outputs=len(shapes),
        shape=shapes[output],
        rows=tuple(rows),
        source=instruction.source if query.source else None,
        to_parameters=query.to_parameters and direction == "output-to-input",
    )


def _backward_rows(
    instruction: Instruction, query: Query, outputs: Sequence[int]
) -> tuple[Sequence[Instruction], dict[int, dict[int, list[MapRow]]]]:
    """Return the operands or parameters, and for each output the rows of the maps to them."""
    from indexing import dataflow

    maps_of = dataflow.to_parameters if query.to_parameters else dataflow.output_to_input
    operands: Sequence[Instruction] = ()
    answers: dict[int, dict[int, list[MapRow]]] = {}
    for output in outputs:
        result = maps_of(instruction, output_id=output, **query.options)
        operands = result.operands
        answers[output] = {
            k: operand_rows(k, operands[k], result, k)
            for k, (maps, unknown) in enumerate(zip(result.maps, result.unknown, strict=True))
            if (maps or unknown is not None) and query.reads(k, operands[k])
        }
    return operands, answers


def _forward_rows(
    instruction: Instruction, query: Query, outputs: Sequence[int]
) -> tuple[Sequence[Instruction], dict[int, dict[int, list[MapRow]]]]:
    """Return the operands, and for each output the rows of the maps from them."""
    from indexing import dataflow

    operands = instruction.operands
    answers: dict[int, dict[int, list[MapRow]]] = {output: {} for output in outputs}
    for k, operand in enumerate(operands):
        if query.reads(k, operand):
            result = dataflow.input_to_output(instruction, input_id=k, **query.options)
            for output in outputs:
                if rows := operand_rows(k, operand, result, output):
                    answers[output][k] = rows
    return operands, answers


def operand_rows(number: int, operand: Instruction, result: Answer, position: int) -> list[MapRow]:
    """Return the rows of `operand`, at `position` of the answer; none if nothing is read."""
    maps, unknown = result.maps[position], result.unknown[position]
    if not maps and unknown is None:
        return []
    from indexing.maps.explanation import steps_of

    name, shape, parameter = operand.name, operand.shape, parameter_number(operand)
    rows = []
    paths, reasons = result.paths[position], result.reasons[position]
    control = result.control[position]
    for each, path, why, is_control in zip(maps, paths, reasons, control, strict=True):
        is_tuple = isinstance(shape, TupleShape)
        leaf, inside = (leaf_at(shape, path), path) if is_tuple else (shape, None)
        steps = steps_of(each)
        row = MapRow(number, name, leaf, inside, each, None, steps, parameter, why, is_control)
        rows.append(row)
    if unknown is not None:
        rows.append(MapRow(number, name, shape, unknown=unknown.reason, parameter=parameter))
    return rows


def parameter_number(operand: Instruction) -> int | None:
    """Return the number of a parameter; None for other instructions."""
    if operand.opcode != "parameter":
        return None
    from indexing.ops.structured_ops import parameter_numbers

    return parameter_numbers(operand.computation).get(operand)


@lru_cache(maxsize=1 << 11)
def shape_text(shape: AnyShape) -> str:
    """Return the HLO text of `shape` without layouts.

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
    """Return `text` unchanged: a `Paint` without colours."""
    return text


def map_lines(table: MapTable, notation: str) -> Iterator[str]:
    """Yield each map of `table` on a line, in a notation of `NOTATIONS`, and nothing else."""
    for row in table.rows:
        if row.map is not None:
            yield NOTATIONS[notation](row.map)


def text_lines(table: MapTable, paint: Paint = plain) -> Iterator[str]:
    """Yield a header line, and an indented line for each map of `table`."""
    from indexing.maps.explanation import is_explaining

    yield table_head(table, paint)
    yield from source_lines(table)
    if not table.rows:
        yield "  no operands"
    for row in table.rows:
        prefix = row_head(row, paint)
        if row.unknown is not None:
            yield prefix + paint("unknown: ", "unknown") + row.unknown
        elif row.map is None:
            yield prefix + "nothing is read"
        else:
            grade = "" if row.map.grade == "exact" else paint(f"{row.map.grade}: ", "may")
            yield prefix + grade + map_line(row.map)
            for variable in row.map.runtime:
                yield f"    {runtime_text(variable, paint)}"
        if row.control:
            yield f"    {CONTROL}"
        for reason in row.reasons if is_explaining() else ():
            yield f"      {reason_text(reason)}"
        for step in row.steps:
            yield f"      {step}"
        if row.map is not None and not row.steps and is_explaining():
            yield "      already simplified"


def table_head(table: MapTable, paint: Paint = plain) -> str:
    """Return the header line of `table`."""
    head = f"{table.file}: {table.computation}: {paint(table.instruction, 'name')} = "
    output = f", output {table.output}" if table.outputs > 1 else ""
    return f"{head}{shape_text(table.shape)} {table.opcode}, {table.direction}{output}"


def reason_text(reason: Reason) -> str:
    """Return the line that gives a reason for the grade `may`."""
    return f"may because {reason}"


def source_lines(table: MapTable) -> Iterator[str]:
    """Yield a line with the source of the instruction, if it is requested."""
    if table.source is not None:
        yield f"  source: {table.source or 'not recorded'}"


def row_head(row: MapRow, paint: Paint = plain) -> str:
    """Return the start of the line of a map: its operand, with number, name and shape."""
    name = f"{paint(row.name, 'name')}{path_text(row.path)}"
    return f"  operand {row.operand} {name} {shape_text(row.shape)}: "


def path_text(path: Path | None) -> str:
    """Return the leaf of a tuple-shaped operand as text, after a space; otherwise empty."""
    return "" if path is None else " {" + ",".join(map(str, path)) + "}"


def runtime_text(variable: RuntimeVariable, paint: Paint = plain) -> str:
    """Describe a runtime variable: its source element and its clamp.

    If its bounds are narrower than the clamp, nothing is read outside the bounds.  Scatter, for
    example, skips an update that does not fit.
    """
    path, element, iterations, clamp = runtime_parts(variable)
    read = f" {iterations}" if iterations else ""
    clamped = f", {clamp}" if clamp else ""
    return f"{variable.name} = {paint(path, 'name')}{element}{read}{clamped}"


def runtime_parts(variable: RuntimeVariable) -> tuple[str, str, str, str]:
    """Return the name of the source of a runtime variable, the element, iterations and clamp.

    The last three are empty for a scalar, a source outside of loops, and a value without a clamp.
    """
    clamp = ""
    if variable.clamp is not None:
        relation = "clamped to" if variable.clamp == variable.variable.bounds else "if in"
        clamp = f"{relation} [{variable.variable.lower}, {variable.variable.upper}]"
    path = "/".join([*variable.call_names, str(variable.source_name or "?")])
    return path, element_text(variable.element), iterations_text(variable.iterations), clamp


def map_line(indexing_map: IndexingMap) -> str:
    """Return ``str(indexing_map)``, memoised: programs repeat few distinct maps.

    Maps with runtime variables refer to instructions, and a cache would keep their module alive.
    """
    return str(indexing_map) if indexing_map.runtime else _map_line(indexing_map)


@lru_cache(maxsize=1 << 11)
def _map_line(indexing_map: IndexingMap) -> str:
    return str(indexing_map)

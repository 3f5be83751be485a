"""Answers as text, as `hlo-indexing maps` prints them where its output is not a terminal.

A `MapTable` has the maps of one instruction, one direction and one output, a row for each map.  It
prints as a header line and one indented line per map:

    FILE: COMPUTATION: NAME = SHAPE OPCODE, output-to-input
      operand 0 p f32[20,10]: (d0, d1) -> (d1, d0), domain: d0 in [0, 9], d1 in [0, 19]
      operand 1 start s32[]: nothing is read
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache, partial
from importlib import import_module
from typing import TYPE_CHECKING, Final

from hlo.memo import Memo
from hlo.shapes.element_type import range_of
from hlo.shapes.shape import AnyShape, Shape, TupleShape, leaf_shape, leaves
from indexing.maps.arrays import ArrayRef
from indexing.maps.memoised import memoised_maps
from indexing.maps.runtime_variable import RuntimeVariable, element_text, iterations_text
from indexing.views.source_lines import lines_before_text, lines_text
from indexing.views.value_texts import value_text

if TYPE_CHECKING:
    from hlo.modules.module import Instruction
    from hlo.modules.op_source import OpSource
    from indexing.equivalence.linking import How
    from indexing.maps.answers import Direction, Path
    from indexing.maps.indexing_map import IndexingMap
    from indexing.maps.reasons import Reason
    from simplifier.interval import Interval

CONTROL: Final = "decides only which iterations or branches are executed"
"""The note on maps whose elements decide only control."""

# Other views do not need this module.  To import it for each table takes as long as its header.
_explanation = cache(partial(import_module, "indexing.maps.explanation"))

Paint = Callable[[str, str], str]  # (text, style) -> text, coloured or not


@memoised_maps(1 << 11)
def map_line(indexing_map: IndexingMap) -> str:
    """Return ``str(indexing_map)``, memoised: programs repeat few distinct maps."""
    return str(indexing_map)


NOTATIONS: dict[str, Callable[[IndexingMap], str]] = {
    "text": map_line,
    "isl": lambda m: str(m.to_isl()),
    "mlir": lambda m: str(m.to_mlir()),
    "xla": lambda m: str(m.to_xla()),
    "xla2025": lambda m: str(m.to_xla("floordiv")),
    "latex": lambda m: " ".join(m.to_latex().split()),  # one map a line
}


@dataclass(slots=True)
class MapRow:
    """One map of one operand, or the reason why it is unknown, or neither if nothing is read.

    Tables of a sweep share rows, so a row keeps its text.
    """

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
    assumptions: tuple[str, ...] = ()  # names of the assumptions that the map needs
    lines: tuple[str, ...] | None = field(default=None, init=False, repr=False, compare=False)
    json_fields: tuple[str, str] | None = field(default=None, init=False, repr=False, compare=False)


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
    lines: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # all lines behind it
    lines_before: Mapping[How, Mapping[str, tuple[int, ...]]] | None = None  # None: not requested
    to_parameters: bool = False  # operands are the parameters of the computation
    is_decided: bool = False  # given values of parameters decide a runtime value

    @property
    def role(self) -> str:
        """The role of the arrays of the rows: "parameter", "root" or "operand"."""
        if self.direction == "output-to-root":
            return "root"
        return "parameter" if self.to_parameters else "operand"


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


def output_shape(instruction: Instruction, number: int) -> AnyShape:
    """Return the shape of one output of an instruction."""
    outputs = leaves(instruction.shape)
    return outputs[number][1] if outputs else instruction.shape


def plain(text: str, style: str) -> str:
    """Return `text` unchanged: a `Paint` without colours."""
    return text


def map_lines(table: MapTable, notation: str) -> Iterator[str]:
    """Yield each map of `table` on a line, in a notation of `NOTATIONS`, and nothing else."""
    for row in table.rows:
        if row.map is not None:
            yield NOTATIONS[notation](row.map)


def text_lines(table: MapTable, paint: Paint = plain) -> list[str]:
    """Return a header line, and an indented line for each map of `table`."""
    lines = [table_head(table, paint)]
    if table.source is not None:
        lines += source_lines(table)
    if not table.rows:
        lines.append("  no operands")
    keeps_text = paint is plain and not _explanation().is_explaining()
    for row in table.rows:
        if not keeps_text:
            lines += row_lines(row, table.role, paint)
            continue
        if row.lines is None:
            row.lines = _plain_lines(row, table.role)
        lines += row.lines
    return lines


def _plain_lines(row: MapRow, role: str) -> tuple[str, ...]:
    """Return ``tuple(row_lines(row, role))``; most rows have one line, whose end others share."""
    m = row.map
    if m is None or m.runtime or row.path is not None or row.control or row.steps:
        return tuple(row_lines(row, role))
    key = id(m), id(row.shape)
    known = _ROW_ENDS.get(key)
    if known is None:
        grade, text = row_text(row)
        end = f" {shape_text(row.shape)}: {'may: ' if grade == 'may' else ''}{text}"
        known = _ROW_ENDS.keep(key, (end, m, row.shape))
    return (f"  {role} {row.operand} {row.name}{known[0]}",)


_ROW_ENDS: Final = Memo[tuple[int, int], tuple[str, object, object]](1 << 11)
"""The text after the name of an array, by the identities of a map and a shape, kept alive."""


def row_lines(row: MapRow, role: str, paint: Paint = plain) -> Iterator[str]:
    """Yield the indented lines of one map to an array with a role."""
    grade, text = row_text(row)
    is_explaining = _explanation().is_explaining()
    mark = paint(f"{grade}: ", grade) if grade in ("unknown", "may") else ""
    yield row_head(row, role, paint) + mark + text
    for variable in row.map.runtime if row.map is not None else ():
        yield f"    {runtime_text(variable, paint)}"
    if row.control:
        yield f"    {CONTROL}"
    for reason in row.reasons if is_explaining else ():
        yield f"      {reason_text(reason)}"
    for step in row.steps:
        yield f"      {step}"
    if row.map is not None and not row.steps and is_explaining:
        yield "      already simplified"


def row_text(row: MapRow) -> tuple[str, str]:
    """Return the grade of a map, "unknown" or "nothing", with the text of the map or the reason."""
    if row.unknown is not None:
        return "unknown", row.unknown
    if row.map is None:
        return "nothing", "nothing is read"
    return row.map.grade, map_line(row.map)


def table_head(table: MapTable, paint: Paint = plain) -> str:
    """Return the header line of `table`."""
    head = f"{table.file}: {table.computation}: {paint(table.instruction, 'name')} = "
    output = f", output {table.output}" if table.outputs > 1 else ""
    return f"{head}{shape_text(table.shape)} {table.opcode}, {table.direction}{output}"


def instruction_head(instruction: Instruction, shape: AnyShape, paint: Paint = plain) -> str:
    """Return the start of the header line of an answer about an array of an instruction."""
    computation, name = instruction.computation, paint(instruction.name, "name")
    place = f"{computation.module.filename}: {computation.name}: {name}"
    return f"{place} = {shape_text(shape)} {instruction.opcode}"


def reason_text(reason: Reason) -> str:
    """Return the line that gives a reason for the grade `may`."""
    return f"may because {reason}"


def source_lines(table: MapTable) -> Iterator[str]:
    """Yield a line with the source of the instruction, if it is requested."""
    if table.source is not None:
        yield f"  source: {table.source or 'not recorded'}"
        frame = table.source.frame
        own = {frame.file: (frame.line,)} if frame is not None else {}
        if table.lines and table.lines != own:
            yield f"  all lines: {lines_text(table.lines)}"
        if table.lines_before is not None:
            more = lines_before_text(table.lines_before)
            yield f"  lines before passes: {more or 'no others'}"


def row_head(row: MapRow, role: str, paint: Paint = plain) -> str:
    """Return the start of the line of a map: the role, number, name and shape of its array."""
    name = f"{paint(row.name, 'name')}{path_text(row.path)}"
    return f"  {role} {row.operand} {name} {shape_text(row.shape)}: "


def path_text(path: Path | None) -> str:
    """Return the leaf of a tuple-shaped operand as text, after a space; otherwise empty."""
    return "" if path is None else " {" + ",".join(map(str, path)) + "}"


def runtime_text(variable: RuntimeVariable, paint: Paint = plain) -> str:
    """Describe a runtime variable: its source element and its clamp.

    If its bounds are narrower than the clamp, nothing is read if the clamped value is outside the
    bounds.  Scatter, for example, skips an update that does not fit; it does not clamp.
    """
    path, element, iterations, formula, clamp = runtime_parts(variable)
    read = f" {iterations}" if iterations else ""
    value = f" = {formula}" if formula else ""
    clamped = f", {clamp}" if clamp else ""
    return f"{variable.name} = {paint(path, 'name')}{element}{read}{value}{clamped}"


def runtime_parts(variable: RuntimeVariable) -> tuple[str, str, str, str, str]:
    """Return the name of the source of a runtime variable, the element, iterations, formula, clamp.

    The last four are empty for a scalar, a source outside of loops, a value that is not computed
    from other integers, and a value without a clamp, or with one that has all values of its type.
    """
    clamps = []
    bounds, of_type = variable.variable.bounds, _source_range(variable)
    if variable.clamp is not None and variable.clamp != of_type:
        clamps.append(f"clamped to {list(variable.clamp)}")
    if variable.clamp not in (None, bounds):
        clamps.append(f"if in {list(bounds)}")
    clamp = ", ".join(clamps)
    path = variable.value_name if variable.source is not None else "?"
    read = element_text(variable.element), iterations_text(variable.iterations)
    return path, *read, value_text(variable) or "", clamp


def _source_range(variable: RuntimeVariable) -> Interval | None:
    """Return the bounds of the type of the source of a runtime variable, if it is known."""
    if not isinstance(variable.array, ArrayRef):
        return None
    leaf = leaf_shape(variable.array.instruction.shape, variable.array.path)
    return range_of(leaf.element_type) if isinstance(leaf, Shape) else None

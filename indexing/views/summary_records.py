"""Records of a module's summary, and their text and JSON.

`indexing.views.module_summary` makes them; `schemas/summary.json` is the JSON schema.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from hlo.html import Preformatted
from hlo.shapes.shape import Shape
from hlo.text.names import counted_noun
from indexing.maps.answers import Path
from indexing.maps.indexing_map import Grade
from indexing.memory.executions import Executions
from indexing.views.access_kinds import ACCESS_KINDS
from indexing.views.array_records import (
    ArrayRecord,
    Narrow,
    SpaceRecord,
    array_rows,
    indented_rows,
    path_suffix,
    space_table,
    total_text,
)
from indexing.views.listing import short_shape
from indexing.views.map_tables import Paint, plain
from indexing.views.records import SCHEMA_VERSION, shape_record
from indexing.views.tables import fit_columns

MAX_ROWS: Final = 10
"""Default number of rows of each table."""

_MAX_REASON: Final = 100  # characters of a reason in a table
_REREAD: Final = ("bytes", "reads each", "operand", "of")  # headings on a narrow terminal


@dataclass(frozen=True, slots=True)
class OpcodeRecord:
    """The instructions with one opcode.

    Attributes:
        count: their number.
        kinds: the number of those with a map of each kind of `ACCESS_KINDS`.
    """

    opcode: str
    count: int
    kinds: Mapping[str, int]

    def to_json(self) -> dict[str, Any]:
        """Return the counts as a value for JSON."""
        return {"opcode": self.opcode, "count": self.count, "kinds": dict(self.kinds)}


@dataclass(frozen=True, slots=True)
class ReasonRecord:
    """Accesses with one reason: why they are unknown, `may`, or not counted.

    Attributes:
        opcode: the opcode of the instructions.
        reason: the reason.
        count: the number of accesses: pairs of an output and an operand.
        first: COMPUTATION/NAME of the first instruction.
    """

    opcode: str
    reason: str
    count: int
    first: str

    def to_json(self) -> dict[str, Any]:
        """Return the reason as a value for JSON."""
        return {
            "opcode": self.opcode,
            "reason": self.reason,
            "count": self.count,
            "first": self.first,
        }


@dataclass(frozen=True, slots=True)
class RereadRecord:
    """An operand whose elements are read several times for one output of an instruction.

    Attributes:
        computation, instruction, opcode, output: the reader.
        operand, operand_name, path, shape: the array that is read.
        grade: "may" if the counts are upper bounds.
        reads: the number of reads of elements.
        distinct: the number of distinct elements that are read.
        bytes_again: the bytes of all reads but the first of each element.
        executions: the number of executions of the reader; all counts are those of one execution.
    """

    computation: str
    instruction: str
    opcode: str
    output: int
    operand: int
    operand_name: str
    path: Path
    shape: Shape
    grade: Grade
    reads: int
    distinct: int
    bytes_again: int
    executions: Executions

    @property
    def all_bytes_again(self) -> int:
        """`bytes_again` of all executions; of one if their number is not known."""
        return self.bytes_again * (self.executions.number or 1)

    def to_json(self) -> dict[str, Any]:
        """Return the counts as a value for JSON."""
        return {
            "computation": self.computation,
            "instruction": self.instruction,
            "opcode": self.opcode,
            "output": self.output,
            "operand": self.operand,
            "operand_name": self.operand_name,
            "path": list(self.path),
            "shape": shape_record(self.shape),
            "grade": self.grade,
            "reads": self.reads,
            "distinct": self.distinct,
            "bytes_again": self.bytes_again,
            "executions": list(self.executions),
        }


@dataclass(frozen=True, slots=True)
class Summary(Preformatted):
    """A summary of a module; its text is that of the command ``hlo-indexing summary``.

    Attributes:
        file, module, entry: names of the file, the module and the entry computation.
        computations, instructions: their numbers.
        characters: the length of the text.
        partitions, replicas: ``num_partitions`` and ``replica_count`` of the header, 1 by default.
        is_scheduled: ``is_scheduled`` of the header.
        aliases: number of results that may share the buffer of a parameter.
        parameters, results: the arrays of the entry computation, leaf by leaf.
        opcodes: the instructions of all computations, the most frequent opcode first.
        kinds: number of instructions with a map of each kind, as selected by ``maps --kind``.
        unknown, may: accesses without a map, and with an over-approximate map, by reason.
        spaces: the arrays of the executed computations by memory space; those that share the memory
            of others are not among them.
        largest: the largest of these arrays, in stored bytes.
        reread: the operands with the most bytes read again by the instructions of the executed
            computations; a fusion, not its body, is an instruction there.
        uncounted: operands whose reads cannot be counted, by reason.
    """

    file: str
    module: str
    entry: str
    computations: int
    instructions: int
    characters: int
    partitions: int
    replicas: int
    is_scheduled: bool
    aliases: int
    parameters: tuple[ArrayRecord, ...]
    results: tuple[ArrayRecord, ...]
    opcodes: tuple[OpcodeRecord, ...]
    kinds: Mapping[str, int]
    unknown: tuple[ReasonRecord, ...]
    may: tuple[ReasonRecord, ...]
    spaces: tuple[SpaceRecord, ...]
    largest: tuple[ArrayRecord, ...]
    reread: tuple[RereadRecord, ...]
    uncounted: tuple[ReasonRecord, ...]

    def __repr__(self) -> str:
        return f"<summary of {self.module!r}: {self.instructions} instructions>"

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def to_json(self) -> dict[str, Any]:
        """Return the summary as a value for JSON; `schemas/summary.json` is its schema."""
        return {
            "file": self.file,
            "module": self.module,
            "entry": self.entry,
            "computations": self.computations,
            "instructions": self.instructions,
            "characters": self.characters,
            "partitions": self.partitions,
            "replicas": self.replicas,
            "scheduled": self.is_scheduled,
            "aliases": self.aliases,
            "parameters": [each.to_json() for each in self.parameters],
            "results": [each.to_json() for each in self.results],
            "opcodes": [each.to_json() for each in self.opcodes],
            "kinds": dict(self.kinds),
            "unknown": [each.to_json() for each in self.unknown],
            "may": [each.to_json() for each in self.may],
            "spaces": [each.to_json() for each in self.spaces],
            "largest": [each.to_json() for each in self.largest],
            "reread": [each.to_json() for each in self.reread],
            "uncounted": [each.to_json() for each in self.uncounted],
            "schema_version": SCHEMA_VERSION,
        }

    def lines(
        self, max_rows: int = MAX_ROWS, paint: Paint = plain, width: int | None = None
    ) -> Iterator[str]:
        """Yield the lines of the text; longer tables are elided after `max_rows`.

        Args:
            width: the number of columns of a terminal: columns are narrower, and kinds are listed.
        """
        yield f"{self.file}: HloModule {paint(self.module, 'name')}"
        yield f"  {_header(self)}"
        yield from _interface_rows("parameters", self.parameters, max_rows, width)
        yield from _interface_rows("results", self.results, max_rows, width)
        yield from _kinds_table(self, max_rows, width)
        for title, reasons in (("unknown", self.unknown), ("may", self.may)):
            yield from _reason_table(f"{title} accesses", reasons, max_rows)
        if len(self.spaces) > 1 or any(each.padding for each in self.spaces):
            yield from space_table(self.spaces)
        yield "largest arrays, in bytes:" + ("" if self.largest else " none")
        cells = [[short_shape(a.shape), a.opcode, _place(a)] for a in self.largest]
        short = [[shape, place] for shape, _, place in cells]
        yield from array_rows(self.largest, cells, max_rows, width, Narrow(short, ["opcode"]))
        yield from _reread_rows(self.reread, max_rows, width)
        if self.uncounted:
            yield from _reason_table(
                "operands whose reads are not counted", self.uncounted, max_rows
            )


def _header(s: Summary) -> str:
    parts = [
        f"ENTRY {s.entry}",
        f"{counted_noun(s.instructions, 'instruction')} in "
        f"{counted_noun(s.computations, 'computation')}",
        f"{counted_noun(s.characters, 'character')} of text",
        counted_noun(s.partitions, "partition"),
        counted_noun(s.replicas, "replica"),
        *(["scheduled"] if s.is_scheduled else []),
        *([counted_noun(s.aliases, "aliased result")] if s.aliases else []),
    ]
    return ", ".join(parts)


def _interface_rows(
    title: str, arrays: Sequence[ArrayRecord], max_rows: int, width: int | None
) -> Iterator[str]:
    """Yield the rows of the parameters or of the results."""
    yield f"{title}: {counted_noun(len(arrays), 'array')}, {total_text(arrays)}"
    names = [[str(k), _array_name(a), a.argument] for k, a in enumerate(arrays)]
    cells = [[*own, str(a.shape)] for own, a in zip(names, arrays, strict=True)]
    short = [
        [number, short_shape(a.shape), *own]
        for (number, *own), a in zip(names, arrays, strict=True)
    ]
    yield from array_rows(arrays, cells, max_rows, width, Narrow(short, ["layout"]))


def _reread_rows(reread: Sequence[RereadRecord], max_rows: int, width: int | None) -> Iterator[str]:
    """Yield the rows of the operands with the most bytes read again."""
    yield "most re-read operands, in bytes read again:" + ("" if reread else " none")
    numbers = [("" if r.grade == "exact" else "<= ") + f"{r.all_bytes_again:,}" for r in reread]
    narrow = Narrow([_short_cells(r) for r in reread], ["shape", "opcode"], _REREAD)
    yield from indented_rows([_reread_cells(r) for r in reread], numbers, max_rows, width, narrow)


def _kinds_table(s: Summary, max_rows: int, width: int | None) -> Iterator[str]:
    """Yield a row for all instructions, and a row for each opcode."""
    head = ["instructions", "count", *ACCESS_KINDS]
    rows = [("all", s.instructions, s.kinds)]
    rows += [(record.opcode, record.count, record.kinds) for record in s.opcodes[:max_rows]]
    cells = [
        [f"  {name}", *(f"{n:,}" if n else "." for n in (count, *kinds.values()))]
        for name, count, kinds in rows
    ]
    table = [head, *cells]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    if width is not None and sum(widths) + 2 * len(widths) - 2 > width:
        table = [[*head[:2], "with a map of these kinds"]]
        table += [[f"  {name}", f"{n:,}", _kinds_text(kinds)] for name, n, kinds in rows]
    right = range(1, len(head) if len(table[0]) > 3 else 2)
    yield from fit_columns(table, right, width=width)
    if more := s.opcodes[max_rows:]:
        listed = ", ".join(f"{record.opcode} ({record.count})" for record in more)
        yield f"  … {len(more)} more: {listed}"


def _kinds_text(kinds: Mapping[str, int]) -> str:
    """Return the counts of the kinds that occur."""
    return ", ".join(f"{kind} {count:,}" for kind, count in kinds.items() if count) or "."


def _reason_table(title: str, reasons: Sequence[ReasonRecord], max_rows: int) -> Iterator[str]:
    total = sum(each.count for each in reasons)
    yield f"{title}: {total:,}" if total else f"{title}: none"
    cells = [[f"{r.opcode}: {_clip_reason(r.reason)}", f"first {r.first}"] for r in reasons]
    yield from indented_rows(cells, [f"{r.count:,}" for r in reasons], max_rows)


def _reread_cells(r: RereadRecord) -> list[str]:
    return [
        f"{_reads_each(r)} reads an element",
        short_shape(r.shape),
        f"operand {r.operand} {r.operand_name}{path_suffix(r.path)}",
        f"of {r.opcode} {_reader(r)}",
    ]


def _short_cells(r: RereadRecord) -> list[str]:
    """Return the cells below the headings `_REREAD`."""
    return [_reads_each(r), f"{r.operand} {r.operand_name}{path_suffix(r.path)}", _reader(r)]


def _reads_each(r: RereadRecord) -> str:
    return f"{r.reads / r.distinct:,.1f}".removesuffix(".0")


def _reader(r: RereadRecord) -> str:
    output = f", output {r.output}" if r.output else ""
    return f"{r.computation}/{r.instruction}{output}{_executions(r.executions)}"


def _executions(executions: Executions) -> str:
    if executions.number is not None and executions.number != 1:
        return f", in {executions} executions"
    return f", {executions.clause}" if executions.clause else ""


def _clip_reason(reason: str) -> str:
    return reason if len(reason) <= _MAX_REASON else f"{reason[: _MAX_REASON - 1]}…"


def _array_name(array: ArrayRecord) -> str:
    return array.instruction + path_suffix(array.path)


def _place(array: ArrayRecord) -> str:
    return f"{array.computation}/{_array_name(array)}"

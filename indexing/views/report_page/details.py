"""The details of an instruction: text, source, maps and tiles, as values for JSON."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from hlo.memo import Memo
from hlo.modules.forms import METADATA, InstructionForm
from hlo.modules.module import Computation, Instruction
from hlo.modules.op_source import OpSource
from hlo.text.source import HloError
from indexing.dataflow.queries import walk_of
from indexing.dataflow.walk import Walk
from indexing.views.access_kinds import kinds_of
from indexing.views.map_answers import answer, answers_to_parameters
from indexing.views.map_query import Query
from indexing.views.map_tables import (
    CONTROL,
    MapRow,
    MapTable,
    path_text,
    reason_text,
    row_text,
    runtime_text,
    shape_text,
)
from indexing.views.repeated_answers import is_of_form
from indexing.views.report_page.tile_details import TileDetails

MAX_ROWS: Final = 200
"""Limit on the maps of one instruction in one section; beyond it, they are counted."""
MAX_FORMS: Final = 1 << 12
"""Limit on the forms of instructions whose maps are kept."""
FORWARD: Final = Query(directions=("input-to-output",))
TO_PARAMETERS: Final = Query(to_parameters=True)


@dataclass(slots=True)
class Details:
    """The details of the instructions of a module.

    Attributes:
        tiled: the instructions whose tiles are listed.
        is_mapped: list also the maps to parameters, and from operands to outputs.
        kinds: for each instruction with a map, the kinds of its maps; filled by `of`.
    """

    tiled: frozenset[Instruction]
    is_mapped: bool
    kinds: dict[Instruction, list[str]] = field(default_factory=dict)
    _walk: Walk = field(init=False, default_factory=lambda: walk_of(**Query().options))
    _forms: Memo[InstructionForm, tuple[list[str], list[Any]]] = field(
        init=False, default_factory=lambda: Memo(MAX_FORMS)
    )
    _frames: dict[int, list[str]] = field(init=False, default_factory=dict)
    _sources: dict[str, dict[str, Any]] = field(init=False, default_factory=dict)
    _tiles: TileDetails = field(init=False, default_factory=TileDetails)
    _swept: Computation | None = field(init=False, default=None)
    _to_parameters: dict[str, list[MapTable]] = field(init=False, default_factory=dict)

    def of(self, instruction: Instruction) -> dict[str, Any]:
        """Return the details of one instruction; empty parts are left out."""
        details: dict[str, Any] = {"text": str(instruction)}
        details |= self._source_of(instruction)
        try:
            self.kinds[instruction], maps = self._maps(instruction)
        except HloError as error:
            details["fault"] = str(error)
            return details
        if instruction.operands:
            details["maps"] = maps
            if self.is_mapped:
                file = instruction.module.filename
                details["forward"] = _tables(answer(instruction, FORWARD, file))
                if any(operand.opcode != "parameter" for operand in instruction.operands):
                    details["parameters"] = _tables(self._tables_to_parameters(instruction))
        if instruction in self.tiled:
            details["tiles"] = self._tiles.of(instruction)
        return details

    def _maps(self, instruction: Instruction) -> tuple[list[str], list[Any]]:
        """Return the kinds of the maps to the operands, and the maps of each output.

        Instructions of one form differ in the names of their operands only.
        """
        form = instruction.form
        known = None if form is None else self._forms.get(form)
        if known is not None:
            kinds, maps = known
            return kinds, _with_names(maps, instruction)
        tables = list(answer(instruction, Query(), instruction.module.filename))
        kinds = sorted({kind for table in tables for kind in kinds_of(table.rows)})
        maps = _tables(tables)
        if form is not None and is_of_form(self._walk, instruction):
            if all(row.path is None for table in tables for row in table.rows):
                self._forms.keep(form, (kinds, maps))
        return kinds, maps

    def _source_of(self, instruction: Instruction) -> dict[str, Any]:
        """Return the operation and the places of an instruction, made once for equal metadata."""
        metadata = instruction.attributes.get(METADATA)
        if metadata is None:
            return {}
        known = self._sources.get(metadata.text)
        if known is None:
            source, known = instruction.source, {}
            if source:
                known = {"op_name": source.op_name, "frames": self._frame_texts(source)}
            self._sources[metadata.text] = known
        return known

    def _frame_texts(self, source: OpSource) -> list[str]:
        """Return the places of a source; instructions with the same stack frame share them."""
        number = source.stack_frame
        if number is None:
            return list(map(str, source.frames))
        if number not in self._frames:
            self._frames[number] = list(map(str, source.frames))
        return self._frames[number]

    def _tables_to_parameters(self, instruction: Instruction) -> list[MapTable]:
        """Return the tables of an instruction; one sweep computes those of its computation."""
        computation = instruction.computation
        if computation is not self._swept:
            self._swept, tables = computation, defaultdict(list)
            every, file = frozenset(computation.instructions), computation.module.filename
            for table in answers_to_parameters(computation, every, TO_PARAMETERS, file):
                tables[table.instruction].append(table)
            self._to_parameters = tables
        return self._to_parameters[instruction.name]


def _tables(tables: Iterable[MapTable]) -> list[Any]:
    """Return the maps of each output: at most `MAX_ROWS`, and the number of further ones."""
    values, left = [], MAX_ROWS
    for table in tables:
        rows, more = table.rows[:left], len(table.rows[left:])
        left -= len(rows)
        shape = shape_text(table.shape)
        values.append([table.output, table.outputs, shape, list(map(_row, rows)), more])
    return values


def _with_names(maps: Iterable[list[Any]], instruction: Instruction) -> list[Any]:
    """Return the maps of an instruction, given those of another one of its form."""
    operands = instruction.operands
    return [
        [*head, [{**row, "name": operands[row["operand"]].name} for row in rows], more]
        for *head, rows, more in maps
    ]


def _row(row: MapRow) -> dict[str, Any]:
    """Return a row of a table as ``hlo-indexing maps --explain`` prints it."""
    grade, text = row_text(row)
    record: dict[str, Any] = {
        "operand": row.operand,
        "name": f"{row.name}{path_text(row.path)}",
        "shape": shape_text(row.shape),
        "grade": grade,
        "text": text,
    }
    if row.map is not None:
        record["runtime"] = [runtime_text(variable) for variable in row.map.runtime]
    record["notes"] = [CONTROL] * row.control + [reason_text(reason) for reason in row.reasons]
    return {key: value for key, value in record.items() if value != []}

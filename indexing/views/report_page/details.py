"""The details of an instruction: text, source, maps, tiles and traffic, as values for JSON."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hlo.modules.module import Instruction
from hlo.text.source import HloError
from indexing.memory.movement.figures import InstructionTraffic
from indexing.views.access_kinds import kinds_of
from indexing.views.map_tables import (
    CONTROL,
    MapRow,
    MapTable,
    Query,
    answer,
    map_line,
    path_text,
    reason_text,
    runtime_text,
    shape_text,
)
from indexing.views.report_page.tile_details import TileDetails
from indexing.views.traffic_tables import TrafficTable


@dataclass(slots=True)
class Details:
    """The details of the instructions of a module.

    Attributes:
        table: the traffic of the module.
        tiled: the instructions whose tiles are listed.
        kinds: for each instruction with a map, the kinds of its maps; filled by `of`.
    """

    table: TrafficTable
    tiled: frozenset[Instruction]
    kinds: dict[Instruction, list[str]] = field(default_factory=dict)
    _traffic: dict[Instruction, InstructionTraffic] = field(init=False)
    _tiles: TileDetails = field(init=False, default_factory=TileDetails)

    def __post_init__(self) -> None:
        self._traffic = {each.instruction: each for each in self.table.traffic.instructions}

    def of(self, instruction: Instruction) -> dict[str, Any]:
        """Return the details of one instruction; empty parts are left out."""
        details: dict[str, Any] = {"text": str(instruction)}
        source = instruction.source
        if source:
            details["op_name"] = source.op_name
            details["frames"] = list(map(str, source.frames))
        try:
            tables = list(answer(instruction, Query(), instruction.module.filename))
        except HloError as error:
            details["fault"] = str(error)
            return details
        self.kinds[instruction] = sorted({kind for t in tables for kind in kinds_of(t.rows)})
        if instruction.operands:
            details["maps"] = list(map(_table, tables))
        traffic = self._traffic.get(instruction)
        if traffic is not None:
            details["traffic"] = self.table.record(traffic)
        if instruction in self.tiled:
            details["tiles"] = self._tiles.of(instruction)
        return details


def _table(table: MapTable) -> list[Any]:
    return [table.output, table.outputs, shape_text(table.shape), list(map(_row, table.rows))]


def _row(row: MapRow) -> dict[str, Any]:
    """Return a row of a table as ``hlo-indexing maps --explain`` prints it."""
    record: dict[str, Any] = {
        "operand": row.operand,
        "name": f"{row.name}{path_text(row.path)}",
        "shape": shape_text(row.shape),
    }
    if row.unknown is not None:
        record |= {"grade": "unknown", "text": row.unknown}
    elif row.map is None:
        record |= {"grade": "nothing", "text": "nothing is read"}
    else:
        record |= {"grade": row.map.grade, "text": map_line(row.map)}
        record["runtime"] = [runtime_text(variable) for variable in row.map.runtime]
    record["notes"] = [CONTROL] * row.control + [reason_text(reason) for reason in row.reasons]
    return {key: value for key, value in record.items() if value != []}

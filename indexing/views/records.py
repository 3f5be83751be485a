"""Answers as JSON, one object for each map; `schemas/maps.json` is their JSON schema.

Expressions are text, bounds are inclusive ``[lower, upper]``, as in `IndexingMap.to_json`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hlo.shapes.shape import UNBOUNDED, AnyShape, Shape
from indexing.maps.memoised import memoised_maps
from indexing.maps.printing import result_texts, text_in
from indexing.views.map_tables import MapRow, MapTable, map_line, shape_text
from indexing.views.value_texts import value_text

if TYPE_CHECKING:
    from hlo.modules.module import Instruction
    from hlo.modules.op_source import OpSource
    from indexing.maps.indexing_map import IndexingMap
    from indexing.maps.reasons import Reason
    from indexing.maps.runtime_variable import RuntimeVariable

SCHEMA_VERSION: Final = 1
"""Version of the JSON of the command; keys may be added without a new version."""

_FILES: Final = {path.stem: path for path in (Path(__file__).parent / "schemas").glob("*.json")}
SCHEMAS: Final = _FILES | {"compose": _FILES["simplify"]}
"""The file of the JSON schema of each command."""

_PARTS: Final = ("dims", "ranges", "bounds", "results", "constraints")
_NO_PARTS: Final = "".join(f', "{part}": null' for part in _PARTS)
_NOTHING: Final = '"unknown": null, "map": null, "runtime": []'
_quoted = json.encoder.encode_basestring_ascii


def json_lines(table: MapTable) -> Iterator[str]:
    """Yield a JSON object for each map of `table`; without operands, one with operand null."""
    head = _head(table.file, table.computation)
    head += (
        f', "instruction": {_quoted(table.instruction)}, "opcode": {_quoted(table.opcode)}'
        f', "direction": "{table.direction}", "output": {table.output}'
    )
    output = f', "schema_version": {SCHEMA_VERSION}, "output_shape": {_shape_json(table.shape)}'
    if table.source is not None:
        output += f', "source": {json.dumps(source_record(table.source))}'
        output += f', "lines": {json.dumps(table.lines)}'
        if table.lines_before is not None:
            output += f', "lines_before": {json.dumps(table.lines_before)}'
    if not table.rows:
        names = '"operand_name": null, "operand_shape": null, "parameter": null'
        fields = f'"grade": "exact", {_NOTHING}{output}, {names}'
        yield f'{head}, "operand": null, {fields}{_NO_PARTS}}}'
    for row in table.rows:
        if row.json_fields is None:
            row.json_fields = _row_fields(row)
        before, after = row.json_fields
        yield f"{head}{before}{output}{after}"


def _row_fields(row: MapRow) -> tuple[str, str]:
    """Return the fields of a row before and after those of the output."""
    operand = (
        f'"operand_name": {_quoted(row.name)}, "operand_shape": {_shape_json(row.shape)}'
        f', "parameter": {"null" if row.parameter is None else row.parameter}'
    )
    fields, parts = _map_fields(row)
    if row.reasons:
        parts += f', "reasons": [{", ".join(map(_reason_json, row.reasons))}]'
    if row.control:
        parts += ', "control": true'
    if row.assumptions:
        parts += f', "assumptions": {json.dumps(row.assumptions)}'
    if row.steps:
        parts += f', "steps": {json.dumps(row.steps)}'
    if row.path is not None:
        parts += f', "path": {json.dumps(row.path)}'
    return f', "operand": {row.operand}, {fields}', f", {operand}{parts}}}"


def instruction_record(instruction: Instruction) -> dict[str, Any]:
    """Return the fields that tell an instruction, for JSON."""
    return {
        "file": instruction.module.filename,
        "computation": instruction.computation.name,
        "instruction": instruction.name,
        "opcode": instruction.opcode,
    }


def shape_record(shape: AnyShape) -> dict[str, Any]:
    """Return a shape as a value for JSON: its text, and the element type and sizes of an array.

    The size of an unbounded dimension is None.

    >>> import hlo
    >>> shape_record(hlo.parse_shape("f32[2,3]"))
    {'text': 'f32[2,3]', 'element_type': 'f32', 'dims': [2, 3]}
    """
    text = shape_text(shape)
    if not isinstance(shape, Shape):
        return {"text": text}
    dims = [None if size == UNBOUNDED else size for size in shape.dims]
    return {"text": text, "element_type": shape.element_type, "dims": dims}


def source_record(source: OpSource) -> dict[str, Any]:
    """Return the source of an instruction as a value for JSON; None where it is not recorded.

    >>> from hlo.modules.op_source import OpSource, StackFrame
    >>> source_record(OpSource("jit(f)/sin", StackFrame("model.py", 7)))
    {'op_name': 'jit(f)/sin', 'file': 'model.py', 'line': 7, 'column': None, \
'end_line': None, 'end_column': None, 'function': None}
    """
    frame = source.frame
    record: dict[str, Any] = {"op_name": source.op_name or None}
    for name in ("file", "line", "column", "end_line", "end_column", "function"):
        record[name] = None if frame is None else getattr(frame, name)
    return record


@lru_cache(maxsize=1 << 11)
def _shape_json(shape: AnyShape) -> str:
    return json.dumps(shape_record(shape))


def _reason_json(reason: Reason) -> str:
    """Return a reason for the grade `may` as JSON; without an instruction if it is a budget."""
    names: tuple[str | None, str | None, str | None] = (None, None, None)
    if reason.instruction is not None:
        instruction = reason.instruction
        names = instruction.opcode, instruction.computation.name, instruction.name
    opcode, computation, name = ["null" if each is None else _quoted(each) for each in names]
    place = f'"opcode": {opcode}, "computation": {computation}, "instruction": {name}'
    return f'{{"reason": {_quoted(reason.text)}, {place}}}'


@lru_cache(maxsize=64)
def _head(file: str, computation: str) -> str:
    return f'{{"file": {_quoted(file)}, "computation": {_quoted(computation)}'


def _map_fields(row: MapRow) -> tuple[str, str]:
    """Return the JSON fields `grade` to `runtime`, and the fields with the parts of the map."""
    if row.unknown is not None:
        fields = f'"grade": null, "unknown": {_quoted(row.unknown)}, "map": null, "runtime": []'
        return fields, _NO_PARTS
    if row.map is None:
        return f'"grade": "exact", {_NOTHING}', _NO_PARTS
    return _map_json(row.map) if row.map.runtime else _map_json_once(row.map)


def _map_json(m: IndexingMap) -> tuple[str, str]:
    fields = f'"grade": "{m.grade}", "unknown": null, "map": {_quoted(map_line(m))}'
    return f'{fields}, "runtime": {_runtime_json(m)}', _parts_json(m)


@lru_cache(maxsize=1 << 11)
def _map_json_once(m: IndexingMap) -> tuple[str, str]:
    """`_map_json`, memoised: maps without runtime variables keep no module alive."""
    return _map_json(m)


def map_json(indexing_map: IndexingMap, steps: Sequence[str] | None = None) -> str:
    """Return the JSON object of one map; `schemas/simplify.json` is its JSON schema.

    Args:
        indexing_map: the map.
        steps: the simplification steps, if they were requested.
    """
    fields = [
        f'"map": {_quoted(map_line(indexing_map))}, "grade": "{indexing_map.grade}"',
        f', "runtime": {_runtime_json(indexing_map)}{_parts_json(indexing_map)}',
        "" if steps is None else f', "steps": {json.dumps(steps)}',
    ]
    return f'{{{"".join(fields)}, "schema_version": {SCHEMA_VERSION}}}'


def _runtime_json(m: IndexingMap) -> str:
    return json.dumps(runtime_records(m)) if m.runtime else "[]"


def runtime_records(m: IndexingMap) -> list[dict[str, Any]]:
    """Return the sources of the runtime variables of a map, as values for JSON."""
    return [
        source_of(v)
        | {"map": None if v.array is None else str(m.source_map(v)), "clamp": v.clamp}
        | ({} if (text := value_text(v)) is None else {"formula": text})
        for v in m.runtime
    ]


def source_of(v: RuntimeVariable) -> dict[str, Any]:
    """Return the name of a runtime variable and its source, as values for JSON.

    Only a source inside of loops has iterations.
    """
    record = {"name": v.name, "instruction": v.source_name, "calls": v.call_names}
    return record | ({"iterations": list(map(str, v.iterations))} if v.iterations else {})


@memoised_maps(1 << 11)
def _parts_json(m: IndexingMap) -> str:
    """Return the JSON fields with the variables, bounds, results and constraints of a map."""
    values = (
        [v.name for v in m.dims],
        [v.name for v in m.ranges],
        {v.name: v.bounds for v in m.variables},
        result_texts(m),
        [(text_in(m, c.expr), c.lower, c.upper) for c in m.constraints],
    )
    return "".join(
        f', "{part}": {json.dumps(value)}' for part, value in zip(_PARTS, values, strict=True)
    )

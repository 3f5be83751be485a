"""JSON records of the commands ``check``, ``run`` and ``validate``.

`schemas/` has the JSON schema of each.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from math import isfinite
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from hlo.text.source import HloError
from indexing.views.in_place_lines import in_place_record
from indexing.views.records import SCHEMA_VERSION, instruction_record

if TYPE_CHECKING:
    from hlo.modules.module import Instruction, Module
    from hlo.modules.shardings import IgnoredSharding
    from indexing.codegen.findings import Report
    from indexing.equivalence.shared_memory import SharedMemory
    from indexing.execution.values import Array

Scope: TypeAlias = Literal["instruction", "module"]


def error_record(error: HloError) -> dict[str, Any]:
    """Return an error and its source location as a value for JSON.

    >>> from hlo.text.source import Source
    >>> source = Source("x = f32[2] add(p)", "sum.hlo")
    >>> error = HloError("`p` is not defined", source.span(15, 16), "undefined")
    >>> error_record(error)  # doctest: +NORMALIZE_WHITESPACE
    {'code': 'undefined', 'message': '`p` is not defined', 'line': 1, 'column': 16, 'text': 'p',
     'label': '', 'notes': (), 'help': ''}
    """
    return {
        "code": error.code,
        "message": error.message,
        "line": error.span.line,
        "column": error.span.column,
        "text": error.span.text,
        "label": error.label,
        "notes": error.notes,
        "help": error.help,
    }


def check_json(
    file: str,
    module: Module | None,
    errors: Iterable[HloError],
    unknown: Sequence[tuple[Instruction, Sequence[str]]] = (),
    warnings: Iterable[IgnoredSharding] = (),
    shared: SharedMemory | None = None,
) -> str:
    """Return the outcome of ``check`` for one module.

    Args:
        file: the name of the file.
        module: the module; None if it could not be parsed.
        errors: its errors.
        unknown: the first instruction of each unknown opcode, with similar opcodes.
        warnings: the faults that are ignored.
        shared: what is decided about memory that is written in place; None if it is not asked.
    """
    opcodes = [
        {
            "opcode": instruction.opcode,
            "instruction": instruction.name,
            "computation": instruction.computation.name,
            "line": instruction.span.line,
            "column": instruction.span.column,
            "similar": similar,
        }
        for instruction, similar in unknown
    ]
    record = {
        "file": file,
        "module": None if module is None else module.name,
        "instructions": None if module is None else sum(1 for _ in module.instructions),
        "errors": list(map(error_record, errors)),
        "warnings": list(map(_warning_record, warnings)),
        "unknown_opcodes": opcodes,
        "in_place": None if shared is None else in_place_record(shared),
        "schema_version": SCHEMA_VERSION,
    }
    return json.dumps(record)


def _warning_record(ignored: IgnoredSharding) -> dict[str, Any]:
    instruction = ignored.instruction
    names = (
        (None, None) if instruction is None else (instruction.name, instruction.computation.name)
    )
    return error_record(ignored.error) | dict(
        zip(("instruction", "computation"), names, strict=True)
    )


def result_json(file: str, name: str, array: Array, limit: int, output: str | None) -> str:
    """Return one result of ``run``; the values of more than `limit` elements are left out."""
    from indexing.execution.archive import element_type_name

    values = None if array.size > limit else list(map(_value, array.ravel().tolist()))
    record = {
        "file": file,
        "name": name,
        "element_type": element_type_name(array),
        "dims": array.shape,
        "values": values,
        "output": output,
        "schema_version": SCHEMA_VERSION,
    }
    return json.dumps(record)


def _value(value: object) -> object:
    """Return one element as a value for JSON, which has no infinities and complex numbers.

    >>> list(map(_value, [1.5, float("-inf"), True, 1 + 2j]))
    [1.5, '-inf', True, [1.0, 2.0]]
    """
    if isinstance(value, complex):
        return [_value(value.real), _value(value.imag)]
    if isinstance(value, float) and not isfinite(value):
        return str(value)
    return value


def report_json(report: Report, scope: Scope) -> str:
    """Return the outcome of ``validate`` for one instruction or for the entry computation."""
    findings = [
        {"check": finding.check, "status": finding.status, "details": finding.details}
        for finding in dict.fromkeys(report.findings)
    ]
    record = {
        **instruction_record(report.instruction),
        "scope": scope,
        "status": report.status,
        "checks": findings,
        "tight": [
            {
                "output": each.output,
                "operand": each.operand,
                "operand_name": report.instruction.operands[each.operand].name,
                "path": list(each.path),
                "tight": each.is_tight and report.status == "ok",
                "shown": each.shown,
                "claimed": each.claimed,
                "sample": each.is_sample,
            }
            for each in report.tightness
        ]
        or None,
        "schema_version": SCHEMA_VERSION,
    }
    return json.dumps(record)

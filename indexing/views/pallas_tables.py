"""The table and the JSON of ``hlo-indexing pallas``; `schemas/pallas.json` is the JSON schema."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from indexing.maps.indexing_map import IndexingMap
from indexing.pallas.grid_orders import GridOrder
from indexing.pallas.report import BlockReport, CallReport, PallasReport, Truth
from indexing.views.records import SCHEMA_VERSION
from indexing.views.tables import ANY_WIDTH, Table
from simplifier.linear import Expr
from simplifier.unknown import Unknown

_COLUMNS: Final = (
    *("operand", "block", "array", "bounds", "copies", "bytes"),
    *("covered", "visits", "race", "hazard"),
)


def report_lines(report: PallasReport) -> Iterator[str]:
    """Yield the lines of the text: a table for each call, with faults and reasons below it."""
    if not report.calls:
        yield "no Pallas call"
    for number, call in enumerate(report.calls):
        if number:
            yield ""
        yield from str(call_table(call)).splitlines()
    yield from report.notes


def pallas_text(report: CallReport | PallasReport) -> str:
    """Return a report, or one call of it, as text."""
    if isinstance(report, CallReport):
        return str(call_table(report))
    return "\n".join(report_lines(report))


def call_tables(report: CallReport | PallasReport) -> list[Table]:
    """Return the table of a call, or those of all calls of a report."""
    calls = report.calls if isinstance(report, PallasReport) else (report,)
    return [call_table(call) for call in calls]


def call_table(call: CallReport) -> Table:
    """Return the table of a call, a row for each operand."""
    rows = [_row(operand) for operand in call.operands]
    return Table(_head(call), _COLUMNS, rows, list(_notes(call)), right=[4, 5], max_width=ANY_WIDTH)


def _head(call: CallReport) -> str:
    pairs = zip(call.grid, call.dimensions, call.semantics, strict=True)
    dimensions = ", ".join(f"{name} < {size} {word}" for size, name, word in pairs)
    parts = [f"{call.name}: {call.target}, grid ({dimensions})"]
    if call.bytes is not None:
        parts.append(f"{call.bytes:,} bytes moved")
    if call.vmem_bytes is not None:
        limit = "" if call.vmem_limit is None else f" of {call.vmem_limit:,}"
        parts.append(f"VMEM {call.vmem_bytes:,}{limit} bytes")
    return ", ".join(parts)


def _row(operand: BlockReport) -> tuple[object, ...]:
    bounds: str = operand.bounds
    if operand.bounds == "padded":
        bounds += f" by {_tuple(operand.overhang)}"
    return (
        operand.origin,
        operand.block,
        operand.sizes,
        bounds,
        operand.fetches,
        operand.bytes,
        _word(operand.covered),
        operand.visits,
        _word(operand.race),
        _word(operand.hazard) if operand.is_aliased else None,
    )


def _word(answer: Truth) -> str | None:
    if isinstance(answer, bool):
        return "yes" if answer else "no"
    return answer


def _tuple(numbers: tuple[int, ...]) -> str:
    return f"({', '.join(map(str, numbers))})"


def _notes(call: CallReport) -> Iterator[str]:
    """Yield faults, warnings, conditions, reasons, and the better order, a line each."""
    for operand in call.operands:
        yield from _faults(operand)
    yield from [f"fault: {fault}" for fault in call.faults if fault.startswith("VMEM")]
    yield from [f"warning: {warning}" for warning in call.warnings]
    for operand in call.operands:
        if operand.condition:
            yield f"may: {operand.origin}: inside if {operand.condition}"
        yield from _formulas(operand)
        yield from [f"note: {operand.origin}: {note}" for note in operand.notes]
    if call.bytes_formula is not None:
        yield f"traffic: all: {call.bytes_formula} bytes"
    yield from [f"note: {note}" for note in call.notes]
    yield from _better_order(call)


def _faults(operand: BlockReport) -> Iterator[str]:
    place = f" [{operand.source}]" if operand.source else ""
    at = "".join([f" at {name} = {value}" for name, value in operand.symbols])
    for fault in operand.faults:
        yield f"fault: {operand.origin}: {fault}{at}{place}"


def _formulas(operand: BlockReport) -> Iterator[str]:
    if operand.fetches_formula is not None:
        size = "" if operand.bytes_formula is None else f", {operand.bytes_formula} bytes"
        yield f"traffic: {operand.origin}: {operand.fetches_formula} copies{size}"


def _better_order(call: CallReport) -> Iterator[str]:
    order = call.best_order
    if isinstance(order, GridOrder) and call.bytes is not None and order.names != call.dimensions:
        change = "" if order.bytes >= call.bytes else f", {call.bytes - order.bytes:,} fewer"
        yield f"better order: ({', '.join(order.names)}) moves {order.bytes:,} bytes{change}"


# ---------------------------------------------------------------- JSON


def report_json(report: PallasReport) -> Iterator[str]:
    """Yield a line of JSON for each call."""
    for call in report.calls:
        yield json.dumps(call_record(call))


def call_record(call: CallReport) -> dict[str, Any]:
    """Return the answers about a call as a value for JSON."""
    order = call.best_order
    return {
        "name": call.name,
        "target": call.target,
        "grid": list(call.grid),
        "dimensions": list(call.dimensions),
        "semantics": list(call.semantics),
        "bytes": call.bytes,
        "bytes_formula": _formula(call.bytes_formula),
        "vmem_bytes": call.vmem_bytes,
        "vmem_limit": call.vmem_limit,
        "fits": call.fits,
        "operands": [_operand_record(operand) for operand in call.operands],
        "best_order": {"dimensions": list(order.names), "bytes": order.bytes}
        if isinstance(order, GridOrder)
        else None,
        "faults": list(call.faults),
        "warnings": list(call.warnings),
        "notes": list(call.notes),
        "schema_version": SCHEMA_VERSION,
    }


def _operand_record(operand: BlockReport) -> dict[str, Any]:
    return {
        "origin": operand.origin,
        "source": operand.source,
        "is_output": operand.is_output,
        "block": operand.block,
        "array": operand.sizes,
        "map": _map_text(operand.map),
        "bounds": operand.bounds,
        "bounds_at": operand.bounds_at,
        "overhang": list(operand.overhang),
        "condition": operand.condition,
        "fetches": operand.fetches,
        "bytes": operand.bytes,
        "fetches_formula": _formula(operand.fetches_formula),
        "bytes_formula": _formula(operand.bytes_formula),
        "covered": operand.covered,
        "hole": operand.hole,
        "visits": operand.visits,
        "visits_at": operand.visits_at,
        "race": operand.race,
        "race_at": operand.race_at,
        "race_dimension": operand.race_dimension or None,
        "hazard": operand.hazard,
        "hazard_at": operand.hazard_at,
        "scalar_bounds": operand.scalar_bounds,
        "scalar_bounds_at": operand.scalar_bounds_at,
        "refused": operand.refused or None,
        "symbols": dict(operand.symbols),
        "notes": list(operand.notes),
    }


def _formula(formula: Expr | None) -> str | None:
    return None if formula is None else str(formula)


def _map_text(m: IndexingMap | Unknown) -> str | None:
    return None if isinstance(m, Unknown) else str(m)

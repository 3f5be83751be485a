"""Pictures of the blocks of a Pallas call: how many steps have each block of an operand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from indexing.drawing.drawing import Backend, as_drawing
from indexing.drawing.element_counts import ListedCounts
from indexing.drawing.figures import CellGrid, Figure
from indexing.drawing.heat_maps import HeatMap, heat_panels
from indexing.drawing.style import Theme
from indexing.pallas.block_maps import PlacedOperand
from indexing.pallas.block_tables import BlockTable
from indexing.pallas.report import BlockReport, CallReport
from simplifier.unknown import Unknown

MAX_BLOCKS = 1 << 16
"""Maximum number of blocks of a picture."""


def plot_operand_blocks(
    report: BlockReport, step: Sequence[int] | None, backend: Backend, theme: Theme
) -> Any:
    """Return a picture of the blocks of an operand; see `BlockReport.plot`."""
    return as_drawing(operand_figure(report, step), backend, theme)


def operand_figure(report: BlockReport, step: Sequence[int] | None = None) -> Figure:
    """Return a heat map of the blocks of an operand, and of those of one step.

    Raises:
        ValueError: `step` is not in the grid.
    """
    title = f"blocks {report.block} of {report.origin} {report.sizes}"
    table = _table(report)
    if isinstance(table, Unknown):
        return Figure(title, (), (f"unknown: {table}",))
    panels = _panels(report, table, "steps that have each block", None)
    if step is not None:
        panels += _panels(report, table, f"the block of step {tuple(step)}", step)
    return Figure(title, panels, report.faults)


def plot_call_blocks(
    report: CallReport, step: Sequence[int] | None, backend: Backend, theme: Theme
) -> Any:
    """Return a picture of the blocks of all operands; see `CallReport.plot`."""
    return as_drawing(call_figure(report, step), backend, theme)


def call_figure(report: CallReport, step: Sequence[int] | None = None) -> Figure:
    """Return a heat map of the blocks of each operand, or of those that one step has.

    Raises:
        ValueError: `step` is not in the grid.
    """
    grid = ", ".join(
        f"{n} < {size}" for n, size in zip(report.dimensions, report.grid, strict=True)
    )
    panels: tuple[CellGrid, ...] = ()
    notes: list[str] = []
    for operand in report.operands:
        table = _table(operand)
        if isinstance(table, Unknown):
            notes.append(f"{operand.origin}: unknown: {table}")
            continue
        words = f"{'writes' if operand.is_output else 'reads'} {operand.block} of {operand.origin}"
        panels += _panels(operand, table, words, step)
    subject = f"grid ({grid})" if step is None else f"step {tuple(step)} of the grid ({grid})"
    return Figure(f"{report.name}: {subject}", panels, (*notes, *report.faults))


def _table(report: BlockReport) -> BlockTable | Unknown:
    """Return the table of the blocks of an operand; `Unknown` for too many blocks."""
    placed = report.placed
    if not isinstance(placed, PlacedOperand):
        return Unknown("the report has no blocks") if placed is None else placed
    table = BlockTable.of(placed)
    if isinstance(table, BlockTable) and len(table.volumes) > MAX_BLOCKS:
        return Unknown(f"more than {MAX_BLOCKS} blocks")
    return table


def _panels(
    report: BlockReport, table: BlockTable, title: str, step: Sequence[int] | None
) -> tuple[CellGrid, ...]:
    if step is not None and (
        len(step) != len(table.grid)
        or not all(0 <= i < n for i, n in zip(step, table.grid, strict=True))
    ):
        raise ValueError(f"step {tuple(step)} is not in the grid {table.grid}")
    counts = table.visit_counts(step)
    aligned = all(c % b.size == 0 for b, row in zip(table.operand.block, table.starts, strict=True)
                  for c in row.tolist())  # fmt: skip
    notes = [] if aligned else ["blocks start within cells: a step counts for each that it touches"]
    if report.is_output and step is None and (counts == 0).any():
        notes.append("0: no step has the block")
    heat = HeatMap(
        title,
        report.origin,
        counts.shape,
        ListedCounts.of_array(counts),
        unit="step",
        notes=tuple(notes),
    )
    return heat_panels(heat)

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
from indexing.pallas.report import BlockReport

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
    placed = report.placed
    table = BlockTable.of(placed) if isinstance(placed, PlacedOperand) else placed
    if not isinstance(table, BlockTable):
        return Figure(title, (), (f"unknown: {table}",))
    if len(table.volumes) > MAX_BLOCKS:
        return Figure(title, (), (f"unknown: more than {MAX_BLOCKS} blocks",))
    panels = _panels(report, table, "steps that have each block", None)
    if step is not None:
        if len(step) != len(table.grid) or not all(
            0 <= i < n for i, n in zip(step, table.grid, strict=True)
        ):
            raise ValueError(f"step {tuple(step)} is not in the grid {table.grid}")
        panels += _panels(report, table, f"the block of step {tuple(step)}", step)
    return Figure(title, panels, report.faults)


def _panels(
    report: BlockReport, table: BlockTable, title: str, step: Sequence[int] | None
) -> tuple[CellGrid, ...]:
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

"""Figures as figures of matplotlib, with an axes for each panel.

The values of a heat map are those of its image; boxes, bars and points have the texts of the SVG.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from indexing.drawing.figures import (
    BarChart,
    CellGrid,
    DrawnCell,
    DrawnPanel,
    Figure,
    LinkDiagram,
    Roofline,
)
from indexing.drawing.style import LIGHT

_PANEL_SIZE = 4.2
_COLUMNS = 3
_COLOURS = ("grey", "blue", "orange", "green", "red", "purple", "brown", "pink", "olive")
"""The names of the colours of classes."""


def matplotlib_figure(figures: Sequence[Figure]) -> Any:
    """Return a figure of matplotlib with the panels of `figures`.

    Raises:
        ImportError: matplotlib is not installed; the message says how to install it.
    """
    try:
        from matplotlib.figure import Figure as MatplotlibFigure
    except ImportError as error:
        raise ImportError(
            "matplotlib is not installed: run `pip install 'hlo-indexing[plot]'`, or omit "
            "backend='matplotlib'"
        ) from error
    panels = [panel for figure in figures for panel in figure.panels]
    columns = min(max(len(panels), 1), _COLUMNS)
    rows = -(-len(panels) // columns) or 1
    drawn = MatplotlibFigure(
        figsize=(_PANEL_SIZE * columns, _PANEL_SIZE * rows), layout="constrained"
    )
    drawn.suptitle("; ".join(figure.title for figure in figures))
    for number, panel in enumerate(panels):
        axes = drawn.add_subplot(rows, columns, number + 1)
        axes.set_title(panel.title, fontsize=9)
        _draw_panel(axes, panel)
        axes.set_xlabel("\n".join(_lines_below(panel)), fontsize=7)
    notes = [note for figure in figures for note in figure.notes]
    if notes:
        drawn.supxlabel("\n".join(notes), fontsize=7)
    return drawn


def _lines_below(panel: DrawnPanel) -> list[str]:
    """Return the name of the horizontal axis, the points of a roofline, and the notes."""
    lines: list[str] = []
    if isinstance(panel, CellGrid) and panel.axes[1]:
        lines.append(panel.axes[1])
    if isinstance(panel, BarChart):
        lines += [", ".join(f"{_COLOURS[shade]}: {text}" for shade, text in panel.legend)]
    if isinstance(panel, Roofline):
        lines.append("flops per byte")
        lines += [f"{k + 1}: {point.label}" for k, point in enumerate(panel.points)]
    return [*filter(None, lines), *panel.notes]


def _draw_panel(axes: Any, panel: DrawnPanel) -> None:
    match panel:
        case CellGrid():
            _draw_grid(axes, panel)
        case LinkDiagram():
            _draw_links(axes, panel)
        case BarChart():
            _draw_bars(axes, panel)
        case Roofline():
            _draw_roofline(axes, panel)


def _draw_grid(axes: Any, grid: CellGrid) -> None:
    import numpy as np
    from matplotlib.colors import ListedColormap

    if not grid.cells:
        axes.set_axis_off()
        return
    is_heat = grid.palette == "heat"
    image = np.full((grid.rows, grid.columns), np.nan)  # places without a cell
    for cell in grid.cells:
        image[cell.row, cell.column] = cell.value if is_heat else cell.shade
    if is_heat:
        highest = max(float(np.nanmax(image)), 1.0)
        shown = axes.imshow(image, cmap="Blues", vmin=0, vmax=highest, aspect="auto")
        axes.figure.colorbar(shown, ax=axes, shrink=0.7)
    else:
        colours = ListedColormap(LIGHT.classes)
        axes.imshow(image, cmap=colours, vmin=-0.5, vmax=len(LIGHT.classes) - 0.5, aspect="auto")
    if len(grid.cells) <= 600:
        for cell in grid.cells:
            axes.text(cell.column, cell.row, cell.label, ha="center", va="center", fontsize=6)
    _set_ticks(axes.set_xticks, grid.column_labels)
    _set_ticks(axes.set_yticks, grid.row_labels)
    axes.set_ylabel(grid.axes[0])
    for mark in grid.marks:
        axes.axvline(mark.column, color=LIGHT.accent, linewidth=1.2)
        axes.text(mark.column, -0.6, mark.label, ha="center", va="bottom", fontsize=6)
    if grid.path:
        places = np.array(grid.path)
        axes.plot(places[:, 1], places[:, 0], color=LIGHT.accent, linewidth=0.8)


def _set_ticks(set_ticks: Any, labels: Sequence[str]) -> None:
    step = max(1, -(-len(labels) // 12))
    places = range(0, len(labels), step)
    set_ticks(list(places), [labels[k] for k in places], fontsize=7)


def _draw_links(axes: Any, diagram: LinkDiagram) -> None:
    scale = max(len(diagram.above), 1) / max(len(diagram.below), 1)
    for k, box in list(enumerate(diagram.above))[:: _every(diagram.above)]:
        axes.text(k + 0.5, 1, box.label, ha="center", va="bottom", fontsize=6)
    for k, box in list(enumerate(diagram.below))[:: _every(diagram.below)]:
        axes.text((k + 0.5) * scale, 0, box.label, ha="center", va="top", fontsize=6)
    for link in diagram.links:
        end = (link.end + link.place) * scale
        axes.plot([link.start + 0.5, end], [1, 0], color=LIGHT.accent, linewidth=0.8)
    axes.set_xlim(0, max(len(diagram.above), 1))
    axes.set_ylim(-0.2, 1.2)
    axes.set_xticks([])
    axes.set_yticks([0, 1], [diagram.heads[1], diagram.heads[0]], fontsize=7)
    axes.spines[:].set_visible(False)


def _every(boxes: Sequence[DrawnCell]) -> int:
    """Return the distance of the boxes whose labels do not overlap."""
    longest = max([len(box.label) for box in boxes], default=1)
    return max(1, -(-len(boxes) * (longest + 1) // 64))


def _draw_bars(axes: Any, chart: BarChart) -> None:
    for row, bar in enumerate(chart.bars):
        start = 0
        for part in bar.parts:
            colour = LIGHT.classes[part.shade]
            axes.barh(row, part.value, left=start, color=colour, edgecolor="black", linewidth=0.4)
            start += part.value
        axes.text(start, row, f" {bar.text}", va="center", fontsize=6)
    axes.set_yticks(range(len(chart.bars)), [bar.label for bar in chart.bars], fontsize=7)
    axes.set_ylim(max(len(chart.bars), 6) - 0.5, -0.5)
    axes.set_xlim(0, axes.get_xlim()[1] * 1.3)  # room for the texts behind the bars
    axes.set_xticks([])


def _draw_roofline(axes: Any, roofline: Roofline) -> None:
    ridge = roofline.flops_rate / roofline.bytes_rate
    reached = [point.intensity for point in roofline.points if point.intensity > 0]
    start, end = min([ridge / 10, *reached]), max([ridge * 10, *reached])
    axes.loglog(
        [start, ridge, end],
        [start * roofline.bytes_rate, roofline.flops_rate, roofline.flops_rate],
        color="black",
    )
    for number, point in enumerate(roofline.points):
        if point.intensity > 0:
            axes.plot(point.intensity, point.rate, "o", color=LIGHT.accent)
            place = (point.intensity, point.rate)
            near = [p for p in roofline.points[:number] if 0.8 < p.intensity / place[0] < 1.25]
            below = (5, -9 * (len(near) + 1))
            axes.annotate(str(number + 1), place, below, textcoords="offset points", fontsize=6)
    axes.set_ylabel("flop/s")

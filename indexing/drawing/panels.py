"""Panels of figures with their measures, which draw themselves as elements of SVG."""

from __future__ import annotations

from typing import Protocol, assert_never

from indexing.drawing.canvas import Canvas
from indexing.drawing.cell_grids import CellGridDrawing
from indexing.drawing.charts import BarDrawing, RooflineDrawing
from indexing.drawing.figures import BarChart, CellGrid, DrawnPanel, LinkDiagram, Roofline
from indexing.drawing.links import LinkDrawing
from indexing.drawing.style import Theme


class PanelDrawing(Protocol):
    """A panel with its measures in pixels."""

    name: str
    width: float
    height: float

    def draw(self, canvas: Canvas) -> None:
        """Draw the panel with its origin at the upper left corner."""


def panel_drawing(panel: DrawnPanel, theme: Theme) -> PanelDrawing:
    """Return a panel with its measures."""
    match panel:
        case CellGrid():
            return CellGridDrawing(panel, theme)
        case LinkDiagram():
            return LinkDrawing(panel, theme)
        case BarChart():
            return BarDrawing(panel, theme)
        case Roofline():
            return RooflineDrawing(panel, theme)
        case _:
            assert_never(panel)

"""Figures as SVG text: panels from left to right in lines, a title above, notes below.

The text is self-contained: it refers to nothing outside of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from indexing.drawing.canvas import Canvas, attribute, number, wrap_text
from indexing.drawing.figures import Figure
from indexing.drawing.panels import PanelDrawing, panel_drawing
from indexing.drawing.style import SIZES, Theme, hatching, style_sheet, text_width

MAX_WIDTH: Final = 960
"""Width of a line of panels, in pixels; a wider panel has a line of its own."""
MARGIN: Final = 16
GAP: Final = 26
"""Distance between panels."""


class Placed(NamedTuple):
    """A panel, and the place of its upper left corner."""

    panel: PanelDrawing
    x: float
    y: float


def svg_text(figures: Sequence[Figure], theme: Theme = "auto") -> str:
    """Return figures below each other as the text of an SVG file.

    >>> from indexing.drawing.figures import CellGrid, DrawnCell
    >>> grid = CellGrid("p", "p", 1, 1, (DrawnCell(0, 0, "0", 1, 4),))
    >>> text = svg_text([Figure("one element", (grid,))])
    >>> text.startswith("<svg "), 'data-index="0" data-value="1"' in text
    (True, True)
    """
    canvas = Canvas()
    width, height = 0.0, float(MARGIN)
    for figure in figures:
        right, bottom = _draw_figure(canvas, figure, height, theme)
        width, height = max(width, right), bottom + MARGIN
    size = f'width="{number(width + MARGIN)}" height="{number(height)}"'
    view = f'viewBox="0 0 {number(width + MARGIN)} {number(height)}"'
    names = "; ".join(figure.title for figure in figures)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} {view} class="hlo-{theme}" role="img">\n'
        f"<title>{attribute(names)}</title>\n{style_sheet(theme)}{hatching(theme)}\n"
        f'<rect width="100%" height="100%" class="paper"/>\n' + "\n".join(canvas.parts) + "\n</svg>"
    )


def _draw_figure(canvas: Canvas, figure: Figure, top: float, theme: Theme) -> tuple[float, float]:
    """Draw a figure below `top`; return the right and bottom of what is drawn."""
    panels = [panel_drawing(panel, theme) for panel in figure.panels]
    columns = int(MAX_WIDTH / text_width("x", "title"))
    head = wrap_text(figure.title, columns)
    top = canvas.lines(MARGIN, top, head, "title") + 10
    right = MARGIN + max(text_width(line, "title") for line in head)
    placed, bottom = _place_panels(panels, top)
    for each in placed:
        with canvas.group(each.x, each.y, class_="p", data_panel=each.panel.name):
            each.panel.draw(canvas)
        right = max(right, each.x + each.panel.width)
    if figure.notes:
        columns = int(max(right - MARGIN, 560) / text_width("x", "note"))
        notes = [line for note in figure.notes for line in wrap_text(note, columns)]
        bottom = canvas.lines(MARGIN, bottom + 4, notes, "note")
        right = max(right, MARGIN + max(text_width(line, "note") for line in notes))
    return right, bottom


def _place_panels(panels: Sequence[PanelDrawing], top: float) -> tuple[list[Placed], float]:
    """Return panels from left to right, in lines, and the bottom of the last line."""
    placed: list[Placed] = []
    x, y, bottom = float(MARGIN), top, top
    for panel in panels:
        if x > MARGIN and x + panel.width > MAX_WIDTH + MARGIN:
            x, y = float(MARGIN), bottom + GAP - 10
        placed.append(Placed(panel, x, y))
        x += panel.width + GAP
        bottom = max(bottom, y + panel.height)
    return placed, bottom + SIZES["note"]

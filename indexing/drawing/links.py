"""Diagrams of links, such as from lanes to sectors, as elements of SVG."""

from __future__ import annotations

from typing import Final

from indexing.drawing.canvas import Canvas
from indexing.drawing.figures import DrawnCell, LinkDiagram
from indexing.drawing.parts import (
    MIN_WIDTH,
    TITLE_HEIGHT,
    draw_cell,
    draw_foot,
    draw_label,
    foot_of,
    panel_title,
)
from indexing.drawing.style import Theme, text_width

MAX_DIAGRAM_WIDTH: Final = 880
BOX_HEIGHT: Final = 18
DISTANCE: Final = 84
"""Distance between the two rows of boxes."""
GAP_WIDTH: Final = 14
MAX_STRETCH: Final = 8
"""Width of a lower box, in upper boxes: at most the 8 elements of a sector."""


class LinkDrawing:
    """A diagram of links with its measures."""

    def __init__(self, diagram: LinkDiagram, theme: Theme) -> None:
        self.diagram, self.theme = diagram, theme
        self.name = diagram.name
        self.left = max(text_width(text, "axis") for text in diagram.heads) + 10
        gaps = len(diagram.gaps) * GAP_WIDTH
        space = MAX_DIAGRAM_WIDTH - self.left
        self.above = _box_width(diagram.above, space)
        even = self.above * len(diagram.above) / max(len(diagram.below), 1)
        least = min(even, MAX_STRETCH * self.above)  # arrows of neighbours are then parallel
        self.below = _box_width(diagram.below, space - gaps, least)
        widths = len(diagram.above) * self.above, len(diagram.below) * self.below + gaps
        self.inner = max(widths)
        self.indents = [(self.inner - width) / 2 for width in widths]
        self.title = panel_title(diagram.title, 700)
        content = max(self.left + self.inner, text_width(self.title, "panel"), MIN_WIDTH)
        self.foot = foot_of(diagram.legend, diagram.notes, content)
        self.width = max(content, self.foot.width)
        self.bottom = TITLE_HEIGHT + 2 * BOX_HEIGHT + DISTANCE
        self.height = self.bottom + self.foot.height + 6

    def draw(self, canvas: Canvas) -> None:
        """Draw the diagram with its origin at the upper left corner."""
        diagram = self.diagram
        canvas.text(0, 12, self.title, "panel")
        lower = TITLE_HEIGHT + BOX_HEIGHT + DISTANCE
        for y, head in zip((TITLE_HEIGHT, lower), diagram.heads, strict=True):
            canvas.text(0, y + BOX_HEIGHT / 2 + 3.5, head, "axis")
        for link in diagram.links:
            x0 = self._above(link.start) + self.above / 2
            x1 = self._below(link.end) + self.below * link.place
            top = TITLE_HEIGHT + BOX_HEIGHT
            canvas.path([(x0, top), (x1, lower - 1)], "link")
            canvas.tip(x1, lower - 0.5, x1 - x0, lower - top, 4)
        above = [(self._above(k), TITLE_HEIGHT, self.above) for k in range(len(diagram.above))]
        below = [(self._below(k), lower, self.below) for k in range(len(diagram.below))]
        for boxes, places in ((diagram.above, above), (diagram.below, below)):
            is_labelled = all(text_width(box.label, "cell") <= places[0][2] - 2 for box in boxes)
            for box, (x, y, width) in zip(boxes, places, strict=True):
                place = (x, y, width, BOX_HEIGHT)
                draw_cell(canvas, box, place, "class", self.theme, is_labelled)
                if is_labelled:
                    draw_label(canvas, box, place, "class")
        for k in diagram.gaps:
            x = self._below(k) - GAP_WIDTH / 2
            canvas.text(x, lower + BOX_HEIGHT / 2 + 3, "⋯", "axis middle")
        draw_foot(canvas, self.foot, self.bottom, "class", self.theme)

    def _above(self, k: int) -> float:
        return self.left + self.indents[0] + k * self.above

    def _below(self, k: int) -> float:
        gaps = sum(gap <= k for gap in self.diagram.gaps) * GAP_WIDTH
        return self.left + self.indents[1] + k * self.below + gaps


def _box_width(boxes: tuple[DrawnCell, ...], space: float, least: float = 21) -> float:
    """Return the width of a box: large enough for labels, if that fits."""
    widest = max([text_width(box.label, "cell") for box in boxes], default=0) + 6
    return min(max(widest, least), space / max(len(boxes), 1))

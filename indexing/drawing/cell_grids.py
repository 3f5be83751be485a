"""Grids of cells as elements of SVG."""

from __future__ import annotations

from typing import Final

from indexing.drawing.canvas import Canvas
from indexing.drawing.figures import CellGrid
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

MAX_GRID_WIDTH: Final = 880
"""Width of a grid with labels in its cells, at most; otherwise cells are small squares."""
MAX_SMALL_WIDTH: Final = 440
ROW_HEIGHT: Final = 19
MAX_LABELLED_ROWS: Final = 40
MARK_HEIGHT: Final = 12
LABEL_HEIGHT: Final = 11
STEPS: Final = (1, 2, 4, 5, 8, 10, 16, 20, 32, 50, 64, 100)


class CellGridDrawing:
    """A grid with its measures."""

    def __init__(self, grid: CellGrid, theme: Theme) -> None:
        self.grid, self.theme = grid, theme
        self.name = grid.name
        size = _labelled_size(grid)
        self.is_labelled = size is not None
        self.cell_width, self.cell_height = size or _small_size(grid)
        rows = grid.row_labels
        self.left = max([text_width(text, "axis") for text in rows], default=0) + 6 * bool(rows)
        has_head = bool(grid.column_labels) or any(grid.axes)
        self.top = TITLE_HEIGHT + (13 if any(grid.axes) else 0) + (12 if has_head else 0)
        self.top += MARK_HEIGHT if grid.marks else 0
        self.grid_width = grid.columns * self.cell_width
        title = panel_title(grid.title, 520)
        self.title = title
        content = max(self.left + self.grid_width, text_width(title, "panel"), MIN_WIDTH)
        self.foot = foot_of(grid.legend, grid.notes, content)
        self.width = max(content, self.foot.width)
        self.bottom = self.top + grid.rows * self.cell_height
        self.height = self.bottom + self.foot.height + 4

    def draw(self, canvas: Canvas) -> None:
        """Draw the grid with its origin at the upper left corner."""
        grid = self.grid
        canvas.text(0, 12, self.title, "panel")
        rows, columns = grid.axes
        names = [f"{rows} ↓" if rows else "", f"{columns} →" if columns else ""]
        canvas.text(0, TITLE_HEIGHT + 7, "  ".join(filter(None, names)), "axis")
        self._draw_labels(canvas)
        for cell in grid.cells:
            box = self._box(cell.row, cell.column)
            draw_cell(canvas, cell, box, grid.palette, self.theme, self.is_labelled)
        self._draw_path(canvas)
        for cell in grid.cells if self.is_labelled else ():
            draw_label(canvas, cell, self._box(cell.row, cell.column), grid.palette)
        for frame in grid.outlines:
            x, y, _, _ = self._box(frame.row, frame.column)
            size = frame.columns * self.cell_width, frame.rows * self.cell_height
            canvas.rect((x, y, *size), "frame", title=frame.label)
        self._draw_marks(canvas)
        draw_foot(canvas, self.foot, self.bottom, grid.palette, self.theme)

    def _box(self, row: int, column: int) -> tuple[float, float, float, float]:
        x = self.left + column * self.cell_width
        return x, self.top + row * self.cell_height, self.cell_width, self.cell_height

    def _draw_labels(self, canvas: Canvas) -> None:
        grid = self.grid
        widest = max([text_width(text, "axis") for text in grid.column_labels], default=0)
        step = _step((widest + 4) / self.cell_width)
        for column, text in enumerate(grid.column_labels):
            if column % step == 0:
                x, y, width, _ = self._box(0, column)
                canvas.text(x + width / 2, y - 4, text, "axis middle")
        step = _step(LABEL_HEIGHT / self.cell_height)
        for row, text in enumerate(grid.row_labels):
            if row % step == 0:
                x, y, _, height = self._box(row, 0)
                canvas.text(x - 5, y + height / 2 + 3.3, text, "axis end")

    def _draw_marks(self, canvas: Canvas) -> None:
        """Draw lines through columns, with their labels above those of the columns."""
        for mark in self.grid.marks:
            x, top, width, _ = self._box(0, mark.column)
            middle, half = x + width / 2, text_width(mark.label, "axis") / 2
            head = top - MARK_HEIGHT - 4
            at = max(min(middle, self.width - half), half)
            canvas.text(at, head, mark.label, "axis middle")
            canvas.line((middle, head + 3), (middle, self.bottom), "frame")

    def _draw_path(self, canvas: Canvas) -> None:
        """Draw arrows through the middles of cells."""
        places = [self._box(row, column) for row, column in self.grid.path]
        middles = [(x + width / 2, y + height / 2) for x, y, width, height in places]
        if len(middles) < 2:
            return
        canvas.path(middles, "path")
        for (x0, y0), (x1, y1) in (middles[:2], middles[-2:]):
            canvas.tip(x1, y1, x1 - x0, y1 - y0)


def _labelled_size(grid: CellGrid) -> tuple[float, float] | None:
    """Return width and height of cells that are large enough for labels; None if that is wide."""
    labels = [text_width(cell.label, "cell") for cell in grid.cells if cell.label]
    width = max([ROW_HEIGHT, *[label + 6 for label in labels]])
    fits = width * grid.columns <= MAX_GRID_WIDTH and grid.rows <= MAX_LABELLED_ROWS
    return (width, ROW_HEIGHT) if labels and fits else None


def _small_size(grid: CellGrid) -> tuple[float, float]:
    """Return width and height of small square cells; rows with names are high enough for them."""
    side = min(max(MAX_SMALL_WIDTH / max(grid.columns, grid.rows, 1), 6.5), 18)
    has_names = not all(text.isdigit() for text in grid.row_labels)
    return side, max(side, LABEL_HEIGHT) if has_names else side


def _step(least: float) -> int:
    """Return the distance between labels that do not overlap."""
    return next((step for step in STEPS if step >= least), 200)

"""Parts that several panels have: cells, titles, legends and notes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from indexing.drawing.canvas import Canvas, wrap_text
from indexing.drawing.figures import DrawnCell, Palette
from indexing.drawing.style import (
    BOUND_HATCHING,
    LIGHT,
    SIZES,
    Theme,
    clip_text,
    has_hatching,
    text_width,
)

TITLE_HEIGHT: Final = 22
SWATCH: Final = 11
LEGEND_STEP: Final = 17
MIN_WIDTH: Final = 90
"""Width of a panel, at least: for its title, legend and notes."""

Legend = Sequence[tuple[int, str]]


class Foot(NamedTuple):
    """The legend and the notes of a panel, in lines.

    Attributes:
        legend: the entries of each line, with their places.
        notes: the lines of the notes.
        width, height: of the drawing.
    """

    legend: tuple[tuple[float, int, int, str], ...]
    notes: tuple[str, ...]
    width: float
    height: float


def foot_of(legend: Legend, notes: Sequence[str], width: float) -> Foot:
    """Return the legend and the notes of a panel with this width."""
    entries: list[tuple[float, int, int, str]] = []
    x, line, right = 0.0, 0, 0.0
    for shade, text in legend:
        own = SWATCH + 5 + text_width(text, "note") + 12
        if x and x + own > width + 12:
            x, line = 0.0, line + 1
        entries.append((x, line, shade, text))
        x += own
        right = max(right, x - 12)
    columns = int(max(width, 220) / text_width("x", "note"))
    lines = tuple([each for note in notes for each in wrap_text(note, columns)])
    right = max([right, *[text_width(each, "note") for each in lines]])
    height = (line + 1) * LEGEND_STEP + 4 if entries else 0.0
    height += len(lines) * (SIZES["note"] + 4) + (4 if lines else 0)
    return Foot(tuple(entries), lines, right, height)


def draw_foot(canvas: Canvas, foot: Foot, y: float, palette: Palette, theme: Theme) -> None:
    """Draw the legend and the notes below `y`."""
    for x, line, shade, text in foot.legend:
        box = (x, y + 6 + line * LEGEND_STEP, SWATCH, SWATCH)
        draw_box(canvas, box, shade, palette, theme, is_plain=palette == "heat")
        canvas.text(x + SWATCH + 5, box[1] + 9.5, text, "note")
    if foot.legend:
        y += (foot.legend[-1][1] + 1) * LEGEND_STEP + 4
    canvas.lines(0, y + 4, foot.notes, "note")


def draw_box(
    canvas: Canvas,
    box: tuple[float, float, float, float],
    shade: int,
    palette: Palette,
    theme: Theme,
    title: str = "",
    data: tuple[object, object] | None = None,
    is_plain: bool = False,
) -> None:
    """Draw a rectangle of a shade; classes are hatched unless the rectangle `is_plain`."""
    letter = "h" if palette == "heat" else "k"
    canvas.rect(box, f"c {letter}{shade}", title, data)
    if palette == "class" and not is_plain and has_hatching(shade):
        canvas.rect(box, "", fill=f"hlo-{theme}-hatch{shade}")


def draw_cell(
    canvas: Canvas,
    cell: DrawnCell,
    box: tuple[float, float, float, float],
    palette: Palette,
    theme: Theme,
    is_labelled: bool,
) -> None:
    """Draw a cell without its label; with the hatching of its class unless it gets a label."""
    title = cell.title or f"[{cell.index}]: {cell.value}"
    is_plain = is_labelled and bool(cell.label)
    draw_box(canvas, box, cell.shade, palette, theme, title, (cell.index, cell.value), is_plain)
    if cell.is_hatched:
        canvas.rect(box, "", fill=f"hlo-{theme}-{BOUND_HATCHING}")


def draw_label(
    canvas: Canvas, cell: DrawnCell, box: tuple[float, float, float, float], palette: Palette
) -> None:
    """Draw the label of a cell."""
    x, y, width, height = box
    is_other = palette == "heat" and cell.shade >= LIGHT.inverted
    style = "cell other middle" if is_other else "cell middle"
    canvas.text(x + width / 2, y + height / 2 + 3.2, cell.label, style)


def panel_title(text: str, width: float) -> str:
    """Return a title that fits into a panel of this width."""
    return clip_text(text, "panel", max(width, MIN_WIDTH))

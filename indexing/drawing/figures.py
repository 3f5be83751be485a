"""Figures as plain data: what the backends draw.

A `Figure` has a title, notes, and panels: a `CellGrid`, a `LinkDiagram`, a `BarChart` or a
`Roofline`.  Colours are numbers of shades; a shade always has a text in the legend, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, TypeAlias

HEAT_SHADES: Final = 6
"""Number of shades of a heat map, without the shade 0 of cells whose value is 0."""
CLASS_SHADES: Final = 8
"""Number of shades of classes; class ``k`` has shade ``k % CLASS_SHADES + 1``, 0 is no class."""

Palette: TypeAlias = Literal["heat", "class"]


@dataclass(frozen=True, slots=True)
class DrawnCell:
    """A cell of a grid, or a box of a diagram.

    Attributes:
        row, column: its place.
        index: the element, or the part of the array, that it shows.
        value: the value that it shows.
        shade: the number of its colour; 0 for a cell that shows nothing.
        label: its text, which is drawn if it fits.
        title: the text shown on hover; by default the index and the value.
        is_hatched: hatched cells show something else, which a note of the grid explains.
    """

    row: int
    column: int
    index: str
    value: int | str
    shade: int
    label: str = ""
    title: str = ""
    is_hatched: bool = False


class Outline(NamedTuple):
    """A frame around cells, with an optional label."""

    row: int
    column: int
    rows: int
    columns: int
    label: str = ""


class ColumnMark(NamedTuple):
    """A line through a column of a grid, with a label above it."""

    column: int
    label: str


@dataclass(frozen=True, slots=True)
class CellGrid:
    """A grid of cells: a heat map, or cells of classes.

    Attributes:
        title: the title.
        name: the array or part that it shows, also in the SVG as ``data-panel``.
        rows, columns: the size of the grid.
        cells: its cells; places without a cell stay empty.
        palette: "heat", shades of one colour that grow darker, or "class".
        legend: the text of each shade that occurs.
        row_labels, column_labels: for each row and column, the index that it shows.
        axes: the names of the rows and of the columns.
        notes: texts below the grid.
        outlines: frames around cells.
        path: places that arrows connect, one after another.
        marks: lines through columns.
    """

    title: str
    name: str
    rows: int
    columns: int
    cells: tuple[DrawnCell, ...]
    palette: Palette = "heat"
    legend: tuple[tuple[int, str], ...] = ()
    row_labels: tuple[str, ...] = ()
    column_labels: tuple[str, ...] = ()
    axes: tuple[str, str] = ("", "")
    notes: tuple[str, ...] = ()
    outlines: tuple[Outline, ...] = ()
    path: tuple[tuple[int, int], ...] = ()
    marks: tuple[ColumnMark, ...] = ()


class DrawnLink(NamedTuple):
    """An arrow from a box above to a place in a box below: `place` is between 0 and 1."""

    start: int
    end: int
    place: float = 0.5


@dataclass(frozen=True, slots=True)
class LinkDiagram:
    """Two rows of boxes, and arrows from the upper to the lower boxes.

    Attributes:
        title, name, legend, notes: as of a `CellGrid`.
        above, below: the boxes; their columns are their places.
        heads: the names of the two rows.
        links: the arrows.
        gaps: the numbers of lower boxes before which others are left out.
    """

    title: str
    name: str
    above: tuple[DrawnCell, ...]
    below: tuple[DrawnCell, ...]
    heads: tuple[str, str]
    links: tuple[DrawnLink, ...]
    legend: tuple[tuple[int, str], ...] = ()
    gaps: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()


class BarPart(NamedTuple):
    """A part of a bar."""

    value: int
    shade: int
    title: str


class DrawnBar(NamedTuple):
    """A bar: its label, its parts, and the text behind it."""

    label: str
    parts: tuple[BarPart, ...]
    text: str = ""


@dataclass(frozen=True, slots=True)
class BarChart:
    """Horizontal bars of parts; `title`, `name`, `legend` and `notes` as of a `CellGrid`."""

    title: str
    name: str
    bars: tuple[DrawnBar, ...]
    legend: tuple[tuple[int, str], ...] = ()
    notes: tuple[str, ...] = ()


class RooflinePoint(NamedTuple):
    """An instruction: operations per byte, and its highest rate of operations per second."""

    label: str
    intensity: float
    rate: float
    title: str


@dataclass(frozen=True, slots=True)
class Roofline:
    """A roofline: the highest rate of operations by arithmetic intensity, both logarithmic.

    Attributes:
        title, name, notes: as of a `CellGrid`.
        bytes_rate, flops_rate: the peak rates of the device, per second.
        points: the instructions, numbered from 1.
    """

    title: str
    name: str
    bytes_rate: float
    flops_rate: float
    points: tuple[RooflinePoint, ...]
    notes: tuple[str, ...] = ()


DrawnPanel: TypeAlias = CellGrid | LinkDiagram | BarChart | Roofline


@dataclass(frozen=True, slots=True)
class Figure:
    """Panels with a title above them and notes below.

    Attributes:
        title: the title.
        panels: the panels, from left to right.
        notes: texts below all panels.
    """

    title: str
    panels: tuple[DrawnPanel, ...]
    notes: tuple[str, ...] = ()


def class_shade(number: int) -> int:
    """Return the shade of a class.

    >>> [class_shade(k) for k in (0, 7, 8)]
    [1, 8, 1]
    """
    return number % CLASS_SHADES + 1


def heat_shades(values: Sequence[int]) -> tuple[dict[int, int], tuple[tuple[int, str], ...]]:
    """Return the shade of each value, and the legend: the values of each shade, as ranges.

    Values above 0 have equal intervals, or a shade each if they are few.

    >>> heat_shades([0, 1, 2, 2])
    ({0: 0, 1: 2, 2: 5}, ((0, '0'), (2, '1'), (5, '2')))
    >>> heat_shades([0, *range(1, 25)])[1]
    ((0, '0'), (1, '1–4'), (2, '5–8'), (3, '9–12'), (4, '13–16'), (5, '17–20'), (6, '21–24'))
    """
    levels = sorted({value for value in values if value > 0})
    shades = dict.fromkeys((v for v in values if v <= 0), 0)
    if len(levels) <= HEAT_SHADES:
        steps = {1: (4,), 2: (2, 5), 3: (1, 3, 5), 4: (1, 3, 4, 6), 5: (1, 2, 3, 4, 6)}
        chosen = steps.get(len(levels), tuple(range(1, HEAT_SHADES + 1)))
        shades |= dict(zip(levels, chosen, strict=False))
        return shades, tuple([(shade, f"{value:,}") for value, shade in sorted(shades.items())])
    low, span = levels[0], levels[-1] - levels[0] + 1
    shades |= {value: (value - low) * HEAT_SHADES // span + 1 for value in levels}
    ranges: dict[int, list[int]] = {}
    for value, shade in sorted(shades.items()):
        ranges.setdefault(shade, []).append(value)
    return shades, tuple([(shade, _range_text(own)) for shade, own in sorted(ranges.items())])


def _range_text(values: Sequence[int]) -> str:
    first, last = f"{values[0]:,}", f"{values[-1]:,}"
    return first if first == last else f"{first}–{last}"

"""Lines of limited width for a terminal: texts with colours that are wrapped at chosen places.

A `Unit` stays on one line if it fits.  Widths are those of the cells of a terminal, in which East
Asian characters take two, and control characters are measured as `hlo.text.source.printable`
escapes them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from rich.cells import cell_len, chop_cells

from hlo.text.source import printable

INDENT: Final = 4
"""Spaces before the lines that continue a text."""

Colouring = Callable[[str], str]
"""Adds colours to a text, without a change of its width."""


def without_colour(text: str) -> str:
    """Return `text`."""
    return text


MIN_BODY: Final = 30
"""Smallest width of texts beside their labels; where less is left, they are below."""


class Unit(NamedTuple):
    """A text that is not divided if it fits on a line.

    Attributes:
        text: the text, without colours.
        coloured: adds its colours.
        parts: the parts of a text that does not fit on a line; by default, its words.
    """

    text: str
    coloured: Colouring = without_colour
    parts: tuple[str, ...] = ()


class Line(NamedTuple):
    """A line: its width in cells, and its text with colours."""

    width: int
    text: str

    def pad_right(self, width: int) -> str:
        """Return the text, followed by spaces up to `width`."""
        return self.text + " " * (width - self.width)


def wrap_units(units: Iterable[Unit], width: int, indent: int = INDENT) -> list[Line]:
    """Return `units`, separated by spaces, on lines of at most `width` cells.

    All lines but the first start with `indent` spaces.  A unit that is too long for a line is
    divided into its parts, a part at spaces, and a word anywhere.

    >>> for line in wrap_units(map(Unit, ["sum =", "f32[4]", "reduce,", "output-to-input"]), 18, 2):
    ...     print(line.text)
    sum = f32[4]
      reduce,
      output-to-input
    """
    rows: list[list[Line]] = [[]]
    used = 0
    for unit in units:
        fits = _fits(unit, width - indent if rows[0] else width)
        for text in [printable(unit.text)] if fits else _divide_unit(unit, width - indent):
            size = cell_len(text)
            if rows[-1] and used + 1 + size > width:
                rows.append([])
            start = used + 1 if rows[-1] else indent if len(rows) > 1 else 0
            rows[-1].append(Line(size, unit.coloured(text)))
            used = start + size
    return [_join_lines(row, indent if number else 0) for number, row in enumerate(rows)]


def wrap_lines(lines: Iterable[str], width: int | None) -> Iterator[str]:
    """Yield lines, with line breaks in place of spaces where they are wider than `width` cells.

    Words are not divided, so that a longer path stays one.  Lone surrogates, which mark colours,
    have no width.

    Args:
        lines: the lines; the spaces before a line are also before what continues it.
        width: the number of columns of a terminal; None without a terminal.

    >>> print(*wrap_lines(["  layout: `v` -> fusion `f`"], 20), sep=chr(10))
      layout: `v` ->
          fusion `f`
    """
    for line in lines:
        if width is None or line_width(line) <= width:
            yield line
        else:
            yield from _wrap_parts(line, width)


def line_width(text: str) -> int:
    """Return the number of cells of a text; lone surrogates, which mark colours, have none."""
    plain = _MARK.sub("", text)
    return len(plain) if plain.isascii() and plain.isprintable() else cell_len(printable(plain))


_MARK: Final = re.compile("[\ud800-\udfff]")


def _wrap_parts(line: str, width: int) -> Iterator[str]:
    """Yield the parts of a line that is too wide; columns may move closer."""
    margin = " " * min(len(line) - len(line.lstrip(" ")), INDENT)  # a number may be flush right
    part, room = "", width
    for word in re.finditer(r"( *)([^ ]+)", line):
        gap, text = word.groups()
        free = room - line_width(part) - line_width(text)
        if free >= min(len(gap), 2) or not part.strip(" "):
            part += gap[: max(free, 2)] + text if part else gap + text
        else:
            yield part
            part = margin + " " * INDENT + text
    yield part


def _fits(unit: Unit, room: int) -> bool:
    """Return True if a line of `room` cells has room for `unit`."""
    return cell_len(printable(unit.text)) <= room


def _join_lines(parts: Sequence[Line], indent: int) -> Line:
    """Return one line of `parts`, separated by spaces."""
    width = indent + sum(part.width for part in parts) + max(0, len(parts) - 1)
    return Line(width, " " * indent + " ".join([part.text for part in parts]))


def _divide_unit(unit: Unit, room: int) -> Iterator[str]:
    """Yield the parts of `unit` that are not divided further on lines of `room` cells."""
    for part in map(printable, unit.parts or (unit.text,)):
        for word in [part] if cell_len(part) <= room else part.split():
            yield from [word] if cell_len(word) <= room else chop_cells(word, max(room, 2))


def table(rows: Sequence[Sequence[Unit]]) -> list[Line]:
    """Return rows of cells as aligned lines, with one space between columns.

    >>> for line in table([[Unit("p"), Unit("f32[4]")], [Unit("bias"), Unit("f32[]")]]):
    ...     print(line.text)
    p    f32[4]
    bias f32[]
    """
    texts = [[Unit(printable(cell.text), cell.coloured) for cell in row] for row in rows]
    cells = [[Line(cell_len(cell.text), cell.coloured(cell.text)) for cell in row] for row in texts]
    widths = [max(cell.width for cell in column) for column in zip(*cells, strict=True)]
    padded = [
        [Line(width, cell.pad_right(width)) for cell, width in zip(row, widths, strict=True)]
        for row in cells
    ]
    return [_join_lines([*row[:-1], cells[k][-1]], 0) for k, row in enumerate(padded)]


class Paragraph(NamedTuple):
    """Units that start on a line of their own, and further such units below them."""

    units: Sequence[Unit]
    notes: Sequence[Sequence[Unit]] = ()

    @property
    def texts(self) -> tuple[tuple[str, ...], ...]:
        """The texts of the units and of each note, without colours."""
        return tuple([tuple([unit.text for unit in units]) for units in (self.units, *self.notes)])

    def fits(self, width: int) -> bool:
        """Return True if lines of `width` cells have room for the longest unit, undivided."""
        return all(_fits(unit, width - (INDENT if n else 0)) for n, unit in enumerate(self.units))

    def lines(self, width: int) -> Iterator[Line]:
        """Yield the lines, of at most `width` cells."""
        yield from wrap_units(self.units, width)
        for note in self.notes:
            for line in wrap_units(note, width - 2):
                yield Line(line.width + 2, "  " + line.text)


def label_bodies(
    labels: Sequence[Sequence[Unit]], bodies: Sequence[Sequence[Paragraph]], width: int
) -> list[str]:
    """Return each label with its body: beside it, or below it.

    Bodies are below all labels if that takes no more lines, or if units do not fit beside labels.

    >>> label, body = [Unit("operand 0")], [Paragraph([Unit("(d0) -> (d0)")])]
    >>> label_bodies([label], [body], 60), label_bodies([label], [body], 20)
    (['operand 0  (d0) -> (d0)'], ['operand 0', '  (d0) -> (d0)'])
    """
    heads = table(labels)
    left = max([head.width for head in heads], default=0) + 2
    below = [
        line
        for label, body in zip(labels, bodies, strict=True)
        for line in _below(label, body, width)
    ]
    if width - left < MIN_BODY:
        return below
    if not all(part.fits(width - left) for body in bodies for part in body):
        return below
    right = [[line for part in body for line in part.lines(width - left)] for body in bodies]
    if sum(map(len, right)) >= len(below):
        return below
    return [
        (head.pad_right(left) if number == 0 else " " * left) + line.text
        for head, lines in zip(heads, right, strict=True)
        for number, line in enumerate(lines)
    ]


def _below(label: Sequence[Unit], body: Sequence[Paragraph], width: int) -> Iterator[str]:
    """Yield the lines of a label, and the indented lines of its body."""
    for line in wrap_units(label, width):
        yield line.text
    for part in body:
        for line in part.lines(width - 2):
            yield "  " + line.text

"""Tables of cells, which print as aligned lines of text and as HTML."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from html import escape
from typing import Final

from hlo.html import MAX_LINES
from simplifier.unknown import Unknown

MAX_WIDTH: Final = 44
"""Default for the maximum width of an aligned column."""

ANY_WIDTH: Final = 1 << 16
"""A maximum width for columns that are always aligned."""

_CELL: Final = "white-space: pre; text-align: left; vertical-align: top; font-family: monospace"


@dataclass(frozen=True, slots=True)
class Table:
    """A table with a title.

    Attributes:
        head: the title.
        columns: the headings.
        rows: the cells of each row; `cell_text` returns their texts.
        notes: the lines below the table.
        empty: the line in place of a table without rows.
        right: the numbers of the columns that are flush right; others are flush left.
        max_width: the maximum width of a column: longer texts shift the rest of their line.

    >>> print(Table("sizes", ("name", "bytes"), [("p", 2048), ("q", 5)], right=[1]))
    sizes
    name  bytes
    p     2,048
    q         5
    """

    head: str
    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
    notes: Sequence[str] = ()
    empty: str = ""
    right: Collection[int] = ()
    max_width: int = MAX_WIDTH

    def __str__(self) -> str:
        return "\n".join([self.head, *self.lines()])

    def lines(self) -> Iterator[str]:
        """Yield the lines below the title."""
        if self.rows:
            texts = [list(map(cell_text, row)) for row in self.rows]
            yield from align_columns([self.columns, *texts], self.right, self.max_width)
        yield from filter(None, ["" if self.rows else self.empty, *self.notes])

    def html(self) -> str:
        """Return the table as HTML; rows beyond `MAX_LINES` are counted."""
        hidden = len(self.rows) - MAX_LINES
        head = "".join(f'<th style="text-align: left">{escape(name)}</th>' for name in self.columns)
        rows = [*self.rows[:MAX_LINES], *([(f"… {hidden} more",)] if hidden > 0 else [])]
        body = "".join(f"<tr>{''.join(map(_html_cell, row))}</tr>" for row in rows)
        caption = "; ".join(filter(None, [self.head, *self.notes]))
        line = f'<div style="{_CELL}">{escape(caption)}</div>' if caption else ""
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        return f'<div style="overflow-x: auto">{line}{table}</div>'


def _html_cell(cell: object) -> str:
    return f'<td style="{_CELL}">{escape(cell_text(cell))}</td>'


def cell_text(cell: object) -> str:
    """Return a cell as text: numbers in groups of three digits, ratios with three digits.

    >>> list(map(cell_text, ["add", None, 2048, Fraction(4, 3), Unknown("why"), [1, 2]]))
    ['add', '', '2,048', '1.33', 'unknown', '[1, 2]']
    """
    match cell:
        case None:
            return ""
        case Unknown():
            return "unknown"
        case int():
            return f"{cell:,}"
        case Fraction():
            return f"{float(cell):.3g}"
        case list():
            return f"[{', '.join(map(str, cell))}]"
        case _:
            return str(cell)


def align_columns(
    rows: Sequence[Sequence[str]], right: Collection[int] = (), max_width: int = MAX_WIDTH
) -> Iterator[str]:
    """Yield a line for each row, with aligned columns, without empty columns.

    Args:
        rows: the cells of each row.
        right: the numbers of the columns that are flush right; others are flush left.
        max_width: the maximum width of a column: longer texts shift the rest of their line.

    >>> print(*align_columns([["add", "9", "f32"], ["dot", "10", ""]], right=[1]), sep=chr(10))
    add   9  f32
    dot  10
    """
    columns = list(zip(*rows, strict=True))
    widths = [min(max_width, max(map(len, column))) for column in columns]
    for row in rows:
        cells = [
            cell.rjust(width) if k in right else cell.ljust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
            if width
        ]
        yield "  ".join(cells).rstrip()

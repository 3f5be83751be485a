"""Tables of cells, which print as aligned lines of text and as HTML."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from html import escape
from typing import Final

from hlo.html import MAX_LINES, graded_html, panel_html, styled_html
from indexing.views.wrapping import INDENT
from simplifier.unknown import Unknown

MAX_WIDTH: Final = 44
"""Default for the maximum width of an aligned column."""

ANY_WIDTH: Final = 1 << 16
"""A maximum width for columns that are always aligned."""


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
        wrapped: the numbers of the columns that HTML wraps.

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
    wrapped: Collection[int] = ()

    def __str__(self) -> str:
        return "\n".join([self.head, *self.lines()])

    def lines(self, width: int | None = None) -> Iterator[str]:
        """Yield the lines below the title.

        Args:
            width: the number of columns of a terminal: rows that are wider are folded.
        """
        if self.rows:
            texts = [list(map(cell_text, row)) for row in self.rows]
            yield from align_columns([self.columns, *texts], self.right, self.max_width, width)
        yield from filter(None, ["" if self.rows else self.empty, *self.notes])

    def html(self) -> str:
        """Return the table as HTML that opens and closes; rows beyond `MAX_LINES` are counted."""
        hidden = len(self.rows) - MAX_LINES
        head = "".join([self._html_cell("th", k, name) for k, name in enumerate(self.columns)])
        rows = [
            "".join([self._html_cell("td", k, cell) for k, cell in enumerate(row)])
            for row in self.rows[:MAX_LINES]
        ]
        rows += [f"<td>… {hidden} more</td>"] if hidden > 0 else []
        body = "".join([f"<tr>{row}</tr>" for row in rows])
        notes = "".join([f'<div class="mute">{escape(note)}</div>' for note in self.notes])
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        content = (table if self.rows else escape(self.empty)) + notes
        return styled_html(panel_html(self.head, content) if self.head else content)

    def _html_cell(self, tag: str, column: int, cell: object) -> str:
        names = [("right", self.right), ("wrapped", self.wrapped)]
        classes = " ".join([name for name, columns in names if column in columns])
        kind = f' class="{classes}"' if classes else ""
        return f"<{tag}{kind}>{graded_html(cell_text(cell))}</{tag}>"


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
    rows: Sequence[Sequence[str]],
    right: Collection[int] = (),
    max_width: int = MAX_WIDTH,
    width: int | None = None,
) -> Iterator[str]:
    """Yield a line for each row, with aligned columns, without empty columns.

    Args:
        rows: the cells of each row.
        right: the numbers of the columns that are flush right; others are flush left.
        max_width: the maximum width of a column: longer texts shift the rest of their line.
        width: the number of columns of a terminal.  If the lines are longer, each row is folded in
            the same places, before a column, and its other lines are indented.

    >>> rows = [["add", "9", "f32"], ["dot", "10", ""]]
    >>> print(*align_columns(rows, right=[1]), sep=chr(10))
    add   9  f32
    dot  10
    >>> print(*align_columns(rows, right=[1], width=10), sep=chr(10))
    add   9
        f32
    dot  10
    """
    columns = list(zip(*rows, strict=True))
    widths = [max(map(len, column)) for column in columns]
    capped = [min(max_width, longest) for longest in widths]
    folds = [[k for k, longest in enumerate(widths) if longest]]
    if width is not None and sum(widths[k] + 2 for k in folds[0]) - 2 > width:
        folds, capped = _folds(widths, width), widths
    for row in rows:
        for number, fold in enumerate(folds):
            cells = [
                row[k].rjust(capped[k]) if k in right else row[k].ljust(capped[k]) for k in fold
            ]
            line = "  ".join(cells).rstrip()
            if line or not number:
                yield " " * (INDENT if number else 0) + line


def narrow_columns(
    rows: Sequence[Sequence[str]],
    right: Collection[int] = (),
    max_width: int = MAX_WIDTH,
    width: int | None = None,
) -> Iterator[str]:
    """Yield a line for each row, as `align_columns`, on a terminal with narrower columns.

    If lines are too wide, each column that is flush left has room for four of five cells, and
    longer cells shift the rest of their line.  Lines that are still too wide are to be wrapped.

    Args:
        width: the number of columns of a terminal.

    >>> rows = [["p", "f32[2]", "x"], *[["q", "s32[]", "y"]] * 8, ["t", "(f32[2], s32[])", "z"]]
    >>> print(*list(narrow_columns(rows, width=14))[7:], sep=chr(10))
    q  s32[]   y
    q  s32[]   y
    t  (f32[2], s32[])  z
    """
    lines = list(align_columns(rows, right, max_width))
    if width is None or max(map(len, lines), default=0) <= width:
        yield from lines
        return
    lengths = [sorted(map(len, column)) for column in zip(*rows, strict=True)]
    caps = [each[-1] if k in right else each[len(each) * 4 // 5] for k, each in enumerate(lengths)]
    for row in rows:
        cells = [
            cell.rjust(cap) if k in right else cell.ljust(cap)
            for k, (cell, cap) in enumerate(zip(row, caps, strict=True))
            if cell or cap
        ]
        yield "  ".join(cells).rstrip()


def _folds(widths: Sequence[int], width: int) -> list[list[int]]:
    """Return the numbers of the columns of each line of a folded row."""
    folds: list[list[int]] = [[]]
    used = 0
    for column, longest in enumerate(widths):
        if longest and folds[-1] and used + longest > width:
            folds.append([])
        if longest:
            used = (used if folds[-1] else INDENT if len(folds) > 1 else 0) + longest + 2
            folds[-1].append(column)
    return folds

"""Tables of cells, which print as aligned lines of text and as HTML."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from html import escape
from typing import Final

from hlo.html import MAX_LINES, graded_html, panel_html, styled_html
from indexing.views.wrapping import INDENT, Unit, wrap_lines, wrap_units
from simplifier.unknown import Unknown

MAX_WIDTH: Final = 44
"""Default for the maximum width of an aligned column."""

MIN_LAST: Final = 32
"""Minimum width of a last column whose texts continue below it; others begin below their row."""

MAX_LAST: Final = 30
"""Columns are omitted until texts of this length in the last column stay beside the others."""

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
        spared: the headings of columns that a narrow terminal omits, the first one first.

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
    spared: Sequence[str] = ()

    def __str__(self) -> str:
        return "\n".join([self.head, *self.lines()])

    def lines(self, width: int | None = None) -> Iterator[str]:
        """Yield the lines below the title.

        Args:
            width: the number of columns of a terminal; see `fit_columns`.
        """
        if self.rows:
            texts = [list(map(cell_text, row)) for row in self.rows]
            cells = [self.columns, *texts]
            yield from fit_columns(cells, self.right, self.max_width, width, self.spared)
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
    rows: Sequence[Sequence[str]], right: Collection[int] = (), max_width: int = MAX_WIDTH
) -> Iterator[str]:
    """Yield a line for each row, with aligned columns, without empty columns.

    Args:
        rows: the cells of each row.
        right: the numbers of the columns that are flush right; others are flush left.
        max_width: the maximum width of a column: longer texts shift the rest of their line.

    >>> rows = [["add", "9", "f32"], ["dot", "10", ""]]
    >>> print(*align_columns(rows, right=[1]), sep=chr(10))
    add   9  f32
    dot  10
    """
    columns = list(zip(*rows, strict=True))
    widths = [max(map(len, column)) for column in columns]
    for row in rows:
        cells = [
            (str.rjust if k in right else str.ljust)(row[k], min(max_width, widths[k]))
            for k, longest in enumerate(widths)
            if longest
        ]
        yield "  ".join(cells).rstrip()


def fit_columns(
    rows: Sequence[Sequence[str]],
    right: Collection[int] = (),
    max_width: int = MAX_WIDTH,
    width: int | None = None,
    spared: Sequence[str] = (),
) -> Iterator[str]:
    """Yield the lines of `fit_rows`, and one that names the columns that are omitted.

    >>> rows = [["op", "bytes", "dtype"], ["add", "9", "f32"], ["dot", "10", "f32"]]
    >>> print(*fit_columns(rows, right=[1], width=12, spared=["dtype"]), sep=chr(10))
    op   bytes
    add      9
    dot     10
    omitted to fit the terminal: dtype
    """
    parts, omitted = fit_rows(rows, right, max_width, width, spared)
    for part in parts:
        yield from part
    yield from omitted_lines(omitted)


def omitted_lines(names: Sequence[str]) -> Iterator[str]:
    """Yield a line that names columns that a terminal has no room for; none without any."""
    if names:
        yield f"omitted to fit the terminal: {', '.join(names)}"


def fit_rows(
    rows: Sequence[Sequence[str]],
    right: Collection[int] = (),
    max_width: int = MAX_WIDTH,
    width: int | None = None,
    spared: Sequence[str] = (),
) -> tuple[list[list[str]], list[str]]:
    """Return the lines of each row as `align_columns` makes them, on a terminal lines that fit.

    If lines are too wide, each column behind the numbers has room for four of five cells, and
    longer cells shift the rest of their line.  If they are still too wide, columns are omitted.
    What is still too wide in the last column continues below it.

    Args:
        rows: the cells of each row; with `spared`, the headings come first.
        right: the numbers of the columns that are flush right; others are flush left.
        max_width: the maximum width of a column: longer texts shift the rest of their line.
        width: the number of columns of a terminal.
        spared: the headings of columns that may be omitted, the first one first.
    Returns:
        The lines of each row, and the headings of the columns that are omitted.

    >>> fit_rows([["p", "add, dot"], ["q", "sin"]], width=10)
    ([['p  add,', '    dot'], ['q  sin']], [])
    """
    lines = list(align_columns(rows, right, max_width))
    if width is None or max(map(len, lines), default=0) <= width:
        return [[line] for line in lines], []
    caps = _caps(rows, right)
    last = max(caps)
    longest = max([len(row[last]) for row in rows])
    excess = max(0, min(longest, MAX_LAST) - caps[last]) - 2 - width
    omitted: list[str] = []
    for name in spared:
        if sum(caps.values()) + 2 * len(caps) + excess <= 0:
            break
        if name in rows[0] and caps.pop(rows[0].index(name), 0):
            omitted.append(name)
    return [list(_fit_row(row, caps, right, width)) for row in rows], omitted


def _caps(rows: Sequence[Sequence[str]], right: Collection[int]) -> dict[int, int]:
    """Return the widths of the columns with texts on a narrow terminal."""
    lengths = [sorted(map(len, column)) for column in zip(*rows, strict=True)]
    last_right = max(right, default=-1)  # numbers behind a shifted cell would not be aligned
    return {
        k: min(each[-1], MAX_WIDTH) if k <= last_right else max(each[len(each) * 4 // 5], 1)
        for k, each in enumerate(lengths)
        if each[-1]
    }


def _fit_row(
    row: Sequence[str], caps: Mapping[int, int], right: Collection[int], width: int
) -> Iterator[str]:
    """Yield the lines of a row: the last of its cells may take several."""
    *others, last = caps
    cells = [(str.rjust if k in right else str.ljust)(row[k], caps[k]) for k in others]
    head = "".join([f"{cell}  " for cell in cells])
    text = row[last].rjust(caps[last]) if last in right else row[last]
    start = sum(caps[k] + 2 for k in others)
    if len((head + text).rstrip()) <= width:
        yield (head + text).rstrip()
        return
    words = text.split()
    longest = max(map(len, words), default=0)
    if width - start < max(MIN_LAST, longest):  # below, flush right
        start = max(0 if longest > width - INDENT else INDENT, width - len(text))
    if len(head) > start or not words:  # a longer cell has shifted the rest
        yield from wrap_lines([head.rstrip()] if head.strip() else [], width)
        head = " " * start
    if longest > width - start:  # a word that no line has room for stays one
        yield from words
        return
    for part in wrap_units(map(Unit, words), width - start, 0):
        yield head + part.text
        head = " " * start

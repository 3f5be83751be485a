"""Columns of text."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Final

MAX_WIDTH: Final = 44
"""Default for the maximum width of an aligned column."""


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

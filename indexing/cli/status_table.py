"""The table of ``validate`` on a terminal, with coloured rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

MIN_FOLDED: Final = 12  # smallest width of a column whose texts are folded
FOLDED: Final = ("check", "details")
STYLES: Final = {"ok": "green", "wrong": "bold red", "skipped": "yellow"}


def is_wide_enough(width: int, rows: Sequence[Sequence[str]]) -> bool:
    """Return True if a terminal of `width` columns has room for all names in `rows`."""
    headings = rows[0]
    names = [k for k, heading in enumerate(headings) if heading not in FOLDED]
    needed = sum(max(len(row[k]) for row in rows) for k in names)
    return needed + MIN_FOLDED * (len(headings) - len(names)) + 3 * len(headings) + 1 <= width


def print_table(title: str, rows: Sequence[Sequence[str]], coloured: bool) -> None:
    """Print a table on standard output.

    Args:
        title: the line above it.
        rows: the headings, and the rows, each with its status first.
        coloured: colour each row by its status.
    """
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title)
    for column in zip(*rows, strict=True):
        heading = column[0]
        is_name = heading not in FOLDED
        table.add_column(
            heading, overflow="fold", min_width=max(map(len, column)) if is_name else None
        )
    for row in rows[1:]:
        table.add_row(*row, style=STYLES[row[0]])
    Console(markup=False, emoji=False, no_color=not coloured).print(table)

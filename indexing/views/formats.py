"""Answers in the formats of ``hlo-indexing maps --format``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from indexing.views.map_tables import MapTable, Paint, map_lines, plain, text_lines
from indexing.views.records import json_lines

if TYPE_CHECKING:
    from indexing.views.terminal import Terminal


def lines(
    tables: Sequence[MapTable],
    notation: str,
    paint: Paint = plain,
    terminal: Terminal | None = None,
) -> Iterator[str]:
    """Return the lines of the answers for one instruction, in the format named by ``--format``.

    Args:
        tables: the answers for its outputs, in one direction.
        notation: the format.
        paint: adds colours to text that is not printed on a terminal.
        terminal: where the text is laid out for reading; by default, it is one record a line.
    """
    match notation:
        case "text" if terminal is not None:
            return terminal.answer_lines(tables)
        case "text":
            return chain.from_iterable([text_lines(table, paint) for table in tables])
        case "json":
            return chain.from_iterable(map(json_lines, tables))
        case _:
            return chain.from_iterable(map_lines(table, notation) for table in tables)

"""Answers in the formats of ``hlo-indexing maps --format``."""

from __future__ import annotations

from collections.abc import Iterator

from indexing.views.records import json_lines
from indexing.views.report import MapTable, Paint, map_lines, plain, text_lines


def lines(table: MapTable, notation: str, paint: Paint = plain) -> Iterator[str]:
    """Return the lines of `table` in the format named by ``--format``."""
    match notation:
        case "text":
            return text_lines(table, paint)
        case "json":
            return json_lines(table)
        case _:
            return map_lines(table, notation)

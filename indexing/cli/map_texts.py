"""Maps on the command line: parsing with source locations, and printing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from indexing.cli.reporter import Reporter

if TYPE_CHECKING:
    from indexing.maps.indexing_map import IndexingMap

MAP_FORMATS = click.Choice(["text", "json", "isl", "mlir", "latex"])


def read_map(text: str, source: str = "<map>", line: int = 1) -> IndexingMap:
    """Parse a map in this project's notation or MLIR's, from `line` of `source`."""
    from hlo.text.source import HloError

    try:
        return _read(text, source)
    except HloError:
        if line == 1:
            raise
    return _read("\n" * (line - 1) + text, source)  # fails again, with the right line number


def _read(text: str, source: str) -> IndexingMap:
    if text.lstrip().startswith(("#", "affine_")):
        from indexing.maps.interchange import from_mlir

        return from_mlir(text, filename=source)
    from indexing import parse_map

    return parse_map(text, source)


def show_map(
    reporter: Reporter,
    indexing_map: IndexingMap,
    notation: str,
    steps: Sequence[str] | None = None,
) -> None:
    """Print one map on one line, with its simplification steps if they are requested."""
    if notation == "json":
        from indexing.views.records import map_json

        reporter.print(map_json(indexing_map, steps))
        return
    from indexing.views.report import NOTATIONS

    reporter.print(NOTATIONS[notation](indexing_map))
    for step in steps or ():
        reporter.print(f"  {step}")

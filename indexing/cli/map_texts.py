"""Maps on the command line: parsing with source locations, and printing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

import click

from indexing.cli.reporter import Reporter

if TYPE_CHECKING:
    from indexing.maps.indexing_map import IndexingMap

MAP_FORMATS = click.Choice(["text", "json", "isl", "mlir", "latex"])


# The text that XLA prints around maps: the prefix of a line of its log, a label, and the source of
# a runtime variable with its map.
_LOG_PREFIX: Final = re.compile(
    rb"\s*(?:[IWEF]\d{4,8} [\d:.]+ +\d+|\d{4}-\d\d-\d\d [\d:.]+: [IWEF]) [^\s:\]]+:\d+\](?: |$)"
)
_LABEL: Final = re.compile(rb"\s*operand id = \d+[ \t]*")
_SOURCE: Final = re.compile(rb"\s*hlo:")
_CONTINUED: Final = re.compile(rb"\s*(?:domain\b|\"|is_simplified\b)|(?!.*->).*\bin\s*[\[(]")

UNKNOWN: Final = b"unknown indexing"
"""The text that XLA prints in place of a map."""


def map_blocks(lines: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield the text of each map in `lines`, with the number of its first line.

    A map is one line, or a line that the lines of its domain follow, as `IndexingMap.pretty` and
    XLA print it.  The prefixes of XLA's logs, its labels of operands and its sources of runtime
    variables are blanked out, so that columns stay.

    >>> log = b"operand id = 0\\n(d0) -> (d0),\\ndomain:\\nd0 in [0, 9]\\noperand id = 1\\n() -> ()"
    >>> list(map_blocks(log.splitlines()))
    [(2, b'(d0) -> (d0),\\ndomain:\\nd0 in [0, 9]'), (6, b'() -> ()')]
    """
    block: list[bytes] = []
    first, has_source = 0, False
    for number, given in enumerate(lines, 1):
        given = _blank_start(given, _LOG_PREFIX.match(given))
        label = _LABEL.match(given)
        line = _blank_start(given, label)
        if block and (has_source or _SOURCE.match(line)):
            has_source = not has_source
            line = b""
        elif block and (label or not _continues(block[-1], line)):
            yield first, b"\n".join(block)
            block = []
        if block or line.strip():
            first = first if block else number
            block.append(line.rstrip(b"\r\n"))
    if block:
        yield first, b"\n".join(block)


def _blank_start(line: bytes, start: re.Match[bytes] | None) -> bytes:
    """Return `line` with spaces in place of its start."""
    return b" " * start.end() + line[start.end() :] if start else line


def _continues(before: bytes, line: bytes) -> bool:
    """Return True if `line` belongs to the same map as the line before it."""
    if _CONTINUED.match(line):
        return True
    is_open = before.rstrip().endswith((b",", b":"))
    return is_open and bool(line.strip()) and b"->" not in line


def read_map(text: str, source: str = "<map>", line: int = 1) -> IndexingMap:
    """Parse a map in this project's notation or MLIR's, from `line` of `source`."""
    from hlo.text.source import HloError

    try:
        return _read_map(text, source)
    except HloError:
        if line == 1:
            raise
    return _read_map("\n" * (line - 1) + text, source)  # fails again, with the right line number


def _read_map(text: str, source: str) -> IndexingMap:
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
    from indexing.views.map_tables import NOTATIONS

    reporter.print(NOTATIONS[notation](indexing_map))
    for step in steps or ():
        reporter.print(f"  {step}")

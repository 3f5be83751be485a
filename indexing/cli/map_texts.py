"""Maps on the command line: parsing with source locations, and printing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias

import click

from hlo.formats.pasted import LOG_PREFIX
from indexing.cli.parsed_text import ParsedText
from indexing.cli.reporter import Reporter

if TYPE_CHECKING:
    from indexing.maps.indexing_map import IndexingMap

MAP_ONLY: Final = ("isl", "mlir", "xla", "xla2025", "latex")
"""The formats that print maps alone: their notations are those of `indexing.views.map_tables`."""
MAP_FORMATS: Final = click.Choice(["text", "json", *MAP_ONLY])

# The text that XLA prints around maps: the prefix of a line of its log, a label, the source of a
# runtime variable with its map (on two lines in 2025, then on one), and the map of replica IDs.
_LOG_PREFIX: Final = re.compile(LOG_PREFIX.encode())
_LABEL: Final = re.compile(rb"\s*operand id = \d+[ \t]*")
_SOURCE: Final = re.compile(rb"\s*(?:hlo:|replica id:)")
_ONE_LINE_SOURCE: Final = re.compile(rb"\s*(?:runtime variables:|rt\d+: [^;]+;)")
_CONTINUED: Final = re.compile(rb"\s*(?:domain\b|\"|is_simplified\b)|(?!.*->).*\bin\s*[\[(]")

UNKNOWN: Final = b"unknown indexing"
"""The text that XLA prints in place of a map."""


def map_blocks(lines: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield the text of each map in `lines`, with the number of its first line.

    A map is one line, or a line that the lines of its domain follow, as `IndexingMap.pretty` and
    XLA print it.  The prefixes of XLA's logs, its labels of operands, its sources of runtime
    variables and its maps of replica IDs are blanked out, so that columns stay.

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
        if _ONE_LINE_SOURCE.match(line):
            has_source, line = False, b""
        elif has_source or _SOURCE.match(line):
            has_source, line = not has_source, b""
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


Bounds: TypeAlias = "tuple[int | tuple[int, int], ...]"
"""A size, or a pair of inclusive bounds, for each variable."""


class MlirBounds(ParsedText):
    """The bounds of the variables of an ``affine_map``: sizes, and inclusive bounds.

    >>> MlirBounds().parse("64,1:15")
    (64, (1, 15))
    """

    name = "bounds"

    def parse(self, text: str) -> Bounds:
        match = re.fullmatch(rf"{_PART}(?:,{_PART})*", text.replace(" ", ""))
        if match is None:
            raise ValueError(f"expected sizes or inclusive bounds, such as 64,0:15, got {text!r}")
        parts = [list(map(int, part.split(":"))) for part in match[0].split(",")]
        return tuple([part[0] if len(part) == 1 else (part[0], part[1]) for part in parts])


_PART: Final = r"(?:\d+|-?\d+:-?\d+)"


def read_map(
    text: str,
    source: str = "<map>",
    line: int = 1,
    bounds: Mapping[str, Bounds | None] = MappingProxyType({}),
) -> IndexingMap:
    """Parse a map in this project's notation or MLIR's, from `line` of `source`.

    Args:
        bounds: the arguments `dims` and `symbols` for an ``affine_map``.
    """
    from hlo.text.source import HloError

    try:
        return _read_map(text, source, bounds)
    except HloError:
        if line == 1:
            raise
    # fails again, with the right line number
    return _read_map("\n" * (line - 1) + text, source, bounds)


def _read_map(text: str, source: str, bounds: Mapping[str, Bounds | None]) -> IndexingMap:
    if text.lstrip().startswith(("#", "affine_")):
        from hlo.text.source import HloError, Source
        from indexing.maps.interchange import from_mlir

        known = bounds if "affine_" in text.partition("<")[0] else {}
        try:
            return from_mlir(
                text, filename=source, dims=known.get("dims"), symbols=known.get("symbols")
            )
        except ValueError as error:  # other bounds than variables
            raise HloError(str(error), Source(text, source).span(0), "mlir-syntax") from None
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

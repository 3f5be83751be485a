"""Lines that fit the width of a terminal."""

from __future__ import annotations

import re
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

_EXCERPT: Final = re.compile(r" *\d* \|( |$)")
"""A line of an excerpt of a source, whose columns count."""


def terminal_width() -> int | None:
    """Return the number of columns of the terminal of standard output; None without a terminal."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def error_width() -> int | None:
    """Return the number of columns of the terminal of standard error; None without a terminal."""
    return shutil.get_terminal_size().columns if sys.stderr.isatty() else None


def fit_lines(lines: Iterable[str], width: int) -> tuple[str, ...]:
    """Return lines of at most `width` cells, of which each but a long word is divided at spaces.

    Excerpts of sources are cut off, and remarks beside carets go below them.

    >>> fit_lines(["sum = f32[4] reduce"], 12)
    ('sum = f32[4]', '    reduce')
    """
    given = tuple(lines)
    if all(len(line) <= width and line.isascii() for line in given):
        return given
    from indexing.views.wrapping import wrap_lines

    return tuple(
        part
        for line in given
        for part in (
            _fit_excerpt(line, width) if _EXCERPT.match(line) else wrap_lines([line], width)
        )
    )


def _fit_excerpt(line: str, width: int) -> Iterator[str]:
    """Yield a line of an excerpt that is cut off at `width`, with the remark of carets below it."""
    carets = _CARETS.fullmatch(line)
    if len(line) > width and carets is not None:
        gutter, label = carets[1], carets[3]
        yield (gutter + carets[2])[:width]
        start = max(len(gutter), min(len(gutter + carets[2].rstrip("^")), width - len(label)))
        for part in textwrap.wrap(label, width - start, break_long_words=False):
            yield gutter.ljust(start) + part
    else:
        yield line if len(line) <= width else f"{line[: width - 1]}…"


_CARETS: Final = re.compile(r"( *\d* \| )( *\^+) (.+)")
"""Carets with a remark: the gutter, the carets and the remark."""


def fit_message(lines: Iterable[str]) -> Sequence[str]:
    """Return the lines of a message; on a terminal, they fit standard error."""
    width = error_width()
    return tuple(lines) if width is None else fit_lines(lines, width)

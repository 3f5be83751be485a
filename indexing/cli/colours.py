"""Styles of texts on terminals, and the marks that stand for them until texts are printed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final

COLOURS: Final = {
    "name": "\x1b[1m",
    "may": "\x1b[33m",
    "unknown": "\x1b[31m",
    "dimension": "\x1b[36m",
    "range": "\x1b[32m",
    "runtime": "\x1b[35m",
    "end": "\x1b[0m",
}
# A style is marked by a lone surrogate, which no text that is read contains, until it is printed.
MARKS: Final = {style: chr(0xD800 + number) for number, style in enumerate(COLOURS)}
COLOURED: Final = str.maketrans({MARKS[style]: colour for style, colour in COLOURS.items()})

COLOUR_CHOICES: Final = ("auto", "always", "never")
"""Values of ``--color``."""

OUTCOMES: Final = {
    "proved": "range", "differs": "unknown", "undecided": "may", "unknown": "unknown",
}  # fmt: skip
"""Styles of the outcomes of comparisons."""

_OUTCOME: Final = re.compile(rf"(?<![\w`])(?:{'|'.join(OUTCOMES)})(?![\w`])")


def paint_outcomes(lines: Iterable[str], paint: Callable[[str, str], str]) -> Iterator[str]:
    """Yield lines with their first outcome in its colour.

    >>> list(paint_outcomes(["output 1 differs: x"], lambda text, style: text.upper()))
    ['output 1 DIFFERS: x']
    """
    for line in lines:
        yield _OUTCOME.sub(lambda word: paint(word[0], OUTCOMES[word[0]]), line, count=1)

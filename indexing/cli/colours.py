"""Styles of texts on terminals, and the marks that stand for them until texts are printed."""

from __future__ import annotations

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

"""The cost of the text of an expression, by which the printer chooses among equal texts."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_DIVISION: Final = re.compile(r"\b(?:floordiv|ceildiv|mod)\b")
_NAME: Final = re.compile(r"\b(?!(?:floordiv|ceildiv|mod|min|max)\b)[A-Za-z_][\w.$]*")
_ADDEND: Final = re.compile(r"(?<!\* )(?<!\* -)(?<!div )(?<!mod )(?<![\w.$])\d+\b")


class TextCost(NamedTuple):
    """The cost of a text; costs are compared in this order.

    Attributes:
        divisions: number of floordiv, ceildiv and mod.
        terms: number of variables and constants that are added or divided.
        characters: length of the text.
    """

    divisions: int
    terms: int
    characters: int


def text_cost(text: str) -> TextCost:
    """Return the cost of a text.

    >>> text_cost("(d0 mod 100 + d1 * 3 - 1) floordiv 16")
    TextCost(divisions=2, terms=3, characters=37)
    """
    terms = len(_NAME.findall(text)) + len(_ADDEND.findall(text))
    return TextCost(len(_DIVISION.findall(text)), terms, len(text))


def names_in(text: str) -> set[str]:
    """Return the names of the variables of a text."""
    return set(_NAME.findall(text))

"""Expressions that repair a wrong argument, for the messages of `hlo.arguments`.

`hlo` and `indexing` import this module, which imports nothing.

>>> declare_repairs("Fraction", {"float": "Fraction(str(x))"})
>>> repair("Fraction", "float"), repair("Fraction", "list")
('Fraction(str(x))', None)
"""

from __future__ import annotations

TYPE_CHECKING = False  # `typing` takes longer to import than this module
if TYPE_CHECKING:
    from collections.abc import Mapping

_REPAIRS: dict[tuple[str, str], str] = {}


def declare_repairs(expected: str, repairs: Mapping[str, str]) -> None:
    """Add expressions that repair a wrong argument.

    Args:
        expected: the name of the class that is expected.
        repairs: for names of other classes, an expression that gives the expected value.
    """
    _REPAIRS.update({(expected, given): expression for given, expression in repairs.items()})


def repair(expected: str, given: str) -> str | None:
    """Return an expression for a value of class `expected` in place of one of class `given`."""
    return _REPAIRS.get((expected, given))

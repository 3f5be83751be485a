"""Errors for arguments of the wrong kind: they name the argument.

>>> integer("Variable", "upper", 2.5)
Traceback (most recent call last):
...
TypeError: Variable: `upper` must be an integer, not 2.5
"""

from __future__ import annotations

from operator import index
from reprlib import repr as brief
from typing import Final

AFFINE: Final = "an expression, a variable or an integer"


def integer(function: str, name: str, value: object, expected: str = "an integer") -> int:
    """Return an argument as `int`; integers of NumPy are accepted.

    Args:
        function, name: the function and the parameter, for the error.
        value: the argument.
        expected: the description of valid arguments.
    Raises:
        TypeError: `value` is not an integer.
    """
    try:
        return index(value)  # type: ignore[arg-type]  # any object
    except TypeError:
        raise wrong_argument(function, name, expected, value) from None


def interval(name: object, lower: object, upper: object) -> tuple[str, int, int]:
    """Return the arguments of `Variable`, checked."""
    if not isinstance(name, str):
        raise wrong_argument("Variable", "name", "a string", name)
    return name, integer("Variable", "lower", lower), integer("Variable", "upper", upper)


def wrong_argument(function: str, name: str, expected: str, value: object) -> TypeError:
    """Return the error for an argument of the wrong kind."""
    return TypeError(f"{function}: `{name}` must be {expected}, not {brief(value)}")

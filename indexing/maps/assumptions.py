"""Assumptions that a query may make about the values of a program, by name."""

from collections.abc import Sequence
from typing import Final

ASSUMPTIONS: Final = {
    "masked-softmax": "the weights of scores that a mask replaces by -inf, or by the least number "
    "of the type, are 0, and the values that they weigh are finite",
}
"""Each assumption with its text."""


def check_assumptions(names: Sequence[str]) -> tuple[str, ...]:
    """Return the distinct names; refuse those that no assumption has.

    >>> check_assumptions(["softmax"])
    Traceback (most recent call last):
    ...
    ValueError: no assumption is named `softmax`; there is `masked-softmax`
    """
    for name in names:
        if name not in ASSUMPTIONS:
            known = ", ".join(f"`{each}`" for each in ASSUMPTIONS)
            raise ValueError(f"no assumption is named `{name}`; there is {known}")
    return tuple(dict.fromkeys(names))

"""`IntegerRange`: integers of options, which may be written as powers of ten."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Any, Final

import click

MAX_EXPONENT: Final = 100
"""Limit on the decimal exponent of a number in an option."""


class IntegerRange(click.IntRange):
    """An integer in a range, such as ``500000000000``, ``500_000_000_000`` or ``5e11``.

    >>> [IntegerRange(min=0).convert(text, None, None) for text in ("7", "5e11", "1_000", "2.5e3")]
    [7, 500000000000, 1000, 2500]
    """

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        integer = _integer(value) if isinstance(value, str) else value
        if integer is None:
            self.fail(
                f"{value!r} is not an integer: write digits, which may be divided by `_`, or a "
                "multiple of a power of ten, such as 500000000000, 500_000_000_000 or 5e11",
                param,
                ctx,
            )
        result: int = super().convert(integer, param, ctx)
        return result


def _integer(text: str) -> int | None:
    """Return the exact value of a text, None if it is no integer of moderate size."""
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    if not number.is_finite() or number.adjusted() > MAX_EXPONENT:
        return None
    return int(number) if number == number.to_integral_value() else None

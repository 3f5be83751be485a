"""Divisions by smaller numbers that have the same values on the box of the variables.

>>> from simplifier.linear import variable
>>> list(with_smaller_fractions((variable("y", 0, 254) * 16) // 255))
[Expr('y floordiv 16')]
"""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd
from typing import Final

from simplifier.atoms import Floor
from simplifier.divmod import floor_div
from simplifier.linear import Expr, add_multiple, from_atom, without_zero_terms

MAX_POINTS: Final = 256
"""Maximum number of points on which all values of two fractions are compared."""

MAX_FRACTIONS: Final = 40
"""Maximum number of fractions that are compared with one."""


def with_smaller_fractions(expr: Expr) -> Iterator[Expr]:
    """Divide by a smaller number where the bounds of the variables allow it.

    For y in [0, 254], ``(y * 16) floordiv 255`` is ``y floordiv 16``.
    """
    for floor, coefficient in expr.terms:
        if isinstance(floor, Floor):
            smaller = smaller_fraction(floor.numerator, floor.divisor)
            if smaller is not None:
                left = add_multiple(expr, from_atom(floor), -coefficient)
                yield add_multiple(left, smaller, coefficient)


def smaller_fraction(numerator: Expr, divisor: int) -> Expr | None:
    """Return a quotient by a smaller number that has the same values on the box, if any.

    >>> from simplifier.linear import variable
    >>> smaller_fraction(variable("y", 0, 49) * -3 + 2, 50)
    Expr('(-y) floordiv 17')
    """
    for factor in reversed(divisors(divisor)):
        below = (factor - 1) >> 1
        whole = {atom: (c + below) // factor for atom, c in numerator.parts.items()}
        left = {atom: c - whole[atom] * factor for atom, c in numerator.parts.items()}
        rest = without_zero_terms(left, numerator.constant)
        low, high = rest.bounds
        if low // factor == high // factor:
            quotient = without_zero_terms(whole, low // factor)
            return floor_div(quotient, divisor // factor)
    slope = gcd(*numerator.parts.values())
    base = Expr({atom: c // slope for atom, c in numerator.parts.items()}, 0)
    fraction = _steps(slope, numerator.constant, divisor, base.bounds)
    if fraction is not None and fraction[1] < divisor:
        offset, width, first = fraction
        return floor_div(base + offset, width) + first
    simplest = _simplest_fraction(slope, numerator.constant, divisor, base.bounds)
    if simplest is None:
        return None
    factor, constant, smaller = simplest
    return floor_div(base * factor + constant, smaller)


def _steps(
    slope: int, constant: int, divisor: int, bounds: tuple[int, int]
) -> tuple[int, int, int] | None:
    """Return ``(b, w, k)`` with ``floor((slope·x + constant) / divisor) = floor((x + b) / w) + k``.

    `None` if there is none for all x in `bounds`: x where the floor increases must be w apart.
    """
    low, high = bounds
    first = (slope * low + constant) // divisor
    count = (slope * high + constant) // divisor - first
    if not 0 < slope < divisor or count < 1:
        return None

    def start(step: int) -> int:  # the least x with this number of increases
        return -((constant - (first + step) * divisor) // slope)

    begin = start(1)
    if count == 1:
        width = max(begin - low, high - begin + 1)
        width = begin if low >= 0 and begin >= width else width
    else:
        width = start(2) - begin
        # 0 <= start(1) + (step - 1)·width - exact position < 1, linear in step: its ends decide
        if start(count) != begin + (count - 1) * width:
            return None
        for step in (1, count):
            excess = (begin + (step - 1) * width) * slope + constant - (first + step) * divisor
            if not 0 <= excess < slope:
                return None
        if begin - low > width or high - start(count) >= width:
            return None
    offset = -begin % width
    return offset, width, first - (low + offset) // width


def _simplest_fraction(
    slope: int, constant: int, divisor: int, bounds: tuple[int, int]
) -> tuple[int, int, int] | None:
    """Return ``(a, b, m)`` with ``floor((slope·x + constant) / divisor) = floor((a·x + b) / m)``.

    `None` if no fraction ``a/m`` between 0 and 1 on the way to ``slope/divisor`` in the
    Stern-Brocot tree has the same floors for all x in `bounds`, or if these are too wide.
    """
    low, high = bounds
    if not 0 < slope < divisor or high - low >= MAX_POINTS:
        return None
    below, above = (0, 1), (1, 1)
    for _ in range(MAX_FRACTIONS):
        factor, smaller = below[0] + above[0], below[1] + above[1]
        if smaller >= divisor:
            return None
        constants = range(-(1 << 62), 1 << 62)
        for x in range(low, high + 1):
            # 0 <= a·x + b - m·floor < m
            least = (slope * x + constant) // divisor * smaller - factor * x
            constants = range(max(constants.start, least), min(constants.stop, least + smaller))
            if not constants:
                break
        else:
            return factor, min(constants, key=abs), smaller
        if factor * divisor < slope * smaller:
            below = factor, smaller
        else:
            above = factor, smaller
    return None


def divisors(number: int) -> list[int]:
    """The divisors of `number` above 1, in ascending order, if it is not too large."""
    if number > _MAX_FACTORED:
        return [number]
    small = [d for d in range(1, int(number**0.5) + 1) if number % d == 0]
    return sorted({*small, *[number // d for d in small]} - {1})


_MAX_FACTORED: Final = 1 << 20

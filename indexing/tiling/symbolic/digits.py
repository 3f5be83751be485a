"""Results that are digits of one number: ``(x floordiv 6, x mod 6)``, as reshapes make them.

Several results that share variables are a product of progressions only in special cases.  The
digits of one linear expression, its *base*, are the important one: an aligned block of bases has a
block of digits.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from simplifier.atoms import Floor, Variable
from simplifier.linear import Expr, from_atom
from simplifier.mods import split


class BaseDigit(NamedTuple):
    """``(base floordiv place) mod radix``; without a radix ``base floordiv place``."""

    base: Expr
    place: int
    radix: int | None

    @property
    def end(self) -> int | None:
        """The place of the next digit."""
        return None if self.radix is None else self.place * self.radix


def digit_of(expr: Expr) -> BaseDigit | None:
    """Return an expression as a digit of a linear base; `None` if it is no digit.

    >>> from simplifier.linear import variable
    >>> d0, d1 = variable("d0", 0, 7), variable("d1", 0, 14)
    >>> print(*digit_of((d0 * 15 + d1) // 5 % 4))
    d0 * -5 + d1 5 4
    >>> print(*digit_of(d0 * 3 + d1 // 4 + 1))
    d0 * 12 + d1 + 4 4 None
    """
    if _is_linear(expr):
        return BaseDigit(expr, 1, None)
    mods, rest = split(expr)
    if len(mods) == 1 and mods[0].coefficient == 1 and rest.is_constant and rest.constant == 0:
        inner = _quotient_of(mods[0].dividend)
        return inner and BaseDigit(*inner, mods[0].modulus)
    if mods:
        return None
    outer = _quotient_of(expr)
    return outer and BaseDigit(*outer, None)


def _quotient_of(expr: Expr) -> tuple[Expr, int] | None:
    """Return ``(base, place)`` with ``expr = base floordiv place`` and a linear base."""
    floors = [atom for atom in expr.parts if isinstance(atom, Floor)]
    if not floors:
        return (expr, 1) if _is_linear(expr) else None
    floor = floors[0]
    if len(floors) > 1 or expr.parts[floor] != 1 or not _is_linear(floor.numerator):
        return None
    base = (expr - from_atom(floor)) * floor.divisor + floor.numerator
    return (base, floor.divisor) if _is_linear(base) else None


def _is_linear(expr: Expr) -> bool:
    return all(isinstance(atom, Variable) for atom in expr.parts)


def common_base(digits: Sequence[BaseDigit]) -> Expr | None:
    """Return a base that all digits, at disjoint places, have; `None` without one.

    A digit does not change if a multiple of ``place * radix`` is added to its base.

    >>> from simplifier.linear import variable
    >>> d0, d1 = variable("d0", 0, 7), variable("d1", 0, 14)
    >>> line = d0 * 15 + d1
    >>> digits = [digit_of(line // 20), digit_of(line // 5 % 4), digit_of(line % 5)]
    >>> print(common_base(digits))
    d0 * 15 + d1
    """
    ordered = sorted(digits, key=lambda digit: digit.place)
    for lower, upper in pairwise(ordered):
        if lower.end is None or lower.end > upper.place:
            return None
    base = ordered[-1].base
    for digit in ordered[:-1]:
        if digit.end is None or not _is_multiple(base - digit.base, digit.end):
            return None
    return base


def _is_multiple(expr: Expr, modulus: int) -> bool:
    return not any(c % modulus for c in (*expr.parts.values(), expr.constant))


def boundaries(digits: Iterable[BaseDigit]) -> list[int]:
    """Return the places between digits in ascending order, 1 first.

    >>> from simplifier.linear import variable
    >>> x = variable("x", 0, 119)
    >>> boundaries([BaseDigit(x, 6, 4), BaseDigit(x, 1, 6), BaseDigit(x, 24, None)])
    [1, 6, 24]
    """
    places = {1}
    for digit in digits:
        places.add(digit.place)
        if digit.end is not None:
            places.add(digit.end)
    return sorted(places)

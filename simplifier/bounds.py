"""Interval bounds of expressions, and facts that sharpen them.

`NOTHING_KNOWN` bounds an expression by its variables' own intervals; the results are kept on the
expression.  `Facts` made from a domain's constraints know more and keep their own results.

>>> from simplifier.linear import variable
>>> d0, d1 = variable("d0", 0, 99), variable("d1", 0, 99)
>>> (d0 % 10 + d1).bounds
(0, 108)
>>> Facts({(d0 + d1).terms: (3, 7)}).bounds(d0 + d1 + 1)
(4, 8)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from simplifier.interval import Interval, intersected
from simplifier.linear import Expr, Floor, Term
from simplifier.mods import split


class Facts:
    """What is known beyond the intervals of the variables: bounds on sums of terms.

    The keys are the terms of an expression without its constant.
    """

    __slots__ = ("_bounds", "floors", "known")

    def __init__(self, known: Mapping[tuple[Term, ...], Interval]) -> None:
        self.known = dict(known)
        self._bounds: dict[Expr, Interval] = {}
        self.floors: dict[tuple[Expr, int], Expr] = {}

    def bounds(self, expr: Expr) -> Interval:
        """An interval that holds every value of `expr` on the domain."""
        if not self.known:
            if expr.bounds_memo is None:
                expr.bounds_memo = self._compute(expr)
            return expr.bounds_memo
        found = self._bounds.get(expr)
        if found is None:
            found = self._bounds[expr] = self._compute(expr)
        return found

    def _compute(self, expr: Expr) -> Interval:
        lower = upper = expr.constant
        terms = expr.terms
        if len(terms) > 1:
            mods, rest = split(expr)
            terms, lower, upper = rest.terms, rest.constant, rest.constant
            for coefficient, dividend, modulus in mods:
                low, high = self._mod_bounds(dividend, modulus)
                lower += coefficient * (low if coefficient > 0 else high)
                upper += coefficient * (high if coefficient > 0 else low)
        for atom, coefficient in terms:
            low, high = self._floor_bounds(atom) if isinstance(atom, Floor) else atom.bounds
            lower += coefficient * (low if coefficient > 0 else high)
            upper += coefficient * (high if coefficient > 0 else low)
        return self._sharpened(expr, (lower, upper))

    def _mod_bounds(self, dividend: Expr, modulus: int) -> Interval:
        low, high = self.bounds(dividend)
        fits = low // modulus == high // modulus
        return (low % modulus, high % modulus) if fits else (0, modulus - 1)

    def _floor_bounds(self, floor: Floor) -> Interval:
        if not self.known:
            return floor.bounds
        low, high = self.bounds(floor.numerator)
        return low // floor.divisor, high // floor.divisor

    def _sharpened(self, expr: Expr, bounds: Interval) -> Interval:
        """`bounds`, cut by what is known about exactly these terms."""
        if not self.known or not expr.terms:
            return bounds
        known = self.known.get(expr.terms)
        if known is None:
            return bounds
        return intersected(bounds, (known[0] + expr.constant, known[1] + expr.constant))


NOTHING_KNOWN: Final = Facts({})

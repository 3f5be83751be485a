"""Interval bounds of expressions, and facts that sharpen them.

`UNCONSTRAINED` bounds an expression by its variables' own intervals; the results are kept on the
expression.  `KnownBounds` made from a domain's constraints know more and keep their own results.

>>> from simplifier.linear import variable
>>> d0, d1 = variable("d0", 0, 99), variable("d1", 0, 99)
>>> (d0 % 10 + d1).bounds
(0, 108)
>>> KnownBounds({(d0 + d1).identity[0]: (3, 7)}).bounds(d0 + d1 + 1)
(4, 8)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from simplifier.atoms import Atom, Floor, Variable
from simplifier.interval import Interval, intersected
from simplifier.linear import Expr, Term, from_atom
from simplifier.mods import Mod, split, split_finest


class KnownBounds:
    """What is known beyond the intervals of the variables: bounds on sums of terms.

    The keys are the terms of an expression, in no order (`Expr.identity`), without its constant.

    Attributes:
        floors: divisions that were done with these facts, for `simplifier.divmod`.
    """

    __slots__ = ("_atoms", "_bounds", "floors", "known")

    def __init__(self, known: Mapping[frozenset[Term], Interval]) -> None:
        self.known = dict(known)
        self._atoms = {atom for terms in known if len(terms) == 1 for atom, _ in terms}
        self._bounds: dict[Expr, Interval] = {}
        self.floors: dict[tuple[object, ...], Expr] = {}

    def bounds(self, expr: Expr) -> Interval:
        """An interval that holds every value of `expr` on the domain."""
        if not self.known:
            if expr.bounds_memo is None:
                expr.bounds_memo = self._compute(expr)
            return expr.bounds_memo
        found = self._bounds.get(expr)
        if found is None:
            found = self._compute(expr)
            said = self.said(expr)
            if said is not None:
                found = intersected(found, said)
            self._bounds[expr] = found
        return found

    def said(self, expr: Expr) -> Interval | None:
        """What is known of exactly the terms of `expr`."""
        known = self.known.get(expr.identity[0])
        return known and (known[0] + expr.constant, known[1] + expr.constant)

    def bounds_of_atom(self, atom: Atom) -> Interval:
        """An interval that holds every value of `atom` on the domain."""
        if not self.known or (atom.__class__ is Variable and atom not in self._atoms):
            return atom.bounds
        return self.bounds(from_atom(atom))

    def bounds_of_mod(self, dividend: Expr, modulus: int) -> Interval:
        """An interval that holds every value of ``dividend mod modulus`` on the domain."""
        low, high = self.bounds(dividend)
        fits = low // modulus == high // modulus
        return (low % modulus, high % modulus) if fits else (0, modulus - 1)

    def finest_bounds(self, expr: Expr) -> Interval:
        """`bounds`, with finer mods in `expr` seen as well, which takes longer."""
        mods, rest = split_finest(expr)
        bounds = self.bounds(expr)
        return intersected(bounds, self._summed(mods, rest)) if mods else bounds

    def _compute(self, expr: Expr) -> Interval:
        if len(expr.parts) < 2:
            return self._summed((), expr)
        mods, rest = split(expr)
        return self._summed(mods, rest)

    def _summed(self, mods: tuple[Mod, ...], rest: Expr) -> Interval:
        """The bounds of a sum, from those of its parts."""
        lower = upper = rest.constant
        for coefficient, dividend, modulus, _ in mods:
            low, high = self.bounds_of_mod(dividend, modulus)
            lower += coefficient * (low if coefficient > 0 else high)
            upper += coefficient * (high if coefficient > 0 else low)
        for atom, coefficient in rest.parts.items():
            low, high = self._own_bounds(atom) if self.known else atom.bounds
            if coefficient > 0:
                lower, upper = lower + coefficient * low, upper + coefficient * high
            else:
                lower, upper = lower + coefficient * high, upper + coefficient * low
        return lower, upper

    def _own_bounds(self, atom: Atom) -> Interval:
        """The bounds of an atom as they follow from those of what is inside it."""
        if isinstance(atom, Variable):
            return atom.bounds
        if isinstance(atom, Floor):
            low, high = self.bounds(atom.numerator)
            return low // atom.divisor, high // atom.divisor
        return atom.bounds


UNCONSTRAINED: Final = KnownBounds({})

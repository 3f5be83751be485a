"""Replaces variables by expressions, and rebuilds what depends on them through the laws."""

from __future__ import annotations

from collections.abc import Mapping

from simplifier.bounds import NOTHING_KNOWN, Facts
from simplifier.divmod import floor_div
from simplifier.linear import Atom, Expr, Variable, gather, make


class Substitution:
    """``expr`` with every variable of `values` replaced; the others stay.

    Each floor is rebuilt once, so that a chain of maps costs what its distinct parts cost.  With
    `facts`, floors are rebuilt knowing them: the result equals the original where the facts hold.

    >>> from simplifier.linear import variable
    >>> d0, x = variable("d0", 0, 7), Variable("x", 0, 63)
    >>> Substitution({x: d0 * 8 + 3})(x // 8)
    Expr('d0')
    """

    __slots__ = ("_facts", "_floors", "_values")

    def __init__(self, values: Mapping[Variable, Expr], facts: Facts = NOTHING_KNOWN) -> None:
        self._values = values
        self._facts = facts
        self._floors: dict[Atom, Expr] = {}

    def __call__(self, expr: Expr) -> Expr:
        terms = expr.terms
        if not terms:
            return expr
        if len(terms) == 1 and terms[0][1] == 1 and not expr.constant:
            return self._atom(terms[0][0])
        total: dict[Atom, int] = {}
        constant = expr.constant
        for atom, coefficient in terms:
            value = self._atom(atom)
            constant += coefficient * value.constant
            for inner, count in value.terms:
                total[inner] = total.get(inner, 0) + coefficient * count
        return gather(total, constant)

    def _atom(self, atom: Atom) -> Expr:
        if isinstance(atom, Variable):
            return self._values.get(atom) or atom.as_expr()
        found = self._floors.get(atom)
        if found is None:
            numerator = self(atom.numerator)
            if numerator == atom.numerator and not self._facts.known:
                found = make(((atom, 1),), 0)
            else:
                found = floor_div(numerator, atom.divisor, self._facts)
            self._floors[atom] = found
        return found

"""Substitution of expressions for variables; dependent atoms are rebuilt by the laws."""

from __future__ import annotations

from collections.abc import Mapping
from math import gcd

from simplifier.atoms import Atom, Floor, Variable
from simplifier.bounds import UNCONSTRAINED, KnownBounds
from simplifier.divmod import floor_div
from simplifier.linear import Expr, add_multiple, from_atom, without_zero_terms
from simplifier.semiaffine import SemiAffine
from simplifier.shared import atoms_in_order
from simplifier.unique import MAX_DEPTH


class Substitution:
    """Substitution of a value for each variable in the keys of `values`.

    Each atom is rebuilt once, so a chain of maps costs as much as its distinct atoms.  With
    `known` bounds of a domain, floors are simplified by them: values are equal on that domain.

    >>> from simplifier.linear import variable
    >>> d0, x = variable("d0", 0, 7), Variable("x", 0, 63)
    >>> Substitution({x: d0 * 8 + 3})(x // 8)
    Expr('d0')
    """

    __slots__ = ("_floors", "_known", "_values")

    def __init__(self, values: Mapping[Variable, Expr], known: KnownBounds = UNCONSTRAINED) -> None:
        self._values = values
        self._known = known
        self._floors: dict[Atom, Expr] = {}

    def __call__(self, expr: Expr) -> Expr:
        return self._sum(expr)

    def _sum(self, expr: Expr) -> Expr:
        """The value of an expression."""
        parts, constant = expr.parts, expr.constant
        if not parts:
            return expr
        if len(parts) == 1 and not constant:
            ((atom, coefficient),) = parts.items()
            if coefficient == 1:
                return self.atom(atom)
        total: dict[Atom, int] = {}
        values = self._values
        for atom, coefficient in parts.items():
            value = values.get(atom) or self.atom(atom)  # type: ignore[call-overload]  # or a floor
            constant += coefficient * value.constant
            for inner, count in value.parts.items():
                total[inner] = total.get(inner, 0) + coefficient * count
        return without_zero_terms(total, constant)

    def atom(self, atom: Atom) -> Expr:
        """The value of an atom."""
        if isinstance(atom, Variable):
            return self._values.get(atom) or atom.as_expr()
        rebuilt = self._floors.get(atom)
        if rebuilt is None:
            if atom.depth > MAX_DEPTH:
                self._rebuild_operands(atom)
            rebuilt = self._floors[atom] = self._rebuild(atom)
        return rebuilt

    def _rebuild_operands(self, atom: Atom) -> None:
        """Rebuild all atoms in a deep one, operands first, so that none recurses."""
        for inner in atoms_in_order(atom.operands):
            if inner.operands and inner not in self._floors:
                self._floors[inner] = self._rebuild(inner)

    def _rebuild(self, atom: Atom) -> Expr:
        """The value of an atom that is not memoised, and no variable."""
        if isinstance(atom, Floor):
            numerator = self._sum(atom.numerator)
            if numerator == atom.numerator and not self._known.sums:
                return from_atom(atom)
            return floor_div(numerator, atom.divisor, self._known)
        operands = tuple([self._sum(operand) for operand in atom.operands])
        if operands == atom.operands and not self._known.sums:
            return from_atom(atom)
        assert isinstance(atom, SemiAffine)
        return atom.rebuild(operands)


class PivotSubstitution(Substitution):
    """Substitution of a value for ``coefficient * pivot`` and its multiples."""

    __slots__ = ("_coefficient", "_pivot", "_value")

    def __init__(self, pivot: Atom, coefficient: int, value: Expr) -> None:
        super().__init__({})
        self._pivot, self._coefficient, self._value = pivot, coefficient, value

    def _sum(self, expr: Expr) -> Expr:
        pivot, sums = self._pivot, Expr({}, 0)
        if abs(self._coefficient) > 1:
            for floor, factor in list(expr.parts.items()):
                moved = self._multiple_moved_into(floor) if isinstance(floor, Floor) else 0
                if moved and isinstance(floor, Floor):
                    inside = add_multiple(floor.numerator, from_atom(pivot), moved * floor.divisor)
                    sums = add_multiple(sums, floor_div(self._sum(inside), floor.divisor), factor)
                    outside = add_multiple(from_atom(floor), from_atom(pivot), moved)
                    expr = add_multiple(expr, outside, -factor)
        factor, left = divmod(expr.parts.get(pivot, 0), self._coefficient)
        if not factor or left:
            return add_multiple(super()._sum(expr), sums)
        rest = {atom: c for atom, c in expr.parts.items() if atom is not pivot}
        rest_sum = add_multiple(super()._sum(Expr(rest, expr.constant)), sums)
        return add_multiple(rest_sum, self._value, factor)

    def _multiple_moved_into(self, floor: Floor) -> int:
        """Multiple of the pivot moved into a floor, to make its coefficient there a multiple."""
        count, size = floor.numerator.parts.get(self._pivot, 0), abs(self._coefficient)
        if count % size == 0 or gcd(floor.divisor, size) > 1:
            return 0
        moved = -count * pow(floor.divisor, -1, size) % size
        return moved if abs(count + moved * floor.divisor) < floor.divisor else moved - size

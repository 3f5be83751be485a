"""Interval bounds of expressions, and bounds that the constraints of a domain add.

`UNCONSTRAINED` derives bounds from the intervals of the variables and keeps them on the
expression.  A `KnownBounds` of a domain also uses constraints, and keeps its own results.

>>> from simplifier.linear import variable
>>> d0, d1 = variable("d0", 0, 99), variable("d1", 0, 99)
>>> (d0 % 10 + d1).bounds
(0, 108)
>>> KnownBounds({(d0 + d1).identity[0]: (3, 7)}).bounds(d0 + d1 + 1)
(4, 8)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from simplifier.atoms import Atom, Floor, Variable
from simplifier.interval import Interval, contains, floor_divide, intersect, scale
from simplifier.linear import Expr, Term, add_multiple, from_atom
from simplifier.mods import Mod, split, split_finest

DivisionKey: TypeAlias = tuple[tuple[frozenset[Term], int], int]
"""The identity of a dividend, and the divisor."""


class Bounded:
    """An atom, or a mod without its coefficient, with bounds on a domain; divided like an atom."""

    __slots__ = ("bounds", "part")

    def __init__(self, part: Atom | Mod, bounds: Interval) -> None:
        self.part, self.bounds = part, bounds

    @property
    def expr(self) -> Expr:
        """The atom or the mod as an expression."""
        part = self.part
        if isinstance(part, Mod):
            return add_multiple(part.dividend, from_atom(part.floor), -part.modulus)
        return from_atom(part)


AtomLike: TypeAlias = Atom | Bounded


class KnownBounds:
    """Bounds of expressions on a domain.

    Attributes:
        sums: bounds of sums of terms that constraints state, beyond the intervals of variables.
            A key is the set of terms of an expression (`Expr.identity`), without its constant.
        floors, remainders: memos of `simplifier.divmod` for these bounds.
    """

    __slots__ = ("_atoms", "_bounds", "floors", "remainders", "sums")

    def __init__(self, sums: Mapping[frozenset[Term], Interval]) -> None:
        self.sums = dict(sums)
        self._atoms = {atom for terms in sums if len(terms) == 1 for atom, _ in terms}
        self._bounds: dict[Expr, Interval] = {}
        self.floors: dict[DivisionKey, Expr] = {}
        self.remainders: dict[DivisionKey, Expr] = {}

    def forget_divisions(self) -> None:
        """Empty the memos of divisions."""
        self.floors.clear()
        self.remainders.clear()

    def bounds(self, expr: Expr) -> Interval:
        """Return an interval that contains every value of `expr` on the domain."""
        if not self.sums:
            if expr.bounds_memo is None:
                expr.bounds_memo = self._compute(expr)
            return expr.bounds_memo
        bounds = self._bounds.get(expr)
        if bounds is None:
            bounds = self._compute(expr)
            stated = self.bounds_of_sum(expr)
            if stated is not None:
                bounds = intersect(bounds, stated)
            self._bounds[expr] = bounds
        return bounds

    def bounds_of_sum(self, expr: Expr) -> Interval | None:
        """Return the bounds that a constraint states for exactly the terms of `expr`, if any."""
        stated = self.sums.get(expr.identity[0])
        return stated and (stated[0] + expr.constant, stated[1] + expr.constant)

    def bounds_of_atom(self, atom: Atom) -> Interval:
        """Return an interval that contains every value of `atom` on the domain."""
        if not self.sums or (isinstance(atom, Variable) and atom not in self._atoms):
            return atom.bounds
        return self.bounds(from_atom(atom))

    def bounds_of_mod(self, dividend: Expr, modulus: int) -> Interval:
        """Return an interval that contains every value of ``dividend mod modulus``."""
        low, high = self.bounds(dividend)
        fits = low // modulus == high // modulus
        return (low % modulus, high % modulus) if fits else (0, modulus - 1)

    def pieces(self, parts: dict[Atom, int]) -> dict[AtomLike, int]:
        """Return the terms of a sum with the bounds of their atoms on the domain."""
        pieces: dict[AtomLike, int] = {}
        if not self.sums:
            pieces.update(parts)  # type: ignore[arg-type]  # atoms are among the keys
            return pieces
        for atom, coefficient in parts.items():
            bounds = self.bounds_of_atom(atom)
            is_own = bounds == atom.bounds
            pieces[atom if is_own else Bounded(atom, bounds)] = coefficient
        return pieces

    def whole_mod(self, mod: Mod) -> Bounded:
        """Return the mod, without its coefficient, with its bounds on the domain."""
        return Bounded(mod, self.bounds_of_mod(mod.dividend, mod.modulus))

    def finest_bounds(self, expr: Expr) -> Interval:
        """Return `bounds`, tightened by finer mods in `expr`, which takes longer."""
        mods, rest = split_finest(expr)
        bounds = self.bounds(expr)
        return intersect(bounds, self._bounds_of_sum(mods, rest)) if mods else bounds

    def bounds_by_term(self, expr: Expr) -> Interval:
        """Return wider bounds than `bounds`, without a search for mods."""
        return self._bounds_of_sum((), expr)

    def _compute(self, expr: Expr) -> Interval:
        if len(expr.parts) > 1:
            for atom in expr.parts:
                if atom.divides:
                    mods, rest = split(expr)
                    return self._bounds_of_sum(mods, rest)
        return self._bounds_of_sum((), expr)

    def _bounds_of_sum(self, mods: tuple[Mod, ...], rest: Expr) -> Interval:
        """Bounds of a sum, from the bounds of its parts."""
        lower = upper = rest.constant
        for mod in mods:
            low, high = self.bounds_of_mod(mod.dividend, mod.modulus)
            coefficient = mod.coefficient
            lower += coefficient * (low if coefficient > 0 else high)
            upper += coefficient * (high if coefficient > 0 else low)
        for atom, coefficient in rest.parts.items():
            low, high = self._own_bounds(atom) if self.sums else atom.bounds
            if coefficient > 0:
                lower, upper = lower + coefficient * low, upper + coefficient * high
            else:
                lower, upper = lower + coefficient * high, upper + coefficient * low
        return lower, upper

    def _own_bounds(self, atom: Atom) -> Interval:
        """Bounds of an atom, derived from the bounds of its operands."""
        if isinstance(atom, Variable):
            return atom.bounds
        if isinstance(atom, Floor):
            low, high = self.bounds(atom.numerator)
            return low // atom.divisor, high // atom.divisor
        return atom.bounds


def unit_floors(expr: Expr) -> list[Floor]:
    """Return the floors with coefficient 1 or -1."""
    return [atom for atom, c in expr.parts.items() if c in (1, -1) and isinstance(atom, Floor)]


def without_floor(expr: Expr, floor: Floor) -> Expr:
    """Return ``d·q + n`` for ``q + floor(n / d)``, or for ``-q - floor(n / d)``."""
    sign = expr.parts[floor]
    rest = add_multiple(expr, from_atom(floor), -sign)
    return add_multiple(floor.numerator, rest, floor.divisor * sign)


def lies_in(expr: Expr, interval: Interval) -> bool:
    """Return True if every value of `expr` lies in `interval`, often without its bounds.

    The bounds of the dividend decide a quotient: ``floor((8·d0 + d1) / 3)`` has multiples of 3
    factored out, and the sum of the intervals of its terms is wider.

    >>> from simplifier.linear import variable
    >>> d0, d1 = variable("d0", 0, 99), variable("d1", 0, 7)
    >>> lies_in(d0 % 10, (0, 9)), lies_in((d0 * 8 + d1) // 3, (0, 799 // 3))
    (True, True)
    >>> (d0 * 8 + d1) // 3, ((d0 * 8 + d1) // 3).bounds
    (Expr('(d0 * 8 + d1) floordiv 3'), (-33, 299))
    """
    if expr.modulus and interval[0] <= 0 and expr.modulus - 1 <= interval[1]:
        return True
    if expr.bounds_memo is None and contains(interval, UNCONSTRAINED.bounds_by_term(expr)):
        return True
    if contains(interval, expr.bounds):
        return True
    units = unit_floors(expr)
    if len(units) != 1:
        return False
    dividend, (floor,) = without_floor(expr, units[0]), units
    quotient = floor_divide(dividend.bounds, floor.divisor)
    return contains(interval, scale(quotient, expr.parts[floor]))


UNCONSTRAINED: Final = KnownBounds({})

"""Rewriting of expressions on a domain: equal values there, fewer divisions.

Floors are divided again by the laws of `simplifier.divmod`, with the bounds that the constraints
state.  Further laws (`simplifier.laws`) hold only where the constraints do:

* *add a multiple of zero*: where ``x mod 4 == 1``, ``x − 4·floor(x / 4) − 1`` is 0, so
  ``8·floor(x / 4)`` is ``2·x − 2``;
* *divide exactly*: where ``n ≡ r (mod d)`` and ``0 <= r < d``, ``d·floor(n / d)`` is ``n − r``;
* *round the constant of a dividend*: where ``n ≡ r (mod g)`` and ``g | d``, ``floor((n + c) / d)``
  is ``floor((n + g·k) / d)`` with ``k = floor((r + c) / g)``: for odd x, ``(x − 1) floordiv 2`` is
  ``x floordiv 2``;
* *fold a single value*: an expression whose bounds are one number is that number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from math import gcd
from typing import Final

from simplifier import laws, trace
from simplifier.atoms import Atom, Floor, Variable, variables_in
from simplifier.bounds import KnownBounds
from simplifier.constraints import Constraint, sum_bounds
from simplifier.divmod import floor_div
from simplifier.linear import Expr, add_multiple, constant, from_atom
from simplifier.residues import Residues
from simplifier.substitute import Substitution


class Congruences:
    """A conjunction of congruences ``dividend ≡ remainder (mod modulus)``."""

    def __init__(self, congruences: Iterable[Residues]) -> None:
        self._atoms: dict[Atom, tuple[int, int]] = {}
        self._sums: list[Residues] = []
        for each in congruences:
            if len(each.dividend.terms) == 1 and each.dividend.terms[0][1] == 1:
                self._atoms[each.dividend.terms[0][0]] = each.modulus, each.lower
            else:
                self._sums.append(each)

    def __bool__(self) -> bool:
        return bool(self._atoms or self._sums)

    def modulo(self, expr: Expr) -> tuple[int, int]:
        """Return ``(g, r)`` with ``expr ≡ r (mod g)``; g is 0 for a constant, 1 if none is implied.

        >>> from simplifier.linear import variable
        >>> x, y = variable("x", 0, 99), variable("y", 0, 99)
        >>> Congruences([Residues(x, 4, 1, 1)]).modulo(x * 3 + y * 6 + 1)
        (6, 4)
        """
        modulus, remainder = self._by_atoms(expr)
        for each in self._sums:
            atom, unit = each.dividend.terms[0]
            factor = expr.parts.get(atom, 0) // unit
            if factor:
                rest, left = self._by_atoms(add_multiple(expr, each.dividend, -factor))
                larger = gcd(rest, factor * each.modulus)
                if larger > modulus > 0:
                    modulus, remainder = larger, left + factor * each.lower
        return modulus, remainder % modulus if modulus else remainder

    def _by_atoms(self, expr: Expr) -> tuple[int, int]:
        modulus, remainder = 0, expr.constant
        for atom, coefficient in expr.parts.items():
            of_atom, left = self._atoms.get(atom, (1, 0))
            modulus = gcd(modulus, coefficient * of_atom)
            remainder += coefficient * left
        return modulus, remainder


class Rewriting(Substitution):
    """Rewriting to simpler expressions, with equal values where `constraints` hold.

    Variables in the keys of `values` are replaced first; `constraints` are on the new variables.

    >>> from simplifier.linear import variable
    >>> x = variable("x", 0, 99)
    >>> Rewriting([Constraint(x % 4, 1, 1)])((x + 7) // 8 * 2 + x // 4 * 8)
    Expr('((x * 9) floordiv 8) * 2')
    """

    __slots__ = (
        *("_congruences", "_equated", "_has_equations", "_independent"),
        *("_rewritten", "_scopes", "_zeros"),
    )

    _zeros: Sequence[Expr]
    _equated: Set[Variable]

    def __init__(
        self, constraints: Sequence[Constraint], values: Mapping[Variable, Expr] | None = None
    ) -> None:
        super().__init__(values or {}, KnownBounds(sum_bounds(constraints)))
        self._independent = Substitution(self._values)
        self._scopes = {frozenset(variables_in([c.expr])) for c in constraints}
        equal = [c for c in constraints if c.lower == c.upper and c.expr.parts]
        self._has_equations = bool(equal)
        self._zeros, self._congruences, self._equated = _NOTHING_EQUAL
        if equal:
            self._zeros = [c.expr - c.lower for c in equal]
            self._congruences = Congruences([c.residues for c in equal if c.residues])
            self._equated = variables_in([c.expr for c in equal])
        self._rewritten: dict[Expr, Expr] = {}

    def __call__(self, expr: Expr) -> Expr:
        rewritten = self._rewritten.get(expr)
        if rewritten is None:
            if len(self._rewritten) >= _MAX_REWRITTEN:
                self._forget()
            rewritten = self._rewritten[expr] = super().__call__(expr)
        return rewritten

    def _forget(self) -> None:
        """Start new memos: another thread may be using the old ones."""
        self._rewritten, self._floors = {}, {}
        self._independent = Substitution(self._values)
        self._known = KnownBounds(self._known.sums)

    def _sum(self, expr: Expr) -> Expr:
        rebuilt = expr if self._is_kept(expr) else super()._sum(expr)
        reduced = rebuilt
        if self._has_equations:
            exact = [*self._without_remainder(rebuilt)]
            reduced = _reduce_cost(rebuilt, [*self._zeros, *exact], exact)
        if self._varies(reduced):
            return reduced
        lower, upper = self._known.bounds(reduced)
        folded = constant(lower) if lower == upper else reduced
        if trace.records:
            trace.record(laws.FOLD_SINGLE_VALUE, reduced, folded)
        return folded

    def _is_kept(self, expr: Expr) -> bool:
        """True if no variable is replaced, and the constraints bear on no atom of the sum."""
        if self._values:
            return False
        for atom in expr.parts:  # noqa: SIM110  # a generator takes twice as long
            if atom.operands and self._bears_on(atom):
                return False
        return True

    def _varies(self, expr: Expr) -> bool:
        """Return True if the bounds of a sum certainly differ, because it has a variable.

        A variable has several values, and so has a mod whose dividend has a variable, unless a
        constraint bounds just these terms.
        """
        variables = [not atom.operands for atom in expr.parts]
        if True not in variables or (self._has_equations and False in variables):
            return False
        return self._known.bounds_of_sum(expr) is None

    def _rebuild(self, atom: Atom) -> Expr:
        if not self._bears_on(atom):
            return self._independent.atom(atom)
        if not isinstance(atom, Floor) or not self._has_equations:
            return super()._rebuild(atom)
        numerator = self._with_rounded_constant(self._sum(atom.numerator), atom.divisor)
        return floor_div(numerator, atom.divisor, self._known)

    def _bears_on(self, atom: Atom) -> bool:
        """Return False if `atom` has the same bounds and values without the constraints.

        The bounds of a sum matter only if an expression in `atom`, or one that the laws derive from
        it, has precisely its terms, and so all of its variables.  An equation may replace one of
        its variables by others.
        """
        variables: Set[Variable] = atom.variables
        if self._values:
            variables = variables_in([self._values.get(v, v.expr) for v in variables])
        if not variables.isdisjoint(self._equated):
            return True
        return True in [scope <= variables for scope in self._scopes]

    def _without_remainder(self, expr: Expr) -> Iterator[Expr]:
        """``n − d·floor(n / d) − r``, equal to 0, for floors in `expr` with ``n ≡ r (mod d)``."""
        for floor in expr.parts if self._congruences else ():
            if isinstance(floor, Floor):
                modulus, remainder = self._congruences.modulo(floor.numerator)
                if modulus % floor.divisor == 0:
                    numerator = floor.numerator - remainder % floor.divisor
                    yield add_multiple(numerator, from_atom(floor), -floor.divisor)

    def _with_rounded_constant(self, numerator: Expr, divisor: int) -> Expr:
        """Law *round the constant of a dividend*: the new constant is a multiple of g."""
        terms = Expr(numerator.parts, 0)
        modulus, remainder = self._congruences.modulo(terms)
        step = gcd(modulus, divisor)
        moved = Expr(numerator.parts, step * ((remainder % step + numerator.constant) // step))
        if trace.records:
            before, after = (
                f"{trace.operand_text(each)} floordiv {divisor}" for each in (numerator, moved)
            )
            trace.record(laws.ROUND_CONSTANT, before, after)
        return moved


_NOTHING_EQUAL: Final = ((), Congruences(()), frozenset[Variable]())
"""Zeros, congruences and equated variables of constraints without an equation."""

_MAX_REWRITTEN: Final = 1 << 8
"""Maximum number of expressions whose rewriting on one domain is memoised."""


def _reduce_cost(expr: Expr, zeros: Sequence[Expr], exact: Sequence[Expr]) -> Expr:
    """Add multiples of `zeros` as long as the cost decreases.

    The zeros in `exact` come from exact divisions.
    """
    left = _sum_cost(expr) if zeros else (0, 0)
    for zero in zeros:
        coefficients = expr.parts
        for atom, coefficient in zero.terms:
            if atom in coefficients and coefficients[atom] % coefficient == 0:
                other = add_multiple(expr, zero, -coefficients[atom] // coefficient)
                cost = _sum_cost(other)
                if cost < left:
                    if trace.records:
                        is_exact = any(zero is each for each in exact)
                        law = laws.DIVIDE_EXACTLY if is_exact else laws.ADD_ZERO
                        trace.record(law, expr, other)
                    return _reduce_cost(other, zeros, exact)
    return expr


def _sum_cost(expr: Expr) -> tuple[int, int]:
    floors = [atom for atom in expr.parts if isinstance(atom, Floor)]
    return len(floors), expr.weight

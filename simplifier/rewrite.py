"""What is known on a domain, and expressions rewritten by it: equal values there, fewer divisions.

Beyond the laws that hold everywhere (`simplifier.divmod`), with facts as bounds, these hold where
the constraints of a domain do:

* *zero*: a multiple of an expression that is 0 may be added where that leaves less: where
  ``x mod 4 == 1``, that is ``x − 4·floor(x / 4) − 1 == 0``, ``8·floor(x / 4)`` is ``2·x − 2``;
* *residue*: with ``n ≡ r (mod g)`` and ``g | d``, ``floor((n + c) / d)`` is
  ``floor((n + g·k) / d)``, ``k = floor((r + c) / g)``: where x is odd, ``(x − 1) floordiv 2`` is
  ``x floordiv 2``; and with g = d, ``d·floor(n / d)`` is ``n − r``;
* *point*: what can have only one value is that number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import gcd

from simplifier import laws, trace
from simplifier.atoms import Atom, Floor, Variable
from simplifier.bounds import KnownBounds
from simplifier.constraints import Constraint, sum_bounds
from simplifier.divmod import floor_div
from simplifier.linear import Expr, added, constant, from_atom, make
from simplifier.residues import Residues, residues_of
from simplifier.substitute import Substitution


class Congruences:
    """``dividend ≡ remainder (mod modulus)``, several of them."""

    def __init__(self, known: Iterable[Residues]) -> None:
        self._atoms: dict[Atom, tuple[int, int]] = {}
        self._sums: list[Residues] = []
        for each in known:
            if len(each.dividend.terms) == 1 and each.dividend.terms[0][1] == 1:
                self._atoms[each.dividend.terms[0][0]] = each.modulus, each.lower
            else:
                self._sums.append(each)

    def __bool__(self) -> bool:
        return bool(self._atoms or self._sums)

    def modulo(self, expr: Expr) -> tuple[int, int]:
        """``(g, r)`` with ``expr ≡ r (mod g)``; g is 0 for a constant, 1 if nothing is known.

        >>> from simplifier.linear import variable
        >>> x, y = variable("x", 0, 99), variable("y", 0, 99)
        >>> Congruences([Residues(x, 4, 1, 1)]).modulo(x * 3 + y * 6 + 1)
        (6, 4)
        """
        modulus, remainder = self._by_atoms(expr)
        for each in self._sums:
            atom, unit = each.dividend.terms[0]
            factor = dict(expr.terms).get(atom, 0) // unit
            if factor:
                rest, left = self._by_atoms(added(expr, each.dividend, -factor))
                found = gcd(rest, factor * each.modulus)
                if found > modulus > 0:
                    modulus, remainder = found, left + factor * each.lower
        return modulus, remainder % modulus if modulus else remainder

    def _by_atoms(self, expr: Expr) -> tuple[int, int]:
        modulus, remainder = 0, expr.constant
        for atom, coefficient in expr.terms:
            of_atom, left = self._atoms.get(atom, (1, 0))
            modulus = gcd(modulus, coefficient * of_atom)
            remainder += coefficient * left
        return modulus, remainder


class Rewriting(Substitution):
    """Rewrites an expression as a simpler one with equal values where `constraints` hold.

    Variables of `values` are replaced; the constraints are about the variables that replace them.

    >>> from simplifier.linear import variable
    >>> x = variable("x", 0, 99)
    >>> Rewriting([Constraint(x % 4, 1, 1)])((x + 7) // 8 * 2 + x // 4 * 8)
    Expr('x * 2 + (x floordiv 8) * 2')
    """

    __slots__ = ("_congruences", "_zeros")

    def __init__(
        self, constraints: Sequence[Constraint], values: Mapping[Variable, Expr] | None = None
    ) -> None:
        super().__init__(values or {}, KnownBounds(sum_bounds(constraints)))
        equal = [c for c in constraints if c.lower == c.upper and c.expr.parts]
        self._zeros = [c.expr - c.lower for c in equal]
        found = [residues_of(c.expr, c.bounds) for c in equal]
        self._congruences = Congruences([each for each in found if each])

    def __call__(self, expr: Expr) -> Expr:
        rebuilt = super().__call__(expr)
        reduced = rebuilt
        if self._zeros or self._congruences:
            exact = [*self._without_remainder(rebuilt)]
            reduced = _reduced(rebuilt, [*self._zeros, *exact], exact)
        lower, upper = self._facts.bounds(reduced)
        found = constant(lower) if lower == upper else reduced
        if trace.records:
            trace.note(laws.FOLD_SINGLE_VALUE, reduced, found)
        return found

    def _atom(self, atom: Atom) -> Expr:
        if not isinstance(atom, Floor) or not self._congruences:
            return super()._atom(atom)
        found = self._floors.get(atom)
        if found is None:
            numerator = self._without_idle_constant(self(atom.numerator), atom.divisor)
            found = self._floors[atom] = floor_div(numerator, atom.divisor, self._facts)
        return found

    def _without_remainder(self, expr: Expr) -> Iterator[Expr]:
        """``n − d·floor(n / d) − r``, which is 0, for floors in `expr` with ``n ≡ r (mod d)``."""
        for floor in expr.parts if self._congruences else ():
            if isinstance(floor, Floor):
                modulus, remainder = self._congruences.modulo(floor.numerator)
                if modulus % floor.divisor == 0:
                    numerator = floor.numerator - remainder % floor.divisor
                    yield added(numerator, from_atom(floor), -floor.divisor)

    def _without_idle_constant(self, numerator: Expr, divisor: int) -> Expr:
        """Law *residue*: the numerator with a multiple of g for its constant."""
        terms = make(numerator.terms, 0)
        modulus, remainder = self._congruences.modulo(terms)
        step = gcd(modulus, divisor)
        moved = make(numerator.terms, step * ((remainder % step + numerator.constant) // step))
        if trace.records:
            before, after = (
                f"{trace.operand_text(each)} floordiv {divisor}" for each in (numerator, moved)
            )
            trace.note(laws.ROUND_CONSTANT, before, after)
        return moved


def _reduced(expr: Expr, zeros: Sequence[Expr], exact: Sequence[Expr]) -> Expr:
    """Law *zero*, as long as one of `zeros` leaves less; those in `exact` are exact divisions."""
    left = _cost(expr) if zeros else (0, 0)
    for zero in zeros:
        have = dict(expr.terms)
        for atom, coefficient in zero.terms:
            if atom in have and have[atom] % coefficient == 0:
                other = added(expr, zero, -have[atom] // coefficient)
                cost = _cost(other)
                if cost < left:
                    if trace.records:
                        is_exact = any(zero is each for each in exact)
                        law = laws.DIVIDE_EXACTLY if is_exact else laws.ADD_ZERO
                        trace.note(law, expr, other)
                    return _reduced(other, zeros, exact)
    return expr


def _cost(expr: Expr) -> tuple[int, int]:
    floors = sum(isinstance(atom, Floor) for atom, _ in expr.terms)
    return floors, expr.weight

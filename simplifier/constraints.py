"""``expression in [lower, upper]``: one constraint of a domain, and its simplest equal form."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from math import gcd
from typing import Final

from simplifier import interval, trace
from simplifier.atoms import Floor
from simplifier.interval import Interval, contains, intersected
from simplifier.linear import Expr, Term, added, constant, make
from simplifier.residues import Residues, both, residues_of
from simplifier.text import terms_and_constant


@dataclass(frozen=True, slots=True)
class Constraint:
    """``expr in [lower, upper]``, both included."""

    expr: Expr
    lower: int
    upper: int

    def __str__(self) -> str:
        return f"{self.expr} in [{self.lower}, {self.upper}]"

    @property
    def bounds(self) -> Interval:
        """``(lower, upper)``."""
        return self.lower, self.upper

    @property
    def is_false(self) -> bool:
        """No point satisfies it, as its interval alone shows."""
        low, high = intersected(self.bounds, self.expr.bounds)
        return low > high

    @property
    def is_true(self) -> bool:
        """Every point of the variables' intervals satisfies it."""
        return contains(self.bounds, self.expr.bounds)


FALSE: Final = Constraint(constant(0), 1, 1)


def normalised(constraint: Constraint) -> Constraint | None:
    """The simplest constraint with the same points; `None` if it always holds.

    The constant moves to the bounds, common factors are divided out, and a floordiv is undone:
    ``e floordiv d in [a, b]`` is ``e in [a·d, b·d + d − 1]``.  A congruence gets its canonical form
    (`simplifier.residues`).  No part of the expression is dropped, however small it is: a small
    part can decide (``8·d0 + d1 <= 10`` is not ``8·d0 <= 10``).

    >>> from simplifier.linear import variable
    >>> d0, d1 = variable("d0", 0, 99), variable("d1", 0, 99)
    >>> print(normalised(Constraint((d0 * 3 + d1 * 6 + 2) // 4, 1, 2)))
    d0 + d1 * 2 in [1, 3]
    """
    return _normalised(constraint) if trace.records else _normalised_once(constraint)


@lru_cache(maxsize=1 << 14)
def _normalised_once(constraint: Constraint) -> Constraint | None:
    return _normalised(constraint)


def _normalised(constraint: Constraint) -> Constraint | None:
    canonical: Residues | None = None
    while True:
        expr, (lower, upper) = constraint.expr, constraint.bounds
        if expr.constant:
            lower, upper = lower - expr.constant, upper - expr.constant
            expr = make(expr.terms, 0)
        if not expr.terms:
            return None if lower <= 0 <= upper else FALSE
        factor = gcd(*[coefficient for _, coefficient in expr.terms])
        if expr.terms[0][1] < 0:
            factor, lower, upper = -factor, -upper, -lower
        if factor != 1:
            expr = make(tuple([(atom, c // factor) for atom, c in expr.terms]), 0)
            lower, upper = -(-lower // abs(factor)), upper // abs(factor)
        floor = _undoable(expr)
        if floor is not None:
            divisor, sign = floor.divisor, dict(expr.terms)[floor]
            rest = added(expr * sign, make(((floor, 1),), 0), -1)
            lower, upper = (lower, upper) if sign == 1 else (-upper, -lower)
            dividend = added(floor.numerator, rest, divisor)
            constraint = Constraint(dividend, lower * divisor, upper * divisor + divisor - 1)
            continue
        lower, upper = intersected((lower, upper), expr.bounds)
        if lower > upper:
            return FALSE
        residues = residues_of(expr, (lower, upper))
        if residues is not None and residues != canonical:
            canonical = residues
            constraint = Constraint(*residues.written)
            continue
        found = _plain(Constraint(expr, lower, upper))
        return None if found.is_true else found


def _plain(constraint: Constraint) -> Constraint:
    """The constant moved so that the text has none: ``x mod 7``, not ``x mod 7 - 4``."""
    _, constant = terms_and_constant(constraint.expr)
    if not constant:
        return constraint
    lower, upper = constraint.lower - constant, constraint.upper - constant
    return Constraint(constraint.expr - constant, lower, upper)


def _undoable(expr: Expr) -> Floor | None:
    """The one floor with coefficient ±1: ``q + floor(n / d)`` is ``floor((d·q + n) / d)``."""
    units = [atom for atom, c in expr.terms if isinstance(atom, Floor) and abs(c) == 1]
    return units[0] if len(units) == 1 else None


def merged(constraints: Iterable[Constraint]) -> tuple[Constraint, ...]:
    """The conjunction of `constraints`: each normalised, one for each expression, in a fixed order.

    Congruences of one dividend are one congruence, and bounds of that dividend move inwards to
    values that satisfy it.  What follows from one other constraint and the variables' own bounds
    goes: ``8·x + y in [0, 8·n + 7]`` where ``x in [0, n]`` and y lies in ``[0, 7]``.  ``(FALSE,)``
    when this shows that no point is left.

    >>> from simplifier.linear import variable
    >>> x = variable("x", -20, 20)
    >>> both = merged([Constraint(x % 4, 1, 1), Constraint(x % 6, 3, 3)])
    >>> [str(constraint) for constraint in both]
    ['x mod 12 in [9, 9]']
    """
    known = _Conjunction()
    waiting = list(constraints)
    while waiting:
        simple = normalised(waiting.pop())
        if simple is FALSE or (simple and not known.add(simple, waiting)):
            return (FALSE,)
    left = [expr for expr in known.bounds if not known.is_implied(expr)]
    left.sort(key=lambda expr: expr.key)
    return tuple([Constraint(expr, *known.bounds[expr]) for expr in left])


class _Conjunction:
    """Normalised constraints that hold together, with at most one for each expression."""

    def __init__(self) -> None:
        self.bounds: dict[Expr, Interval] = {}
        self.residues: dict[Expr, list[Residues]] = {}

    def add(self, constraint: Constraint, again: list[Constraint]) -> bool:
        """Adds it; what it changes of others goes to `again`.  False if nothing is left."""
        expr = constraint.expr
        old = self.bounds.get(expr)
        new = intersected(old, constraint.bounds) if old else constraint.bounds
        if new == old:
            return True
        if new[0] > new[1]:
            return False
        self.bounds[expr] = new
        found = residues_of(expr, new)
        return self._rounded(expr) if found is None else self._joined(expr, found, again)

    def _joined(self, expr: Expr, found: Residues, again: list[Constraint]) -> bool:
        """`found`, which is the constraint on `expr`, joined with others of its dividend."""
        others = self.residues.setdefault(found.dividend, [])
        for other in others:
            one = both(found, other)
            if one is not None:
                others.remove(other)
                del self.bounds[expr]
                self.bounds.pop(other.written[0], None)
                if one.is_never:
                    return False
                again.append(Constraint(*one.written))
                return True
        others.append(found)
        return self._rounded(found.dividend)

    def _rounded(self, dividend: Expr) -> bool:
        """Moves the bounds of `dividend` inwards to residues that it may have."""
        bounds = self.bounds.get(dividend)
        if bounds is None:
            return True
        for residues in self.residues.get(dividend, ()):
            bounds = residues.rounded(bounds)
        self.bounds[dividend] = bounds
        return bounds[0] <= bounds[1]

    def is_implied(self, expr: Expr) -> bool:
        """Another constraint decides the one on `expr`.

        The one on its dividend, if it is about residues; or one on a part of the sum.
        """
        found = residues_of(expr, self.bounds[expr])
        bounds = self.bounds.get(found.dividend) if found else None
        decided = bool(found and bounds and found.holds(bounds))
        return decided or any(self._follows(expr, part) for part in self.bounds)

    def _follows(self, expr: Expr, part: Expr) -> bool:
        """What is known of `part` and the interval of the rest decide the constraint on `expr`.

        Only a wider one goes: there is no circle of constraints that follow from each other.
        """
        (low, high), (least, most) = self.bounds[expr], self.bounds[part]
        if high - low <= most - least or not part.parts.keys() <= expr.parts.keys():
            return False
        atom, unit = part.terms[0]
        factor, left = divmod(expr.parts[atom], unit)
        if left:
            return False
        rest = added(expr, part, -factor)
        reached = interval.added(rest.bounds, interval.scaled((least, most), factor))
        return contains((low, high), reached)


def known_terms(constraints: Iterable[Constraint]) -> dict[frozenset[Term], Interval]:
    """What normalised `constraints` say of sums of terms, for `simplifier.bounds.Facts`."""
    known: dict[frozenset[Term], Interval] = {}
    for constraint in constraints:
        offset = constraint.expr.constant
        lower, upper = constraint.lower - offset, constraint.upper - offset
        known[constraint.expr.identity[0]] = lower, upper
        known[(-constraint.expr).identity[0]] = -upper, -lower
    return known

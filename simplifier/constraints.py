"""``expression in [lower, upper]``: one constraint of a domain, and its simplest equal form."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from math import gcd
from typing import Final

from simplifier import interval, laws, trace
from simplifier.atoms import Floor
from simplifier.bounds import UNCONSTRAINED
from simplifier.interval import Interval, contains, intersected
from simplifier.linear import Expr, Term, added, constant, from_atom
from simplifier.mods import split
from simplifier.residues import Residues, both, canonical_law, law_of_both, residues_of
from simplifier.text import terms_and_constant
from simplifier.trace import Law


@dataclass(frozen=True, slots=True)
class Constraint:
    """``expr in [lower, upper]``, both included."""

    expr: Expr
    lower: int
    upper: int

    def __reduce__(self) -> tuple[type[Constraint], tuple[Expr, int, int]]:
        """Made anew where it is loaded: nothing can be set on it, least of all when compiled."""
        return Constraint, (self.expr, self.lower, self.upper)

    def __str__(self) -> str:
        return f"{self.expr} in [{self.lower}, {self.upper}]"

    def mapped(self, change: Callable[[Expr], Expr]) -> Constraint:
        """The same bounds on ``change(expr)``."""
        return Constraint(change(self.expr), self.lower, self.upper)

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

_VERDICTS: Final[dict[Constraint | None, str]] = {FALSE: "false", None: "true"}


@trace.memoised(1 << 14)
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
    canonical: Residues | None = None
    while True:
        if not constraint.expr.parts:
            return _decided(constraint)
        constraint = _primitive(constraint)
        expr, lower, upper = constraint.expr, constraint.lower, constraint.upper
        floor = _removable(expr)
        if floor is not None:
            before = constraint
            lower, upper = (lower, upper) if expr.parts[floor] == 1 else (-upper, -lower)
            divisor = floor.divisor
            constraint = Constraint(
                _without_floor(expr, floor), lower * divisor, upper * divisor + divisor - 1
            )
            if trace.records:
                trace.note(laws.REMOVE_FLOOR, before, constraint)
            continue
        lower, upper = intersected((lower, upper), expr.bounds)
        if lower > upper:
            return _noted(laws.CLIP_BOUNDS, constraint, FALSE)
        clipped = Constraint(expr, lower, upper)
        residues = residues_of(expr, (lower, upper))
        if residues is not None and residues != canonical:
            canonical = residues
            constraint = Constraint(*residues.written)
            if trace.records:
                trace.note(canonical_law(expr, residues), clipped, constraint)
            continue
        simple = _plain(clipped)
        if simple.is_true:
            return _noted(laws.DECIDE_CONSTRAINT, constraint, None)
        if trace.records:
            trace.note(laws.CLIP_BOUNDS, constraint, clipped)
        return _undecided(simple)


def _noted(law: Law, before: Constraint, after: Constraint | None) -> Constraint | None:
    """Return `after`, which `law` makes of `before`; `None` is a constraint that always holds."""
    if trace.records:
        trace.note(law, before, _VERDICTS.get(after, after))
    return after


def _decided(constraint: Constraint) -> Constraint | None:
    """`FALSE` or `None` for a constraint on a constant."""
    is_true = constraint.lower <= constraint.expr.constant <= constraint.upper
    return _noted(laws.DECIDE_CONSTRAINT, constraint, None if is_true else FALSE)


def _primitive(constraint: Constraint) -> Constraint:
    """An equal constraint without a constant term, whose coefficients have no common factor.

    The first coefficient is positive.
    """
    expr, lower, upper = constraint.expr, constraint.lower, constraint.upper
    factor = gcd(*expr.parts.values())
    sign = -1 if expr.terms[0][1] < 0 else 1
    if not expr.constant and factor * sign == 1:
        return constraint
    moved = constraint
    if expr.constant:
        lower, upper = lower - expr.constant, upper - expr.constant
        expr = Expr(expr.parts, 0)
        moved = Constraint(expr, lower, upper)
        if trace.records:
            trace.note(laws.MOVE_CONSTANT, constraint, moved)
        if factor * sign == 1:
            return moved
    if sign < 0:
        lower, upper = -upper, -lower
    lower, upper = -(-lower // factor), upper // factor
    factor *= sign
    divided = Constraint(
        Expr({atom: c // factor for atom, c in expr.parts.items()}, 0), lower, upper
    )
    if trace.records:
        trace.note(laws.DIVIDE_CONSTRAINT, moved, divided)
    return divided


def _without_floor(expr: Expr, floor: Floor) -> Expr:
    """``d·q + n`` of ``q + floor(n / d)``, or of ``-q - floor(n / d)``."""
    sign = expr.parts[floor]
    rest = added(expr, from_atom(floor), -sign)
    return added(floor.numerator, rest, floor.divisor * sign)


def _undecided(constraint: Constraint) -> Constraint | None:
    """It, unless intervals show in another way that it always holds, or never does."""
    for low, high in _reaches(constraint.expr):
        if contains(constraint.bounds, (low, high)):
            return _noted(laws.DECIDE_CONSTRAINT, constraint, None)
        if high < constraint.lower or constraint.upper < low:
            return _noted(laws.DECIDE_CONSTRAINT, constraint, FALSE)
    return constraint


def _reaches(expr: Expr) -> Iterator[Interval]:
    """Intervals of `expr`: with finer mods in it, and with one of several floors undone."""
    yield UNCONSTRAINED.finest_bounds(expr)
    units = _units(expr)
    for floor in units if len(units) > 1 else ():
        low, high = UNCONSTRAINED.finest_bounds(_without_floor(expr, floor))
        low, high = low // floor.divisor, high // floor.divisor
        yield (low, high) if expr.parts[floor] == 1 else (-high, -low)


def _plain(constraint: Constraint) -> Constraint:
    """The constant moved so that the text has none: ``x mod 7``, not ``x mod 7 - 4``."""
    if not split(constraint.expr).rest.constant:
        return constraint
    _, constant = terms_and_constant(constraint.expr)
    lower, upper = constraint.lower - constant, constraint.upper - constant
    return Constraint(constraint.expr - constant, lower, upper)


def _removable(expr: Expr) -> Floor | None:
    """The one floor with coefficient ±1: ``q + floor(n / d)`` is ``floor((d·q + n) / d)``."""
    units = _units(expr)
    return units[0] if len(units) == 1 else None


def _units(expr: Expr) -> list[Floor]:
    return [atom for atom, c in expr.parts.items() if c in (1, -1) and isinstance(atom, Floor)]


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
        if trace.records and old:
            pair = Constraint(expr, *old), constraint
            after = "false" if new[0] > new[1] else Constraint(expr, *new)
            trace.note_all(laws.INTERSECT_BOUNDS, pair, after)
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
                if trace.records:
                    pair = Constraint(*found.written), Constraint(*other.written)
                    after = "false" if one.is_never else Constraint(*one.written)
                    trace.note_all(law_of_both(found, other), pair, after)
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
            before, bounds = bounds, residues.rounded(bounds)
            if trace.records:
                note_rounding(dividend, residues, before, bounds)
        self.bounds[dividend] = bounds
        return bounds[0] <= bounds[1]

    def is_implied(self, expr: Expr) -> bool:
        """Another constraint decides the one on `expr`.

        The one on its dividend, if it is about residues; or one on a part of the sum.
        """
        bounds = self.bounds[expr]
        found = residues_of(expr, bounds)
        of_dividend = self.bounds.get(found.dividend) if found else None
        if found and of_dividend and found.holds(of_dividend):
            if trace.records:
                known = Constraint(found.dividend, *of_dividend)
                trace.note_all(
                    laws.DROP_IMPLIED_RESIDUES, (known, Constraint(expr, *bounds)), known
                )
            return True
        for other in self.bounds.items():
            if _follows(expr, bounds, *other):
                if trace.records:
                    known = Constraint(other[0], *other[1])
                    trace.note_all(laws.DROP_IMPLIED, (known, Constraint(expr, *bounds)), known)
                return True
        return False


def note_rounding(dividend: Expr, residues: Residues, before: Interval, after: Interval) -> None:
    """Record that the bounds of `dividend` were rounded to `residues`."""
    congruent = Constraint(*residues.written)
    old, new = Constraint(dividend, *before), Constraint(dividend, *after)
    if old != new:
        trace.note_all(laws.ROUND_TO_RESIDUES, (congruent, old), f"{congruent} and {new}")


def _follows(expr: Expr, bounds: Interval, part: Expr, known: Interval) -> bool:
    """What is `known` of `part` and the interval of the rest show that `expr` lies in `bounds`.

    Only a wider constraint goes: there is no circle of constraints that follow from each other.
    """
    if bounds[1] - bounds[0] <= known[1] - known[0] or not part.parts.keys() <= expr.parts.keys():
        return False
    atom, unit = part.terms[0]
    factor, left = divmod(expr.parts[atom], unit)
    if left:
        return False
    rest = added(expr, part, -factor)
    return contains(bounds, interval.added(rest.bounds, interval.scaled(known, factor)))


def sum_bounds(constraints: Iterable[Constraint]) -> dict[frozenset[Term], Interval]:
    """What normalised `constraints` say of sums of terms, for `simplifier.bounds.KnownBounds`."""
    known: dict[frozenset[Term], Interval] = {}
    for constraint in constraints:
        offset = constraint.expr.constant
        lower, upper = constraint.lower - offset, constraint.upper - offset
        known[constraint.expr.identity[0]] = lower, upper
        known[(-constraint.expr).identity[0]] = -upper, -lower
    return known

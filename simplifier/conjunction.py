"""Conjunctions of constraints: normal form, combination and implication."""

from __future__ import annotations

from collections.abc import Iterable

from simplifier import interval, laws, trace
from simplifier.constraints import FALSE, Constraint, normalise, with_bounds
from simplifier.interval import Interval, contains, intersect
from simplifier.linear import Expr, add_multiple
from simplifier.residues import Residues, intersection, intersection_law


def merge_constraints(
    constraints: Iterable[Constraint], normal: Iterable[Constraint] = ()
) -> tuple[Constraint, ...]:
    """Return an equivalent conjunction: normalised, one constraint for each expression, sorted.

    Congruences of one dividend are combined, and bounds of that dividend are rounded to values that
    satisfy them.  Constraints that one other constraint and the bounds of variables imply are
    dropped: ``8·x + y in [0, 8·n + 7]`` if ``x in [0, n]`` and y lies in ``[0, 7]``.  The result is
    ``(FALSE,)`` if the conjunction is unsatisfiable.  The constraints `normal` are normalised.

    >>> from simplifier.linear import variable
    >>> x = variable("x", -20, 20)
    >>> both = merge_constraints([Constraint(x % 4, 1, 1), Constraint(x % 6, 3, 3)])
    >>> [str(constraint) for constraint in both]
    ['x mod 12 in [9, 9]']
    """
    conjunction = _Conjunction()
    pending = list(constraints)
    for each in normal:
        if not conjunction.add(each, pending):
            return (FALSE,)
    while pending:
        simple = normalise(pending.pop())
        if simple is FALSE or (simple and not conjunction.add(simple, pending)):
            return (FALSE,)
    left = [each for each in conjunction.stated.values() if not conjunction.is_implied(each)]
    left = sorted(left, key=lambda each: each.expr.key) if len(left) > 1 else left  # keys are slow
    return tuple(left)


class _Conjunction:
    """A conjunction of normalised constraints, at most one for each expression."""

    def __init__(self) -> None:
        self.stated: dict[Expr, Constraint] = {}
        self.residues: dict[Expr, list[Residues]] = {}

    def add(self, constraint: Constraint, pending: list[Constraint]) -> bool:
        """Add a constraint; combined ones go to `pending`.

        Return False if the conjunction is unsatisfiable.
        """
        expr = constraint.expr
        old = self.stated.get(expr)
        if old:
            new = with_bounds(old, intersect(old.bounds, constraint.bounds))
            if new is old:
                return True
            if trace.records:
                after = "false" if new.lower > new.upper else new
                trace.record_all(laws.INTERSECT_BOUNDS, (old, constraint), after)
            if new.lower > new.upper:
                return False
            constraint = new
        self.stated[expr] = constraint
        residues = constraint.residues
        return (
            self._round_bounds(expr)
            if residues is None
            else self._combine_residues(expr, residues, pending)
        )

    def _combine_residues(self, expr: Expr, residues: Residues, pending: list[Constraint]) -> bool:
        """Combine `residues`, the constraint on `expr`, with another one of the same dividend."""
        others = self.residues.setdefault(residues.dividend, [])
        for other in others:
            one = intersection(residues, other)
            if one is not None:
                if trace.records:
                    pair = Constraint(*residues.written), Constraint(*other.written)
                    after = "false" if one.is_false else Constraint(*one.written)
                    trace.record_all(intersection_law(residues, other), pair, after)
                others.remove(other)
                del self.stated[expr]
                self.stated.pop(other.written[0], None)
                if one.is_false:
                    return False
                pending.append(Constraint(*one.written))
                return True
        others.append(residues)
        return self._round_bounds(residues.dividend)

    def _round_bounds(self, dividend: Expr) -> bool:
        """Round the bounds of `dividend` inwards to its residues.

        Return False if the conjunction is unsatisfiable.
        """
        stated = self.stated.get(dividend)
        if stated is None:
            return True
        bounds = stated.bounds
        for residues in self.residues.get(dividend, ()):
            before, bounds = bounds, residues.round_bounds(bounds)
            if trace.records:
                record_rounding(dividend, residues, before, bounds)
        self.stated[dividend] = with_bounds(stated, bounds)
        return bounds[0] <= bounds[1]

    def is_implied(self, constraint: Constraint) -> bool:
        """Return True if another constraint implies `constraint`.

        That is a constraint on the dividend of residues, or on a part of the sum.
        """
        residues = constraint.residues
        of_dividend = self.stated.get(residues.dividend) if residues else None
        if residues and of_dividend and residues.contains(of_dividend.bounds):
            if trace.records:
                pair = of_dividend, constraint
                trace.record_all(laws.DROP_IMPLIED_RESIDUES, pair, of_dividend)
            return True
        for known in self.stated.values():
            if _follows(constraint, known):
                if trace.records:
                    trace.record_all(laws.DROP_IMPLIED, (known, constraint), known)
                return True
        return False


def record_rounding(dividend: Expr, residues: Residues, before: Interval, after: Interval) -> None:
    """Record for `simplifier.trace` that bounds of `dividend` were rounded to `residues`."""
    congruent = Constraint(*residues.written)
    old, new = Constraint(dividend, *before), Constraint(dividend, *after)
    if old != new:
        trace.record_all(laws.ROUND_TO_RESIDUES, (congruent, old), f"{congruent} and {new}")


def _follows(constraint: Constraint, known: Constraint) -> bool:
    """Return True if `known`, on a part of the sum, and intervals imply `constraint`.

    Its bounds must be wider than those `known`, so constraints never imply each other in a cycle.
    """
    if constraint.upper - constraint.lower <= known.upper - known.lower:
        return False
    expr, part = constraint.expr, known.expr
    if not part.parts.keys() <= expr.parts.keys():
        return False
    atom, unit = part.terms[0]
    factor, left = divmod(expr.parts[atom], unit)
    if left:
        return False
    rest = add_multiple(expr, part, -factor)
    implied = interval.add(rest.bounds, interval.scale(known.bounds, factor))
    return contains(constraint.bounds, implied)

"""Boxes of bounded variables with constraints, tightened by interval arithmetic.

>>> from simplifier.constraints import Constraint
>>> d0, d1 = Variable("d0", 0, 9), Variable("d1", 3, 9)
>>> domain = tighten([d0, d1], [Constraint(d0 + d1, 0, 5)])
>>> domain.variables
(Variable('d0', 0, 2), Variable('d1', 3, 5))
>>> [str(constraint) for constraint in domain.constraints]
['d0 + d1 in [3, 5]']
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from simplifier import laws, trace
from simplifier.atoms import Floor, Variable, variables_in
from simplifier.bounds import KnownBounds
from simplifier.conjunction import merge_constraints, record_rounding
from simplifier.constraints import (
    FALSE,
    Constraint,
    droppable_first,
    is_false,
    on_narrower,
    sum_bounds,
)
from simplifier.interval import Interval, contains, divide_exactly, intersect, scale
from simplifier.linear import Expr, from_atom
from simplifier.residues import Residues
from simplifier.rewrite import Congruences, Rewriting
from simplifier.substitute import Substitution
from simplifier.zero_divisor import ZeroDivisorError

# Propagation may converge slowly (x < y, y < z, z < x); `simplifier.refine` gives the limit.
_ROUNDS = 8

# Limit on the floors that the bounds of one constraint are propagated into.  A shared floor counts
# once for each occurrence; further floors only lose precision.
MAX_FLOORS = 128


@dataclass(frozen=True, slots=True)
class ConstrainedBox:
    """The points of a box that satisfy constraints.

    Attributes:
        variables: the box.
        constraints: normalised constraints.
        implied: further constraints that hold at every point.
    """

    variables: tuple[Variable, ...]
    constraints: tuple[Constraint, ...]
    implied: tuple[Constraint, ...] = ()

    @property
    def is_known_empty(self) -> bool:
        """True if intervals prove that there is no point."""
        return is_false(self.constraints)

    def rebuild(self, old: Sequence[Variable]) -> Callable[[Expr], Expr]:
        """Return a function that rewrites expressions of `old` variables for this domain.

        The rewritten expressions have equal values at every point of the domain.  `variables`
        replace the `old` ones in order.  The function raises `ZeroDivisorError` for an expression
        with a divisor that is 0 at every point.
        """
        now = self.variables
        pairs = zip(old, now, strict=True) if old != now else ()
        replaced = tuple([(before, v.as_expr()) for before, v in pairs if before is not v])
        return _rewriting(self.constraints + self.implied, replaced)


@trace.memoised(1 << 5)  # the maps of a chain share domains, and most of their atoms
def _rewriting(
    constraints: tuple[Constraint, ...], values: tuple[tuple[Variable, Expr], ...]
) -> Rewriting:
    return Rewriting(constraints, dict(values))


def tighten(variables: Sequence[Variable], constraints: Iterable[Constraint]) -> ConstrainedBox:
    """Return an equivalent domain with tighter variable bounds and fewer, simpler constraints.

    The domain is empty if a constraint divides by an expression that is 0 at every point.
    """
    return drop_implied(narrow(variables, constraints))


def drop_implied(domain: ConstrainedBox) -> ConstrainedBox:
    """Drop constraints that intervals derive from the others."""
    if len(domain.constraints) < 2:
        return domain
    return ConstrainedBox(domain.variables, _needed_constraints(domain.constraints))


def narrow(variables: Sequence[Variable], constraints: Iterable[Constraint]) -> ConstrainedBox:
    """Return an equivalent domain with propagated bounds of variables and normalised constraints.

    Some constraints may imply others; see `drop_implied`.
    """
    box = tuple(variables)
    try:
        return _narrowed_in_rounds(box, tuple(constraints))
    except ZeroDivisorError:
        return ConstrainedBox(box, (FALSE,))


@trace.memoised(1 << 11)  # the maps of a chain share domains
def _narrowed_in_rounds(
    variables: tuple[Variable, ...], constraints: tuple[Constraint, ...]
) -> ConstrainedBox:
    box = None if trace.records else _box(variables, constraints)
    if box is not None:
        return box
    now = variables
    left = merge_constraints(constraints)
    for _ in range(_ROUNDS):
        changed = _narrower(now, _propagate_bounds(left))
        if not changed:
            break
        now = tuple([changed.get(v, v) for v in now])
        if _is_empty(now):
            break
        left = with_narrower(left, changed)
    if is_false(left) or _is_empty(now):
        return ConstrainedBox(variables, (FALSE,))
    return ConstrainedBox(now, left)


def with_narrower(
    constraints: tuple[Constraint, ...], changed: Mapping[Variable, Variable]
) -> tuple[Constraint, ...]:
    """Return the conjunction of normalised `constraints` with narrower variables."""
    narrower = Substitution({old: new.as_expr() for old, new in changed.items()})
    if trace.records:
        return merge_constraints(c.with_expr(narrower(c.expr)) for c in constraints)
    simple: list[Constraint] = []
    others: list[Constraint] = []
    for constraint in constraints:
        if constraint.expr.as_variable in changed:
            continue  # a constraint on a variable alone has become its bounds
        moved = on_narrower(constraint, changed)
        if moved is None:
            others.append(constraint.with_expr(narrower(constraint.expr)))
        else:
            simple.append(moved)
    return merge_constraints(others, simple)


def _narrower(
    variables: Iterable[Variable], bounds: Mapping[Variable, Interval]
) -> dict[Variable, Variable]:
    """The variables that `bounds` narrow, each with the narrower one."""
    changed: dict[Variable, Variable] = {}
    for v in variables:
        if v in bounds:
            narrow = intersect(v.bounds, bounds[v])
            if narrow != v.bounds:
                changed[v] = Variable(v.name, *narrow)
    return changed


def _is_empty(box: Iterable[Variable]) -> bool:
    return True in [v.lower > v.upper for v in box]


def _box(
    variables: tuple[Variable, ...], constraints: tuple[Constraint, ...]
) -> ConstrainedBox | None:
    """The domain, if every constraint only bounds one of the variables; else `None`."""
    bounds = {v: v.bounds for v in variables}
    for constraint in constraints:
        expr = constraint.expr
        if len(expr.parts) != 1:
            return None
        ((atom, coefficient),) = expr.parts.items()
        if not isinstance(atom, Variable) or atom not in bounds:
            return None
        stated = constraint.lower - expr.constant, constraint.upper - expr.constant
        bounds[atom] = intersect(bounds[atom], divide_exactly(stated, coefficient))
    changed = _narrower(variables, bounds)
    now = tuple([changed.get(v, v) for v in variables])
    return ConstrainedBox(variables, (FALSE,)) if _is_empty(now) else ConstrainedBox(now, ())


@trace.memoised(1 << 11)
def _needed_constraints(constraints: tuple[Constraint, ...]) -> tuple[Constraint, ...]:
    """Drop constraints that the others imply by intervals, those of many atoms first."""
    for constraint in droppable_first(constraints):
        others = tuple([c for c in constraints if c is not constraint])
        inside = variables_in([constraint.expr])
        near = [c for c in others if not inside.isdisjoint(variables_in([c.expr]))]
        if near and contains(constraint.bounds, _bounds_under(constraint.expr, near)):
            if trace.records:
                after = " and ".join(map(str, others))
                trace.record(laws.DROP_IMPLIED, f"{after} and {constraint}", after)
            constraints = others
    return constraints


def _bounds_under(expr: Expr, known: Sequence[Constraint]) -> Interval:
    """Bounds of `expr` under the constraints `known`, rounded to its residues."""
    bounds = KnownBounds(sum_bounds(known)).finest_bounds(expr)
    congruences: list[Residues] = []
    for constraint in known:
        residues = constraint.residues
        if residues and residues.is_congruence:
            congruences.append(residues)
        elif residues and residues.dividend == expr:
            bounds = residues.round_bounds(bounds)
    modulus, remainder = Congruences(congruences).modulo(expr) if congruences else (1, 0)
    if modulus > 1:
        bounds = Residues(expr, modulus, remainder, remainder).round_bounds(bounds)
    return bounds


@trace.memoised(1 << 11)
def _propagate_bounds(constraints: tuple[Constraint, ...]) -> Mapping[Variable, Interval]:
    """Bounds of variables that one constraint and the bounds of its other terms imply."""
    propagated: dict[Variable, Interval] = {}
    for constraint in constraints:
        _propagate(constraint.expr, constraint.bounds, propagated, [MAX_FLOORS])
        residues = constraint.residues
        variable = residues.dividend.as_variable if residues else None
        if residues and variable:
            bounds = intersect(propagated.get(variable, variable.bounds), variable.bounds)
            if bounds[0] <= bounds[1]:
                propagated[variable] = intersect(bounds, residues.round_bounds(bounds))
                if trace.records:
                    record_rounding(residues.dividend, residues, bounds, propagated[variable])
    return propagated


def _propagate(
    expr: Expr, bounds: Interval, propagated: dict[Variable, Interval], floors: list[int]
) -> None:
    """Propagate ``expr in bounds`` to its variables, those in floors too, into `propagated`.

    `floors` has the number of floors into which it may still descend.
    """
    is_ordered = trace.records or expr.divides  # the order matters to records and to `floors`
    terms = expr.terms if is_ordered else expr.parts.items()
    low = high = expr.constant
    for atom, coefficient in terms:
        own = scale(atom.bounds, coefficient)
        low, high = low + own[0], high + own[1]
    for atom, coefficient in terms:
        own = scale(atom.bounds, coefficient)
        lower, upper = bounds[0] - (high - own[1]), bounds[1] - (low - own[0])
        if coefficient > 0:
            lower, upper = -(-lower // coefficient), upper // coefficient
        else:
            lower, upper = -(upper // -coefficient), -lower // -coefficient
        if trace.records and (lower > atom.bounds[0] or upper < atom.bounds[1]):
            trace.record(
                laws.PROPAGATE_BOUNDS,
                Constraint(expr, *bounds),
                Constraint(from_atom(atom), *intersect((lower, upper), atom.bounds)),
            )
        if isinstance(atom, Variable):
            old = propagated.get(atom)
            propagated[atom] = intersect(old, (lower, upper)) if old else (lower, upper)
        elif isinstance(atom, Floor) and (lower > atom.bounds[0] or upper < atom.bounds[1]):
            if floors[0]:
                floors[0] -= 1
                inner = lower * atom.divisor, (upper + 1) * atom.divisor - 1
                _propagate(atom.numerator, inner, propagated, floors)


def are_disjoint(constraints: Iterable[Constraint]) -> bool:
    """Return True if the intervals that constraints state for one sum have no common value.

    >>> from simplifier.linear import variable
    >>> d = variable("d0", 0, 9)
    >>> are_disjoint([Constraint(d, 0, 3), Constraint(-d, -9, -4)])
    True
    """
    return any(low > high for low, high in sum_bounds(constraints).values())

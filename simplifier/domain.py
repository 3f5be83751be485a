"""A box of bounded variables cut by constraints, made as tight as intervals can tell.

>>> from simplifier.constraints import Constraint
>>> d0, d1 = Variable("d0", 0, 9), Variable("d1", 3, 9)
>>> domain = tightened([d0, d1], [Constraint(d0 + d1, 0, 5)])
>>> domain.variables
(Variable('d0', 0, 2), Variable('d1', 3, 5))
>>> [str(constraint) for constraint in domain.constraints]
['d0 + d1 in [3, 5]']
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from simplifier.bounds import Facts
from simplifier.constraints import FALSE, Constraint, known_terms, merged
from simplifier.interval import Interval, intersected, scaled
from simplifier.linear import Expr, Floor, Variable, added, constant
from simplifier.substitute import Substitution

# Bounds can chase each other in small steps (x < y, y < z, z < x); ISL ends that at once.
_ROUNDS = 8


@dataclass(frozen=True, slots=True)
class Domain:
    """Points of the box `variables` that satisfy `constraints`, with what they tell about others.

    `replaced` maps each variable as it was before to the one it is now, where its bounds changed.
    """

    variables: tuple[Variable, ...]
    constraints: tuple[Constraint, ...]
    replaced: dict[Variable, Expr]

    @property
    def is_known_empty(self) -> bool:
        """No point is left, as intervals alone show."""
        return self.constraints == (FALSE,)

    def rebuild(self) -> Callable[[Expr], Expr]:
        """Rewrites an expression of the old variables as a simpler one with equal values here."""
        facts = Facts(known_terms(self.constraints))
        substitution = Substitution(self.replaced, facts)
        zeros = [c.expr - c.lower for c in self.constraints if c.lower == c.upper]

        def rebuilt(expr: Expr) -> Expr:
            expr = _without_floors(substitution(expr), zeros)
            lower, upper = facts.bounds(expr)
            return constant(lower) if lower == upper else expr

        return rebuilt


def tightened(variables: Sequence[Variable], constraints: Iterable[Constraint]) -> Domain:
    """The same points with tighter variable bounds, and with simpler and fewer constraints."""
    now = list(variables)
    left = merged(constraints)
    for round_ in range(_ROUNDS + 1):
        bounds = _propagated(left) if round_ < _ROUNDS else _exact(now, left)
        changed = {
            v: Variable(v.name, *intersected(v.bounds, bounds[v]))
            for v in now
            if v in bounds and intersected(v.bounds, bounds[v]) != v.bounds
        }
        if not changed:
            break
        now = [changed.get(v, v) for v in now]
        if any(v.is_empty for v in now):
            break
        narrower = Substitution({old: new.as_expr() for old, new in changed.items()})
        left = merged(Constraint(narrower(c.expr), c.lower, c.upper) for c in left)
    if left == (FALSE,) or any(v.is_empty for v in now):
        return Domain(tuple(variables), (FALSE,), {})
    replaced = {
        old: new.as_expr() for old, new in zip(variables, now, strict=True) if old is not new
    }
    return Domain(tuple(now), left, replaced)


def _without_floors(expr: Expr, zeros: Sequence[Expr]) -> Expr:
    """`expr` with multiples of `zeros`, which are 0 here, added where that takes a floor away.

    Where ``x mod 4 == 1``, that is ``x - 4·floor(x / 4) - 1 == 0``, ``8·floor(x / 4)`` is ``2·x -
    2``.
    """
    for zero in zeros:
        have = dict(expr.terms)
        for atom, coefficient in zero.terms:
            if isinstance(atom, Floor) and atom in have and have[atom] % coefficient == 0:
                other = added(expr, zero, -have[atom] // coefficient)
                if _floors(other) < _floors(expr):
                    expr = other
                    break
    return expr


def _floors(expr: Expr) -> int:
    return sum(isinstance(atom, Floor) for atom, _ in expr.terms)


def _exact(variables: Sequence[Variable], left: Sequence[Constraint]) -> dict[Variable, Interval]:
    """The bounds that the variables have among the points, where ISL can tell."""
    from simplifier import exact  # loads ISL

    found: dict[Variable, Interval] = {}
    for variable in {v: None for c in left for v in c.expr.variables()}:
        bounds = exact.bounds(variables, left, variable.as_expr())
        if bounds is None:
            return {variable: (1, 0)}
        if not isinstance(bounds, exact.Undecided):
            found[variable] = bounds
    return found


def _propagated(constraints: Iterable[Constraint]) -> dict[Variable, Interval]:
    """Bounds of single variables that follow from one constraint and the other terms' intervals."""
    found: dict[Variable, Interval] = {}
    for constraint in constraints:
        terms = [(atom, c, scaled(atom.bounds, c)) for atom, c in constraint.expr.terms]
        low, high = (constraint.expr.constant + sum(own[k] for _, _, own in terms) for k in (0, 1))
        for atom, coefficient, own in terms:
            if isinstance(atom, Floor):
                continue
            least, most = constraint.lower - (high - own[1]), constraint.upper - (low - own[0])
            if coefficient < 0:
                least, most = -most, -least
            step = abs(coefficient)
            bounds = -(-least // step), most // step
            found[atom] = intersected(found[atom], bounds) if atom in found else bounds
    return found

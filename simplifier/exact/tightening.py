"""Tight bounds and implied constraints of a domain, in one isl query."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from simplifier.atoms import Variable
from simplifier.constraints import Constraint, droppable_first
from simplifier.exact.context import to_int, within_budget
from simplifier.exact.encode import Relation
from simplifier.exact.reading import PointsOf, as_set, coordinates
from simplifier.interval import Interval
from simplifier.linear import Expr
from simplifier.unknown import Unknown


@dataclass(frozen=True, slots=True)
class TightBounds:
    """Exact bounds on a domain, and an irredundant subset of its constraints.

    Attributes:
        variables, exprs: bounds of the variables and of some expressions.
        constraints: the constraints that the others and the bounds of variables do not imply.

    >>> from simplifier import Variable
    >>> from simplifier.constraints import Constraint
    >>> from simplifier.exact import BUDGET, tight_bounds
    >>> i = Variable("i", 0, 9)
    >>> tight_bounds((i,), (Constraint(i.expr * 2, 3, 9),), (i.expr * 5,), BUDGET)
    TightBounds(variables=((2, 4),), exprs=((10, 20),), constraints=())
    """

    variables: tuple[Interval, ...]
    exprs: tuple[Interval, ...]
    constraints: tuple[Constraint, ...]


def tight_bounds(
    variables: tuple[Variable, ...],
    constraints: tuple[Constraint, ...],
    exprs: tuple[Expr, ...],
    budget: int,
) -> TightBounds | Unknown | None:
    """Return exact bounds of `variables` and `exprs`; `None` if the domain is empty.

    Of constraints that imply each other, those with the most atoms are dropped first.

    >>> d0, d1 = Variable("d0", 0, 9), Variable("d1", 0, 9)
    >>> both = Constraint(d0 + d1, 0, 4), Constraint(d0 * 2 + d1, 0, 9)
    >>> tight = tight_bounds((d0, d1), both, (d0 - d1,), 100_000)
    >>> tight.variables, tight.exprs, [str(constraint) for constraint in tight.constraints]
    (((0, 4), (0, 4)), ((-4, 4),), ['d0 + d1 in [0, 4]'])
    """

    def domain(some: Iterable[Constraint]) -> Relation:
        return Relation(variables, (), (), tuple(some))

    def compute(ctx: Any) -> TightBounds | None:
        valued = as_set(ctx, Relation(variables, (), exprs, constraints), of=PointsOf.PAIRS)
        if valued.is_empty():
            return None
        count = len(variables)
        values = coordinates(ctx, count + len(exprs))
        bounds = [(to_int(valued.min_val(x)), to_int(valued.max_val(x))) for x in values]
        kept = dict.fromkeys(constraints)
        pairs = zip(variables, bounds[:count], strict=True)
        narrower = [Constraint(v.as_expr(), *own) for v, own in pairs if own != v.bounds]
        for constraint in droppable_first(constraints):
            others = as_set(ctx, domain([*narrower, *[c for c in kept if c is not constraint]]))
            if others.is_subset(as_set(ctx, domain([constraint]))):
                del kept[constraint]
        return TightBounds(tuple(bounds[:count]), tuple(bounds[count:]), tuple(kept))

    return within_budget(compute, budget, kind="tight_bounds")

"""Tight bounds and implied constraints of a domain, in one isl query."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import islpy as isl

from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.exact.context import to_int, within_budget
from simplifier.exact.encode import as_domain, as_functions
from simplifier.interval import Interval
from simplifier.linear import Expr
from simplifier.unknown import Unknown


@dataclass(frozen=True, slots=True)
class TightBounds:
    """Exact bounds on a domain, and an irredundant subset of its constraints.

    Attributes:
        variables, exprs: bounds of the variables and of some expressions.
        constraints: the constraints that the others do not imply.
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

    def compute(ctx: Any) -> TightBounds | None:
        box = as_domain(ctx, variables, ())
        parts = {c: as_domain(ctx, variables, (c,)) for c in constraints}
        domain = _intersection(box, parts.values())
        if domain.is_empty():
            return None
        every = as_functions(ctx, variables, (*[v.as_expr() for v in variables], *exprs))
        bounds = [(to_int(domain.min_val(f)), to_int(domain.max_val(f))) for f in every]
        for constraint in sorted(constraints, key=lambda c: c.expr.weight, reverse=True):
            others = [part for c, part in parts.items() if c is not constraint]
            if _intersection(box, others).is_subset(parts[constraint]):
                del parts[constraint]
        count = len(variables)
        return TightBounds(tuple(bounds[:count]), tuple(bounds[count:]), tuple(parts))

    return within_budget(compute, budget, kind="tight_bounds")


def _intersection(box: isl.Set, parts: Iterable[isl.Set]) -> isl.Set:
    for part in parts:
        box = box.intersect(part)
    return box

"""Queries on relations: emptiness, bounds, difference with a witness, count, inverse, image."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import islpy as isl

from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.exact.context import BUDGET, to_int, within_budget
from simplifier.exact.decode import pieces
from simplifier.exact.encode import Relation, as_domain, as_map
from simplifier.exact.points import first_difference, needs_enumeration, pairs
from simplifier.exact.verbatim import IslText
from simplifier.interval import Interval
from simplifier.linear import Expr
from simplifier.unknown import Unknown


@dataclass(frozen=True, slots=True)
class DifferingPoint:
    """A point and its results that only one of two relations has."""

    point: tuple[int, ...]
    results: tuple[int, ...]
    in_first: bool


def is_empty(
    variables: Sequence[Variable], constraints: Iterable[Constraint], budget: int = BUDGET
) -> bool | Unknown:
    """Return True if no point of the box of `variables` satisfies all `constraints`."""
    domain = Relation(tuple(variables), (), (), tuple(constraints))
    if needs_enumeration(domain):
        return next(pairs(domain), None) is None
    return within_budget(
        lambda ctx: bool(as_domain(ctx, domain.inputs, domain.constraints).is_empty()), budget
    )


def bounds(
    variables: Sequence[Variable],
    constraints: Iterable[Constraint],
    expr: Expr,
    budget: int = BUDGET,
) -> Interval | Unknown | None:
    """Return the minimum and maximum of `expr` on the domain; `None` if the domain is empty."""
    valued = Relation(tuple(variables), (), (expr,), tuple(constraints))

    def compute(ctx: Any) -> Interval | None:
        values = as_map(ctx, valued).range()
        if values.is_empty():
            return None
        return to_int(values.dim_min_val(0)), to_int(values.dim_max_val(0))

    if needs_enumeration(valued):
        values = {value for _, (value,) in pairs(valued)}
        return (min(values), max(values)) if values else None
    return within_budget(compute, budget)


def difference(
    first: Relation | IslText, second: Relation, budget: int = BUDGET
) -> DifferingPoint | Unknown | None:
    """Return a point that only one of the relations has; `None` if they are equal.

    Inputs are matched by position; both relations have the same numbers of inputs and results.
    """

    def compute(ctx: Any) -> DifferingPoint | None:
        a, b = as_map(ctx, first), as_map(ctx, second)
        if a.is_equal(b):
            return None
        only_first = a.subtract(b)
        in_first = not only_first.is_empty()
        point = (only_first if in_first else b.subtract(a)).wrap().sample_point()
        count = len(second.inputs)
        at = [
            to_int(point.get_coordinate_val(isl.dim_type.set, k))
            for k in range(count + len(second.results))
        ]
        return DifferingPoint(tuple(at[:count]), tuple(at[count:]), in_first)

    if isinstance(first, Relation) and needs_enumeration(first, second):
        unmatched = first_difference(first, second)
        return None if unmatched is None else DifferingPoint(*unmatched[0], in_first=unmatched[1])
    return within_budget(compute, budget)


def count(relation: Relation, budget: int = BUDGET) -> int | Unknown:
    """Return the number of distinct results of the relation.

    >>> d0 = Variable("d0", 0, 999_999)
    >>> count(Relation((d0,), (), (d0 // 4, d0 // 2), ()))
    500000
    """
    if needs_enumeration(relation):
        return len({results for _, results in pairs(relation)})
    return within_budget(lambda ctx: to_int(as_map(ctx, relation).range().count_val()), budget)


def inverse(relation: Relation, budget: int = BUDGET) -> tuple[Relation, ...] | Unknown:
    """Return ``results -> inputs`` in disjoint pieces with inputs ``d0, d1, …``."""
    return within_budget(lambda ctx: pieces(as_map(ctx, relation).reverse()), budget)


def image(relation: Relation, budget: int = BUDGET) -> tuple[Relation, ...] | Unknown:
    """Return all results, as disjoint relations without inputs."""

    def compute(ctx: Any) -> tuple[Relation, ...]:
        results = as_map(ctx, relation).range()
        return pieces(isl.Map.from_range(results))

    return within_budget(compute, budget)

"""Queries on relations: emptiness, bounds, equality, difference, count, inverse, image."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import islpy as isl

from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.exact.cardinality import cardinality
from simplifier.exact.context import BUDGET, to_int, within_budget
from simplifier.exact.decode import pieces
from simplifier.exact.elements import distinct_results
from simplifier.exact.encode import Relation, without_inputs
from simplifier.exact.enumeration import (
    LEAST_BUDGET,
    MAX_AT_ONCE,
    counting_budget,
    first_difference,
    first_point,
    isl_budget,
    needs_enumeration,
    pairs,
    pieces_budget,
    should_enumerate_after,
)
from simplifier.exact.reading import PointsOf, as_map, as_set, coordinates
from simplifier.exact.verbatim import IslText
from simplifier.interval import Interval
from simplifier.linear import Expr
from simplifier.unknown import Unknown


@dataclass(frozen=True, slots=True)
class DifferingPoint:
    """A point and its results that only one of two relations has.

    >>> from simplifier import Variable
    >>> from simplifier.exact import Relation, difference
    >>> i = Variable("i", 0, 4)
    >>> difference(Relation((i,), (), (i.expr // 4,), ()), Relation((i,), (), (i.expr * 0,), ()))
    DifferingPoint(point=(4,), results=(1,), in_first=True)
    """

    point: tuple[int, ...]
    results: tuple[int, ...]
    in_first: bool


def is_empty(
    variables: Sequence[Variable], constraints: Iterable[Constraint], budget: int = BUDGET
) -> bool | Unknown:
    """Return True if no point of the box of `variables` satisfies all `constraints`.

    >>> from simplifier import Variable
    >>> from simplifier.constraints import Constraint
    >>> from simplifier.exact import is_empty
    >>> i = Variable("i", 0, 9)
    >>> is_empty([i], [Constraint(i.expr * 2, 3, 3)]), is_empty([i], [Constraint(i.expr * 2, 4, 4)])
    (True, False)
    """
    domain = Relation(tuple(variables), (), (), tuple(constraints))

    def enumerate_points() -> bool:
        return first_point(domain.inputs, domain.constraints, ()) is None

    if needs_enumeration(domain):
        return enumerate_points()
    empty = within_budget(
        lambda ctx: bool(as_set(ctx, domain).is_empty()),
        isl_budget(budget, domain, limit=MAX_AT_ONCE),
    )
    undecided = should_enumerate_after(empty, budget, domain, limit=MAX_AT_ONCE)
    return enumerate_points() if undecided else empty


def bounds(
    variables: Sequence[Variable],
    constraints: Iterable[Constraint],
    expr: Expr,
    budget: int = BUDGET,
) -> Interval | Unknown | None:
    """Return the minimum and maximum of `expr` on the domain; `None` if the domain is empty.

    >>> from simplifier import Variable
    >>> from simplifier.exact import bounds
    >>> i = Variable("i", 0, 9)
    >>> bounds([i], [], i.expr * 3 - i.expr % 2)
    (0, 26)
    """
    valued = Relation(tuple(variables), (), (expr,), tuple(constraints))

    def compute(ctx: Any) -> Interval | None:
        values = as_set(ctx, valued, of=PointsOf.RESULTS)
        if values.is_empty():
            return None
        (value,) = coordinates(ctx, 1)
        return to_int(values.min_val(value)), to_int(values.max_val(value))

    def enumerate_values() -> Interval | None:
        values = {value for _, (value,) in pairs(valued)}
        return (min(values), max(values)) if values else None

    if needs_enumeration(valued):
        return enumerate_values()
    answer = within_budget(compute, isl_budget(budget, valued))
    undecided = should_enumerate_after(answer, budget, valued)
    return enumerate_values() if undecided else answer


def are_equal(first: Relation, second: Relation, budget: int = BUDGET) -> bool | Unknown:
    """Return True if no point is in one relation only.

    Inputs are matched by position.  A `difference` takes longer: it reads formulas for its witness.

    >>> d0 = Variable("d0", 0, 9)
    >>> are_equal(Relation((d0,), (), (d0 // 2,), ()), Relation((d0,), (), (d0 // 4 * 2,), ()))
    False
    """

    def compute(ctx: Any) -> bool:
        one, other = [as_set(ctx, each, of=PointsOf.PAIRS) for each in (first, second)]
        return bool(one.is_equal(other))

    def enumerate_pairs() -> bool:
        return first_difference(first, second) is None

    if needs_enumeration(first, second):
        return enumerate_pairs()
    answer = within_budget(compute, isl_budget(budget, first, second))
    undecided = should_enumerate_after(answer, budget, first, second)
    return enumerate_pairs() if undecided else answer


def difference(
    first: Relation | IslText, second: Relation, budget: int = BUDGET
) -> DifferingPoint | Unknown | None:
    """Return a point that only one of the relations has; `None` if they are equal.

    Inputs are matched by position; both relations have the same numbers of inputs and results.

    >>> from simplifier import Variable
    >>> from simplifier.exact import Relation, difference
    >>> i = Variable("i", 0, 7)
    >>> rows = Relation((i,), (), (i.expr // 4 * 4 + i.expr % 4,), ())
    >>> print(difference(rows, Relation((i,), (), (i.expr,), ())))
    None
    """

    def compute(ctx: Any) -> DifferingPoint | None:
        a, b = as_set(ctx, first, of=PointsOf.PAIRS), as_set(ctx, second, of=PointsOf.PAIRS)
        if a.is_equal(b):
            return None
        a, b = [as_set(ctx, r, of=PointsOf.PAIRS, use_formulas=True) for r in (first, second)]
        only_first = a.subtract(b)
        in_first = not only_first.is_empty()
        point = (only_first if in_first else b.subtract(a)).sample_point()
        count = len(second.inputs)
        at = [
            to_int(point.get_coordinate_val(isl.dim_type.set, k))
            for k in range(count + len(second.results))
        ]
        return DifferingPoint(tuple(at[:count]), tuple(at[count:]), in_first)

    if isinstance(first, IslText):
        least = min(budget, LEAST_BUDGET)  # the text cannot be enumerated
        return within_budget(compute, max(least, isl_budget(budget, second)))

    def enumerate_pairs(first: Relation) -> DifferingPoint | None:
        unmatched = first_difference(first, second)
        return None if unmatched is None else DifferingPoint(*unmatched[0], in_first=unmatched[1])

    if needs_enumeration(first, second):
        return enumerate_pairs(first)
    answer = within_budget(compute, isl_budget(budget, first, second))
    undecided = should_enumerate_after(answer, budget, first, second)
    return enumerate_pairs(first) if undecided else answer


def count(relation: Relation, budget: int = BUDGET) -> int | Unknown:
    """Return the number of distinct results of the relation.

    >>> d0 = Variable("d0", 0, 999_999)
    >>> count(Relation((d0,), (), (d0 // 4, d0 // 2), ()))
    500000
    """

    number: int | Unknown = Unknown("isl cannot represent the relation")
    if not needs_enumeration(relation):
        number = within_budget(
            lambda ctx: cardinality(as_set(ctx, relation, of=PointsOf.RESULTS)),
            counting_budget(budget, relation),
        )
        if not should_enumerate_after(number, budget, relation, limit=MAX_AT_ONCE):
            return number
    rows = distinct_results(relation)
    return number if rows is None else len(rows)


def inverse(relation: Relation, budget: int = BUDGET) -> tuple[Relation, ...] | Unknown:
    """Return ``results -> inputs`` in disjoint pieces with inputs ``d0, d1, …``.

    >>> from simplifier import Variable
    >>> from simplifier.exact import Relation, inverse, relation_text
    >>> i = Variable("i", 0, 4)
    >>> for piece in inverse(Relation((i,), (), (i.expr + 3,), ())):
    ...     print(relation_text(piece))
    { [d0] -> [o0] : o0 = -3 + 1*d0 and 3 <= d0 <= 7 }
    """
    limit = pieces_budget(budget, relation)
    return within_budget(lambda ctx: pieces(as_map(ctx, relation, reverse=True)), limit)


def image(relation: Relation, budget: int = BUDGET) -> tuple[Relation, ...] | Unknown:
    """Return all results, as disjoint relations without inputs.

    >>> from simplifier import Variable
    >>> from simplifier.exact import Relation, image, relation_text
    >>> i = Variable("i", 0, 4)
    >>> for piece in image(Relation((i,), (), (i.expr + 3,), ())):
    ...     print(relation_text(piece))
    { [] -> [o0] : exists (s0 : o0 = 0 + 1*s0 and 3 <= s0 <= 7) }
    """
    limit = pieces_budget(budget, relation)
    return within_budget(lambda ctx: pieces(as_map(ctx, without_inputs(relation))), limit)

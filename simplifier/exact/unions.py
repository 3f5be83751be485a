"""Queries on unions of relations: points that satisfy disjunctions, images, unreached points.

A union is a sequence of relations with the same numbers of inputs and results.

>>> from simplifier.atoms import Variable
>>> d0 = Variable("d0", 0, 9)
>>> halves = Relation((d0,), (), (d0 // 2,), ())
>>> uncovered([halves], (Variable("e0", 0, 5),))
(5,)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any, Final, TypeAlias

import islpy as isl

from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.exact.cardinality import cardinality
from simplifier.exact.context import BUDGET, to_int, within_budget
from simplifier.exact.decode import pieces
from simplifier.exact.elements import first_uncovered
from simplifier.exact.encode import Relation, as_map, as_set
from simplifier.exact.enumeration import (
    MAX_AT_ONCE,
    array_budget,
    first_point,
    first_unmatched,
    isl_budget,
    pieces_budget,
    should_enumerate_after,
)
from simplifier.unknown import Unknown

COALESCING_BUDGET: Final = 400_000
"""isl operations to coalesce relations."""

Clause: TypeAlias = Sequence[Sequence[Constraint]]
"""A disjunction: the constraints of at least one of the lists hold."""

Point: TypeAlias = tuple[int, ...]


def point(
    variables: Sequence[Variable],
    constraints: Iterable[Constraint],
    clauses: Iterable[Clause] = (),
    budget: int = BUDGET,
) -> Point | Unknown | None:
    """Return a point of the box that satisfies all constraints and clauses; `None` without one.

    >>> d0, d1 = Variable("d0", 0, 3), Variable("d1", 0, 3)
    >>> unequal = [[Constraint(d0 - d1, 1, 3)], [Constraint(d0 - d1, -3, -1)]]
    >>> point((d0, d1), [Constraint(d0 + d1, 6, 9)], [unequal]) is None
    True
    """
    box = Relation(tuple(variables), (), (), tuple(constraints))
    choices = tuple(clauses)
    stated = [c for clause in choices for choice in clause for c in choice]
    every = replace(box, constraints=(*box.constraints, *stated))
    answer = within_budget(
        lambda ctx: _sample(_restricted(ctx, box, choices)),
        isl_budget(budget, every, limit=MAX_AT_ONCE),
    )
    if should_enumerate_after(answer, budget, every, limit=MAX_AT_ONCE):
        return first_point(box.inputs, box.constraints, choices)
    return answer


def only_first(
    first: Sequence[Relation],
    second: Sequence[Relation],
    clauses: Iterable[Clause] = (),
    budget: int = BUDGET,
) -> Point | Unknown | None:
    """Return inputs and results that only the first union relates; `None` without any.

    The inputs satisfy the `clauses`, which are over the inputs of ``first[0]``.
    """
    inputs = Relation(first[0].inputs, (), (), ())
    conditions = tuple(clauses)

    def compute(ctx: Any) -> Point | None:
        mine = union_of(ctx, first)
        if conditions:
            mine = mine.intersect_domain(_restricted(ctx, inputs, conditions))
        return _sample(mine.subtract(union_of(ctx, second)).wrap().flatten())

    answer = within_budget(compute, isl_budget(budget, *first, *second))
    if should_enumerate_after(answer, budget, *first, *second):
        return first_unmatched(first, second, conditions)
    return answer


def uncovered(
    relations: Sequence[Relation], box: Sequence[Variable], budget: int = BUDGET
) -> Point | Unknown | None:
    """Return a point of `box` that is not a result; `None` if every point is."""

    def compute(ctx: Any) -> Point | None:
        points = as_set(ctx, Relation(tuple(box), (), (), ()))
        return _sample(points.subtract(union_of(ctx, relations).range()) if relations else points)

    answer = within_budget(compute, array_budget(budget, *relations))
    if should_enumerate_after(answer, budget, *relations, limit=MAX_AT_ONCE):
        uncovered_point = first_uncovered(relations, box)
        return answer if isinstance(uncovered_point, Unknown) else uncovered_point
    return answer


def never_uncovered(
    cases: Sequence[tuple[Relation, Relation, int]], target: Relation, budget: int = BUDGET
) -> bool | Unknown:
    """Return True if every point of `target` is a result for all values of some inputs.

    Each case is ``(relation, box, count)``.  The last `count` inputs of `relation` are universally
    quantified: an opponent chooses them after the other inputs and the result.  The inputs of `box`
    are the inputs and results of `relation` with all their possible values.  A point is covered if
    some values of the other inputs relate it for every choice of the opponent.
    """

    def compute(ctx: Any) -> bool:
        remaining = as_set(ctx, target)
        for relation, box, count in cases:
            every = as_set(ctx, box)
            related = as_map(ctx, relation).wrap().flatten()
            start = len(relation.inputs) - count
            refuted = every.subtract(related).project_out(isl.dim_type.set, start, count)
            sure = every.project_out(isl.dim_type.set, start, count).subtract(refuted)
            remaining = remaining.subtract(sure.project_out(isl.dim_type.set, 0, start))
        return bool(remaining.is_empty())

    relations = [relation for relation, _, _ in cases]
    return within_budget(compute, pieces_budget(budget, *relations, target))


def union_inverse(
    relations: Sequence[Relation], without: Sequence[Relation] = (), budget: int = BUDGET
) -> tuple[Relation, ...] | Unknown:
    """Return ``results -> inputs`` of the union minus `without`, in disjoint pieces."""

    def compute(ctx: Any) -> tuple[Relation, ...]:
        union = union_of(ctx, relations)
        if without:
            union = union.subtract(union_of(ctx, without))
        return pieces(union.reverse())

    return within_budget(compute, pieces_budget(budget, *relations, *without))


def union_image(
    relations: Sequence[Relation],
    points: Sequence[Relation] | None = None,
    budget: int = BUDGET,
) -> tuple[Relation, ...] | Unknown:
    """Return all results, or those of `points`, the results of relations without inputs."""

    def compute(ctx: Any) -> tuple[Relation, ...]:
        union = union_of(ctx, relations)
        if points is not None:
            union = union.intersect_domain(union_of(ctx, points).range())
        return pieces(isl.Map.from_range(union.range()))

    return within_budget(compute, pieces_budget(budget, *relations, *(points or ())))


def union_count(relations: Sequence[Relation], budget: int = BUDGET) -> int | Unknown:
    """Return the number of distinct results of the union of relations.

    >>> d0 = Variable("d0", 0, 9)
    >>> union_count([Relation((), (d0,), (d0 * 2,), ()), Relation((), (d0,), (d0 * 3,), ())])
    16
    """
    return within_budget(lambda ctx: cardinality(union_of(ctx, relations).range()), budget)


def coalesced(
    relations: Sequence[Relation], budget: int = COALESCING_BUDGET
) -> tuple[Relation, ...] | Unknown:
    """Return the union of relations in disjoint pieces, as few as isl knows."""
    return within_budget(
        lambda ctx: pieces(union_of(ctx, relations)), min(budget, pieces_budget(budget, *relations))
    )


def union_preimage(
    relations: Sequence[Relation], elements: Sequence[Relation], budget: int = BUDGET
) -> tuple[Relation, ...] | Unknown:
    """Return all inputs with a result in `elements`, the results of relations without inputs."""

    def compute(ctx: Any) -> tuple[Relation, ...]:
        targets = union_of(ctx, elements).range()
        return pieces(
            isl.Map.from_range(union_of(ctx, relations).intersect_range(targets).domain())
        )

    return within_budget(compute, pieces_budget(budget, *relations, *elements))


def union_of(ctx: Any, relations: Sequence[Relation]) -> isl.Map:
    """Return the union of relations as an isl map."""
    return reduce(lambda a, b: a.union(b), [as_map(ctx, relation) for relation in relations])


def _restricted(ctx: Any, box: Relation, clauses: Iterable[Clause]) -> isl.Set:
    domain = as_set(ctx, box)
    for clause in clauses:
        choices = [as_set(ctx, Relation(box.inputs, (), (), tuple(choice))) for choice in clause]
        domain = domain.intersect(reduce(lambda a, b: a.union(b), choices))
    return domain


def _sample(points: isl.Set) -> Point | None:
    if points.is_empty():
        return None
    point = points.sample_point()
    count = points.dim(isl.dim_type.set)
    coordinates = [point.get_coordinate_val(isl.dim_type.set, k) for k in range(count)]
    return tuple([to_int(value) for value in coordinates])

"""Queries on unions of relations: points that satisfy disjunctions, images, unreached points.

A union is a sequence of relations with the same numbers of inputs and results.

>>> from simplifier.atoms import Variable
>>> d0 = Variable("d0", 0, 9)
>>> halves = Relation((d0,), (), (d0 // 2,), ())
>>> uncovered_point([halves], (Variable("e0", 0, 5),))
(5,)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final, TypeAlias

import islpy as isl

from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.exact.cardinality import cardinality
from simplifier.exact.context import BUDGET, to_int, within_budget
from simplifier.exact.decode import few_pieces, pieces
from simplifier.exact.elements import first_uncovered
from simplifier.exact.encode import Relation, without_inputs
from simplifier.exact.enumeration import (
    MAX_AT_ONCE,
    array_budget,
    can_enumerate,
    first_point,
    first_unmatched,
    isl_budget,
    pieces_budget,
    should_enumerate_after,
)
from simplifier.exact.reading import PointsOf, as_map, as_set
from simplifier.unknown import Unknown

COALESCING_BUDGET: Final = 400_000
"""isl operations to coalesce relations."""

SMALL_BUDGET: Final = 8_500
"""The same for few points: relations that take more end up in many small pieces."""

Clause: TypeAlias = Sequence[Sequence[Constraint]]
"""A disjunction: the constraints of at least one of the lists hold."""

Point: TypeAlias = tuple[int, ...]


def point(
    variables: Sequence[Variable],
    constraints: Iterable[Constraint],
    clauses: Iterable[Clause] = (),
    budget: int = BUDGET,
    is_first: bool = False,
) -> Point | Unknown | None:
    """Return a point of the box that satisfies all constraints and clauses; `None` without one.

    Args:
        is_first: return the first point in lexicographic order.

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
        lambda ctx: _sample(
            lambda formulas: _restrict_domain(ctx, box, choices, formulas), is_first
        ),
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
    is_first: bool = False,
) -> Point | Unknown | None:
    """Return inputs and results that only the first union relates; `None` without any.

    Args:
        clauses: conditions on the inputs of ``first[0]``.
        is_first: return the first point in lexicographic order.
    """
    inputs = Relation(first[0].inputs, (), (), ())
    conditions = tuple(clauses)

    def compute(ctx: Any) -> Point | None:
        def points(use_formulas: bool) -> isl.Set:
            mine = as_map(ctx, *first, use_formulas=use_formulas)
            if conditions:
                chosen = _restrict_domain(ctx, inputs, conditions, use_formulas)
                mine = mine.intersect_domain(chosen)
            yours = as_map(ctx, *second, use_formulas=use_formulas)
            return mine.subtract(yours).wrap().flatten()

        return _sample(points, is_first)

    answer = within_budget(compute, isl_budget(budget, *first, *second))
    if should_enumerate_after(answer, budget, *first, *second):
        return first_unmatched(first, second, conditions)
    return answer


def uncovered_point(
    relations: Sequence[Relation], box: Sequence[Variable], budget: int = BUDGET
) -> Point | Unknown | None:
    """Return a point of `box` that is not a result; `None` if every point is."""

    def compute(ctx: Any) -> Point | None:
        def points(use_formulas: bool) -> isl.Set:
            every = as_set(ctx, Relation(tuple(box), (), (), ()), use_formulas=use_formulas)
            if not relations:
                return every
            return every.subtract(
                as_set(ctx, *relations, of=PointsOf.RESULTS, use_formulas=use_formulas)
            )

        return _sample(points)

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
            related = as_set(ctx, relation, of=PointsOf.PAIRS)
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
        inverse = as_map(ctx, *relations, reverse=True)
        if without:
            inverse = inverse.subtract(as_map(ctx, *without, reverse=True))
        return pieces(inverse)

    return within_budget(compute, pieces_budget(budget, *relations, *without))


def union_image(
    relations: Sequence[Relation],
    points: Sequence[Relation] | None = None,
    budget: int = BUDGET,
) -> tuple[Relation, ...] | Unknown:
    """Return all results, or those of `points`, the results of relations without inputs."""

    def compute(ctx: Any) -> tuple[Relation, ...]:
        if points is None:
            return pieces(as_map(ctx, *map(without_inputs, relations)))
        chosen = as_set(ctx, *points, of=PointsOf.RESULTS)
        image = as_map(ctx, *relations).intersect_domain(chosen).range()
        return pieces(isl.Map.from_range(image))

    return within_budget(compute, pieces_budget(budget, *relations, *(points or ())))


def union_count(relations: Sequence[Relation], budget: int = BUDGET) -> int | Unknown:
    """Return the number of distinct results of the union of relations.

    >>> d0 = Variable("d0", 0, 9)
    >>> union_count([Relation((), (d0,), (d0 * 2,), ()), Relation((), (d0,), (d0 * 3,), ())])
    16
    """
    return within_budget(
        lambda ctx: cardinality(as_set(ctx, *relations, of=PointsOf.RESULTS)), budget
    )


def coalesce(
    relations: Sequence[Relation], budget: int = COALESCING_BUDGET
) -> tuple[Relation, ...] | Unknown:
    """Return the union of relations in disjoint pieces, as few as isl knows."""
    limit = _coalescing_limit(relations, budget)
    return within_budget(lambda ctx: pieces(as_map(ctx, *relations)), limit)


@lru_cache(maxsize=1 << 9)
def fewer_pieces(
    relations: tuple[Relation, ...], budget: int = COALESCING_BUDGET
) -> tuple[Relation, ...] | Unknown | None:
    """Return ``coalesce(relations)``; None if it has no fewer pieces than `relations`.

    >>> d0 = Variable("d0", 0, 9)
    >>> low, high, last = [Variable("d0", *within) for within in [(0, 3), (4, 9), (6, 9)]]
    >>> len(fewer_pieces(tuple([Relation((d,), (), (d * 2,), ()) for d in (low, high)])))
    1
    >>> print(fewer_pieces(tuple([Relation((d,), (), (d * 2,), ()) for d in (low, last)])))
    None
    """
    most, limit = len(relations) - 1, _coalescing_limit(relations, budget)
    return within_budget(lambda ctx: few_pieces(as_map(ctx, *relations), most), limit)


def _coalescing_limit(relations: Sequence[Relation], budget: int) -> int:
    limit = SMALL_BUDGET if can_enumerate(*relations) else pieces_budget(budget, *relations)
    return min(budget, limit)


def union_preimage(
    relations: Sequence[Relation], elements: Sequence[Relation], budget: int = BUDGET
) -> tuple[Relation, ...] | Unknown:
    """Return all inputs with a result in `elements`, the results of relations without inputs."""

    def compute(ctx: Any) -> tuple[Relation, ...]:
        targets = as_set(ctx, *elements, of=PointsOf.RESULTS)
        preimage = as_map(ctx, *relations).intersect_range(targets).domain()
        return pieces(isl.Map.from_range(preimage))

    return within_budget(compute, pieces_budget(budget, *relations, *elements))


def _restrict_domain(
    ctx: Any, box: Relation, clauses: Iterable[Clause], use_formulas: bool
) -> isl.Set:
    domain = as_set(ctx, box, use_formulas=use_formulas)
    for clause in clauses:
        choices = [Relation(box.inputs, (), (), tuple(choice)) for choice in clause]
        domain = domain.intersect(as_set(ctx, *choices, use_formulas=use_formulas))
    return domain


def _sample(points: Callable[[bool], isl.Set], is_first: bool = False) -> Point | None:
    """Return a point of a set that can be read from matrices or from formulas (`as_set`)."""
    matrices = points(False)
    if matrices.is_empty():
        return None
    sampled = matrices.lexmin() if is_first else points(True)
    point = sampled.sample_point()
    count = sampled.dim(isl.dim_type.set)
    coordinates = [point.get_coordinate_val(isl.dim_type.set, k) for k in range(count)]
    return tuple([to_int(value) for value in coordinates])

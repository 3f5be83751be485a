"""Questions about unions of relations: points that satisfy alternatives, images, what is left out.

A union is a sequence of `Relation` with as many inputs and as many results each.

>>> from simplifier.atoms import Variable
>>> d0 = Variable("d0", 0, 9)
>>> halves = Relation((d0,), (), (d0 // 2,), ())
>>> uncovered([halves], Relation((Variable("e0", 0, 5),), (), (), ()))
(5,)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from typing import Any, TypeAlias

import islpy as isl

from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.exact.context import BUDGET, within_budget
from simplifier.exact.decode import pieces
from simplifier.exact.encode import Relation, as_map, as_set
from simplifier.unknown import Unknown

Clause: TypeAlias = Sequence[Sequence[Constraint]]
"""Alternatives: at least one of these lists of constraints holds."""

Point: TypeAlias = tuple[int, ...]


def point(
    variables: Sequence[Variable],
    constraints: Iterable[Constraint],
    clauses: Iterable[Clause] = (),
    budget: int = BUDGET,
) -> Point | Unknown | None:
    """A point of the box that satisfies all constraints and all clauses; `None` if there is none.

    >>> d0, d1 = Variable("d0", 0, 3), Variable("d1", 0, 3)
    >>> unequal = [[Constraint(d0 - d1, 1, 3)], [Constraint(d0 - d1, -3, -1)]]
    >>> point((d0, d1), [Constraint(d0 + d1, 6, 9)], [unequal]) is None
    True
    """
    box = Relation(tuple(variables), (), (), tuple(constraints))
    return within_budget(lambda ctx: _sample(_restricted(ctx, box, clauses)), budget)


def only_first(
    first: Sequence[Relation],
    second: Sequence[Relation],
    clauses: Iterable[Clause] = (),
    budget: int = BUDGET,
) -> Point | Unknown | None:
    """Inputs and results that the first union relates and the second does not.

    Inputs that break one of the `clauses`, which are about the inputs of ``first[0]``, do not
    count.
    """
    inputs = Relation(first[0].inputs, (), (), ())
    conditions = tuple(clauses)

    def compute(ctx: Any) -> Point | None:
        mine = _union(ctx, first)
        if conditions:
            mine = mine.intersect_domain(_restricted(ctx, inputs, conditions))
        return _sample(mine.subtract(_union(ctx, second)).wrap().flatten())

    return within_budget(compute, budget)


def uncovered(
    relations: Sequence[Relation], target: Relation, budget: int = BUDGET
) -> Point | Unknown | None:
    """A point of `target` that is no result; `None` if every one is."""

    def compute(ctx: Any) -> Point | None:
        wanted = as_set(ctx, target)
        return _sample(wanted.subtract(_union(ctx, relations).range()) if relations else wanted)

    return within_budget(compute, budget)


def never_uncovered(
    cases: Sequence[tuple[Relation, Relation, int]], target: Relation, budget: int = BUDGET
) -> bool | Unknown:
    """Every point of `target` is a result, whatever values an opponent gives some inputs.

    Each case is ``(relation, box, count)``: the last `count` inputs of the relation are the
    opponent's, who chooses them knowing the others and the result; `box` has as inputs all values
    that inputs and results may have.  A point counts as covered if there are other inputs for which
    every choice of the opponent gives it.
    """

    def compute(ctx: Any) -> bool:
        left = as_set(ctx, target)
        for relation, box, count in cases:
            every = as_set(ctx, box)
            held = as_map(ctx, relation).wrap().flatten()
            start = len(relation.inputs) - count
            refuted = every.subtract(held).project_out(isl.dim_type.set, start, count)
            sure = every.project_out(isl.dim_type.set, start, count).subtract(refuted)
            left = left.subtract(sure.project_out(isl.dim_type.set, 0, start))
        return bool(left.is_empty())

    return within_budget(compute, budget)


def union_inverse(
    relations: Sequence[Relation], without: Sequence[Relation] = (), budget: int = BUDGET
) -> tuple[Relation, ...] | Unknown:
    """``results -> inputs`` of the union, in disjoint pieces; but not where `without` relates."""

    def compute(ctx: Any) -> tuple[Relation, ...]:
        found = _union(ctx, relations)
        if without:
            found = found.subtract(_union(ctx, without))
        return pieces(found.reverse())

    return within_budget(compute, budget)


def union_image(
    relations: Sequence[Relation],
    points: Sequence[Relation] | None = None,
    budget: int = BUDGET,
) -> tuple[Relation, ...] | Unknown:
    """All results, or those of some points (the results of relations from nothing), as pieces."""

    def compute(ctx: Any) -> tuple[Relation, ...]:
        found = _union(ctx, relations)
        if points is not None:
            found = found.intersect_domain(_union(ctx, points).range())
        return pieces(isl.Map.from_range(found.range()))

    return within_budget(compute, budget)


def union_preimage(
    relations: Sequence[Relation], elements: Sequence[Relation], budget: int = BUDGET
) -> tuple[Relation, ...] | Unknown:
    """All inputs that have one of `elements` (results of relations from nothing) as a result."""

    def compute(ctx: Any) -> tuple[Relation, ...]:
        wanted = _union(ctx, elements).range()
        return pieces(isl.Map.from_range(_union(ctx, relations).intersect_range(wanted).domain()))

    return within_budget(compute, budget)


def _union(ctx: Any, relations: Sequence[Relation]) -> isl.Map:
    return reduce(lambda a, b: a.union(b), [as_map(ctx, relation) for relation in relations])


def _restricted(ctx: Any, box: Relation, clauses: Iterable[Clause]) -> isl.Set:
    found = as_set(ctx, box)
    for clause in clauses:
        choices = [as_set(ctx, Relation(box.inputs, (), (), tuple(choice))) for choice in clause]
        found = found.intersect(reduce(lambda a, b: a.union(b), choices))
    return found


def _sample(points: isl.Set) -> Point | None:
    if points.is_empty():
        return None
    found = points.sample_point()
    count = points.dim(isl.dim_type.set)
    coordinates = [found.get_coordinate_val(isl.dim_type.set, k) for k in range(count)]
    return tuple([int(value.to_python()) for value in coordinates])

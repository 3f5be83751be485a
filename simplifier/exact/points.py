"""Answers by looking at every point, where there are few.

Where isl cannot see inside an expression, points are looked at one by one (`pairs`).  What
simplifying asks of a small box is read off all its points at once, with arrays (`surveyed`): that
takes less time than isl, and always has an answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from math import prod
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from simplifier.atoms import Atom, Floor, Variable
from simplifier.constraints import Constraint
from simplifier.exact.context import note_question
from simplifier.exact.encode import Relation
from simplifier.exact.surveying import Survey
from simplifier.interval import Interval
from simplifier.linear import Expr, alone

MOST_POINTS: Final = 100_000
"""Points of the box of a relation that are looked at one by one, at most."""

MOST_AT_ONCE: Final = 1 << 16
"""Points of a box that are looked at all at once, at most: in a millisecond or less, as measured.

isl takes some milliseconds for such a question, or has no answer within its budget.
"""

Pair: TypeAlias = tuple[tuple[int, ...], tuple[int, ...]]
Array: TypeAlias = npt.NDArray[Any]


def may_be_enumerated(*relations: Relation) -> bool:
    """isl cannot see all of it, and there are few points in the boxes."""
    sizes = [_points_in((*r.inputs, *r.hidden)) for r in relations]
    return sum(sizes) <= MOST_POINTS and not all(map(_is_affine, relations))


def _points_in(variables: Iterable[Variable]) -> int:
    return prod([max(0, v.upper - v.lower + 1) for v in variables])


def _is_affine(relation: Relation) -> bool:
    exprs = (*relation.results, *[c.expr for c in relation.constraints])
    return all(expr.is_affine for expr in exprs)


def pairs(relation: Relation) -> Iterator[Pair]:
    """Each input with each of its results, some more than once.

    A point where something is divided by 0 is not in the relation.
    """
    variables = (*relation.inputs, *relation.hidden)
    count = len(relation.inputs)
    for values in product(*[range(v.lower, v.upper + 1) for v in variables]):
        at = dict(zip(variables, values, strict=True))
        try:
            if all(c.lower <= c.expr.value(at) <= c.upper for c in relation.constraints):
                yield values[:count], tuple([r.value(at) for r in relation.results])
        except ZeroDivisionError:
            continue


def first_difference(first: Relation, second: Relation) -> tuple[Pair, bool] | None:
    """A pair that one relation has alone, and whether it is the first; `None` if they are equal."""
    ours, theirs = set(pairs(first)), set(pairs(second))
    alone = min(ours ^ theirs, default=None)
    return None if alone is None else (alone, alone in ours)


# ---------------------------------------------------------------- all points at once


def may_be_surveyed(variables: Iterable[Variable], constraints: Iterable[Constraint]) -> bool:
    """`surveyed` and `has_no_points` give the answer, and sooner than isl."""
    few = _points_in(variables) <= MOST_AT_ONCE
    return few and all(constraint.expr.is_affine for constraint in constraints)


def surveyed(
    variables: tuple[Variable, ...],
    constraints: tuple[Constraint, ...],
    exprs: tuple[Expr, ...],
) -> Survey | None:
    """What `simplifier.exact.surveying.survey` says, read off all points.

    >>> d0, d1 = Variable("d0", 0, 9), Variable("d1", 0, 9)
    >>> both = Constraint(d0 + d1, 0, 4), Constraint(d0 * 2 + d1, 0, 9)
    >>> found = surveyed((d0, d1), both, (d0 - d1,))
    >>> found.variables, found.exprs, [str(constraint) for constraint in found.constraints]
    (((0, 4), (0, 4)), ((-4, 4),), ['d0 + d1 in [0, 4]'])
    """
    note_question("survey")
    points = Points(variables, (*exprs, *[c.expr for c in constraints]))
    broken = {c: points.broken(c) for c in constraints}
    count = points.counted(broken.values())
    inside = Subset(count == 0)
    if inside.is_empty:
        return None
    for constraint in sorted(constraints, key=lambda c: c.expr.weight, reverse=True):
        own = broken[constraint]
        if not (own & (count == 1)).any():  # what breaks it breaks another one too
            del broken[constraint]
            count = count - own
    return Survey(
        tuple([inside.bounds(points.values(v.as_expr())) for v in variables]),
        tuple([inside.bounds(points.values(expr)) for expr in exprs]),
        tuple(broken),
    )


def has_no_points(variables: tuple[Variable, ...], constraints: tuple[Constraint, ...]) -> bool:
    """No point of the box of `variables` satisfies all `constraints`."""
    note_question("other")
    points = Points(variables, [c.expr for c in constraints])
    return Subset(points.counted(map(points.broken, constraints)) == 0).is_empty


class Points:
    """All points of a box at once: each variable is an axis, each expression an array.

    An array is one element wide along the axes of variables that are not in it.
    """

    __slots__ = ("_arrays", "_flat")

    def __init__(self, variables: Sequence[Variable], exprs: Iterable[Expr]) -> None:
        """The points of the box of `variables`, to look at `exprs` and at nothing else."""
        self._flat = tuple([0 if v.is_empty else 1 for v in variables])
        self._arrays: dict[Atom, Array] = {}
        number = _number_type((*exprs, *[v.as_expr() for v in variables]))
        for k, v in enumerate(variables):
            along: Array = np.arange(v.lower, v.upper + 1, dtype=number)
            self._arrays[v] = along.reshape([-1 if j == k else 1 for j in range(len(variables))])

    def values(self, expr: Expr) -> Array:
        """What `expr` is at each point."""
        total: Array | int = expr.constant
        terms = [(self._of_atom(atom), c) for atom, c in expr.parts.items()]
        for array, coefficient in sorted(terms, key=lambda term: term[0].size):
            total = total + (array if coefficient == 1 else array * coefficient)
        return np.array(total, copy=None, ndmin=len(self._flat))

    def _of_atom(self, atom: Atom) -> Array:
        found = self._arrays.get(atom)
        if found is None:
            assert isinstance(atom, Floor), f"{alone(atom)} is not affine"
            found = self._arrays[atom] = self.values(atom.numerator) // atom.divisor
        return found

    def broken(self, constraint: Constraint) -> Array:
        """Where `constraint` does not hold."""
        values = self.values(constraint.expr)
        return (values < constraint.lower) | (values > constraint.upper)

    def counted(self, claims: Iterable[Array]) -> Array:
        """How many of `claims` hold at each point."""
        count = np.zeros(self._flat, np.int32)
        for claim in claims:
            count = count + claim
        return count


class Subset:
    """Some of the points of a box."""

    __slots__ = ("_inside", "_shadows")

    def __init__(self, inside: Array) -> None:
        """Those for which `inside` is true."""
        self._inside = inside
        self._shadows: dict[tuple[int, ...], Array | None] = {}

    @property
    def is_empty(self) -> bool:
        """It has no point."""
        return not self._inside.any()

    def bounds(self, values: Array) -> Interval:
        """The least and the greatest of `values` on this set, which is not empty."""
        inside = self._shadow(values.shape)
        if inside is not None:
            shape = np.broadcast_shapes(values.shape, inside.shape)
            values = np.broadcast_to(values, shape)[np.broadcast_to(inside, shape)]
        return int(values.min()), int(values.max())

    def _shadow(self, shape: tuple[int, ...]) -> Array | None:
        """Some point is there along the axes that an array of `shape` has; `None`: everywhere."""
        others = tuple([k for k, size in enumerate(shape) if size == 1])
        if others not in self._shadows:
            shadow = np.asarray(self._inside.any(axis=others, keepdims=True))
            self._shadows[others] = None if shadow.all() else shadow
        return self._shadows[others]


def _number_type(exprs: Iterable[Expr]) -> type:
    """The smallest integers that hold `exprs` and all that is added up on the way to them."""
    most = 0
    seen: set[Atom] = set()
    pending = list(exprs)
    while pending:
        expr = pending.pop()
        most = max(most, abs(expr.constant) + sum([_most(*term) for term in expr.parts.items()]))
        new = [atom for atom in expr.parts if isinstance(atom, Floor) and atom not in seen]
        seen.update(new)
        most = max([most, *[atom.divisor for atom in new]])
        pending += [atom.numerator for atom in new]
    fitting = (each for each in (np.int32, np.int64) if most <= np.iinfo(each).max)
    return next(fitting, object)


def _most(atom: Atom, coefficient: int) -> int:
    """No less than ``|coefficient · atom|``, nor than either of them."""
    return abs(coefficient) * max(1, abs(atom.bounds[0]), abs(atom.bounds[1]))

"""Enumeration of relations, with arrays: where isl has no notation, or exceeds its budget.

Each function evaluates all points of a box at once.  `can_enumerate` limits its work, and
`isl_budget` the operations of the isl query before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import prod
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from simplifier.atoms import Floor, Variable, point_count
from simplifier.constraints import Constraint
from simplifier.exact.encode import Relation
from simplifier.exact.point_arrays import number_type, size_bits
from simplifier.linear import Expr
from simplifier.semiaffine import SemiAffine, divisors_with_zero
from simplifier.shared import atoms_in_order, term_count
from simplifier.unknown import Unknown

MAX_POINTS: Final = 100_000
"""Maximum number of points of the boxes of relations whose pairs are enumerated."""

MAX_AT_ONCE: Final = 1 << 20
"""Maximum number of points of a box in which one point is searched for."""

MAX_WORK: Final = 1 << 27
"""Maximum number of these points, times the terms to evaluate."""

PYTHON_INTEGERS: Final = 64
"""Factor of that work for numbers beyond 64 bits."""

FIRST_BUDGET: Final = 20_000
"""isl operations of a query before enumeration."""

FEW_EXTREMA: Final = 8
"""Number of minima and maxima that cost as much as a division."""

LEAST_BUDGET: Final = 125_000
"""isl operations of a query with many divisions."""

FEWEST: Final = LEAST_BUDGET // 5
"""The same for few points, which can be enumerated, and for large numbers."""

RelatedPair: TypeAlias = tuple[tuple[int, ...], tuple[int, ...]]
Clauses: TypeAlias = Iterable[Sequence[Sequence[Constraint]]]
Arrays: TypeAlias = dict[Variable, npt.NDArray[Any]]


def _variables(relation: Relation) -> tuple[Variable, ...]:
    return *relation.inputs, *relation.hidden


def _exprs(relation: Relation) -> list[Expr]:
    own = [*relation.results, *[c.expr for c in relation.constraints]]
    return [*own, *[v.as_expr() for v in _variables(relation)]]


def can_enumerate(*relations: Relation, limit: int = MAX_POINTS) -> bool:
    """Return True if the boxes have at most `limit` points together, within `MAX_WORK`."""
    points = [point_count(_variables(r)) for r in relations]
    if sum(points) > limit:
        return False
    exprs = [_exprs(relation) for relation in relations]
    work = sum([n * term_count(own) for n, own in zip(points, exprs, strict=True)])
    large = any(number_type(own) is object for own in exprs)
    return work * (PYTHON_INTEGERS if large else 1) <= MAX_WORK


def needs_enumeration(*relations: Relation) -> bool:
    """Return True if isl cannot represent the relations, and they are within the budget."""
    return not all(relation.is_affine for relation in relations) and can_enumerate(*relations)


def should_enumerate_after(
    answer: object, budget: int, *relations: Relation, limit: int = MAX_POINTS
) -> bool:
    """Return True if isl's `answer` is unknown and enumeration is within its own budget.

    A query with a small `budget`, such as those of `simplify`, is not worth an enumeration.
    """
    if not isinstance(answer, Unknown) or budget <= FIRST_BUDGET:
        return False
    return can_enumerate(*relations, limit=limit)


def isl_budget(budget: int, *relations: Relation, limit: int = MAX_POINTS) -> int:
    """Return the isl operations to spend on a query about `relations`, at most `budget`.

    Relations that can be enumerated get `FIRST_BUDGET`.
    """
    if not can_enumerate(*relations, limit=limit):
        return pieces_budget(budget, *relations)
    return min(budget, FIRST_BUDGET)


def array_budget(budget: int, *relations: Relation) -> int:
    """Return `isl_budget` for a query whose answer can be enumerated in an array.

    Up to `MAX_AT_ONCE` points, the budget is at most that of a query with many divisions.
    """
    limit = isl_budget(budget, *relations)
    if not can_enumerate(*relations, limit=MAX_AT_ONCE):
        return limit
    words = _words([e for r in relations for e in _exprs(r)])
    return min(limit, max(FIRST_BUDGET, LEAST_BUDGET // words**2))


def pieces_budget(budget: int, *relations: Relation, may_enumerate: bool = True) -> int:
    """Return the isl operations for a query whose answer is not enumerated, at most `budget`.

    An operation takes longer with more divisions, with many minima and maxima, and with larger
    numbers.

    Args:
        may_enumerate: a small domain is enumerated if the operations do not suffice.
    """
    exprs = [expr for relation in relations for expr in _exprs(relation)]
    atoms = atoms_in_order(exprs)
    divisions = sum([isinstance(atom, Floor) for atom in atoms])
    extrema = sum([isinstance(atom, SemiAffine) for atom in atoms])
    if may_enumerate and can_enumerate(*relations):
        return min(budget, FEWEST)
    words = _words(exprs)
    least = LEAST_BUDGET // words**2
    share = 1 + divisions + extrema // FEW_EXTREMA
    return min(budget, max(FEWEST, least, budget // (share**2 * words**3)))


def counting_budget(budget: int, relation: Relation) -> int:
    """Return `array_budget` for a count, whose operations take longer beyond 64 bits."""
    return array_budget(budget, relation) // max(1, _words(_exprs(relation)) - 2)


def _words(exprs: Iterable[Expr]) -> int:
    """Number of 32-bit words of the largest number in the evaluation of `exprs`."""
    return 1 + max(map(size_bits, exprs), default=0) // 32


# ---------------------------------------------------------------- answers


def pairs(relation: Relation) -> Iterator[RelatedPair]:
    """Enumerate pairs of inputs and results in lexicographic order of points, with repetitions.

    A point with a division by 0 is not in the relation.

    >>> d0, s0 = Variable("d0", 0, 1), Variable("s0", 0, 1)
    >>> list(pairs(Relation((d0,), (s0,), (d0 // s0,), ())))
    [((0,), (0,)), ((1,), (1,))]
    """
    variables = _variables(relation)
    at, count = _box(variables, _exprs(relation))
    at, count = _points_in_clauses(at, count, [[relation.constraints]])
    if not count:
        return
    columns = [_column(at[v], count) for v in relation.inputs]
    values = [_column(result.value(at), count) for result in relation.results]
    inputs = zip(*columns, strict=True) if columns else iter([()] * count)
    results = zip(*values, strict=True) if values else iter([()] * count)
    yield from zip(inputs, results, strict=True)


def first_difference(first: Relation, second: Relation) -> tuple[RelatedPair, bool] | None:
    """Return a pair of only one relation, and True if it is the first; `None` if equal."""
    ours, theirs = set(pairs(first)), set(pairs(second))
    unmatched = min(ours ^ theirs, default=None)
    return None if unmatched is None else (unmatched, unmatched in ours)


def first_point(
    variables: Sequence[Variable], constraints: Sequence[Constraint], clauses: Clauses
) -> tuple[int, ...] | None:
    """Return the first point of a box that satisfies all constraints and clauses, if any.

    >>> d0, d1 = Variable("d0", 0, 3), Variable("d1", 0, 3)
    >>> first_point((d0, d1), [Constraint(d0 + d1, 4, 6)], [[[Constraint(d0 - d1, 1, 3)]]])
    (3, 1)
    """
    every = [[tuple(constraints)], *clauses]
    exprs = [c.expr for clause in every for choice in clause for c in choice]
    at, count = _box(variables, [*exprs, *[v.as_expr() for v in variables]])
    at, count = _points_in_clauses(at, count, every)
    return tuple([int(at[v][0]) for v in variables]) if count else None


def first_unmatched(
    first: Sequence[Relation], second: Sequence[Relation], clauses: Clauses
) -> tuple[int, ...] | None:
    """Return the least inputs and results of the first union only, with inputs in `clauses`."""
    theirs = {pair for relation in second for pair in pairs(relation)}
    mine = {pair for relation in first for pair in pairs(relation)} - theirs
    inputs = first[0].inputs
    conditions = tuple(clauses)
    for point, results in sorted(mine):
        at = dict(zip(inputs, point, strict=True))
        if all(any(_holds(choice, at) for choice in clause) for clause in conditions):
            return *point, *results
    return None


# ---------------------------------------------------------------- arrays


def _box(variables: Sequence[Variable], exprs: Sequence[Expr]) -> tuple[Arrays, int]:
    """The points of the box at which no divisor of `exprs` is 0, and their number."""
    sizes = [v.size for v in variables]
    count = prod(sizes)
    number = object if number_type(exprs) is object else np.int64
    places = np.unravel_index(np.arange(count), sizes) if sizes and count else ()
    at: Arrays = {
        v: place.astype(number) + v.lower for v, place in zip(variables, places, strict=False)
    }
    for divisor in divisors_with_zero(exprs) if count else ():
        at, count = _restrict_points(at, count, divisor.value(at) != 0)
    return at, count


def _points_in_clauses(at: Arrays, count: int, clauses: Clauses) -> tuple[Arrays, int]:
    """The points that satisfy all `clauses`."""
    for clause in clauses:
        if not count:
            break
        inside = np.zeros(count, bool)
        for choice in clause:
            inside |= np.broadcast_to(_holds(choice, at), (count,))
        at, count = _restrict_points(at, count, inside)
    return at, count


def _holds(constraints: Sequence[Constraint], at: Mapping[Variable, Any]) -> Any:
    """True where all constraints hold."""
    holds: Any = True
    for constraint in constraints:
        value = constraint.expr.value(at)
        holds = holds & (value >= constraint.lower) & (value <= constraint.upper)
    return holds


def _restrict_points(at: Arrays, count: int, inside: Any) -> tuple[Arrays, int]:
    mask = np.broadcast_to(np.asarray(inside, bool), (count,))
    if mask.all():
        return at, count
    return {v: values[mask] for v, values in at.items()}, int(mask.sum())


def _column(values: Any, count: int) -> list[int]:
    column: list[int] = np.broadcast_to(values, (count,)).tolist()
    return column

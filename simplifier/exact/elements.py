"""The distinct results of a relation as one array, by enumeration of a small box."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Final

import numpy as np

from simplifier.atoms import Variable, point_count
from simplifier.exact.encode import Relation
from simplifier.exact.enumeration import can_enumerate, pairs
from simplifier.exact.point_arrays import Array, box_arrays, number_type
from simplifier.shared import is_deep
from simplifier.unknown import Unknown

MAX_ENUMERATED: Final = 1 << 22
"""Maximum number of points of a box to evaluate at once."""


def distinct_results(relation: Relation) -> Array | None:
    """Return the distinct results in lexicographic order, one row each; `None` beyond the budget.

    >>> from simplifier.atoms import Variable, point_count
    >>> s0, s1 = Variable("s0", 0, 3), Variable("s1", 0, 1)
    >>> distinct_results(Relation((), (s0, s1), (s0 // 2, s0 % 2 * 5), ())).tolist()
    [[0, 0], [0, 5], [1, 0], [1, 5]]
    """
    variables = (*relation.inputs, *relation.hidden)
    rank = len(relation.results)
    points = point_count(variables)
    if not points:
        return np.zeros((0, rank), np.int64)
    exprs = (*relation.results, *[c.expr for c in relation.constraints])
    if not all(expr.is_affine and not is_deep(expr) for expr in exprs):
        if not can_enumerate(relation):
            return None
        rows = sorted({results for _, results in pairs(relation)})
        return np.array(rows, dtype=_row_type(rows)).reshape(len(rows), rank)
    if points > MAX_ENUMERATED:
        return None
    number = number_type((*exprs, *[v.as_expr() for v in variables]))
    arrays = box_arrays(variables, object if number is object else np.int64)
    inside = np.ones(arrays.shape, bool)
    for constraint in relation.constraints:
        inside &= ~arrays.violations([constraint])[0]
    columns = [np.broadcast_to(arrays.values(r), arrays.shape)[inside] for r in relation.results]
    return distinct_rows(columns, int(inside.sum()))


def first_uncovered(
    relations: Sequence[Relation], box: Sequence[Variable]
) -> tuple[int, ...] | Unknown | None:
    """Return the first point of a box that is not a result of the relations; `None` without any.

    The box may be much larger than the relations.

    >>> from simplifier.atoms import Variable, point_count
    >>> d0, e0, e1 = Variable("d0", 0, 9), Variable("e0", 0, 2**80), Variable("e1", 1, 3)
    >>> first_uncovered([Relation((d0,), (), (d0 // 3, d0 % 3 + 1), ())], (e0, e1))
    (3, 2)
    """
    parts: list[Array] = [np.zeros((0, len(box)), np.int64)]
    for relation in relations:
        rows = distinct_results(relation)
        if rows is None:
            return Unknown(f"beyond the budget of {MAX_ENUMERATED} points to enumerate")
        inside = np.ones(len(rows), bool)
        for k, v in enumerate(box):
            inside &= (rows[:, k] >= v.lower) & (rows[:, k] <= v.upper)
        parts.append(rows[inside])
    together = np.concatenate(parts)
    covered = distinct_rows(list(together.T), len(together))
    # The covered points are in lexicographic order, like the points of the box.
    first: list[list[int]] = [[]] * len(box)  # of as many points of the box, and one more
    rest = np.arange(min(len(covered) + 1, point_count(box)))
    for k, v in reversed(list(enumerate(box))):
        size = v.size
        is_longer = size > len(covered)
        first[k] = ((rest if is_longer else rest % size) + v.lower).tolist()
        rest = rest * 0 if is_longer else rest // size
    covered_points = map(tuple, covered.tolist())
    points = zip(*first, strict=True) if box else iter([()] * len(rest))
    return next((p for p in points if p != next(covered_points, None)), None)


def distinct_rows(columns: Sequence[Array], count: int) -> Array:
    """Return the distinct rows of `count` rows in lexicographic order.

    >>> distinct_rows([np.array([1, 0, 1]), np.array([2, 3, 2])], 3).tolist()
    [[0, 3], [1, 2]]
    """
    if not columns:
        return np.zeros((min(count, 1), 0), np.int64)
    if not count:
        return np.zeros((0, len(columns)), np.int64)
    if any(column.dtype == object for column in columns):
        rows = sorted(set(zip(*[column.tolist() for column in columns], strict=True)))
        return np.array(rows, dtype=_row_type(rows))
    lows = [int(column.min()) for column in columns]
    sizes = [int(c.max()) - low + 1 for c, low in zip(columns, lows, strict=True)]
    if prod(sizes) >= 1 << 62:
        ordered = np.stack(columns, axis=1)[np.lexsort(columns[::-1])]
        is_first = np.ones(count, bool)
        is_first[1:] = np.any(ordered[1:] != ordered[:-1], axis=1)
        return ordered[is_first]
    key = np.zeros(count, np.int64)
    for column, low, size in zip(columns, lows, sizes, strict=True):
        key = key * size + (column - low)
    first = np.unique(key, return_index=True)[1]
    return np.stack([column[first] for column in columns], axis=1)


def _row_type(rows: Sequence[Sequence[int]]) -> type:
    largest = max((abs(value) for row in rows for value in row), default=0)
    return object if largest > np.iinfo(np.int64).max else np.int64

"""The distinct results of a relation as one array, by enumeration of a small box."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Final

import numpy as np

from simplifier.exact.encode import Relation
from simplifier.exact.enumeration import can_enumerate, pairs
from simplifier.exact.points import Array, box_arrays, number_type

MAX_ENUMERATED: Final = 1 << 22
"""Maximum number of points of a box to evaluate at once."""


def distinct_results(relation: Relation) -> Array | None:
    """Return the distinct results in lexicographic order, one row each; `None` beyond the budget.

    >>> from simplifier.atoms import Variable
    >>> s0, s1 = Variable("s0", 0, 3), Variable("s1", 0, 1)
    >>> distinct_results(Relation((), (s0, s1), (s0 // 2, s0 % 2 * 5), ())).tolist()
    [[0, 0], [0, 5], [1, 0], [1, 5]]
    """
    variables = (*relation.inputs, *relation.hidden)
    rank = len(relation.results)
    points = prod([max(0, v.upper - v.lower + 1) for v in variables])
    if not points:
        return np.zeros((0, rank), np.int64)
    exprs = (*relation.results, *[c.expr for c in relation.constraints])
    if not all(expr.is_affine for expr in exprs):
        if not can_enumerate(relation):
            return None
        rows = sorted({results for _, results in pairs(relation)})
        return np.array(rows, dtype=_row_type(rows)).reshape(len(rows), rank)
    if points > MAX_ENUMERATED:
        return None
    number = number_type((*exprs, *[v.as_expr() for v in variables]))
    arrays = box_arrays(variables, object if number is object else np.int64)
    shape = tuple([v.upper - v.lower + 1 for v in variables])
    inside = np.ones(shape, bool)
    for constraint in relation.constraints:
        inside &= ~arrays.broken(constraint)
    columns = [np.broadcast_to(arrays.values(r), shape)[inside] for r in relation.results]
    return distinct_rows(columns, int(inside.sum()))


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
        return np.unique(np.stack(columns, axis=1), axis=0)
    key = np.zeros(count, np.int64)
    for column, low, size in zip(columns, lows, sizes, strict=True):
        key = key * size + (column - low)
    first = np.unique(key, return_index=True)[1]
    return np.stack([column[first] for column in columns], axis=1)


def _row_type(rows: Sequence[Sequence[int]]) -> type:
    largest = max((abs(value) for row in rows for value in row), default=0)
    return object if largest > np.iinfo(np.int64).max else np.int64

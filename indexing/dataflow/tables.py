"""Tables of integers as disjoint maps from index to value.

A table is described by formulas where it has a pattern: affine, interleaved, repeated or permuted
by blocks; else by its runs, rectangles and single elements.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from indexing.maps.indexing_map import IndexingMap, dims
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.linear import Expr, constant

MAX_PIECES: Final = 64
"""Limit on the maps that describe a table; a table that needs more is not described."""

Array: TypeAlias = "np.ndarray[Any, Any]"
Piece: TypeAlias = tuple[Expr, tuple[Constraint, ...]]
"""A value, and the constraints under which a table has it."""


def table_maps(values: Array) -> tuple[IndexingMap, ...] | None:
    """Return disjoint maps from the index to the element of a table of integers.

    None if more than `MAX_PIECES` are needed.

    >>> for table in [0, 2, 4, 1, 3, 5], [7, 7, 5, 6]:
    ...     print(*[piece.simplify() for piece in table_maps(np.asarray(table))], sep="; ")
    (d0) -> (d0 * 2 - (d0 floordiv 3) * 5), domain: d0 in [0, 5]
    (d0) -> (7), domain: d0 in [0, 1]; (d0) -> (d0 + 3), domain: d0 in [2, 3]
    """
    variables = dims(values.shape)
    if not values.size:
        return None
    pieces: list[Piece] = []
    for piece in _describe(values, variables):
        if len(pieces) == MAX_PIECES:
            return None
        pieces.append(piece)
    return tuple([IndexingMap.of(variables, [value], constraints=where) for value, where in pieces])


def _describe(values: Array, variables: Sequence[Variable]) -> Iterator[Piece]:
    """Yield the disjoint pieces of a table."""
    if not values.ndim:
        yield constant(int(values)), ()
        return
    formula = _separable_formula(values, variables)
    if formula is not None:
        yield formula, ()
    elif values.ndim == 1:
        for run in _runs(values):
            yield run.value(variables[0]), (run.inside(variables[0]),)
    elif values.ndim == 2:
        yield from _bands(values, variables)
    else:
        yield from _slabs(values, variables)


def _slabs(values: Array, variables: Sequence[Variable]) -> Iterator[Piece]:
    """Yield the pieces of a table from those of its distinct runs of equal slices."""
    first, *rest = variables
    start = 0
    for end in range(1, len(values) + 1):
        if end == len(values) or not np.array_equal(values[start], values[end]):
            within = Constraint(first.as_expr(), start, end - 1)
            for value, where in _describe(values[start], rest):
                yield value, (within, *where)
            start = end


# ---------------------------------------------------------------- formulas of whole tables


def _separable_formula(values: Array, variables: Sequence[Variable]) -> Expr | None:
    """Return a sum of formulas of one dimension each with the values of a table, or None."""
    base = values[(0,) * values.ndim]
    total, formula = np.full(values.shape, base), constant(int(base))
    for k, variable in enumerate(variables):
        line = values[tuple([slice(None) if n == k else 0 for n in range(values.ndim)])] - base
        total = total + line.reshape([-1 if n == k else 1 for n in range(values.ndim)])
        part = _line_formula(line, variable.as_expr())
        if part is None:
            return None
        formula = formula + part
    return formula if np.array_equal(total, values) else None


def _line_formula(line: Array, index: Expr) -> Expr | None:
    """Return ``f(index // p) + step * (index % p)`` with the values of a line, or None.

    `f` has the same form.
    """
    if len(line) == 1 or (line == line[0]).all():
        return constant(int(line[0]))
    steps = np.diff(line)
    breaks = np.flatnonzero(steps != steps[0])
    if not len(breaks):
        return index * int(steps[0]) + int(line[0])
    period = int(breaks[0]) + 1
    if period == 1:
        return None
    starts = line[::period]
    within = (np.arange(len(line)) % period).astype(line.dtype) * steps[0]  # may exceed 64 bits
    if not np.array_equal(np.repeat(starts, period)[: len(line)] + within, line):
        return None
    outer = _line_formula(starts, index // period)
    return None if outer is None else outer + (index % period) * int(steps[0])


# ---------------------------------------------------------------- runs


class _Run(NamedTuple):
    """Elements ``base + slope * (index - first)`` for an index in ``[first, last]``."""

    first: int
    last: int
    base: int
    slope: int

    def value(self, variable: Variable) -> Expr:
        """The value at `variable`."""
        return variable.as_expr() * self.slope + (self.base - self.slope * self.first)

    def inside(self, variable: Variable) -> Constraint:
        """The constraint that `variable` is in the run."""
        return Constraint(variable.as_expr(), self.first, self.last)


def _runs(line: Array) -> list[_Run]:
    """Return the runs of a line, constant or affine, whichever are fewer."""
    constants = _constant_runs(line)
    affine = _affine_runs(line) if len(np.unique(line)) > 2 else []
    return affine if affine and len(affine) < len(constants) else constants


def _constant_runs(line: Array) -> list[_Run]:
    ends = [*np.flatnonzero(np.diff(line)).tolist(), len(line) - 1]
    starts = [0, *[end + 1 for end in ends[:-1]]]
    return [
        _Run(first, last, int(line[first]), 0) for first, last in zip(starts, ends, strict=True)
    ]


def _affine_runs(line: Array) -> list[_Run]:
    runs: list[_Run] = []
    steps = np.diff(line).tolist()
    first = 0
    while first < len(line):
        last = first
        while last < len(steps) and steps[last] == steps[first]:
            last += 1
        slope = steps[first] if last > first else 0
        runs.append(_Run(first, last, int(line[first]), slope))
        first = last + 1
    return runs


# ---------------------------------------------------------------- runs of rows


def _bands(values: Array, variables: Sequence[Variable]) -> Iterator[Piece]:
    """Yield the pieces of a matrix: runs whose ends and values are affine over several rows."""
    rows = [_runs(row) for row in values]
    start = 0
    while start < len(rows):
        end = _band_end(rows, start)
        yield from _band(rows, start, end, variables)
        start = end


def _band_end(rows: Sequence[list[_Run]], start: int) -> int:
    """Return the end of the longest band of rows that starts at `start`."""
    end = start + 1
    if end == len(rows) or not _is_alike(rows[start], rows[end]):
        return end
    step = _differences(rows[start], rows[end])
    while end + 1 < len(rows) and _is_alike(rows[start], rows[end + 1]):
        if _differences(rows[end], rows[end + 1]) != step:
            break
        end += 1
    return end + 1


def _is_alike(one: list[_Run], other: list[_Run]) -> bool:
    return [run.slope for run in one] == [run.slope for run in other]


def _differences(one: list[_Run], other: list[_Run]) -> list[tuple[int, int, int]]:
    """Return how the ends and the base of each run change from one row to the next."""
    return [
        (b.first - a.first, b.last - a.last, b.base - a.base)
        for a, b in zip(one, other, strict=True)
    ]


def _band(
    rows: Sequence[list[_Run]], start: int, end: int, variables: Sequence[Variable]
) -> Iterator[Piece]:
    """Yield a piece for each run of the rows in ``[start, end)``."""
    row, column = (variable.as_expr() for variable in variables)
    count = row - start
    runs, after = rows[start], rows[min(start + 1, end - 1)]
    for run, (first, last, base) in zip(runs, _differences(runs, after), strict=True):
        at = column - count * first - run.first
        yield (
            count * base + run.base + at * run.slope,
            (
                Constraint(row, start, end - 1),
                Constraint(at, 0, max(variables[1].upper, 0)),
                Constraint(count * last + run.last - column, 0, max(variables[1].upper, 0)),
            ),
        )

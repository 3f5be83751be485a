"""Cells of a box of points: which of them have points in a union of relations, and which lack some.

A cell is one value of some of the variables; its points are the values of the others.

>>> from simplifier.atoms import Variable
>>> from simplifier.constraints import Constraint
>>> t, e = Variable("t", 0, 2), Variable("e", 0, 3)
>>> below = Relation((t, e), (), (), (Constraint(t * 4 + e, 0, 5),))
>>> points = CellPoints((t,), (), (e,), (), (), (below,), (below,))
>>> sets = cell_sets(points)
>>> [(v.name, v.lower, v.upper) for (piece,) in sets[:2] for v in piece.inputs]
[('t', 0, 1), ('t', 1, 2)]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import islpy as isl

from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.exact.context import BUDGET, within_budget
from simplifier.exact.decode import pieces
from simplifier.exact.encode import Relation
from simplifier.exact.enumeration import pieces_budget
from simplifier.exact.reading import as_set
from simplifier.unknown import Unknown

Pieces: TypeAlias = tuple[Relation, ...]
"""A set, in disjoint convex pieces: the inputs of each satisfy its constraints."""


@dataclass(frozen=True)
class CellPoints:
    """The points of all cells, and those that are related.

    Attributes:
        cells: the variables that number the cells.
        given: unknown values, of which each cell has one.
        inner: the variables that number the points of a cell.
        chosen: unknown values, of which each point has one.
        constraints: conditions on all points.
        possible: the related points, or more; the inputs are the four groups of variables in order.
        certain: the related points, or fewer.
    """

    cells: tuple[Variable, ...]
    given: tuple[Variable, ...]
    inner: tuple[Variable, ...]
    chosen: tuple[Variable, ...]
    constraints: tuple[Constraint, ...]
    possible: Pieces
    certain: Pieces

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The inputs of the relations."""
        return *self.cells, *self.given, *self.inner, *self.chosen

    @property
    def box(self) -> Relation:
        """All points."""
        return Relation(self.variables, (), (), self.constraints)

    @property
    def budget(self) -> int:
        """isl operations of a query."""
        every = (self.box, *self.possible, *self.certain)
        return pieces_budget(BUDGET, *every, may_enumerate=False)


class CellSets(NamedTuple):
    """Cells in four sets.

    Attributes:
        touched: some point is related, for some chosen values.
        lacking: some point is not related, for some chosen values.
        surely_touched, surely_lacking: the same, for a point that is so for all chosen values.
    """

    touched: Pieces
    lacking: Pieces
    surely_touched: Pieces
    surely_lacking: Pieces


class CellRange(NamedTuple):
    """The least and the greatest touched cell along the last cell variable.

    Attributes:
        first, last: relations whose inputs are the other cell variables and the given values.
        some: the inputs for which a cell is touched.
        none: the inputs for which no cell is touched.
    """

    first: Pieces
    last: Pieces
    some: Pieces
    none: Pieces


def cell_sets(points: CellPoints) -> CellSets | Unknown:
    """Return which cells have related points, and which lack some, for each of the given values."""

    def compute(ctx: Any) -> CellSets:
        names = [v.name for v in (*points.cells, *points.given)]
        return CellSets(*[_pieces(each, names) for each in _sets(ctx, points)])

    return within_budget(compute, points.budget)


def cell_sets_of_all(points: CellPoints) -> CellSets | Unknown:
    """Return the same for some given values; those that are surely so are so for all of them."""

    def compute(ctx: Any) -> CellSets:
        touched, lacking, *surely = _sets(ctx, points)
        names = [v.name for v in points.cells]
        if not points.given:
            return CellSets(*[_pieces(each, names) for each in (touched, lacking, *surely)])
        every = _cells(as_set(ctx, points.box), points)
        all_cells = _without_given(every, points)
        some = [_without_given(each, points) for each in (touched, lacking)]
        never = [_without_given(every.subtract(each), points) for each in surely]
        sets = [*some, *[all_cells.subtract(each) for each in never]]
        return CellSets(*[_pieces(each, names) for each in sets])

    return within_budget(compute, points.budget)


def cell_range(points: CellPoints) -> CellRange | Unknown:
    """Return the first and the last touched cell along the last cell variable."""
    own = len(points.cells) - 1
    names = [v.name for v in (*points.cells[:own], *points.given)]

    def compute(ctx: Any) -> CellRange:
        along = isl.Map.from_domain(_sets(ctx, points)[0])
        along = along.move_dims(isl.dim_type.out, 0, isl.dim_type.in_, own, 1)
        every = _cells(as_set(ctx, points.box), points).project_out(isl.dim_type.set, own, 1)
        first, last = pieces(along.lexmin(), names), pieces(along.lexmax(), names)
        some = along.domain()
        none = every.subtract(some)
        return CellRange(first, last, _pieces(some, names), _pieces(none, names))

    return within_budget(compute, points.budget)


def _sets(ctx: Any, points: CellPoints) -> tuple[isl.Set, ...]:
    every = as_set(ctx, points.box)
    possible, certain = [
        as_set(ctx, *own).intersect(every) if own else every.subtract(every)
        for own in (points.possible, points.certain)
    ]
    unrelated = every.subtract(certain)
    if not points.chosen:
        surely = [certain, every.subtract(possible)]
    else:
        all_points = _without_chosen(every, points)
        surely = [all_points.subtract(_without_chosen(b, points)) for b in (unrelated, possible)]
    return tuple([_cells(each, points) for each in (possible, unrelated, *surely)])


def _without_chosen(related: isl.Set, points: CellPoints) -> isl.Set:
    count = len(points.chosen)
    return related.project_out(isl.dim_type.set, len(points.variables) - count, count)


def _cells(related: isl.Set, points: CellPoints) -> isl.Set:
    """The cells, with the given values, of points with or without chosen values."""
    kept = len(points.cells) + len(points.given)
    return related.project_out(isl.dim_type.set, kept, related.dim(isl.dim_type.set) - kept)


def _without_given(cells: isl.Set, points: CellPoints) -> isl.Set:
    return cells.project_out(isl.dim_type.set, len(points.cells), len(points.given))


def _pieces(cells: isl.Set, names: Sequence[str]) -> Pieces:
    return pieces(isl.Map.from_domain(cells), names)

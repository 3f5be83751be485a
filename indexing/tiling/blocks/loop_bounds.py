"""The first and the last block that a tile reads, as maps of the tile index."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from indexing.maps.indexing_map import Grade, IndexingMap
from indexing.tiling.blocks.block_relations import BlockRelations
from indexing.tiling.sets.tile_grid import TileGrid
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.exact import is_empty
from simplifier.exact.cells import cell_range
from simplifier.exact.encode import Relation
from simplifier.linear import Expr
from simplifier.semiaffine import maximum, minimum
from simplifier.substitute import Substitution
from simplifier.unknown import Unknown


def loop_bounds(relations: BlockRelations, grid: TileGrid) -> tuple[IndexingMap, ...] | Unknown:
    """Return maps from the tile index to the first and the last block that a tile reads.

    Usually there is one.  Of the grade "exact", tiles that read nothing are outside of its domain,
    or the last block is before the first one.  Of the grade "may", all blocks that are read lie
    between the two.  Without a minimum or maximum that holds for all tiles, there are several maps
    with disjoint domains.
    """
    ranges = cell_range(relations.points)
    if isinstance(ranges, Unknown):
        return ranges
    inputs = (*relations.points.cells[:-1], *relations.points.given)
    first, last, some, none = [[_rename_inputs(p, inputs) for p in own] for own in ranges]
    low, high = _one_expr(first), _one_expr(last)
    if low is not None and high is not None:
        if _is_void(none, high - low):
            return (_map(relations, grid, (low, high), ()),)
        if len(some) == 1:
            return (_map(relations, grid, (low, high), some[0].constraints).simplify(),)
        return (_map(relations, grid, (low, high), ()).with_grade("may"),)
    return tuple(_pieces(relations, grid, first, last))


def _rename_inputs(piece: Relation, inputs: tuple[Variable, ...]) -> Relation:
    """The piece over the variables `inputs`, whose bounds are wider."""
    swap = Substitution(dict(zip(piece.inputs, [v.as_expr() for v in inputs], strict=True)))
    bounds = [
        Constraint(own.as_expr(), v.lower, v.upper)
        for own, v in zip(inputs, piece.inputs, strict=True)
        if (own.lower, own.upper) != (v.lower, v.upper)
    ]
    constraints = [Constraint(swap(c.expr), c.lower, c.upper) for c in piece.constraints]
    return Relation(inputs, (), tuple(map(swap, piece.results)), (*bounds, *constraints))


def _one_expr(pieces: Sequence[Relation]) -> Expr | None:
    """The results of all pieces as one expression: their maximum, or their minimum."""
    exprs = list(dict.fromkeys([piece.results[0] for piece in pieces]))
    if not exprs:
        return None
    for sign, extremum in ((1, maximum), (-1, minimum)):
        if all(_is_least(piece, exprs, sign) for piece in pieces):
            return extremum(*exprs)
    return None


def _is_least(piece: Relation, exprs: Sequence[Expr], sign: int) -> bool:
    """True if no expression exceeds the result of a piece; with sign -1, if it exceeds none."""
    own = piece.results[0]
    return all(_never_positive(piece, (expr - own) * sign) for expr in exprs if expr != own)


def _is_void(none: Sequence[Relation], length: Expr) -> bool:
    """True if the last block is before the first one for all tiles that read nothing."""
    return all(_never_positive(piece, length + 1) for piece in none)


def _never_positive(piece: Relation, expr: Expr) -> bool:
    high = expr.bounds[1]
    if high <= 0:
        return True
    return is_empty(piece.inputs, (*piece.constraints, Constraint(expr, 1, high))) is True


def _pieces(
    relations: BlockRelations, grid: TileGrid, first: Sequence[Relation], last: Sequence[Relation]
) -> Iterator[IndexingMap]:
    for low in first:
        for high in last:
            constraints = (*low.constraints, *high.constraints)
            if is_empty(low.inputs, constraints) is not True:
                ends = low.results[0], high.results[0]
                yield _map(relations, grid, ends, constraints).simplify()


def _map(
    relations: BlockRelations,
    grid: TileGrid,
    ends: tuple[Expr, Expr],
    constraints: tuple[Constraint, ...],
) -> IndexingMap:
    points = relations.points
    is_exact = points.possible == points.certain and not points.chosen
    grade: Grade = "exact" if is_exact else "may"
    return IndexingMap(grid.tile_index, (), relations.runtime, ends, constraints, grade)

"""Pieces of the values of an array: simplified, joined, and wrapped to the range of a type."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Protocol, TypeAlias

from hlo.shapes.shape import Shape
from indexing.maps.arrays import ArrayRef
from indexing.maps.indexing_map import IndexingMap, dims
from indexing.maps.runtime_variable import RuntimeVariable
from indexing.ops.integer_rules import MAX_CASES
from simplifier.bounds import KnownBounds
from simplifier.constraints import Constraint, sum_bounds
from simplifier.interval import Interval, contains, intersect

ValueMaps: TypeAlias = tuple[IndexingMap, ...]
"""Disjoint maps from the index of each element to its value; together they cover the array."""


class Surroundings(Protocol):
    """The known values of the parameters of a computation where it is called."""

    def value(self, parameter: ArrayRef) -> ValueMaps | None:
        """Return the elements of an integer array of a parameter as formulas, or None.

        Their runtime variables are symbols: equal names have equal values.
        """

    def symbol(self, name: str) -> RuntimeVariable:
        """Return a symbol of the formulas, with its bounds."""


def simplify_piece(piece: IndexingMap, around: Surroundings | None) -> IndexingMap:
    """Return a simplified piece, with the same symbols in all pieces.

    Simplification tightens the bounds of symbols; here they become constraints.
    """
    piece = piece.simplify()
    if around is None or not piece.runtime:
        return piece
    symbols = {rt.variable: around.symbol(rt.name) for rt in piece.runtime}
    results, constraints = piece.substituted({v: rt.expr for v, rt in symbols.items()})
    within = [Constraint(rt.expr, *v.bounds) for v, rt in symbols.items()]
    return IndexingMap.of(
        piece.dims,
        results,
        runtime=symbols.values(),
        constraints=[c for c in (*constraints, *within) if not c.is_true],
    )


def wrap_value(
    piece: IndexingMap, limits: Interval, around: Surroundings | None
) -> Iterator[IndexingMap]:
    """Yield the value modulo the number of values of its type, in a piece for each multiple.

    At most `MAX_CASES` + 1 pieces are yielded.
    """
    (value,) = piece.results
    if contains(limits, value.bounds):
        yield piece
        return
    low, high = KnownBounds(sum_bounds(piece.constraints)).bounds(value)
    low, high = intersect((low, high), value.bounds)
    count = limits[1] - limits[0] + 1
    first, last = (low - limits[0]) // count, (high - limits[0]) // count
    for multiple in range(first, min(last, first + MAX_CASES) + 1):
        inside = Constraint(value, limits[0] + multiple * count, limits[1] + multiple * count)
        part = replace(
            piece,
            results=(value - multiple * count,),
            constraints=(*piece.constraints, *([] if inside.is_true else [inside])),
        )
        part = simplify_piece(part, around)
        if not part.is_known_empty:
            yield part


def join_pieces(shape: Shape, pieces: Sequence[IndexingMap]) -> Sequence[IndexingMap]:
    """Return one piece if all pieces, which cover the array, have the same formula."""
    (value,) = pieces[0].results
    if len(pieces) == 1 or any(piece.results != (value,) for piece in pieces):
        return pieces
    variables, mentioned = dims(shape), set(value.variables())
    symbols = [rt for rt in merged_runtime(pieces) if rt.variable in mentioned]
    if not mentioned - {rt.variable for rt in symbols} <= set(variables) or any(
        rt.array is not None for rt in symbols
    ):  # bounds of dimensions differ between pieces, or names are those of other values
        return pieces
    return [IndexingMap.of(variables, [value], runtime=symbols)]


def merged_runtime(maps: Iterable[IndexingMap]) -> tuple[RuntimeVariable, ...]:
    """Return the distinct runtime variables of maps."""
    return tuple({rt: None for m in maps for rt in m.runtime})

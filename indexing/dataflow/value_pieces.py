"""Pieces of the values of an array: simplified, joined, and wrapped to the range of a type."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Protocol, TypeAlias

from hlo.shapes.shape import Shape
from indexing.maps.arrays import ArrayRef
from indexing.maps.indexing_map import IndexingMap, dims
from indexing.maps.runtime_variable import RuntimeVariable
from indexing.maps.shared_runtime import share_runtime
from indexing.ops.integer_rules import MAX_CASES
from simplifier.atoms import Floor, Variable
from simplifier.bounds import KnownBounds
from simplifier.constraints import Constraint, sum_bounds
from simplifier.interval import Interval, contains, intersect
from simplifier.linear import Expr
from simplifier.substitute import Substitution

ValueMaps: TypeAlias = tuple[IndexingMap, ...]
"""Disjoint maps from the index of each element to its value; together they cover the array."""


class Surroundings(Protocol):
    """The known values of the parameters of a computation where it is called."""

    def value(self, parameter: ArrayRef) -> ValueMaps | None:
        """Return the elements of an integer array of a parameter as formulas, or None.

        Their runtime variables are symbols: equal names have equal values.
        """

    def table(self, array: ArrayRef) -> ValueMaps | None:
        """Return the elements of an integer array, as they are in each iteration, or None."""

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
) -> ValueMaps | None:
    """Return the value modulo the number of values of its type, in a piece for each multiple.

    Returns:
        None if there may be more than `MAX_CASES` multiples.
    """
    (value,) = piece.results
    if contains(limits, value.bounds):
        return (piece,)
    low, high = KnownBounds(sum_bounds(piece.constraints)).bounds(value)
    low, high = intersect((low, high), value.bounds)
    count = limits[1] - limits[0] + 1
    first, last = (low - limits[0]) // count, (high - limits[0]) // count
    if last - first >= MAX_CASES:
        return None
    parts: list[IndexingMap] = []
    for multiple in range(first, last + 1):
        inside = Constraint(value, limits[0] + multiple * count, limits[1] + multiple * count)
        part = replace(
            piece,
            results=(value - multiple * count,),
            constraints=(*piece.constraints, *([] if inside.is_true else [inside])),
        )
        part = simplify_piece(part, around)
        if not part.is_known_empty:
            parts.append(part)
    return tuple(parts)


def join_pieces(shape: Shape, pieces: Sequence[IndexingMap]) -> Sequence[IndexingMap]:
    """Return one piece if one formula has the values of all pieces, which cover the array.

    As ``x floordiv n`` and ``x mod n``, which programs compute from the division that rounds
    towards zero, by cases.
    """
    results = {piece.results[0] for piece in pieces}
    if len(pieces) == 1 or (len(results) > 1 and not any(map(_divides, results))):
        return pieces
    variables = dims(shape)
    shared, runtime = share_runtime([over_dims(piece, variables) for piece in pieces])
    formulas = list(dict.fromkeys([piece.results[0] for piece in shared]))
    for formula in formulas if len(formulas) == 1 else filter(_divides, formulas):
        kept = _needed_values(formula, runtime)
        whole = IndexingMap.of(variables, [formula], runtime=kept)
        if all(_has_values(whole, piece) for piece in shared):
            return [whole]
    return pieces


def _needed_values(formula: Expr, runtime: Sequence[RuntimeVariable]) -> list[RuntimeVariable]:
    """Return the runtime variables of a formula, and those in their indices, which precede them."""
    mentioned = set(formula.variables())
    needed: list[RuntimeVariable] = []
    for rt in reversed(runtime):
        if rt.variable in mentioned:
            needed.insert(0, rt)
            mentioned.update([v for index in rt.index for v in index.variables()])
    return needed


def _divides(formula: Expr) -> bool:
    return any(isinstance(atom, Floor) for atom, _ in formula.terms)


def over_dims(piece: IndexingMap, variables: Sequence[Variable]) -> IndexingMap:
    """Return a piece with other dimensions; the bounds of its own become constraints."""
    pairs = [pair for pair in zip(piece.dims, variables, strict=True) if pair[0] != pair[1]]
    if not pairs:
        return piece
    swap = {old: new.as_expr() for old, new in pairs}
    within = [Constraint(new.as_expr(), *old.bounds) for old, new in pairs]
    results, constraints = piece.substituted(swap)
    index = Substitution(swap)
    return IndexingMap.of(
        variables,
        results,
        runtime=[rt.substituted(index) for rt in piece.runtime],
        constraints=[*constraints, *within],
    )


def _has_values(whole: IndexingMap, piece: IndexingMap) -> bool:
    """Return True if a formula is proved to have the values of a piece."""
    if piece.results == whole.results:
        return True
    from indexing.maps.deduplicate import BUDGET  # loads isl
    from indexing.maps.equality import is_contained

    return is_contained(piece, whole, budget=BUDGET) is True


def merged_runtime(maps: Iterable[IndexingMap]) -> tuple[RuntimeVariable, ...]:
    """Return the distinct runtime variables of maps."""
    return tuple({rt: None for m in maps for rt in m.runtime})

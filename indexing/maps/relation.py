"""Questions about maps as relations, answered exactly through `simplifier.exact`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import TypeAlias

from indexing.maps.indexing_map import Grade, IndexingMap
from simplifier import exact
from simplifier.atoms import Variable
from simplifier.exact import unions
from simplifier.linear import Expr
from simplifier.substitute import Substitution
from simplifier.unknown import Unknown, about

MapOrMaps: TypeAlias = IndexingMap | Iterable[IndexingMap]
"""One map, or several: the union of what they relate."""
Points: TypeAlias = IndexingMap | Iterable[IndexingMap] | Sequence[int]
"""A set of points: one point, or maps from nothing to the points."""


def is_empty(asked: IndexingMap) -> bool | Unknown:
    """No point is in the domain of `asked`."""
    if asked.is_known_empty:
        return True
    if not asked.constraints:
        return False
    found = exact.is_empty(asked.variables, asked.constraints)
    return about(found, "whether no point is in the domain of", asked)


def inverse(asked: MapOrMaps) -> tuple[IndexingMap, ...] | Unknown:
    """``results -> dims`` in disjoint pieces; runtime variables stay what they are.

    Of several maps it is the inverse of their union; a piece has the grade "may" where only maps of
    that grade relate.  Only pieces of maps that have runtime variables may overlap with others.

    Raises:
        ValueError: the maps have different numbers of dimensions or results.

    >>> halves = [IndexingMap.over((4,), lambda d, k=k: [d[0] * 2 + k]) for k in (0, 1)]
    >>> print(*inverse(halves))
    (d0) -> (d0 floordiv 2), domain: d0 in [0, 7]
    """
    maps = as_maps(asked)
    same_spaces(maps)
    plain = [m for m in maps if not m.runtime]
    found: list[IndexingMap] = []
    certain: list[exact.Relation] = []
    for grade in ("exact", "may"):
        union = [_reading(m, m.results) for m in plain if m.grade == grade]
        if union:
            pieces = unions.union_inverse(union, without=certain)
            if isinstance(pieces, Unknown):
                return about(pieces, "the inverse of", Listed(plain))
            found += [_from_piece(piece, grade) for piece in pieces]
        certain = union
    for m in maps:
        if m.runtime:
            inverted = _inverse_with_values(m)
            if isinstance(inverted, Unknown):
                return inverted
            found += inverted
    return tuple(found)


def _inverse_with_values(asked: IndexingMap) -> list[IndexingMap] | Unknown:
    """The inverse of a map with runtime variables.

    The range variables that say which elements these are stay range variables.
    """
    mentioned = {v for rt in asked.runtime for expr in rt.index for v in expr.variables()}
    kept = [v for v in asked.ranges if v in mentioned]
    known = [*[rt.expr for rt in asked.runtime], *[v.as_expr() for v in kept]]
    pieces = exact.inverse(_reading(asked, (*asked.results, *known)))
    if isinstance(pieces, Unknown):
        return about(pieces, "the inverse of", asked)
    return [_with_values(piece, asked, kept) for piece in pieces]


def _with_values(
    piece: exact.Relation, asked: IndexingMap, kept: Sequence[Variable]
) -> IndexingMap:
    """A piece ``(results, runtime variables, kept range variables) -> dims`` as a map."""
    rank, count = len(asked.results), len(asked.runtime)
    values, still = piece.inputs[rank : rank + count], piece.inputs[rank + count :]
    swap = Substitution(
        dict(zip(asked.dims, piece.results, strict=True))
        | dict(zip(kept, [v.as_expr() for v in still], strict=True))
        | {rt.variable: v.as_expr() for rt, v in zip(asked.runtime, values, strict=True)}
    )
    runtime = [
        rt.substituted(swap, variable) for rt, variable in zip(asked.runtime, values, strict=True)
    ]
    return IndexingMap.of(
        piece.inputs[:rank],
        piece.results,
        ranges=(*still, *piece.hidden),
        runtime=runtime,
        constraints=piece.constraints,
        grade=asked.grade,
    ).simplify()


def image(asked: MapOrMaps, points: Points | None = None) -> tuple[IndexingMap, ...] | Unknown:
    """All results, for any value of the runtime variables, as maps from nothing in disjoint pieces.

    Args:
        points: only the results of these points: one point, or maps from nothing to points.
    Raises:
        ValueError: the spaces of maps and points do not fit.

    >>> rows = IndexingMap.over((4, 8), lambda d: [d[0] * 8 + d[1]])
    >>> print(*image(rows, points=(2, 3)))
    () -> (19)
    """
    maps = as_maps(asked)
    at = None if points is None else _points(points)
    same_spaces(maps, dims=None if at is None else _rank(at))
    read = [_reading(m, m.results) for m in maps]
    if not read or at == []:
        return ()
    pieces = unions.union_image(read, None if at is None else [_reading(p, p.results) for p in at])
    if isinstance(pieces, Unknown):
        return about(pieces, "the image of", Listed(maps))
    return tuple([_from_piece(piece, _grade((*maps, *(at or ())))) for piece in pieces])


def preimage(asked: MapOrMaps, elements: Points) -> tuple[IndexingMap, ...] | Unknown:
    """All points that have one of `elements` as a result, as maps from nothing in disjoint pieces.

    Runtime variables may have any value.

    Args:
        elements: one element, or maps from nothing to elements, such as `image` gives.
    Raises:
        ValueError: the spaces of maps and elements do not fit.

    >>> half = IndexingMap.over((8,), lambda d: [d[0] // 2])
    >>> print(*preimage(half, elements=(3,)))
    ()[s0] -> (s0), domain: s0 in [6, 7]
    """
    maps, wanted = as_maps(asked), _points(elements)
    same_spaces(maps, results=_rank(wanted))
    if not maps or not wanted:
        return ()
    read = [_reading(m, m.results) for m in maps]
    pieces = unions.union_preimage(read, [_reading(p, p.results) for p in wanted])
    if isinstance(pieces, Unknown):
        return about(pieces, "the preimage under", Listed(maps))
    return tuple([_from_piece(piece, _grade((*maps, *wanted))) for piece in pieces])


def _from_piece(piece: exact.Relation, grade: Grade) -> IndexingMap:
    return IndexingMap.of(
        piece.inputs,
        piece.results,
        ranges=piece.hidden,
        constraints=piece.constraints,
        grade=grade,
    ).simplify()


def _points(given: Points) -> list[IndexingMap]:
    """A set of points as maps from nothing."""
    if isinstance(given, IndexingMap):
        given = (given,)
    listed = list(given)
    maps = [m for m in listed if isinstance(m, IndexingMap)]
    if not maps and listed:
        return [IndexingMap.of((), [value for value in listed if isinstance(value, int)])]
    if len(maps) < len(listed) or any(m.dims for m in maps):
        raise ValueError(f"points are one tuple of integers, or maps without dimensions: {given}")
    return maps


def _rank(points: Sequence[IndexingMap]) -> int | None:
    same_spaces(points)
    return len(points[0].results) if points else None


def _grade(maps: Iterable[IndexingMap]) -> Grade:
    return "may" if any(m.grade == "may" for m in maps) else "exact"


def count_image(asked: IndexingMap) -> int | Unknown:
    """How many different results there are, for any value of the runtime variables."""
    found = exact.count(_reading(asked, asked.results))
    return about(found, "the number of results of", asked)


def count_domain(asked: IndexingMap) -> int | Unknown:
    """How many points the domain has: values of dimensions, ranges and runtime variables."""
    if not asked.constraints:
        return prod(max(0, v.upper - v.lower + 1) for v in asked.variables)
    every = tuple([v.as_expr() for v in asked.variables])
    return about(exact.count(_reading(asked, every)), "the size of the domain of", asked)


def _reading(asked: IndexingMap, results: tuple[Expr, ...]) -> exact.Relation:
    """The dimensions in relation to `results`, everything else hidden."""
    hidden = tuple([v for v in asked.variables if v not in asked.dims])
    return exact.Relation(asked.dims, hidden, results, asked.constraints)


# ---------------------------------------------------------------- for all questions


class Listed(tuple[IndexingMap, ...]):
    """Maps whose text is that of all of them, with semicolons between."""

    __slots__ = ()

    def __str__(self) -> str:
        return "; ".join(map(str, self))


def as_maps(asked: MapOrMaps) -> tuple[IndexingMap, ...]:
    """One map or several, as a tuple."""
    return (asked,) if isinstance(asked, IndexingMap) else tuple(asked)


def same_spaces(
    maps: Sequence[IndexingMap], dims: int | None = None, results: int | None = None
) -> None:
    """Nothing, if all maps have as many dimensions and results, those that are given.

    Raises:
        ValueError: they have not.
    """
    for m in maps:
        dims = len(m.dims) if dims is None else dims
        results = len(m.results) if results is None else results
        if (len(m.dims), len(m.results)) != (dims, results):
            raise ValueError(
                f"{dims} dimensions and {results} results are needed; this map has "
                f"{len(m.dims)} and {len(m.results)}:\n  {m}"
            )

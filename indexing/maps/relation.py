"""Maps as relations: emptiness, inverse, image and preimage, exactly (`simplifier.exact`).

Source: isl manual, "Unary Operations" (reverse, domain, range) and "Binary Operations"
(application, preimage).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TypeAlias

from hlo.arguments import brief, checked, integers
from indexing.maps.indexing_map import Grade, IndexingMap
from indexing.maps.runtime_variable import RuntimeVariable
from simplifier import exact
from simplifier.atoms import Variable, variables_in
from simplifier.constraints import Constraint
from simplifier.exact import unions
from simplifier.linear import Expr
from simplifier.semiaffine import divisors_with_zero
from simplifier.substitute import Substitution
from simplifier.unknown import Unknown, with_query

MapOrMaps: TypeAlias = IndexingMap | Iterable[IndexingMap]
"""One map, or several: the union of their relations."""
Points: TypeAlias = IndexingMap | Iterable[IndexingMap] | Sequence[int]
"""A set of points: one point, or maps without dimensions whose results are the points."""


def is_empty(indexing_map: IndexingMap) -> bool | Unknown:
    """Return True if the domain of `indexing_map` has no points.

    A point at which a result divides by 0 is not in the domain.
    """
    if indexing_map.is_known_empty:
        return True
    divided = quotients(indexing_map)
    if not indexing_map.constraints and (not divided or _is_defined_at_a_corner(divided)):
        return False
    defined = [Constraint(quotient, *quotient.bounds) for quotient in divided]
    empty = exact.is_empty(indexing_map.variables, (*indexing_map.constraints, *defined))
    return with_query(empty, "cannot decide whether the domain is empty of", indexing_map)


def quotients(m: IndexingMap) -> list[Expr]:
    """Return the results with a divisor that may be 0."""
    return [result for result in m.results if divisors_with_zero([result])]


def _is_defined_at_a_corner(exprs: Sequence[Expr]) -> bool:
    """True if no divisor is 0 where all variables are minimal, or where all are maximal."""
    divisors = divisors_with_zero(exprs)
    for end in (0, 1):
        corner = {v: v.bounds[end] for v in variables_in(exprs)}
        with suppress(ZeroDivisionError):
            if all(divisor.value(corner) for divisor in divisors):
                return True
    return False


@checked
def inverse(maps: MapOrMaps) -> tuple[IndexingMap, ...] | Unknown:
    """Return the inverse relation ``results -> dims``, as disjoint maps.

    Runtime variables keep their meaning.  For several maps, the answer is the inverse of their
    union.  A piece has the grade "may" if only maps of that grade relate its points.  Pieces of
    maps with runtime variables may overlap with other pieces.

    Raises:
        ValueError: the maps have different numbers of dimensions or results.
    Source: isl manual, "Unary Operations" (``isl_map_reverse``).

    >>> halves = [IndexingMap.over((4,), lambda d, k=k: [d[0] * 2 + k]) for k in (0, 1)]
    >>> print(*inverse(halves))
    (d0) -> (d0 floordiv 2), domain: d0 in [0, 7]
    """
    maps = as_maps(maps)
    check_spaces(maps)
    plain = [m for m in maps if not m.runtime]
    inverses: list[IndexingMap] = []
    certain: list[exact.Relation] = []
    for grade in ("exact", "may"):
        union = [as_relation(m) for m in plain if m.grade == grade]
        if union:
            pieces = unions.union_inverse(union, without=certain)
            if isinstance(pieces, Unknown):
                return with_query(pieces, "cannot compute the inverse of", MapList(plain))
            inverses += [map_of_piece(piece, grade) for piece in pieces]
        certain = union
    for m in maps:
        if m.runtime:
            inverted = _inverse_with_values(m)
            if isinstance(inverted, Unknown):
                return inverted
            inverses += inverted
    return tuple(inverses)


def _inverse_with_values(m: IndexingMap) -> list[IndexingMap] | Unknown:
    """The inverse of a map with runtime variables.

    Range variables that index the sources of runtime variables stay range variables.
    """
    mentioned = {v for rt in m.runtime for expr in rt.index for v in expr.variables()}
    kept = [v for v in m.ranges if v in mentioned]
    extra = [*[rt.expr for rt in m.runtime], *[v.as_expr() for v in kept]]
    pieces = exact.inverse(as_relation(m, (*m.results, *extra)))
    if isinstance(pieces, Unknown):
        return with_query(pieces, "cannot compute the inverse of", m)
    return [_with_values(piece, m, kept) for piece in pieces]


def _with_values(piece: exact.Relation, m: IndexingMap, kept: Sequence[Variable]) -> IndexingMap:
    """A piece ``(results, runtime variables, kept range variables) -> dims`` as a map."""
    rank, count = len(m.results), len(m.results) + len(m.runtime)
    inputs, new_ranges = piece.inputs[:count], piece.inputs[count:]
    swap = Substitution(
        dict(zip(m.dims, piece.results, strict=True))
        | dict(zip(kept, [v.as_expr() for v in new_ranges], strict=True))
        | {rt.variable: v.as_expr() for rt, v in zip(m.runtime, inputs[rank:], strict=True)}
    )
    runtime = [rt.substituted(swap) for rt in m.runtime]
    ranged = replace(piece, inputs=inputs, hidden=(*new_ranges, *piece.hidden))
    return map_of_piece(ranged, m.grade, runtime)


@checked
def image(maps: MapOrMaps, points: Points | None = None) -> tuple[IndexingMap, ...] | Unknown:
    """Return all results, for any runtime values, as disjoint maps without dimensions.

    Args:
        points: restricts the domain to these points: one point, or maps without dimensions whose
            results are the points.
    Raises:
        ValueError: the dimensions of maps and points differ in number.
    Source: isl manual, "Unary Operations" (``isl_map_range``) and "Binary Operations"
        (``isl_set_apply``).

    >>> rows = IndexingMap.over((4, 8), lambda d: [d[0] * 8 + d[1]])
    >>> print(*image(rows, points=(2, 3)))
    () -> (19)
    """
    maps = as_maps(maps)
    at = None if points is None else _points("image", "points", points)
    check_spaces(maps, dims=None if at is None else _rank(at))
    relations = [as_relation(m) for m in maps]
    if not relations or at == []:
        return ()
    pieces = unions.union_image(relations, None if at is None else [as_relation(p) for p in at])
    if isinstance(pieces, Unknown):
        return with_query(pieces, "cannot compute the image of", MapList(maps))
    return tuple([map_of_piece(piece, _grade((*maps, *(at or ())))) for piece in pieces])


@checked
def preimage(maps: MapOrMaps, elements: Points) -> tuple[IndexingMap, ...] | Unknown:
    """Return all points with a result in `elements`, as disjoint maps without dimensions.

    Runtime variables may have any value.

    Args:
        elements: one element, or maps without dimensions whose results are the elements, such as
            the answer of `image`.
    Raises:
        ValueError: the results of maps and elements differ in number.
    Source: isl manual, "Binary Operations" (preimage).

    >>> half = IndexingMap.over((8,), lambda d: [d[0] // 2])
    >>> print(*preimage(half, elements=(3,)))
    ()[s0] -> (s0), domain: s0 in [6, 7]
    """
    maps, targets = as_maps(maps), _points("preimage", "elements", elements)
    check_spaces(maps, results=_rank(targets))
    if not maps or not targets:
        return ()
    relations = [as_relation(m) for m in maps]
    pieces = unions.union_preimage(relations, [as_relation(p) for p in targets])
    if isinstance(pieces, Unknown):
        return with_query(pieces, "cannot compute the preimage under", MapList(maps))
    return tuple([map_of_piece(piece, _grade((*maps, *targets))) for piece in pieces])


def _points(function: str, name: str, given: Points) -> list[IndexingMap]:
    """A set of points as maps without dimensions."""
    if isinstance(given, IndexingMap):
        given = (given,)
    listed = list(given)
    maps = [m for m in listed if isinstance(m, IndexingMap)]
    if not maps and listed:
        return [IndexingMap.of((), integers(function, name, listed))]
    with_dims = [m for m in maps if m.dims]
    if with_dims or len(maps) < len(listed):
        wrong = str(with_dims[0]) if with_dims else brief(given)
        raise ValueError(
            f"{function}: `{name}` must be one sequence of integers, or maps without dimensions, "
            f"not {wrong}; write image(m) for the results of a map m"
        )
    return maps


def _rank(points: Sequence[IndexingMap]) -> int | None:
    check_spaces(points)
    return len(points[0].results) if points else None


def _grade(maps: Iterable[IndexingMap]) -> Grade:
    return "may" if any(m.grade == "may" for m in maps) else "exact"


# ---------------------------------------------------------------- isl relations


def map_of_piece(
    piece: exact.Relation,
    grade: Grade,
    runtime: Sequence[RuntimeVariable] = (),
    names: Sequence[str] | None = None,
) -> IndexingMap:
    """Return a piece of a relation that isl computed as a map.

    Args:
        piece: the last inputs are the values of `runtime`, the others the dimensions; hidden
            variables become range variables.
        names: new names of the inputs.

    >>> d, size = Variable("i0", 0, 3), Variable("i1", 1, 9)
    >>> piece = exact.Relation((d, size), (), (d + size,), ())
    >>> print(map_of_piece(piece, "may", [RuntimeVariable(size)], names=["d0", "rt0"]))
    (d0){rt0} -> (d0 + rt0), domain: d0 in [0, 3], rt0 in [1, 9]
    """
    if names is not None:
        piece = _rename_inputs(piece, names)
    rank = len(piece.inputs) - len(runtime)
    values = zip(runtime, piece.inputs[rank:], strict=True)
    return IndexingMap.of(
        piece.inputs[:rank],
        piece.results,
        ranges=piece.hidden,
        runtime=[replace(rt, variable=variable) for rt, variable in values],
        constraints=piece.constraints,
        grade=grade,
    ).simplify()


def _rename_inputs(relation: exact.Relation, names: Sequence[str]) -> exact.Relation:
    """The same relation with other names of its inputs."""
    inputs = tuple([v.renamed(name) for v, name in zip(relation.inputs, names, strict=True)])
    pairs = zip(relation.inputs, inputs, strict=True)
    swap = Substitution({old: new.as_expr() for old, new in pairs})
    return exact.Relation(
        inputs,
        relation.hidden,
        tuple(map(swap, relation.results)),
        tuple([c.with_expr(swap(c.expr)) for c in relation.constraints]),
    )


def as_relation(m: IndexingMap, results: tuple[Expr, ...] | None = None) -> exact.Relation:
    """Return ``dims -> results``; range and runtime variables are hidden.

    Args:
        results: other results than those of the map.

    >>> window = IndexingMap.over((4,), lambda d, s: [d[0] + s[0]], ranges=(2,))
    >>> as_relation(window).hidden == window.ranges
    True
    """
    hidden = tuple([v for v in m.variables if v not in m.dims])
    return exact.Relation(m.dims, hidden, m.results if results is None else results, m.constraints)


# ---------------------------------------------------------------- arguments of queries


class MapList(tuple[IndexingMap, ...]):
    """Maps that print as their texts, separated by semicolons."""

    __slots__ = ()

    def __str__(self) -> str:
        return "; ".join(map(str, self))


def as_maps(maps: MapOrMaps) -> tuple[IndexingMap, ...]:
    """One map or several, as a tuple."""
    return (maps,) if isinstance(maps, IndexingMap) else tuple(maps)


def check_spaces(
    maps: Sequence[IndexingMap], dims: int | None = None, results: int | None = None
) -> None:
    """Check that all maps have the same numbers of dimensions and results, if given these.

    Raises:
        ValueError: a map has another number of dimensions or results.
    """
    for m in maps:
        dims = len(m.dims) if dims is None else dims
        results = len(m.results) if results is None else results
        if (len(m.dims), len(m.results)) != (dims, results):
            raise ValueError(
                f"expected maps with {dims} dimensions and {results} results, got "
                f"{len(m.dims)} and {len(m.results)}:\n  {m}"
            )

"""Questions about maps as relations, answered exactly through `simplifier.exact`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice, product
from math import prod
from typing import Final, Literal, TypeAlias, TypeVar

from indexing.maps.indexing_map import Difference, Grade, IndexingMap
from indexing.maps.runtime_variable import RuntimeVariable
from simplifier import exact
from simplifier.atoms import Variable
from simplifier.exact import unions
from simplifier.linear import Expr
from simplifier.substitute import Substitution

Pair: TypeAlias = tuple[RuntimeVariable | None, RuntimeVariable | None]
Pairs: TypeAlias = Sequence[Pair]
Answer = TypeVar("Answer")
MapOrMaps: TypeAlias = IndexingMap | Iterable[IndexingMap]
"""One map, or several: the union of what they relate."""
Points: TypeAlias = IndexingMap | Iterable[IndexingMap] | Sequence[int]
"""A set of points: one point, or maps from nothing to the points."""

_MOST_PAIRINGS: Final = 64


class UndecidedError(RuntimeError):
    """An exact question was beyond its budget; the message says which."""


def is_empty(asked: IndexingMap) -> bool:
    """No point is in the domain of `asked`.

    Raises:
        UndecidedError: that is beyond the budget to decide.
    """
    if asked.is_known_empty:
        return True
    if not asked.constraints:
        return False
    found = exact.is_empty(asked.variables, asked.constraints)
    if isinstance(found, exact.Undecided):
        raise UndecidedError(f"is {asked} empty? {found}")
    return found


def difference(
    first: IndexingMap, second: IndexingMap, *, budget: int = exact.BUDGET
) -> Difference | None:
    """A point that only one of two maps relates, or `None` if they are the same relation.

    ISL has `budget` operations for each way to pair the runtime variables of the maps.

    Raises:
        ValueError: the maps have different numbers of dimensions or results, so that they relate
            points of different spaces.
        UndecidedError: that is beyond the budget to decide.
    """
    if first == second:
        return None
    spaces = [(len(m.dims), len(m.results)) for m in (first, second)]
    if spaces[0] != spaces[1]:
        if is_empty(first) and is_empty(second):
            return None
        raise ValueError(
            f"maps of different spaces: {spaces[0][0]} dimensions to {spaces[0][1]} results, and "
            f"{spaces[1][0]} to {spaces[1][1]}:\n  {first}\n  {second}"
        )
    found: Difference | None = None
    for pairs in _pairings(first, second):
        found = _difference(first, second, pairs, budget)
        if found is None:
            break
    return found


def _difference(
    first: IndexingMap, second: IndexingMap, pairs: Pairs, budget: int
) -> Difference | None:
    """A difference, if runtime variables in pairs are the same value.

    The element that each of them is counts as a further result: they are the same value only if it
    is the same element.
    """
    left = _relation(first, pairs)
    right = _relation(second, [(b, a) for a, b in pairs])
    found = exact.difference(left, right, budget)
    if isinstance(found, exact.Undecided):
        raise UndecidedError(f"is {first} equal to {second}? {found}")
    if found is None:
        return None
    at = dict(zip([v.name for v in left.inputs], found.point, strict=True))
    in_first: Literal["first", "second"] = "first" if found.in_first else "second"
    return Difference(at, found.results[: len(first.results)], in_first)


def _relation(asked: IndexingMap, pairs: Iterable[Pair]) -> exact.Relation:
    """`asked`, whose runtime variables come first in `pairs`; some are only in the other map."""
    inputs = (*asked.dims, *[_variable(*pair) for pair in pairs])
    hidden = [v for v in asked.variables if v not in inputs]
    elements = [expr for mine, other in pairs if mine and other for expr in mine.index]
    return exact.Relation(inputs, tuple(hidden), (*asked.results, *elements), asked.constraints)


def _variable(mine: RuntimeVariable | None, other: RuntimeVariable | None) -> Variable:
    if mine:
        return mine.variable
    assert other, "a pair has a runtime variable of one map at least"
    return Variable(f"other.{other.name}", *other.variable.bounds)


def _pairings(first: IndexingMap, second: IndexingMap) -> Iterator[Pairs]:
    """Ways to pair the runtime variables that may be the same value, the likeliest first.

    Those of one source may be paired in several ways, unless their elements are written alike.  A
    variable that only one map has is paired with `None`: the other map does not depend on it.
    """
    pairs: list[Pair] = []
    left, right = list(first.runtime), list(second.runtime)
    for mine in first.runtime:
        same = [other for other in right if _may_be_same(mine, other)]
        alike = [other for other in same if _element(mine) == _element(other)]
        if alike:
            pairs.append((mine, alike[0]))
            left.remove(mine)
            right.remove(alike[0])
    choices = [[*[o for o in right if _may_be_same(mine, o)], None] for mine in left]
    different = (
        choice
        for choice in product(*choices)
        if len({id(o) for o in choice if o}) == sum(o is not None for o in choice)
    )
    for choice in islice(different, _MOST_PAIRINGS):
        alone: list[Pair] = [(None, other) for other in right if other not in choice]
        yield [*pairs, *zip(left, choice, strict=True), *alone]


def _may_be_same(a: RuntimeVariable, b: RuntimeVariable) -> bool:
    """Both are an element of the same source; without a source, they have the same name."""
    if a.array is None or b.array is None:
        return a.name == b.name
    return a.array == b.array and a.clamp == b.clamp and len(a.index) == len(b.index)


def _element(of: RuntimeVariable) -> list[str]:
    return [str(expr) for expr in of.index]


# ---------------------------------------------------------------- inverse, image, counts


def inverse(asked: MapOrMaps) -> tuple[IndexingMap, ...]:
    """``results -> dims`` in disjoint pieces; runtime variables stay what they are.

    Of several maps it is the inverse of their union; a piece has the grade "may" where only maps of
    that grade relate.  Only pieces of maps that have runtime variables may overlap with others.

    Raises:
        ValueError: the maps have different numbers of dimensions or results.
        UndecidedError: that is beyond the budget.

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
            named = f"the inverse of {_named(plain)}"
            found += [_from_piece(piece, grade) for piece in decided(pieces, named)]
        certain = union
    found += [piece for m in maps if m.runtime for piece in _inverse_with_values(m)]
    return tuple(found)


def _inverse_with_values(asked: IndexingMap) -> Iterator[IndexingMap]:
    """The inverse of a map with runtime variables.

    The range variables that say which elements these are stay range variables.
    """
    mentioned = {v for rt in asked.runtime for expr in rt.index for v in expr.variables()}
    kept = [v for v in asked.ranges if v in mentioned]
    known = [*[rt.expr for rt in asked.runtime], *[v.as_expr() for v in kept]]
    found = exact.inverse(_reading(asked, (*asked.results, *known)))
    rank, count = len(asked.results), len(asked.runtime)
    for piece in decided(found, f"the inverse of {asked}"):
        values, still = piece.inputs[rank : rank + count], piece.inputs[rank + count :]
        swap = Substitution(
            dict(zip(asked.dims, piece.results, strict=True))
            | dict(zip(kept, [v.as_expr() for v in still], strict=True))
            | {rt.variable: v.as_expr() for rt, v in zip(asked.runtime, values, strict=True)}
        )
        runtime = [
            replace(rt, variable=variable, index=tuple(map(swap, rt.index)))
            for rt, variable in zip(asked.runtime, values, strict=True)
        ]
        yield IndexingMap.of(
            piece.inputs[:rank],
            piece.results,
            ranges=(*still, *piece.hidden),
            runtime=runtime,
            constraints=piece.constraints,
            grade=asked.grade,
        ).simplify()


def image(asked: MapOrMaps, points: Points | None = None) -> tuple[IndexingMap, ...]:
    """All results, for any value of the runtime variables, as maps from nothing in disjoint pieces.

    Args:
        points: only the results of these points: one point, or maps from nothing to points.
    Raises:
        ValueError: the spaces of maps and points do not fit.
        UndecidedError: that is beyond the budget.

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
    found = unions.union_image(read, None if at is None else [_reading(p, p.results) for p in at])
    pieces = decided(found, f"the image of {_named(maps)}")
    return tuple([_from_piece(piece, _grade((*maps, *(at or ())))) for piece in pieces])


def preimage(asked: MapOrMaps, elements: Points) -> tuple[IndexingMap, ...]:
    """All points that have one of `elements` as a result, as maps from nothing in disjoint pieces.

    Runtime variables may have any value.

    Args:
        elements: one element, or maps from nothing to elements, such as `image` gives.
    Raises:
        ValueError: the spaces of maps and elements do not fit.
        UndecidedError: that is beyond the budget.

    >>> half = IndexingMap.over((8,), lambda d: [d[0] // 2])
    >>> print(*preimage(half, elements=(3,)))
    ()[s0] -> (s0), domain: s0 in [6, 7]
    """
    maps, wanted = as_maps(asked), _points(elements)
    same_spaces(maps, results=_rank(wanted))
    if not maps or not wanted:
        return ()
    read = [_reading(m, m.results) for m in maps]
    found = unions.union_preimage(read, [_reading(p, p.results) for p in wanted])
    pieces = decided(found, f"the preimage under {_named(maps)}")
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


def _named(maps: Iterable[IndexingMap]) -> str:
    return "; ".join(map(str, maps))


def count_image(asked: IndexingMap) -> int:
    """How many different results there are, for any value of the runtime variables.

    Raises:
        UndecidedError: that is beyond the budget.
    """
    found = exact.count(_reading(asked, asked.results))
    return decided(found, f"the number of results of {asked}")


def count_domain(asked: IndexingMap) -> int:
    """How many points the domain has: values of dimensions, ranges and runtime variables.

    Raises:
        UndecidedError: that is beyond the budget.
    """
    if not asked.constraints:
        return prod(max(0, v.upper - v.lower + 1) for v in asked.variables)
    every = tuple([v.as_expr() for v in asked.variables])
    return decided(exact.count(_reading(asked, every)), f"the size of the domain of {asked}")


def _reading(asked: IndexingMap, results: tuple[Expr, ...]) -> exact.Relation:
    """The dimensions in relation to `results`, everything else hidden."""
    hidden = tuple([v for v in asked.variables if v not in asked.dims])
    return exact.Relation(asked.dims, hidden, results, asked.constraints)


# ---------------------------------------------------------------- for all questions


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


def decided(found: Answer | exact.Undecided, what: str) -> Answer:
    """`found`, if it was found.

    Raises:
        UndecidedError: it was not.
    """
    if isinstance(found, exact.Undecided):
        raise UndecidedError(f"{what}: {found}")
    return found

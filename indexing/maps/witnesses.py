"""Witnesses: points with a common result, an unreached element, a result that changes.

Witnesses include values of the runtime variables that a program can have.  One element of a source
has one value, which each runtime variable clamps as its operation does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from indexing.maps.indexing_map import IndexingMap
from indexing.maps.map_copies import (
    MapCopy,
    SourceRead,
    consistent_values,
    less_than,
    read_values,
    same_element,
)
from indexing.maps.relation import MapList
from simplifier import exact
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.exact import unions
from simplifier.exact.unions import Clause
from simplifier.linear import Expr
from simplifier.substitute import Substitution
from simplifier.unknown import Unknown, with_query


@dataclass(frozen=True, slots=True)
class Witness:
    """Points and results that prove a property of maps, or disprove it.

    Attributes:
        points: values of the dimensions.
        results: results of the maps.
        runtime: values of the runtime variables, by source element: ``("i[2]", 5)`` if element 2
            of `i` is 5.

    >>> from indexing.maps.properties import is_injective
    >>> halves = IndexingMap.over((4,), lambda d: [d[0] // 2])
    >>> is_injective(halves).witness
    Witness(points=((0,), (1,)), results=((0,),), runtime=())
    """

    points: tuple[tuple[int, ...], ...] = ()
    results: tuple[tuple[int, ...], ...] = ()
    runtime: tuple[tuple[str, int], ...] = ()


# ---------------------------------------------------------------- pairs of points


PairProperty: TypeAlias = Callable[[MapCopy, MapCopy, bool], tuple[list[Constraint], Clause]]
"""A property of two related points: constraints, and a disjunction that must hold as well."""


def shares_result(a: MapCopy, b: MapCopy, twice: bool) -> tuple[list[Constraint], Clause]:
    """Two points with one result; `twice`: both of one map, so the first may be the smaller."""
    ways = [less_than(i, j) for i, j in zip(a.dims, b.dims, strict=True)]
    if not twice:
        ways += [less_than(j, i) for i, j in zip(a.dims, b.dims, strict=True)]
    same = [Constraint(i - j, 0, 0) for i, j in zip(a.results, b.results, strict=True)]
    return same, ways


def has_two_results(a: MapCopy, b: MapCopy, twice: bool) -> tuple[list[Constraint], Clause]:
    """One point with two results; `twice`: both of one map, so the first may be the smaller."""
    ways = [less_than(i, j) for i, j in zip(a.results, b.results, strict=True)]
    if not twice:
        ways += [less_than(j, i) for i, j in zip(a.results, b.results, strict=True)]
    return [Constraint(i - j.as_expr(), 0, 0) for i, j in zip(a.dims, b.dims, strict=True)], ways


def pair_of_points(
    first: IndexingMap, second: IndexingMap, counterexample: PairProperty, property_name: str
) -> Witness | Unknown | None:
    """A point of each map such that both are a counterexample, for some runtime values."""
    a, b = MapCopy.of(first, "a."), MapCopy.of(second, "b.")
    constraints, ways = counterexample(a, b, first is second)
    ways = [way for way in ways if not any(c.is_false for c in way)]
    if not ways or any(c.is_false for c in constraints):
        return None
    reads = (*a.reads, *b.reads)
    variables = (*a.variables, *b.variables)
    every = [*constraints, *a.constraints, *b.constraints]
    point = unions.point(variables, every, [ways, *consistent_values(reads)])
    if isinstance(point, Unknown):
        maps = f"{first}\n  {second}" if first is not second else str(first)
        return with_query(
            point, f"cannot decide whether the relation is {property_name}, of\n  {maps}"
        )
    if point is None:
        return None
    at = dict(zip(variables, point, strict=True))
    points = {tuple([at[d] for d in copy.dims]) for copy in (a, b)}
    results = {tuple([r.value(at) for r in copy.results]) for copy in (a, b)}
    return _witness(sorted(points), sorted(results), read_values(reads, at))


def _witness(
    points: Iterable[tuple[int, ...]],
    results: Iterable[tuple[int, ...]],
    values: tuple[tuple[str, int], ...] | Unknown,
) -> Witness | Unknown:
    return values if isinstance(values, Unknown) else Witness(tuple(points), tuple(results), values)


# ---------------------------------------------------------------- unreached elements


def unreached_element(
    maps: Sequence[IndexingMap], target: tuple[Variable, ...]
) -> Witness | Unknown | None:
    """An element of the box `target` that no map reaches, for some runtime values.

    First, each runtime variable has one constant value, which is a possible program.  If every
    element is reached then, an opponent chooses the values, which may differ from point to point.
    If every element is still reached, every element is reached in every program.
    """
    copies = [MapCopy.of(m, f"m{k}.") for k, m in enumerate(maps)]
    reads = _distinct_reads(copies)
    query = "cannot decide which elements are unreached by", MapList(maps)
    witness = _unreached_with_constants(copies, reads, target)
    if witness is not None:
        return with_query(witness, *query)
    if all(not i.variables() for read in reads for i in read.index):
        return None
    cases = [_against_opponent(copy, target) for copy in copies]
    covered = unions.never_uncovered(cases, exact.Relation(target, (), (), ()))
    if covered is True:
        return None
    if isinstance(covered, Unknown):
        return with_query(covered, *query)
    reason = "the answer depends on runtime values that differ from point to point"
    return with_query(Unknown(reason), *query)


def _unreached_with_constants(
    copies: Sequence[MapCopy], reads: Sequence[SourceRead], target: tuple[Variable, ...]
) -> Witness | Unknown | None:
    """An element of `target` that no map reaches if each of `reads` has a constant value."""
    values = tuple([_free(read, f"v{k}") for k, read in enumerate(reads)])
    constant = [_with_constants(copy, reads, values) for copy in copies]
    point = unions.uncovered_point(constant, (*target, *values))
    if point is None or isinstance(point, Unknown):
        return point
    if len({read.array for read in reads}) < len(reads):
        return Unknown("two runtime variables may be the same source element")
    named = [(str(read.of.source_name or read.of.name), v) for read, v in _pair_reads(reads, point)]
    return Witness(results=(point[: len(target)],), runtime=tuple(named))


def _pair_reads(
    reads: Sequence[SourceRead], point: tuple[int, ...]
) -> Iterable[tuple[SourceRead, int]]:
    return zip(reads, point[len(point) - len(reads) :], strict=True)


def _distinct_reads(copies: Sequence[MapCopy]) -> list[SourceRead]:
    """The runtime variables of all copies, one for each source element."""
    reads: list[SourceRead] = []
    for copy in copies:
        for read in copy.reads:
            if not any(same_element(read, other) for other in reads):
                reads.append(read)
    return reads


def _free(read: SourceRead, name: str) -> Variable:
    """A variable with the bounds of all values that the program can have there."""
    return Variable(name, *(read.of.clamp or read.of.variable.bounds))


def _with_constants(
    copy: MapCopy, reads: Sequence[SourceRead], values: Sequence[Variable]
) -> exact.Relation:
    """``() -> (results, values)`` where each runtime variable is replaced by its value."""
    bound: dict[Variable, Expr] = {}
    inside: list[Constraint] = []
    for mine in copy.reads:
        variable = mine.variable
        value = next(
            v
            for read, v in zip(reads, values, strict=True)
            if read is mine or same_element(read, mine)
        )
        bound[variable] = value.as_expr()
        inside.append(Constraint(value.as_expr(), *variable.bounds))
    swap = Substitution(bound)
    hidden = [v for v in copy.variables if v not in bound]
    constraints = [c.with_expr(swap(c.expr)) for c in copy.constraints]
    return exact.Relation(
        (),
        (*hidden, *values),
        (*map(swap, copy.results), *[v.as_expr() for v in values]),
        (*inside, *constraints),
    )


def _against_opponent(
    copy: MapCopy, target: tuple[Variable, ...]
) -> tuple[exact.Relation, exact.Relation, int]:
    """The relation with the opponent's variables last, and the box of all values."""
    theirs = [read.variable for read in copy.reads]
    ours = [v for v in copy.variables if v not in theirs]
    wide = [Variable(r.variable.name, *(r.of.clamp or r.variable.bounds)) for r in copy.reads]
    relation = exact.Relation((*ours, *theirs), (), copy.results, copy.constraints)
    return relation, exact.Relation((*ours, *wide, *target), (), (), ()), len(theirs)


# ---------------------------------------------------------------- changes along a dimension


def change(maps: Sequence[IndexingMap], k: int) -> Witness | Unknown | None:
    """Two points that differ only in dimension k, and a result that only the first point has."""
    hull = [(min(b), max(b)) for b in _bounds_by_dimension(maps)]
    first = [Variable(f"x{n}", *bounds) for n, bounds in enumerate(hull)]
    second = [Variable("y", *hull[k]) if n == k else x for n, x in enumerate(first)]
    by_range = any(_reads_by_range(m) for m in maps)
    witness = (_change_of_elements if by_range else _change_of_results)(maps, first, second)
    query = f"cannot decide whether a result changes with dimension {k}, of"
    return with_query(witness, query, MapList(maps))


def _change_of_results(
    maps: Sequence[IndexingMap], first: Sequence[Variable], second: Sequence[Variable]
) -> Witness | Unknown | None:
    """A result of the point `first` that the point `second` lacks."""
    here = [MapCopy.of(m, f"m{n}.") for n, m in enumerate(maps)]
    there = [MapCopy.of(m, f"n{n}.") for n, m in enumerate(maps)]
    sides = [*[(copy, first) for copy in here], *[(copy, second) for copy in there]]
    reads = [read for copy, side in sides for read in _move_reads(copy, side)]
    values = [read.variable for copy, _ in sides for read in copy.reads]
    inputs = tuple(dict.fromkeys((*first, *second, *values)))
    point = unions.only_first(
        [_at(copy, first, inputs) for copy in here],
        [_at(copy, second, inputs) for copy in there],
        list(consistent_values(reads)),
    )
    if point is None or isinstance(point, Unknown):
        return point
    at = dict(zip(inputs, point, strict=False))
    points = [tuple([at[v] for v in side]) for side in (first, second)]
    return _witness(points, [point[len(inputs) :]], read_values(reads, at))


def _bounds_by_dimension(maps: Sequence[IndexingMap]) -> Iterator[list[int]]:
    for column in zip(*[m.dims for m in maps], strict=True):
        yield [bound for v in column for bound in v.bounds]


def _reads_by_range(m: IndexingMap) -> bool:
    return any(v in m.ranges for rt in m.runtime for i in rt.index for v in i.variables())


def _at(copy: MapCopy, point: Sequence[Variable], inputs: tuple[Variable, ...]) -> exact.Relation:
    """``inputs -> results`` of a copy whose dimensions are `point`."""
    own = copy.dims
    swap = Substitution(dict(zip(own, [v.as_expr() for v in point], strict=True)))
    inside = [Constraint(v.as_expr(), *d.bounds) for v, d in zip(point, own, strict=True)]
    constraints = [c.with_expr(swap(c.expr)) for c in copy.constraints]
    hidden = [v for v in copy.variables if v not in own and v not in inputs]
    results = tuple(map(swap, copy.results))
    return exact.Relation(inputs, tuple(hidden), results, (*inside, *constraints))


def _move_reads(copy: MapCopy, point: Sequence[Variable]) -> Iterator[SourceRead]:
    swap = Substitution(dict(zip(copy.dims, [v.as_expr() for v in point], strict=True)))
    for read in copy.reads:
        yield SourceRead(read.of, tuple(map(swap, read.index)), read.variable)


def _change_of_elements(
    maps: Sequence[IndexingMap], first: Sequence[Variable], second: Sequence[Variable]
) -> Witness | Unknown | None:
    """`None` if each map has the same results through the same source elements at both points."""
    inputs = (*first, *[v for v in second if v not in first])
    for m in maps:
        copy = MapCopy.of(m, "m.")
        elements = [e for read in copy.reads for e in (read.value, *read.index)]
        full = MapCopy(copy.variables, copy.dims, (*copy.results, *elements), copy.constraints, ())
        here, there = (_at(full, side, inputs) for side in (first, second))
        point = unions.only_first([here], [there])
        if isinstance(point, Unknown):
            return point
        if point is not None:
            return Unknown("a range variable indexes the source of a runtime variable")
    return None

"""Enumeration of the points of small boxes, and probes of large ones.

Relations with non-affine atoms, which isl cannot represent, are enumerated point by point
(`pairs`).  For the domains that `simplify` handles, all points of a small box are evaluated at once
with NumPy arrays (`enumerated_tight_bounds`): faster than isl, and never `Unknown`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, reduce
from itertools import product
from math import prod
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from simplifier.atoms import Atom, Floor, Variable
from simplifier.constraints import Constraint
from simplifier.exact.context import note_query
from simplifier.exact.encode import Relation
from simplifier.exact.tightening import TightBounds
from simplifier.interval import Interval
from simplifier.linear import Expr, from_atom

MAX_POINTS: Final = 100_000
"""Points of the box of a relation that are looked at one by one, at most."""

MAX_AT_ONCE: Final = 1 << 20
"""Points of a box that are looked at all at once, times the atoms of its constraints, at most; a
quarter of it where no constraint divides, about which isl has an answer in a millisecond."""

Pair: TypeAlias = tuple[tuple[int, ...], tuple[int, ...]]
Array: TypeAlias = npt.NDArray[Any]


def may_be_enumerated(*relations: Relation) -> bool:
    """isl cannot see all of it, and there are few points in the boxes."""
    sizes = [_points_in((*r.inputs, *r.hidden)) for r in relations]
    return sum(sizes) <= MAX_POINTS and not all(map(_is_affine, relations))


def _points_in(variables: Iterable[Variable]) -> int:
    return prod([max(0, v.upper - v.lower + 1) for v in variables])


def _is_affine(relation: Relation) -> bool:
    exprs = (*relation.results, *[c.expr for c in relation.constraints])
    return all(expr.is_affine for expr in exprs)


def pairs(relation: Relation) -> Iterator[Pair]:
    """Each input with each of its results, some more than once.

    A point where something is divided by 0 is not in the relation.
    """
    variables = (*relation.inputs, *relation.hidden)
    count = len(relation.inputs)
    for values in product(*[range(v.lower, v.upper + 1) for v in variables]):
        at = dict(zip(variables, values, strict=True))
        try:
            if all(c.lower <= c.expr.value(at) <= c.upper for c in relation.constraints):
                yield values[:count], tuple([r.value(at) for r in relation.results])
        except ZeroDivisionError:
            continue


def first_difference(first: Relation, second: Relation) -> tuple[Pair, bool] | None:
    """A pair that one relation has alone, and whether it is the first; `None` if they are equal."""
    ours, theirs = set(pairs(first)), set(pairs(second))
    alone = min(ours ^ theirs, default=None)
    return None if alone is None else (alone, alone in ours)


# ---------------------------------------------------------------- some points

PROBE_POINTS: Final = 256
"""Points of a box that are looked at to see what need not be asked."""

SAMPLE_POINTS: Final = 4
"""Of those, how many are looked at first, one by one: most things differ there already."""

MAX_KEPT_EXPRS: Final = 1 << 10
"""Expressions of which a domain's points remember what they are there, at most."""


_EXACT: Final = 1 << 51  # up to here a place in a box is a point in it, in double precision


class Probe(NamedTuple):
    """What some points of a domain show.

    Attributes:
        points: they are in the domain.
        samples: some of them.
        is_tight: all bounds of variables are reached, and no constraint follows from the others.
    """

    points: Points
    samples: Samples
    is_tight: bool

    def varies(self, expr: Expr, unit: int) -> bool:
        """``expr floordiv unit`` has several values in the domain, which fit into 64 bits."""
        if _number_type((expr,)) is object:
            return False
        low, high = self.points.bounds(expr)
        return low // unit != high // unit


@lru_cache(maxsize=32)  # a chain of maps asks about one domain again and again
def probe(variables: tuple[Variable, ...], constraints: tuple[Constraint, ...]) -> Probe | None:
    """What points show that are picked from the box of `variables`, the same ones each time.

    `None` where none of them is in the domain, or numbers get too large.

    >>> d0, d1 = Variable("d0", 0, 999), Variable("d1", 0, 999)
    >>> found = probe((d0, d1), (Constraint(d0 + d1, 0, 1500),))
    >>> found.is_tight, found.varies(d0 + d1, 99), found.varies(d0 + d1, 1501)
    (True, True, False)
    """
    if any(v.is_empty for v in variables) or not all(c.expr.is_affine for c in constraints):
        return None
    if _number_type(_mentioned(variables, constraints)) is object:
        return None
    if any(max(-v.lower, v.upper) > _EXACT for v in variables):
        return None
    places = _places(len(variables))
    box = Points(
        {
            v: (v.lower + np.floor(place * (v.upper - v.lower + 1))).astype(np.int64)
            for v, place in zip(variables, places, strict=True)
        }
    )
    found = _cut(box, constraints)
    if found is None:
        return None
    points, needed = found
    reached = all(points.bounds(v.as_expr()) == v.bounds for v in variables)
    return Probe(points, points.samples(), reached and len(needed) == len(constraints))


@lru_cache(maxsize=32)
def _places(rank: int) -> Array:
    """Points of the unit box, without its upper sides: a third of their coordinates are at ends."""
    random = np.random.default_rng(0)
    places = random.random((rank, PROBE_POINTS))
    ends = random.random((rank, PROBE_POINTS))
    places[ends < 1 / 6] = 0
    places[ends > 5 / 6] = np.nextafter(1, 0)
    return places


# ---------------------------------------------------------------- all points at once


def should_enumerate(variables: Iterable[Variable], constraints: Sequence[Constraint]) -> bool:
    """`enumerated_tight_bounds` and `enumerated_is_empty` give the answer, and sooner than isl."""
    if not all(constraint.expr.is_affine for constraint in constraints):
        return False
    divided = any(constraint.expr.divides for constraint in constraints)
    work = _points_in(variables) * sum([constraint.expr.weight for constraint in constraints])
    return work <= (MAX_AT_ONCE if divided else MAX_AT_ONCE // 4)


def enumerated_tight_bounds(
    variables: tuple[Variable, ...],
    constraints: tuple[Constraint, ...],
    exprs: tuple[Expr, ...],
) -> TightBounds | None:
    """What `simplifier.exact.tightening.tight_bounds` says, read off all points.

    >>> d0, d1 = Variable("d0", 0, 9), Variable("d1", 0, 9)
    >>> both = Constraint(d0 + d1, 0, 4), Constraint(d0 * 2 + d1, 0, 9)
    >>> found = enumerated_tight_bounds((d0, d1), both, (d0 - d1,))
    >>> found.variables, found.exprs, [str(constraint) for constraint in found.constraints]
    (((0, 4), (0, 4)), ((-4, 4),), ['d0 + d1 in [0, 4]'])
    """
    note_query("tight_bounds")
    number = _number_type((*exprs, *_mentioned(variables, constraints)))
    found = _inside(variables, constraints, number)
    if found is None:
        return None
    points, needed = found
    return TightBounds(
        tuple([points.bounds(v.as_expr()) for v in variables]),
        tuple([points.bounds(expr) for expr in exprs]),
        needed,
    )


@lru_cache(maxsize=1)  # one domain is asked about several times in a row; the arrays are large
def _inside(
    variables: tuple[Variable, ...], constraints: tuple[Constraint, ...], number: type
) -> tuple[Points, tuple[Constraint, ...]] | None:
    """`_cut` of the whole box."""
    if any(v.is_empty for v in variables):
        return None
    return _cut(_box(variables, number), constraints)


def _cut(
    box: Points, constraints: Sequence[Constraint]
) -> tuple[Points, tuple[Constraint, ...]] | None:
    """The points of `box` that satisfy `constraints`, and those of them that others do not imply.

    `None` where there are no such points.
    """
    broken = {c: box.broken(c) for c in constraints}
    count = _counted(broken.values())
    inside = count == 0
    if not inside.any():
        return None
    for constraint in sorted(constraints, key=lambda c: c.expr.weight, reverse=True):
        own = broken[constraint]
        if not (own & (count == 1)).any():  # what breaks it breaks another one too
            del broken[constraint]
            count = count - own
    return box.chosen(inside), tuple(broken)


def enumerated_is_empty(
    variables: tuple[Variable, ...], constraints: tuple[Constraint, ...]
) -> bool:
    """No point of the box of `variables` satisfies all `constraints`."""
    note_query("other")
    if any(v.is_empty for v in variables):
        return True
    box = _box(variables, _number_type(_mentioned(variables, constraints)))
    return bool(_counted(map(box.broken, constraints)).all())


class Points:
    """Many points at once: an array for each variable, and so one for each affine expression.

    The arrays are combined by NumPy's rules of broadcasting.
    """

    __slots__ = ("_arrays", "_bounds", "_variables")

    def __init__(self, variables: Mapping[Variable, Array]) -> None:
        self._variables = variables
        self._arrays: dict[Atom, Array] = dict(variables.items())
        self._bounds: dict[Expr, Interval] = {}

    def values(self, expr: Expr) -> Array:
        """What `expr` is at each point."""
        total: Array | int = expr.constant
        terms = [(self._of_atom(atom), c) for atom, c in expr.parts.items()]
        for array, coefficient in sorted(terms, key=lambda term: term[0].size):
            total = total + (array if coefficient == 1 else array * coefficient)
        return np.asarray(total)

    def _of_atom(self, atom: Atom) -> Array:
        found = self._arrays.get(atom)
        if found is None:
            assert isinstance(atom, Floor), f"{from_atom(atom)} is not affine"
            found = self._arrays[atom] = self.values(atom.numerator) // atom.divisor
        return found

    def bounds(self, expr: Expr) -> Interval:
        """The least and the greatest value of `expr`; there are points."""
        found = self._bounds.get(expr)
        if found is None:
            if len(self._bounds) >= MAX_KEPT_EXPRS:
                self._bounds.clear()
                self._arrays = dict(self._variables.items())
            values = self.values(expr)
            found = self._bounds[expr] = int(values.min()), int(values.max())
        return found

    def samples(self) -> Samples:
        """Some of the points; each variable has an array as long as the others'."""
        chosen = {
            v: array[:: max(1, array.size // SAMPLE_POINTS)] for v, array in self._variables.items()
        }
        return Samples({v: array.tolist() for v, array in chosen.items()})

    def broken(self, constraint: Constraint) -> Array:
        """Where `constraint` does not hold."""
        values = self.values(constraint.expr)
        return (values < constraint.lower) | (values > constraint.upper)

    def chosen(self, inside: Array) -> Points:
        """The points for which `inside` is true."""
        if inside.all():
            return self
        shape = np.broadcast_shapes(inside.shape, *[a.shape for a in self._variables.values()])
        where = np.broadcast_to(inside, shape)
        return Points({v: np.broadcast_to(a, shape)[where] for v, a in self._variables.items()})


class Samples:
    """A few points of a domain: for each affine expression, the numbers that it is there.

    >>> d0, d1 = Variable("d0", 0, 9), Variable("d1", 0, 9)
    >>> Samples({d0: [0, 7, 9], d1: [1, 2, 3]}).values((d0 * 2 + d1) // 5)
    [0, 3, 4]
    """

    __slots__ = ("_count", "_numbers", "_variables")

    def __init__(self, variables: Mapping[Variable, list[int]]) -> None:
        self._variables = variables
        self._numbers: dict[Atom, list[int]] = dict(variables.items())
        self._count = min(map(len, variables.values()), default=1)

    def values(self, expr: Expr) -> list[int]:
        """What `expr` is at each point."""
        totals = [expr.constant] * self._count
        for atom, coefficient in expr.parts.items():
            for k, number in enumerate(self._numbers.get(atom) or self._of_floor(atom)):
                totals[k] += coefficient * number
        return totals

    def _of_floor(self, atom: Atom) -> list[int]:
        assert isinstance(atom, Floor), f"{from_atom(atom)} is not affine"
        found = [value // atom.divisor for value in self.values(atom.numerator)]
        if len(self._numbers) >= MAX_KEPT_EXPRS:
            self._numbers = dict(self._variables.items())
        self._numbers[atom] = found
        return found


def _mentioned(
    variables: Iterable[Variable], constraints: Iterable[Constraint]
) -> tuple[Expr, ...]:
    """The expressions of which a domain is made."""
    return (*[v.as_expr() for v in variables], *[c.expr for c in constraints])


def _box(variables: Sequence[Variable], number: type) -> Points:
    """All points of the box of `variables`, each of which is an axis."""
    arrays: dict[Variable, Array] = {}
    for k, v in enumerate(variables):
        along: Array = np.arange(v.lower, v.upper + 1, dtype=number)
        arrays[v] = along.reshape([-1 if j == k else 1 for j in range(len(variables))])
    return Points(arrays)


def _counted(claims: Iterable[Array]) -> Array:
    """How many of `claims` are true at each point."""
    return reduce(np.add, claims, np.zeros((), np.int32))


def _number_type(exprs: Iterable[Expr]) -> type:
    """The smallest integers that hold `exprs` and all that is added up on the way to them."""
    most = max(map(_largest, exprs), default=0)
    if most <= np.iinfo(np.int32).max:
        return np.int32
    return np.int64 if most <= np.iinfo(np.int64).max else object


@lru_cache(maxsize=1 << 12)
def _largest(expr: Expr) -> int:
    """No number that comes up where `expr` is evaluated is larger, whatever its sign."""
    total, inside = abs(expr.constant), 0
    for atom, coefficient in expr.parts.items():
        low, high = atom.bounds
        total += abs(coefficient) * max(1, abs(low), abs(high))
        if isinstance(atom, Floor):
            inside = max(inside, atom.divisor, _largest(atom.numerator))
    return max(total, inside)

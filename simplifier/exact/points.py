"""Enumeration of the points of small boxes, and probes of large ones.

For the domains that `simplify` handles, all points of a small box are evaluated at once with NumPy
arrays (`enumerated_tight_bounds`): faster than isl, and never `Unknown`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache, reduce
from math import prod
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from simplifier.atoms import Atom, Floor, Variable
from simplifier.constraints import Constraint
from simplifier.exact.context import count_query
from simplifier.exact.tightening import TightBounds
from simplifier.interval import Interval
from simplifier.linear import Expr, from_atom
from simplifier.samples import MAX_KEPT_EXPRS, Samples
from simplifier.semiaffine import SemiAffine
from simplifier.shared import atoms_in_order, is_deep

MAX_AT_ONCE: Final = 1 << 20
"""Maximum number of points of a box, times the atoms of its constraints, to evaluate at once.

A quarter of it if no constraint divides: isl answers such queries in a millisecond."""

Array: TypeAlias = npt.NDArray[Any]


def _points_in(variables: Iterable[Variable]) -> int:
    return prod([max(0, v.upper - v.lower + 1) for v in variables])


# ---------------------------------------------------------------- probes

PROBE_POINTS: Final = 256
"""Random points of a box that refute facts before an exact query."""

MAX_PROBED: Final = 1 << 12
"""Maximum number of points of a box for which the probe is all of them: enumeration comes next."""

_FRACTIONS: Final = (0, 0.29, 0.62, 1)
"""Which of these points to evaluate first, one by one: they refute most facts."""

_EXACT: Final = 1 << 51  # bounds up to which double precision selects points inside the box


class Probe(NamedTuple):
    """Some points of a domain, and facts that they prove.

    Attributes:
        points: points of the domain.
        samples: a few of these points.
        is_tight: True if the points reach all bounds of variables, and prove that no constraint is
            implied by the others.
    """

    points: PointArrays
    samples: Samples
    is_tight: bool

    def varies(self, expr: Expr, unit: int) -> bool:
        """Return True if ``expr floordiv unit`` has several values on the points, in 64 bits."""
        if number_type((expr,)) is object:
            return False
        low, high = self.points.bounds(expr)
        return low // unit != high // unit


@lru_cache(maxsize=32)  # a chain of maps has the same domain many times
def probe(variables: tuple[Variable, ...], constraints: tuple[Constraint, ...]) -> Probe | None:
    """Probe a domain with pseudorandom points of the box of `variables`, or all; deterministic.

    Returns:
        The probe; `None` if no point is in the domain, or numbers exceed 64 bits.

    >>> d0, d1 = Variable("d0", 0, 999), Variable("d1", 0, 999)
    >>> points = probe((d0, d1), (Constraint(d0 + d1, 0, 1500),))
    >>> points.is_tight, points.varies(d0 + d1, 99), points.varies(d0 + d1, 1501)
    (True, True, False)
    """
    if any(v.is_empty for v in variables) or not all(c.expr.is_affine for c in constraints):
        return None
    if number_type(_mentioned(variables, constraints)) is object:
        return None
    if any(max(-v.lower, v.upper) > _EXACT for v in variables):
        return None
    if _points_in(variables) <= MAX_PROBED:
        inside = _inside(variables, constraints, number_type(_mentioned(variables, constraints)))
        return inside and _probe_of(*inside, variables, constraints)
    unit_points = _unit_points(len(variables))
    box = PointArrays(
        {
            v: (v.lower + np.floor(coordinates * (v.upper - v.lower + 1))).astype(np.int64)
            for v, coordinates in zip(variables, unit_points, strict=True)
        }
    )
    restricted = _restricted(box, constraints)
    return restricted and _probe_of(*restricted, variables, constraints)


def _probe_of(
    points: PointArrays,
    needed: tuple[Constraint, ...],
    variables: tuple[Variable, ...],
    constraints: tuple[Constraint, ...],
) -> Probe:
    reached = all(points.bounds(v.as_expr()) == v.bounds for v in variables)
    return Probe(points, points.samples(), reached and len(needed) == len(constraints))


@lru_cache(maxsize=32)
def _unit_points(rank: int) -> Array:
    """Points of the box ``[0, 1)^rank``; a third of their coordinates are its extremes."""
    random = np.random.default_rng(0)
    points = random.random((rank, PROBE_POINTS))
    ends = random.random((rank, PROBE_POINTS))
    points[ends < 1 / 6] = 0
    points[ends > 5 / 6] = np.nextafter(1, 0)
    return points


# ---------------------------------------------------------------- enumeration with arrays


def should_enumerate(variables: Iterable[Variable], constraints: Sequence[Constraint]) -> bool:
    """Return True if enumeration (`enumerated_tight_bounds`) is faster than isl."""
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
    """Return the same as `simplifier.exact.tightening.tight_bounds`, by enumeration.

    >>> d0, d1 = Variable("d0", 0, 9), Variable("d1", 0, 9)
    >>> both = Constraint(d0 + d1, 0, 4), Constraint(d0 * 2 + d1, 0, 9)
    >>> tight = enumerated_tight_bounds((d0, d1), both, (d0 - d1,))
    >>> tight.variables, tight.exprs, [str(constraint) for constraint in tight.constraints]
    (((0, 4), (0, 4)), ((-4, 4),), ['d0 + d1 in [0, 4]'])
    """
    count_query("tight_bounds")
    number = number_type((*exprs, *_mentioned(variables, constraints)))
    restricted = _inside(variables, constraints, number)
    if restricted is None:
        return None
    points, needed = restricted
    return TightBounds(
        tuple([points.bounds(v.as_expr()) for v in variables]),
        tuple([points.bounds(expr) for expr in exprs]),
        needed,
    )


@lru_cache(maxsize=1)  # consecutive queries have the same domain; the arrays are large
def _inside(
    variables: tuple[Variable, ...], constraints: tuple[Constraint, ...], number: type
) -> tuple[PointArrays, tuple[Constraint, ...]] | None:
    """`_restricted` for all points of the box of `variables`."""
    if any(v.is_empty for v in variables):
        return None
    return _restricted(box_arrays(variables, number), constraints)


def _restricted(
    box: PointArrays, constraints: Sequence[Constraint]
) -> tuple[PointArrays, tuple[Constraint, ...]] | None:
    """The points of `box` that satisfy `constraints`, and the irredundant constraints.

    `None` if there are no such points.
    """
    broken = {c: box.broken(c) for c in constraints}
    count = _counted(broken.values())
    inside = count == 0
    if not inside.any():
        return None
    for constraint in sorted(constraints, key=lambda c: c.expr.weight, reverse=True):
        own = broken[constraint]
        if not (own & (count == 1)).any():  # every violation also violates another constraint
            del broken[constraint]
            count = count - own
    return box.chosen(inside), tuple(broken)


def enumerated_is_empty(
    variables: tuple[Variable, ...], constraints: tuple[Constraint, ...]
) -> bool:
    """Return True if no point of the box satisfies all `constraints`, by enumeration."""
    count_query("other")
    if any(v.is_empty for v in variables):
        return True
    box = box_arrays(variables, number_type(_mentioned(variables, constraints)))
    return bool(_counted(map(box.broken, constraints)).all())


class PointArrays:
    """Many points: one array of values for each variable and each affine expression.

    The arrays broadcast as in NumPy.
    """

    __slots__ = ("_arrays", "_bounds", "_variables")

    def __init__(self, variables: Mapping[Variable, Array]) -> None:
        self._variables = variables
        self._arrays: dict[Atom, Array] = dict(variables.items())
        self._bounds: dict[Expr, Interval] = {}

    def values(self, expr: Expr) -> Array:
        """The values of `expr` at the points."""
        total: Array | int = expr.constant
        terms = [(self._of_atom(atom), c) for atom, c in expr.parts.items()]
        for array, coefficient in sorted(terms, key=lambda term: term[0].size):
            total = total + (array if coefficient == 1 else array * coefficient)
        return np.asarray(total)

    def _of_atom(self, atom: Atom) -> Array:
        array = self._arrays.get(atom)
        if array is None:
            assert isinstance(atom, Floor), f"{from_atom(atom)} is not affine"
            array = self._arrays[atom] = self.values(atom.numerator) // atom.divisor
        return array

    def bounds(self, expr: Expr) -> Interval:
        """The minimum and maximum of `expr`; there must be points."""
        bounds = self._bounds.get(expr)
        if bounds is None:
            if len(self._bounds) >= MAX_KEPT_EXPRS:
                self._bounds.clear()
                self._arrays = dict(self._variables.items())
            values = self.values(expr)
            bounds = self._bounds[expr] = int(values.min()), int(values.max())
        return bounds

    def samples(self) -> Samples:
        """A few of the points."""
        shape = np.broadcast_shapes(*[a.shape for a in self._variables.values()])
        last = prod(shape) - 1
        chosen = sorted({int(last * fraction) for fraction in _FRACTIONS})
        arrays = {v: np.broadcast_to(a, shape).flat[chosen] for v, a in self._variables.items()}
        return Samples({v: array.tolist() for v, array in arrays.items()})

    def broken(self, constraint: Constraint) -> Array:
        """True at the points that violate `constraint`."""
        values = self.values(constraint.expr)
        return (values < constraint.lower) | (values > constraint.upper)

    def chosen(self, inside: Array) -> PointArrays:
        """The points at which `inside` is true."""
        if inside.all():
            return self
        shape = np.broadcast_shapes(inside.shape, *[a.shape for a in self._variables.values()])
        where = np.broadcast_to(inside, shape)
        return PointArrays(
            {v: np.broadcast_to(a, shape)[where] for v, a in self._variables.items()}
        )


def _mentioned(
    variables: Iterable[Variable], constraints: Iterable[Constraint]
) -> tuple[Expr, ...]:
    """The expressions of a domain: its variables and constraints."""
    return (*[v.as_expr() for v in variables], *[c.expr for c in constraints])


def box_arrays(variables: Sequence[Variable], number: type) -> PointArrays:
    """All points of the box of `variables`; each variable is an axis."""
    arrays: dict[Variable, Array] = {}
    for k, v in enumerate(variables):
        along: Array = np.arange(v.lower, v.upper + 1, dtype=number)
        arrays[v] = along.reshape([-1 if j == k else 1 for j in range(len(variables))])
    return PointArrays(arrays)


def _counted(conditions: Iterable[Array]) -> Array:
    """The number of `conditions` that are true at each point."""
    return reduce(np.add, conditions, np.zeros((), np.int32))


def number_type(exprs: Iterable[Expr]) -> type:
    """The smallest integer type for the values of `exprs` and all intermediate values.

    >>> d0 = Variable("d0", 0, 9).as_expr()
    >>> number_type([d0 * 2]), number_type([d0 * 2**31]), number_type([(d0 * 2**62 + 1) // 3])
    (<class 'numpy.int32'>, <class 'numpy.int64'>, <class 'object'>)
    """
    largest = max(map(_largest, exprs), default=0)
    if largest <= np.iinfo(np.int32).max:
        return np.int32
    return np.int64 if largest <= np.iinfo(np.int64).max else object


def size_bits(expr: Expr) -> int:
    """Number of bits of the largest absolute value that occurs in the evaluation of `expr`."""
    return _largest(expr).bit_length()


@lru_cache(maxsize=1 << 11)
def _largest(expr: Expr) -> int:
    """An upper bound of the absolute values that occur in the evaluation of `expr`."""
    if is_deep(expr):
        below = [operand for atom in atoms_in_order([expr]) for operand in atom.operands]
        return max(_largest_of([], part) for part in (expr, *below))
    return _largest_of([o for atom in expr.parts for o in atom.operands], expr)


def _largest_of(operands: Iterable[Expr], expr: Expr) -> int:
    """The same of `expr` without the operands of its atoms, and of `operands`."""
    total, inside = abs(expr.constant), max(map(_largest, operands), default=0)
    for atom, coefficient in expr.parts.items():
        low, high = atom.bounds
        total += abs(coefficient) * max(1, abs(low), abs(high))
        if isinstance(atom, Floor):
            inside = max(inside, atom.divisor)
        elif isinstance(atom, SemiAffine) and atom.operator == "*":
            factors = [max(1, *map(abs, operand.bounds)) for operand in atom.operands]
            inside = max(inside, prod(factors))
    return max(total, inside)

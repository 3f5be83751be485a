"""Enumeration of the points of small boxes, and probes of large ones.

For the domains that `simplify` handles, all points of a small box are evaluated at once with NumPy
arrays (`enumerated_tight_bounds`): faster than isl, and never `Unknown`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import prod
from typing import Final, NamedTuple

import numpy as np

from simplifier.atoms import Variable, point_count
from simplifier.constraints import Constraint, droppable_first
from simplifier.exact.context import count_query
from simplifier.exact.point_arrays import Array, PointArrays, box_arrays, number_type
from simplifier.exact.tightening import TightBounds
from simplifier.interval import Interval
from simplifier.linear import Expr
from simplifier.samples import Samples

MAX_AT_ONCE = 1 << 20  # not `Final`, which compiled modules inline: tests lower it
"""Maximum number of points of a box, times the atoms of its constraints, to evaluate at once.

A quarter of it if no constraint divides: isl answers such queries in a millisecond."""


# ---------------------------------------------------------------- probes

PROBE_POINTS: Final = 256
"""Random points of a box that refute facts before an exact query."""

MAX_PROBED = 1 << 12  # not `Final` either
"""Maximum number of points of a box for which the probe is all of them: enumeration comes next."""

_EXACT: Final = 1 << 51  # bounds up to which double precision selects points inside the box


class Probe(NamedTuple):
    """Some points of a domain, and facts that they prove.

    Attributes:
        points: points of the domain.
        samples: a few of these points.
        is_tight: True if the points reach all bounds of variables, and prove that no constraint is
            implied by the others and these bounds.
        is_complete: True if the points are all of the domain.

    >>> from simplifier import Variable
    >>> from simplifier.exact import probe
    >>> known = probe((Variable("i", 0, 4),), ())
    >>> known.is_tight, known.is_complete
    (True, True)
    """

    points: PointArrays
    samples: Samples
    is_tight: bool
    is_complete: bool

    def varies(self, expr: Expr, unit: int) -> bool:
        """Return True if ``expr floordiv unit`` has several values on the points, in 64 bits.

        >>> from simplifier import Variable
        >>> from simplifier.exact import probe
        >>> i = Variable("i", 0, 4)
        >>> known = probe((i,), ())
        >>> known.varies(i.expr, 4), known.varies(i.expr, 5)  # i floordiv 5 is always 0
        (True, False)
        """
        if number_type((expr,)) is object:
            return False
        low, high = self.points.bounds(expr)
        return low // unit != high // unit


def probe(variables: tuple[Variable, ...], constraints: tuple[Constraint, ...]) -> Probe | None:
    """Probe a domain with pseudorandom points of the box of `variables`, or all; deterministic.

    Returns:
        The probe, memoised; `None` if it has no point, numbers exceed 64 bits, the variables of a
        large box exceed 2^51, or a constraint is not affine.

    >>> d0, d1 = Variable("d0", 0, 999), Variable("d1", 0, 999)
    >>> points = probe((d0, d1), (Constraint(d0 + d1, 0, 1500),))
    >>> points.is_tight, points.varies(d0 + d1, 99), points.varies(d0 + d1, 1501)
    (True, True, False)
    """
    memo = probe_memo(variables, frozenset(constraints))
    if not memo:
        memo.append(_new_probe(variables, constraints))
    return memo[0]


@lru_cache(maxsize=32)  # a chain of maps has the same domain many times
def probe_memo(
    variables: tuple[Variable, ...], constraints: frozenset[Constraint]
) -> list[Probe | None]:
    """The memoised probe of a domain in a list, which is empty until `probe` computes it."""
    return []


def keep_probe(
    variables: tuple[Variable, ...],
    constraints: tuple[Constraint, ...],
    *,
    enumerated: tuple[tuple[Variable, ...], tuple[Constraint, ...]],
) -> None:
    """Memoise the probe of a domain that has the points of an `enumerated` one.

    Args:
        variables: the variables of the enumerated domain, in order, with exact bounds.
        constraints: its irredundant constraints, normalised with these bounds.
        enumerated: the variables and the constraints of that domain.

    >>> from simplifier import Variable
    >>> from simplifier.constraints import Constraint
    >>> from simplifier.exact import keep_probe, probe
    >>> i, j = Variable("i", 0, 9), Variable("j", 2, 4)
    >>> keep_probe((j,), (), enumerated=((i,), (Constraint(i.expr * 2, 3, 9),)))  # 2 <= i <= 4
    >>> probe((j,), ()).is_complete
    True
    """
    memo = probe_memo(variables, frozenset(constraints))
    if memo or number_type(_domain_exprs(variables, constraints)) is object:
        return
    known = probe(*enumerated)
    if known is None or not known.is_complete:
        restricted = _inside(*enumerated)
        if restricted is None or prod(restricted.inside.shape) > MAX_PROBED:
            return
        known = _probe_of(restricted.inside.of_type(np.int64), is_tight=True, is_complete=True)
    old = enumerated[0]
    points, samples = known.points.rename(old, variables), known.samples.rename(old, variables)
    memo.append(Probe(points, samples, is_tight=True, is_complete=True))


def _probe_of(points: PointArrays, *, is_tight: bool, is_complete: bool) -> Probe:
    return Probe(points, points.samples(), is_tight, is_complete)


def _new_probe(
    variables: tuple[Variable, ...], constraints: tuple[Constraint, ...]
) -> Probe | None:
    points = point_count(variables)
    if not points or False in [c.expr.is_affine for c in constraints]:
        return None
    if number_type(_domain_exprs(variables, constraints)) is object:
        return None
    is_complete = points <= MAX_PROBED
    if is_complete:
        restricted = _inside(variables, constraints)
    elif True in [max(-v.lower, v.upper) > _EXACT for v in variables]:
        return None
    else:
        restricted = _restrict_box(_random_points(variables), constraints, np.int64)
    if restricted is None:
        return None
    inside = restricted.inside
    is_tight = all(inside.bounds(v.as_expr()) == v.bounds for v in variables)
    if is_tight:
        is_tight = False not in _violated_alone(restricted.broken, restricted.number_broken)
    return _probe_of(inside, is_tight=is_tight, is_complete=is_complete)


def _random_points(variables: tuple[Variable, ...]) -> PointArrays:
    """Pseudorandom points of a box, many at its faces."""
    unit_points = _unit_points(len(variables))
    arrays = {
        v: (v.lower + np.floor(coordinates * v.size)).astype(np.int64)
        for v, coordinates in zip(variables, unit_points, strict=True)
    }
    return PointArrays(arrays, (PROBE_POINTS,))


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
    """Return True if enumeration (`enumerated_tight_bounds`) is faster than isl.

    >>> from simplifier import Variable
    >>> from simplifier.constraints import Constraint
    >>> from simplifier.exact import should_enumerate
    >>> small, large = Variable("i", 0, 9), Variable("j", 0, 10**9)
    >>> [should_enumerate([v], [Constraint(v.expr * 2, 3, 9)]) for v in (small, large)]
    [True, False]
    """
    if False in [constraint.expr.is_affine for constraint in constraints]:
        return False
    divided = any(constraint.expr.divides for constraint in constraints)
    work = point_count(variables) * sum([constraint.expr.weight for constraint in constraints])
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
    restricted = _inside(variables, constraints)
    if restricted is None:
        return None
    points = restricted.inside
    if number_type(exprs) is object:
        points = points.of_type(object)
    bounds = tuple([points.bounds(v.as_expr()) for v in variables])
    return TightBounds(
        bounds,
        tuple([points.bounds(expr) for expr in exprs]),
        _irredundant(constraints, restricted.within(variables, bounds)),
    )


def probed_tight_bounds(
    variables: tuple[Variable, ...],
    constraints: tuple[Constraint, ...],
    exprs: tuple[Expr, ...],
) -> TightBounds | None:
    """Return `enumerated_tight_bounds` if a tight probe has all points, else `None`.

    >>> from simplifier import Variable
    >>> from simplifier.exact import probed_tight_bounds
    >>> i = Variable("i", 0, 4)
    >>> probed_tight_bounds((i,), (), (i.expr * 2,)).exprs
    ((0, 8),)
    """
    known = probe(variables, constraints)
    if known is None or not (known.is_tight and known.is_complete):
        return None
    if number_type(exprs) is object:
        return None
    bounds = tuple([v.bounds for v in variables])
    return TightBounds(bounds, tuple([known.points.bounds(e) for e in exprs]), constraints)


class _Restricted(NamedTuple):
    """The points of a domain among those of a box.

    Attributes:
        inside: the points of the domain; there are some.
        broken: for each constraint, an array: true at the points of the box that violate it.
        number_broken: the number of constraints that each point of the box violates.
    """

    inside: PointArrays
    broken: Array
    number_broken: Array

    def within(self, variables: Iterable[Variable], bounds: Iterable[Interval]) -> _Restricted:
        """The same of all points of the box of `variables`, for the smaller box of `bounds`."""
        pairs = zip(variables, bounds, strict=True)
        axes = [slice(low - v.lower, high - v.lower + 1) for v, (low, high) in pairs]
        broken = self.broken[(slice(None), *axes)]
        return _Restricted(self.inside, broken, self.number_broken[tuple(axes)])


def _irredundant(
    constraints: tuple[Constraint, ...], restricted: _Restricted
) -> tuple[Constraint, ...]:
    """Drop constraints that the others imply at the points of the box, in `droppable_first`."""
    alone = _violated_alone(restricted.broken, restricted.number_broken)
    if False not in alone:
        return constraints
    place = {constraint: k for k, constraint in enumerate(constraints)}
    number = restricted.number_broken
    for constraint in droppable_first(constraints):
        own = restricted.broken[place[constraint]]
        if not alone[place[constraint]] and not (own & (number == 1)).any():
            del place[constraint]
            number = number - own
    return tuple([constraint for constraint in constraints if constraint in place])


def _violated_alone(broken: Array, number_broken: Array) -> list[bool]:
    """For each constraint, whether some point violates it and no other one."""
    alone = (broken & (number_broken == 1)).any(axis=tuple(range(1, broken.ndim)))
    violated: list[bool] = alone.tolist()
    return violated


@lru_cache(maxsize=1)  # consecutive queries have the same domain; the arrays are large
def _inside(
    variables: tuple[Variable, ...], constraints: tuple[Constraint, ...]
) -> _Restricted | None:
    """`_restrict_box` for all points of the box of `variables`."""
    if any(v.is_empty for v in variables):
        return None
    number = number_type(_domain_exprs(variables, constraints))
    return _restrict_box(box_arrays(variables, number), constraints, number)


def _restrict_box(
    box: PointArrays, constraints: tuple[Constraint, ...], number: type
) -> _Restricted | None:
    """The points of `box` that satisfy `constraints`; `None` if there are none.

    Their values have 64 bits, or are Python's integers if `number` is `object`.
    """
    broken = box.violations(constraints)
    number_broken = np.add.reduce(broken, axis=0, dtype=np.int32)
    inside = np.flatnonzero(number_broken == 0)
    if not inside.size:
        return None
    points = box.at(inside).of_type(object if number is object else np.int64)
    return _Restricted(points, broken, number_broken)


def enumerated_is_empty(
    variables: tuple[Variable, ...], constraints: tuple[Constraint, ...]
) -> bool:
    """Return True if no point of the box satisfies all `constraints`, by enumeration.

    >>> from simplifier import Variable
    >>> from simplifier.constraints import Constraint
    >>> from simplifier.exact import enumerated_is_empty
    >>> i = Variable("i", 0, 9)
    >>> enumerated_is_empty((i,), (Constraint(i.expr * 2, 3, 3),))
    True
    """
    count_query("other")
    if any(v.is_empty for v in variables):
        return True
    box = box_arrays(variables, number_type(_domain_exprs(variables, constraints)))
    return bool(np.logical_or.reduce(box.violations(constraints)).all())


def _domain_exprs(
    variables: Iterable[Variable], constraints: Iterable[Constraint]
) -> tuple[Expr, ...]:
    """The expressions of a domain: its variables and constraints."""
    return (*[v.as_expr() for v in variables], *[c.expr for c in constraints])

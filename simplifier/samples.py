"""A few points of a domain, without arrays and without ISL.

They show that expressions vary, and that the bounds of variables are exact: most queries need no
more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from simplifier.atoms import Atom, Floor, Variable
from simplifier.constraints import Constraint
from simplifier.interval import Interval, scale
from simplifier.linear import Expr, from_atom

MAX_KEPT_EXPRS: Final = 1 << 10
"""Maximum number of expressions whose values on the points are memoised."""


class Samples:
    """A few points of a domain: a list of values for each affine expression.

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
        """The values of `expr` at the points."""
        totals = [expr.constant] * self._count
        for atom, coefficient in expr.parts.items():
            for k, number in enumerate(self._numbers.get(atom) or self._of_floor(atom)):
                totals[k] += coefficient * number
        return totals

    def rename(self, old: Iterable[Variable], new: Iterable[Variable]) -> Samples:
        """The same points with `new` variables for the `old` ones, in order."""
        pairs = zip(old, new, strict=True)
        return Samples({now: self._variables[v] for v, now in pairs})

    def _of_floor(self, atom: Atom) -> list[int]:
        assert isinstance(atom, Floor), f"{from_atom(atom)} is not affine"
        values = [value // atom.divisor for value in self.values(atom.numerator)]
        if len(self._numbers) >= MAX_KEPT_EXPRS:
            self._numbers = dict(self._variables.items())
        self._numbers[atom] = values
        return values


def extreme_samples(variables: Sequence[Variable], constraint: Constraint) -> Samples | None:
    """Return points that satisfy `constraint` and reach every bound of every variable.

    `None` if the constrained expression is not a sum of variables, or if the search misses a bound.
    It chooses the values one by one, those with large coefficients first, so it misses none where
    each coefficient is at most the range of the further terms plus one.

    >>> d0, d1 = Variable("d0", 0, 10), Variable("d1", 0, 127)
    >>> extreme_samples([d0, d1], Constraint(d0 * 128 + d1, 0, 1299)).values(d0 * 128 + d1)
    [0, 1299, 1279]
    """
    terms: list[_ScaledTerm] = []
    for atom, coefficient in constraint.expr.parts.items():
        if not isinstance(atom, Variable):
            return None
        terms.append((atom, coefficient, *scale(atom.bounds, coefficient)))
    terms.sort(key=lambda term: -abs(term[1]))
    offset = constraint.expr.constant
    bounds = constraint.lower - offset, constraint.upper - offset
    lowest, highest = {v: v.lower for v in variables}, {v: v.upper for v in variables}
    points: list[dict[Variable, int]] = []
    for variable in variables:
        for ends in (lowest, highest):
            if ends[variable] not in [point[variable] for point in points]:
                point = _nearest_point(terms, bounds, ends, variable)
                if point is None:
                    return None
                points.append(point)
    return Samples({v: [point[v] for point in points] for v in variables})


_ScaledTerm: TypeAlias = tuple[Variable, int, int, int]
"""A variable, its coefficient, and the bounds of the variable multiplied by it."""


def _nearest_point(
    terms: Sequence[_ScaledTerm],
    bounds: Interval,
    wanted: Mapping[Variable, int],
    fixed: Variable,
) -> dict[Variable, int] | None:
    """A point with the sum of `terms` in `bounds`, near the values `wanted`; `None` if not found.

    `fixed` has the wanted value.
    """
    low, high = bounds  # of the sum of the terms whose value is open
    for variable, coefficient, lower, upper in terms:
        if variable is fixed:
            lower = upper = coefficient * wanted[variable]
        low, high = low - upper, high - lower
    point = {**wanted}
    for variable, coefficient, lower, upper in terms:  # many: no calls
        value = wanted[variable]
        if variable is fixed:
            lower = upper = coefficient * value
        low, high = low + upper, high + lower  # of this term
        if low > lower:
            lower = low
        if high < upper:
            upper = high
        if coefficient > 0:
            lower, upper = -(-lower // coefficient), upper // coefficient
        else:
            lower, upper = -(upper // -coefficient), -lower // -coefficient
        if lower > upper:
            return None
        value = lower if value < lower else upper if value > upper else value
        point[variable] = value
        low, high = low - coefficient * value, high - coefficient * value
    return point if low <= 0 <= high else None

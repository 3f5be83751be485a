"""Bands: pairs of indices whose sum or difference has bounds, as a causal mask leaves of scores.

The elements of a tile with ``lower <= x + s * y <= upper``, where ``s`` is 1 or -1, are the part of
a rectangle between two diagonals.  With ``A`` and ``B`` indices from 0, the pairs of a sum of at
most ``t`` are ``T(t) - T(t - A) - T(t - B) + T(t - A - B)``, where ``T(t)`` of them have it without
upper bounds of the indices: ``(t + 1) * (t + 2) / 2``, or 0 if ``t < 0``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from indexing.maps.indexing_map import Constraint, IndexingMap
from indexing.tiling.loops.axes import Axes, IntArray, OverAxes, joint_axes
from indexing.tiling.loops.sides import MapComponent, StepSide, TileRanges
from indexing.tiling.loops.step_sets import ProductUnion, StepSets
from simplifier.atoms import Variable
from simplifier.linear import Expr


@dataclass(frozen=True, slots=True)
class StepBand:
    """The pairs of two indices within a band, for each tile of some axes.

    Attributes:
        sides: the indices along both dimensions of the array, without those that have no partner.
        count: the number of pairs of each tile.
    """

    sides: tuple[StepSide, StepSide]
    count: OverAxes


class _Term(NamedTuple):
    """``sign * variable + constant``."""

    variable: Variable
    sign: int
    constant: int


class _PairBounds(NamedTuple):
    """``low <= factors[0] * x + factors[1] * y <= high``; the first factor except 0 is 1."""

    factors: tuple[int, int]
    low: int
    high: int


def band_of(read: IndexingMap, component: MapComponent, ranges: TileRanges) -> StepBand | None:
    """Return the band of two results of a map; None if a component is none.

    Args:
        read: the map to the elements of an array.
        component: of the map.
        ranges: the values of its variables.
    """
    terms = _terms(read, component)
    if terms is None:
        return None
    spans = [ranges.variable_span(term.variable) for term in terms]
    if spans[0].axes == spans[1].axes:
        return None
    joint = joint_axes([span.axes for span in spans])
    limits = [span.bounds_along(joint) for span in spans]
    shared: dict[int, tuple[int, int]] = {}  # the bounds of x + s * y, by s
    for constraint in component.constraints:
        bounds = _pair_bounds(constraint, terms)
        if bounds is None:
            return None
        (of_first, of_second), low, high = bounds
        if of_first and of_second:
            known = shared.get(of_second, (low, high))
            shared[of_second] = max(low, known[0]), min(high, known[1])
        else:
            k = 0 if of_first else 1
            limits[k] = np.maximum(limits[k][0], low), np.minimum(limits[k][1], high)
    if len(shared) != 1:
        return None
    ((sign, of_both),) = shared.items()
    return _band(terms, limits, sign, of_both, joint)


def _terms(read: IndexingMap, component: MapComponent) -> tuple[_Term, _Term] | None:
    """Return the two results of a component if each has a variable of its own."""
    terms = [_term(read.results[k]) for k in component.results]
    if len(terms) != 2:
        return None
    first, second = terms
    if first is None or second is None or first.variable == second.variable:
        return None
    return first, second


def _pair_bounds(constraint: Constraint, terms: tuple[_Term, _Term]) -> _PairBounds | None:
    """Return a constraint as bounds of one variable, or of the sum or difference of both."""
    parts = constraint.expr.parts
    first, second = [parts.get(term.variable, 0) for term in terms]
    if len(parts) != bool(first) + bool(second) or not {first, second} <= {-1, 0, 1}:
        return None
    low = constraint.lower - constraint.expr.constant
    high = constraint.upper - constraint.expr.constant
    if (first or second) < 0:
        return _PairBounds((-first, -second), -high, -low)
    return _PairBounds((first, second), low, high)


def _term(expr: Expr) -> _Term | None:
    """Return a result that is a variable, its negative, or one of them and a constant."""
    if len(expr.parts) != 1:
        return None
    ((atom, factor),) = expr.parts.items()
    if not isinstance(atom, Variable) or factor not in (1, -1):
        return None
    return _Term(atom, factor, expr.constant)


def _band(
    terms: tuple[_Term, _Term],
    limits: Sequence[tuple[IntArray, IntArray]],
    sign: int,
    bounds: tuple[int, int],
    joint: tuple[int, ...],
) -> StepBand:
    """Return the band of ``lower <= x + sign * y <= upper``."""
    (x_low, x_high), (y_low, y_high) = limits
    if sign < 0:
        y_low, y_high = -y_high, -y_low
    lower, upper = bounds
    counts = [np.maximum(high - low + 1, 0) for low, high in ((x_low, x_high), (y_low, y_high))]
    start = x_low + y_low
    pairs = _pairs(upper - start, *counts) - _pairs(lower - 1 - start, *counts)
    pairs = np.maximum(pairs, 0)
    hulls = [
        (np.maximum(x_low, lower - y_high), np.minimum(x_high, upper - y_low)),
        (np.maximum(y_low, lower - x_high), np.minimum(y_high, upper - x_low)),
    ]
    if sign < 0:
        hulls[1] = -hulls[1][1], -hulls[1][0]
    sides = []
    for term, (low, high) in zip(terms, hulls, strict=True):
        ends = (low, high) if term.sign > 0 else (-high, -low)
        low, high, used = np.broadcast_arrays(ends[0], ends[1], pairs > 0)
        low, high = low + term.constant, high + term.constant
        sides.append(StepSide(joint, low, np.where(used, high, low - 1), 1))
    return StepBand(
        (sides[0], sides[1]), OverAxes(joint, np.broadcast_to(pairs, sides[0].low.shape))
    )


def _pairs(most: IntArray, first: IntArray, second: IntArray) -> IntArray:
    """Return the pairs of so many indices from 0 whose sum is at most a number.

    >>> [int(_pairs(*map(np.array, (t, 2, 3)))) for t in range(-1, 5)]
    [0, 1, 3, 5, 6, 6]
    """

    def without_bound(t: IntArray) -> IntArray:
        return np.where(t < 0, 0, (t + 1) * (t + 2) // 2)

    both = without_bound(most) - without_bound(most - first) - without_bound(most - second)
    return both + without_bound(most - first - second)


class BandedUnion(ProductUnion):
    """The elements of one read: a product of sides, two of which are those of a band.

    Two tiles cut a band by rectangles without a common element, so they have the same elements only
    if both are empty, or if both have the same rectangle.

    Args:
        sides: the sides by dimension, then gates.
        places: the dimensions of the band.
        band: the band.
        all_axes: all axes by number.
        rank: the number of dimensions of the array.
    """

    def __init__(
        self,
        sides: tuple[StepSide, ...],
        places: tuple[int, int],
        band: StepBand,
        all_axes: Axes,
        rank: int,
    ) -> None:
        super().__init__([sides], all_axes, rank)
        self._band = band
        self._others = tuple([side for k, side in enumerate(sides) if k not in places])

    def count(self) -> OverAxes:
        number = self._band.count.along(self.axes)
        for side in self._others:
            number = number * side.count.along(self.axes)
        return OverAxes(self.axes, np.broadcast_to(number, self.shape))

    def boxes(self) -> OverAxes:
        return super().count()

    def largest(self) -> int:
        others = ProductUnion([self._others], self.all_axes, len(self._others))
        if set(others.axes).intersection(self._band.count.axes):
            return StepSets.largest(self)
        return others.largest() * int(self._band.count.values.max(initial=0))

    def is_largest_at(self, position: int) -> bool:
        return StepSets.is_largest_at(self, position)

    @property
    def are_boxes(self) -> bool:
        return bool(np.all(self.boxes().values == self.count().values))

    def loaded(self, along: Sequence[int]) -> int:
        return StepSets.loaded(self, along)

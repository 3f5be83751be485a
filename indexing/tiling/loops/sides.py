"""Sides: the indices along one dimension of an array that each tile reads, as progressions.

The elements that a tile reads are a product of sides if the results of a map have no variables in
common, or if they are digits of one number of which a tile has all combinations.  Each side is a
progression of indices, with bounds that depend on the tile.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from indexing.maps.indexing_map import Constraint, IndexingMap
from indexing.tiling.loops.axes import Axes, IntArray, OverAxes, joint_axes
from simplifier.atoms import Floor, Variable, inside_atoms
from simplifier.linear import Expr, as_expr, from_atom


@dataclass(frozen=True)
class StepSide:
    """Indices ``low, low + stride, …, high`` for each tile of some axes; none if ``high < low``."""

    axes: tuple[int, ...]
    low: IntArray
    high: IntArray
    stride: int

    @cached_property
    def count(self) -> OverAxes:
        """The number of indices of each tile."""
        return OverAxes(self.axes, np.maximum((self.high - self.low) // self.stride + 1, 0))

    def bounds_along(self, joint: Sequence[int]) -> tuple[IntArray, IntArray]:
        """Return the bounds with one dimension for each axis of `joint`."""
        low, high = OverAxes(self.axes, self.low), OverAxes(self.axes, self.high)
        return low.along(joint), high.along(joint)


def intersect_sides(first: StepSide, second: StepSide) -> StepSide | None:
    """Return the common indices; None if the strides differ."""
    if first.stride != second.stride:
        return None
    joint = joint_axes([first.axes, second.axes])
    (low, high), (low2, high2) = first.bounds_along(joint), second.bounds_along(joint)
    both_low, both_high = np.maximum(low, low2), np.minimum(high, high2)
    if first.stride > 1:
        apart = (low - low2) % first.stride != 0
        both_high = np.where(apart, both_low - 1, both_high)
    both_low, both_high = np.broadcast_arrays(both_low, both_high)
    return StepSide(joint, both_low, both_high, first.stride)


class _Span(NamedTuple):
    """Values of an expression: all of ``low, low + stride, …, high``."""

    axes: tuple[int, ...]
    low: IntArray
    high: IntArray
    stride: int


class TileRanges:
    """The values of the variables of a map in each tile.

    Args:
        axes: the axes by number.
        numbers: the axis of each variable that has one; the others take all their values.
    """

    def __init__(self, axes: Axes, numbers: Mapping[Variable, int]) -> None:
        self._axes, self._numbers = axes, numbers

    def span(self, expr: Expr) -> _Span | None:
        """Return the values of an expression in each tile; None if they may have gaps."""
        remainder = self._remainder(expr)
        if remainder is not None:
            return remainder
        total = _Span((), np.array(expr.constant), np.array(expr.constant), 0)
        seen: set[Variable] = set()
        spans: list[tuple[int, _Span]] = []
        for atom, coefficient in expr.parts.items():
            own = [atom] if isinstance(atom, Variable) else inside_atoms(from_atom(atom))
            if seen.intersection(own):
                return None
            seen.update(own)
            if isinstance(atom, Variable):
                spans.append((coefficient, self._variable(atom)))
            elif isinstance(atom, Floor):
                inner = self.span(atom.numerator)
                if inner is None or inner.stride > atom.divisor:
                    return None
                low, high = inner.low // atom.divisor, inner.high // atom.divisor
                high = np.where(inner.high < inner.low, low - 1, high)
                spans.append((coefficient, _Span(inner.axes, low, high, 1)))
            else:
                return None
        return _sum(total, spans)

    def variable_span(self, variable: Variable) -> StepSide:
        """Return the values of a variable in each tile."""
        number = self._numbers.get(variable)
        if number is None:
            return StepSide((), np.array(variable.lower), np.array(variable.upper), 1)
        low, high = self._axes[number].ranges(variable.lower, variable.upper)
        return StepSide((number,), low, high, 1)

    def _variable(self, variable: Variable) -> _Span:
        side = self.variable_span(variable)
        return _Span(side.axes, side.low, side.high, 1)

    def _remainder(self, expr: Expr) -> _Span | None:
        """Return the values of ``N mod d`` where they have no gap."""
        floors = [(a, c) for a, c in expr.parts.items() if isinstance(a, Floor)]
        if len(floors) != 1 or floors[0][1] != -floors[0][0].divisor:
            return None
        floor = floors[0][0]
        rest = expr - floor.numerator
        if set(rest.parts) != {floor} or rest.constant:
            return None
        inner = self.span(floor.numerator)
        if inner is None or inner.stride > 1:
            return None
        d = floor.divisor
        is_full = inner.high - inner.low + 1 >= d
        is_within = inner.low // d == inner.high // d
        if not np.all(is_full | is_within | (inner.high < inner.low)):
            return None
        low = np.where(is_full, 0, inner.low % d)
        high = np.where(is_full, d - 1, np.where(inner.high < inner.low, low - 1, inner.high % d))
        return _Span(inner.axes, low, high, 1)


def _sum(total: _Span, spans: Iterable[tuple[int, _Span]]) -> _Span | None:
    """Return the values of a sum of independent terms; None if some sum in between is missing."""
    ordered = sorted(spans, key=lambda each: abs(each[0]) * max(1, each[1].stride))
    step = 0  # no tile has several values
    for factor, span in ordered:
        joint = joint_axes([total.axes, span.axes])
        low, high = [OverAxes(span.axes, each).along(joint) for each in (span.low, span.high)]
        start, end = [OverAxes(total.axes, each).along(joint) for each in (total.low, total.high)]
        is_empty = (high < low) | (end < start)
        own = abs(factor) * max(1, span.stride)
        low, high = (low * factor, high * factor) if factor > 0 else (high * factor, low * factor)
        is_wide = (high > low) & ~is_empty
        if np.any(is_wide):
            step = step or own
            is_first = is_wide & (end == start)
            is_gap = is_wide & (end > start) & (end - start + step < own)
            if own % step or np.any(is_gap) or (own != step and np.any(is_first)):
                return None
        new_low, new_high = np.broadcast_arrays(start + low, end + high)
        total = _Span(joint, new_low, np.where(is_empty, new_low - 1, new_high), step)
    return total._replace(stride=max(1, step))


# ---------------------------------------------------------------- maps


class MapComponent(NamedTuple):
    """Results and constraints of a map that have no variables in common with others.

    Attributes:
        results: the numbers of the results; none for a gate.
        constraints: the constraints.
        variables: the variables of both.
    """

    results: tuple[int, ...]
    constraints: tuple[Constraint, ...]
    variables: frozenset[Variable]


def components_of(read: IndexingMap) -> tuple[MapComponent, ...]:
    """Return the results and constraints that share variables, results first."""
    groups: list[MapComponent] = []
    parts = [MapComponent((k,), (), frozenset(e.variables())) for k, e in enumerate(read.results)]
    parts += [MapComponent((), (c,), frozenset(c.expr.variables())) for c in read.constraints]
    for results, constraints, variables in parts:
        touching = [g for g in groups if g.variables & variables]
        groups = [g for g in groups if not g.variables & variables]
        for group in touching:
            variables |= group.variables
            results += group.results
            constraints = group.constraints + constraints
        groups.append(MapComponent(tuple(sorted(results)), constraints, variables))
    return tuple(sorted(groups, key=lambda group: (not group.results, group.results)))


def sides_of(
    read: IndexingMap, component: MapComponent, ranges: TileRanges
) -> tuple[StepSide, ...] | None:
    """Return a side for each result of a component, or a gate; None if tiles are no products.

    A gate is a further side, of one index for the tiles that read an element, and of none for the
    others.

    Args:
        read: the map to the elements of an array.
        component: of the map.
        ranges: the values of its variables.
    """
    parts = [read.results[k] for k in component.results]
    if len(parts) > 1:
        return None if component.constraints else _digits(parts, ranges)
    if parts:
        side = _side(parts[0], component.constraints, ranges)
    else:
        side = _gate(component.constraints, ranges)
    return None if side is None else (side,)


def _side(result: Expr, constraints: Sequence[Constraint], ranges: TileRanges) -> StepSide | None:
    """Return the values of one result under constraints."""
    span = ranges.span(result)
    if span is None:
        return None
    side = StepSide(span.axes, span.low, span.high, span.stride)
    taken: set[Variable] = set()
    for constraint in constraints:
        limits = _limits(result, constraint, ranges, taken)
        if limits is None:
            return None
        axes, low, high = limits
        joint = joint_axes([side.axes, axes])
        own_low, own_high = side.bounds_along(joint)
        low, high = OverAxes(axes, low).along(joint), OverAxes(axes, high).along(joint)
        stride = side.stride
        new_low = np.where(low > own_low, own_low + -((own_low - low) // stride) * stride, own_low)
        new_high = np.minimum(own_high, high)
        new_high = new_low + (new_high - new_low) // stride * stride
        new_low, new_high = np.broadcast_arrays(new_low, new_high)
        side = StepSide(joint, new_low, new_high, stride)
    return side


def _limits(
    result: Expr, constraint: Constraint, ranges: TileRanges, taken: set[Variable]
) -> tuple[tuple[int, ...], IntArray, IntArray] | None:
    """Return bounds of a result for each tile that a constraint gives.

    The other variables of the constraint must be in no other one: then there are values of them for
    each result within the bounds, if the bounds are at least as wide as the gaps between values.
    """
    own = set(result.variables())
    for sign in (1, -1):
        rest = constraint.expr - result * sign
        others = set(rest.variables())
        if others & own or others & taken:
            continue
        taken |= others
        span = ranges.span(rest)
        width = constraint.upper - constraint.lower + 1
        if span is None or (span.stride > width and np.any(span.high > span.low)):
            return None
        is_empty = span.high < span.low
        if sign == 1:
            low, high = constraint.lower - span.high, constraint.upper - span.low
        else:
            low, high = span.low - constraint.upper, span.high - constraint.lower
        return span.axes, low, np.where(is_empty, low - 1, high)
    return None


def _gate(constraints: Sequence[Constraint], ranges: TileRanges) -> StepSide | None:
    """Return one index for the tiles with a point that satisfies a constraint."""
    if len(constraints) != 1:
        return None
    span = ranges.span(constraints[0].expr)
    if span is None or span.stride != 1:
        return None
    is_open = (span.low <= constraints[0].upper) & (span.high >= constraints[0].lower)
    is_open = is_open & (span.low <= span.high)
    return StepSide(span.axes, np.zeros(is_open.shape, np.int64), is_open.astype(np.int64) - 1, 1)


def _digits(results: Sequence[Expr], ranges: TileRanges) -> tuple[StepSide, ...] | None:
    """Return the sides of results that are digits of one number, if tiles have all combinations."""
    code, radix = as_expr(0), 1
    for result in reversed(results):
        low, high = result.bounds
        code = code + (result - low) * radix
        radix *= high - low + 1
    number = ranges.span(code)
    spans = [ranges.span(result) for result in results]
    if number is None or any(span is None for span in spans):
        return None
    sides = [StepSide(*span) for span in spans if span is not None]
    joint = joint_axes([number.axes, *[side.axes for side in sides]])
    product = np.array(1)
    for side in sides:
        product = product * side.count.along(joint)
    numbers = StepSide(*number).count.along(joint)
    return tuple(sides) if np.all(product == numbers) else None

"""Classes of equal warps: the accesses of a load, with few points that represent all of them.

A load accesses position ``p(v, lane)`` where v are the block, the warp and the loops.  Along a
variable with a period (module `periods`), p only moves by a constant, so warps one period
apart access the same pattern of addresses at another alignment.  One period is enumerated; the
number of periods at each alignment is a formula.  A variable inside of floors is split into digits
first, most of which are affine then.  Constraints such as those of the last, partial
block hold for all points of most periods; periods in which they do not are enumerated.

>>> bl, lane = Variable("bl_x", 0, 24575), Variable("lane", 0, 31)
>>> load = WarpAccesses(bl * 33 + lane, (), (bl,), lane)
>>> (part,) = warp_classes(load, modulus=32, budget=10**6)
>>> part.positions.shape, len(part.alignments), sum(a.warps for a in part.alignments.values())
((1, 32), 32, 24576)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import gcd, prod
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from indexing.memory.warps.periods import digits, translation
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.linear import Expr
from simplifier.substitute import Substitution
from simplifier.unknown import Unknown

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAX_POINTS: Final = 1 << 24
"""Budget: the points of the classes of one load, a point being one lane of one warp."""
_POINTS_AT_ONCE: Final = 1 << 18
_MAX_INTEGER: Final = 1 << 62  # beyond it, 64-bit arithmetic could overflow


@dataclass(frozen=True, slots=True)
class WarpAccesses:
    """The elements that the lanes of all warps access with one instruction.

    Attributes:
        position: the position in memory of the element, in elements.
        constraints: conditions on the points at which a lane is active.
        outer: the block, the warp and the loops: each point of them is one warp that executes the
            instruction once.
        lane: the number of the lane in its warp.
    """

    position: Expr
    constraints: tuple[Constraint, ...]
    outer: tuple[Variable, ...]
    lane: Variable


class Alignment(NamedTuple):
    """The number of warps that access a pattern at one alignment, and the periods of one."""

    warps: int
    periods: tuple[int, ...]


class WarpClass(NamedTuple):
    """Patterns of addresses, each accessed by equally many warps at the same alignments.

    Attributes:
        positions: a row for each pattern: the positions of its lanes, at period 0.
        active: whether each lane accesses its position.
        alignments: by offset modulo the given modulus, to add to the positions.
        points: the values of the variables at period 0, one for each row.
        repeated: the repeated variables with their periods, in the order of `Alignment.periods`.
        split: the block, the warp and the loops as expressions of these variables.
    """

    positions: NDArray[np.int64]
    active: NDArray[np.bool_]
    alignments: Mapping[int, Alignment]
    points: Mapping[Variable, NDArray[np.int64]]
    repeated: tuple[_Repeated, ...]
    split: Mapping[Variable, Expr]

    def warp_at(self, row: int, offset: int) -> tuple[dict[str, int], NDArray[np.int64]]:
        """Return the block, warp and loops of one warp, and the positions of its lanes."""
        periods = self.alignments[offset].periods
        point = {v: int(values[row]) for v, values in self.points.items()}
        moved = 0
        for repeated, number in zip(self.repeated, periods, strict=True):
            point[repeated.variable] += number * repeated.period
            moved += number * repeated.shift
        where = {v.name: value.value(point) for v, value in self.split.items()}
        return where, self.positions[row] + moved


class _Repeated(NamedTuple):
    """A variable with several periods.

    Attributes:
        variable: the variable; one period is enumerated.
        period: its period.
        periods: the number of periods.
        shift: the move of the position by one period.
        limits: the move of the expression of each constraint that moves, by number.
    """

    variable: Variable
    period: int
    periods: int
    shift: int
    limits: Mapping[int, int]


def warp_classes(
    accesses: WarpAccesses, modulus: int, budget: int = MAX_POINTS
) -> tuple[WarpClass, ...] | Unknown:
    """Return classes of equal warps; together they are all warps, each once.

    Args:
        accesses: what the lanes access.
        modulus: positions that are equal modulo this number have the same alignment.
        budget: the number of points to enumerate.
    Returns:
        The classes; `Unknown` beyond the budget.
    """
    if any(v.is_empty for v in (*accesses.outer, accesses.lane)):
        return ()
    if not all(map(_is_small, (accesses.position, *[c.expr for c in accesses.constraints]))):
        return Unknown("positions in memory exceed 64-bit integers")
    accesses, split = _with_digits(accesses)
    repeated, constraints = _repetitions(accesses)
    spans = {v: v.size for v in accesses.outer}
    spans |= {each.variable: each.period for each in repeated}
    rows, lanes = prod(spans.values()), accesses.lane.size
    classes: list[WarpClass] = []
    points = rows * lanes
    at_once = max(1, _POINTS_AT_ONCE // lanes)
    for start in range(0, rows if points <= budget else 0, at_once):
        values = _points(spans, start, min(rows, start + at_once))
        part = _EnumeratedRows(accesses, split, repeated, constraints, values)
        points += part.extra_points
        if points > budget:
            break
        classes += part.classes(modulus)
    if points > budget:
        return Unknown(f"{points:,} lanes to enumerate, more than the budget of {budget:,}")
    return tuple(classes)


def _with_digits(accesses: WarpAccesses) -> tuple[WarpAccesses, dict[Variable, Expr]]:
    """Return the accesses with variables split into digits, and the variables as expressions."""
    split: dict[Variable, Expr] = {}
    outer: list[Variable] = []
    for variable in accesses.outer:
        exprs = [accesses.position, *[c.expr for c in accesses.constraints]]
        split[variable], parts = digits(exprs, variable)
        outer += parts
        if len(parts) == 1:
            continue
        swap = Substitution({variable: split[variable]})
        bounds = Constraint(split[variable], variable.lower, variable.upper)
        constraints = [*[c.with_expr(swap(c.expr)) for c in accesses.constraints], bounds]
        accesses = WarpAccesses(
            swap(accesses.position),
            tuple([c for c in constraints if not c.is_true]),
            accesses.outer,
            accesses.lane,
        )
    return replace(accesses, outer=tuple(outer)), split


def _is_small(expr: Expr) -> bool:
    """Return True if 64-bit integers hold every intermediate value of an expression."""
    total = abs(expr.constant)
    for atom, coefficient in expr.parts.items():
        if not all(map(_is_small, atom.operands)):
            return False
        total += abs(coefficient) * max(map(abs, atom.bounds))
    return total < _MAX_INTEGER


def _repetitions(accesses: WarpAccesses) -> tuple[tuple[_Repeated, ...], list[Constraint]]:
    """Return the variables to repeat, the longest first, and all constraints.

    Each constraint moves with one repeated variable at most, so that its limits are intervals of
    periods.
    """
    constraints = list(accesses.constraints)
    claimed: set[int] = set()
    chosen: list[_Repeated] = []
    for variable in sorted(accesses.outer, key=lambda v: v.lower - v.upper):
        size = variable.size
        exprs = [accesses.position, *[constraint.expr for constraint in constraints]]
        steps = [step for expr in exprs if (step := translation(expr, variable)) is not None]
        if len(steps) < len(exprs):
            continue
        period = int(np.lcm.reduce([each.period for each in steps], dtype=object))
        moves = [each.shift * (period // each.period) for each in steps]
        limits = {k: move for k, move in enumerate(moves[1:]) if move}
        if period * 2 > size or claimed & limits.keys():
            continue
        if size % period:
            limits[len(constraints)] = period
            constraints.append(Constraint(variable.as_expr(), variable.lower, variable.upper))
        claimed |= limits.keys()
        chosen.append(_Repeated(variable, period, -(-size // period), moves[0], limits))
    return tuple(chosen), constraints


def _points(
    spans: Mapping[Variable, int], start: int, stop: int
) -> dict[Variable, NDArray[np.int64]]:
    """Return the values of the variables at the points `start` to `stop` of their box."""
    number = np.arange(start, stop, dtype=np.int64)
    points: dict[Variable, NDArray[np.int64]] = {}
    for variable, size in spans.items():
        points[variable] = variable.lower + number % size
        number = number // size
    return points


class _Periods(NamedTuple):
    """The periods in which some points satisfy the constraints, and those in which all do."""

    some: range
    every: range

    @property
    def number(self) -> int:
        """The number of runs."""
        return len(self.some) - len(self.every) + bool(self.every)

    def runs(self) -> Iterator[range]:
        """Yield the periods in which all points satisfy the constraints, then single periods."""
        if self.every:
            yield self.every
        for run in range(self.some.start, self.every.start), range(self.every.stop, self.some.stop):
            yield from (range(period, period + 1) for period in run)


class _EnumeratedRows:
    """Some enumerated points, and the periods in which the constraints hold there."""

    def __init__(
        self,
        accesses: WarpAccesses,
        split: Mapping[Variable, Expr],
        repeated: tuple[_Repeated, ...],
        constraints: Sequence[Constraint],
        points: Mapping[Variable, NDArray[np.int64]],
    ) -> None:
        self.repeated, self.constraints, self.points = repeated, constraints, points
        self.split = split
        lane = np.arange(accesses.lane.lower, accesses.lane.upper + 1, dtype=np.int64)
        rows = len(next(iter(points.values()))) if points else 1
        self.shape = rows, len(lane)
        at = {v: values[:, np.newaxis] for v, values in points.items()}
        at[accesses.lane] = lane[np.newaxis, :]
        self.positions = self._array(accesses.position.value(at))
        moving = {number for each in repeated for number in each.limits}
        self.active = np.ones(self.shape, dtype=bool)
        for k, constraint in enumerate(constraints):
            if k not in moving:
                value = constraint.expr.value(at)
                self.active &= (constraint.lower <= value) & (value <= constraint.upper)
        self.moving = {k: self._array(constraints[k].expr.value(at)) for k in sorted(moving)}
        self.choices = [self._choices(each) for each in repeated] if self.active.any() else []

    def _array(self, value: Any) -> NDArray[np.int64]:
        return np.broadcast_to(np.asarray(value, dtype=np.int64), self.shape)

    @property
    def extra_points(self) -> int:
        """The number of points, without those of the first choice of periods."""
        return (prod([choice.number for choice in self.choices]) - 1) * prod(self.shape)

    def _choices(self, repeated: _Repeated) -> _Periods:
        some, every = range(repeated.periods), range(repeated.periods)
        for number, move in repeated.limits.items():
            constraint, values = self.constraints[number], self.moving[number][self.active]
            least, most = int(values.min()), int(values.max())
            some = _within(some, constraint, move, (most, least))
            every = _within(every, constraint, move, (least, most))
        return _Periods(some, every if every else range(some.start, some.start))

    def classes(self, modulus: int) -> Iterator[WarpClass]:
        """Yield a class for each choice of periods."""
        if not self.active.any():
            return
        for periods in product(*[choice.runs() for choice in self.choices]):
            active = self.active
            for each, chosen in zip(self.repeated, periods, strict=True):
                if len(chosen) == 1:
                    active = active & self._holds(each, chosen.start)
            counts = _alignments(self.repeated, periods, modulus)
            yield WarpClass(self.positions, active, counts, self.points, self.repeated, self.split)

    def _holds(self, repeated: _Repeated, period: int) -> NDArray[np.bool_]:
        holds = np.ones(self.shape, dtype=bool)
        for number, move in repeated.limits.items():
            constraint, value = self.constraints[number], self.moving[number] + move * period
            holds &= (constraint.lower <= value) & (value <= constraint.upper)
        return holds


def _within(periods: range, constraint: Constraint, move: int, extremes: tuple[int, int]) -> range:
    """Return the periods q with ``lower <= e + move·q`` and ``f + move·q <= upper``.

    `extremes` is ``(e, f)``: the least and the greatest value for all points to satisfy the
    constraint; the greatest and the least for some points.
    """
    low, high = constraint.lower - extremes[0], constraint.upper - extremes[1]
    if move < 0:
        low, high, move = -high, -low, -move
    start, stop = max(periods.start, -(-low // move)), min(periods.stop, high // move + 1)
    return range(start, max(start, stop))


def _alignments(
    repeated: Sequence[_Repeated], periods: Sequence[range], modulus: int
) -> dict[int, Alignment]:
    """Return how many combinations of periods move the position by each offset."""
    together = {0: Alignment(1, ())}
    for each, chosen in zip(repeated, periods, strict=True):
        own: dict[int, tuple[int, int]] = {}
        different = min(modulus // gcd(each.shift, modulus), len(chosen))
        for k in range(different):
            number = chosen.start + k
            own[each.shift * number % modulus] = -(-(len(chosen) - k) // different), number
        combined: dict[int, Alignment] = {}
        for (offset, before), (move, (count, number)) in product(together.items(), own.items()):
            total = (offset + move) % modulus
            first = combined.get(total, Alignment(0, (*before.periods, number)))
            combined[total] = Alignment(first.warps + before.warps * count, first.periods)
        together = combined
    return together

"""Tallies of sums from the counts of their values, term by term.

The values of ``Σ a_i·x_i`` are counted for one variable after the other: each adds the counts
before it, shifted by the multiples of its coefficient.  The work is the number of values of the
sums, times the number of variables, not the number of points.  Several sums are the digits of one
number.  Variables in floors are enumerated.  Constraints select values of the sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from indexing.maps.counts.forms import Form, constant_difference
from indexing.maps.counts.tally import Tally
from simplifier.atoms import Variable, inside_atoms, point_count
from simplifier.exact import number_type
from simplifier.interval import Interval, intersect
from simplifier.linear import Expr
from simplifier.shared import term_count

MAX_SUMS: Final = 1 << 22
"""Maximum number of values of the sums of one tally."""
MAX_ENUMERATED: Final = 1 << 20
"""Maximum number of points to enumerate of the variables in floors."""
MAX_WORK: Final = 1 << 26
"""Maximum number of these points, times the terms of the expressions."""

FEW: Final = 1 << 10
"""Maximum number of values, and of points to enumerate, in one of several attempts."""

_Array = NDArray[np.int64]


class _Digit(NamedTuple):
    """One of the sums that are counted together.

    Attributes:
        expr: the sum.
        low, size: its values are within ``[low, low + size - 1]``.
        place: factor of ``expr - low`` in the number of all sums.
        kept: the values that count.
        is_result: False if only a constraint has the sum.
    """

    expr: Expr
    low: int
    size: int
    place: int
    kept: Interval
    is_result: bool


def few_sums(form: Form) -> Tally | None:
    """Return the tally of a form with few points, or few values; else `None`."""
    return tally_of_sums(form, FEW, FEW)


def tally_of_sums(
    form: Form, max_sums: int = MAX_SUMS, max_enumerated: int = MAX_ENUMERATED
) -> Tally | None:
    """Return the tally of a form; `None` beyond the budget.

    >>> d0, d1, s0 = Variable("d0", 0, 999), Variable("d1", 0, 1), Variable("s0", 0, 2)
    >>> tally_of_sums(Form((d0, d1, s0), (d0 + d1 + s0,), ())).histogram
    {1: 2, 3: 2, 5: 2, 6: 997}
    """
    digits = _digits(form)
    values, points = prod([digit.size for digit in digits]), point_count(form.variables)
    every = [*form.exprs, *[v.as_expr() for v in form.variables]]
    if values >= 1 << 62 or points >= 1 << 62 or number_type(every) is object:
        return None
    free = [] if points <= values else _linear_variables(form)
    enumerated = [v for v in form.variables if v not in free]
    count = point_count(enumerated)
    if count > max_enumerated or count * term_count(form.exprs) > MAX_WORK:
        return None
    if free and values > max_sums:
        return None
    numbers = _numbers(digits, enumerated, free)
    if free:
        numbers, times = _sum_digits(numbers, digits, free, values)
    else:
        numbers, times = np.unique(numbers, return_counts=True)
    times = _select_results(numbers, times, digits)
    lengths, counts = np.unique(times, return_counts=True)
    return Tally.of(dict(zip(lengths.tolist(), counts.tolist(), strict=True)))


def _digits(form: Form) -> list[_Digit]:
    """Results and, if they are not results up to a constant, the expressions of constraints."""
    sums: list[tuple[Expr, Interval, bool]] = [
        (result, result.bounds, True) for result in form.results
    ]
    for constraint in form.constraints:
        for k, (expr, kept, is_result) in enumerate(sums):
            inside = _bounds_of(expr, constraint.expr, constraint.bounds)
            if inside is not None:
                sums[k] = expr, intersect(kept, inside), is_result
                break
        else:
            sums.append((constraint.expr, constraint.bounds, False))
    digits: list[_Digit] = []
    place = 1
    for expr, kept, is_result in sums:
        low, high = expr.bounds
        digits.append(_Digit(expr, low, high - low + 1, place, kept, is_result))
        place *= high - low + 1
    return digits


def _bounds_of(expr: Expr, constrained: Expr, bounds: Interval) -> Interval | None:
    """The bounds of `expr` if `constrained` is ``expr`` or ``-expr`` up to a constant."""
    distance = constant_difference(constrained, expr)
    if distance is not None:
        return bounds[0] - distance, bounds[1] - distance
    distance = constant_difference(constrained, -expr)
    if distance is not None:
        return distance - bounds[1], distance - bounds[0]
    return None


def _linear_variables(form: Form) -> list[Variable]:
    """The variables that occur in no floor."""
    inside = {v for expr in form.exprs for v in inside_atoms(expr)}
    return [v for v in form.variables if v not in inside]


def _numbers(
    digits: Sequence[_Digit], enumerated: Sequence[Variable], free: Sequence[Variable]
) -> _Array:
    """The numbers of the sums at each point of some variables, and the lower ends of others."""
    sizes = [v.size for v in enumerated]
    at: dict[Variable, Any] = {v: v.lower for v in free}
    for k, v in enumerate(enumerated):
        shape = [1] * len(sizes)
        shape[k] = sizes[k]
        at[v] = np.arange(v.lower, v.upper + 1, dtype=np.int64).reshape(shape)
    number: Any = 0
    for digit in digits:
        number = number + (digit.expr.value(at) - digit.low) * digit.place
    return np.broadcast_to(np.asarray(number, np.int64), sizes).ravel()


def _sum_digits(
    numbers: _Array, digits: Sequence[_Digit], free: Sequence[Variable], values: int
) -> tuple[_Array, _Array]:
    """The numbers of the sums of all points, and how many points have each."""
    counts = np.bincount(numbers, minlength=values).astype(np.int64)
    for v in free:
        step = sum([digit.expr.parts.get(v, 0) * digit.place for digit in digits])
        counts = _shifted_sums(counts, step, v.size)
    present = np.flatnonzero(counts)
    return present, counts[present]


def _shifted_sums(counts: _Array, step: int, times: int) -> _Array:
    """The sum of `times` copies of the counts, each shifted by `step` from the one before."""
    if not step:
        return counts * times
    if step < 0:
        return _shifted_sums(counts[::-1], -step, times)[::-1]
    rows = -(-len(counts) // step)
    table = np.zeros(rows * step, np.int64)
    table[: len(counts)] = counts
    sums = table.reshape(rows, step).cumsum(axis=0)
    if times < rows:
        sums[times:] -= sums[:-times].copy()
    return sums.ravel()[: len(counts)]


def _select_results(numbers: _Array, times: _Array, digits: Sequence[_Digit]) -> _Array:
    """The counts of the results, at the values of the sums that the constraints allow."""
    hidden = False
    for digit in digits:
        low, high = digit.kept
        if low > digit.low or high < digit.low + digit.size - 1:
            value = numbers // digit.place % digit.size + digit.low
            inside = (value >= low) & (value <= high)
            numbers, times = numbers[inside], times[inside]
        hidden = hidden or not digit.is_result
    if not hidden or not len(numbers):
        return times
    own = np.zeros(len(numbers), np.int64)
    for digit in digits:
        if digit.is_result:
            own += numbers // digit.place % digit.size * digit.place
    _, which = np.unique(own, return_inverse=True)
    sums = np.zeros(int(which.max()) + 1, np.int64)
    np.add.at(sums, which.reshape(-1), times)
    return sums

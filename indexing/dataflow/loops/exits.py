"""The iteration at which a comparison of two affine sequences becomes false.

All arithmetic is that of unbounded integers.  `Exit.stays_within` proves that the machine integers
of the program have the same values, because none of them wraps around before the exit.

Source: XLA ``xla/service/while_loop_analysis.cc``, ``MatchTrivialLoopTripCount``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from simplifier.interval import Interval, add, contains, scale
from simplifier.linear import Affine, Expr, constant
from simplifier.semiaffine import maximum

ENDLESS: Final = "the loop does not terminate"
MAYBE_ENDLESS: Final = "the loop may not terminate"


@dataclass(frozen=True, slots=True)
class AffineSequence:
    """The values ``first + k · step`` for ``k = 0, 1, ..``.

    >>> odd = AffineSequence(constant(1), 2)
    >>> odd.at(3), odd - AffineSequence(constant(5), -1)
    (Expr('7'), AffineSequence(first=Expr('-4'), step=3))
    """

    first: Expr
    step: int

    def at(self, k: Affine) -> Expr:
        """Return the value at `k`."""
        return self.first + k * self.step

    def __sub__(self, other: AffineSequence) -> AffineSequence:
        return AffineSequence(self.first - other.first, self.step - other.step)


@dataclass(frozen=True, slots=True)
class Exit:
    """The number of iterations before a comparison is false for the first time.

    Attributes:
        iterations: the number as a formula; None if only its bounds are known.
        bounds: inclusive bounds of the number.
        difference: an affine difference of the two sequences.
        last: bounds of the difference at the exit, if at least one iteration is executed.
    """

    iterations: Expr | None
    bounds: Interval
    difference: AffineSequence
    last: Interval

    def stays_within(self, sequence: AffineSequence, limits: Interval) -> bool:
        """Return True if the values of `sequence` up to the exit are proved to be in `limits`.

        A sequence is monotonic, so its first and last values decide.  The last value follows from
        the bounds of the number of iterations, or from the difference at the exit:
        ``sequence[N] = sequence[0] − q·difference[0] + q·difference[N]`` for the quotient ``q`` of
        their steps.
        """
        first, step = sequence.first, sequence.step
        if not contains(limits, first.bounds):
            return False
        if not step or not self.bounds[1]:
            return True
        if contains(limits, add(first.bounds, scale((0, self.bounds[1]), step))):
            return True
        change = self.difference.step
        if not change or step % change:
            return False
        ratio = step // change
        origin = first - self.difference.first * ratio
        return all(contains(limits, (origin + ratio * end).bounds) for end in self.last)


AT_ONCE: Final = Exit(constant(0), (0, 0), AffineSequence(constant(0), 0), (0, 0))
"""The exit of a loop that executes no iteration."""


def counted_exit(iterations: Expr | None, bounds: Interval) -> Exit:
    """Return the exit of a loop with a number of iterations, or with bounds of it."""
    return Exit(iterations, bounds, AffineSequence(constant(0), 0), (0, 0))


def exit_of(left: AffineSequence, right: AffineSequence, direction: str) -> Exit | str:
    """Return the exit of a loop that continues while ``left[k] direction right[k]``, or a reason.

    The reason starts with `ENDLESS` if unbounded integers never end the loop.

    Args:
        direction: ``LT``, ``LE``, ``GT``, ``GE``, ``EQ`` or ``NE``.

    >>> i, n = AffineSequence(constant(0), 3), AffineSequence(constant(10), 0)
    >>> exit_of(i, n, "LT").bounds
    (4, 4)
    >>> exit_of(i, n, "NE")
    'the loop may not terminate: the counter steps over its bound'
    """
    match direction:
        case "LT":
            return _below_zero(left - right)
        case "LE":
            return _below_zero(_minus_one(left - right))
        case "GT":
            return _below_zero(right - left)
        case "GE":
            return _below_zero(_minus_one(right - left))
        case "EQ":
            return _zero(left - right)
        case _:
            return _not_zero(left - right)


def _minus_one(sequence: AffineSequence) -> AffineSequence:
    return AffineSequence(sequence.first - 1, sequence.step)


def _known_exit(count: int, difference: AffineSequence, last: Interval = (0, 0)) -> Exit:
    return Exit(constant(count), (count, count), difference, last)


def _below_zero(difference: AffineSequence) -> Exit | str:
    """Return the exit of a loop that continues while ``difference[k] < 0``."""
    first, step = difference.first, difference.step
    low, high = first.bounds
    if low >= 0:
        return _known_exit(0, difference)
    if step < 0:
        return f"{MAYBE_ENDLESS}: the counter moves away from its bound"
    if not step:
        return f"{ENDLESS if high < 0 else MAYBE_ENDLESS}: its condition never changes"
    bounds = max(0, -(high // step)), max(0, -(low // step))
    count = (step - 1 - first) // step
    return Exit(maximum(0, count), bounds, difference, (0, step - 1))


def _not_zero(difference: AffineSequence) -> Exit | str:
    """Return the exit of a loop that continues while ``difference[k] ≠ 0``."""
    first, step = difference.first, difference.step
    if first == constant(0):
        return _known_exit(0, difference)
    if not step:
        is_endless = not contains(first.bounds, (0, 0))
        return f"{ENDLESS if is_endless else MAYBE_ENDLESS}: its condition never changes"
    if step in (-1, 1):
        count = first * -step
        if count.bounds[0] >= 0:
            return Exit(count, count.bounds, difference, (0, 0))
        return f"{MAYBE_ENDLESS}: the counter may start beyond its bound"
    if first.is_constant and not first.constant % step and first.constant // step < 0:
        return _known_exit(-(first.constant // step), difference)
    return f"{MAYBE_ENDLESS}: the counter steps over its bound"


def _zero(difference: AffineSequence) -> Exit | str:
    """Return the exit of a loop that continues while ``difference[k] = 0``."""
    first, step = difference.first, difference.step
    if not contains(first.bounds, (0, 0)):
        return _known_exit(0, difference)
    if not step:
        return f"{ENDLESS if first.is_constant else MAYBE_ENDLESS}: its condition never changes"
    if first.is_constant:
        return _known_exit(1, difference, (step, step))
    return Exit(None, (0, 1), difference, (step, step))

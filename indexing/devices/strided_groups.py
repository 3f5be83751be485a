"""Formulas of device groups: ``((0, 4), (1, 5), (2, 6))`` is ``row + 4 · position``.

A row is the list of the devices of a group, in order.  Rows are recognised as a mixed-radix number:
the element at flat index f (row-major) is ``offset + Σ digit_k · stride_k``, where ``digit_k`` is
the k-th digit of f, possibly rotated.  All groups of a mesh have this form; so do rings and
reversals.  The inverse formulas give the row and the position of a device.

>>> group = strided_group([(0, 4), (1, 5), (2, 6), (3, 7)])
>>> device = Variable("device", 0, 7)
>>> row, position, _ = group.locate(device)
>>> print(row, "|", position, "|", group.device(row, 1))
device mod 4 | device floordiv 4 | device mod 4 + 4
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from math import prod
from typing import NamedTuple

from indexing.devices.groups import DeviceGroup
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.linear import Affine, Expr, as_expr


@dataclass(frozen=True, slots=True)
class Digit:
    """One digit of a flat index: ``((digit + rotation) mod size) · stride`` of the device."""

    size: int
    stride: int
    rotation: int = 0


class GroupPosition(NamedTuple):
    """Row of a device and its position in the row, valid where `constraints` hold."""

    row: Expr
    position: Expr
    constraints: tuple[Constraint, ...]


@dataclass(frozen=True, slots=True)
class StridedGroup:
    """The devices at positions ``first`` to ``first + width − 1`` of `rows` rows, as a formula.

    Attributes:
        rows: number of rows.
        width: number of positions.
        first: the first position.
        offset: the device where every rotated digit is 0.
        digits: the digits of the flat index ``row · width + position − first``, the fastest
            varying first.
    """

    rows: int
    width: int
    first: int
    offset: int
    digits: tuple[Digit, ...]

    @property
    def is_invertible(self) -> bool:
        """True if the devices are different and the digits follow from the device number."""
        steps = sorted([(abs(digit.stride), digit.size) for digit in self.digits])
        return all(step for step, _ in steps) and all(
            high % low == 0 and high >= low * size for (low, size), (high, _) in pairwise(steps)
        )

    def device(self, row: Affine, position: Affine) -> Expr:
        """Number of the device at a position of a row."""
        flat = as_expr(row) * self.width + position - self.first
        device, weight = as_expr(self.offset), 1
        for digit in self.digits:
            device = (
                device + _rotate_digit(flat // weight, digit.rotation, digit.size) * digit.stride
            )
            weight *= digit.size
        return device

    def locate(self, device: Variable) -> GroupPosition:
        """Row and position of a device.  The group must be invertible."""
        ordered = sorted(self.digits, key=lambda digit: abs(digit.stride))
        smallest = self.offset + sum(min(0, d.stride * (d.size - 1)) for d in ordered)
        number = device - smallest
        values: dict[Digit, Expr] = {}
        constraints = [Constraint(number, 0, sum(abs(d.stride) * (d.size - 1) for d in ordered))]
        if ordered:
            constraints.append(Constraint(number % abs(ordered[0].stride), 0, 0))
        for k, digit in enumerate(ordered):
            value = number // abs(digit.stride)
            if k + 1 < len(ordered):
                value = value % (abs(ordered[k + 1].stride) // abs(digit.stride))
                constraints.append(Constraint(value, 0, digit.size - 1))
            if digit.stride < 0:
                value = digit.size - 1 - value
            values[digit] = _rotate_digit(value, -digit.rotation, digit.size)
        weights = [prod(digit.size for digit in self.digits[:k]) for k in range(len(self.digits))]
        flat = as_expr(0)
        for digit, weight in zip(self.digits, weights, strict=True):
            flat = flat + values[digit] * weight
        nontrivial = tuple([c for c in constraints if not c.is_true])
        return GroupPosition(flat // self.width, flat % self.width + self.first, nontrivial)


def _rotate_digit(digit: Expr, by: int, size: int) -> Expr:
    return (digit + by) % size


def strided_group(rows: Sequence[DeviceGroup], first: int = 0) -> StridedGroup | None:
    """Return the formula of rows of equal length; None if the rows do not have this form.

    >>> strided_group([(3, 0, 1, 2)]).digits
    (Digit(size=4, stride=1, rotation=3),)
    >>> strided_group([(0, 5), (4, 1)]) is None
    True
    """
    numbers = [number for row in rows for number in row]
    digits: list[Digit] = []
    while len(numbers) > 1:
        digit = next(_candidates(numbers), None)
        if digit is None:
            return None
        digits.append(digit)
        numbers = numbers[-digit.rotation % digit.size :: digit.size]
    return StridedGroup(len(rows), len(rows[0]), first, numbers[0], tuple(digits))


def _candidates(numbers: Sequence[int]) -> Iterator[Digit]:
    """Yield possible fastest digits: without rotation before rotated, larger before smaller."""
    sizes = _divisors(len(numbers))
    steps = [b - a for a, b in pairwise(numbers[:4])]
    for size in sizes:
        if size == 2 or steps[0] == steps[1]:
            digit = Digit(size, steps[0])
            if _fits(digit, numbers):
                yield digit
    for size in sizes:
        if size > 2 and len(set(steps[: size - 1])) < 3:  # one wrap-around, else equal steps
            own = [b - a for a, b in pairwise(numbers[:size])]
            step = sorted(own)[len(own) // 2] if own[0] != own[-1] else own[0]
            breaks = [k for k, s in enumerate(own) if s != step]
            if len(breaks) == 1:
                digit = Digit(size, step, size - 1 - breaks[0])
                if _fits(digit, numbers):
                    yield digit


@lru_cache(maxsize=1 << 10)
def _divisors(count: int) -> tuple[int, ...]:
    """Divisors of `count` except 1, the largest first."""
    return tuple([size for size in range(count, 1, -1) if count % size == 0])


def _fits(digit: Digit, numbers: Sequence[int]) -> bool:
    """Return True if each run of ``digit.size`` numbers is an offset plus the values of `digit`."""
    pattern = [(k + digit.rotation) % digit.size * digit.stride for k in range(digit.size)]
    for start in range(0, len(numbers), digit.size):
        offset = numbers[start] - pattern[0]
        if any(numbers[start + k] != offset + value for k, value in enumerate(pattern)):
            return False
    return True


def strided_columns(rows: Sequence[DeviceGroup], invertible: bool = False) -> list[StridedGroup]:
    """Return formulas of rows of equal length, one for each range of positions, or no formula.

    Rows without one formula are split where the difference between neighbours changes in the first
    row.  A single row of different devices always has formulas, and `invertible` ones as well.

    >>> [(part.first, part.width) for part in strided_columns([(0, 1, 3, 2), (4, 5, 7, 6)])]
    [(0, 2), (2, 2)]
    """
    whole = strided_group(rows)
    if whole is not None and (whole.is_invertible or not invertible):
        return [whole]
    runs = [strided_group([row[a:b] for row in rows], a) for a, b in pairwise(_cuts(rows[0]))]
    parts = [part for part in runs if part and (part.is_invertible or not invertible)]
    return parts if len(parts) == len(runs) else []


def _cuts(row: DeviceGroup) -> list[int]:
    """Boundaries of the runs of equidistant devices in a row, with both ends."""
    cuts = [0]
    for k in range(2, len(row)):
        if k - cuts[-1] > 1 and row[k] - row[k - 1] != row[k - 1] - row[k - 2]:
            cuts.append(k)
    return [*cuts, len(row)]


# ---------------------------------------------------------------- two sides


class Link(NamedTuple):
    """Groups of `width` devices: formulas of the devices at the start and at the end of a map."""

    start: StridedGroup
    end: StridedGroup
    width: int


def links(rows: Sequence[tuple[DeviceGroup, DeviceGroup]]) -> Iterator[Link]:
    """Yield formulas for groups, given as pairs of start row and end row.

    Groups share formulas where possible.  The links cover every pair of a start position and an end
    position exactly once.
    """
    for width in dict.fromkeys(len(start) for start, _ in rows):
        left = sorted([row for row in rows if len(row[0]) == width], key=lambda row: min(row[0]))
        while left:
            count = len(left)
            while True:
                starts = strided_columns([row[0] for row in left[:count]], invertible=True)
                ends = strided_columns([row[1] for row in left[:count]]) if starts else []
                if ends:
                    yield from [Link(start, end, width) for start in starts for end in ends]
                    break
                count //= 2  # a single row always has formulas
            left = left[count:]

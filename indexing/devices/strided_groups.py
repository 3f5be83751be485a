"""Rows of device numbers as formulas: ``((0, 4), (1, 5), (2, 6))`` is ``row + 4 · place``.

A row holds the devices of a group in order.  Rows are recognised as a mixed-radix number: the
element at flat index f (row after row) is ``offset + Σ digit_k · stride_k``, where ``digit_k`` is
the k-th digit of f, perhaps rotated.  Whatever a mesh makes has this form; so have rings and
reversals.  Read backward, it says of each device in which row it is, and at which place.

>>> part = strided_group([(0, 4), (1, 5), (2, 6), (3, 7)])
>>> device = Variable("device", 0, 7)
>>> row, place, _ = part.position(device)
>>> print(row, "|", place, "|", part.device(row, 1))
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


class Position(NamedTuple):
    """Where a device stands, on the devices that satisfy `constraints`."""

    row: Expr
    place: Expr
    constraints: tuple[Constraint, ...]


@dataclass(frozen=True, slots=True)
class StridedGroup:
    """The devices of `rows` rows at the `width` places from `first` on.

    Attributes:
        rows, width, first: as above.
        offset: the device where every rotated digit is 0.
        digits: of the flat index ``row · width + place − first``, the fastest first.
    """

    rows: int
    width: int
    first: int
    offset: int
    digits: tuple[Digit, ...]

    @property
    def is_invertible(self) -> bool:
        """Each device is there once, and its digits can be read from its number."""
        steps = sorted([(abs(digit.stride), digit.size) for digit in self.digits])
        return all(step for step, _ in steps) and all(
            high % low == 0 and high >= low * size for (low, size), (high, _) in pairwise(steps)
        )

    def device(self, row: Affine, place: Affine) -> Expr:
        """The number of the device at a place of a row."""
        flat = as_expr(row) * self.width + place - self.first
        found, weight = as_expr(self.offset), 1
        for digit in self.digits:
            found = found + _rotated(flat // weight, digit.rotation, digit.size) * digit.stride
            weight *= digit.size
        return found

    def position(self, device: Variable) -> Position:
        """In which row a device is, and at which place; for an invertible part."""
        ordered = sorted(self.digits, key=lambda digit: abs(digit.stride))
        least = self.offset + sum(min(0, d.stride * (d.size - 1)) for d in ordered)
        number = device - least
        found: dict[Digit, Expr] = {}
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
            found[digit] = _rotated(value, -digit.rotation, digit.size)
        weights = [prod(digit.size for digit in self.digits[:k]) for k in range(len(self.digits))]
        flat = as_expr(0)
        for digit, weight in zip(self.digits, weights, strict=True):
            flat = flat + found[digit] * weight
        wanted = tuple([c for c in constraints if not c.is_true])
        return Position(flat // self.width, flat % self.width + self.first, wanted)


def _rotated(digit: Expr, by: int, size: int) -> Expr:
    return (digit + by) % size


def strided_group(rows: Sequence[DeviceGroup], first: int = 0) -> StridedGroup | None:
    """The formula of rows of equal length; None where none is found.

    >>> strided_group([(3, 0, 1, 2)]).digits
    (Digit(size=4, stride=1, rotation=3),)
    >>> strided_group([(0, 5), (4, 1)]) is None
    True
    """
    numbers = [number for row in rows for number in row]
    digits: list[Digit] = []
    while len(numbers) > 1:
        digit = next(_fitting(numbers), None)
        if digit is None:
            return None
        digits.append(digit)
        numbers = numbers[-digit.rotation % digit.size :: digit.size]
    return StridedGroup(len(rows), len(rows[0]), first, numbers[0], tuple(digits))


def _fitting(numbers: Sequence[int]) -> Iterator[Digit]:
    """Digits that the fastest one may be: the largest first, those without rotation before."""
    sizes = _divisors(len(numbers))
    steps = [b - a for a, b in pairwise(numbers[:4])]
    for size in sizes:
        if size == 2 or steps[0] == steps[1]:
            digit = Digit(size, steps[0])
            if _fits(digit, numbers):
                yield digit
    for size in sizes:
        if size > 2 and len(set(steps[: size - 1])) < 3:  # all are one step but that to the start
            own = [b - a for a, b in pairwise(numbers[:size])]
            step = sorted(own)[len(own) // 2] if own[0] != own[-1] else own[0]
            breaks = [k for k, s in enumerate(own) if s != step]
            if len(breaks) == 1:
                digit = Digit(size, step, size - 1 - breaks[0])
                if _fits(digit, numbers):
                    yield digit


@lru_cache(maxsize=1 << 10)
def _divisors(count: int) -> tuple[int, ...]:
    """The largest first, without 1."""
    return tuple([size for size in range(count, 1, -1) if count % size == 0])


def _fits(digit: Digit, numbers: Sequence[int]) -> bool:
    """Every run of ``digit.size`` numbers is the digit's, from wherever it starts."""
    pattern = [(k + digit.rotation) % digit.size * digit.stride for k in range(digit.size)]
    for start in range(0, len(numbers), digit.size):
        offset = numbers[start] - pattern[0]
        if any(numbers[start + k] != offset + value for k, value in enumerate(pattern)):
            return False
    return True


def strided_columns(rows: Sequence[DeviceGroup], invertible: bool = False) -> list[StridedGroup]:
    """Formulas of rows of equal length, place after place; none where none are found.

    What is irregular within a row may be regular from row to row: places are cut where the step
    from device to device changes in the first row.  Of a single row, whose devices are different,
    there are always formulas, also `invertible` ones.

    >>> [(part.first, part.width) for part in strided_columns([(0, 1, 3, 2), (4, 5, 7, 6)])]
    [(0, 2), (2, 2)]
    """
    whole = strided_group(rows)
    if whole is not None and (whole.is_invertible or not invertible):
        return [whole]
    found = [strided_group([row[a:b] for row in rows], a) for a, b in pairwise(_cuts(rows[0]))]
    parts = [part for part in found if part and (part.is_invertible or not invertible)]
    return parts if len(parts) == len(found) else []


def _cuts(row: DeviceGroup) -> list[int]:
    """Where a row is cut into runs of devices that are the same step apart."""
    cuts = [0]
    for k in range(2, len(row)):
        if k - cuts[-1] > 1 and row[k] - row[k - 1] != row[k - 1] - row[k - 2]:
            cuts.append(k)
    return [*cuts, len(row)]


# ---------------------------------------------------------------- two sides


class Link(NamedTuple):
    """Groups of one size: their devices at one end, and at the other one."""

    start: StridedGroup
    end: StridedGroup
    width: int


def links(rows: Sequence[tuple[DeviceGroup, DeviceGroup]]) -> Iterator[Link]:
    """Formulas for groups, each given as the row of its devices at one end and at the other.

    As many groups as go together have the same formulas.  Every place at one end goes with every
    place at the other exactly once.
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
                count //= 2  # a single row is always found
            left = left[count:]

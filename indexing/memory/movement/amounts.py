"""Numbers of elements or bytes, with their grades, and bounds of sums over all executions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from hlo.shapes.shape import Shape
from indexing.maps.indexing_map import Grade
from indexing.memory.executions import Executions
from simplifier.unknown import Unknown


class Amount(NamedTuple):
    """A number of elements or bytes; an upper bound if the grade is "may".

    >>> str(Amount(1024)), str(Amount(1024, "may"))
    ('1,024', '<= 1,024')
    """

    number: int
    grade: Grade = "exact"

    def plus(self, other: Amount) -> Amount:
        """Return the sum of both."""
        grade: Grade = "may" if "may" in (self.grade, other.grade) else "exact"
        return Amount(self.number + other.number, grade)

    def __str__(self) -> str:
        return f"{self.number:,}" if self.grade == "exact" else f"<= {self.number:,}"


class TotalBounds(NamedTuple):
    """Inclusive bounds of a total; `upper` is None without a bound.

    >>> [str(TotalBounds(*bounds)) for bounds in ((4, 4), (0, 4), (1, 4), (4, None))]
    ['4', 'at most 4', '1 to 4', 'at least 4']
    """

    lower: int
    upper: int | None

    @property
    def number(self) -> int | None:
        """The total if it is known, else None."""
        return self.lower if self.lower == self.upper else None

    @classmethod
    def of(cls, amount: Amount | int | Unknown, times: Executions) -> TotalBounds:
        """Return the bounds of an amount in each execution, over all executions."""
        if isinstance(amount, Unknown):
            return cls(0, None if times.upper != 0 else 0)
        if isinstance(amount, int):
            amount = Amount(amount)
        lower = amount.number * times.lower if amount.grade == "exact" else 0
        upper = 0 if amount.number == 0 else None
        if times.upper is not None:
            upper = amount.number * times.upper
        return cls(lower, upper)

    def plus(self, other: TotalBounds) -> TotalBounds:
        """Return the bounds of the sum."""
        is_bounded = self.upper is not None and other.upper is not None
        upper = (self.upper or 0) + (other.upper or 0) if is_bounded else None
        return TotalBounds(self.lower + other.lower, upper)

    def __str__(self) -> str:
        if self.number is not None:
            return f"{self.number:,}"
        if self.upper is None:
            return f"at least {self.lower:,}"
        return f"{self.lower:,} to {self.upper:,}" if self.lower else f"at most {self.upper:,}"


class Totals(NamedTuple):
    """Bounds of the figures of all instructions over all executions."""

    read: TotalBounds
    needed: TotalBounds
    requested: TotalBounds
    written: TotalBounds
    flops: TotalBounds
    transcendentals: TotalBounds

    @property
    def bytes(self) -> TotalBounds:
        """Bytes that are read, each element once by each execution, and written."""
        return self.read.plus(self.written)


def bytes_of(elements: Amount, shape: Shape) -> Amount:
    """Return the bytes of a number of elements of an array.

    >>> bytes_of(Amount(9, "may"), Shape("f32", (16,)))
    Amount(number=36, grade='may')
    """
    return Amount(-(-elements.number * shape.element_bits // 8), elements.grade)


def total_amount(amounts: Iterable[Amount]) -> Amount:
    """Return the sum of amounts."""
    every = list(amounts)
    grade: Grade = "may" if "may" in [each.grade for each in every] else "exact"
    return Amount(sum([each.number for each in every]), grade)

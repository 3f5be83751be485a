"""Values of scalars and of symbolic sizes that a user gives: ``s: 0:9``, ``n: 8:4096:8``.

>>> print(*parse_ranges("s: 0:9; n: 8::8").items(), sep="; ")
('s', (0, 9)); ('n', (8, None, 8))
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from simplifier.constraints import Constraint
from simplifier.interval import Interval
from simplifier.linear import Expr

ValueRange: TypeAlias = "Sequence[int | None] | range"
"""The first and the last value, and a step; or Python's range."""

MAX_SIZE: Final = (1 << 31) - 1
"""The maximum of a symbolic size or of a dynamic grid without a given range."""

_ITEM: Final = re.compile(r"\s*([\w.\[\]]+)\s*:\s*(-?\d*)\s*:\s*(-?\d*)\s*(?::\s*(\d+)\s*)?")


@dataclass(frozen=True, slots=True)
class GivenValues:
    """The values of a scalar or of a size: from `bounds`, in steps of `step` from the first."""

    bounds: Interval
    step: int = 1

    def constraint(self, value: Expr) -> Constraint:
        """Return the constraint that a value is a number of steps from the first one."""
        residue = self.bounds[0] % self.step
        return Constraint(value % self.step, residue, residue)


def values_of(ranges: Mapping[str | int, ValueRange], name: str | int) -> GivenValues:
    """Return the values that are given for a name.

    Raises:
        ValueError: they are no range.

    >>> values_of({"n": (8, 64, 8)}, "n"), values_of({"n": range(8, 65, 8)}, "n").bounds
    (GivenValues(bounds=(8, 64), step=8), (8, 64))
    """
    given = ranges[name]
    if isinstance(given, range):
        numbers: Sequence[int | None] = (given[0], given[-1], given.step) if given else ()
    else:
        numbers = tuple(given) if isinstance(given, Sequence) else ()
    if len(numbers) == 2:
        numbers = (*numbers, 1)
    if len(numbers) != 3 or not all(n is None or isinstance(n, int) for n in numbers):
        raise ValueError(
            f"ranges: {name!r} has {given!r}: expected the first and the last value, such as "
            "(0, 9), and perhaps a step, or a range"
        )
    low, high, step = numbers
    bounds = (1 if low is None else low), (MAX_SIZE if high is None else high)
    if bounds[0] > bounds[1] or not step or step < 1:
        raise ValueError(f"ranges: {name!r} has {given!r}, which has no values")
    return GivenValues(bounds, step)


def size_conditions(ranges: Mapping[str | int, ValueRange], names: Sequence[str]) -> list[str]:
    """Return the conditions on symbolic sizes as JAX writes them.

    >>> size_conditions({"n": (8, 64, 8), "s": (0, 9)}, ["n"])
    ['n >= 8', 'n <= 64', 'mod(n, 8) == 0']
    """
    conditions: list[str] = []
    for name in names:
        if name in ranges:
            given = values_of(ranges, name)
            conditions.append(f"{name} >= {given.bounds[0]}")
            if given.bounds[1] < MAX_SIZE:
                conditions.append(f"{name} <= {given.bounds[1]}")
            if given.step > 1:
                conditions.append(f"mod({name}, {given.step}) == {given.bounds[0] % given.step}")
    return conditions


def parse_ranges(text: str) -> dict[str | int, ValueRange]:
    """Return ranges given as text: ``name: first:last`` or ``name: first:last:step``.

    Raises:
        ValueError: the text is no such list.
    """
    parsed: dict[str | int, ValueRange] = {}
    for item in re.split("[;,]", text):
        if not item.strip():
            continue
        match = _ITEM.fullmatch(item)
        if match is None:
            raise ValueError(
                f"{item.strip()!r} is not a range: expected a name and its first and last value, "
                "such as 's: 0:9', or with a step 'n: 8:4096:8'"
            )
        name, *numbers = match.groups()
        low, high, step = [int(n) if n else None for n in numbers]
        parsed[int(name) if name.isdecimal() else name] = (
            (low, high) if step is None else (low, high, step)
        )
    return parsed

"""Which law changed what, for those who want to see why an expression looks as it does.

Nothing is recorded, and nothing costs, until somebody asks; then what was remembered is worked out
again, so that it shows.

>>> from simplifier.linear import variable
>>> d0, d1 = variable("d0", 0, 9), variable("d1", 0, 7)
>>> with recorded() as applied:
...     rows = (d0 * 8 + d1) // 4
>>> for each in applied:
...     print(each)
law 1 (multiples leave): (d0 * 8 + d1) floordiv 4 = d0 * 2 + d1 floordiv 4
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import NamedTuple


class Law(StrEnum):
    """The laws by name; `simplifier.divmod`, `simplifier.rewrite` and `simplifier.sharpen` say
    what they are."""

    MULTIPLES = "law 1 (multiples leave)"
    INSIDE = "law 2 (the rest stays inside one multiple)"
    FACTOR = "law 3 (a common factor is divided out)"
    MERGED = "law 4 (a floor of a floor is one floor)"
    ZERO = "law zero (a multiple of what is 0 is added)"
    RESIDUE = "law residue (an idle constant moves)"
    POINT = "law point (what has only one value is that number)"


class Applied(NamedTuple):
    """One application of a law: two texts that mean the same."""

    law: Law
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.law}: {self.before} = {self.after}"


records: list[list[Applied]] = []
"""What is recorded now; while there are any, what is remembered is worked out again."""


@contextmanager
def recorded() -> Iterator[list[Applied]]:
    """The laws that are applied inside, in order, each application once."""
    applied: list[Applied] = []
    records.append(applied)
    try:
        yield applied
    finally:
        records.remove(applied)


def note(law: Law, before: str, after: object) -> None:
    """`law` turned `before` into `after`."""
    applied = Applied(law, before, str(after))
    for record in records:
        if applied.before != applied.after and applied not in record:
            record.append(applied)


def note_division(law: Law, dividend: object, divisor: int, after: object) -> None:
    """`law` turned ``dividend floordiv divisor`` into `after`."""
    note(law, f"({dividend}) floordiv {divisor}", after)

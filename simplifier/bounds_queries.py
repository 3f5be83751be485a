"""Queries for bounds of expressions that would decide a floor."""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd
from typing import NamedTuple

from simplifier.atoms import Floor
from simplifier.divmod import floor_mod
from simplifier.interval import Interval
from simplifier.linear import Expr
from simplifier.samples import Samples


class BoundsQuery(NamedTuple):
    """Query for the bounds of `expr`, used if ``expr floordiv unit`` has only one value."""

    expr: Expr
    unit: int

    def has_one_value(self, bounds: Interval | None) -> bool:
        """Return True if `bounds`, which a constraint gives the terms, decide the query."""
        if bounds is None:
            return False
        lower, upper = bounds[0] + self.expr.constant, bounds[1] + self.expr.constant
        return lower // self.unit == upper // self.unit


def queries_of(floor: Floor, samples: Samples | None) -> Iterator[BoundsQuery]:
    """Queries that decide a floor by the laws of `simplifier.divmod` and `simplifier.rewrite`."""
    numerator, divisor = floor.numerator, floor.divisor
    values = samples.values(numerator) if samples else [0]
    if len({value % divisor for value in values}) == 1:
        yield BoundsQuery(floor_mod(numerator, divisor), 1)
    if len(numerator.parts) > 1 and len({value // divisor for value in values}) == 1:
        yield BoundsQuery(numerator, divisor)
    for factor in {gcd(c, divisor) for c in numerator.parts.values()} - {1}:
        nonmultiples = {atom: c for atom, c in numerator.parts.items() if c % factor}
        if len(nonmultiples) > 1:
            rest = Expr(nonmultiples, 0)
            values = samples.values(rest) if samples else [0]
            if len({value // factor for value in values}) == 1:
                yield BoundsQuery(rest, factor)

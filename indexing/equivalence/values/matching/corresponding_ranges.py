"""Ranges of two folds that reach the same points, in other orders or with other digits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations
from typing import Final

from hlo.shapes.mixed_radix import number_of
from simplifier.atoms import Variable, point_count
from simplifier.constraints import Constraint
from simplifier.linear import Expr, as_expr

MAX_ORDERS: Final = 24
"""Limit on the correspondences of the ranges of two folds that are tried."""


def corresponding_ranges(
    ranges: Sequence[Variable], others: Sequence[Variable]
) -> Iterator[tuple[dict[Variable, Expr], list[Constraint]]]:
    """Yield values of `ranges` over `others` that reach each point once, with its conditions.

    Each range is one of the others, or one range is the number with the digits of several others;
    numbers beyond the range are excluded by a condition.
    """
    if any(v.lower for v in (*ranges, *others)):
        return
    made = 0
    for order in permutations(others):
        for swap, guards in _match_ranges(ranges, order):
            yield swap, guards
            made += 1
            if made == MAX_ORDERS:
                return


def _match_ranges(
    ranges: Sequence[Variable], order: Sequence[Variable]
) -> Iterator[tuple[dict[Variable, Expr], list[Constraint]]]:
    """Yield values of ranges as numbers with the digits of successive variables."""
    if not ranges:
        if not order:
            yield {}, []
        return
    first, *rest = ranges
    size = first.upper + 1
    for k in range(1, len(order) - len(rest) + 1):
        digits = order[:k]
        total = point_count(digits)
        if total < size or (k > 1 and total // (digits[0].upper + 1) >= size):
            continue
        number = as_expr(number_of(digits, [v.size for v in digits]))
        guards = [] if total == size else [Constraint(number, 0, size - 1)]
        for swap, others in _match_ranges(rest, order[k:]):
            yield {first: number} | swap, [*guards, *others]

"""Floor division of an expression by a positive constant: the few laws of the normal form.

For ``floor(e / d)``, in this order:

1. split off multiples of ``d``: ``floor((d·q + r) / d) = q + floor(r / d)``;
2. if the interval of the rest lies within one multiple of ``d``, the floor is a constant;
3. divide out a common factor ``g``: ``floor((g·a + b) / (g·c)) = floor((a + k) / c)`` where
   ``floor(b / g)`` is the constant ``k``;
4. a floor in a floor merges: ``floor((floor(n / e) + r) / d) = floor((n + e·r) / (d·e))``;
5. otherwise a new atom.

Laws 1 to 3 are tried first with the mods in ``e`` kept whole, because ``x mod m`` has much tighter
bounds than ``x − m·floor(x / m)`` term by term, and then with the mods released into their terms.
"""

from __future__ import annotations

from math import gcd
from typing import NamedTuple

from simplifier.bounds import NOTHING_KNOWN, Facts
from simplifier.interval import Interval, added, scaled
from simplifier.linear import Atom, Expr, Floor, combined, constant, make
from simplifier.linear import added as sum_of
from simplifier.mods import split


def floor_div(expr: Expr, divisor: int, facts: Facts = NOTHING_KNOWN) -> Expr:
    """``floor(expr / divisor)``, rounded towards minus infinity, with the laws applied.

    Raises:
        ValueError: `divisor` is not positive.

    >>> from simplifier.linear import variable
    >>> d0, d1 = variable("d0", 0, 9), variable("d1", 0, 5)
    >>> floor_div(d0 * 8 + d1, 4)
    Expr('d0 * 2 + d1 floordiv 4')
    """
    if divisor <= 1:
        if divisor < 1:
            raise ValueError(f"a divisor is a positive constant, not {divisor}")
        return expr
    if facts.known:
        key = expr, divisor
        found = facts.floors.get(key)
        if found is None:
            found = facts.floors[key] = _floor_div(expr, divisor, facts)
        return found
    if expr.floor_memo is None:
        expr.floor_memo = {}
    found = expr.floor_memo.get(divisor)
    if found is None:
        found = expr.floor_memo[divisor] = _floor_div(expr, divisor, facts)
    return found


def floor_mod(expr: Expr, modulus: int, facts: Facts = NOTHING_KNOWN) -> Expr:
    """``expr − modulus·floor(expr / modulus)``, which lies in ``[0, modulus)``."""
    return sum_of(expr, floor_div(expr, modulus, facts), -modulus)


class Part(NamedTuple):
    """``coefficient · piece`` with the interval of the piece."""

    coefficient: int
    piece: Expr
    bounds: Interval


def _floor_div(expr: Expr, divisor: int, facts: Facts) -> Expr:
    if not expr.terms:
        return constant(expr.constant // divisor)
    mods, rest = split(expr, divisor)
    if mods:
        whole = [
            *[_atom_part(atom, coefficient, facts) for atom, coefficient in rest.terms],
            *[_mod_part(*mod, facts) for mod in mods],
        ]
        found = _by_intervals(whole, rest.constant, divisor, facts)
        if found is not None:
            return found
    quotient, remainder = _multiples_split_off(expr, divisor)
    parts = [_atom_part(atom, coefficient, facts) for atom, coefficient in remainder.terms]
    found = _by_intervals(parts, remainder.constant, divisor, facts)
    if found is None:
        found = _merged(remainder, divisor, facts) or _new_floor(remainder, divisor, facts)
    return sum_of(quotient, found)


def _atom_part(atom: Atom, coefficient: int, facts: Facts) -> Part:
    piece = make(((atom, 1),), 0)
    return Part(coefficient, piece, facts.bounds(piece))


def _mod_part(coefficient: int, dividend: Expr, modulus: int, facts: Facts) -> Part:
    piece = floor_mod(dividend, modulus)
    return Part(coefficient, piece, facts.bounds(piece))


def _multiples_split_off(expr: Expr, divisor: int) -> tuple[Expr, Expr]:
    """Law 1: ``(q, r)`` with ``expr = divisor·q + r``; r has the least absolute coefficients."""
    quotient, remainder = [], []
    for atom, coefficient in expr.terms:
        whole, left = _least_absolute(coefficient, divisor)
        if whole:
            quotient.append((atom, whole))
        if left:
            remainder.append((atom, left))
    whole, left = divmod(expr.constant, divisor)
    return make(tuple(quotient), whole), make(tuple(remainder), left)


def _least_absolute(coefficient: int, divisor: int) -> tuple[int, int]:
    whole, left = divmod(coefficient, divisor)
    return (whole + 1, left - divisor) if left > divisor >> 1 else (whole, left)


def _by_intervals(parts: list[Part], offset: int, divisor: int, facts: Facts) -> Expr | None:
    """Laws 1 to 3 on ``offset + Σ parts``, or `None` where intervals do not decide."""
    quotient: list[tuple[int, Expr]] = []
    remainder: list[Part] = []
    for coefficient, piece, bounds in parts:
        whole, left = _least_absolute(coefficient, divisor)
        if whole:
            quotient.append((whole, piece))
        if left:
            remainder.append(Part(left, piece, bounds))
    whole, offset = divmod(offset, divisor)
    lower, upper = _bounds_of_sum(remainder, offset, facts)
    if lower // divisor == upper // divisor:  # law 2
        return combined(quotient, whole + lower // divisor)
    if any(part.coefficient < 0 for part in remainder):  # law 2 with non-negative residues
        positive = [Part(p.coefficient % divisor, p.piece, p.bounds) for p in remainder]
        lower, upper = _bounds_of_sum(positive, offset, facts)
        if lower // divisor == upper // divisor:
            floors = [(part.coefficient // divisor, part.piece) for part in parts]
            return combined(floors, whole + lower // divisor)
    factors = {gcd(part.coefficient, divisor) for part in remainder} - {1}
    for factor in sorted(factors, reverse=True):  # law 3
        lacking = [part for part in remainder if part.coefficient % factor]
        lower, upper = _bounds_of_sum(lacking, offset, facts)
        if lower // factor == upper // factor:
            having = [(p.coefficient // factor, p.piece) for p in remainder if p not in lacking]
            rest = combined(having, lower // factor)
            return combined([*quotient, (1, floor_div(rest, divisor // factor, facts))], whole)
    return None


def _bounds_of_sum(parts: list[Part], offset: int, facts: Facts) -> Interval:
    """The interval of ``offset + Σ parts``: part by part, and as facts know the sum."""
    total = offset, offset
    for coefficient, _, bounds in parts:
        total = added(total, scaled(bounds, coefficient))
    if len(parts) > 1 and (
        facts.known or any(isinstance(p.piece.terms[0][0], Floor) for p in parts)
    ):
        low, high = facts.bounds(combined([(p.coefficient, p.piece) for p in parts], offset))
        return max(low, total[0]), min(high, total[1])
    return total


def _merged(remainder: Expr, divisor: int, facts: Facts) -> Expr | None:
    """Law 4, for exactly one floor with coefficient 1."""
    inner = [atom for atom, c in remainder.terms if c == 1 and isinstance(atom, Floor)]
    if len(inner) != 1:
        return None
    floor = inner[0]
    rest = sum_of(remainder, make(((floor, 1),), 0), -1)
    numerator = sum_of(floor.numerator, rest, floor.divisor)
    return floor_div(numerator, divisor * floor.divisor, facts)


def _new_floor(remainder: Expr, divisor: int, facts: Facts) -> Expr:
    """Law 5.  The atom's own bounds hold everywhere, so they come from no facts."""
    lower, upper = NOTHING_KNOWN.bounds(remainder)
    return make(((Floor(remainder, divisor, (lower // divisor, upper // divisor)), 1),), 0)

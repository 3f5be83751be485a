"""Floor division of an expression by a positive constant: the few laws of the normal form.

For ``floor(e / d)``, in this order:

1. split off multiples of ``d``: ``floor((d·q + r) / d) = q + floor(r / d)``;
2. if the interval of the rest lies within one multiple of ``d``, the floor is a constant;
3. divide out a common factor ``g``: ``floor((g·a + b) / (g·c)) = floor((a + k) / c)`` where
   ``floor(b / g)`` is the constant ``k``;
4. a floor in a floor merges: ``floor((floor(n / e) + r) / d) = floor((n + e·r) / (d·e))``, and so
   with ``−floor(n / e)``;
5. otherwise a new atom.

Laws 1 to 3 are tried first with the mods in ``e`` kept whole, because ``x mod m`` has much tighter
bounds than ``x − m·floor(x / m)`` term by term, and then with the mods released into their terms.
"""

from __future__ import annotations

from math import gcd
from typing import Final, TypeAlias

from simplifier.bounds import NOTHING_KNOWN, Facts
from simplifier.interval import Interval
from simplifier.linear import Atom, Expr, Floor, added, alone, constant
from simplifier.mods import Mod, split


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
        found = expr.floor_memo[divisor] = _known_floor(expr, divisor)
    return found


# Divisions that were done, by structure: an equal expression may be built again and again.
_DONE: dict[tuple[object, int], Expr] = {}
_MOST_DONE: Final = 1 << 16


def _known_floor(expr: Expr, divisor: int) -> Expr:
    key = expr.identity, divisor
    found = _DONE.get(key)
    if found is None:
        found = _floor_div(expr, divisor, NOTHING_KNOWN)
        if len(_DONE) >= _MOST_DONE:
            _DONE.clear()
        _DONE[key] = found
    return found


def floor_mod(expr: Expr, modulus: int, facts: Facts = NOTHING_KNOWN) -> Expr:
    """``expr − modulus·floor(expr / modulus)``, which lies in ``[0, modulus)``."""
    return added(expr, floor_div(expr, modulus, facts), -modulus)


# ``coefficient · piece`` with the bounds of the piece: (coefficient, lower, upper, piece).
# Plain tuples, because a division makes many of them.
Piece: TypeAlias = tuple[int, int, int, Atom | Mod]
Pieces: TypeAlias = list[Piece]


def _floor_div(expr: Expr, divisor: int, facts: Facts) -> Expr:
    if not expr.parts:
        return constant(expr.constant // divisor)
    mods, rest = split(expr, divisor)
    if mods:
        whole = [(m.coefficient, *facts.bounds_of_mod(m.dividend, m.modulus), m) for m in mods]
        division = Division([*whole, *_atoms(rest, facts)], rest.constant, divisor, facts)
        found = division.by_intervals()
        if found is not None:
            return found
    division = Division(_atoms(expr, facts), expr.constant, divisor, facts)
    found = division.by_intervals()
    if found is None:
        remainder = expr
        if division.quotient or division.whole:
            left = [(piece[0], piece[3]) for piece in division.remainder]
            remainder = _sum(left, division.offset)
        found = _merged(remainder, divisor, facts) or _new_floor(remainder, divisor)
        found = added(_sum(division.quotient, division.whole), found)
    return found


def _atoms(expr: Expr, facts: Facts) -> Pieces:
    if facts.known:
        return [(c, *facts.bounds_of_atom(atom), atom) for atom, c in expr.parts.items()]
    return [(c, *atom.bounds, atom) for atom, c in expr.parts.items()]


class Division:
    """``floor((offset + Σ pieces) / divisor)`` after law 1, which splits multiples off.

    It is ``whole + Σ quotient + floor((offset + Σ remainder) / divisor)``, where the coefficients
    of the remainder are the least absolute ones and ``0 <= offset < divisor``.
    """

    __slots__ = ("divisor", "facts", "offset", "quotient", "remainder", "sums", "whole")

    def __init__(self, pieces: Pieces, offset: int, divisor: int, facts: Facts) -> None:
        self.divisor, self.facts = divisor, facts
        self.quotient: list[tuple[int, Atom | Mod]] = []
        self.remainder: Pieces = []
        self.whole, self.offset = divmod(offset, divisor)
        half = divisor >> 1
        for coefficient, lower, upper, piece in pieces:
            whole, left = divmod(coefficient, divisor)
            if left > half:
                whole, left = whole + 1, left - divisor
            if whole:
                self.quotient.append((whole, piece))
            if left:
                self.remainder.append((left, lower, upper, piece))

    def by_intervals(self) -> Expr | None:
        """Laws 2 and 3, or `None` where intervals do not decide."""
        divisor, remainder = self.divisor, self.remainder
        lower, upper = self._bounds(remainder)
        if lower // divisor == upper // divisor:  # law 2
            return _sum(self.quotient, self.whole + lower // divisor)
        if any(piece[0] << 1 == divisor for piece in remainder):  # law 2, halves turned round
            halves = [piece for piece in remainder if piece[0] << 1 == divisor]
            lower, upper = self._bounds([(-p[0], *p[1:]) if p in halves else p for p in remainder])
            if lower // divisor == upper // divisor:
                more = [(1, piece[3]) for piece in halves]
                return _sum([*self.quotient, *more], self.whole + lower // divisor)
        if any(piece[0] < 0 for piece in remainder):  # law 2 with non-negative residues
            positive = [(p[0] % divisor, *p[1:]) for p in remainder]
            lower, upper = self._bounds(positive)
            if lower // divisor == upper // divisor:
                less = [(-1, p[3]) for p in remainder if p[0] < 0]
                return _sum([*self.quotient, *less], self.whole + lower // divisor)
        if len(remainder) == 1:
            factors = [gcd(remainder[0][0], divisor)]
        else:
            factors = sorted({gcd(piece[0], divisor) for piece in remainder}, reverse=True)
        for factor in factors:  # law 3
            if factor == 1:
                break
            lower, upper = self._bounds([p for p in remainder if p[0] % factor])
            if lower // factor == upper // factor:
                having = [(p[0] // factor, p[3]) for p in remainder if not p[0] % factor]
                rest = floor_div(_sum(having, lower // factor), divisor // factor, self.facts)
                return added(_sum(self.quotient, self.whole), rest)
        return None

    def _bounds(self, pieces: Pieces) -> Interval:
        """The interval of ``offset + Σ pieces``: piece by piece, and as facts know the sum."""
        low = high = self.offset
        plain = True
        for coefficient, lower, upper, piece in pieces:
            if coefficient > 0:
                low += coefficient * lower
                high += coefficient * upper
            else:
                low += coefficient * upper
                high += coefficient * lower
            plain = plain and piece.__class__ is not Floor
        if len(pieces) < 2 or (plain and not self.facts.known):
            return low, high
        known = self.facts.bounds(_sum([(piece[0], piece[3]) for piece in pieces], self.offset))
        return max(low, known[0]), min(high, known[1])


def _sum(pieces: list[tuple[int, Atom | Mod]], constant: int) -> Expr:
    """``constant + Σ coefficient · piece``, with the mods released into their terms."""
    total: dict[Atom, int] = {}
    for factor, piece in pieces:
        if isinstance(piece, Mod):
            _, dividend, modulus, floor = piece
            constant += factor * dividend.constant
            for atom, coefficient in dividend.parts.items():
                total[atom] = total.get(atom, 0) + factor * coefficient
            total[floor] = total.get(floor, 0) - factor * modulus
        else:
            total[piece] = total.get(piece, 0) + factor
    if 0 in total.values():
        total = {atom: c for atom, c in total.items() if c}
    return Expr(total, constant)


def _merged(remainder: Expr, divisor: int, facts: Facts) -> Expr | None:
    """Law 4, for exactly one floor with coefficient 1 or -1.

    ``floor((r − floor(n/e)) / d) = floor((e·r − n + e − 1) / (d·e))``, as ``−floor(x)`` is the
    ceiling of ``−x``.
    """
    inner = [(a, c) for a, c in remainder.parts.items() if a.__class__ is Floor and c in (1, -1)]
    if len(inner) != 1:
        return None
    ((floor, sign),) = inner
    assert isinstance(floor, Floor)
    rest = added(remainder, alone(floor), -sign)
    inside = floor.numerator
    if sign < 0:
        inside = added(constant(floor.divisor - 1), inside, -1)
    return floor_div(added(inside, rest, floor.divisor), divisor * floor.divisor, facts)


def _new_floor(remainder: Expr, divisor: int) -> Expr:
    """Law 5.  The atom's own bounds hold everywhere, so they come from no facts."""
    lower, upper = remainder.bounds
    return alone(Floor(remainder, divisor, (lower // divisor, upper // divisor)))

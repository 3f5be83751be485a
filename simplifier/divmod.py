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

from collections.abc import Iterable, Iterator, Mapping
from math import gcd
from typing import Final, TypeAlias

from simplifier import laws, trace
from simplifier.atoms import Atom, Floor
from simplifier.bounds import UNCONSTRAINED, KnownBounds
from simplifier.interval import Interval
from simplifier.linear import Expr, added, constant, from_atom, gather
from simplifier.mods import Mod, Split, may_hold_mods, split, split_finest
from simplifier.trace import Law


def floor_div(expr: Expr, divisor: int, known: KnownBounds = UNCONSTRAINED) -> Expr:
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
    parts = expr.parts
    key = tuple(parts), tuple(parts.values()), expr.constant, divisor
    floor = known.floors.get(key)
    if floor is None:
        law, floor = _divided(expr, divisor, known)
        if trace.records and law is not None:
            trace.note(law, f"{trace.operand_text(expr)} floordiv {divisor}", floor)
        if len(known.floors) >= _MAX_FLOORS:
            known.floors.clear()
        known.floors[key] = floor
    return floor


_MAX_FLOORS: Final = 1 << 16

trace.forget_when_recording(UNCONSTRAINED.floors.clear)


def floor_mod(expr: Expr, modulus: int, known: KnownBounds = UNCONSTRAINED) -> Expr:
    """``expr − modulus·floor(expr / modulus)``, which lies in ``[0, modulus)``."""
    remainder = added(expr, floor_div(expr, modulus, known), -modulus)
    if trace.records:
        trace.note(laws.EXPAND_MOD, f"{trace.operand_text(expr)} mod {modulus}", remainder)
    return remainder


class Bounded:
    """An expression that is divided as if it were an atom, with its bounds."""

    __slots__ = ("bounds", "expr")

    def __init__(self, expr: Expr, bounds: Interval) -> None:
        self.expr, self.bounds = expr, bounds


Piece: TypeAlias = Atom | Bounded


def _divided(expr: Expr, divisor: int, known: KnownBounds) -> tuple[Law | None, Expr]:
    """``floor(expr / divisor)``, and the law that said the last word."""
    parts = expr.parts
    if not parts:
        return None, constant(expr.constant // divisor)
    floors = [atom for atom in parts if isinstance(atom, Floor)]
    holds_mods = bool(floors) and may_hold_mods(floors, parts)
    if holds_mods:
        found = _with_whole_mods(expr, divisor, known)
        if found is not None:
            return found
    is_plain = not holds_mods and not known.sums
    division = Division(_atoms(parts, known), expr.constant, divisor, known, is_plain)
    decided = division.by_intervals()
    if decided is not None:
        return division.law, decided
    law, remainder = None, expr
    if division.quotient or division.whole:
        law, remainder = (
            laws.FACTOR_OUT_MULTIPLES,
            division.sum(division.remainder, division.offset),
        )
        if holds_mods:  # without the multiples, others may show
            return law, division.quotient_and(floor_div(remainder, divisor, known))
    floor = _mergeable(remainder) if floors else None
    if floor is not None:
        law = laws.MERGE_FLOORS if remainder.parts[floor] > 0 else laws.MERGE_NEGATED_FLOOR
        return law, division.quotient_and(_merged(remainder, floor, divisor, known))
    return law, division.with_new_floor(remainder)


def _with_whole_mods(expr: Expr, divisor: int, known: KnownBounds) -> tuple[Law, Expr] | None:
    """Laws 1 to 3 with the mods in `expr` kept whole; `None` where intervals do not decide."""
    for mods, rest in _splits(expr, divisor):
        pieces = _atoms(rest.parts, known) | {_mod(m, known): m.coefficient for m in mods}
        division = Division(pieces, rest.constant, divisor, known, False)
        decided = division.by_intervals()
        if decided is not None:
            if trace.records:
                _note_mods(mods, known)
            return division.law, decided
    return None


def _note_mods(mods: Iterable[Mod], known: KnownBounds) -> None:
    """Record that `mods` were recombined from their terms, and bounded as a whole."""
    for coefficient, dividend, modulus, floor in mods:
        text = trace.operand_text(dividend)
        whole = f"{text} mod {modulus}"
        terms = f"{text} * {coefficient} - ({from_atom(floor)}) * {coefficient * modulus}"
        trace.note(laws.RECOMBINE_MOD, terms, f"({whole}) * {coefficient}")
        lower, upper = known.bounds_of_mod(dividend, modulus)
        trace.note(laws.BOUND_MOD, whole, f"[{lower}, {upper}]")


def _splits(expr: Expr, divisor: int) -> Iterator[Split]:
    """Ways to keep mods of `expr` whole, the likelier first."""
    first = split(expr, divisor)
    if first.mods:
        yield first
    finest = split_finest(expr)
    if finest.mods and finest != first:
        yield finest


def _atoms(parts: dict[Atom, int], known: KnownBounds) -> dict[Piece, int]:
    """The atoms with the bounds that `known` give them."""
    if not known.sums:
        return parts  # type: ignore[return-value]  # it is not changed
    pieces: dict[Piece, int] = {}
    for atom, coefficient in parts.items():
        bounds = known.bounds_of_atom(atom)
        pieces[atom if bounds == atom.bounds else Bounded(from_atom(atom), bounds)] = coefficient
    return pieces


def _mod(mod: Mod, known: KnownBounds) -> Bounded:
    bounds = known.bounds_of_mod(mod.dividend, mod.modulus)
    return Bounded(added(mod.dividend, from_atom(mod.floor), -mod.modulus), bounds)


class Division:
    """``floor((offset + Σ pieces) / divisor)`` after law 1, which splits multiples off.

    It is ``whole + Σ quotient + floor((offset + Σ remainder) / divisor)``, where the coefficients
    of the remainder are the least absolute ones and ``0 <= offset < divisor``.
    """

    __slots__ = (
        *("divisor", "known", "law", "offset", "quotient", "remainder", "whole"),
        *("bounds", "halves", "negative"),  # of the remainder
        "is_plain",  # all pieces are atoms, and nothing is known of them but their bounds
    )

    def __init__(
        self,
        pieces: Mapping[Piece, int],
        offset: int,
        divisor: int,
        known: KnownBounds,
        is_plain: bool,
    ) -> None:
        self.divisor, self.known, self.is_plain, self.law = (
            divisor,
            known,
            is_plain,
            laws.FOLD_CONSTANT_FLOOR,
        )
        self.whole, self.offset = divmod(offset, divisor) if offset else (0, 0)
        quotient: dict[Piece, int] = {}
        remainder: dict[Piece, int] = {}
        below = (divisor - 1) >> 1  # multiples are rounded to the nearest, of two to the lower
        least = most = self.offset
        negative = halves = False
        for piece, coefficient in pieces.items():  # the innermost loop: kept free of calls
            whole = (coefficient + below) // divisor
            left = coefficient - whole * divisor
            if whole:
                quotient[piece] = whole
            if left:
                remainder[piece] = left
                lower, upper = piece.bounds
                if left > 0:
                    least, most = least + left * lower, most + left * upper
                    halves = halves or left << 1 == divisor
                else:
                    least, most = least + left * upper, most + left * lower
                    negative = True
        self.quotient, self.remainder, self.bounds = quotient, remainder, (least, most)
        self.negative, self.halves = negative, halves

    def by_intervals(self) -> Expr | None:
        """Laws 2 and 3, or `None` where intervals do not decide."""
        inside = self._inside_one_multiple()
        return self._without_factor() if inside is None else inside

    def _inside_one_multiple(self) -> Expr | None:
        """Law 2 with one of three remainders that differ in multiples of the divisor."""
        divisor = self.divisor
        least, most = self.bounds
        if least // divisor == most // divisor:
            return self.sum(self.quotient, self.whole + least // divisor)
        found = None
        if self.known.sums:
            found = self._whole_number(self.remainder, {})
        if found is None and self.halves and (most - least < divisor or self.known.sums):
            found = self._with_halves_turned()  # which is as wide
        if found is None and self.negative:
            found = self._with_residues()
        return found

    def _with_halves_turned(self) -> Expr | None:
        """Law 2 with ``−divisor / 2`` for each coefficient ``divisor / 2``."""
        divisor, remainder = self.divisor, self.remainder
        turned = {piece: -c if c << 1 == divisor else c for piece, c in remainder.items()}
        return self._whole_number(turned, {p: 1 for p, c in remainder.items() if c << 1 == divisor})

    def _with_residues(self) -> Expr | None:
        """Law 2 with the non-negative residues of all coefficients."""
        divisor, remainder = self.divisor, self.remainder
        residues = {piece: c % divisor for piece, c in remainder.items()}
        return self._whole_number(residues, {p: -1 for p, c in remainder.items() if c < 0})

    def _without_factor(self) -> Expr | None:
        """Law 3 with the largest factor that has a constant left over."""
        for factor in self._factors():
            lacking = {piece: c for piece, c in self.remainder.items() if c % factor}
            multiple = self._only_multiple(lacking, factor)
            if multiple is not None:
                having = {p: c // factor for p, c in self.remainder.items() if p not in lacking}
                rest = self.sum(having, multiple)
                self.law = laws.CANCEL_COMMON_FACTOR
                return self.quotient_and(floor_div(rest, self.divisor // factor, self.known))
        return None

    def with_new_floor(self, remainder: Expr) -> Expr:
        """``whole + Σ quotient + floor(remainder / divisor)``, where the floor is a new atom."""
        divisor, quotient = self.divisor, self.quotient
        least, most = self.bounds if self.is_plain else remainder.bounds  # they hold everywhere
        floor = Floor(remainder, divisor, (least // divisor, most // divisor))
        if self.is_plain and floor not in quotient:
            quotient[floor] = 1
            return Expr(quotient, self.whole)  # type: ignore[arg-type]  # all of them are atoms
        return self.quotient_and(from_atom(floor))

    def quotient_and(self, rest: Expr) -> Expr:
        """``whole + Σ quotient + rest``."""
        if not self.quotient:
            return Expr(rest.parts, rest.constant + self.whole) if self.whole else rest
        return self.sum(self.quotient, self.whole) + rest

    def _factors(self) -> list[int]:
        """What some coefficients share with the divisor, the largest first."""
        factors: list[int] = []
        for coefficient in self.remainder.values():
            factor = gcd(coefficient, self.divisor)
            if factor > 1 and factor not in factors:
                factors.append(factor)
        if len(factors) > 1:
            factors.sort(reverse=True)
        return factors

    def _whole_number(self, remainder: dict[Piece, int], more: dict[Piece, int]) -> Expr | None:
        """Law 2 with this `remainder`, which left `more` to the quotient."""
        multiple = self._only_multiple(remainder, self.divisor)
        if multiple is None:
            return None
        quotient = self.quotient
        if more:
            quotient = {**quotient, **{p: quotient.get(p, 0) + c for p, c in more.items()}}
        return self.sum(quotient, self.whole + multiple)

    def _only_multiple(self, pieces: dict[Piece, int], of: int) -> int | None:
        """``floor((offset + Σ pieces) / of)`` where intervals show that it is one number.

        They are taken piece by piece first, then as known know the sum.
        """
        least = most = self.offset
        for piece, coefficient in pieces.items():
            lower, upper = piece.bounds
            if coefficient > 0:
                least, most = least + coefficient * lower, most + coefficient * upper
            else:
                least, most = least + coefficient * upper, most + coefficient * lower
        if least // of != most // of and self.known.sums and len(pieces) > 1:
            said = self.known.bounds_of_sum(self.sum(pieces, self.offset))
            if said:
                least, most = max(least, said[0]), min(most, said[1])
        return least // of if least // of == most // of else None

    def sum(self, pieces: dict[Piece, int], constant: int) -> Expr:
        """``constant + Σ coefficient · piece``."""
        if self.is_plain and 0 not in pieces.values():
            return Expr(pieces, constant)  # type: ignore[arg-type]  # all of them are atoms
        total: dict[Atom, int] = {}
        for piece, factor in pieces.items():
            if isinstance(piece, Bounded):
                constant += factor * piece.expr.constant
                for atom, coefficient in piece.expr.parts.items():
                    total[atom] = total.get(atom, 0) + factor * coefficient
            else:
                total[piece] = total.get(piece, 0) + factor
        return gather(total, constant)


def _mergeable(remainder: Expr) -> Floor | None:
    """The floor with coefficient 1 or -1, or `None` unless there is exactly one."""
    inner = [a for a, c in remainder.parts.items() if isinstance(a, Floor) and c in (1, -1)]
    return inner[0] if len(inner) == 1 else None


def _merged(remainder: Expr, floor: Floor, divisor: int, known: KnownBounds) -> Expr:
    """``floor(remainder / divisor)`` by law 4, where `floor` has the coefficient 1 or -1.

    ``floor((r − floor(n/e)) / d) = floor((e·r − n + e − 1) / (d·e))``, as ``−floor(x)`` is the
    ceiling of ``−x``.
    """
    sign = remainder.parts[floor]
    rest = added(remainder, from_atom(floor), -sign)
    inside = floor.numerator
    if sign < 0:
        inside = added(constant(floor.divisor - 1), inside, -1)
    return floor_div(added(inside, rest, floor.divisor), divisor * floor.divisor, known)

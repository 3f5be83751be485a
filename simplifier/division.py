"""A division of a sum by a positive constant, as `simplifier.divmod` applies laws 1 to 3 to it."""

from __future__ import annotations

from math import gcd

from simplifier.atoms import Atom, Floor
from simplifier.bounds import AtomLike, Bounded, KnownBounds
from simplifier.linear import Expr, from_atom, without_zero_terms


class Division:
    """``floor((offset + Σ pieces) / divisor)`` after law 1, which factors out multiples.

    Its value is ``constant + Σ quotient + floor((offset + Σ remainder) / divisor)``, with
    ``0 <= offset < divisor`` and remainder coefficients of the least absolute value.
    """

    __slots__ = (
        *("constant", "divisor", "known", "offset", "quotient", "remainder"),
        *("bounds", "halves", "negative"),  # of the remainder
        "is_plain",  # all pieces are atoms with their own bounds
    )

    def __init__(
        self,
        pieces: dict[AtomLike, int],
        offset: int,
        divisor: int,
        known: KnownBounds,
        is_plain: bool,
    ) -> None:
        self.divisor, self.known, self.is_plain = divisor, known, is_plain
        self.constant, self.offset = divmod(offset, divisor) if offset else (0, 0)
        quotient: dict[AtomLike, int] = {}
        remainder: dict[AtomLike, int] = {}
        below = (divisor - 1) >> 1  # rounds a quotient to the nearest integer, ties down
        lower = upper = self.offset
        negative = halves = False
        for piece, coefficient in pieces.items():  # the innermost loop: no calls
            multiple = (coefficient + below) // divisor
            left = coefficient - multiple * divisor
            if multiple:
                quotient[piece] = multiple
            if left:
                remainder[piece] = left
                low, high = piece.bounds
                if left > 0:
                    lower, upper = lower + left * low, upper + left * high
                    halves = halves or left << 1 == divisor
                else:
                    lower, upper = lower + left * high, upper + left * low
                    negative = True
        self.quotient, self.remainder, self.bounds = quotient, remainder, (lower, upper)
        self.negative, self.halves = negative, halves

    def fold_by_bounds(self) -> Expr | None:
        """Apply law 2; `None` if intervals do not decide."""
        lower, upper = self.bounds
        divisor = self.divisor
        multiple = lower // divisor
        if multiple == upper // divisor:
            if self.is_plain:
                return Expr(self.quotient, self.constant + multiple)  # type: ignore[arg-type]
            return self.sum(self.quotient, self.constant + multiple)
        if self.known.sums or ((self.negative or self.halves) and upper - lower < divisor):
            return self._fold_by_remainder()
        return None

    def without_factor(self) -> tuple[Expr, int] | None:
        """Apply law 3: the remainder and the divisor without a common factor.

        The floor of their quotient, and the quotient, are the value.  `None` if intervals do not
        decide the floor of the other terms.
        """
        divisor = self.divisor
        factors: list[int] = []  # common divisors of a coefficient and the divisor
        for coefficient in self.remainder.values():
            factor = gcd(coefficient, divisor)
            if factor > 1 and factor not in factors:
                factors.append(factor)
        if len(factors) > 1:
            factors.sort(reverse=True)
        for factor in factors:
            floor = self._constant_floor(self.remainder, factor)
            if floor is not None:
                terms = self.remainder.items()
                rest = self.sum({p: c // factor for p, c in terms if not c % factor}, floor)
                return rest, divisor // factor
        return None

    def _fold_by_remainder(self) -> Expr | None:
        """Law 2 for the bounds known of sums, or another remainder by a multiple of the divisor.

        Without such bounds, the interval of the remainder must be narrower than the divisor.
        """
        folded = None
        if self.known.sums:
            folded = self._fold_with(self.remainder, {})
        if folded is None and self.halves:
            folded = self._with_negated_halves()  # an interval of the same width
        if folded is None and self.negative:
            folded = self._with_residues()  # an interval that is at least as wide
        return folded

    def _with_negated_halves(self) -> Expr | None:
        """Law 2 with ``−divisor / 2`` for each coefficient ``divisor / 2``."""
        divisor, remainder = self.divisor, self.remainder
        negated = {piece: -c if c << 1 == divisor else c for piece, c in remainder.items()}
        return self._fold_with(negated, {p: 1 for p, c in remainder.items() if c << 1 == divisor})

    def _with_residues(self) -> Expr | None:
        """Law 2 with the non-negative residues of all coefficients."""
        divisor, remainder = self.divisor, self.remainder
        residues = {piece: c % divisor for piece, c in remainder.items()}
        return self._fold_with(residues, {p: -1 for p, c in remainder.items() if c < 0})

    def with_new_floor(self, remainder: Expr) -> Expr:
        """``constant + Σ quotient + floor(remainder / divisor)``, where the floor is a new atom."""
        divisor, quotient = self.divisor, self.quotient
        lower, upper = self.bounds if self.is_plain else remainder.bounds  # on the whole box
        floor = Floor(remainder, divisor, (lower // divisor, upper // divisor))
        if self.is_plain and floor not in quotient:
            quotient[floor] = 1
            return Expr(quotient, self.constant)  # type: ignore[arg-type]  # all are atoms
        return self.quotient_and(from_atom(floor))

    def quotient_and(self, rest: Expr) -> Expr:
        """``constant + Σ quotient + rest``."""
        if not self.quotient:
            return Expr(rest.parts, rest.constant + self.constant) if self.constant else rest
        return self.sum(self.quotient, self.constant) + rest

    def _fold_with(self, remainder: dict[AtomLike, int], more: dict[AtomLike, int]) -> Expr | None:
        """Law 2 with another `remainder`, and the quotient increased by `more`."""
        multiple = self._constant_floor(remainder, self.divisor)
        if multiple is None:
            return None
        quotient = self.quotient
        if more:
            quotient = {**quotient, **{p: quotient.get(p, 0) + c for p, c in more.items()}}
        return self.sum(quotient, self.constant + multiple)

    def _constant_floor(self, pieces: dict[AtomLike, int], divisor: int) -> int | None:
        """Return ``floor((offset + Σ pieces) / divisor)`` if bounds give one value, else `None`.

        Pieces that are multiples of `divisor` are left out.  The bounds are those of the pieces,
        then those known for their sum.
        """
        lower = upper = self.offset
        for piece, coefficient in pieces.items():
            if coefficient % divisor:
                low, high = piece.bounds
                if coefficient > 0:
                    lower, upper = lower + coefficient * low, upper + coefficient * high
                else:
                    lower, upper = lower + coefficient * high, upper + coefficient * low
        floor = lower // divisor
        if floor == upper // divisor:
            return floor
        if not self.known.sums:
            return None
        nonmultiples = {piece: c for piece, c in pieces.items() if c % divisor}
        stated = len(nonmultiples) > 1 and self.known.bounds_of_sum(
            self.sum(nonmultiples, self.offset)
        )
        if not stated:
            return None
        lower, upper = max(lower, stated[0]), min(upper, stated[1])
        return lower // divisor if lower // divisor == upper // divisor else None

    def sum(self, pieces: dict[AtomLike, int], constant: int) -> Expr:
        """``constant + Σ coefficient · piece``."""
        if self.is_plain and 0 not in pieces.values():
            return Expr(pieces, constant)  # type: ignore[arg-type]  # all are atoms
        total: dict[Atom, int] = {}
        for piece, factor in pieces.items():
            if isinstance(piece, Bounded):
                expr = piece.expr
                constant += factor * expr.constant
                for atom, coefficient in expr.parts.items():
                    total[atom] = total.get(atom, 0) + factor * coefficient
            else:
                total[piece] = total.get(piece, 0) + factor
        return without_zero_terms(total, constant)

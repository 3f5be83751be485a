"""Sums of terms, and of many expressions."""

from __future__ import annotations

from collections.abc import Iterable

from simplifier.linear import Expr, Term, without_zero_terms
from simplifier.unique import Atom


def make(terms: Iterable[Term], constant: int) -> Expr:
    """Return the sum of terms with distinct atoms and nonzero coefficients."""
    return Expr(dict(terms), constant)


def weighted_sum(pieces: Iterable[tuple[int, Expr]], constant: int = 0) -> Expr:
    """Return ``constant + Σ coefficient·expression``.

    >>> from simplifier import variable
    >>> weighted_sum([(2, variable("d0", 0, 9)), (3, variable("d1", 0, 9))], 1)
    Expr('d0 * 2 + d1 * 3 + 1')
    """
    total: dict[Atom, int] = {}
    for factor, piece in pieces:
        constant += factor * piece.constant
        for atom, coefficient in piece.parts.items():
            total[atom] = total.get(atom, 0) + factor * coefficient
    return without_zero_terms(total, constant)

"""Sums of terms."""

from __future__ import annotations

from collections.abc import Iterable

from simplifier.linear import Expr, Term


def make(terms: Iterable[Term], constant: int) -> Expr:
    """Return the sum of terms with distinct atoms and nonzero coefficients."""
    return Expr(dict(terms), constant)

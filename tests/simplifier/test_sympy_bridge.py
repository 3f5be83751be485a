"""Conversion to SymPy keeps values, and its results convert back."""

# ruff: noqa: E501 - a row of a table is one line

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import ceil, floor
from typing import Any

import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st
from sympy import Max, Min, Mod, Rational, ceiling, frac

from simplifier import Variable
from simplifier.semiaffine import maximum, minimum
from simplifier.sympy_bridge import fraction, from_sympy, symbol, to_sympy
from tests.oracles import boxes, fuzz, points, tree_expr, trees

D0, D1, N = Variable("d0", 0, 40), Variable("d1", -3, 5), Variable("n", 1, 6)
NAMES = {"d0": D0, "d1": D1, "n": N}
X, Y, SIZE = symbol(D0), symbol(D1), symbol(N)


@given(st.data(), boxes())
@fuzz(60)
def test_sympy_agrees_at_every_point(data: st.DataObject, box: tuple[Variable, ...]) -> None:
    expr = tree_expr(data.draw(trees(len(box), leaves=5)), box)
    sympy_expr = to_sympy(expr)
    again = from_sympy(sympy_expr, {v.name: v for v in box})
    for at in list(points(box))[:25]:
        values = {symbol(v): value for v, value in at.items()}
        assert int(sympy_expr.subs(values)) == expr.value(at) == again.value(at)


# fmt: off
BEYOND_AFFINE = [
    D0 * D1,  D0 // N,  (D0 + 1) % N,  -D0 // N,  D0 * N * N - D1 * N,  minimum(D0, D1 * 2, 7),  maximum(D0 // 3, D1) * 2 + 1,
    minimum(D0 * N, 30) // 4,  (D0 * N + D1) // N,  (D0 + D1) // (N + 1),  minimum(maximum(D0 - 7, 0), N * 3),
]
# fmt: on


@pytest.mark.parametrize("expr", BEYOND_AFFINE, ids=str)
def test_products_quotients_and_extrema_survive_a_round_trip(expr: Any) -> None:
    sympy_expr = to_sympy(expr)
    again = from_sympy(sympy_expr, NAMES)
    for at in points((Variable("d0", 0, 11), D1, N)):
        point = {D0: at[Variable("d0", 0, 11)], D1: at[D1], N: at[N]}
        values = {X: point[D0], Y: point[D1], SIZE: point[N]}
        assert int(sympy_expr.subs(values)) == expr.value(point) == again.value(point)


# fmt: off
WRITTEN = [
    # SymPy                                                   the same in Python's fractions
    (ceiling(X / 2),                                          lambda x, y, n: ceil(x / 2)),
    (X / 2 + X / 2,                                           lambda x, y, n: x),
    (sympy.floor(X / 4 + Rational(1, 2)),                     lambda x, y, n: (x + 2) // 4),
    (sympy.floor(Rational(2, 3) * (X / 5 + Y * Rational(7, 4))), lambda x, y, n: floor(Fraction(2, 3) * (Fraction(x, 5) + y * Fraction(7, 4)))),
    (sympy.floor(sympy.floor(X / 3) / 2 + Rational(1, 6)),    lambda x, y, n: floor(Fraction(x // 3, 2) + Fraction(1, 6))),
    (ceiling(Rational(-3, 7) * X + Y / 14),                   lambda x, y, n: ceil(Fraction(-3 * x, 7) + Fraction(y, 14))),
    (Mod(X, -3),                                              lambda x, y, n: x % -3),
    (Mod(-X, 3),                                              lambda x, y, n: -x % 3),
    (Mod(Y, 5) * 2,                                           lambda x, y, n: y % 5 * 2),
    (2 * Mod(X / 2 + Y / 4, Rational(3, 2)) * 2,              lambda x, y, n: 4 * ((Fraction(x, 2) + Fraction(y, 4)) % Fraction(3, 2))),
    (Mod(X / 2, 3) * 2,                                       lambda x, y, n: 2 * (Fraction(x, 2) % 3)),
    (4 * frac(Y / 4),                                         lambda x, y, n: y % 4),
    (X % 7 // 2,                                              lambda x, y, n: x % 7 // 2),
    (sympy.floor(X / SIZE),                                   lambda x, y, n: x // n),
    (ceiling(X / SIZE),                                       lambda x, y, n: -(-x // n)),
    (Mod(X, SIZE),                                            lambda x, y, n: x % n),
    (Mod(Y, -SIZE),                                           lambda x, y, n: y % -n),
    (sympy.floor((X + Y / 2) / (2 * SIZE) + Rational(1, 3)),  lambda x, y, n: floor((x + Fraction(y, 2)) / (2 * n) + Fraction(1, 3))),
    (SIZE**2 * X,                                             lambda x, y, n: n * n * x),
    (sympy.floor(X / SIZE**2),                                lambda x, y, n: x // (n * n)),
    (SIZE * frac(Y / SIZE),                                   lambda x, y, n: y % n),
    (Min(X, 3 * Y, 7) - Max(X, 2),                            lambda x, y, n: min(x, 3 * y, 7) - max(x, 2)),
    (6 * Min(X / 2, Y / 3),                                   lambda x, y, n: 6 * min(Fraction(x, 2), Fraction(y, 3))),
    (sympy.Integer(5),                                        lambda x, y, n: 5),
    (7,                                                       lambda x, y, n: 7),
]

REFUSED = [
    (X / 2,                                          "is not an integer for all values"),
    (frac(X / 2),                                    "is not an integer for all values"),
    (Mod(X, Rational(3, 2)),                         "is not an integer for all values"),
    (X / SIZE,                                       "is not an integer for all values"),
    (sympy.sqrt(X),                                  "unsupported expression"),
    (2**X,                                           "unsupported expression"),
    (sympy.Abs(Y),                                   "unsupported expression"),
    (sympy.pi * X,                                   "unsupported expression"),
    (sympy.Float(2.0) * X,                           "unsupported expression"),
    (sympy.Piecewise((X, X > 3), (Y, True)),         "unsupported expression"),
    (X > 3,                                          "unsupported expression"),
    (sympy.Symbol("d2"),                             r"d2 is not one of the variables \['d0', 'd1', 'n'\]"),
    (Min(X / SIZE, Y),                               "compares quotients by expressions"),
    ("d0 + 1",                                       "is not a SymPy expression"),
    (None,                                           "is not a SymPy expression"),
    (sympy.Symbol("d1", positive=True),              r"d1 is assumed .*, but its bounds \[-3, 5\] include -?\d"),
    (sympy.Symbol("d1", nonnegative=True),           r"d1 is assumed .*, but its bounds \[-3, 5\] include -"),
    (sympy.Symbol("d0", even=True),                  r"d0 is assumed .*, but its bounds \[0, 40\] include 1"),
    (sympy.Symbol("d0", nonzero=True),               r"d0 is assumed .*, but its bounds \[0, 40\] include 0"),
    (sympy.Symbol("d0", negative=True),              r"d0 is assumed .*, but its bounds"),
    (sympy.Symbol("d0", integer=False),              r"d0 is assumed .*, but its bounds"),
]
# fmt: on


@pytest.mark.parametrize("given_expr, meant", WRITTEN, ids=[str(row[0]) for row in WRITTEN])
def test_output_of_sympy_is_parsed(given_expr: Any, meant: Callable[..., Any]) -> None:
    expr = from_sympy(given_expr, NAMES)
    for at in points((D0, D1, N)):
        assert expr.value(at) == meant(at[D0], at[D1], at[N])


@pytest.mark.parametrize("given_expr, message", REFUSED, ids=[str(row[0]) for row in REFUSED])
def test_unsupported_expressions_are_rejected(given_expr: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        from_sympy(given_expr, NAMES)


def test_a_symbol_needs_no_assumptions() -> None:
    assert from_sympy(sympy.Symbol("d0") * 2, NAMES) == D0 * 2
    assert from_sympy(sympy.Symbol("n", positive=True, integer=True), NAMES) == N.as_expr()


def test_a_denominator_is_positive_and_minimal() -> None:
    assert fraction((4 * X - 6) / -10, NAMES) == (-D0 * 2 + 3, N // N * 5)

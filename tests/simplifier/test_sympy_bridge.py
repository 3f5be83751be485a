"""SymPy gives an expression the same values, and what it makes of it reads back."""

from __future__ import annotations

import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st

from simplifier import Variable
from simplifier.sympy_bridge import from_sympy, symbol, to_sympy
from tests.oracles import boxes, fuzz, points, tree_expr, trees

D0, D1 = Variable("d0", 0, 40), Variable("d1", -3, 5)
NAMES = {"d0": D0, "d1": D1}


@given(st.data(), boxes())
@fuzz(60)
def test_sympy_agrees_at_every_point(data: st.DataObject, box: tuple[Variable, ...]) -> None:
    expr = tree_expr(data.draw(trees(len(box), leaves=5)), box)
    told = to_sympy(expr)
    again = from_sympy(told, {v.name: v for v in box})
    for at in list(points(box))[:25]:
        values = {symbol(v): value for v, value in at.items()}
        assert int(told.subs(values)) == expr.value(at) == again.value(at)


# fmt: off
REFUSED = [
    (symbol(D0) * symbol(D1),       "is a product of variables"),
    (symbol(D0) / 2,                "is no integer for all values"),
    (sympy.sqrt(symbol(D0)),        "is not affine"),
    (sympy.Symbol("d2"),            "is not affine"),
    (sympy.Mod(4, symbol(D0)),      "is not affine"),
]
# fmt: on


@pytest.mark.parametrize("given_expr, message", REFUSED, ids=[str(row[0]) for row in REFUSED])
def test_what_is_not_affine_is_refused(given_expr: sympy.Expr, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        from_sympy(given_expr, NAMES)


def test_ceiling_and_fractions_are_read() -> None:
    half = symbol(D0) / 2
    assert from_sympy(sympy.ceiling(half), NAMES) == -(-D0 // 2)
    assert from_sympy(half + half, NAMES) == D0.as_expr()

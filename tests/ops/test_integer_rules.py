"""Integer rules of elementwise functions, against the functions themselves."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from indexing.ops import numerics
from indexing.ops.integer_rules import RULES, Cases, comparison
from simplifier.atoms import Variable
from simplifier.linear import Expr, as_expr, constant

SPANS = [(-9, 9), (0, 12), (-7, -1), (0, 1)]
CONSTANTS = [-8, -3, -1, 0, 1, 2, 3, 4, 7, 15]
UNARY = (np.negative, np.invert, np.abs, numerics.sign)
TERNARY = (np.where,)
FUNCTIONS = [f for f in RULES if f not in TERNARY]


def value_at(cases: Cases, point: dict[Variable, int]) -> int:
    """Return the value of the only case that a point is in."""
    values = [
        value.value(point)
        for value, where in cases
        if all(c.lower <= c.expr.value(point) <= c.upper for c in where)
    ]
    (value,) = values
    return value


def operands() -> list[tuple[Expr, ...]]:
    x = [as_expr(Variable("x", *span)) for span in SPANS]
    y = [as_expr(Variable("y", *span)) for span in SPANS]
    numbers = [constant(number) for number in CONSTANTS]
    return [*product(x, y), *product(x, numbers), *product(numbers, y)]


def points(exprs: tuple[Expr, ...]) -> list[dict[Variable, int]]:
    variables = [v for expr in exprs for v in expr.variables()]
    spans = [range(v.lower, v.upper + 1) for v in variables]
    return [dict(zip(variables, values, strict=True)) for values in product(*spans)]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_a_rule_gives_the_values_of_its_function(function: np.ufunc) -> None:
    known = 0
    arguments = 1 if function in UNARY else 2
    for exprs in operands():
        exprs = exprs[:arguments]
        cases = RULES[function](exprs)
        if cases is None:
            continue
        known += 1
        for point in points(exprs):
            values = [np.array(expr.value(point), np.int32) for expr in exprs]
            assert value_at(cases, point) == function(*values), (exprs, point)
    assert known >= 5


@pytest.mark.parametrize("direction", ["LT", "LE", "EQ", "NE", "GE", "GT"])
def test_a_comparison_has_one_case_for_each_truth_where_possible(direction: str) -> None:
    compare = {"LT": np.less, "LE": np.less_equal, "EQ": np.equal, "NE": np.not_equal}
    compare |= {"GE": np.greater_equal, "GT": np.greater}
    for exprs in operands():
        cases = comparison(direction)(exprs)
        assert cases is not None
        assert len(cases) <= (2 if direction not in ("EQ", "NE") else 3)
        for point in points(exprs):
            x, y = (expr.value(point) for expr in exprs)
            assert value_at(cases, point) == compare[direction](x, y)
    same = as_expr(Variable("x", 0, 5))
    assert [str(value) for value, _ in comparison("LT")([same, constant(0)]) or ()] == ["0"]


def test_shifts_and_bits_of_other_values_have_no_rule() -> None:
    x, y = as_expr(Variable("x", -3, 3)), as_expr(Variable("y", 0, 3))
    assert RULES[numerics.shift_logical]([x, constant(1)]) is None
    assert RULES[np.bitwise_and]([x, y]) is None
    assert RULES[np.bitwise_and]([x, constant(5)]) is None

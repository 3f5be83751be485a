"""Products, quotients by expressions, minima and maxima: laws, bounds, text and exact queries."""

import copy
import pickle
from collections.abc import Callable
from itertools import product
from math import prod
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simplifier import Expr, Variable, as_expr, constant, exact, maximum, minimum, variable
from simplifier.constraints import Constraint
from simplifier.reading import parse_expr
from simplifier.substitute import Substitution
from simplifier.unknown import Unknown
from tests.oracles import fuzz

i, j = variable("i", 0, 9), variable("j", -4, 7)
n, m = variable("n", 1, 5), variable("m", -3, -1)
z = variable("z", 0, 3)

# fmt: off
LAWS = [
    # before                        after
    (i * j,                         j * i),
    (i * n * 3 - n * i * 2,         n * i),
    ((i + j) * (i - j),             i * i - j * j),
    ((i + 2) * n - n * 2,           i * n),
    (i * constant(4),               i * 4),
    (i * (j - j),                   constant(0)),
    ((i * n) // n,                  i),
    ((i * n + n * 2) // n,          i + 2),
    ((i * n * j) // (n * j),        i),
    ((i * (n + 1)) // (n + 1),      i),
    ((i * n * 6) // (n * 2),        i * 3),
    ((i + 12) // constant(4),       i // 4 + 3),
    (i // constant(-4),             -i // 4),
    (z // (n + 3),                  constant(0)),                 # 0 <= z < n + 3
    (z % (n + 3),                   z),
    ((i * n) % n,                   constant(0)),
    (i // n * n + i % n,            i),
    (minimum(i, i + 1, 40),         i),
    (maximum(i, i + 1, -7),         i + 1),
    (minimum(i, minimum(j, z)),     minimum(z, j, i)),
    (minimum(i, 9),                 i),
    (maximum(z, 4),                 constant(4)),
    (maximum(3, 5),                 constant(5)),
]

TEXTS = [
    (constant(6) % n,               "6 mod n"),
    ((i + 1) % n * 3 + j,           "j + ((i + 1) mod n) * 3"),
    (i - (constant(6) % n) - 5,     "i - 6 mod n - 5"),
    ((i % n) % (n * z + 1),         "(i mod n) mod (n * z + 1)"),
    (i // n * n,                    "n * (i floordiv n)"),         # i is not in the sum
    (constant(6) // n * n,          "n * (6 floordiv n)"),         # nor is 6
    (i * 2 - i // n * n,            "i + i mod n"),
]

NEAR_MISSES = [
    # before                        looks like       differs at
    ((i * n + 1) // n,              i,               {"i": 0, "n": 1}),
    ((i * n * 3) // (n * 2),        i,               {"i": 2, "n": 1}),
    ((i * m) // m - (i * n) // m,   i * 0,           {"i": 1, "n": 1, "m": -1}),
    (z // (n + 2),                  constant(0),     {"z": 3, "n": 1}),
    ((-z) // (n + 3),               constant(0),     {"z": 1, "n": 1}),      # floor, not truncation
    (i // m,                        -(i // -m),      {"i": 1, "m": -2}),
    (minimum(i, j),                 j,               {"i": 0, "j": 1}),
    (maximum(i, 8),                 i,               {"i": 7}),
]
# fmt: on


def points_of_box(*exprs: Expr) -> list[dict[Variable, int]]:
    """Every point of the box of the variables in `exprs`."""
    variables = list(dict.fromkeys(v for expr in exprs for v in expr.variables()))
    boxes = product(*[range(v.lower, v.upper + 1) for v in variables])
    return [dict(zip(variables, values, strict=True)) for values in boxes]


@pytest.mark.parametrize("before, after", LAWS)
def test_a_law_holds(before: Expr, after: Expr) -> None:
    assert before == after


@pytest.mark.parametrize("before, wrong, at", NEAR_MISSES)
def test_a_law_leaves_a_near_miss_alone(before: Expr, wrong: Expr, at: dict[str, int]) -> None:
    point = {v: at[v.name] for v in (*before.variables(), *wrong.variables())}
    assert before.value(point) != wrong.value(point)


LEAVES: st.SearchStrategy[object] = st.sampled_from([i, j, n, m, z, -2, -1, 0, 1, 3])


def extend_trees(parts: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    operators = st.sampled_from(["+", "-", "*", "//", "%", "min", "max"])
    return st.tuples(operators, parts, parts)


TREES = st.recursive(LEAVES, extend_trees, max_leaves=6)


def evaluate(tree: Any, leaf: Callable[[Any], Any], smallest: Any, largest: Any) -> Any:
    """Evaluate the tree with Python's operators; replace a divisor that may be 0."""
    if not isinstance(tree, tuple):
        return leaf(tree)
    operator, left, right = tree[0], *[evaluate(t, leaf, smallest, largest) for t in tree[1:]]
    match operator:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case "min":
            return smallest(left, right)
        case "max":
            return largest(left, right)
    bounds = build_expression(tree[2]).bounds
    divisor = right if bounds[0] > 0 or bounds[1] < 0 else right * right + 1
    return left // divisor if operator == "//" else left % divisor


def build_expression(tree: object) -> Expr:
    """The expression of a drawn tree."""
    expr: Expr = evaluate(tree, as_expr, minimum, maximum)
    return expr


def tree_value(tree: object, point: dict[Variable, int]) -> int:
    """Value of a drawn tree at `point`, computed by Python."""

    def leaf(value: Expr | int) -> int:
        return value if isinstance(value, int) else point[value.variables()[0]]

    value: int = evaluate(tree, leaf, min, max)
    return value


@given(TREES, st.data())
@fuzz(300)
def test_an_expression_has_the_value_of_its_tree(tree: object, data: st.DataObject) -> None:
    expr = build_expression(tree)
    variables = [v for leaf in (i, j, n, m, z) for v in leaf.variables()]
    for _ in range(8):
        point = {v: data.draw(st.integers(v.lower, v.upper)) for v in variables}
        value = expr.value(point)
        assert value == tree_value(tree, point)
        assert expr.bounds[0] <= value <= expr.bounds[1]


@given(TREES)
@fuzz(200)
def test_text_pickle_and_substitution_give_the_same_expression(tree: object) -> None:
    expr = build_expression(tree)
    names = {v.name: v for leaf in (i, j, n, m, z) for v in leaf.variables()}
    assert parse_expr(str(expr), names) == expr, str(expr)
    assert pickle.loads(pickle.dumps(expr)) == expr
    assert copy.deepcopy(expr) == expr
    assert Substitution({v: v.as_expr() for v in names.values()})(expr) == expr


def test_substitution_of_a_number_makes_an_expression_affine() -> None:
    swap = Substitution({Variable("n", 1, 5): constant(4), Variable("j", -4, 7): constant(2)})
    assert swap(i // n + i * n + minimum(i, j)) == i // 4 + i * 4 + minimum(i, 2)
    assert not (i * n).is_affine
    assert ((i + 3) // 4).is_affine
    assert not ((i * n + 3) // 4).is_affine


def test_a_divisor_may_have_either_sign() -> None:
    open_sign = i // j  # j is in [-4, 7], and 0 is no point of it
    low, high = open_sign.bounds
    for point in points_of_box(open_sign):
        if point[Variable("j", -4, 7)]:
            assert low <= open_sign.value(point) <= high
        else:
            with pytest.raises(ZeroDivisionError):
                open_sign.value(point)


def test_division_by_zero_is_rejected() -> None:
    with pytest.raises(ValueError, match="must not be 0"):
        i // constant(0)
    with pytest.raises(ValueError, match="at least one operand"):
        minimum()


def test_bounds_of_a_product_of_many_factors_are_exact() -> None:
    expr = variable("x0", -1, 2)
    for k in range(1, 200):  # 2 ** 200 corners
        expr = expr * variable(f"x{k}", -1, 2)
    assert expr.bounds == (-(2**199), 2**200)


def test_isl_supports_minima_and_rejects_products() -> None:
    variables = tuple(v for leaf in (i, n) for v in leaf.variables())
    assert exact.bounds(variables, [], minimum(i, n * 2)) == (0, 9)
    assert exact.bounds(variables, [Constraint(i, 3, 9)], maximum(i, n) - i) == (0, 2)
    far = variable("far", 0, 10**6)
    bounds = exact.bounds((*variables, Variable("far", 0, 10**6)), [], far * n)
    assert isinstance(bounds, Unknown)
    assert "far * n, which is not affine" in str(bounds)


def test_small_boxes_with_products_are_enumerated() -> None:
    variables = tuple(v for leaf in (i, n) for v in leaf.variables())
    inside = [Constraint(i * n, 7, 12)]
    at = [(p, (i * n).value(p)) for p in points_of_box(i, n) if 7 <= (i * n).value(p) <= 12]
    values = [(i // n).value(p) for p, _ in at]
    assert exact.bounds(variables, inside, i // n) == (min(values), max(values))
    assert exact.count(exact.Relation(variables, (), (i // n,), tuple(inside))) == len(set(values))
    assert exact.is_empty(variables, [Constraint(i * n, 43, 44)]) is True
    assert exact.is_empty(variables, [Constraint(i * n, 43, 45)]) is False
    half = exact.Relation(variables, (), (i // n,), ())
    assert exact.difference(half, exact.Relation(variables, (), ((i + n) // n - 1,), ())) is None
    difference = exact.difference(half, exact.Relation(variables, (), ((i + n - 1) // n,), ()))
    assert isinstance(difference, exact.DifferingPoint)
    point = dict(zip(variables, difference.point, strict=True))
    assert (difference.results == ((i // n).value(point),)) is difference.in_first


def test_a_product_of_sums_has_one_term_for_each_monomial() -> None:
    factors = [variable(f"v{k}", 0, 3) + 1 for k in range(6)]
    expr = prod(factors, start=constant(1))
    assert len(expr.terms) == 2**6 - 1
    assert expr.bounds == (1, 4**6)


@pytest.mark.parametrize(("expr", "text"), TEXTS)
def test_mods_by_variables_are_recovered(expr: Expr, text: str) -> None:
    names = {variable.name: variable for variable in expr.variables()}
    assert str(expr) == text
    assert parse_expr(text, names) == expr

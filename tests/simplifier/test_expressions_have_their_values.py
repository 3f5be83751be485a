"""Random expressions against Python's own arithmetic, point by point."""

from hypothesis import given
from hypothesis import strategies as st

from simplifier.atoms import Variable
from simplifier.bounds import UNCONSTRAINED, KnownBounds, lies_in
from simplifier.conjunction import merge_constraints
from simplifier.constraints import sum_bounds
from simplifier.divmod import floor_div, floor_mod
from simplifier.linear import as_expr
from simplifier.mods import floors_of, split, split_for
from simplifier.reading import parse_expr
from simplifier.substitute import Substitution
from simplifier.sums import make
from tests.oracles import (
    Tree,
    boxes,
    constraint_lists,
    fuzz,
    holds,
    points,
    sums,
    tree_expr,
    tree_text,
    tree_value,
    trees,
    values,
)


@given(st.data(), boxes())
@fuzz(400)
def test_an_expression_has_the_value_of_its_tree(
    data: st.DataObject, box: tuple[Variable, ...]
) -> None:
    tree = data.draw(trees(len(box), leaves=12))
    expr = tree_expr(tree, box)
    for point in points(box):
        assert expr.value(point) == tree_value(tree, list(point.values())), point


@given(st.data(), boxes())
@fuzz(300)
def test_bounds_contain_every_value(data: st.DataObject, box: tuple[Variable, ...]) -> None:
    expr = tree_expr(data.draw(trees(len(box), leaves=10)), box)
    attained = values(expr, box)
    lower, upper = expr.bounds
    assert lower <= min(attained)
    assert max(attained) <= upper


@given(st.data(), boxes(), st.integers(2, 12))
@fuzz(300)
def test_a_floor_lies_in_the_floors_of_its_dividend(
    data: st.DataObject, box: tuple[Variable, ...], divisor: int
) -> None:
    """Also where the bounds of its terms are wider, because multiples were factored out."""
    dividend = tree_expr(data.draw(sums(len(box))), box)
    quotient = dividend // divisor * data.draw(st.sampled_from([1, -1]))
    attained = values(quotient, box)
    exact = min(attained), max(attained)
    assert lies_in(quotient, exact)
    assert not lies_in(quotient, (exact[0] + 1, exact[1]))
    assert not lies_in(quotient, (exact[0], exact[1] - 1))


@given(st.data(), boxes())
@fuzz(150)
def test_bounds_of_a_sum_are_attained(data: st.DataObject, box: tuple[Variable, ...]) -> None:
    expr = tree_expr(data.draw(sums(len(box))), box)
    attained = values(expr, box)
    assert expr.bounds == (min(attained), max(attained))


@given(st.data(), boxes(), st.sampled_from([2, 3, 4, 6, 7]))
@fuzz(150)
def test_bounds_of_the_floor_and_the_mod_of_one_variable_are_attained(
    data: st.DataObject, box: tuple[Variable, ...], divisor: int
) -> None:
    inner = box[0] + data.draw(st.integers(-20, 20))
    for expr in (inner // divisor, inner % divisor):
        attained = values(expr, box)
        if expr == inner // divisor or max(values(inner // divisor, box)) == min(
            values(inner // divisor, box)
        ):
            assert expr.bounds == (min(attained), max(attained))
        else:
            assert expr.bounds == (0, divisor - 1)


@given(st.data(), boxes())
@fuzz(300)
def test_an_expression_is_the_sum_of_its_mods_and_the_rest(
    data: st.DataObject, box: tuple[Variable, ...]
) -> None:
    expr = tree_expr(data.draw(trees(len(box), leaves=12)), box)
    assert split(expr)[1] == split_for(expr, floors_of(expr), 0)[1]
    for divisor in (0, 4, 6):
        mods, rest = split_for(expr, floors_of(expr), divisor)
        together = sum([mod.dividend % mod.modulus * mod.coefficient for mod in mods], as_expr(0))
        left = expr - rest - together
        if not divisor:
            assert left.value(dict.fromkeys(box, 0)) == 0
        for point in points(box):
            sum_of_mods = sum(
                mod.coefficient * (mod.dividend.value(point) % mod.modulus) for mod in mods
            )
            assert expr.value(point) == sum_of_mods + rest.value(point), (divisor, point)


@given(st.data(), boxes())
@fuzz(400)
def test_simplification_by_known_bounds_keeps_the_values_within_them(
    data: st.DataObject, box: tuple[Variable, ...]
) -> None:
    constraints = merge_constraints(data.draw(constraint_lists(box)))
    known = KnownBounds(sum_bounds(constraints))
    expr = tree_expr(data.draw(trees(len(box), leaves=10)), box)
    divisor = data.draw(st.sampled_from([2, 3, 4, 6]))
    floor, mod = floor_div(expr, divisor, known), floor_mod(expr, divisor, known)
    rebuilt = Substitution({}, known)(expr)
    lower, upper = known.bounds(expr)
    for point in points(box):
        if not holds(constraints, point):
            continue
        value = expr.value(point)
        assert lower <= value <= upper
        assert rebuilt.value(point) == value
        assert floor.value(point) == value // divisor
        assert mod.value(point) == value % divisor


@given(st.data(), boxes(prefix="a"), boxes())
@fuzz(300)
def test_substitution_is_evaluation_of_the_inner_expressions_first(
    data: st.DataObject, outer: tuple[Variable, ...], inner: tuple[Variable, ...]
) -> None:
    exprs = [tree_expr(data.draw(trees(len(inner), leaves=4)), inner) for _ in outer]
    wide = [Variable(a.name, *e.bounds) for a, e in zip(outer, exprs, strict=True)]
    expr = tree_expr(data.draw(trees(len(wide), leaves=8)), wide)
    result = Substitution(dict(zip(wide, exprs, strict=True)))(expr)
    for point in points(inner):
        between = {a: e.value(point) for a, e in zip(wide, exprs, strict=True)}
        assert result.value(point) == expr.value(between)


@given(st.data(), boxes())
@fuzz(300)
def test_text_parses_back_to_the_same_values(
    data: st.DataObject, box: tuple[Variable, ...]
) -> None:
    tree = data.draw(trees(len(box), leaves=12))
    expr = tree_expr(tree, box)
    names = {v.name: v for v in box}
    assert parse_expr(tree_text(tree, list(names)), names) == expr
    again = parse_expr(str(expr), names)  # the form may be another one where mods contain mods
    for point in points(box):
        assert again.value(point) == expr.value(point)


@given(st.data(), boxes(empty=True))
@fuzz(200)
def test_variables_with_empty_bounds_are_supported(
    data: st.DataObject, box: tuple[Variable, ...]
) -> None:
    expr = tree_expr(data.draw(trees(len(box), leaves=12)), box)
    _ = parse_expr(str(expr), {v.name: v for v in box})
    _ = expr.bounds, UNCONSTRAINED.bounds(expr // 3)


@given(st.data(), boxes())
@fuzz(200)
def test_terms_are_sorted_distinct_and_not_zero(
    data: st.DataObject, box: tuple[Variable, ...]
) -> None:
    expr = tree_expr(data.draw(trees(len(box), leaves=12)), box)
    keys = [atom.key for atom, _ in expr.terms]
    assert keys == sorted(keys)
    assert len(set(keys)) == len(keys)
    assert all(coefficient for _, coefficient in expr.terms)
    assert make(expr.terms, expr.constant) == expr


@given(st.data(), boxes())
@fuzz(200)
def test_sums_do_not_depend_on_the_order_of_summands(
    data: st.DataObject, box: tuple[Variable, ...]
) -> None:
    parts: list[Tree] = data.draw(st.lists(trees(len(box), leaves=4), min_size=2, max_size=4))
    permuted = data.draw(st.permutations(parts))
    first, second = (sum([tree_expr(t, box) for t in ts], box[0] * 0) for ts in (parts, permuted))
    assert first == second

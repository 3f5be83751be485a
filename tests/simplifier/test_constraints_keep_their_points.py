"""Normalising, merging and tightening constraints keep exactly the same points."""

# ruff: noqa: E501 - a row of a table is one line

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simplifier import exact, variable
from simplifier.atoms import Variable
from simplifier.conjunction import merge_constraints
from simplifier.constraints import FALSE, Constraint, normalise
from simplifier.domain import tighten
from simplifier.linear import Expr
from tests.oracles import Point, boxes, constraint_lists, fuzz, holds, points, tree_expr, trees

a, b = variable("a", 0, 99), variable("b", 0, 99)
n, few = variable("n", -50, 50), variable("few", 3, 5)

# fmt: off
NORMAL = [
    # expression                 bounds      what it becomes               bounds
    (a + 7,                      (9, 20),    a,                            (2, 13)),
    (a * 3,                      (4, 20),    a,                            (2, 6)),
    (a * -3 + 1,                 (-20, -4),  a,                            (2, 7)),
    (n * 3,                      (-7, 7),    n,                            (-2, 2)),     # bounds round inwards
    (b - a,                      (-3, 9),    a - b,                        (-9, 3)),
    (a // 4,                     (1, 2),     a,                            (4, 11)),
    (n // 4,                     (-2, -1),   n,                            (-8, -1)),
    ((-n) // 4,                  (-2, -1),   n,                            (1, 8)),
    ((a * 3 + b * 6 + 2) // 4,   (1, 2),     a + b * 2,                    (1, 3)),
    (a // 4 + b,                 (1, 2),     a + b * 4,                    (4, 11)),
    (b - a // 4,                 (1, 2),     None,                         None),        # see below: it keeps its points
    (a % 4,                      (0, 3),     None,                         (True, True)),
    (a,                          (-5, 200),  None,                         (True, True)),
    (a * 8 + few,                (0, 10),    a * 8 + few,                  (3, 10)),     # E1: few decides (a=1, few=3)
    (a * 4,                      (5, 7),     FALSE.expr,                   FALSE.bounds),
    (a,                          (120, 130), FALSE.expr,                   FALSE.bounds),
    (a,                          (7, 5),     FALSE.expr,                   FALSE.bounds),
    (a * 0 + 3,                  (3, 3),     None,                         (True, True)),
    (a * 0 + 3,                  (4, 9),     FALSE.expr,                   FALSE.bounds),
]
# fmt: on


def keeps(constraint: Constraint | None, point: Point) -> bool:
    return constraint is None or holds([constraint], point)


@pytest.mark.parametrize("expr, bounds, after, after_bounds", NORMAL)
def test_a_constraint_is_normalised(
    expr: Expr, bounds: tuple[int, int], after: Expr | None, after_bounds: object
) -> None:
    simple = normalise(Constraint(expr, *bounds))
    if after is not None:
        assert simple is not None
        assert (simple.expr, simple.bounds) == (after, after_bounds)
    elif after_bounds is not None:
        assert simple is None
    variables = tuple(dict.fromkeys(expr.variables()))
    for point in points(variables):
        assert keeps(simple, point) == (bounds[0] <= expr.value(point) <= bounds[1]), point


d, e = variable("d", 0, 31), variable("e", 0, 383)
finer = d + d // 2 * 14 - d // 8 * 64  # d mod 2 + 16·((d floordiv 2) mod 4)
carried = d // 2 + d // 8 * 5 + e // 128 * 2 + (e - d // 2 * 64 + d // 8 * 64) // 192

# fmt: off
DECIDED = [
    # expression      bounds       normalised
    (finer,           (0, 49),     None),
    (finer,           (0, 48),     ...),      # d = 7: 1 + 16·3
    (finer,           (1, 49),     ...),      # d = 0
    (finer,           (-9, -1),    FALSE),
    (carried,         (0, 31),     None),     # 192·d floordiv 2 + e - 64·.., and so on, is at most 6143
    (carried,         (0, 30),     ...),
    (carried,         (1, 31),     ...),
    (carried,         (32, 40),    FALSE),
    (carried * -1,    (-31, 0),    None),
    (carried * -1,    (-30, 0),    ...),
    (carried * -1,    (1, 9),      FALSE),
]
# fmt: on


@pytest.mark.parametrize("expr, bounds, verdict", DECIDED)
def test_finer_mods_or_a_removed_floor_decide_a_constraint(
    expr: Expr, bounds: tuple[int, int], verdict: object
) -> None:
    after = normalise(Constraint(expr, *bounds))
    assert after is verdict if verdict is not ... else after not in (None, FALSE)
    values = {expr.value(p) for p in points(tuple(dict.fromkeys(expr.variables())))}
    inside = {value for value in values if bounds[0] <= value <= bounds[1]}
    assert (inside == values, not inside) == (verdict is None, verdict is FALSE)


digit = variable("digit", 0, 7)

# fmt: off
FOLLOWING = [
    # constraints, and those that stay
    ([(a * 8 + digit, 0, 87), (a, 0, 10)],          [1]),
    ([(a * 8 + digit, 0, 86), (a, 0, 10)],          [0, 1]),    # a = 10, digit = 7: 87
    ([(a * 8 + digit, 8, 87), (a, 1, 10)],          [1]),
    ([(a * 8 + digit, 9, 87), (a, 1, 10)],          [0, 1]),    # a = 1, digit = 0: 8
    ([(a + b * 8 - digit, 1, 90), (a + b * 8, 8, 90)],  [1]),
    ([(a - b * 8 + digit, 1, 90), (b * 8 - a, -83, -1)], [1]),  # the part has the opposite sign
    ([(a * 6 + n * 9 + digit, 0, 67), (a * 2 + n * 3, 0, 20)], [1]),
    ([(a * 6 + n * 8 + digit, 0, 67), (a * 2 + n * 3, 0, 20)], [0, 1]),  # no multiple: a = 26, n = -16 gives 28
    ([(a - n, 0, 9), (n - a, -9, 0)],               [0]),       # the same constraint twice
    ([(a * 64 + b * 8 + digit, 0, 799), (a * 8 + b, 0, 99), (a, 0, 12)], [1, 2]),
]
# fmt: on


@pytest.mark.parametrize("given_ones, left", FOLLOWING)
def test_a_constraint_that_another_one_implies_is_dropped(
    given_ones: list[tuple[Expr, int, int]], left: list[int]
) -> None:
    constraints = [Constraint(*each) for each in given_ones]
    conjunction = merge_constraints(constraints)
    assert set(conjunction) == set(merge_constraints([constraints[k] for k in left]))
    assert len(conjunction) == len(left)
    variables = tuple(dict.fromkeys(v for c in constraints for v in c.expr.variables()))
    was, now = (
        exact.Relation(variables, (), (), tuple(each)) for each in (constraints, conjunction)
    )
    assert exact.difference(was, now) is None


def test_small_terms_of_a_sum_are_kept() -> None:
    """E1: ``8·d0 + d1 <= 10`` with d1 in [3, 5] is not ``8·d0 <= 10``: at d0 = 1, d1 = 3 it is 11."""
    d0, d1 = variable("d0", 0, 9), variable("d1", 3, 5)
    simple = normalise(Constraint(d0 * 8 + d1, 0, 10))
    assert simple is not None
    assert not holds([simple], {Variable("d0", 0, 9): 1, Variable("d1", 3, 5): 3})


@given(st.data(), boxes())
@fuzz(300)
def test_normalising_keeps_the_points(data: st.DataObject, box: tuple[Variable, ...]) -> None:
    expr = tree_expr(data.draw(trees(len(box), leaves=8)), box)
    lower = data.draw(st.integers(-20, 20))
    constraint = Constraint(expr, lower, lower + data.draw(st.integers(-2, 15)))
    simple = normalise(constraint)
    for point in points(box):
        assert keeps(simple, point) == holds([constraint], point), point
    if simple is not None:
        assert normalise(simple) == simple


@given(st.data(), boxes())
@fuzz(300)
def test_merging_keeps_the_points_in_any_order(
    data: st.DataObject, box: tuple[Variable, ...]
) -> None:
    constraints = data.draw(constraint_lists(box, max_count=5))
    conjunction = merge_constraints(constraints)
    for point in points(box):
        assert holds(conjunction, point) == holds(constraints, point), point
    assert merge_constraints(data.draw(st.permutations(constraints))) == conjunction
    assert merge_constraints(conjunction) == conjunction
    assert len({c.expr for c in conjunction}) == len(conjunction)


@given(st.data(), boxes())
@fuzz(300)
def test_tightening_keeps_the_points(data: st.DataObject, box: tuple[Variable, ...]) -> None:
    constraints = data.draw(constraint_lists(box, max_count=4))
    domain = tighten(box, constraints)
    before = [tuple(p.values()) for p in points(box) if holds(constraints, p)]
    after = [tuple(p.values()) for p in points(domain.variables) if holds(domain.constraints, p)]
    assert after == before
    if domain.is_known_empty:
        assert not before
    assert [v.name for v in domain.variables] == [v.name for v in box]
    for old, new in zip(box, domain.variables, strict=True):
        assert old.lower <= new.lower
        assert new.upper <= old.upper


@given(st.data(), boxes())
@fuzz(200)
def test_expressions_rebuilt_for_a_domain_keep_their_values(
    data: st.DataObject, box: tuple[Variable, ...]
) -> None:
    domain = tighten(box, data.draw(constraint_lists(box, max_count=3)))
    expr = tree_expr(data.draw(trees(len(box), leaves=8)), box)
    rebuilt = domain.rebuild(box)(expr)
    for point in points(domain.variables):
        if holds(domain.constraints, point):
            old = dict(zip(box, point.values(), strict=True))
            assert rebuilt.value(point) == expr.value(old)


@given(st.data(), boxes())
@fuzz(100)
def test_isl_proves_that_tightening_keeps_the_points(
    data: st.DataObject, box: tuple[Variable, ...]
) -> None:
    constraints = data.draw(constraint_lists(box, max_count=3))
    before = exact.Relation(box, (), (), tuple(constraints))
    domain = tighten(box, constraints)
    after = exact.Relation(domain.variables, (), (), domain.constraints)
    assert exact.difference(before, after) is None
    assert exact.is_empty(box, constraints) == exact.is_empty(domain.variables, domain.constraints)


@given(st.data(), boxes(empty=True))
@fuzz(100)
def test_a_variable_without_values_leaves_no_points(
    data: st.DataObject, box: tuple[Variable, ...]
) -> None:
    domain = tighten(box, data.draw(constraint_lists(box)))
    if any(v.is_empty for v in box):
        assert domain.is_known_empty


def test_a_constraint_is_true_false_or_open() -> None:
    assert Constraint(a, 0, 99).is_true
    assert Constraint(a, 100, 120).is_false
    middle = Constraint(a + b, 5, 9)
    assert not middle.is_true
    assert not middle.is_false
    assert str(middle) == "a + b in [5, 9]"

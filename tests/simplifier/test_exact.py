"""Exact queries: emptiness, bounds, differences with witnesses, and exceeded budgets."""

import islpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simplifier import exact, variable
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.exact.unions import coalesce
from simplifier.unknown import UndecidedError, Unknown
from tests.oracles import boxes, constraint_lists, fuzz, holds, points, tree_expr, trees

d0, d1 = Variable("d0", 0, 9), Variable("d1", -4, 9)


@given(st.data(), boxes())
@fuzz(150)
def test_emptiness_and_bounds_are_those_of_the_points(
    data: st.DataObject, box: tuple[Variable, ...]
) -> None:
    constraints = data.draw(constraint_lists(box))
    expr = tree_expr(data.draw(trees(len(box), leaves=6)), box)
    values = [expr.value(p) for p in points(box) if holds(constraints, p)]
    assert exact.is_empty(box, constraints) is (not values)
    wanted = (min(values), max(values)) if values else None
    assert exact.bounds(box, constraints, expr) == wanted


@given(st.data(), boxes())
@fuzz(150)
def test_a_difference_is_a_point_that_only_one_relation_has(
    data: st.DataObject, box: tuple[Variable, ...]
) -> None:
    hidden = data.draw(st.integers(0, len(box) - 1))
    inputs, inner = box[: len(box) - hidden], box[len(box) - hidden :]
    related, relations = [], []
    for _ in range(2):
        result = tree_expr(data.draw(trees(len(box), leaves=4)), box)
        constraints = tuple(data.draw(constraint_lists(box, max_count=1)))
        relations.append(exact.Relation(inputs, inner, (result,), constraints))
        related.append(
            {
                (tuple(p[v] for v in inputs), result.value(p))
                for p in points(box)
                if holds(constraints, p)
            }
        )
    difference = exact.difference(relations[0], relations[1])
    assert not isinstance(difference, Unknown)
    if difference is None:
        assert related[0] == related[1]
    else:
        pair = difference.point, difference.results[0]
        assert (pair in related[0]) == difference.in_first
        assert (pair in related[1]) != difference.in_first


def test_isl_decides_divisibility_that_intervals_leave_open() -> None:
    odd = Constraint(d0 * 2 - d1 * 4, 3, 3)
    assert not odd.is_false
    assert exact.is_empty((d0, d1), [odd]) is True


def test_bounds_of_an_empty_domain_are_none() -> None:
    assert exact.bounds((d0,), [Constraint(d0.as_expr(), 20, 30)], d0.as_expr()) is None


def hard_query() -> tuple[tuple[Variable, ...], list[Constraint]]:
    """Variables and constraints that ISL does not decide in reasonable time."""
    variables = tuple(Variable(f"x{k}", 0, 99) for k in range(4))
    exprs = [(v * 7 + w * 5) % 11 - (v * 3) % 13 for v in variables for w in variables]
    return variables, [Constraint(expr, 2, 3) for expr in exprs]


def test_beyond_the_budget_the_answer_is_undecided() -> None:
    variables, mods = hard_query()
    for answer in (
        exact.is_empty(variables, mods, budget=20),
        exact.bounds(variables, mods, variables[0] + variables[1], budget=20),
        exact.difference(
            exact.Relation(variables, (), (), tuple(mods)),
            exact.Relation(variables, (), (), ()),
            budget=20,
        ),
    ):
        assert isinstance(answer, Unknown)
        assert "20" in str(answer)
        with pytest.raises(UndecidedError, match="neither true nor false"):
            bool(answer)


def test_a_query_after_an_undecided_one_is_decided() -> None:
    assert isinstance(exact.is_empty(*hard_query(), budget=1), Unknown)
    assert exact.is_empty((d0,), []) is False


def test_isl_parses_the_text_of_relations() -> None:
    s0 = Variable("s0", 0, 2)
    rt0 = Variable("rt0", 0, 5)
    relation = exact.Relation((d0,), (s0,), (d0 * 2 + s0 + rt0,), (Constraint(d0 + s0, 0, 4),))
    shown = exact.to_isl(relation, [rt0])
    assert shown.dim(islpy.dim_type.param) == 1
    assert not shown.is_empty()


def test_equal_relations_written_differently_have_no_difference() -> None:
    x = Variable("x", 0, 99)
    one = exact.Relation((x,), (), (x % 12 // 4,), ())
    two = exact.Relation((x,), (), (x // 4 % 3,), ())
    assert exact.difference(one, two) is None


def test_variables_may_have_any_name() -> None:
    for name in ("and", "exists", "mod", "bl.x", "o0"):
        strange = variable(name, 0, 9)
        v = strange.variables()[0]
        assert exact.bounds((v,), [], strange * 2) == (0, 18)


def test_tight_bounds_are_correct_or_undecided_at_any_budget() -> None:
    """The budget may run out anywhere in isl, even while it prints a number."""
    pair = Variable("a", 0, 20), Variable("b", 0, 20)
    near = tuple(Constraint(pair[0] + pair[1] * sign, 0, 9) for sign in (1, -1))
    exprs = ((pair[0] + pair[1] * 2) % 5,)
    right = exact.tight_bounds(pair, near, exprs, 1_000_000)
    assert isinstance(right, exact.TightBounds)
    assert right.variables == ((0, 9), (0, 4))
    answers = [exact.tight_bounds(pair, near, exprs, budget) for budget in range(1, 9000, 61)]
    assert {type(answer) for answer in answers} == {Unknown, exact.TightBounds}
    assert all(a == right for a in answers if not isinstance(a, Unknown))


def test_an_exceeded_budget_prints_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    """islpy prints the exceptions of callbacks."""
    d0, d1 = Variable("d0", 0, 40), Variable("d1", 0, 30)
    one = exact.Relation((d0, d1), (), ((d0 + d1) // 3, d1 % 5), ())
    answers = [coalesce([one], budget=budget) for budget in range(2000, 8000, 50)]
    assert {isinstance(answer, Unknown) for answer in answers} == {True, False}
    assert capfd.readouterr() == ("", "")

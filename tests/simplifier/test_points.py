"""Enumeration of a box agrees with ISL."""

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simplifier import constant, exact, variable
from simplifier.atoms import Variable, variables_in
from simplifier.constraints import Constraint
from simplifier.exact import points
from simplifier.linear import Expr
from simplifier.refine import has_points, refine, tightened_exactly
from simplifier.samples import extreme_samples
from simplifier.unknown import Unknown
from tests.oracles import boxes, constraint_lists, fuzz, tree_expr, trees

ENOUGH = 2_000_000
"""Operations of ISL that suffice for every query here."""


@given(st.data(), boxes(empty=True))
@fuzz(400)
def test_enumeration_agrees_with_isl(data: st.DataObject, box: tuple[Variable, ...]) -> None:
    constraints = tuple(dict.fromkeys(data.draw(constraint_lists(box, max_count=4))))
    exprs = tuple([tree_expr(data.draw(trees(len(box), leaves=6)), box) for _ in range(2)])
    assert exact.enumerated_tight_bounds(box, constraints, exprs) == exact.tight_bounds(
        box, constraints, exprs, ENOUGH
    )
    assert exact.enumerated_is_empty(box, constraints) == exact.is_empty(box, constraints)


@given(st.data(), boxes(empty=True), st.integers(1, 9), st.booleans())
@fuzz(400)
def test_a_probe_agrees_with_enumeration(
    data: st.DataObject, box: tuple[Variable, ...], unit: int, has_all_points: bool
) -> None:
    constraints = tuple(dict.fromkeys(data.draw(constraint_lists(box, max_count=3))))
    exprs = tuple([tree_expr(data.draw(trees(len(box), leaves=6)), box) for _ in range(2)])
    with patch.object(points, "MAX_PROBED", points.MAX_PROBED if has_all_points else 0):
        points.probe_memo.cache_clear()
        probe = points.probe(box, constraints)
        points.probe_memo.cache_clear()
    tight = exact.enumerated_tight_bounds(box, constraints, exprs)
    if probe is None:
        assert tight is None or not has_all_points
        return
    assert tight is not None
    for expr, (low, high) in zip(exprs, tight.exprs, strict=True):
        assert probe.varies(expr, unit) <= (low // unit < high // unit)
        assert probe.varies(expr, unit) or low // unit == high // unit or not has_all_points
    if probe.is_tight:
        assert tight.variables == tuple([v.bounds for v in box])
        assert set(tight.constraints) == set(constraints)


@given(st.data(), boxes())
@fuzz(400)
def test_the_probe_of_a_refined_domain_has_its_points(
    data: st.DataObject, box: tuple[Variable, ...]
) -> None:
    """It is taken from the points of the domain before, with other variables and constraints."""
    constraints = data.draw(constraint_lists(box, max_count=4))
    domain = tightened_exactly(box, constraints)
    variables = tuple(
        sorted(variables_in([c.expr for c in domain.constraints]), key=lambda v: v.key)
    )
    probe = points.probe(variables, domain.constraints)
    points.probe_memo.cache_clear()
    expected = points.probe(variables, domain.constraints)
    if probe is None or expected is None:
        assert probe is expected is None
        return
    assert points_of(probe, variables) == points_of(expected, variables)
    assert (probe.is_complete, probe.is_tight) == (expected.is_complete, expected.is_tight)


def test_a_domain_keeps_one_probe() -> None:
    """Also if the domain before is refined again, for other results."""
    a, b = Variable("a", 0, 90), Variable("b", 0, 90)
    near = Constraint(a + b, 0, 45), Constraint(a * 2 + b, 0, 90), Constraint((a - b) % 7, 0, 3)
    for k in range(4):
        box = refine((a, b), near, [(a * k + b) // 9])
        assert box is not None
        assert len(points.probe_memo(box.variables, frozenset(box.constraints))) == 1


def points_of(probe: exact.Probe, variables: tuple[Variable, ...]) -> set[tuple[int, ...]]:
    """All points of a probe."""
    arrays, shape = probe.points, probe.points.shape
    columns = [np.broadcast_to(arrays.values(v.as_expr()), shape).ravel() for v in variables]
    return set(zip(*[column.tolist() for column in columns], strict=True))


@given(st.data(), boxes())
@fuzz(400)
def test_extreme_samples_are_points_that_reach_all_bounds(
    data: st.DataObject, box: tuple[Variable, ...]
) -> None:
    factors = data.draw(st.lists(st.integers(-9, 9), min_size=len(box), max_size=len(box)))
    expr = sum([v * factor for v, factor in zip(box, factors, strict=True)], constant(3))
    lower, upper = sorted(data.draw(st.tuples(st.integers(-40, 40), st.integers(-40, 40))))
    samples = extreme_samples(box, Constraint(expr, lower, upper))
    if samples is not None:
        assert all(lower <= value <= upper for value in samples.values(expr))
        for variable in box:
            values = samples.values(variable.as_expr())
            assert (min(values), max(values)) == variable.bounds


def test_extreme_samples_exist_for_mixed_radix_sums() -> None:
    block, thread = Variable("block", 0, 1365), Variable("thread", 0, 95)
    assert extreme_samples((block, thread), Constraint(block * 96 + thread, 0, 131_071))
    assert not extreme_samples((block, thread), Constraint(block * 96 + thread, 0, 9_999))


def test_a_probe_shows_that_no_query_is_needed() -> None:
    """Threads of a grid that is larger than the tensor, and a redundant constraint."""
    block, thread = Variable("block", 0, 1365), Variable("thread", 0, 95)
    inside = Constraint(block * 96 + thread, 0, 131_071)
    probe = exact.probe((block, thread), (inside,))
    assert probe is not None
    assert probe.is_tight
    assert probe.varies((block * 96 + thread) % 1000, 999)
    assert not probe.varies(block * 96 + thread, 131_072)
    narrow = Constraint(block - thread, -200, 1365)
    follows = exact.probe((block, thread), (inside, narrow))
    assert follows is not None
    assert not follows.is_tight


def test_a_probe_is_inconclusive_for_missed_domains_and_large_numbers() -> None:
    a, b = Variable("a", 0, 10**6), Variable("b", 0, 10**6)
    assert exact.probe((a, b), (Constraint(a - b, 77, 77),)) is None
    assert exact.probe((a, b), (Constraint(a * 10**20 - b, 0, 10**30),)) is None
    assert exact.probe((a, Variable("c", 3, 2)), ()) is None


@pytest.mark.parametrize("start", [2**54 + 1, 2**60 + 200, -(2**60) - 200])
def test_sampled_points_stay_inside_a_box_of_large_numbers(start: int) -> None:
    """In double precision, p would be a multiple of 64: both congruences hold with q = 0."""
    p, q = Variable("p", start, start + 1), Variable("q", 0, 1000)
    near = Constraint((p + q) % 64, 0, 0), Constraint((p + q * 3) % 64, 0, 0)
    inside = [
        (i, j)
        for i in (start, start + 1)
        for j in range(1001)
        if (i + j) % 64 == 0 and (i + j * 3) % 64 == 0
    ]
    assert not inside
    assert exact.probe((p, q), near) is None
    assert has_points(near) is not True


x, y = variable("x", -9, 9), variable("y", 0, 6)

# fmt: off
IMPLIED = [
    # constraints, and those that the others and exact bounds of variables do not imply
    ([(x + y, 0, 4), (x * 2 + y, -9, 8)],            [0]),
    ([(x + y, 0, 4), (x * 2 + y, -9, 7)],            [0]),         # x <= 3
    ([(x + y, 0, 4), (x * 2 + y, -9, 6)],            [0, 1]),      # x = 3, y = 1: 2·3 + 1 is 7
    ([(x, 3, 3), (x + x // 4, 3, 3)],                []),
    ([(x % 2, 0, 0), (x % 4, 0, 0)],                 [1]),
    ([(x % 2, 0, 0), (x % 3, 0, 0), (x % 6, 0, 0)],  [2]),
    ([(x - y, 0, 0), (y - x, 0, 0)],                 [1]),
    ([(x % 4, 1, 1), (x % 4, 0, 1), (y, 1, 6)],      [0]),         # a congruence stays
]
# fmt: on


@pytest.mark.parametrize("given_ones, left", IMPLIED)
def test_implied_constraints_are_dropped(
    given_ones: list[tuple[Expr, int, int]], left: list[int]
) -> None:
    constraints = tuple([Constraint(*each) for each in given_ones])
    box = tuple(sorted({v for c in constraints for v in c.expr.variables()}, key=lambda v: v.name))
    tight = exact.enumerated_tight_bounds(box, constraints, ())
    assert tight is not None
    assert tight == exact.tight_bounds(box, constraints, (), ENOUGH)
    assert tight.constraints == tuple([constraints[k] for k in left])


@pytest.mark.parametrize("factor", [1, 2**26, 2**31, 2**57, 2**62, 2**63, 10**40])
def test_large_numbers_do_not_overflow(factor: int) -> None:
    """Values beyond 32 bits, beyond 64 bits, and only intermediate sums beyond these."""
    a, b = Variable("a", 0, 20), Variable("b", -20, 0)
    sums = a * factor + b * (factor + 1)
    exprs = (sums, sums // 7, (a * factor + b * 3 + 5 * factor) // factor - a, sums % (factor + 2))
    near = (Constraint(sums, -factor, factor), Constraint(a % 3, 1, 1))
    tight = exact.enumerated_tight_bounds((a, b), near, exprs)
    inside = [
        {a: i, b: j}
        for i in range(21)
        for j in range(-20, 1)
        if i % 3 == 1 and abs(i * factor + j * (factor + 1)) <= factor
    ]
    assert tight is not None
    for expr, bounds in zip(exprs, tight.exprs, strict=True):
        values = [expr.value(point) for point in inside]
        assert bounds == (min(values), max(values))


def test_a_probe_of_a_small_domain_has_values_of_64_bits() -> None:
    """The constraints need only 32 bits."""
    a, b = Variable("a", 0, 20), Variable("b", 0, 20)
    near = Constraint(a + b, 0, 9), Constraint(a - b, 0, 9)
    probe = exact.probe((a, b), near)
    assert probe is not None
    for factor in (2**30, 2**40):
        value = a * factor + b * (factor + 1)
        assert probe.points.bounds(value) == (0, 9 * factor + 4)
        assert not probe.varies(value, 10 * factor)
        box = refine((a, b), near, [value // (10 * factor)])
        assert box is not None
        assert box.rebuild((a, b))(value // (10 * factor)) == constant(0)


@pytest.mark.parametrize("divided", [False, True])
@pytest.mark.parametrize("more, few", [(-1, True), (0, False)])
def test_isl_decides_large_boxes(
    divided: bool, more: int, few: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A box at the limit is enumerated; for one more point along a side, ISL decides."""
    atoms = 4 + 3 * divided
    side = points.MAX_AT_ONCE // (1 if divided else 4) // 32 // atoms
    a, b = Variable("p", 0, more + side), Variable("q", 0, 31)
    near = [Constraint(a + b, 0, 40), Constraint(a - b, 0, 40)]
    near += [Constraint(b % 9, 0, 7)] if divided else []
    assert sum(constraint.expr.weight for constraint in near) == atoms
    assert exact.should_enumerate((a, b), near) is few
    refused = Unknown("ISL is not queried here")
    monkeypatch.setattr(exact, "tight_bounds", lambda *_, budget: refused)
    box = refine((a, b), near, [])
    assert (box is not None) is few
    assert box is None or [v.bounds for v in box.variables] == [(0, 40), (0, 20)]


@pytest.mark.parametrize("bounds, empty", [((0, 0), False), ((1, 1), True)])
def test_a_constraint_without_variables_holds_or_not(bounds: tuple[int, int], empty: bool) -> None:
    given_ones = (Constraint(constant(0), *bounds),)
    assert exact.enumerated_is_empty((), given_ones) is exact.is_empty((), given_ones) is empty
    assert (exact.enumerated_tight_bounds((), given_ones, ()) is None) is empty


def test_non_affine_constraints_are_not_enumerated_with_arrays() -> None:
    a, b = Variable("a", 0, 9), Variable("b", 0, 9)
    assert not exact.should_enumerate((a, b), [Constraint(a * b.as_expr(), 0, 9)])

"""Matrices and formulas of a relation are the same isl set or map."""

from __future__ import annotations

from random import Random

import islpy
import pytest

from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.exact.encode import Relation, relation_text, without_inputs
from simplifier.exact.reading import PointsOf, as_map, as_set, coordinates
from simplifier.linear import Expr, constant
from simplifier.semiaffine import maximum

d0, d1, s0 = Variable("d0", -3, 9), Variable("d1", 0, 5), Variable("s0", 4, 4)


def random_expr(random: Random, depth: int = 1) -> Expr:
    terms = [v * random.choice([-7, -1, 1, 2, 12]) for v in random.sample([d0, d1, s0], 2)]
    total = terms[0] + terms[1] + random.randint(-9, 9)
    return total // random.choice([2, 3, 8]) + random_expr(random, depth - 1) if depth else total


def random_relation(random: Random, inputs: tuple[Variable, ...], results: int) -> Relation:
    hidden = tuple([v for v in (d0, d1, s0) if v not in inputs])
    lower = random.randint(-20, 20)
    constraints = [
        Constraint(random_expr(random), lower, lower + width)
        for width in random.sample([0, 5, 1 << 70], random.randint(0, 2))
    ]
    exprs = tuple([random_expr(random) for _ in range(results)])
    return Relation(inputs, hidden, exprs, tuple(constraints))


@pytest.mark.parametrize("seed", range(30))
def test_matrices_are_the_formulas(seed: int) -> None:
    random = Random(seed)
    inputs = tuple(random.sample([d0, d1, s0], random.randint(0, 3)))
    rank = random.randint(0, 2)
    relations = [random_relation(random, inputs, rank) for _ in range(random.randint(1, 3))]
    ctx = islpy.Context()
    formulas = [islpy.Map.read_from_str(ctx, relation_text(each)) for each in relations]
    union = formulas[0]
    for each in formulas[1:]:
        union = union.union(each)
    assert as_map(ctx, *relations).is_equal(union)
    assert as_map(ctx, *relations, reverse=True).is_equal(union.reverse())
    assert as_set(ctx, *relations).is_equal(union.domain())
    assert as_set(ctx, *relations, of=PointsOf.RESULTS).is_equal(union.range())
    assert as_set(ctx, *relations, of=PointsOf.PAIRS).is_equal(union.wrap().flatten())
    image = as_map(ctx, *map(without_inputs, relations))
    assert image.is_equal(islpy.Map.from_range(union.range()))


def test_relations_with_extrema_are_read_from_formulas() -> None:
    greater = Relation((d0,), (), (maximum(d0, constant(2)),), ())
    every, ctx = Relation((d0,), (), (d0 * 1,), ()), islpy.Context()
    at_least_2 = islpy.Set.read_from_str(ctx, "{ [o] : 2 <= o <= 9 }")
    assert as_set(ctx, greater, of=PointsOf.RESULTS).is_equal(at_least_2)
    assert as_map(ctx, every, greater, reverse=True).is_equal(as_map(ctx, greater, every).reverse())
    pairs = as_set(ctx, greater, of=PointsOf.PAIRS)
    assert pairs.is_equal(as_map(ctx, greater).wrap().flatten())
    assert as_set(ctx, greater).is_equal(as_set(ctx, every))


@pytest.mark.parametrize("count", [0, 1, 2, 7, 40])
def test_coordinates_are_in_order(count: int) -> None:
    for k, coordinate in enumerate(coordinates(islpy.Context(), count)):
        kinds = [coordinate.get_coefficient_val(islpy.dim_type.in_, j) for j in range(count)]
        assert [value.get_num_si() for value in kinds] == [int(j == k) for j in range(count)]
        assert coordinate.get_constant_val().is_zero()

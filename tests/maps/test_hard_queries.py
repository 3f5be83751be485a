"""Exact queries about maps that isl takes minutes for: each has a budget of isl operations.

Small domains are enumerated where isl exceeds its budget, so their answers are exact.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexing import IndexingMap, Unknown, parse_map
from indexing.maps.indexing_map import dims
from simplifier import Expr, Variable, exact, maximum, minimum
from simplifier.constraints import Constraint
from simplifier.exact import queries, unions
from simplifier.exact.elements import first_uncovered
from simplifier.exact.encode import Relation
from simplifier.exact.enumeration import (
    FIRST_BUDGET,
    MAX_POINTS,
    can_enumerate,
    first_difference,
    isl_budget,
    pairs,
    pieces_budget,
)
from simplifier.shared import term_count
from tests.oracles import fuzz


def coprime(*sizes: int) -> IndexingMap:
    """Return ``(x mod 19, x mod 23, x floordiv 29)`` of a sum of four dimensions."""
    d = dims(sizes)
    x = d[0] * 7 + d[1] * 11 + d[2] * 13 + d[3] * 17
    return IndexingMap.of(d, [x % 19, x % 23, x // 29])


SMALL, LARGE = coprime(5, 4, 4, 6), coprime(1000, 1000, 1000, 1000)
OPERATIONS = 250_000
"""isl operations of one query about divisions; each takes up to 50 microseconds."""


@pytest.fixture
def budgets(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The budgets of all isl queries."""
    recorded: list[int] = []
    for module in (queries, unions):
        real = vars(module)["within_budget"]

        def count_call(compute: Any, budget: int, kind: str = "other", real: Any = real) -> object:
            recorded.append(budget)
            return real(compute, budget, kind)

        monkeypatch.setattr(module, "within_budget", count_call)
    return recorded


def shift(m: IndexingMap) -> IndexingMap:
    """Return a map that differs only where d0 is largest."""
    d0 = m.dims[0]
    return IndexingMap.of(m.dims, [*m.results[:2], m.results[2] + d0 // d0.upper])


def decide(m: IndexingMap) -> Iterator[object]:
    yield m.is_equal(shift(m))
    yield m.count_image()
    yield m.is_injective()
    yield m.is_surjective_onto((19, 23, 5))
    yield m.depends_on(0)
    yield m.with_constraints([Constraint(m.results[0] + m.results[1], 41, 99)]).is_empty()


def test_a_small_domain_is_enumerated_beyond_the_budget(budgets: list[int]) -> None:
    assert not any(isinstance(answer, Unknown) for answer in decide(SMALL))
    assert max(budgets) <= FIRST_BUDGET


def test_enumerated_answers_are_those_of_the_points() -> None:
    points = dict(SMALL.points())
    assert SMALL.count_image() == len(set(points.values()))
    difference = SMALL.is_equal(shift(SMALL))
    assert not difference
    assert not isinstance(difference, Unknown)
    assert difference.witness["d0"] == 4
    injective = SMALL.is_injective()
    assert not isinstance(injective, Unknown | bool)
    a, b = injective.witness.points if injective.witness else ((), ())
    assert points[a] == points[b]
    surjective = SMALL.is_surjective_onto((19, 23, 5))
    assert not isinstance(surjective, Unknown | bool)
    assert surjective.witness is not None
    assert surjective.witness.results[0] not in points.values()


# fmt: off
QUERIES: list[tuple[str, Callable[[IndexingMap], object]]] = [
    ("is_equal",     lambda m: m.is_equal(shift(m))),
    ("count_image",  lambda m: m.count_image()),
    ("image",        lambda m: m.image()),
    ("inverse",      lambda m: m.inverse()),
    ("preimage",     lambda m: m.preimage((0, 0, 0))),
    ("injective",    lambda m: m.is_injective()),
    ("surjective",   lambda m: m.is_surjective_onto((19, 23, 5))),
    ("depends_on",   lambda m: m.depends_on(0)),
]
# fmt: on


@pytest.mark.parametrize("query", [q for _, q in QUERIES], ids=[name for name, _ in QUERIES])
def test_queries_about_large_domains_have_budgets_for_their_divisions(
    query: Callable[[IndexingMap], object], budgets: list[int]
) -> None:
    query(LARGE)
    assert 0 < sum(budgets) <= OPERATIONS


def test_certificates_of_small_domains_need_no_large_budget(budgets: list[int]) -> None:
    twice = SMALL.with_constraints([Constraint(SMALL.dims[0] * 2, 0, 7)])
    assert twice.simplify(certify=True).dims[0].upper == 3
    assert max(budgets, default=0) <= FIRST_BUDGET


# ---------------------------------------------------------------- budgets


def relation(upper: int, divisions: int, factor: int = 1) -> Relation:
    d = Variable("d", 0, upper)
    return Relation((d,), (), tuple([(d * factor + k) // (11 + k) for k in range(divisions)]), ())


def test_budgets_decrease_with_divisions_and_digits() -> None:
    plain = pieces_budget(exact.BUDGET, relation(1 << 20, 0))
    divided = pieces_budget(exact.BUDGET, relation(1 << 20, 2))
    large = pieces_budget(exact.BUDGET, relation(1 << 20, 2, 1 << 60 | 1))
    assert exact.BUDGET == plain > divided > large >= FIRST_BUDGET
    assert pieces_budget(2_000, relation(1 << 20, 9)) == 2_000


def chain_of_extrema(count: int) -> IndexingMap:
    """Return a chain of `count` minima and as many maxima."""
    d = dims((100,) * (count + 1))
    x = d[0].as_expr()
    for k, v in enumerate(d[1:]):
        x = maximum(minimum(x, v + k), v - 3)
    return IndexingMap.of(d, [x])


def test_budgets_decrease_with_many_minima_and_maxima(budgets: list[int]) -> None:
    few, many = chain_of_extrema(1), chain_of_extrema(59)
    assert few.is_single_valued() is True
    assert budgets == [exact.BUDGET]
    assert isinstance(many.is_injective(), Unknown)
    assert max(budgets[1:]) < OPERATIONS


def test_budgets_of_large_numbers_are_smaller(budgets: list[int]) -> None:
    """An operation on numbers of 200 bits takes a third of a millisecond."""
    d = dims((100,) * 3)
    x = d[0] * (2**200 + 1) + d[1] * (2**200 - 3) + d[2] * 7
    assert isinstance(IndexingMap.of(d, [x % (2**200 - 1), x // 2**198]).count_image(), Unknown)
    assert max(budgets) < FIRST_BUDGET // 2


@pytest.mark.slow
def test_large_numbers_of_many_points_are_enumerated_in_arrays(budgets: list[int]) -> None:
    d = dims((60,) * 3)  # more than MAX_POINTS
    x = d[0] * (2**60 + 1) + d[1] * (2**60 - 3) + d[2] * 7
    m = IndexingMap.of(d, [x % (2**60 - 1), x // (2**60 // 3)])
    a, b, c = np.indices((60,) * 3)
    low = 2 * a - 2 * b + 7 * c
    rows = {*zip((low % (2**60 - 1)).flat, (3 * (a + b) + low // (2**60 // 3)).flat, strict=True)}
    assert m.count_image() == len(rows)
    verdict = m.is_surjective_onto((2**60, 400))
    assert not isinstance(verdict, Unknown | bool)
    assert verdict.witness is not None
    assert verdict.witness.results == ((0, 1),)
    assert (0, 0) in rows
    assert (0, 1) not in rows
    assert max(budgets) < 2 * FIRST_BUDGET


@given(st.lists(st.integers(1, 5), min_size=1, max_size=3), st.data())
@fuzz(60)
def test_the_first_uncovered_point_is_the_first_of_the_box(
    sizes: list[int], data: st.DataObject
) -> None:
    box = [Variable(f"e{k}", data.draw(st.integers(-2, 2)), 0) for k in range(len(sizes))]
    box = [Variable(v.name, v.lower, v.lower + n - 1) for v, n in zip(box, sizes, strict=True)]
    d = dims((4, 3))
    factors = data.draw(st.lists(st.integers(-2, 3), min_size=len(box), max_size=len(box)))
    results = tuple([d[0] * f + d[1] // (k + 1) - 1 for k, f in enumerate(factors)])
    some = Relation(d, (), results, ())
    every = [range(v.lower, v.upper + 1) for v in box]
    covered = {values for _, values in pairs(some)}
    by_hand = next((point for point in product(*every) if point not in covered), None)
    assert first_uncovered([some], box) == by_hand
    assert first_uncovered([], box) == tuple([v.lower for v in box])


def test_the_coverage_of_a_schedule_is_within_the_budget() -> None:
    schedule = parse_map(
        "(th_x, bl_x, unroll_id) -> (bl_x floordiv 4096, (bl_x floordiv 8) mod 512, th_x * 4 + "
        "unroll_id + (bl_x mod 8) * 512), domain: th_x in [0, 127], bl_x in [0, 24575], "
        "unroll_id in [0, 3]"
    )
    assert schedule.is_single_valued() is True
    assert schedule.is_bijection((6, 512, 4096)) is True


def test_relations_of_few_points_get_a_small_budget_and_are_enumerated_then() -> None:
    few, many = relation(MAX_POINTS - 1, 1), relation(MAX_POINTS, 1)
    assert can_enumerate(few)
    assert not can_enumerate(many)
    assert isl_budget(exact.BUDGET, few) == FIRST_BUDGET < isl_budget(exact.BUDGET, many)


def test_large_numbers_and_many_atoms_reduce_the_points_to_enumerate() -> None:
    assert can_enumerate(relation(50_000, 1))
    assert not can_enumerate(relation(50_000, 60, 1 << 70 | 1))


def test_pairs_are_exact_beyond_64_bits_and_at_zero_divisors() -> None:
    d0, d1 = Variable("d0", 0, 3), Variable("d1", -1, 1)
    huge = Relation((d0,), (d1,), (d0 * (1 << 70) // 3 + d1, d0 // d1), ())
    by_hand = {
        ((x,), (x * (1 << 70) // 3 + y, x // y)) for x in range(4) for y in range(-1, 2) if y
    }
    assert set(pairs(huge)) == by_hand
    assert first_difference(huge, huge) is None


def test_a_relation_without_variables_or_results_is_enumerated() -> None:
    assert list(pairs(Relation((), (), (), ()))) == [((), ())]
    empty = Variable("e", 0, -1)
    assert not list(pairs(Relation((empty,), (), (empty.as_expr(),), ())))


# ---------------------------------------------------------------- conversions


def test_conversion_to_isl_is_refused_beyond_its_budget() -> None:
    d = dims((100,) * 60)
    x: Expr = d[0].as_expr()
    for k, v in enumerate(d[1:]):
        x = maximum(minimum(x, v + k), v - 3)
    with pytest.raises(ValueError, match=r"beyond the budget of \d+ isl operations"):
        IndexingMap.of(d, [x]).to_isl()


def test_answers_of_isl_may_have_coefficients_of_more_than_64_bits() -> None:
    d = dims((100, 100, 100))
    x = d[0] * (2**200 + 1) + d[1] * (2**200 - 3) + d[2] * 7
    m = IndexingMap.of(d, [x % (2**200 - 1), x // (2**200 // 3)])
    pieces = m.inverse()
    assert not isinstance(pieces, Unknown)
    (piece,) = pieces
    for point in ((17, 42, 99), (0, 0, 0), (99, 1, 50)):
        results = m.evaluate(point)
        assert results is not None
        assert piece.evaluate(results, point[:1]) == point


def test_sympy_does_not_simplify_chains_of_minima() -> None:
    import sympy

    d = dims((9,) * 12)
    x: Expr = d[0].as_expr()
    for k, v in enumerate(d[1:]):
        x = maximum(minimum(x, v + k), v - 3)
    m = IndexingMap.of(d, [x])
    (converted,) = m.to_sympy()
    point = {sympy.Symbol(v.name, integer=True, nonnegative=True): k % 7 for k, v in enumerate(d)}
    assert (converted.subs(point).doit(),) == m.evaluate(list(point.values()))
    assert IndexingMap.from_sympy(m.to_sympy()) == m


def test_queries_with_small_budgets_are_not_enumerated() -> None:
    relation = Relation((), SMALL.dims, SMALL.results, ())
    assert isinstance(exact.count(relation, FIRST_BUDGET), Unknown)
    assert exact.count(relation, FIRST_BUDGET + 1) == len({r for _, r in SMALL.points()})


def test_read_counts_have_a_budget_of_terms() -> None:
    a, b = dims((1000, 11))
    first, second = a.as_expr(), b.as_expr()
    for _ in range(200):
        x = first * 7 + second
        first, second = x // 5, x % 11
    reads = IndexingMap.of((a, b), [first, second]).multiplicity()
    assert not isinstance(reads, Unknown)
    answer = reads.histogram()
    assert isinstance(answer, Unknown)
    assert "budget" in answer.reason


def test_terms_of_shared_subexpressions_count_once() -> None:
    d0, d1 = dims((10, 10))
    shared = (d0 * 2 + d1) // 5
    assert term_count([shared * 2, shared * 3 + d0]) == 1 + 2 + 2

"""Contexts of isl are shared by queries, and no query depends on those before it."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable

import islpy
import pytest

from benchmarks.session import heap
from simplifier import exact
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.exact.context import within_budget
from simplifier.exact.unions import coalesce, point
from simplifier.unknown import Unknown

d0, d1 = Variable("d0", 0, 99), Variable("d1", 0, 29)
SKEWED = exact.Relation((d0, d1), (), (d0 * 3 + d1, d1 // 4), (Constraint(d0 - d1, 0, 80),))
DIAGONAL = exact.Relation((d0, d1), (), (d0 * 3 + d1, d0 // 4), ())
Query = Callable[[int], object]

# fmt: off
QUERIES: list[tuple[str, Query]] = [
    ("count_val",  lambda budget: within_budget(
                       lambda ctx: islpy.Set.read_from_str(
                           ctx, "{ [i, j] : 0 <= i < 9 and 0 <= j < i and (i + j) mod 3 = 1 }"
                       ).count_val().get_num_si(), budget)),
    ("bounds",     lambda budget: exact.bounds((d0, d1), SKEWED.constraints, d0 - d1 // 7, budget)),
    ("is_empty",   lambda budget: exact.is_empty((d0, d1), SKEWED.constraints, budget)),
    ("difference", lambda budget: exact.difference(SKEWED, DIAGONAL, budget)),
    ("inverse",    lambda budget: exact.inverse(SKEWED, budget)),
    ("coalesced",  lambda budget: coalesce([SKEWED, SKEWED], budget)),
    ("point",      lambda budget: point((d0, d1), SKEWED.constraints, (), budget)),
]
# fmt: on


@pytest.mark.parametrize(("name", "query"), QUERIES, ids=[name for name, _ in QUERIES])
def test_with_any_budget_an_answer_is_right_or_unknown(name: str, query: Query) -> None:
    """The same queries in reverse order have the same answers: earlier ones do not count."""
    right = query(2_000_000)
    assert not isinstance(right, Unknown)
    budgets = [int(1.15**k) for k in range(70)]
    answers = [query(budget) for budget in budgets]
    undecided = [isinstance(answer, Unknown) for answer in answers]
    assert undecided == sorted(undecided, reverse=True)
    assert undecided[0] != undecided[-1]
    assert all(answer == right for answer in answers if not isinstance(answer, Unknown))
    backwards = [query(budget) for budget in reversed(budgets)]
    assert [isinstance(answer, Unknown) for answer in reversed(backwards)] == undecided


def test_queries_share_a_context(monkeypatch: pytest.MonkeyPatch) -> None:
    """islpy frees no context, so each one that is made remains in memory.

    A query far beyond its budget needs no new context, either.
    """
    made: list[islpy.Context] = []

    def make() -> islpy.Context:
        made.append(context())
        return made[-1]

    context = islpy.Context
    monkeypatch.setattr(islpy, "Context", make)
    for _, query in QUERIES:
        for _ in range(20):
            query(2_000_000)
            assert isinstance(query(50), Unknown)
    assert len(made) <= 1


LEAKS: list[tuple[str, Callable[[], object], int]] = [
    ("is_empty", lambda: exact.is_empty((d0, d1), SKEWED.constraints), 0),
    ("bounds", lambda: exact.bounds((d0, d1), SKEWED.constraints, d0 - d1 // 7), 0),
    (
        "tight_bounds",
        lambda: exact.tight_bounds((d0, d1), SKEWED.constraints, SKEWED.results, 9_999),
        0,
    ),
    ("equal", lambda: exact.difference(SKEWED, SKEWED), 0),
    ("exhausted", lambda: exact.inverse(SKEWED, 2_000), 6),
    ("inverse", lambda: exact.inverse(SKEWED), 12),
]
"""Queries, and the number of isl objects that their calls may take."""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallinfo2"), reason="needs glibc 2.33")
@pytest.mark.parametrize(("name", "query", "taken"), LEAKS, ids=[name for name, _, _ in LEAKS])
def test_equal_queries_need_no_more_memory(
    name: str, query: Callable[[], object], taken: int
) -> None:
    """islpy leaks 32 bytes for each isl object that a call takes."""
    count = 200
    for _ in range(20):
        query()
    gc.collect()
    before = heap()
    for _ in range(count):
        query()
    gc.collect()
    assert (heap() - before) / count < 32 * (taken + 1)


def test_a_query_inside_a_query_has_its_own_budget() -> None:
    def outer(ctx: islpy.Context) -> object:
        before = islpy.Set.read_from_str(ctx, "{ [i] : 0 <= i < 9 }")
        assert isinstance(exact.is_empty((d0, d1), SKEWED.constraints, 5), Unknown)
        return before.is_empty(), exact.is_empty((d0, d1), SKEWED.constraints)

    assert within_budget(outer, 1000) == (False, False)


@pytest.mark.parametrize("size", [1 << 20, 1 << 31, 1 << 62, (1 << 63) - 1, 1 << 63, 1 << 70])
def test_numbers_of_any_size_are_read_exactly(size: int) -> None:
    x = Variable("x", -9, 9)
    assert exact.bounds((x,), (), x * size - 1) == (-9 * size - 1, 9 * size - 1)
    inverse = exact.inverse(exact.Relation((x,), (), (x * size + 2,), ()))
    assert not isinstance(inverse, Unknown)
    for piece in inverse:  # (y - 2) / size
        (y,), (result,) = piece.inputs, piece.results
        assert (y.lower, y.upper) == (2 - 9 * size, 2 + 9 * size)
        assert [result.value({y: 2 + k * size}) for k in (-9, 4)] == [-9, 4]
        assert all(c.lower <= c.expr.value({y: 2 + 4 * size}) <= c.upper for c in piece.constraints)
    assert len(inverse) == 1

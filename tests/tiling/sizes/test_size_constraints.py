"""Constraints on tile sizes: XLA's cases, and random trees against evaluation."""

from __future__ import annotations

from typing import Any, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexing.tiling.sizes.size_constraints import (
    ALWAYS,
    NEVER,
    Disjunction,
    SizeCondition,
    SizeConstraints,
    all_of,
    condition,
)
from simplifier import Expr, Variable, as_expr, variable
from simplifier.reading import parse_expr
from tests.growth.work import calls_of
from tests.oracles import fuzz
from tests.tiling.sizes.size_rows import POINTS, TS, UPPER, rows, tree_of, value_of

Row: TypeAlias = "str | tuple[str, Row, Row]"

# ---------------------------------------------------------------- XLA's cases

D = {name: Variable(name, -100, 100) for name in ("d0", "d1", "d2")}  # sizes in XLA's notation
NEITHER = ("&", ("&", "d0 in [0, 5]", "d0 in [3, 6]"), "d0 in [7, 8]")
BOTH = ("&", ("&", "d0 in [0, 5]", "d1 in [0, 5]"), "d2 in [0, 5]")
EITHER = ("|", ("&", "d0 in [0, 5]", "d1 in [0, 5]"), "d2 in [0, 5]")
FIRST, SECOND = "d0 in [0, 0]", "d1 in [1, 1]"
TWICE = ("|", ("&", FIRST, SECOND), ("&", SECOND, FIRST))

# XLA `xla/codegen/tiling/symbolic_tile_test.cc`, suite `ConstraintExpressionTest`.
# fmt: off
XLA_TEXTS: list[tuple[Row, str]] = [
    ("unsatisfiable", "unsatisfiable"),
    (("|", "unsatisfiable", "d0 in [0, 0]"), "d0 in [0, 0]"),
    (("&", "unsatisfiable", "d0 in [0, 0]"), "unsatisfiable"),
    (("&", "unsatisfiable", "always satisfied"), "unsatisfiable"),
    (("&", "always satisfied", "unsatisfiable"), "unsatisfiable"),
    ("d0 in [0, 5]", "d0 in [0, 5]"),
    (("&", "d0 in [0, 5]", "d0 in [3, 6]"), "d0 in [3, 5]"),
    (NEITHER, "unsatisfiable"),
    (BOTH, "d0 in [0, 5] && d1 in [0, 5] && d2 in [0, 5]"),
    (EITHER, "d0 in [0, 5] && d1 in [0, 5] || d2 in [0, 5]"),
    (("|", "d0 in [0, -1]", "1 in [2, 3]"), "unsatisfiable"),
    (("&", ("&", ("&", "d0 in [0, 1]", "1 in [1, 1]"), "d1 in [0, 1]"), "2 in [2, 3]"),
     "d0 in [0, 1] && d1 in [0, 1]"),
    (("|", "d0 in [0, 1]", ("&", ("&", "d1 in [0, 1]", "1 in [0, 0]"), "d2 in [0, 1]")),
     "d0 in [0, 1]"),
    (("|", ("|", ("|", TWICE, FIRST), ("&", SECOND, FIRST)), ("&", FIRST, SECOND)),
     "d0 in [0, 0]"),  # XLA keeps `|| d0 in [0, 0] && d1 in [1, 1]`, which is absorbed
]
# fmt: on


def build_constraints(row: Row, names: dict[str, Variable] = D) -> SizeConstraints:
    """The constraints of a row, in prefix notation."""
    match row:
        case "unsatisfiable":
            return NEVER
        case "always satisfied":
            return ALWAYS
        case str():
            expr, _, bounds = row.partition(" in ")
            lower, upper = bounds.strip("[]").split(", ")
            return condition(parse_expr(expr, names), int(lower), int(upper))
        case "&", left, right:
            return build_constraints(left, names) & build_constraints(right, names)
        case _, left, right:
            return build_constraints(left, names) | build_constraints(right, names)


@pytest.mark.parametrize(("row", "text"), XLA_TEXTS)
def test_constraints_of_xla(row: Row, text: str) -> None:
    assert str(build_constraints(row)) == text


def test_predicates_of_xla() -> None:
    assert build_constraints("unsatisfiable") == NEVER != ALWAYS
    assert NEVER not in (build_constraints(BOTH), build_constraints(EITHER))
    assert not NEVER.satisfied_by([])


# ---------------------------------------------------------------- evaluation


@fuzz(100)
@given(rows(3), st.lists(st.sampled_from(POINTS), min_size=60, max_size=60))
def test_trees_hold_where_their_conditions_do(row: Any, points: list[tuple[int, ...]]) -> None:
    tree = tree_of(row)
    simple = tree.simplify()
    for sizes in points:
        assert tree.satisfied_by(sizes) == value_of(row, sizes), sizes
        assert simple.satisfied_by(sizes) == value_of(row, sizes), (str(simple), sizes)


@fuzz(60)
@given(rows(3), st.dictionaries(st.sampled_from(range(3)), st.integers(1, UPPER)))
def test_bound_trees_hold_where_the_whole_ones_do(row: Any, values: dict[int, int]) -> None:
    tree = tree_of(row)
    bound = tree.bind({Variable(f"ts_{k}", 1, UPPER): size for k, size in values.items()})
    assert not {v.name for v in bound.variables} & {f"ts_{k}" for k in values}
    for sizes in POINTS[::29]:
        whole = tuple(values.get(k, size) for k, size in enumerate(sizes))
        assert bound.satisfied_by(sizes) == tree.satisfied_by(whole), sizes


X = "ts_0 in [2, 4]"
NAMES = {name: Variable(name, 1, 99) for name in ("ts_0", "ts_1")}

# fmt: off
LAWS: list[tuple[Row, str]] = [
    (("&", X, "ts_0 in [4, 6]"),                  "ts_0 in [4, 4]"),
    (("|", X, "ts_0 in [5, 6]"),                  "ts_0 in [2, 6]"),
    (("|", X, "ts_0 in [6, 7]"),                  "ts_0 in [2, 4] || ts_0 in [6, 7]"),  # 5 is not
    (("|", "ts_0 in [1, 9]", "ts_0 in [10, 99]"), "always satisfied"),
    (("|", "ts_0 in [1, 9]", "ts_0 in [10, 98]"), "ts_0 in [1, 98]"),
    (("&", X, ("|", "ts_0 in [1, 4]", "ts_1 in [2, 2]")), X),
    (("&", X, ("|", "ts_0 in [3, 4]", "ts_1 in [2, 2]")),  # ts_0 = 2
     "ts_0 in [2, 4] && (ts_0 in [3, 4] || ts_1 in [2, 2])"),
    (("|", X, ("&", "ts_0 in [3, 4]", "ts_1 in [2, 2]")), X),
    (("|", X, ("&", "ts_0 in [3, 5]", "ts_1 in [2, 2]")),  # ts_0 = 5
     "ts_0 in [2, 4] || ts_0 in [3, 5] && ts_1 in [2, 2]"),
    ("ts_0 - 2 in [0, 2]",                        "ts_0 in [2, 4]"),
    ("ts_0 * 2 in [3, 9]",                        "ts_0 in [2, 4]"),
    ("ts_0 * 2 + ts_1 in [3, 9]",                 "ts_0 * 2 + ts_1 in [3, 9]"),
    ("3 - ts_0 in [0, 1]",                        "ts_0 in [2, 3]"),
    ("ts_0 in [0, 99]",                           "always satisfied"),
    ("ts_0 in [0, 98]",                           "ts_0 in [0, 98]"),
    ("ts_0 in [100, 200]",                        "unsatisfiable"),
    ("ts_0 in [99, 200]",                         "ts_0 in [99, 200]"),
    ("6 mod ts_0 in [0, 0]",                      "6 mod ts_0 in [0, 0]"),
    ("6 mod (ts_0 * ts_1) - 1 in [0, 0]",         "6 mod (ts_0 * ts_1) in [1, 1]"),
]
# fmt: on


@pytest.mark.parametrize(("row", "text"), LAWS)
def test_construction_folds(row: Row, text: str) -> None:
    assert str(build_constraints(row, NAMES)) == text


def test_open_intervals_stay_open() -> None:
    (ts_0,) = TS[:1]
    assert str(condition(ts_0, 3)) == "ts_0 >= 3"
    assert str(condition(-ts_0, None, -3)) == "ts_0 >= 3"
    assert str(condition(ts_0 * -2, -7)) == "ts_0 <= 3"
    assert condition(ts_0, 1) == ALWAYS


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ([4], "1 tile sizes: expected a size for ts_1"),
        ([4, 0], "tile size ts_1 = 0: expected at least 1"),
    ],
)
def test_sizes_that_are_no_tile(sizes: list[int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        condition(TS[1] % 3, 0, 0).satisfied_by(sizes)


def test_a_size_beyond_the_dimension_is_the_whole_dimension() -> None:
    whole = condition(variable("ts_0", 1, 6) % 6, 0, 0)
    assert [whole.satisfied_by([size]) for size in (5, 6, 8, 100)] == [False, True, True, True]


# ---------------------------------------------------------------- no disjunctive normal form


def alternatives(rank: int, levels: int) -> SizeConstraints:
    """A conjunction of ``n = rank * levels`` disjunctions: its DNF has ``2 ** n`` terms."""
    sizes = [variable(f"ts_{k}", 1, 10**6) for k in range(rank)]
    return all_of(
        condition(as_expr(level + 2) % ts, 0, 0) | condition(ts % (level + 2), 0, 0)
        for level in range(levels)
        for ts in sizes
    )


def test_conjunctions_of_disjunctions_grow_linearly(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = calls_of(monkeypatch, SizeCondition, "admits")
    tree = alternatives(rank=10, levels=40)
    assert len(tree.parts) == 400
    assert all(isinstance(part, Disjunction) and len(part.parts) == 2 for part in tree.parts)
    assert tree.satisfied_by([1] * 10)
    assert len(calls) <= 2 * 400
    assert not tree.satisfied_by([1] * 9 + [47])


def test_shared_parts_are_evaluated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    ts_0, ts_1 = (variable(f"ts_{k}", 1, 10**6) for k in range(2))
    tree = condition(ts_0, 2, 3)
    for level in range(60):  # each level contains the one below twice
        tree = (tree & condition(ts_1 % (level + 2), 1, 1)) | (
            tree & condition(ts_1 % (level + 100), 1, 1)
        )
    calls = calls_of(monkeypatch, Expr, "value")
    tree.satisfied_by([5, 5])
    tree.bind({Variable("ts_0", 1, 10**6): 5})
    assert 0 < len(calls) < 500

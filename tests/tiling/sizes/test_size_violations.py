"""Violations of constraints on tile sizes, their simplification, and their texts."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from indexing.tiling.sizes.size_constraints import (
    ALWAYS,
    NEVER,
    SizeCondition,
    SizeConstraints,
    all_of,
    any_of,
    condition,
)
from indexing.tiling.sizes.size_violations import MAX_TRIES
from simplifier import as_expr, variable
from tests.growth.work import calls_of
from tests.oracles import fuzz
from tests.tiling.sizes.size_rows import POINTS, UPPER, rows, tree_of, value_of

a, b = variable("ts_0", 1, 48), variable("ts_1", 1, 48)
wide = variable("ts_0", 1, 10**9)


def divides(divisor: Any, dividend: Any) -> SizeConstraints:
    return condition(as_expr(dividend) % divisor, 0, 0)


ALIGNED = divides(a, 6) | divides(6, a)
FIXED = condition(a, 2, 2) & condition(b, 3, 3)

# ---------------------------------------------------------------- violations


@fuzz(100)
@given(rows(2))
def test_nearest_sizes_are_the_nearest_legal_ones(row: Any) -> None:
    tree = tree_of(row)
    for sizes in POINTS[::41]:
        violation = tree.violation(sizes)
        assert (violation is None) == value_of(row, sizes), sizes
        if violation is None or violation.condition is None:
            assert violation is None or tree == NEVER
            continue
        value = violation.condition.expr.value(violation.point)
        assert value == violation.value
        assert not violation.condition.admits(value)
        assert {n.name for n in violation.nearest} == {
            v.name for v in violation.condition.variables
        }
        for name, smaller, larger in violation.nearest:
            number = int(name[3:])
            at = min(sizes[number], UPPER)

            def legal(size: int, number: int = number, sizes: Any = sizes) -> bool:
                return value_of(row, (*sizes[:number], size, *sizes[number + 1 :]))

            if not violation.only_this:
                assert smaller == max(filter(legal, range(1, at)), default=None)
                assert larger == min(filter(legal, range(at + 1, UPPER + 1)), default=None)
            else:
                assert not any(map(legal, range(1, UPPER + 1)))


# fmt: off
VIOLATIONS = [
    # constraints             sizes    failure, and legal sizes
    (divides(a, 6),           [5],
     "ts_0 = 5 does not divide 6: 6 mod ts_0 = 1", "3 and 6"),
    (divides(a, 6),           [9],
     "ts_0 = 9 does not divide 6: 6 mod ts_0 = 6", "6"),
    (divides(6, a),           [5],
     "6 does not divide ts_0 = 5: ts_0 mod 6 = 5", "6"),
    (divides(6, a * b),       [4, 4],
     "6 does not divide ts_0 * ts_1 = 16: (ts_0 * ts_1) mod 6 = 4",
     "ts_0 = 3 and 6, or ts_1 = 3 and 6"),
    (ALIGNED,                 [5],
     "ts_0 = 5 does not divide 6: 6 mod ts_0 = 1", "3 and 6"),
    (ALIGNED,                 [13],
     "6 does not divide ts_0 = 13: ts_0 mod 6 = 1", "12 and 18"),
    (ALIGNED,                 [47],
     "6 does not divide ts_0 = 47: ts_0 mod 6 = 5", "42 and 48"),
    (condition(a, 3, 5),      [8],
     "ts_0 = 8: expected 3 <= ts_0 <= 5", "5"),
    (condition(a * b, 6),     [2, 2],
     "ts_0 * ts_1 = 4, where ts_0 = 2 and ts_1 = 2: expected ts_0 * ts_1 >= 6",
     "ts_0 = 3, or ts_1 = 3"),
    (FIXED,                   [1, 3],  "ts_0 = 1: expected ts_0 = 2", "2"),
    (divides(10**9, wide),    [77],
     "1000000000 does not divide ts_0 = 77: ts_0 mod 1000000000 = 77", ""),
    (NEVER,                   [1],     "no tile sizes satisfy the constraints", ""),
]
# fmt: on


@pytest.mark.parametrize(("tree", "sizes", "failure", "legal"), VIOLATIONS)
def test_violations_in_words(
    tree: SizeConstraints, sizes: list[int], failure: str, legal: str
) -> None:
    text = f"{failure}; legal sizes nearby: {legal}" if legal else failure
    assert str(tree.violation(sizes)) == text


def test_sizes_are_of_one_condition_if_another_dimension_is_illegal() -> None:
    text = "ts_0 = 1: expected ts_0 = 2; sizes nearby that satisfy this condition: 2"
    assert str(FIXED.violation([1, 1])) == text


def test_a_violation_names_its_source_and_reason() -> None:
    row = condition(as_expr(6) % a, 0, 0, reason="a row of 6 is cut").with_source(
        "reshape.3", "d0 floordiv 6"
    )
    tree = (row & condition(b, 4, 4)).with_source("slice.1")
    violation = tree.violation([4, 4])
    assert violation is not None
    assert (violation.instruction, violation.reason) == ("reshape.3", "a row of 6 is cut")
    assert "(a row of 6 is cut; `reshape.3`: d0 floordiv 6)" in str(violation)
    other = tree.violation([3, 5])
    assert other is not None
    assert other.instruction == "slice.1"


def test_intersections_keep_the_sources_that_matter() -> None:
    low = condition(a, 2, 9).with_source("low")
    high = condition(a, 4, 12).with_source("high")
    inner = condition(a, 5, 6).with_source("inner")
    assert [s.instruction for s in sources(low & high)] == ["low", "high"]
    assert [s.instruction for s in sources(low & inner)] == ["inner"]
    assert [s.instruction for s in sources(low & low.bind({}))] == ["low"]


def test_a_source_is_completed_once() -> None:
    part = condition(a, 2, 9).with_source("", "d0 * 2")
    assert str(part.violation([1])) == (
        "ts_0 = 1: expected 2 <= ts_0 <= 9 (d0 * 2); legal sizes nearby: 2"
    )
    assert str(*sources(part.with_source("add.1", "whole map"))) == "`add.1`: d0 * 2"
    assert sources(part.with_source("add.1").with_source("add.2"))[0].instruction == "add.1"


def sources(tree: SizeConstraints) -> Any:
    assert isinstance(tree, SizeCondition)
    return tree.sources


def test_the_search_for_legal_sizes_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = calls_of(monkeypatch, SizeCondition, "admits")
    tree = all_of(divides(10**8 + k, wide) | condition(wide, k, k) for k in range(2, 40))
    assert tree.violation([10**7]) is not None
    assert len(calls) < 5 * MAX_TRIES


# ---------------------------------------------------------------- simplification

small, other = variable("ts_0", 1, 6), variable("ts_1", 1, 10**6)
X, Y, ONE = condition(a, 1, 1), condition(a, 2, 2), condition(b, 1, 1)
CHOICE = (Y & ONE) | condition(b, 2, 2)
AREA = condition(a * b, 5, 9)

# fmt: off
SIMPLER = [
    # constraints                                  simplified
    (divides(small, 6) | divides(6, small),        "6 mod ts_0 in [0, 0]"),
    (ALIGNED,                                      None),                     # 12 does not divide 6
    (divides(4, a) & divides(2, a),                "ts_0 mod 4 in [0, 0]"),
    (divides(4, a) & divides(6, a),                None),                     # 4 and 6
    (divides(4, a) & condition(a, 1, 3),           "unsatisfiable"),
    (divides(4, a) & condition(a, 1, 4),           None),
    (condition(a % 4, 1, 3) | divides(4, a),       "always satisfied"),
    (condition(a % 4, 2, 3) | divides(4, a),       None),                     # 1
    (condition(a, 3, 3) & CHOICE,                  "ts_0 in [3, 3] && ts_1 in [2, 2]"),
    (condition(a, 2, 3) & CHOICE,                  None),
    (condition(a, 2, 3) | ONE & condition(a % 9, 2, 3), None),                # 11 mod 9 = 2
    (condition(small, 2, 3) | ONE & condition(small % 9, 2, 3), "ts_0 in [2, 3]"),
    # of large domains or several variables, equal expressions only
    (condition(other, 5, 9) & (condition(other, 6, 6) & X | condition(other, 1, 4) & Y),
     "ts_1 in [6, 6] && ts_0 in [1, 1]"),
    (AREA & (condition(a * b, 4, 10) & X | Y),     "ts_0 * ts_1 in [5, 9] && ts_0 in [1, 2]"),
    (AREA & (condition(a * b, 6, 10) & X | Y),     None),
    (AREA | condition(a * b, 6, 6) & Y,            "ts_0 * ts_1 in [5, 9]"),
    (AREA | condition(a * b, 6, 10) & Y,           None),
    (any_of([AREA & ONE, ONE & Y & AREA]),         "ts_0 * ts_1 in [5, 9] && ts_1 in [1, 1]"),
    (ALWAYS,                                       "always satisfied"),
    (NEVER,                                        "unsatisfiable"),
]
# fmt: on


@pytest.mark.parametrize(("tree", "text"), SIMPLER)
def test_simplification(tree: SizeConstraints, text: str | None) -> None:
    assert str(tree.simplify()) == (text or str(tree))


def test_simplification_is_linear_in_the_number_of_conjuncts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sizes = [variable(f"ts_{k}", 1, 10**6) for k in range(10)]
    tree = all_of(divides(ts, n) | divides(n, ts) for ts in sizes for n in range(2, 42))
    calls = calls_of(monkeypatch, SizeCondition, "implies")
    assert tree.simplify() == tree
    assert len(calls) < 5 * 800


# ---------------------------------------------------------------- texts

# fmt: off
PRETTY = [
    (ALIGNED,                        "ts_0 divides 6, or 6 divides ts_0"),
    (divides(6, a * b),              "6 divides ts_0 * ts_1"),
    (condition(a % 6, 1, 1),         "ts_0 mod 6 = 1"),
    (condition(a % 6, 0, 1),         "ts_0 mod 6 <= 1"),
    (condition(a % 6 * 2 + b, 1, 1), "ts_1 + (ts_0 mod 6) * 2 = 1"),
    (condition(a, 4),                "ts_0 >= 4"),
    (condition(a, 4, 48),            "ts_0 >= 4"),
    (condition(a, 4, 47),            "4 <= ts_0 <= 47"),
    (Y & ALIGNED,                    "ts_0 = 2, and (ts_0 divides 6 or 6 divides ts_0)"),
    (ONE & Y | divides(a, 6),        "(ts_1 = 1 and ts_0 = 2), or ts_0 divides 6"),
    (ALWAYS,                         "no condition"),
    (NEVER,                          "no tile sizes are legal"),
]
# fmt: on


@pytest.mark.parametrize(("tree", "text"), PRETTY)
def test_constraints_in_words(tree: SizeConstraints, text: str) -> None:
    assert tree.pretty() == text

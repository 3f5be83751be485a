"""Work on expressions with shared subexpressions is linear in their distinct atoms."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from hlo import HloError
from indexing import IndexingMap, Unknown, parse_map
from simplifier import Expr, Variable, maximum
from simplifier.atoms import Atom, inside_atoms
from simplifier.linear import as_expr
from simplifier.semiaffine import MAX_TERMS, product
from simplifier.shared import atoms_in_order, shared_value
from simplifier.text import MAX_TEXT, is_elided

D0, D1 = Variable("d0", 0, 999), Variable("d1", 0, 10)


def share_levels(depth: int) -> tuple[Expr, Expr]:
    """Return expressions with a few atoms for each level, and a text of about 2.7^depth atoms."""
    a, b = D0.as_expr(), D1.as_expr()
    for _ in range(depth):
        total = a * 7 + b
        a, b = total // 5, total % 11
    return a, b


DEEP = IndexingMap.of((D0, D1), share_levels(60))


def calls(action: Callable[[], object]) -> int:
    """Return the number of calls of Python functions that `action` makes."""
    count = 0

    def count_event(frame: object, event: str, arg: object) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(count_event)
    try:
        action()
    finally:
        sys.setprofile(None)
    return count


# fmt: off
QUERIES: list[tuple[str, Callable[[IndexingMap], object]]] = [
    ("variables",     lambda m: [result.variables() for result in m.results]),
    ("is_affine",     lambda m: [result.is_affine for result in m.results]),
    ("evaluate",      lambda m: m.evaluate((997, 7))),
    ("bounds",        lambda m: m.result_bounds),
    ("str",           str),
    ("pretty",        lambda m: m.pretty()),
    ("hash",          hash),
    ("simplify",      lambda m: m.simplify()),
    ("composition",   lambda m: m.then(IndexingMap.of(m.dims, [m.dims[0] // 3, m.dims[1]]))),
    ("numbering",     lambda m: IndexingMap.of((), m.results, ranges=m.dims).simplify()),
    ("bounded",       lambda m: m.with_constraints([parse_map(ROW).constraints[0]]).simplify()),
    ("count_domain",  lambda m: m.count_domain()),
]
# fmt: on
ROW = "(d0, d1) -> (0), domain: d0 in [0, 999], d1 in [0, 10], d0 * 3 + d1 in [5, 999]"


@pytest.mark.parametrize("query", [q for _, q in QUERIES], ids=[name for name, _ in QUERIES])
def test_queries_visit_each_atom_a_few_times(query: Callable[[IndexingMap], object]) -> None:
    atoms = len(atoms_in_order(DEEP.results))
    assert max(result.weight for result in DEEP.results) > 10**20
    assert calls(lambda: query(DEEP)) < 10_000 * atoms


def test_constraints_are_propagated_into_a_limited_number_of_floors() -> None:
    a, b = share_levels(40)
    m = IndexingMap.of((D0, D1), (a, b)).then(
        parse_map("(d0, d1) -> (d0), domain: d0 in [3, 50], d1 in [2, 7]")
    )
    assert calls(m.simplify) < 200_000


def test_shared_values_are_the_values_of_the_tree() -> None:
    a, b = share_levels(5)
    expr = a - b * 3 + maximum(a, b + 1, D1)
    for d0 in (0, 1, 499, 998):
        point = {D0: d0, D1: d0 % 11}
        assert shared_value(expr, point) == expr.tree_value(point) == expr.value(point)
    by_hand = 997, 7
    for _ in range(60):
        total = by_hand[0] * 7 + by_hand[1]
        by_hand = total // 5, total % 11
    assert DEEP.evaluate((997, 7)) == by_hand


def test_atoms_follow_their_operands_and_are_distinct() -> None:
    ordered = atoms_in_order(share_levels(6))
    place: dict[Atom, int] = {atom: k for k, atom in enumerate(ordered)}
    assert len(place) == len(ordered)
    for atom in ordered:
        for operand in atom.operands:
            assert all(place[part] < place[atom] for part in operand.parts)


def test_variables_are_listed_once() -> None:
    d0, d1 = D0.as_expr(), D1.as_expr()
    expr = d0 + (d0 * 3 + d1) // 7 + (d0 + d1) // 5
    assert sorted(v.name for v in expr.variables()) == ["d0", "d1"]
    assert inside_atoms(d0 + d1 // 5) == {D1}


def test_a_long_text_is_elided_and_does_not_parse() -> None:
    text = str(DEEP)
    assert is_elided(text)
    assert len(text) < 4 * MAX_TEXT
    with pytest.raises(HloError, match="elided"):
        parse_map(text)
    short = IndexingMap.of((D0, D1), share_levels(3))
    assert not is_elided(str(short))
    assert parse_map(str(short)) == short


CONVERSIONS: list[Callable[[IndexingMap], object]] = [
    IndexingMap.to_json,
    IndexingMap.to_mlir,
    lambda m: m.to_mlir("affine_map"),
    IndexingMap.to_latex,
    IndexingMap.to_sympy,
]


@pytest.mark.parametrize("convert", CONVERSIONS)
def test_conversions_refuse_texts_that_they_would_have_to_elide(
    convert: Callable[[IndexingMap], object],
) -> None:
    with pytest.raises(ValueError, match=f"more than {MAX_TEXT} characters"):
        convert(DEEP)


def test_isl_is_not_queried_about_too_many_divisions() -> None:
    with pytest.raises(ValueError, match="budget"):
        DEEP.to_isl()
    answer = DEEP.inverse()
    assert isinstance(answer, Unknown)
    assert "beyond the budget" in answer.reason


# ---------------------------------------------------------------- products, minima and maxima


def sums(count: int) -> list[Expr]:
    return [Variable(f"a{k}", 0, 9) + Variable("b", 0, 9) for k in range(count)]


def test_a_product_of_many_sums_has_a_limited_number_of_terms() -> None:
    factors = sums(40)
    total = as_expr(1)
    for factor in factors:
        total = product(total, factor)
        assert len(total.parts) <= MAX_TERMS
    point = {v: k % 7 + 1 for k, v in enumerate(total.variables())}
    by_hand = 1
    for factor in factors:
        by_hand *= factor.value(point)
    assert total.value(point) == by_hand
    assert total.bounds == (0, 18**40)


def test_like_products_that_are_not_distributed_still_merge() -> None:
    left = right = as_expr(1)
    for factor in sums(12):
        left = product(left, factor)
    for factor in sums(11):
        right = product(right, factor)
    right = product(sums(12)[11], right)
    assert left - right == as_expr(0)


def test_an_undistributed_product_prints_and_parses() -> None:
    total = as_expr(1)
    for factor in sums(9):
        total = product(total, factor)
    m = IndexingMap.of(total.variables(), [total])
    point = [3] * len(m.dims)
    assert is_elided(str(m)) or parse_map(str(m)).evaluate(point) == m.evaluate(point)


def test_many_operands_of_a_maximum_are_compared_by_their_bounds_only() -> None:
    operands = [Variable(f"d{k}", 0, 9) + k % 5 for k in range(200)]
    count = calls(lambda: maximum(*operands))
    assert count < 400 * len(operands)
    largest = maximum(*operands, 40)
    assert largest == as_expr(40)

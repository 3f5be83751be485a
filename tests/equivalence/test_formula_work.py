"""Work on the formulas of cumulative sums, in which few expressions index many terms."""

from __future__ import annotations

import pytest

from indexing.equivalence.values.algebra import FormulaAlgebra
from indexing.equivalence.values.terms import Formula, FormulaSubstitution, FormulaTable
from simplifier.atoms import Variable
from simplifier.linear import Expr
from tests.growth.work import calls_of

I = Variable("d0", 0, 99)  # noqa: E741  # the name of an index in a formula
J = Variable("d1", 0, 99)


def reads(table: FormulaTable, count: int) -> list[Formula]:
    """Return the elements of several arrays at one index."""
    arrays = [table.array("opaque", ("array", k), "f32", (200,)) for k in range(count)]
    return [table.read(array, [I * 2 + 1]) for array in arrays]


def test_an_index_of_many_terms_is_substituted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    table = FormulaTable()
    algebra = FormulaAlgebra(table)
    total, *others = reads(table, 8)
    for each in others:
        total = algebra.apply("add", (), "f32", [total, each])
    calls = calls_of(monkeypatch, FormulaSubstitution, "expr")
    changed = algebra.rewriting({I: J.as_expr()})(total)
    assert len(calls) == 1
    assert changed.free == {J}


def test_the_order_of_an_expression_is_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Choices are ordered by their expressions; the text of one takes as long as a new term."""
    table = FormulaTable()
    algebra = FormulaAlgebra(table)
    texts = calls_of(monkeypatch, Expr, "__str__")
    one, two, *_ = reads(table, 8)
    for bound in range(10, 90):
        inner = algebra.choose(J.as_expr(), [(bound, one), (99, two)])
        algebra.choose(I.as_expr(), [(bound, inner), (99, two)])
    assert len(texts) <= 2


def test_functions_without_tables_are_not_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    table = FormulaTable()
    algebra = FormulaAlgebra(table)
    one, two, *_ = reads(table, 2)
    calls = calls_of(monkeypatch, FormulaAlgebra, "_function")
    algebra.apply("add", (), "f32", [one, two])
    assert not calls

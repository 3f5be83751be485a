"""Terms that are nested deeper than a comparison by cases descends."""

from __future__ import annotations

import pytest

from indexing.equivalence.values.laws.algebra import FormulaAlgebra
from indexing.equivalence.values.matching.case_matching import MAX_NESTED_CASES, CaseMatching
from indexing.equivalence.values.terms.terms import Formula, FormulaTable
from simplifier.atoms import Variable


def towers(depth: int) -> tuple[FormulaAlgebra, Formula, Formula]:
    """Return two equal terms: functions of functions of an element, written as cases in one."""
    table = FormulaTable()
    algebra = FormulaAlgebra(table)
    p = table.array("symbol", ("parameter", 0, ()), "f32", (8,))
    i = Variable("d0", 0, 7).as_expr()
    before = algebra.choose(i, [(3, table.read(p, [i % 4])), (7, table.read(p, [i]))])
    after = table.read(p, [i])
    for _ in range(depth):
        before, after = [algebra.apply("exponential", (), "f32", [x]) for x in (before, after)]
    return algebra, before, after


@pytest.mark.parametrize("depth", [1, MAX_NESTED_CASES // 2, 4 * MAX_NESTED_CASES])
def test_a_comparison_ends_at_its_limit(depth: int) -> None:
    algebra, before, after = towers(depth)
    assert CaseMatching(algebra).equal(before, after) is (depth < MAX_NESTED_CASES)

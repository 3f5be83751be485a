"""Work on large formulas: few expressions index many terms, and terms share their subterms."""

from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np
import pytest

import hlo
from indexing.equivalence.values.engine import ValueComparison, compare_values
from indexing.equivalence.values.folds import fold_unions
from indexing.equivalence.values.folds.fold_ranges import Fold
from indexing.equivalence.values.folds.folds import fold_formula
from indexing.equivalence.values.folds.set_folds import SetFolds
from indexing.equivalence.values.formulas.elements import MAX_TERM_DEPTH
from indexing.equivalence.values.laws import reals
from indexing.equivalence.values.laws.algebra import FormulaAlgebra
from indexing.equivalence.values.laws.normalising import LawUses, RealAlgebra
from indexing.equivalence.values.matching.case_matching import CaseMatching, first_choice
from indexing.equivalence.values.matching.matching import Matching
from indexing.equivalence.values.terms.formula_substitution import FormulaSubstitution
from indexing.equivalence.values.terms.terms import Formula, FormulaTable
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


def test_terms_are_substituted_once_for_all_substitutions_of_the_same_values(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = FormulaTable()
    algebra = FormulaAlgebra(table)
    x, y = reads(table, 2)
    sine = algebra.apply("sine", (), "f32", [x])
    calls = calls_of(monkeypatch, FormulaAlgebra, "rebuild")
    one = algebra.rewriting({I: J.as_expr()})(sine)
    assert [str(term) for _, term, *_ in calls] == [str(x), str(sine)]
    total = algebra.apply("add", (), "f32", [sine, y])
    other = algebra.rewriting({I: J.as_expr()})(total)
    assert [term for _, term, *_ in calls[2:]] == [y, total]
    assert one in other.arguments
    algebra.rewriting({I: J + 1})(sine)
    assert len(calls) == 6


def test_each_substitution_of_the_same_values_records_the_laws_that_it_uses() -> None:
    table = FormulaTable()
    x, y, z, *_ = reads(table, 3)
    exact = FormulaAlgebra(table)
    inner = exact.apply("add", (), "f32", [x, y])
    total = exact.apply("add", (), "f32", [inner, z])
    sine = exact.apply("sine", (), "f32", [total])
    algebra = RealAlgebra(exact, exact_arithmetic=False)
    results = []
    for root in (inner, total, total, sine, sine):
        algebra.uses.clear()
        swap = algebra.rewriting({I: J.as_expr()})
        results.append((swap(root), list(algebra.uses)))
        recorded = len(algebra.uses)
        assert swap(root) is results[-1][0]
        assert len(algebra.uses) == recorded  # once for each substitution
    assert [uses for _, uses in results] == [[], *[[reals.SUM]] * 4]
    assert results[1] == results[2]
    assert results[3] == results[4]


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


def test_the_first_choice_is_that_of_the_first_operand_outside_of_arrays() -> None:
    table = FormulaTable()
    algebra = FormulaAlgebra(table)
    x, y, z, *_ = reads(table, 3)
    one, two = (algebra.choose(e, [(7, x), (99, y)]) for e in (I.as_expr(), J.as_expr()))
    power = algebra.apply("power", (), "f32", [z, two])
    nested = algebra.apply("power", (), "f32", [power, one])
    assert first_choice(nested) is first_choice(power) is first_choice(two) is two
    assert first_choice(algebra.apply("power", (), "f32", [z, x])) is None
    fold = Fold("maximum", (), 0, "f32", (table.constant(-np.inf, "f32"),), (two,), (J,))
    closed = fold_formula(algebra, fold)
    assert closed.array is not None
    assert first_choice(closed) is None


def test_no_cases_are_compared_beyond_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    table = FormulaTable()
    algebra = FormulaAlgebra(table)
    x, y, z, *_ = reads(table, 3)
    one, two = (algebra.choose(I.as_expr(), [(7, x), (99, each)]) for each in (y, z))
    calls = calls_of(monkeypatch, CaseMatching, "equal")
    for limit in (0, 1):
        assert not Matching(SetFolds(algebra), max_cases=limit).equal(one, two)
        assert bool(calls) == bool(limit)


def test_functions_without_tables_are_not_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    table = FormulaTable()
    algebra = FormulaAlgebra(table)
    one, two, *_ = reads(table, 2)
    calls = calls_of(monkeypatch, FormulaAlgebra, "_function")
    algebra.apply("add", (), "f32", [one, two])
    assert not calls


def double_terms(opcode: str, leaf: str, root: str, depth: int) -> hlo.Computation:
    """A sum or product of ``2 ** depth`` equal terms: each one is combined with itself."""
    sums = [f"x{k} = f32[8] {opcode}(x{k - 1}, x{k - 1})" for k in range(1, depth + 1)]
    return hlo.parse(f"""ENTRY e {{ p = f32[8] parameter(0)  x0 = f32[8] {leaf}(p)
      {"  ".join(sums)}  ROOT r = f32[8] {root}(x{depth}) }}""").entry


@pytest.mark.parametrize("root", ["abs", "negate"])
@pytest.mark.parametrize("opcode", ["add", "multiply", "divide", "maximum"])
def test_terms_that_many_sums_or_products_share_are_visited_once(
    monkeypatch: pytest.MonkeyPatch, opcode: str, root: str
) -> None:
    depth = 14
    visits = calls_of(monkeypatch, fold_unions, "_combiner")
    terms = calls_of(monkeypatch, FormulaTable, "make")
    factors = calls_of(monkeypatch, reals, "float_value")
    before, after = (double_terms(opcode, leaf, root, depth) for leaf in ("sine", "cosine"))
    (result,) = compare_values(before, after)
    assert not result
    assert len(factors) < 1000 * depth
    assert 0 < len(visits) < 20 * depth
    assert 0 < len(terms) < 400 * depth


@pytest.mark.parametrize("root", ["abs", "negate"])
def test_sums_as_deep_as_formulas_may_be_are_compared(root: str) -> None:
    text = """ENTRY e {{ p = f32[8] parameter(0)  q = f32[8] parameter(1)  x0 = f32[8] {leaf}(p)
      {sums}  ROOT r = f32[8] {root}(x{depth}) }}"""
    depth = MAX_TERM_DEPTH - 4
    sums = "  ".join([f"x{k} = f32[8] add(x{k - 1}, q)" for k in range(1, depth + 1)])
    before, after = (
        hlo.parse(text.format(leaf=leaf, sums=sums, root=root, depth=depth)).entry
        for leaf in ("sine", "cosine")
    )
    (result,) = compare_values(before, after)
    assert not result


def test_a_function_of_terms_is_simplified_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Substitutions rebuild the same terms again; the laws that they use are noted each time."""
    exact = FormulaAlgebra(FormulaTable())
    algebra = RealAlgebra(exact, exact_arithmetic=False)
    (x,) = reads(algebra.table, 1)
    half = algebra.table.constant(2.5, "f32")
    simplified = calls_of(monkeypatch, FormulaAlgebra, "_simplify")
    quotient = algebra.apply("divide", (), "f32", [x, half])
    count, names = len(simplified), list(algebra.uses)
    assert names
    algebra.uses.clear()
    assert algebra.apply("divide", (), "f32", [x, half]) is quotient
    assert len(simplified) == count
    assert algebra.uses == names
    assert algebra.apply("divide", (), "f32", [half, x]) is not quotient
    assert algebra.apply("divide", (), "f64", [x, half]) is not quotient


def test_the_folds_of_a_sum_are_made_once_for_all_limits_that_they_keep() -> None:
    table = FormulaTable()
    algebra = RealAlgebra(FormulaAlgebra(table), exact_arithmetic=False)
    zero = table.constant(0, "f32")
    total = zero
    for k in range(20):
        array = table.array("opaque", ("array", k), "f32", (200,))
        term = table.read(array, [I.as_expr()])
        fold = Fold("add", (), 0, "f32", (zero,), (term,), (I,), ())
        total = algebra.apply("add", (), "f32", [total, fold_formula(algebra, fold)])
    folds = SetFolds(algebra)
    made = folds.of("add", total, 0, 128)
    assert len(made) == 20
    assert folds.of("add", total, 0, 20) is made
    assert folds.of("add", total, 0, 19) == []
    assert len(folds.of("add", total, 0, 20)) == 20


SCATTER = """add {{ a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }}
ENTRY e {{ p = f32[7,3] parameter(0)  i = s32[{n},1] parameter(1)  u = f32[{n},3] parameter(2)
  s = f32[7,3] scatter(p, i, u), update_window_dims={{1}}, inserted_window_dims={{0}},
    scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply=add
  ROOT r = f32[7,3] {root}(s) }}"""


@pytest.mark.parametrize(("updates", "comparisons"), [(1, [False, True]), (2, [False])])
def test_programs_without_definitions_are_not_compared_by_definitions(
    monkeypatch: pytest.MonkeyPatch, updates: int, comparisons: list[bool]
) -> None:
    """A scatter of one update is defined by other ops; one of several updates is not."""
    before, after = (
        hlo.parse(SCATTER.format(n=updates, root=root)).entry for root in ("sine", "cosine")
    )
    calls = calls_of(monkeypatch, ValueComparison, "_results")
    (result,) = ValueComparison().results(before, after)
    assert not result
    assert [comparison.expands for comparison, *_ in calls] == comparisons


def test_uses_of_laws_are_those_of_subterms_that_one_term_has() -> None:
    random = Random(7)
    table, uses = FormulaTable(), LawUses()
    terms, noted = reads(table, 3), Counter[tuple[Formula, str]]()
    inside = {term: {term} for term in terms}
    for k in range(60):
        parts = random.sample(terms, 2)
        term = table.make("apply", ("f", k), "f32", parts)
        terms.append(term)
        inside[term] = {term}.union(*[inside[part] for part in parts])
        names = random.choices(["one", "two", "three"], k=random.randrange(6))
        if names:
            uses.add(term, names)
        noted.update([(term, name) for name in names])
    for _ in range(40):
        before, after = random.choices(terms, k=2)
        expected = Counter[str]()
        for (term, name), count in noted.items():
            if term in inside[before] ^ inside[after]:
                expected[name] += count
        assert uses.between(before, after) == expected

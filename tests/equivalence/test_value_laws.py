"""The laws of values, by execution on edge values: NaN, infinities, -0, subnormals, extremes."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from hlo.shapes.element_type import range_of
from hlo.shapes.shape import dtype
from indexing.equivalence.values.laws.algebra import FormulaAlgebra
from indexing.equivalence.values.laws.law import Application, Constructors, ValueLaw
from indexing.equivalence.values.laws.normalising import RealAlgebra
from indexing.equivalence.values.laws.table import EXACT_LAWS, TABLE
from indexing.equivalence.values.laws_page import page
from indexing.equivalence.values.terms.functions import Attributes
from indexing.equivalence.values.terms.terms import Formula, FormulaTable
from tests.equivalence.value_terms import (
    BINARY,
    TYPES,
    Array,
    RandomTerms,
    Twin,
    edges,
    parameter,
    same,
    value,
)

INDICES = {  # laws of indices, which few random terms have: `test_values` has programs
    "i and 2^k - 1 = i mod 2^k",
    "comparisons of indices are choices",
    "real(complex(x, y)) = x",
    "bitcast-convert(bitcast-convert(x)) = bitcast-convert(x)",
}


def count(law: ValueLaw, uses: Counter[str]) -> ValueLaw:
    def rewrite(algebra: Constructors, call: Application) -> Formula | None:
        result = law.rewrite(algebra, call)
        uses[law.name] += result is not None
        return result

    return ValueLaw(law.name, law.grade, law.opcodes, law.condition, law.proof, rewrite)


@pytest.mark.parametrize("seed", range(3))
def test_exact_laws_keep_every_bit(seed: int) -> None:
    """Random terms with laws have the values of the same terms without laws."""
    uses: Counter[str] = Counter()
    laws = {opcode: [count(law, uses) for law in each] for opcode, each in EXACT_LAWS.items()}
    table = FormulaTable()
    terms = RandomTerms(seed, FormulaAlgebra(table, laws=laws), FormulaAlgebra(table, laws={}))
    values = {}
    for kind in TYPES:
        with np.errstate(all="ignore"):
            known = np.array(edges(kind)).astype(dtype(kind))
        rows, columns = np.divmod(np.arange(225), 15)
        first, second = terms.parameters[kind]
        values[first] = known[rows % len(known)]
        values[second] = known[columns % len(known)]
    memo: dict[int, Array] = {}
    for turn in range(400):
        kind = terms.random.choice(TYPES)
        simplified, plain = terms.term(kind, terms.random.randint(1, 4))
        ours, theirs = value(simplified, values, memo), value(plain, values, memo)
        agree = same(np.asarray(ours), np.asarray(theirs))
        assert agree.all(), (seed, turn, str(plain), str(simplified), int(agree.argmin()))
    unused = {law.name for law in TABLE if law.grade == "exact"} - uses.keys() - INDICES
    assert len(unused) <= 4, unused


@pytest.mark.parametrize("kind", ["s8", "u8", "s32", "u32"])
def test_laws_of_indices_keep_every_bit(kind: str) -> None:
    """Functions of an index and of a constant have the values of the same terms without laws."""
    table, (low, high) = FormulaTable(), range_of(kind) or (0, 0)
    plain, algebra = FormulaAlgebra(table, laws={}), FormulaAlgebra(table)
    number = parameter(table, kind, 0)
    values = {number: np.array(edges(kind)).astype(dtype(kind))}
    memo: dict[int, Array] = {}
    for bounds in ((low, high), (0, high), (0, 7), (1, high // 2 + 1), (max(low, -5), 3)):
        index = table.index(table.variable(number, bounds).as_expr(), kind)
        calls: list[tuple[str, Attributes, str, list[Formula]]] = [
            ("convert", (), target, [index]) for target in TYPES
        ]
        for constant in edges(kind):
            with np.errstate(all="ignore"):
                other = table.constant(constant, kind)
            for pair in ([index, other], [other, index]):
                calls += [(opcode, (), kind, pair) for opcode in BINARY["integer"]]
                calls += [
                    ("compare", (("direction", direction), ("type", "")), "pred", pair)
                    for direction in ("LT", "LE", "EQ", "NE", "GE", "GT")
                ]
        for call in calls:
            simplified, unchanged = algebra.apply(*call), plain.apply(*call)
            ours, theirs = value(simplified, values, memo), value(unchanged, values, memo)
            assert same(np.asarray(ours), np.asarray(theirs)).all(), (
                str(unchanged),
                str(simplified),
            )


def test_inexact_laws_hold_in_the_reals() -> None:
    """On positive numbers of moderate size, both sides agree up to rounding."""
    seed, table = 5, FormulaTable()
    plain = FormulaAlgebra(table, laws={})
    real = RealAlgebra(FormulaAlgebra(table), exact_arithmetic=False)
    terms = RandomTerms(seed, real, plain)
    numbers = np.random.default_rng(seed).uniform(0.5, 2, (2, 16)).astype(np.float32)
    values = dict(zip(terms.parameters["f32"], numbers, strict=True))
    memo: dict[int, Array] = {}
    opcodes = ["add", "multiply", "divide", "subtract"]
    functions = ["exponential", "log", "sqrt", "rsqrt", "negate", "abs"]

    def term(depth: int) -> Twin:
        if not depth:
            known = [table.constant(c, "f32") for c in (0.0, 1.0, 2.0, 3.0)]
            leaf = terms.random.choice([*terms.parameters["f32"] * 3, *known])
            return leaf, leaf
        if terms.random.random() < 0.1:
            exponent = table.constant(terms.random.choice([0, 0.5, -0.5, 1, -1, 2, 3]), "f32")
            base = terms.both("abs", (), "f32", term(depth - 1))
            return terms.both("power", (), "f32", base, (exponent, exponent))
        if terms.random.random() < 0.4:
            return terms.both(terms.random.choice(functions), (), "f32", term(depth - 1))
        return terms.both(terms.random.choice(opcodes), (), "f32", term(depth - 1),
                          term(depth - 1))  # fmt: skip

    compared = 0
    for _ in range(1500):
        simplified, other = term(terms.random.randint(1, 3))
        with np.errstate(all="ignore"):
            ours, theirs = value(simplified, values, memo), value(other, values, memo)
        defined = np.isfinite(theirs) & (abs(theirs) < 1e3) & (abs(theirs) > 1e-2)
        compared += int(defined.any())
        message = str(other), str(simplified)
        np.testing.assert_allclose(ours[defined], theirs[defined], rtol=1e-3, err_msg=str(message))
    assert compared > 500
    assert {"real"} <= {law.grade for law in TABLE if law.name in real.uses}


def test_a_product_of_three_factors_is_rebuilt() -> None:
    """Laws of the reals merge products; a choice inside is resolved by applying them again."""
    algebra = FormulaAlgebra(FormulaTable())
    x, y = RandomTerms(0, algebra, algebra).parameters["f32"]
    magnitude = algebra.apply("abs", (), "f32", [x])
    product = algebra.apply("multiply", (), "f32", [magnitude, magnitude, y])
    assert Counter(product.arguments) == {magnitude: 2, y: 1}
    square = algebra.apply("multiply", (), "f32", [magnitude, magnitude])
    assert square.arguments == (x, x)


def test_the_page_of_laws_is_current() -> None:
    path = Path(__file__).parents[2] / "docs" / "value_laws.md"
    assert path.read_text() == page()


def test_every_law_has_a_condition_and_a_proof() -> None:
    names = [law.name for law in TABLE]
    assert len(set(names)) == len(names)
    assert all(law.condition and law.proof and law.opcodes for law in TABLE)

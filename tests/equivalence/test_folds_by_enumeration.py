"""Folds in canonical form, read at all or some of their indices, against enumeration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from random import Random
from typing import Final

from indexing.equivalence.values.folds.fold_ranges import Fold
from indexing.equivalence.values.folds.folds import fold_formula, open_fold
from indexing.equivalence.values.folds.narrowed_reads import ReadingAlgebra
from indexing.equivalence.values.terms.decision_diagrams import piece_at
from indexing.equivalence.values.terms.terms import Formula, FormulaTable
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.linear import Expr, as_expr

TURNS: Final = 400
SIZE: Final = 60
NUMBERS: Final = [7 * k * k % 1009 for k in range(3 * SIZE)]
"""The elements of the array that folds read."""

Point = Mapping[Variable, int]


def points_of(variables: Sequence[Variable]) -> Iterator[dict[Variable, int]]:
    for point in product(*[range(v.lower, v.upper + 1) for v in variables]):
        yield dict(zip(variables, point, strict=True))


def total_of(fold: Fold, outer: Point) -> int:
    """The fold of a point, by its definition."""
    (value,) = fold.values
    return sum(
        value_of(value, {**outer, **point})
        for point in points_of(fold.ranges)
        if all(c.lower <= c.expr.value({**outer, **point}) <= c.upper for c in fold.guards)
    )


def value_of(term: Formula, at: Point) -> int:
    """The value of a formula at a point."""
    index = [e.value(at) for e in term.index]
    if term.kind == "constant":
        return int(term.value)
    if term.kind == "choose":
        return value_of(piece_at(term, index[0]), at)
    if term.kind == "apply":
        assert term.head[0] == "multiply", term
        left, right = [value_of(t, at) for t in term.arguments]
        return left * right
    assert term.array is not None
    if term.array.kind == "symbol":
        return NUMBERS[index[0]]
    assert term.array.kind == "fold", term
    dims = [Variable(f"d{k}", 0, size - 1) for k, size in enumerate(term.array.dims)]
    fold = open_fold(term.array, term.array.arguments, term.array.index)
    assert all(0 <= k <= v.upper for k, v in zip(index, dims, strict=True)), term
    return total_of(fold, dict(zip(dims, index, strict=True)))


def random_sum(chance: Random, variables: Sequence[Variable]) -> Expr:
    chosen = chance.sample(variables, chance.randint(1, min(3, len(variables))))
    total = as_expr(chance.randint(-2, 2))
    for v in chosen:
        total = total + v.as_expr() * chance.choice([-2, -1, -1, 1, 1, 2])
    return total


def random_fold(chance: Random, algebra: ReadingAlgebra, outer: Sequence[Variable]) -> Fold:
    """A sum of products of elements and choices, with conditions and residues."""
    ranges = tuple([Variable(f"s{k}", 0, chance.randint(1, 5)) for k in range(2)])
    variables = [*outer, *ranges]
    array = algebra.table.array("symbol", ("numbers", 0, ()), "f32", (3 * SIZE,))
    zero = algebra.table.constant(0.0, "f32")
    factors = []
    for _ in range(chance.randint(1, 2)):
        factor = algebra.read(array, [random_sum(chance, variables) + SIZE])
        if chance.random() < 0.6:
            place = random_sum(chance, variables)
            low, high = place.bounds
            pieces = [factor, zero][:: chance.choice([-1, 1])]
            last = chance.randint(low, high)
            factor = algebra.choose(place, [(last, pieces[0]), (high, pieces[1])])
        factors.append(factor)
    value = factors[0] if len(factors) == 1 else algebra.apply("multiply", (), "f32", factors)
    guards = []
    for _ in range(chance.randint(0, 2)):
        expr = random_sum(chance, variables)
        if chance.random() < 0.5:
            expr = expr % chance.choice([2, 3])
        lower = chance.randint(*expr.bounds)
        guards.append(Constraint(expr, lower, chance.choice([lower, lower + 2])))
    return Fold("add", (), 0, "f32", (zero,), (value,), ranges, tuple(guards))


def test_canonical_folds_have_the_values_of_their_definition() -> None:
    chance, reads = Random(5), 0
    for turn in range(TURNS):
        algebra = ReadingAlgebra(FormulaTable())
        outer = [Variable(f"d{k}", 0, chance.randint(1, 4)) for k in range(2)]
        fold = random_fold(chance, algebra, outer)
        formula = fold_formula(algebra, fold)
        for point in points_of(outer):
            assert value_of(formula, point) == total_of(fold, point), (turn, fold)
        low = chance.randint(0, outer[0].upper)
        part = Variable("e", 0, chance.randint(0, outer[0].upper - low) or 1)
        if low + part.upper > outer[0].upper:
            continue
        narrow = algebra.rewriting({outer[0]: part.as_expr() + low})(formula)
        is_fold = formula.array is not None and formula.array.kind == "fold"
        reads += is_fold and narrow.array is not formula.array
        for point in points_of([part, outer[1]]):
            there = {outer[0]: point[part] + low, outer[1]: point[outer[1]]}
            assert value_of(narrow, point) == total_of(fold, there), (turn, fold)
    assert reads > TURNS // 20, reads

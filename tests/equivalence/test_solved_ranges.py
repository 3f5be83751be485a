"""Range variables of folds that a guard determines, against enumeration."""

import random

from indexing.equivalence.values.folds.fold_ranges import solved_residue, solved_value
from indexing.equivalence.values.terms.terms import FormulaTable
from simplifier.atoms import Variable
from simplifier.constraints import Constraint

TURNS = 6000


def test_solutions_are_those_of_enumeration() -> None:
    table, chance = FormulaTable(), random.Random(1)
    counts = {solved_value: 0, solved_residue: 0}
    for _ in range(TURNS):
        low = chance.randint(-5, 5)
        v = Variable("s0", low, low + chance.randint(1, 9))
        d = Variable("d0", chance.randint(-9, 0), chance.randint(1, 30))
        factor = chance.choice([-4, -3, -2, -1, 1, 2, 3, 4, 6])
        expr = v.as_expr() * factor + d.as_expr() * chance.randint(-3, 3) + chance.randint(-9, 9)
        modulus = chance.choice([0, 2, 3, 4, 6, 8, 12, 16, 24])
        expr = expr % modulus if modulus else expr
        lower = chance.randint(-2, modulus)
        guard = Constraint(expr, lower, lower + chance.randint(0, 4))
        for solve in counts:
            value = solve(table, guard, v)
            if value is None:
                continue
            counts[solve] += 1
            for at in range(d.lower, d.upper + 1):
                values = range(v.lower, v.upper + 1)
                allowed = [k for k in values if _holds(guard, {v: k, d: at})]
                solution = value.tree_value({d: at})
                is_solution = solution in values and _holds(guard, {v: solution, d: at})
                assert allowed == [solution] * is_solution, (guard, at)
    assert min(counts.values()) > 100, counts


def _holds(guard: Constraint, point: dict[Variable, int]) -> bool:
    return bool(guard.lower <= guard.expr.tree_value(point) <= guard.upper)

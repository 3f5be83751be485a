"""Conditions on tile sizes in words: ``ts_0 divides 6`` instead of ``6 mod ts_0 in [0, 0]``."""

from __future__ import annotations

from collections.abc import Mapping

from indexing.tiling.sizes.size_constraints import (
    ALWAYS,
    NEVER,
    Conjunction,
    SizeCondition,
    SizeConstraints,
)
from simplifier import Expr, Variable, as_expr
from simplifier.mods import split
from simplifier.text import symbolic_mods


def constraints_text(tree: SizeConstraints, level: int = 0) -> str:
    """Return a constraint in words; `level` is the number of conjunctions and disjunctions above.

    >>> from simplifier import variable
    >>> ts_0, ts_1 = variable("ts_0", 1, 8), variable("ts_1", 1, 8)
    >>> from indexing.tiling.sizes.size_constraints import condition
    >>> constraints_text(condition(ts_0 % 2, 0, 0) & (condition(ts_1, 3) | condition(ts_0, 4, 4)))
    '2 divides ts_0, and (ts_1 >= 3 or ts_0 = 4)'
    """
    if isinstance(tree, SizeCondition):
        return condition_text(tree)
    if tree in (ALWAYS, NEVER):
        return "no condition" if tree == ALWAYS else "no tile sizes are legal"
    word = "and" if isinstance(tree, Conjunction) else "or"
    texts = [constraints_text(part, level + 1) for part in tree.parts]
    return f"({f' {word} '.join(texts)})" if level else f", {word} ".join(texts)


def condition_text(condition: SizeCondition) -> str:
    """Return a condition in words.

    >>> from simplifier import variable
    >>> from indexing.tiling.sizes.size_constraints import condition
    >>> ts_0 = variable("ts_0", 1, 8)
    >>> [condition_text(condition(ts_0, *ends)) for ends in [(2, 2), (0, 5), (3, 8), (3, 5)]]
    ['ts_0 = 2', 'ts_0 <= 5', 'ts_0 >= 3', '3 <= ts_0 <= 5']
    """
    operands = divisibility(condition)
    if operands is not None:
        dividend, divisor = operands
        return f"{divisor} divides {dividend}"
    expr, (lower, upper), (low, high) = condition.expr, condition.ends, condition.expr.bounds
    if lower == upper:
        return f"{expr} = {lower}"
    if lower <= low:
        return f"{expr} <= {upper}"
    return f"{expr} >= {lower}" if upper >= high else f"{lower} <= {expr} <= {upper}"


def failure_text(condition: SizeCondition, point: Mapping[Variable, int]) -> str:
    """Return the failure of a condition at `point` in words, with the values.

    >>> from simplifier import Variable
    >>> from indexing.tiling.sizes.size_constraints import condition
    >>> ts_0, ts_1 = Variable("ts_0", 1, 8), Variable("ts_1", 1, 8)
    >>> failure_text(condition(ts_0 * ts_1, 5, 5), {ts_0: 2, ts_1: 3})
    'ts_0 * ts_1 = 6, where ts_0 = 2 and ts_1 = 3: expected ts_0 * ts_1 = 5'
    >>> failure_text(condition(ts_0 % 6, 0, 0), {ts_0: 5})
    '6 does not divide ts_0 = 5: ts_0 mod 6 = 5'
    """
    expr = condition.expr
    value = f"{expr} = {expr.value(point)}"
    operands = divisibility(condition)
    if operands is not None:
        dividend, divisor = (_with_value(operand, point) for operand in operands)
        return f"{divisor} does not divide {dividend}: {value}"
    if expr.as_variable is None:
        value += f", where {' and '.join(f'{v.name} = {point[v]}' for v in condition.variables)}"
    return f"{value}: expected {condition_text(condition)}"


def _with_value(expr: Expr, point: Mapping[Variable, int]) -> str:
    return str(expr) if expr.is_constant else f"{expr} = {expr.value(point)}"


def divisibility(condition: SizeCondition) -> tuple[Expr, Expr] | None:
    """Return ``(a, b)`` for a condition ``a mod b in [0, 0]``, else `None`.

    >>> from simplifier import as_expr, variable
    >>> from indexing.tiling.sizes.size_constraints import condition
    >>> ts_0 = variable("ts_0", 1, 48)
    >>> divisibility(condition(as_expr(6) % ts_0, 0, 0)), divisibility(condition(ts_0 % 6, 0, 0))
    ((Expr('6'), Expr('ts_0')), (Expr('ts_0'), Expr('6')))
    """
    if (condition.lower, condition.upper) != (0, 0):
        return None
    symbolic, rest = symbolic_mods(condition.expr)
    mods, rest = split(rest)
    symbolic += [(mod.coefficient, mod.dividend, as_expr(mod.modulus)) for mod in mods]
    if len(symbolic) != 1 or rest != as_expr(0):
        return None
    coefficient, dividend, divisor = symbolic[0]
    return (dividend, divisor) if coefficient == 1 else None

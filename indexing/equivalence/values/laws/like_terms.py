"""Sums of floats whose terms differ by a constant factor, and constants that laws compute."""

from __future__ import annotations

import math
from typing import Final

from indexing.equivalence.values.laws.exact import float_value, is_call
from indexing.equivalence.values.laws.law import Application, Constructors
from indexing.equivalence.values.terms.functions import evaluate, function_of
from indexing.equivalence.values.terms.terms import Formula

LIKE_TERMS: Final = "a * x + b * x = (a + b) * x"


def add_like_terms(algebra: Constructors, kind: str, terms: list[Formula]) -> list[Formula]:
    """Return terms in which those are one that differ by a constant factor, unless it is 0."""
    factors: dict[Formula, list[float]] = {}
    for term in terms:
        factor, rest = _constant_factor(algebra, kind, term)
        factors.setdefault(rest, []).append(factor)
    if len(factors) == len(terms):
        return terms
    added: list[Formula] = []
    for rest, each in factors.items():
        total = 0.0
        for factor in each:
            total = rounded_result(algebra, "add", kind, total, factor)
        single = [total] if len(each) > 1 and total and math.isfinite(total) else each
        if len(single) < len(each):
            algebra.note([LIKE_TERMS])
        for factor in single:
            constant = computed_constant(algebra, factor, kind, is_computed=len(single) < len(each))
            added.append(algebra.apply("multiply", (), kind, [constant, rest]))
    return added


def _constant_factor(algebra: Constructors, kind: str, term: Formula) -> tuple[float, Formula]:
    """Return the constant factor of a term, and the product of the others."""
    if is_call(term, "negate"):
        factor, rest = _constant_factor(algebra, kind, term.arguments[0])
        return -factor, rest
    constants = [t for t in term.arguments if float_value(t) is not None]
    if not is_call(term, "multiply") or len(constants) != 1:
        return 1.0, term
    others = [t for t in term.arguments if t is not constants[0]]
    rest = others[0]
    if len(others) > 1:
        rest = algebra.raw(Application("multiply", (), kind, tuple(others)))
    return float(constants[0].value), rest


def computed_constant(
    algebra: Constructors, value: float, kind: str, *, is_computed: bool
) -> Formula:
    """Return a constant; if laws computed it, its rounding may differ from the program's."""
    term = algebra.table.constant(value, kind)
    if is_computed:
        algebra.computed.add(term)
    return term


def rounded_result(algebra: Constructors, opcode: str, kind: str, x: float, y: float) -> float:
    """Return a sum or product of constants in the arithmetic of the type."""
    function = function_of(opcode, (), kind)
    assert function is not None
    values = [algebra.table.constant(value, kind).value for value in (x, y)]
    return float(evaluate(function, values, kind))

"""Constants that are factors of each piece of a choice."""

from __future__ import annotations

import math
from typing import Final

from indexing.equivalence.values.laws.algebra import FormulaAlgebra
from indexing.equivalence.values.laws.exact import float_value, is_call
from indexing.equivalence.values.terms.terms import Formula

MAX_PIECES: Final = 64
"""Limit on the pieces of nested choices, each counted once."""


def split_common_factor(algebra: FormulaAlgebra, choice: Formula) -> tuple[Formula, Formula] | None:
    """Return ``c`` and ``x`` for a choice ``c * x`` of floats; None if it has no common factor.

    A choice is one by an index or by a predicate, of products with one constant, and of zeros.

    >>> from indexing.equivalence.values.terms.terms import FormulaTable
    >>> from simplifier.atoms import Variable
    >>> algebra = FormulaAlgebra(FormulaTable())
    >>> x = algebra.table.read(algebra.table.array("symbol", ("parameter", 0, ()), "f32", ()), ())
    >>> zero, two = (algebra.table.constant(value, "f32") for value in (0, 2))
    >>> twice = algebra.apply("multiply", (), "f32", [two, x])
    >>> choice = algebra.choose(Variable("d0", 0, 9).as_expr(), [(3, twice), (9, zero)])
    >>> print(*split_common_factor(algebra, choice))
    f32 2.0 choose(d0 <= (3, 9): parameter 0[], f32 0.0)
    """
    constants: set[Formula] = set()
    visited: set[Formula] = set()
    pending = [choice]
    while pending:
        term = pending.pop()
        if term in visited:
            continue
        visited.add(term)
        if len(visited) > MAX_PIECES:
            return None
        if _pieces(term):
            pending += _pieces(term)
        elif float_value(term) != 0:
            constants.add(_constant_factor(term) or term)
    if len(constants) != 1:
        return None
    (constant,) = constants
    if constant.kind != "constant" or constant in visited:
        return None
    return constant, _without_factor(algebra, choice, {})


def _pieces(term: Formula) -> tuple[Formula, ...]:
    """Return the pieces of a choice; () for other terms."""
    if is_call(term, "select"):
        return term.arguments[1:]
    return term.arguments if term.kind == "choose" else ()


def _constant_factor(term: Formula) -> Formula | None:
    """Return the constant of a product of one finite constant and other factors."""
    if not is_call(term, "multiply"):
        return None
    constants = [t for t in term.arguments if t.kind == "constant"]
    return constants[0] if len(constants) == 1 and math.isfinite(constants[0].value) else None


def _without_factor(
    algebra: FormulaAlgebra, term: Formula, known: dict[Formula, Formula]
) -> Formula:
    """Return a choice with products without their constants."""
    if term in known:
        return known[term]
    pieces = _pieces(term)
    if pieces:
        kept = term.arguments[: len(term.arguments) - len(pieces)]
        parts = (*kept, *[_without_factor(algebra, piece, known) for piece in pieces])
        known[term] = algebra.rebuild(term, parts, term.index)
    elif float_value(term) == 0:
        known[term] = term
    else:
        others = [t for t in term.arguments if t.kind != "constant"]
        product = others[0]
        if len(others) > 1:
            product = algebra.apply("multiply", (), term.type, others)
        known[term] = product
    return known[term]

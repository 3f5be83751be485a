"""Choices among terms by the value of an index expression: decision diagrams in a fixed order.

>>> from simplifier.atoms import Variable
>>> table = FormulaTable()
>>> i = Variable("d0", 0, 9).as_expr()
>>> one, two = table.constant(1, "s32"), table.constant(2, "s32")
>>> print(choose_piece(table, i * -1 + 3, [(-1, one), (99, two)]))
choose(d0 <= (3, 9): s32 2, s32 1)
>>> choose_piece(table, i, [(4, one), (9, one)]) is one
True
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

from indexing.equivalence.values.terms.terms import Formula, FormulaTable
from simplifier.linear import Expr

MAX_PIECES: Final = 256
"""Limit on the pieces of a choice that are merged with those of inner choices, or reordered."""

Piece: TypeAlias = tuple[int, Formula]


def choose_piece(table: FormulaTable, expr: Expr, pieces: Sequence[Piece]) -> Formula:
    """Return the term of the first piece whose upper bound `expr` does not exceed.

    The upper bound of the last piece is ignored.
    """
    expr, pieces = _normal(expr, pieces)
    merged = _merge_pieces(expr, pieces)
    if len(merged) == 1:
        return merged[0][1]
    terms = [term for _, term in merged]
    inner = dict.fromkeys([t.index[0] for t in terms if t.kind == "choose"])
    first = min([expr, *inner], key=table.expr_order)
    if first != expr and len(merged) < MAX_PIECES:
        return _reorder_choice(table, expr, merged, first)
    bounds = tuple([bound for bound, _ in merged])
    return table.make("choose", bounds, terms[0].type, terms, (expr,))


def piece_at(choice: Formula, value: int) -> Formula:
    """Return the term of a choice where its expression has a value."""
    for bound, term in zip(choice.head, choice.arguments, strict=True):
        if value <= bound:
            return term
    return choice.arguments[-1]


def _normal(expr: Expr, pieces: Sequence[Piece]) -> tuple[Expr, list[Piece]]:
    """Return a choice by an expression without constant and sign."""
    constant = expr.constant
    expr = expr - constant
    shifted = [(bound - constant, term) for bound, term in pieces]
    if not expr.parts or any(factor > 0 for factor in expr.parts.values()):
        return expr, shifted
    lowest = expr.bounds[0]
    starts = [lowest, *[bound + 1 for bound, _ in shifted[:-1]]]
    flipped = [(-start, term) for start, (_, term) in zip(starts, shifted, strict=True)]
    return -expr, flipped[::-1]


def _merge_pieces(expr: Expr, pieces: Sequence[Piece]) -> list[Piece]:
    """Return the pieces within the bounds of the expression, equal neighbours merged."""
    start, upper = expr.bounds
    flat: list[Piece] = []
    last = len(pieces) - 1
    for k, (bound, term) in enumerate(pieces):
        end = upper if k == last else min(bound, upper)
        if end < start:
            continue
        if term.kind == "choose" and term.index == (expr,) and len(flat) < MAX_PIECES:
            flat += _restrict_choice(term, start, end)
        else:
            flat.append((end, term))
        start = end + 1
    merged: list[Piece] = []
    for bound, term in flat:
        if merged and merged[-1][1] is term:
            merged.pop()
        merged.append((bound, term))
    return merged


def _restrict_choice(term: Formula, start: int, end: int) -> list[Piece]:
    """Return the pieces of a choice between two values of its expression, both included."""
    pieces: list[Piece] = []
    for bound, inner in zip(term.head, term.arguments, strict=True):
        if bound >= start and (not pieces or pieces[-1][0] < end):
            pieces.append((min(bound, end), inner))
    if not pieces or pieces[-1][0] < end:
        pieces.append((end, term.arguments[-1]))
    return pieces


def _reorder_choice(
    table: FormulaTable, expr: Expr, pieces: Sequence[Piece], first: Expr
) -> Formula:
    """Return a choice by `first`, an expression of inner choices, of choices by `expr`."""
    inner = [t for _, t in pieces if t.kind == "choose" and t.index[0] == first]
    bounds = sorted({bound for term in inner for bound in term.head})
    outer = []
    for bound in bounds:
        parts = [(end, piece_at(t, bound) if any(t is each for each in inner) else t)
                 for end, t in pieces]  # fmt: skip
        outer.append((bound, choose_piece(table, expr, parts)))
    return choose_piece(table, first, outer)

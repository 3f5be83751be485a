"""Functions of choices as choices of functions, where a piece is neutral for a fold.

``choose(s0 <= (6, 7): x, 0) * choose(s0 <= (6, 7): y, 0)`` is ``choose(s0 <= (6, 7): x * y, 0)``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from indexing.equivalence.values.folds.neutral_elements import is_neutral
from indexing.equivalence.values.laws.algebra import FormulaAlgebra
from indexing.equivalence.values.terms.decision_diagrams import piece_at
from indexing.equivalence.values.terms.terms import Formula
from simplifier.linear import Expr

MAX_SPLIT: Final = 64
"""Limit on the functions in a value that is split."""


def split_value(algebra: FormulaAlgebra, combiner: str, value: Formula) -> Formula:
    """Return the value as a choice whose first or last piece is neutral; itself if it is none."""
    choices = list(_choices(value)) if value.kind == "apply" else []
    for expr in dict.fromkeys([t.index[0] for t in choices]):
        bounds = _piece_bounds([t for t in choices if t.index[0] == expr])
        if not bounds:
            continue
        used = len(algebra.uses)
        ends = [_at_piece(algebra, value, expr, bound) for bound in bounds[:: len(bounds) - 1]]
        if any(is_neutral(combiner, part) for part in ends):
            inner = [_at_piece(algebra, value, expr, bound) for bound in bounds[1:-1]]
            return algebra.choose(expr, list(zip(bounds, [ends[0], *inner, ends[1]], strict=True)))
        del algebra.uses[used:]
    return value


def _piece_bounds(choices: Sequence[Formula]) -> list[int]:
    """Return the last value of each piece, if the first or the last one of a choice is constant."""
    bounds = sorted({bound for t in choices for bound in t.head})
    ends = [piece_at(t, bound) for t in choices for bound in (bounds[0], bounds[-1])]
    return bounds if any(t.kind == "constant" for t in ends) else []


def _choices(value: Formula) -> Iterator[Formula]:
    """Yield the choices to which a value applies functions; none of one with many functions."""
    choices: dict[int, Formula] = {}
    seen: set[int] = set()
    pending = [value]
    while pending:
        term = pending.pop()
        if term.number in seen:
            continue
        seen.add(term.number)
        if term.kind == "choose":
            choices[term.number] = term
        elif term.kind == "apply":
            pending += term.arguments
        if len(seen) > MAX_SPLIT:
            return
    yield from choices.values()


def _at_piece(algebra: FormulaAlgebra, value: Formula, expr: Expr, bound: int) -> Formula:
    """Return a value where an expression of choices is in the piece that a bound ends."""
    pieces: dict[int, Formula] = {}

    def piece_of(term: Formula) -> Formula:
        if term.number not in pieces:
            pieces[term.number] = rebuild(term)
        return pieces[term.number]

    def rebuild(term: Formula) -> Formula:
        if term.kind == "choose" and term.index[0] == expr:
            return piece_at(term, bound)
        if term.kind != "apply":
            return term
        arguments = tuple(map(piece_of, term.arguments))
        is_same = all(a is b for a, b in zip(arguments, term.arguments, strict=True))
        return term if is_same else algebra.rebuild(term, arguments, ())

    return piece_of(value)

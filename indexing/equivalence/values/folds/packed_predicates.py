"""Predicates that are packed into the bits of an integer, and read from it.

XLA:TPU keeps the predicates along a dimension in one number, ``or over s of p(s) << s``.  Its bit e
is ``p(e)``, if e is one of the s and no bit is cut off.
"""

from __future__ import annotations

from indexing.equivalence.values.folds.fold_ranges import Fold, depends_on
from indexing.equivalence.values.folds.folds import instantiate_fold
from indexing.equivalence.values.laws.algebra import FormulaAlgebra
from indexing.equivalence.values.laws.exact import is_call
from indexing.equivalence.values.laws.integers import value_of
from indexing.equivalence.values.terms.functions import bits_of, is_integral
from indexing.equivalence.values.terms.terms import Formula
from simplifier.atoms import Variable
from simplifier.interval import contains
from simplifier.linear import Expr


def packed_predicate(algebra: FormulaAlgebra, number: Formula) -> Formula | None:
    """Return the predicate ``number != 0`` of one bit of packed predicates; None for others."""
    if not is_call(number, "and") or len(number.arguments) != 2:
        return None
    for bits, mask in (number.arguments, number.arguments[::-1]):
        place = _place_of_bit(mask)
        packed, width = _operand_before_conversions(bits)
        if place is None or packed.array is None or packed.array.kind != "fold":
            continue
        fold = instantiate_fold(algebra, packed, "s")
        value = _predicate(algebra, fold, place, width)
        if value is not None:
            return value
    return None


def _place_of_bit(mask: Formula) -> Expr | None:
    """Return e of ``1 << e``; None for other terms."""
    if not is_call(mask, "shift-left") or value_of(mask.arguments[0]) != 1:
        return None
    place = mask.arguments[1]
    return place.index[0] if place.kind == "index" else None


def _operand_before_conversions(term: Formula) -> tuple[Formula, int]:
    """Return the integer that conversions pass on, and the least number of bits."""
    width = bits_of(term.type)
    while is_call(term, "convert") and is_integral(term.arguments[0].type):
        (term,) = term.arguments
        width = min(width, bits_of(term.type))
    return term, width


def _predicate(algebra: FormulaAlgebra, fold: Fold, place: Expr, width: int) -> Formula | None:
    """Return the predicate that a fold has packed into the bit with number `place`."""
    if fold.combiner not in ("or", "add", "xor") or len(fold.ranges) != 1 or fold.guards:
        return None
    (value,), (init,), (v,) = fold.values, fold.inits, fold.ranges
    if value_of(init) != 0:
        return None
    moved, own = _operand_before_conversions(value)
    if not is_call(moved, "shift-left"):
        return None
    bit, shift = moved.arguments
    if shift.kind != "index" or shift.index != (v.as_expr(),) or v.lower < 0:
        return None
    is_kept = v.upper < min(width, own) and contains(v.bounds, place.bounds)
    if not is_kept or not _is_bit(bit) or depends_on(algebra.table, place, v):
        return None
    swap: dict[Variable, Expr] = {v: place}
    return algebra.rewriting(swap)(bit.arguments[0])


def _is_bit(term: Formula) -> bool:
    """Return True for ``select(p, 1, 0)``."""
    return is_call(term, "select") and [value_of(t) for t in term.arguments[1:]] == [1, 0]

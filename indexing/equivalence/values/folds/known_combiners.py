"""Folds whose combiner is a known one: written otherwise, rounded, or beside other results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from indexing.equivalence.values.folds.fold_ranges import Fold
from indexing.equivalence.values.laws.algebra import FormulaAlgebra
from indexing.equivalence.values.laws.exact import is_call
from indexing.equivalence.values.laws.roundings import (
    float_before_rounding,
    is_of_type,
    narrow_type,
)
from indexing.equivalence.values.laws.symbols import Renaming, symbols_in
from indexing.equivalence.values.terms.terms import Formula
from indexing.ops.combiners import COMBINERS

EXTREMA: Final = ("maximum", "minimum")


def known_combiner(algebra: FormulaAlgebra, fold: Fold) -> Fold:
    """Return a fold of one result with the combiner that its function applies, if it is known.

    A result that depends on no other result is a fold of its own.
    """
    if fold.combiner:
        return fold
    fold = _alone(algebra, fold)
    if len(fold.functions) != 1:
        return fold
    opcode = _combines(fold.functions[0])
    types = {t.type for t in (*fold.functions, *fold.values, *fold.inits)}
    return (
        fold if opcode is None or len(types) > 1 else replace(fold, combiner=opcode, functions=())
    )


def _alone(algebra: FormulaAlgebra, fold: Fold) -> Fold:
    """Return the fold of the result alone, if its function reads no other result."""
    count = len(fold.values)
    if count < 2 or len(fold.functions) != count:
        return fold
    function, leaf = fold.functions[fold.leaf], fold.leaf
    symbols = [symbol for symbol in symbols_in([function]) if symbol.head[0] == "argument"]
    if any(symbol.head[1] % count != leaf for symbol in symbols):
        return fold
    names = {}
    for symbol in symbols:
        head = "argument", symbol.head[1] // count, symbol.head[2]
        names[symbol] = algebra.table.array("symbol", head, symbol.type, symbol.dims)
    own = Renaming(algebra, names)(function)
    return replace(
        fold, functions=(own,), leaf=0, inits=(fold.inits[leaf],), values=(fold.values[leaf],)
    )


def _combines(function: Formula) -> str | None:
    """Return the combiner that a function applies to both arguments; None if it is not known."""
    if function.kind != "apply":
        return None
    opcode, attributes = function.head
    is_known = opcode in COMBINERS and not attributes and _are_both(function.arguments)
    return str(opcode) if is_known else None


def _are_both(terms: Sequence[Formula]) -> bool:
    """Return True for both arguments of a function, in any order."""
    arguments = [t.array.head for t in terms if t.array is not None]
    return sorted(arguments) == [("argument", number, ()) for number in (0, 1)]


def _value_before_rounding(term: Formula) -> Formula | None:
    """Return the f32 that a term rounds to a narrower type and back; None for other terms."""
    return float_before_rounding(term.arguments[0], "f32") if is_call(term, "convert") else None


def narrow_fold(algebra: FormulaAlgebra, fold: Fold) -> Fold | None:
    """Return the fold in a narrow type of a fold that rounds to it each time; None for others.

    ``op(x, y)`` in bf16 or f16 is the rounded result in f32, so a fold with the combiner
    ``round(op(x, y))`` over values of the narrow type is a fold in this type.
    """
    if fold.combiner or len(fold.functions) != 1 or fold.element_type != "f32":
        return None
    ((function,), (value,), (init,)) = fold.functions, fold.values, fold.inits
    combined = _rounded_combiner(function)
    if combined is None:
        return None
    opcode, kind = combined
    if narrow_type(value) != kind or not is_of_type(init, kind):
        return None
    value, init = (algebra.apply("convert", (), kind, [t]) for t in (value, init))
    return replace(
        fold, combiner=opcode, functions=(), element_type=kind, values=(value,), inits=(init,)
    )


def _rounded_combiner(function: Formula) -> tuple[str, str] | None:
    """Return the combiner whose result a function rounds, and the type; None for others.

    The operands of an extremum may be rounded instead: ``max(round(x), round(y))``.
    """
    if is_call(function, *EXTREMA):
        kinds = {
            t.arguments[0].type for t in function.arguments if _value_before_rounding(t) is not None
        }
        arguments = [_value_before_rounding(t) or t for t in function.arguments]
        opcode = str(function.head[0])
    else:
        combined = _value_before_rounding(function)
        if combined is None or not is_call(combined, "add", "multiply"):
            return None
        kinds, arguments = {function.arguments[0].type}, list(combined.arguments)
        opcode = str(combined.head[0])
    return (opcode, kinds.pop()) if len(kinds) == 1 and _are_both(arguments) else None

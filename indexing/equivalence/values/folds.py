"""Folds: unordered reductions of a formula over range variables, closed in a canonical form.

HLO does not define the order of a reduction, and its initial value must be neutral or is combined
with the values in any order.  A fold over the same multiset of values is therefore the same fold.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from hlo.shapes.shape import ELEMENT_TYPES, dtype
from indexing.equivalence.values.algebra import FormulaAlgebra
from indexing.equivalence.values.closures import closed
from indexing.equivalence.values.functions import is_float
from indexing.equivalence.values.integer_laws import has_ring, sum_of
from indexing.equivalence.values.terms import Formula
from indexing.ops.integer_rules import range_of
from simplifier.atoms import Variable, mentioned
from simplifier.constraints import Constraint

KNOWN: Final = frozenset(["add", "multiply", "maximum", "minimum", "and", "or", "xor"])
"""Combiners that are commutative and associative; of floats up to rounding, as HLO accepts."""

IDEMPOTENT: Final = frozenset(["maximum", "minimum", "and", "or"])


@dataclass(frozen=True, slots=True)
class Fold:
    """``result = combiner(result, values)`` over the ranges, where the guards hold.

    Attributes:
        combiner: the opcode if it is one of `KNOWN`, else "".
        functions: the results of any other combiner, over symbols.
        leaf: the number of the result.
        element_type: its type.
        inits: the initial values.
        values: the formulas of the values, over dimensions and `ranges`.
    """

    combiner: str
    functions: tuple[Formula, ...]
    leaf: int
    element_type: str
    inits: tuple[Formula, ...]
    values: tuple[Formula, ...]
    ranges: tuple[Variable, ...]
    guards: tuple[Constraint, ...] = ()


def folded(algebra: FormulaAlgebra, fold: Fold) -> Formula:
    """Return the formula of a fold."""
    guards = [c for c in fold.guards if not c.is_true]
    if any(c.is_false for c in guards):
        return fold.inits[fold.leaf]
    fold = replace(fold, guards=tuple(dict.fromkeys(guards)))
    if fold.combiner:
        fold = _without_unused(algebra, fold)
        if not fold.ranges and not fold.guards:
            return _single(algebra, fold)
    exprs = [c.expr for c in fold.guards]
    closure = closed(
        algebra.table,
        algebra.rewriting,
        [*fold.values, *fold.inits, *(() if fold.combiner else fold.functions)],
        exprs,
        fold.ranges,
        keeps_ranges=not fold.combiner,
    )
    guard_bounds = tuple([c.bounds for c in fold.guards])
    head = (
        f"fold {fold.combiner}".strip(),
        fold.leaf,
        len(fold.values),
        tuple([v.bounds for v in closure.ranges]),
        guard_bounds,
    )
    sizes = tuple([v.upper + 1 for v in closure.dims])
    array = algebra.table.array("fold", head, fold.element_type, sizes, closure.terms,
                                closure.exprs)  # fmt: skip
    return algebra.table.read(array, closure.index)


def _without_unused(algebra: FormulaAlgebra, fold: Fold) -> Fold:
    """Return the fold without ranges on which neither value nor guards depend, if it is equal."""
    (value,) = fold.values
    guarded = mentioned([c.expr for c in fold.guards])
    unused = [v for v in fold.ranges if v not in value.free and v not in guarded]
    if not unused:
        return fold
    kept = tuple([v for v in fold.ranges if v not in unused])
    if fold.combiner in IDEMPOTENT:
        return replace(fold, ranges=kept)
    if fold.combiner == "add" and has_ring(fold.element_type):
        count = int(np.prod([v.upper - v.lower + 1 for v in unused]))
        return replace(
            fold, ranges=kept, values=(sum_of(algebra, fold.element_type, [(count, value)]),)
        )
    return fold


def _single(algebra: FormulaAlgebra, fold: Fold) -> Formula:
    """Return the fold of one value."""
    (value,), (init,) = fold.values, fold.inits
    if is_neutral(fold.combiner, init):
        return value
    return algebra.apply(fold.combiner, (), fold.element_type, [init, value])


def is_neutral(combiner: str, init: Formula) -> bool:
    """Return True if a constant is neutral for a combiner; 0 and -0 are neutral for sums."""
    if init.kind != "constant":
        return False
    kind = ELEMENT_TYPES[init.type].kind
    limits = range_of(init.type)
    if combiner in ("maximum", "minimum"):
        sign = -1 if combiner == "maximum" else 1
        if is_float(init.type):
            return bool(init.value == dtype(init.type).type(sign * np.inf))
        return limits is not None and int(init.value) == limits[sign > 0]
    if combiner == "and":
        return bool(init.value) if kind == "pred" else int(init.value) in (-1, _ones(limits))
    return bool(init.value == (1 if combiner == "multiply" else 0))


def _ones(limits: tuple[int, int] | None) -> int:
    return limits[1] if limits is not None and not limits[0] else -1

"""Neutral elements of the combiners of folds."""

from __future__ import annotations

import math

from indexing.equivalence.values.laws.algebra import FormulaAlgebra
from indexing.equivalence.values.laws.exact import float_value
from indexing.equivalence.values.terms.terms import Formula
from indexing.ops.combiners import COMBINERS


def neutral_value(algebra: FormulaAlgebra, combiner: str, element_type: str) -> Formula | None:
    """Return the neutral element of a combiner; None if the element type has none."""
    value = COMBINERS[combiner].neutral(element_type) if combiner in COMBINERS else None
    return None if value is None else algebra.table.constant(value, element_type)


def is_neutral(combiner: str, init: Formula) -> bool:
    """Return True if a constant is neutral for a combiner; 0 and -0 are neutral for sums."""
    if init.kind != "constant" or combiner not in COMBINERS:
        return False
    return bool(init.value == COMBINERS[combiner].neutral(init.type))


def is_minus_zero(term: Formula) -> bool:
    """Return True for the constant -0."""
    value = float_value(term)
    return value == 0 and math.copysign(1, value) < 0

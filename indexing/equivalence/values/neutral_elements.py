"""Neutral elements of the combiners of folds."""

from __future__ import annotations

import math

from hlo.shapes.shape import dtype
from indexing.equivalence.values.algebra import FormulaAlgebra
from indexing.equivalence.values.exact_laws import float_value
from indexing.equivalence.values.functions import is_float
from indexing.equivalence.values.terms import Formula
from indexing.ops.integer_rules import range_of


def neutral_value(algebra: FormulaAlgebra, combiner: str, element_type: str) -> Formula | None:
    """Return the neutral element of a combiner."""
    limits = range_of(element_type)
    value: float | None = {"add": 0, "or": 0, "xor": 0, "multiply": 1}.get(combiner)
    if combiner == "and":
        value = True if element_type == "pred" else _ones(limits)
    elif combiner in ("maximum", "minimum"):
        sign = -1 if combiner == "maximum" else 1
        if is_float(element_type):
            value = sign * math.inf
        elif limits is not None:
            value = limits[sign > 0]
    term = None if value is None else algebra.table.constant(value, element_type)
    return term if term is not None and is_neutral(combiner, term) else None


def is_neutral(combiner: str, init: Formula) -> bool:
    """Return True if a constant is neutral for a combiner; 0 and -0 are neutral for sums."""
    if init.kind != "constant":
        return False
    limits = range_of(init.type)
    if combiner in ("maximum", "minimum"):
        sign = -1 if combiner == "maximum" else 1
        if is_float(init.type):
            return bool(init.value == dtype(init.type).type(sign * math.inf))
        return limits is not None and int(init.value) == limits[sign > 0]
    if combiner == "and" and init.type == "pred":
        return bool(init.value)
    if combiner == "and":
        return int(init.value) in (-1, _ones(limits))
    return bool(init.value == (1 if combiner == "multiply" else 0))


def _ones(limits: tuple[int, int] | None) -> int:
    return limits[1] if limits is not None and not limits[0] else -1


def is_minus_zero(term: Formula) -> bool:
    """Return True for the constant -0."""
    value = float_value(term)
    return value == 0 and math.copysign(1, value) < 0

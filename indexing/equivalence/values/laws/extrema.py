"""Extrema that a program writes with comparisons."""

from __future__ import annotations

from typing import Final

from indexing.equivalence.values.laws.exact import is_call
from indexing.equivalence.values.laws.law import Application, Constructors, ValueLaw
from indexing.equivalence.values.terms.functions import is_float, is_integral
from indexing.equivalence.values.terms.terms import Formula

SELECTED: Final = "select(x > y or x != x, x, y) = max(x, y)"


def _extremum(algebra: Constructors, call: Application) -> Formula | None:
    predicate, x, y = call.arguments
    kind = call.element_type
    if is_float(kind):
        order = _without_nan(predicate, x)
    else:
        order = predicate if is_integral(kind) else None
    opcode = None if order is None else _opcode_of(order, x, y)
    if opcode is None:
        return None
    if is_float(kind):
        algebra.note({SELECTED})
    return algebra.apply(opcode, (), kind, [x, y])


def _without_nan(predicate: Formula, x: Formula) -> Formula | None:
    """Return p of a predicate ``p or x != x``; None for others."""
    if not is_call(predicate, "or") or len(predicate.arguments) != 2:
        return None
    for test, order in (predicate.arguments, predicate.arguments[::-1]):
        if _direction(test) == "NE" and test.arguments == (x, x):
            return order
    return None


def _opcode_of(order: Formula, x: Formula, y: Formula) -> str | None:
    """Return the extremum that is x where a comparison holds, and y elsewhere."""
    if _direction(order) not in ("LT", "LE"):
        return None
    return {(x, y): "minimum", (y, x): "maximum"}.get((order.arguments[0], order.arguments[1]))


def _direction(test: Formula) -> str:
    """Return the direction of a comparison of numbers; "" for other terms."""
    if not is_call(test, "compare") or dict(test.head[1]).get("type") == "TOTALORDER":
        return ""
    return str(dict(test.head[1])["direction"])


EXTREMUM_LAWS: Final = (
    ValueLaw(SELECTED, "sign of zero", ("select",),
             "also >=, and min for <; exact for integers, without x != x",
             "If x is NaN, both are x; if y is, no comparison holds, and both are y.", _extremum),
)  # fmt: skip

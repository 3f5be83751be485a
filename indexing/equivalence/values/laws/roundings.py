"""Laws of roundings to a narrower type of floats.

In the reals, a rounding is the identity.  A program that rounds less is as accurate as the program
before; one that rounds more is not the same program: such formulas are compared by `EXCESS` in one
direction only.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from hlo.shapes.shape import dtype
from indexing.equivalence.values.laws.exact import NARROW, is_call
from indexing.equivalence.values.laws.law import Application, Constructors, ValueLaw
from indexing.equivalence.values.terms.functions import is_float
from indexing.equivalence.values.terms.terms import Formula

EXCESS: Final = "convert(convert(x)) = x, narrowed first"
FACTORS: Final = "x * y of default precision = bf16(x) * bf16(y)"


def float_before_rounding(narrow: Formula, kind: str) -> Formula | None:
    """Return the float that was converted to a narrower type, which is converted back to `kind`."""
    if not is_call(narrow, "convert") or narrow.type not in NARROW or not is_float(kind):
        return None
    (value,) = narrow.arguments
    return value if value.type == kind else None


def _excess(algebra: Constructors, call: Application) -> Formula | None:
    value = float_before_rounding(call.arguments[0], call.element_type)
    if value is not None:
        algebra.note({EXCESS})
    return value


_SELECTING: Final = frozenset(["maximum", "minimum", "negate", "abs", "select"])
"""Functions that commute with every rounding: it is monotone, and symmetric in the sign."""


def _rounded_twice(algebra: Constructors, call: Application) -> Formula | None:
    """``round(f(round(x), y)) = round(f(x, y))``."""
    (x,) = call.arguments
    if call.element_type not in NARROW or not is_call(x, *_SELECTING) or not is_float(x.type):
        return None
    inner = [_value(term, call.element_type) for term in x.arguments]
    if all(new is old for new, old in zip(inner, x.arguments, strict=True)):
        return None
    opcode, attributes = x.head
    value = algebra.apply(opcode, attributes, x.type, inner)
    return algebra.apply("convert", (), call.element_type, [value])


def _value(term: Formula, kind: str) -> Formula:
    """Return the float that is rounded to `kind` and back, or the term itself."""
    if not is_call(term, "convert") or term.arguments[0].type != kind:
        return term
    value = float_before_rounding(term.arguments[0], term.type)
    return term if value is None else value


def _rounded_inside(algebra: Constructors, call: Application) -> Formula | None:
    """``round(max(x, y)) = max(round(x), round(y))``, back in the wider type."""
    (narrow,) = call.arguments
    kind = call.element_type
    x = float_before_rounding(narrow, kind)
    if x is None or not is_call(x, *_SELECTING) or x.arguments[-1].type != kind:
        return None
    opcode, attributes = x.head

    def round_back(term: Formula) -> Formula:
        if term.type != kind:
            return term  # the predicate of a selection
        return algebra.apply(
            "convert", (), kind, [algebra.apply("convert", (), narrow.type, [term])]
        )

    return algebra.apply(opcode, attributes, kind, list(map(round_back, x.arguments)))


def narrow_type(value: Formula) -> str | None:
    """Return the narrow type of which all values of an f32 are; None if there is none."""
    kinds: set[str] = set()
    constants: list[Formula] = []
    pending, visited = [value], set[int]()
    while pending:
        term = pending.pop()
        if term.number in visited:
            continue
        visited.add(term.number)
        if term.type != "f32":
            return None
        if is_call(term, "convert"):
            kinds.add(term.arguments[0].type)
        elif is_call(term, "select"):
            pending += term.arguments[1:]
        elif term.kind == "choose" or is_call(term, *_SELECTING):
            pending += term.arguments
        elif term.kind == "constant":
            constants.append(term)
        else:
            return None
    if len(kinds) != 1:
        return None
    (kind,) = kinds
    is_narrow = kind in NARROW and all(is_of_type(constant, kind) for constant in constants)
    return kind if is_narrow else None


def is_of_type(term: Formula, kind: str) -> bool:
    """Return True for a constant that is a number of a narrower type."""
    if term.kind != "constant" or not is_float(term.type):
        return False
    with np.errstate(all="ignore"):
        value = np.asarray(term.value)
        return bool(value.astype(dtype(kind)).astype(value.dtype) == value)


ROUNDING_LAWS: Final = (
    ValueLaw(
        "round(max(round(x), y)) = round(max(x, y))",
        "exact",
        ("convert",),
        "a conversion to bf16 or f16 and back; also min, negate, abs and select",
        "Rounding is monotone, symmetric in the sign and idempotent, so it commutes with these "
        "functions.",
        _rounded_twice,
    ),
    ValueLaw(
        "round(max(x, y)) = max(round(x), round(y))",
        "exact",
        ("convert",),
        "a conversion to bf16 or f16 and back; also min, negate, abs and select",
        "Rounding is monotone and symmetric in the sign, so it commutes with these functions.",
        _rounded_inside,
    ),
)
EXCESS_LAW: Final = ValueLaw(
    EXCESS,
    "real",
    ("convert",),
    "floats; the program before rounds, the program after does not",
    "Rounding is the identity in the reals.",
    _excess,
)

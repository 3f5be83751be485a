"""Exact laws of conversions between types, and of the parts of complex numbers."""

from __future__ import annotations

from typing import Final

from hlo.shapes.shape import ELEMENT_TYPES
from indexing.equivalence.values.laws import integers
from indexing.equivalence.values.laws.exact import NARROW, is_call
from indexing.equivalence.values.laws.law import Application, Constructors, ValueLaw
from indexing.equivalence.values.terms.functions import (
    is_float,
    is_integral,
    keeps_values,
    same_rounding,
)
from indexing.equivalence.values.terms.terms import Formula


def _convert(algebra: Constructors, call: Application) -> Formula | None:
    (x,) = call.arguments
    target = call.element_type
    if x.type == target:
        return x
    if x.type == "pred" and ELEMENT_TYPES[target].kind != "complex":
        numbers = [algebra.table.constant(value, target) for value in (1, 0)]
        return algebra.apply("select", (), target, [x, *numbers])
    if x.kind == "index" and is_integral(target) and integers.fits(x.index[0], target):
        return algebra.table.index(x.index[0], target)
    if is_call(x, "convert"):
        source = x.arguments[0].type
        if keeps_values(source, x.type) and same_rounding(source, x.type, target):
            return algebra.apply("convert", (), target, x.arguments)
    return _selected_conversion(algebra, x, target)


def _selected_conversion(algebra: Constructors, x: Formula, target: str) -> Formula | None:
    """``convert(select(p, convert(x), convert(y))) = select(p, x, y)``, widened first.

    A selection of bf16 or f16 that is widened is a selection of widened values.
    """
    if is_call(x, "select") and x.type in NARROW and is_float(target):
        wide = [algebra.apply("convert", (), target, [t]) for t in x.arguments[1:]]
        if keeps_values(x.type, target):
            return algebra.apply("select", (), target, [x.arguments[0], *wide])
    if not is_call(x, "select") or not keeps_values(target, x.type):
        return None
    if any(not is_call(t, "convert") or t.arguments[0].type != target for t in x.arguments[1:]):
        return None
    inner = [t.arguments[0] for t in x.arguments[1:]]
    return algebra.apply("select", (), target, [x.arguments[0], *inner])


def _narrow(algebra: Constructors, call: Application) -> Formula | None:
    """``op(x, y)`` in bf16 or f16 is the rounded result in f32."""
    wide = [t.type for t in call.arguments if t.type in NARROW]
    if not wide or (call.element_type not in NARROW and call.opcode != "compare"):
        return None
    arguments = [algebra.apply("convert", (), "f32", [t]) for t in call.arguments]
    if call.opcode == "compare":
        return algebra.apply("compare", call.attributes, "pred", arguments)
    result = algebra.apply(call.opcode, call.attributes, "f32", arguments)
    return algebra.apply("convert", (), call.element_type, [result])


def _part(algebra: Constructors, call: Application) -> Formula | None:
    (x,) = call.arguments
    return x.arguments[call.opcode == "imag"] if is_call(x, "complex") else None


def _bitcast(algebra: Constructors, call: Application) -> Formula | None:
    (x,) = call.arguments
    if x.type == call.element_type:
        return x
    is_same_width = ELEMENT_TYPES[x.type].bits == ELEMENT_TYPES[call.element_type].bits
    if is_same_width and is_call(x, "bitcast-convert"):
        (inner,) = x.arguments
        if ELEMENT_TYPES[inner.type].bits == ELEMENT_TYPES[x.type].bits:
            return algebra.apply("bitcast-convert", (), call.element_type, [inner])
    return None


CONVERSION_LAWS: Final = (
    ValueLaw("convert(convert(x)) = convert(x)", "exact", ("convert",),
             "the first conversion keeps every value of its operand's type; also of a selection of "
             "bf16 or f16",
             "The second conversion gets the same number; integers wrap modulo 2^bits.", _convert),
    ValueLaw("op(x, y) = convert(op(convert(x), convert(y)))", "exact",
             ("add", "multiply", "divide", "sqrt", "maximum", "minimum", "negate", "abs",
              "compare"),
             "bf16 and f16 by way of f32",
             "f32 has at least 2p + 2 bits of precision, so rounding twice is rounding once "
             "(S. Figueroa, When is double rounding innocuous?, 1995).", _narrow),
    ValueLaw("real(complex(x, y)) = x", "exact", ("real", "imag"), "none",
             "The definition of complex numbers.", _part),
    ValueLaw("bitcast-convert(bitcast-convert(x)) = bitcast-convert(x)", "exact",
             ("bitcast-convert",), "equal widths", "The same bits.", _bitcast),
)  # fmt: skip

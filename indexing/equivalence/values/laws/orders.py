"""Exact laws of comparisons and of signed division that XLA's expanders use."""

from __future__ import annotations

from typing import Final

from hlo.shapes.element_type import range_of
from hlo.shapes.shape import ELEMENT_TYPES
from indexing.equivalence.values.laws.exact import float_value, is_call, is_float_abs
from indexing.equivalence.values.laws.integers import has_ring, value_of
from indexing.equivalence.values.laws.law import Application, Constructors, ValueLaw
from indexing.equivalence.values.terms.functions import bits_of, is_float
from indexing.equivalence.values.terms.terms import Formula

INTEGER_OF: Final = {"f64": "s64", "f32": "s32", "f16": "s16", "bf16": "s16"}
"""The signed integer type of equal width."""


def _total_order(algebra: Constructors, call: Application) -> Formula | None:
    """Total order of floats as the order of integers that are made of their bits."""
    given = dict(call.attributes)
    left, right = call.arguments
    kind = INTEGER_OF.get(left.type)
    if given.get("type") != "TOTALORDER" or kind is None:
        return None
    bits = [_ordered_bits(algebra, term, kind) for term in (left, right)]
    attributes = ("direction", given["direction"]), ("type", "")
    return algebra.apply("compare", attributes, "pred", bits)


def _ordered_bits(algebra: Constructors, term: Formula, kind: str) -> Formula:
    limits = range_of(kind)
    assert limits is not None
    zero, most = (algebra.table.constant(value, kind) for value in (0, limits[1]))
    bits = algebra.apply("bitcast-convert", (), kind, [term])
    less = ("direction", "LT"), ("type", "")
    is_negative = algebra.apply("compare", less, "pred", [bits, zero])
    flipped = algebra.apply("xor", (), kind, [bits, most])
    return algebra.apply("select", (), kind, [is_negative, flipped, bits])


def _unsigned_comparison(algebra: Constructors, call: Application) -> Formula | None:
    """``x < 0`` of numbers that are not negative."""
    given = dict(call.attributes)
    direction = given["direction"]
    left, right = call.arguments
    if direction == "LT" and value_of(right) == 0 and _is_not_negative(left):
        return algebra.table.constant(False, "pred")
    limit = float_value(right) if is_float_abs(left) else None
    if direction == "LT" and limit is not None and limit <= 0 and not given.get("type"):
        return algebra.table.constant(False, "pred")
    if direction == "LE" and value_of(left) == 0 and _is_not_negative(right):
        return algebra.table.constant(True, "pred")
    return None


def _is_not_negative(term: Formula) -> bool:
    """Return True for an unsigned number, or a maximum with a constant that is not negative."""
    limits = range_of(term.type)
    if limits is not None and limits[0] == 0:
        return True
    values = [value_of(t) for t in term.arguments] if is_call(term, "maximum") else []
    return any(value is not None and value >= 0 for value in values)


def _signed_quotient(algebra: Constructors, call: Application) -> Formula | None:
    """``x / 2^k`` and ``x % 2^k`` of signed numbers by the bits of ``|x|``."""
    x, divisor = call.arguments[0], value_of(call.arguments[1])
    kind = call.element_type
    if divisor is None or divisor < 2 or divisor & (divisor - 1) or not has_ring(kind):
        return None
    if ELEMENT_TYPES[kind].kind != "integral" or x.kind == "index":
        return None
    zero = algebra.table.constant(0, kind)
    less = ("direction", "LT"), ("type", "")
    is_negative = algebra.apply("compare", less, "pred", [x, zero])
    minus = algebra.apply("negate", (), kind, [x])
    size = algebra.apply("select", (), kind, [is_negative, minus, x])
    if call.opcode == "remainder":
        mask = algebra.table.constant(divisor - 1, kind)
        part = algebra.apply("and", (), kind, [size, mask])
    else:
        count = algebra.table.constant(divisor.bit_length() - 1, kind)
        part = algebra.apply("shift-right-logical", (), kind, [size, count])
    negated = algebra.apply("negate", (), kind, [part])
    return algebra.apply("select", (), kind, [is_negative, negated, part])


def _neutral(algebra: Constructors, call: Application) -> Formula | None:
    """``max(x, -inf) = x``, and the same for the least integer and for minima."""
    sign = -1 if call.opcode == "maximum" else 1
    limits = range_of(call.element_type)
    for x, other in (call.arguments, call.arguments[::-1]):
        if other.kind != "constant":
            continue
        if is_float(call.element_type) and bits_of(call.element_type) >= 16:
            if float(other.value) == sign * float("inf"):
                return x
        elif limits is not None and int(other.value) == limits[sign > 0]:
            return x
    return None


ORDER_LAWS: Final = (
    ValueLaw("total order of floats = order of their bits", "exact", ("compare",),
             "f64, f32, f16, bf16; the bits below the sign are flipped in negative numbers",
             "IEEE 754 totalOrder; NaNs are ordered by sign and payload on both sides.",
             _total_order),
    ValueLaw("x < 0 is false", "exact", ("compare",),
             "x is unsigned, or max(y, c) with c >= 0; also 0 <= x is true; x is |y| of floats",
             "The least unsigned number is 0, and so is the least |y|; NaN < 0 is false.",
             _unsigned_comparison),
    ValueLaw("x / 2^k = select(x < 0, -(|x| >> k), |x| >> k)", "exact", ("divide", "remainder"),
             "signed integers, k > 0; also x % 2^k = select(x < 0, -(|x| and 2^k - 1), ..)",
             "Division truncates; |x| of the least number is 2^(bits - 1) as unsigned number.",
             _signed_quotient),
    ValueLaw("max(x, -inf) = x", "exact", ("maximum", "minimum"),
             "also the least integer, and min(x, inf) = x",
             "The constant is the least number; NaN is propagated.", _neutral),
)  # fmt: skip

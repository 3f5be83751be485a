"""Exact laws of integers: sums and products modulo ``2^bits``, quotients by powers of two."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from hlo.shapes.element_type import range_of
from indexing.equivalence.values.laws.law import Application, Constructors, ValueLaw
from indexing.equivalence.values.terms.functions import bits_of, is_float, is_integral
from indexing.equivalence.values.terms.terms import Formula
from indexing.ops.integer_rules import wrap_integer
from simplifier.interval import contains
from simplifier.linear import Expr, as_expr

MAX_TERMS: Final = 64
"""Limit on the terms of one sum or product."""


def has_ring(element_type: str) -> bool:
    """Return True for integer types whose arithmetic is modulo ``2^bits``."""
    return is_integral(element_type) and bits_of(element_type) >= 8


def fits(expr: Expr, element_type: str) -> bool:
    """Return True if an integer type can represent all values of an expression."""
    limits = range_of(element_type)
    return limits is not None and contains(limits, expr.bounds)


def integer_expr(term: Formula) -> Expr | None:
    """Return the value of an integer term as an expression of indices, if it is one."""
    value = value_of(term)
    if value is not None:
        return as_expr(value)
    return term.index[0] if term.kind == "index" else None


def value_of(term: Formula) -> int | None:
    """Return the value of an integer constant; None for other terms."""
    if term.kind == "constant" and is_integral(term.type):
        return int(term.value)
    return None


def sum_of(
    algebra: Constructors,
    element_type: str,
    parts: Iterable[tuple[int, Formula]],
    constant: int = 0,
) -> Formula:
    """Return ``constant + Σ factor · term`` modulo ``2^bits``, like terms merged."""
    modulus = 1 << bits_of(element_type)
    total, indices, constant = _collect_factors(parts, constant)
    if indices:
        whole = as_expr(constant)
        for factor, term in indices:
            whole = whole + term.index[0] * factor
        if not any(factor % modulus for factor in total.values()) and fits(whole, element_type):
            return algebra.table.index(whole, element_type)
        without = whole - whole.constant
        if fits(without, element_type):
            constant = whole.constant
            indices = [(1, algebra.table.index(without, element_type))]
        for factor, term in indices:
            total[term] = total.get(term, 0) + factor
    return _ring_sum(algebra, element_type, total, constant)


def _collect_factors(
    parts: Iterable[tuple[int, Formula]], constant: int
) -> tuple[dict[Formula, int], list[tuple[int, Formula]], int]:
    """Return the factors of terms, the indices with factors, and the constant of a sum."""
    total: dict[Formula, int] = {}
    indices: list[tuple[int, Formula]] = []
    pending = list(parts)
    while pending:
        factor, term = pending.pop()
        value = value_of(term)
        if value is not None:
            constant += factor * value
        elif term.kind == "index":
            indices.append((factor, term))
        elif term.kind == "apply" and term.head[0] == "sum":
            factors, inner = _sum_head(term)
            constant += factor * inner
            pending += [(factor * f, t) for f, t in zip(factors, term.arguments, strict=True)]
        else:
            total[term] = total.get(term, 0) + factor
    return total, indices, constant


def _ring_sum(
    algebra: Constructors, element_type: str, total: dict[Formula, int], constant: int
) -> Formula:
    """Return a sum with factors and constant modulo ``2^bits``."""
    modulus = 1 << bits_of(element_type)
    factors = {t: f % modulus for t, f in total.items() if f % modulus}
    constant %= modulus
    if not factors:
        return algebra.table.constant(wrap_integer(constant, element_type), element_type)
    ordered = sorted(factors.items(), key=lambda part: (part[0].key, part[0].number))
    if len(ordered) == 1 and ordered[0][1] == 1 and not constant:
        return ordered[0][0]
    attributes = (
        ("factors", tuple([factor for _, factor in ordered])),
        ("constant", constant),
    )
    terms = [term for term, _ in ordered]
    return algebra.table.make("apply", ("sum", attributes), element_type, terms)


def _sum_head(term: Formula) -> tuple[tuple[int, ...], int]:
    _, ((_, factors), (_, constant)) = term.head
    return factors, constant


def _sum(algebra: Constructors, call: Application) -> Formula | None:
    if not has_ring(call.element_type):
        return None
    attributes: dict[str, Any] = dict(call.attributes)
    known = {"add": (1, 1), "subtract": (1, -1), "negate": (-1,)}
    factors = known.get(call.opcode) or attributes["factors"]
    parts = zip(factors, call.arguments, strict=True)
    return sum_of(algebra, call.element_type, parts, attributes.get("constant", 0))


def _product(algebra: Constructors, call: Application) -> Formula | None:
    if not has_ring(call.element_type):
        return None
    factor = 1
    terms: list[Formula] = []
    pending = list(call.arguments)
    while pending:
        term = pending.pop()
        value = value_of(term)
        is_apply = term.kind == "apply"
        if value is not None:
            factor *= value
        elif is_apply and term.head[0] == "product":
            pending += term.arguments
        elif is_apply and term.head[0] == "sum" and _is_multiple(term):
            factor *= _sum_head(term)[0][0]
            pending += term.arguments
        else:
            terms.append(term)
    if not terms:
        return sum_of(algebra, call.element_type, [], factor)
    if len(terms) == 1:
        return sum_of(algebra, call.element_type, [(factor, terms[0])])
    if len(terms) > MAX_TERMS:
        return None
    product = algebra.raw(Application("product", (), call.element_type, tuple(terms)))
    return product if factor == 1 else sum_of(algebra, call.element_type, [(factor, product)])


def _is_multiple(term: Formula) -> bool:
    factors, constant = _sum_head(term)
    return len(factors) == 1 and not constant


def _shift_left(algebra: Constructors, call: Application) -> Formula | None:
    value, count = call.arguments[0], value_of(call.arguments[1])
    if not has_ring(call.element_type) or count is None:
        return None
    if not 0 <= count < bits_of(call.element_type):
        return None
    return sum_of(algebra, call.element_type, [(1 << count, value)])


def _quotient(algebra: Constructors, call: Application) -> Formula | None:
    """``x / c`` of an index, or of an unsigned number by a power of two."""
    value, divisor = call.arguments[0], value_of(call.arguments[1])
    if divisor is None or divisor <= 0 or not has_ring(call.element_type):
        return None
    if value.kind == "index" and value.index[0].bounds[0] >= 0:
        expr = value.index[0]
        result = expr // divisor if call.opcode == "divide" else expr % divisor
        return algebra.table.index(result, call.element_type)
    if divisor == 1:
        return value if call.opcode == "divide" else sum_of(algebra, call.element_type, [])
    limits = range_of(call.element_type)
    if limits is None or limits[0] or divisor & (divisor - 1):
        return None
    if call.opcode == "divide":
        number = algebra.table.constant(divisor.bit_length() - 1, call.element_type)
        return algebra.apply("shift-right-logical", (), call.element_type, [value, number])
    mask = algebra.table.constant(divisor - 1, call.element_type)
    return algebra.apply("and", (), call.element_type, [value, mask])


def _shift_right(algebra: Constructors, call: Application) -> Formula | None:
    value, count = call.arguments[0], value_of(call.arguments[1])
    if count is None or not 0 <= count < bits_of(call.element_type):
        return None
    if count == 0:
        return value
    bits = bits_of(call.element_type) - (call.opcode == "shift-right-arithmetic")
    if value.kind == "index" and contains((0, (1 << bits) - 1), value.index[0].bounds):
        return algebra.table.index(value.index[0] // (1 << count), call.element_type)
    return None


def _mask(algebra: Constructors, call: Application) -> Formula | None:
    """``x and (2^k - 2^n)`` of an index that is not negative."""
    if len(call.arguments) != 2:
        return None
    for value, other in (call.arguments, call.arguments[::-1]):
        mask = value_of(other)
        if mask is None or mask <= 0 or value.kind != "index" or value.index[0].bounds[0] < 0:
            continue
        step = mask & -mask
        if not mask & (mask + step):
            expr = value.index[0] // step % ((mask + step) // step) * step
            return algebra.table.index(expr, call.element_type)
    return None


def _joined_bits(algebra: Constructors, call: Application) -> Formula | None:
    """``i or j`` of indices without a common bit, as their sum."""
    exprs = [integer_expr(term) for term in call.arguments]
    if len(exprs) != 2 or not has_ring(call.element_type):
        return None
    for high, low in (exprs, exprs[::-1]):
        if high is None or low is None or high.bounds[0] < 0 or low.bounds[0] < 0:
            continue
        power = 1 << low.bounds[1].bit_length()
        if (high % power).bounds == (0, 0) and fits(high + low, call.element_type):
            return algebra.table.index(high + low, call.element_type)
    return None


def _clamped_index(algebra: Constructors, call: Application) -> Formula | None:
    """``min(max(x, lo), hi)`` as an index: the value of `x` clamped, as starts of slices are."""
    if len(call.arguments) != 2:
        return None
    for inner, upper in (call.arguments, call.arguments[::-1]):
        high = value_of(upper)
        if high is None or inner.kind != "apply" or inner.head[0] != "maximum":
            continue
        for x, lower in (inner.arguments, inner.arguments[::-1]):
            low = value_of(lower)
            if low is not None and low <= high and integer_expr(x) is None:
                index = algebra.table.variable(x, (low, high)).as_expr()
                return algebra.table.index(index, call.element_type)
    return None


def _ordered_indices(algebra: Constructors, call: Application) -> Formula | None:
    """The minimum or maximum of two indices, one of which is never greater than the other."""
    exprs = [integer_expr(term) for term in call.arguments]
    if len(exprs) != 2 or exprs[0] is None or exprs[1] is None:
        return None
    low, high = (exprs[0] - exprs[1]).bounds
    if low < 0 < high:
        return None
    is_first_less = high <= 0
    return call.arguments[is_first_less == (call.opcode == "maximum")]


def _compare(algebra: Constructors, call: Application) -> Formula | None:
    """A comparison of indices as a choice."""
    left, right = map(integer_expr, call.arguments)
    if left is None or right is None:
        return None
    direction = dict(call.attributes)["direction"]
    true, false = algebra.table.constant(True, "pred"), algebra.table.constant(False, "pred")
    truth = {
        "LT": (true, false, false), "LE": (true, true, false), "EQ": (false, true, false),
        "NE": (true, false, true), "GE": (false, true, true), "GT": (false, false, true),
    }[str(direction)]  # fmt: skip
    difference = left - right
    constant = difference.constant
    expr, less, more = difference - constant, truth[0], truth[2]
    if expr.parts and all(factor < 0 for factor in expr.parts.values()):
        expr, less, more, constant = -expr, more, less, -constant
    return algebra.choose(expr, [(-1 - constant, less), (-constant, truth[1]),
                                 (-constant + 1, more)])  # fmt: skip


def _conversion(algebra: Constructors, call: Application) -> Formula | None:
    """A conversion of a conversion that drops no bit of the last type, or of an index."""
    (x,) = call.arguments
    if x.kind == "index" and x.type != "s32" and is_float(call.element_type):
        return _converted_index(algebra, call, x.index[0])
    if x.kind != "apply" or len(x.arguments) != 1:
        return None
    (inner,) = x.arguments
    if x.head[0] == "bitcast-convert":
        is_same = is_integral(call.element_type) and bits_of(x.type) == bits_of(call.element_type)
        is_fit = is_same and bits_of(inner.type) == bits_of(x.type) and is_integral(x.type)
        return algebra.apply("bitcast-convert", (), call.element_type, [inner]) if is_fit else None
    kinds = inner.type, x.type, call.element_type
    is_integer = x.head[0] == "convert" and all(map(is_integral, kinds))
    if not is_integer or bits_of(x.type) < bits_of(call.element_type):
        return None
    return algebra.apply("convert", (), call.element_type, [inner])


def _converted_index(algebra: Constructors, call: Application, expr: Expr) -> Formula | None:
    """The float of an index, whose integer type does not matter."""
    if not fits(expr, "s32"):
        return None
    return algebra.apply("convert", (), call.element_type, [algebra.table.index(expr, "s32")])


def _same_bits(algebra: Constructors, call: Application) -> Formula | None:
    """Bits of an integer as an integer of the same width."""
    (x,) = call.arguments
    kinds = x.type, call.element_type
    if not all(map(is_integral, kinds)) or bits_of(x.type) != bits_of(call.element_type):
        return None
    return algebra.apply("convert", (), call.element_type, [x])


LAWS: Final = (
    ValueLaw(
        "sums of integers are normalised", "exact", ("add", "subtract", "negate", "sum"),
        "integers of at least 8 bits",
        "Integers modulo 2^bits are a commutative ring; HLO's integer addition wraps around.",
        _sum,
    ),
    ValueLaw(
        "products of integers are normalised", "exact", ("multiply", "product"),
        "integers of at least 8 bits",
        "Integers modulo 2^bits are a commutative ring; HLO's integer product wraps around.",
        _product,
    ),
    ValueLaw(
        "x << c = x * 2^c", "exact", ("shift-left",), "0 <= c < bits",
        "The bits shifted out are the multiples of 2^bits.", _shift_left,
    ),
    ValueLaw(
        "x / 2^k = x >> k, x % 2^k = x and 2^k - 1", "exact", ("divide", "remainder"),
        "x is unsigned, or an index that is not negative (any positive divisor)",
        "Division truncates, which is floor for numbers that are not negative.", _quotient,
    ),
    ValueLaw(
        "i >> k = i floordiv 2^k", "exact", ("shift-right-logical", "shift-right-arithmetic"),
        "i is an index that is not negative, for an arithmetic shift also below 2^(bits - 1); "
        "or k is 0",
        "The bits shifted in are zeros, so both shifts are the floor of the quotient.",
        _shift_right,
    ),
    ValueLaw(
        "i and 2^k - 2^n = (i floordiv 2^n) mod 2^(k - n) * 2^n", "exact", ("and",),
        "i is an index that is not negative",
        "Bits n to k - 1 of a number that is not negative.", _mask,
    ),
    ValueLaw(
        "i or j = i + j", "exact", ("or",),
        "i and j are indices that are not negative; i is a multiple of 2^k, and j < 2^k",
        "The numbers have no bit in common, so no bit is carried.", _joined_bits,
    ),
    ValueLaw(
        "min(max(x, lo), hi) is an index", "exact", ("minimum",),
        "integers; lo <= hi are constants",
        "The starts of slices are clamped by the same formula; the value is in [lo, hi].",
        _clamped_index,
    ),
    ValueLaw(
        "min(i, j) = i, max(i, j) = j", "exact", ("minimum", "maximum"),
        "i and j are indices, and i <= j for all values of their variables",
        "Indices are exact integers, so their difference decides.", _ordered_indices,
    ),
    ValueLaw(
        "comparisons of indices are choices", "exact", ("compare",), "both operands are indices",
        "Indices are exact integers, so their difference decides.", _compare,
    ),
    ValueLaw(
        "convert(convert(x)) = convert(x) of integers", "exact", ("convert",),
        "the type between is not narrower than the last one, or the inner conversion is one of "
        "bits and all types have one width; the integer type of an index does "
        "not matter in a conversion to a float",
        "Conversions of integers wrap modulo 2^bits; the float depends on the number only.",
        _conversion,
    ),
    ValueLaw(
        "bitcast-convert(x) = convert(x)", "exact", ("bitcast-convert",),
        "integers of equal width", "Conversions of integers wrap modulo 2^bits.", _same_bits,
    ),
)  # fmt: skip

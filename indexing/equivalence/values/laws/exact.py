"""Exact laws of floats, predicates and conversions, and the table of all exact laws."""

from __future__ import annotations

import math
from collections import Counter
from typing import Final

import ml_dtypes

from hlo.shapes.element_type import range_of
from hlo.shapes.shape import ELEMENT_TYPES, dtype
from indexing.equivalence.values.laws import integers
from indexing.equivalence.values.laws.law import Application, Constructors, ValueLaw
from indexing.equivalence.values.terms.functions import (
    is_float,
)
from indexing.equivalence.values.terms.terms import Formula
from indexing.ops.combiners import COMBINERS

NARROW: Final = ("bf16", "f16")


def is_call(term: Formula, *opcodes: str) -> bool:
    """Return True for an application of one of these functions."""
    return term.kind == "apply" and term.head[0] in opcodes


def float_value(term: Formula) -> float | None:
    """Return the value of a float constant; None for other terms."""
    if term.kind == "constant" and is_float(term.type):
        return float(term.value)
    return None


def truth_of(term: Formula) -> bool | None:
    """Return the value of a predicate constant; None for other terms."""
    return bool(term.value) if term.kind == "constant" and term.type == "pred" else None


def with_constant(call: Application) -> tuple[Formula, float] | None:
    """Return the other argument and the value of the only float constant among two arguments."""
    if len(call.arguments) != 2 or not is_float(call.element_type):
        return None
    for term, other in (call.arguments, call.arguments[::-1]):
        value = float_value(other)
        if value is not None:
            return term, value
    return None


def _subtract(algebra: Constructors, call: Application) -> Formula | None:
    if not _is_analytic(call.element_type):
        return None
    left, right = call.arguments
    minus = algebra.apply("negate", (), call.element_type, [right])
    return algebra.apply("add", (), call.element_type, [left, minus])


def _is_analytic(element_type: str) -> bool:
    return ELEMENT_TYPES[element_type].kind == "floating"


def _add(algebra: Constructors, call: Application) -> Formula | None:
    pair = with_constant(call)
    if pair is not None and pair[1] == 0 and math.copysign(1, pair[1]) < 0:
        return pair[0]
    return None


def _negate(algebra: Constructors, call: Application) -> Formula | None:
    if not _is_analytic(call.element_type):
        return None
    (x,) = call.arguments
    if is_call(x, "negate"):
        return x.arguments[0]
    if is_call(x, "multiply", "divide"):
        for place, term in enumerate(x.arguments):
            if float_value(term) is not None:
                arguments = list(x.arguments)
                arguments[place] = algebra.apply("negate", (), x.type, [term])
                return algebra.apply(str(x.head[0]), (), x.type, arguments)
    return None


def _multiply(algebra: Constructors, call: Application) -> Formula | None:
    if not _is_analytic(call.element_type):
        return None
    pair = with_constant(call)
    if pair is not None and pair[1] == 1:
        return pair[0]
    if pair is not None and pair[1] == -1:
        return algebra.apply("negate", (), call.element_type, [pair[0]])
    left, *others = call.arguments  # a product of reals may have more than two factors
    if others == [left] and is_float_abs(left):
        return algebra.apply("multiply", (), call.element_type, [left.arguments[0]] * 2)
    return _without_sign(algebra, call)


def is_float_abs(term: Formula) -> bool:
    """Return True for the absolute value of a float, not of a complex number."""
    return is_call(term, "abs") and term.arguments[0].type == term.type and is_float(term.type)


def _divide(algebra: Constructors, call: Application) -> Formula | None:
    if not _is_analytic(call.element_type):
        return None
    left, right = call.arguments
    value = float_value(right)
    if value is not None and is_power_of_two(value, call.element_type):
        reciprocal = algebra.table.constant(1 / value, call.element_type)
        return algebra.apply("multiply", (), call.element_type, [left, reciprocal])
    return _without_sign(algebra, call)


def is_power_of_two(value: float, element_type: str) -> bool:
    """Return True if a float and its reciprocal are powers of two that are not subnormal."""
    limits = ml_dtypes.finfo(dtype(element_type))  # type: ignore[no-untyped-call]
    smallest, largest = float(limits.tiny), float(limits.max)
    if not math.isfinite(value) or value == 0 or abs(math.frexp(value)[0]) != 0.5:
        return False
    return all(smallest <= abs(x) <= largest for x in (value, 1 / value))


def _without_sign(algebra: Constructors, call: Application) -> Formula | None:
    """``(-x) * y = -(x * y)``, and the same for quotients."""
    for place, term in enumerate(call.arguments):
        if is_call(term, "negate") or is_negative_choice(term):
            arguments = list(call.arguments)
            arguments[place] = algebra.apply("negate", (), term.type, [term])
            rest = algebra.apply(call.opcode, (), call.element_type, arguments)
            return algebra.apply("negate", (), call.element_type, [rest])
    return None


def is_negative_choice(term: Formula) -> bool:
    """Return True for a choice among constants of which the first has the sign bit.

    It is a choice by an index, or by a predicate.
    """
    if term.kind != "choose" and not is_call(term, "select"):
        return False
    branches = term.arguments if term.kind == "choose" else term.arguments[1:]
    values = [each for branch in branches if (each := float_value(branch)) is not None]
    return len(values) == len(branches) and math.copysign(1, values[0]) < 0


def _abs(algebra: Constructors, call: Application) -> Formula | None:
    (x,) = call.arguments
    if is_call(x, "negate") and is_float(x.type):
        return algebra.apply("abs", (), call.element_type, x.arguments)
    return x if is_call(x, "abs") else None


def _extremum(algebra: Constructors, call: Application) -> Formula | None:
    first, second = call.arguments
    if first is second:
        return first
    for x, bound in ((first, second), (second, first)):
        if bound.kind == "constant" and bound.value == COMBINERS[call.opcode].neutral(bound.type):
            return x
    if call.opcode != "maximum":
        return None
    for inner, low in ((first, second), (second, first)):
        if low.kind == "constant" and is_call(inner, "minimum"):
            for x, high in (inner.arguments, inner.arguments[::-1]):
                if high.kind == "constant" and bool(low.value <= high.value):
                    raised = algebra.apply("maximum", (), call.element_type, [x, low])
                    return algebra.apply("minimum", (), call.element_type, [raised, high])
    return None


def _clamp(algebra: Constructors, call: Application) -> Formula | None:
    low, x, high = call.arguments
    raised = algebra.apply("maximum", (), call.element_type, [x, low])
    return algebra.apply("minimum", (), call.element_type, [raised, high])


def _compare(algebra: Constructors, call: Application) -> Formula | None:
    given = dict(call.attributes)
    direction, order = str(given["direction"]), str(given.get("type", ""))
    left, right = call.arguments
    is_total = order == "TOTALORDER" and is_float(left.type)
    attributes = ("direction", direction), ("type", "TOTALORDER" if is_total else "")
    if direction in ("GT", "GE"):
        swapped = ("direction", {"GT": "LT", "GE": "LE"}[direction]), attributes[1]
        return algebra.apply("compare", swapped, "pred", [right, left])
    if attributes != call.attributes:
        return algebra.apply("compare", attributes, "pred", [left, right])
    if left is right and not is_float(left.type) and ELEMENT_TYPES[left.type].kind != "complex":
        return algebra.table.constant(direction in ("EQ", "LE"), "pred")
    if left.type == "pred" and direction in ("EQ", "NE"):
        for x, other in ((left, right), (right, left)):
            truth = truth_of(other)
            if truth is not None:
                same = truth == (direction == "EQ")
                return x if same else algebra.apply("not", (), "pred", [x])
    return None


def _not(algebra: Constructors, call: Application) -> Formula | None:
    (x,) = call.arguments
    if is_call(x, "not"):
        return x.arguments[0]
    if x.type == "pred" and x.kind == "choose":
        flipped = [algebra.apply("not", (), "pred", [t]) for t in x.arguments]
        bounds: tuple[int, ...] = x.head
        return algebra.choose(x.index[0], list(zip(bounds, flipped, strict=True)))
    if is_call(x, "compare"):
        (_, direction), order = x.head[1]
        left, right = x.arguments
        if direction in ("EQ", "NE"):
            other = ("direction", "NE" if direction == "EQ" else "EQ"), order
            return algebra.apply("compare", other, "pred", [left, right])
        if not is_float(left.type):
            other = ("direction", "LE" if direction == "LT" else "LT"), order
            return algebra.apply("compare", other, "pred", [right, left])
    return None


def _bitwise(algebra: Constructors, call: Application) -> Formula | None:
    """Operands flattened and constants merged; neutral and absorbing constants."""
    kind, opcode = call.element_type, call.opcode
    if not _is_bitwise(kind):
        return None
    terms, constant = _flatten_operands(algebra, call)
    ones = algebra.table.constant(_all_ones(kind), kind)
    zero = algebra.table.constant(0, kind)
    neutral, absorbing = (ones, zero) if opcode == "and" else (zero, ones)
    if constant is absorbing and opcode != "xor":
        return absorbing
    if (kind, opcode) == ("pred", "xor") and constant is ones and terms:
        rest = algebra.apply("xor", (), kind, terms) if len(terms) > 1 else terms[0]
        return algebra.apply("not", (), kind, [rest])
    terms += [term for term in (constant,) if term is not None and term is not neutral]
    if len(terms) < 2:
        return terms[0] if terms else neutral
    return algebra.raw(Application(opcode, (), kind, tuple(terms)))


def _flatten_operands(
    algebra: Constructors, call: Application
) -> tuple[list[Formula], Formula | None]:
    """Return the distinct operands of a bitwise op, nested ones included, and the constant."""
    terms: list[Formula] = []
    pending = list(call.arguments)
    constant: Formula | None = None
    while pending:
        term = pending.pop()
        if is_call(term, call.opcode):
            pending += term.arguments
        elif term.kind != "constant":
            terms.append(term)
        elif constant is None:
            constant = term
        else:
            constant = algebra.apply(call.opcode, (), call.element_type, [constant, term])
    is_parity = call.opcode == "xor"
    distinct = [term for term, n in Counter(terms).items() if not is_parity or n % 2]
    return distinct, constant


def _is_bitwise(element_type: str) -> bool:
    return element_type == "pred" or integers.has_ring(element_type)


def _all_ones(element_type: str) -> int:
    limits = range_of(element_type)
    assert limits is not None
    return -1 if limits[0] else limits[1]


def _select(algebra: Constructors, call: Application) -> Formula | None:
    p, x, y = call.arguments
    truth = truth_of(p)
    if truth is not None:
        return x if truth else y
    if x is y:
        return x
    if (truth_of(x), truth_of(y)) == (True, False):
        return p
    if (truth_of(x), truth_of(y)) == (False, True):
        return algebra.apply("not", (), "pred", [p])
    if is_call(p, "not") or _is_complement(p):
        complement = algebra.apply("not", (), "pred", [p])
        return algebra.apply("select", (), call.element_type, [complement, y, x])
    if p.kind == "choose":
        parts = [algebra.apply("select", (), call.element_type, [t, x, y]) for t in p.arguments]
        bounds: tuple[int, ...] = p.head
        return algebra.choose(p.index[0], list(zip(bounds, parts, strict=True)))
    return None


def _is_complement(p: Formula) -> bool:
    """Return True for ``x != y``, and for ``x <= y`` of numbers that are totally ordered."""
    if not is_call(p, "compare"):
        return False
    direction = dict(p.head[1])["direction"]
    return direction == "NE" or (direction == "LE" and not is_float(p.arguments[0].type))


FLOAT_LAWS: Final = (
    ValueLaw("x - y = x + (-y)", "exact", ("subtract",), "floats",
             "IEEE 754 defines subtraction this way.", _subtract),
    ValueLaw("x + (-0) = x", "exact", ("add",), "floats",
             "IEEE 754: 0 + (-0) = 0 and -0 + (-0) = -0.", _add),
    ValueLaw("-(-x) = x", "exact", ("negate",),
             "floats; also -(x * c) = x * (-c), and the same for quotients",
             "Rounding is symmetric, and the sign of a product is a product of signs.", _negate),
    ValueLaw("x * 1 = x", "exact", ("multiply",),
             "floats; also x * (-1) = -x, |x| * |x| = x * x and (-x) * y = -(x * y)",
             "Both sides are the rounded value of the same real number.", _multiply),
    ValueLaw("x / 2^k = x * 2^-k", "exact", ("divide",),
             "2^k and 2^-k are not subnormal; also (-x) / y = -(x / y)",
             "Both sides are the rounded value of the same real number.", _divide),
    ValueLaw("|-x| = |x|", "exact", ("abs",), "floats; also ||x|| = |x|",
             "abs clears the sign, which negate flips.", _abs),
    ValueLaw("max(min(x, hi), lo) = min(max(x, lo), hi)", "exact", ("maximum", "minimum"),
             "lo <= hi are constants; also max(x, x) = x, max(x, -inf) = x",
             "Both clamp to [lo, hi]; NaN is propagated by both.", _extremum),
    ValueLaw("clamp(lo, x, hi) = min(max(x, lo), hi)", "exact", ("clamp",), "none",
             "The definition in operation_semantics.md; NaN is propagated.", _clamp),
    ValueLaw("x > y = y < x", "exact", ("compare",),
             "also x >= y = y <= x, (p = true) = p, and x = x of integers",
             "Both sides are false if an operand is NaN, in a total order both compare the same "
             "bits.", _compare),
    ValueLaw("not not x = x", "exact", ("not",),
             "also not (x = y) = (x != y), and of integers not (x < y) = (y <= x)",
             "Equality and inequality are complements for NaN too; integers are totally ordered.",
             _not),
    ValueLaw("x and x = x, x and 0 = 0, x xor x = 0", "exact", ("and", "or", "xor"),
             "predicates, and integers of at least 8 bits",
             "A Boolean algebra in each bit.", _bitwise),
    ValueLaw("select(p, x, x) = x", "exact", ("select",),
             "also for a constant predicate, select(p, true, false) = p, select(not p, x, y) = "
             "select(p, y, x), p being a comparison, too", "By cases of p.", _select),
)  # fmt: skip

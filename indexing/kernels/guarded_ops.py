"""Integer ops of HLO that are defined everywhere, as emitters guard those of `arith` that are not.

A quotient by 0 and a shift by as many bits as the type has are undefined in `arith`.  Such an op is
a term of its own, until a selection around it is the one by which HLO's op is emitted.

Source: XLA ``xla/mlir_hlo/mhlo/transforms/map_mhlo_to_scalar_op.h``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from hlo.shapes.element_type import ELEMENT_TYPES, dtype, range_of
from indexing.equivalence.values.laws.algebra import FormulaAlgebra
from indexing.equivalence.values.laws.integers import has_ring, value_of
from indexing.equivalence.values.laws.law import Application
from indexing.equivalence.values.terms.terms import Formula

_UNGUARDED: Final = "unguarded "
_SHIFTS: Final = ("shift-left", "shift-right-logical", "shift-right-arithmetic")
PARTIAL: Final = ("divide", "remainder", *_SHIFTS)
"""Ops whose `arith` op is not defined everywhere."""


def unguarded_op(algebra: FormulaAlgebra, opcode: str, one: Formula, other: Formula) -> Formula:
    """Return the integer op of `arith`; HLO's op if the second operand is one that defines it."""
    kind, value = one.type, value_of(other)
    if value is not None and _is_defined(opcode, value, kind):
        return algebra.apply(opcode, (), kind, [one, other])
    if opcode not in _SHIFTS and other.kind == "index" and other.index[0].bounds[0] > 0:
        return algebra.apply(opcode, (), kind, [one, other])
    return algebra.raw(Application(_UNGUARDED + opcode, (), kind, (one, other)))


def unguarded_conversion(algebra: FormulaAlgebra, number: Formula, kind: str) -> Formula:
    """Return the conversion of a float to an integer of `arith`, for which others are undefined."""
    return algebra.raw(Application(_UNGUARDED + "convert", (), kind, (number,)))


def _is_defined(opcode: str, value: int, kind: str) -> bool:
    if opcode in _SHIFTS:
        return 0 <= value < ELEMENT_TYPES[kind].bits
    return value not in (0, -1)


def recognise(algebra: FormulaAlgebra, term: Formula) -> Formula:
    """Return HLO's op for a selection by which it is emitted; else the term."""
    inner = _find_unguarded(term)
    if inner is None:
        return _sign_or_size(algebra, term)
    opcode = inner.head[0].removeprefix(_UNGUARDED)
    if opcode == "convert":
        (number,) = inner.arguments
        emitted = _guarded_conversion(algebra, number, inner.type)
        is_same = emitted is term
        return algebra.apply("convert", (), inner.type, [number]) if is_same else term
    one, other = inner.arguments
    if opcode in _SHIFTS:
        emitted = _guarded_shift(algebra, opcode, one, other)
    else:
        if other.kind != "apply" or other.head[0] != "select":
            return term
        other = other.arguments[2]
        emitted = _guarded_quotient(algebra, opcode, one, other)
    is_same = emitted is term
    return algebra.apply(opcode, (), one.type, [one, other]) if is_same else term


def _sign_or_size(algebra: FormulaAlgebra, term: Formula) -> Formula:
    """Return the sign or the absolute value of an integer for selections that are these."""
    if term.kind != "apply" or term.head[0] != "select" or not has_ring(term.type):
        return term
    kind, zero = term.type, algebra.table.constant(0, term.type)
    for x in term.arguments[1:]:
        negative = algebra.apply("negate", (), kind, [x])
        positive = _compare(algebra, "GE", x, zero)
        if algebra.apply("select", (), kind, [positive, x, negative]) is term:
            return algebra.apply("abs", (), kind, [x])
        if x.kind != "apply" or x.head[0] != "or":
            continue
        shifts = [t for t in x.arguments if t.kind == "apply" and "shift" in str(t.head[0])]
        for y in [t.arguments[0] for t in shifts]:
            if _emitted_sign(algebra, y) is term:
                return algebra.apply("sign", (), kind, [y])
    return term


def _emitted_sign(algebra: FormulaAlgebra, x: Formula) -> Formula:
    kind, constant = x.type, algebra.table.constant
    last = constant(ELEMENT_TYPES[kind].bits - 1, kind)
    sign = algebra.apply("shift-right-arithmetic", (), kind, [x, last])
    either = algebra.apply("or", (), kind, [sign, constant(1, kind)])
    zero = constant(0, kind)
    return _select(algebra)(_compare(algebra, "EQ", x, zero), zero, either)


def _find_unguarded(term: Formula) -> Formula | None:
    """Return the op that is not defined everywhere in up to three selections."""
    for _ in range(4):
        if term.kind != "apply":
            return None
        if str(term.head[0]).startswith(_UNGUARDED):
            return term
        if term.head[0] != "select":
            return None
        sides = [t for t in term.arguments[1:] if t.kind == "apply"]
        inner = [t for t in sides if _reaches(t)]
        if len(inner) != 1:
            return None
        term = inner[0]
    return None


def _reaches(term: Formula) -> bool:
    if str(term.head[0]).startswith(_UNGUARDED):
        return True
    return term.head[0] == "select" and any(
        t.kind == "apply" and _reaches(t) for t in term.arguments[1:]
    )


def _select(algebra: FormulaAlgebra) -> Callable[[Formula, Formula, Formula], Formula]:
    return lambda p, a, b: algebra.apply("select", (), a.type, [p, a, b])


def _compare(algebra: FormulaAlgebra, direction: str, one: Formula, other: Formula) -> Formula:
    attributes = ("direction", direction), ("type", "")
    return algebra.apply("compare", attributes, "pred", [one, other])


def _guarded_quotient(algebra: FormulaAlgebra, opcode: str, x: Formula, y: Formula) -> Formula:
    kind, select, constant = x.type, _select(algebra), algebra.table.constant
    limits = range_of(kind)
    assert limits is not None
    zero, one = constant(0, kind), constant(1, kind)
    all_ones = constant(limits[1] if limits[0] == 0 else -1, kind)
    by_zero = _compare(algebra, "EQ", y, zero)
    at_zero = all_ones if opcode == "divide" else x

    def raw(divisor: Formula) -> Formula:
        return unguarded_op(algebra, opcode, x, divisor)

    if limits[0] == 0:
        return select(by_zero, at_zero, raw(select(by_zero, one, y)))
    smallest = constant(limits[0], kind)
    both = [_compare(algebra, "EQ", x, smallest), _compare(algebra, "EQ", y, constant(-1, kind))]
    overflows = algebra.apply("and", (), "pred", both)
    either = algebra.apply("or", (), "pred", [by_zero, overflows])
    at_overflow = smallest if opcode == "divide" else zero
    return select(by_zero, at_zero, select(overflows, at_overflow, raw(select(either, one, y))))


def _guarded_conversion(algebra: FormulaAlgebra, x: Formula, kind: str) -> Formula:
    """Return a conversion of a float that saturates, and is 0 for NaN.

    A limit that the float's type does not have is rounded away from 0, where all floats below it
    are integers of the type.
    """
    select, limits = _select(algebra), range_of(kind)
    assert limits is not None
    term = algebra.raw(Application(_UNGUARDED + "convert", (), kind, (x,)))
    with np.errstate(over="ignore"):
        low, high = (algebra.table.constant(dtype(x.type).type(n), x.type) for n in limits)
    least, largest = (algebra.table.constant(n, kind) for n in limits)
    above = _compare(algebra, "GE", x, high)
    if not limits[0]:  # NaN is not above 0
        positive = _compare(algebra, "GT", x, low)
        return select(above, largest, select(positive, term, least))
    term = select(above, largest, select(_compare(algebra, "LE", x, low), least, term))
    return select(_compare(algebra, "NE", x, x), algebra.table.constant(0, kind), term)


def _guarded_shift(algebra: FormulaAlgebra, opcode: str, x: Formula, count: Formula) -> Formula:
    kind, constant = x.type, algebra.table.constant
    bits = ELEMENT_TYPES[kind].bits
    unsigned = "u" + kind[1:]
    number = algebra.apply("bitcast-convert", (), unsigned, [count]) if (
        count.type != unsigned) else count  # fmt: skip
    inside = _compare(algebra, "LT", number, constant(bits, unsigned))
    beyond = constant(0, kind)
    if opcode == "shift-right-arithmetic":
        beyond = algebra.apply(opcode, (), kind, [x, constant(bits - 1, kind)])
    return _select(algebra)(inside, unguarded_op(algebra, opcode, x, count), beyond)

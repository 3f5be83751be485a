"""Exact integer arithmetic of elementwise functions on affine expressions, by case distinction.

Division rounds towards zero. Comparisons, clamps and selections branch on a sign. A result is a
list of cases. A case is an expression with the constraints under which it is the value. The cases
of a result are disjoint and cover all points. Results do not wrap around: a caller must reject a
result that may leave `range_of` its type.

Source: XLA ``docs/operation_semantics.md``, "Div" ("truncates"), "Clamp", "Compare", "Select".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from hlo.shapes.element_type import ELEMENT_TYPES, range_of
from indexing.ops import numerics
from simplifier.constraints import Constraint
from simplifier.interval import Interval, contains, intersect
from simplifier.linear import Expr, constant

Cases: TypeAlias = list[tuple[Expr, tuple[Constraint, ...]]]
IntegerRule: TypeAlias = Callable[[Sequence[Expr]], "Cases | None"]
"""The cases of a result from the operands; None if the result is not affine."""

MAX_CASES: Final = 9
"""Limit on the number of cases of a value; beyond it, the value is not folded."""


def wrap_integer(value: int, element_type: str) -> int:
    """Return the integer of a type that is equal to `value` modulo ``2^bits``.

    >>> wrap_integer(200, "s8"), wrap_integer(-1, "u4"), wrap_integer(7, "s32")
    (-56, 15, 7)
    """
    limits = range_of(element_type)
    assert limits is not None
    return (value - limits[0]) % (1 << ELEMENT_TYPES[element_type].bits) + limits[0]


def clamp_cases(value: Expr, bounds: Interval) -> Cases:
    """``min(max(value, lower), upper)``.

    >>> from simplifier.linear import variable
    >>> for result, where in clamp_cases(variable("d0", 0, 9), (2, 9)):
    ...     print(result, *where)
    2 d0 in [0, 1]
    d0 d0 in [2, 9]
    """
    lower, upper = bounds
    smallest, largest = value.bounds
    if contains(bounds, value.bounds):
        return [(value, ())]
    return [
        *_where(constant(lower), value, (smallest, lower - 1)),
        *_where(value, value, bounds),
        *_where(constant(upper), value, (upper + 1, largest)),
    ]


def _where(result: Expr, value: Expr, bounds: Interval) -> Cases:
    """The case `result` where `value` is within `bounds`; no case if the bounds are disjoint."""
    low, high = intersect(bounds, value.bounds)
    return [(result, (Constraint(value, low, high),))] if low <= high else []


def _signs(value: Expr) -> tuple[Interval, Interval, Interval]:
    """Intervals of `value` below, at and above 0."""
    smallest, largest = value.bounds
    return (min(smallest, -1), -1), (0, 0), (1, max(largest, 1))


# ---------------------------------------------------------------- one rule per function


def sum_rule(x: Sequence[Expr]) -> Cases:
    """``x[0] + x[1]``."""
    return [(x[0] + x[1], ())]


def difference(x: Sequence[Expr]) -> Cases:
    """``x[0] − x[1]``."""
    return [(x[0] - x[1], ())]


def negation(x: Sequence[Expr]) -> Cases:
    """``−x[0]``."""
    return [(-x[0], ())]


def identity(x: Sequence[Expr]) -> Cases:
    """``x[0]``."""
    return [(x[0], ())]


def product(x: Sequence[Expr]) -> Cases | None:
    """``x[0] · x[1]``: affine only if one factor is a constant."""
    for factor, other in (x, tuple(reversed(x))):
        if factor.is_constant:
            return [(other * factor.constant, ())]
    return None


def quotient(x: Sequence[Expr]) -> Cases | None:
    """``x[0] / x[1]`` rounded towards zero; affine only if the divisor is a nonzero constant."""
    dividend, divisor = x
    if not divisor.is_constant or not divisor.constant:
        return None
    by = abs(divisor.constant)
    value = dividend if divisor.constant > 0 else -dividend
    return [
        *_where(-(-value // by), value, (min(value.bounds[0], -1), -1)),
        *_where(value // by, value, (0, max(value.bounds[1], 0))),
    ]


def remainder(x: Sequence[Expr]) -> Cases | None:
    """``x[0] − x[1] · trunc(x[0] / x[1])``; affine only if the divisor is a nonzero constant."""
    dividend, divisor = x
    if not divisor.is_constant or not divisor.constant:
        return None
    by = abs(divisor.constant)
    return [
        *_where(-(-dividend % by), dividend, (min(dividend.bounds[0], -1), -1)),
        *_where(dividend % by, dividend, (0, max(dividend.bounds[1], 0))),
    ]


def conjunction(x: Sequence[Expr]) -> Cases | None:
    """``x[0] ∧ x[1]``, bitwise: of two bits, or with a mask of the lowest bits."""
    if all(contains((0, 1), each.bounds) for each in x):
        return minimum(x)
    for mask, other in (x, tuple(reversed(x))):
        if mask.is_constant and mask.constant > 0 and not mask.constant & mask.constant + 1:
            return [(other % (mask.constant + 1), ())]
    return None


def disjunction(x: Sequence[Expr]) -> Cases | None:
    """``x[0] ∨ x[1]`` of two bits."""
    return maximum(x) if all(contains((0, 1), each.bounds) for each in x) else None


def exclusion(x: Sequence[Expr]) -> Cases | None:
    """``x[0] ⊕ x[1]`` of two bits."""
    return comparison("NE")(x) if all(contains((0, 1), each.bounds) for each in x) else None


def complement(x: Sequence[Expr]) -> Cases:
    """``−x[0] − 1``: every bit of ``x[0]`` inverted."""
    return [(-x[0] - 1, ())]


def negated_truth(x: Sequence[Expr]) -> Cases:
    """``1 − x[0]``: the other truth value."""
    return [(1 - x[0], ())]


def absolute(x: Sequence[Expr]) -> Cases:
    """``|x[0]|``."""
    return maximum([x[0], -x[0]])


def signum(x: Sequence[Expr]) -> Cases:
    """−1, 0 or 1: the sign of ``x[0]``."""
    signs = zip((-1, 0, 1), _signs(x[0]), strict=True)
    return [case for sign, where in signs for case in _where(constant(sign), x[0], where)]


def shift_right(x: Sequence[Expr]) -> Cases | None:
    """``⌊x[0] / 2^x[1]⌋`` for a constant number of bits, if no value is negative."""
    value, bits = x
    if value.bounds[0] < 0 or not bits.is_constant or not 0 <= bits.constant < 8:
        return None
    return [(value // (1 << bits.constant), ())]


def clamp_rule(x: Sequence[Expr]) -> Cases | None:
    """``min(max(x[1], x[0]), x[2])``; affine only for constant bounds."""
    low, value, high = x
    if not low.is_constant or not high.is_constant or low.constant > high.constant:
        return None
    return clamp_cases(value, (low.constant, high.constant))


def maximum(x: Sequence[Expr]) -> Cases:
    """``max(x[0], x[1])``."""
    below, same, above = _signs(x[0] - x[1])
    return [
        *_where(x[1], x[0] - x[1], below),
        *_where(x[0], x[0] - x[1], (same[0], above[1])),
    ]


def minimum(x: Sequence[Expr]) -> Cases:
    """``min(x[0], x[1]) = x[0] + x[1] − max(x[0], x[1])``."""
    return [(x[0] + x[1] - value, where) for value, where in maximum(x)]


_TRUTH: Final[Mapping[str, tuple[int, int, int]]] = {  # for a difference below, at and above 0
    "LT": (1, 0, 0),
    "LE": (1, 1, 0),
    "EQ": (0, 1, 0),
    "NE": (1, 0, 1),
    "GE": (0, 1, 1),
    "GT": (0, 0, 1),
}


def comparison(direction: str) -> IntegerRule:
    """Return the rule of ``x[0] direction x[1]``, whose value is 0 or 1."""

    def rule(x: Sequence[Expr]) -> Cases:
        difference = x[0] - x[1]
        below, same, above = _signs(difference)
        match _TRUTH[direction]:
            case (first, second, third) if first == second:
                parts = [(first, (below[0], 0)), (third, above)]
            case (first, second, third) if second == third:
                parts = [(first, below), (third, (0, above[1]))]
            case truths:
                parts = list(zip(truths, (below, same, above), strict=True))
        cases = [
            case for truth, sign in parts for case in _where(constant(truth), difference, sign)
        ]
        return [(cases[0][0], ())] if len({value for value, _ in cases}) == 1 else cases

    return rule


def truth(x: Sequence[Expr]) -> Cases:
    """``x[0] ≠ 0``, as a conversion to ``pred``."""
    if contains((0, 1), x[0].bounds):
        return identity(x)
    return comparison("NE")([x[0], constant(0)]) or []


def selection(x: Sequence[Expr]) -> Cases:
    """``x[1] if x[0] else x[2]``, for a predicate ``x[0]`` in ``[0, 1]``."""
    chosen = [*_where(x[1], x[0], (1, 1)), *_where(x[2], x[0], (0, 0))]
    return [(value, tuple([c for c in where if not c.is_true])) for value, where in chosen]


RULES: Final[Mapping[Any, IntegerRule]] = {
    np.add: sum_rule,
    np.subtract: difference,
    np.multiply: product,
    np.negative: negation,
    np.maximum: maximum,
    np.minimum: minimum,
    np.where: selection,
    np.bitwise_and: conjunction,
    np.bitwise_or: disjunction,
    np.bitwise_xor: exclusion,
    np.invert: complement,
    np.abs: absolute,
    numerics.sign: signum,
    numerics.divide: quotient,
    numerics.remainder: remainder,
    numerics.shift_arithmetic: shift_right,
    numerics.shift_logical: shift_right,
}
"""The rules of array functions; a function without rule is not folded."""

MODULAR: Final = frozenset([sum_rule, difference, negation, complement, identity, product])
"""The rules whose one case is also the value modulo ``2^bits`` of operands modulo ``2^bits``."""

_RULES_OF_KINDS: Final[Mapping[tuple[Any, str], IntegerRule | None]] = {
    (np.add, "pred"): disjunction,
    (np.invert, "pred"): negated_truth,
    (numerics.shift_arithmetic, "unsigned"): None,  # the highest bit counts as a sign
}


_ABSORBING: Final[Mapping[Any, Callable[[Interval], int]]] = {
    np.multiply: lambda limits: 0,
    np.bitwise_and: lambda limits: 0,
    np.bitwise_or: lambda limits: -1 if limits[0] < 0 else limits[1],  # all bits set
    np.minimum: lambda limits: limits[0],
    np.maximum: lambda limits: limits[1],
}


def absorbing(function: Any, element_type: str) -> int | None:
    """Return the integer with which a function has one value for every other argument, or None.

    No number of another type has this property: 0 times infinity is not 0.

    >>> absorbing(np.multiply, "s32"), absorbing(np.minimum, "u8"), absorbing(np.multiply, "f32")
    (0, 0, None)
    """
    limits = range_of(element_type)
    value = _ABSORBING.get(function)
    return None if limits is None or value is None else value(limits)


def rule_of(function: Any, element_type: str) -> IntegerRule | None:
    """Return the rule of an array function for values of one type; None if it is not folded."""
    kind = ELEMENT_TYPES[element_type].kind
    return _RULES_OF_KINDS.get((function, kind), RULES.get(function))

"""HLO's integer arithmetic on expressions, in cases: what an elementwise op makes of formulas.

Division rounds towards zero, and comparisons, clamps and selections depend on the sign of
something: a result is a list of cases, each an expression and the constraints under which it is the
value.  The cases of one result are disjoint and leave nothing out.  Results are not reduced to the
range of their type: a caller takes no result that may leave `range_of` it.

Source: XLA ``docs/operation_semantics.md``, "Div" ("truncates"), "Clamp", "Compare", "Select".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from hlo.modules.module import Instruction
from hlo.shapes.shape import ELEMENT_TYPES
from simplifier.constraints import Constraint
from simplifier.interval import Interval, contains, intersected
from simplifier.linear import Expr, constant

Cases: TypeAlias = list[tuple[Expr, tuple[Constraint, ...]]]
Rule: TypeAlias = Callable[[Instruction, Sequence[Expr]], "Cases | None"]

MOST_PIECES: Final = 9
"""So many cases of one value are kept apart; beyond, the value is not said as a formula."""


def range_of(element_type: str) -> Interval | None:
    """The numbers that an integer type holds; None for other types.

    >>> range_of("s8"), range_of("u4"), range_of("pred"), range_of("f32")
    ((-128, 127), (0, 15), (0, 1), None)
    """
    element = ELEMENT_TYPES[element_type]
    match element.kind:
        case "pred":
            return 0, 1
        case "integral":
            return -(1 << element.bits - 1), (1 << element.bits - 1) - 1
        case "unsigned":
            return 0, (1 << element.bits) - 1
    return None


def cut(value: Expr, bounds: Interval) -> Cases:
    """``min(max(value, lower), upper)``.

    >>> from simplifier.linear import variable
    >>> for result, where in cut(variable("d0", 0, 9), (2, 9)):
    ...     print(result, *where)
    2 d0 in [0, 1]
    d0 d0 in [2, 9]
    """
    lower, upper = bounds
    least, most = value.bounds
    if contains(bounds, value.bounds):
        return [(value, ())]
    return [
        *_where(constant(lower), value, (least, lower - 1)),
        *_where(value, value, bounds),
        *_where(constant(upper), value, (upper + 1, most)),
    ]


def _where(result: Expr, value: Expr, bounds: Interval) -> Cases:
    """`result` where `value` is within `bounds`: no case where it never is."""
    low, high = intersected(bounds, value.bounds)
    return [(result, (Constraint(value, low, high),))] if low <= high else []


def _signs(value: Expr) -> tuple[Interval, Interval, Interval]:
    """Below, at and above 0."""
    least, most = value.bounds
    return (min(least, -1), -1), (0, 0), (1, max(most, 1))


# ---------------------------------------------------------------- one rule an opcode


def _sum(_: Instruction, x: Sequence[Expr]) -> Cases:
    return [(x[0] + x[1], ())]


def _difference(_: Instruction, x: Sequence[Expr]) -> Cases:
    return [(x[0] - x[1], ())]


def _negation(_: Instruction, x: Sequence[Expr]) -> Cases:
    return [(-x[0], ())]


def _same(_: Instruction, x: Sequence[Expr]) -> Cases:
    return [(x[0], ())]


def _product(_: Instruction, x: Sequence[Expr]) -> Cases | None:
    """Affine only if one factor is a number."""
    for factor, other in (x, tuple(reversed(x))):
        if factor.is_constant:
            return [(other * factor.constant, ())]
    return None


def _quotient(_: Instruction, x: Sequence[Expr]) -> Cases | None:
    """Rounded towards zero; by a number that is not 0."""
    dividend, divisor = x
    if not divisor.is_constant or not divisor.constant:
        return None
    by = abs(divisor.constant)
    value = dividend if divisor.constant > 0 else -dividend
    return [
        *_where(-(-value // by), value, (min(value.bounds[0], -1), -1)),
        *_where(value // by, value, (0, max(value.bounds[1], 0))),
    ]


def _clamped(_: Instruction, x: Sequence[Expr]) -> Cases | None:
    """Between numbers; ``clamp(low, x, high)`` is ``min(max(x, low), high)``."""
    low, value, high = x
    if not low.is_constant or not high.is_constant or low.constant > high.constant:
        return None
    return cut(value, (low.constant, high.constant))


def _larger(_: Instruction, x: Sequence[Expr]) -> Cases:
    below, same, above = _signs(x[0] - x[1])
    return [
        *_where(x[1], x[0] - x[1], below),
        *_where(x[0], x[0] - x[1], (same[0], above[1])),
    ]


def _smaller(instruction: Instruction, x: Sequence[Expr]) -> Cases:
    return [(x[0] + x[1] - larger, where) for larger, where in _larger(instruction, x)]


_HOLDS: Final[Mapping[str, tuple[int, int, int]]] = {  # of what is below, at and above
    "LT": (1, 0, 0),
    "LE": (1, 1, 0),
    "EQ": (0, 1, 0),
    "NE": (1, 0, 1),
    "GE": (0, 1, 1),
    "GT": (0, 0, 1),
}


def _comparison(instruction: Instruction, x: Sequence[Expr]) -> Cases:
    difference = x[0] - x[1]
    holds = _HOLDS[instruction.attributes["direction"].text.strip()]
    return [
        case
        for held, sign in zip(holds, _signs(difference), strict=True)
        for case in _where(constant(held), difference, sign)
    ]


def _selection(_: Instruction, x: Sequence[Expr]) -> Cases:
    """Each case of a comparison is the number 0 or 1."""
    chosen = [*_where(x[1], x[0], (1, 1)), *_where(x[2], x[0], (0, 0))]
    return [(value, tuple([c for c in where if not c.is_true])) for value, where in chosen]


RULES: Final[Mapping[str, Rule]] = {
    "add": _sum,
    "clamp": _clamped,
    "compare": _comparison,
    "convert": _same,
    "divide": _quotient,
    "maximum": _larger,
    "minimum": _smaller,
    "multiply": _product,
    "negate": _negation,
    "select": _selection,
    "subtract": _difference,
}
"""What an elementwise op makes of expressions; None where that is no affine formula."""

"""Integer arithmetic of index maps: values by cases, with minima and maxima as atoms.

The rules are those of `indexing.ops.integer_rules`.  Minima, maxima and products stay expressions,
since isl or an enumeration decides about them; division, signs and comparisons branch.
`join_cases` makes one expression of all cases.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any, Final

import numpy as np

from indexing.ops import integer_rules, numerics
from indexing.ops.integer_rules import Cases, IntegerRule, comparison
from simplifier import maximum, minimum
from simplifier.constraints import Constraint
from simplifier.domain import narrow
from simplifier.exact.unions import point
from simplifier.linear import Expr, as_expr
from simplifier.unknown import Unknown

MAX_CASES: Final = 64
"""Limit on the number of cases of a value of an index map."""

MAX_BITS: Final = 10
"""Limit on the number of bits of operands that a bitwise function combines bit by bit."""


def _minimum(x: Sequence[Expr]) -> Cases:
    return [(minimum(x[0], x[1]), ())]


def _maximum(x: Sequence[Expr]) -> Cases:
    return [(maximum(x[0], x[1]), ())]


def _product(x: Sequence[Expr]) -> Cases:
    return [(x[0] * x[1], ())]


def _absolute(x: Sequence[Expr]) -> Cases:
    return [(maximum(x[0], -x[0]), ())]


def _clamp(x: Sequence[Expr]) -> Cases:
    return [(minimum(maximum(x[1], x[0]), x[2]), ())]


def _shift_left(x: Sequence[Expr]) -> Cases | None:
    value, bits = x
    if not bits.is_constant or not 0 <= bits.constant < 31:
        return None
    return [(value * (1 << bits.constant), ())]


def _quotient(x: Sequence[Expr]) -> Cases | None:
    return [(x[0] // x[1], ())] if _is_floor(x) else integer_rules.quotient(x)


def _remainder(x: Sequence[Expr]) -> Cases | None:
    return [(x[0] % x[1], ())] if _is_floor(x) else integer_rules.remainder(x)


def _is_floor(x: Sequence[Expr]) -> bool:
    """True if a division by a variable rounds down: nothing is negative, and no divisor is 0."""
    return not x[1].is_constant and x[0].bounds[0] >= 0 and x[1].bounds[0] >= 1


def _by_bits(
    function: Any, combine: Callable[[Expr, Expr], Expr]
) -> Callable[[str], IntegerRule | None]:
    """Return a bitwise function: that of `integer_rules`, or a sum over bits of small values."""

    def rule_of(element_type: str) -> IntegerRule | None:
        known = integer_rules.rule_of(function, element_type)

        def rule(x: Sequence[Expr]) -> Cases | None:
            cases = None if known is None else known(x)
            return _sum_of_bits(x, combine) if cases is None else cases

        return rule

    return rule_of


def _sum_of_bits(x: Sequence[Expr], combine: Callable[[Expr, Expr], Expr]) -> Cases | None:
    low = min(e.bounds[0] for e in x)
    count = max(e.bounds[1] for e in x).bit_length()
    if low < 0 or count > MAX_BITS:
        return None
    weights = [1 << k for k in range(count)]
    bits = [combine(*[e // weight % 2 for e in x]) * weight for weight in weights]
    return [(sum(bits, as_expr(0)), ())]


def _of(function: Any) -> Callable[[str], IntegerRule | None]:
    return lambda element_type: integer_rules.rule_of(function, element_type)


def _always(rule: IntegerRule) -> Callable[[str], IntegerRule | None]:
    return lambda element_type: rule


RULES: Final[Mapping[str, Callable[[str], IntegerRule | None]]] = {
    "add": _of(np.add),
    "sub": _of(np.subtract),
    "mul": _always(_product),
    "neg": _of(np.negative),
    "min": _always(_minimum),
    "max": _always(_maximum),
    "clamp": _always(_clamp),
    "abs": _always(_absolute),
    "sign": _of(numerics.sign),
    "div": _always(_quotient),
    "rem": _always(_remainder),
    "and": _by_bits(np.bitwise_and, minimum),
    "or": _by_bits(np.bitwise_or, maximum),
    "xor": _by_bits(np.bitwise_xor, lambda a, b: (a + b) % 2),
    "not": _of(np.invert),
    "shift_left": _always(_shift_left),
    "shift_right_arithmetic": _of(numerics.shift_arithmetic),
    "shift_right_logical": _of(numerics.shift_logical),
    **{name: _always(comparison(name.upper())) for name in ("eq", "ne", "lt", "le", "gt", "ge")},
}
"""The rules of JAX's primitives, by the element type of the operands."""


def combine_cases(rule: IntegerRule, operands: Sequence[Cases]) -> Cases | Unknown:
    """Return the cases of a function of values by cases; cases without points are left out.

    >>> from simplifier.linear import constant, variable
    >>> d = [(variable("d0", -3, 3), ())]
    >>> for value, where in combine_cases(integer_rules.quotient, [d, [(constant(2), ())]]):
    ...     print(value, *where)
    -((-d0) floordiv 2) d0 in [-3, -1]
    d0 floordiv 2 d0 in [0, 3]
    """
    cases: Cases = []
    for chosen in product(*operands):
        given = tuple([c for _, where in chosen for c in where])
        results = rule([value for value, _ in chosen])
        if results is None:
            return Unknown("has no affine rule for these operands")
        for value, where in results:
            every = tuple(dict.fromkeys((*given, *[c for c in where if not c.is_true])))
            if not every or not narrow((), every).is_known_empty:
                cases.append((value, every))
        if len(cases) > MAX_CASES:
            return Unknown(f"has more than {MAX_CASES} cases")
    if len({value for value, _ in cases}) == 1:
        return [(cases[0][0], ())]
    return cases


def is_always(cases: Cases, candidate: Expr) -> bool:
    """Return True if isl proves that a value by cases is the value of one expression.

    >>> from simplifier.linear import constant, variable
    >>> d = variable("d0", -3, 3)
    >>> by_cases = combine_cases(integer_rules.remainder, [[(d, ())], [(constant(2), ())]])
    >>> is_always(by_cases, d % 2)  # the remainder has the sign of the dividend
    False
    """
    for value, where in cases:
        gap = value - candidate
        if gap == as_expr(0):
            continue
        low, high = gap.bounds
        unequal = [[Constraint(gap, min(low, -1), -1)], [Constraint(gap, 1, max(high, 1))]]
        variables = tuple({v for e in (gap, *[c.expr for c in where]) for v in e.variables()})
        if point(variables, where, [unequal]) is not None:
            return False
    return True


def join_cases(cases: Cases) -> Expr:
    """Return one expression with the values of all cases, which are disjoint.

    A case counts less by more than all values differ where its constraints do not hold.

    >>> from simplifier.linear import variable
    >>> i, j = variable("i", 0, 4), variable("j", 0, 3)
    >>> snake = [(j, (Constraint(i % 2, 0, 0),)), (3 - j, (Constraint(i % 2, 1, 1),))]
    >>> value = join_cases(snake)
    >>> [value.value({i.as_variable: 1, j.as_variable: k}) for k in range(4)]
    [3, 2, 1, 0]
    """
    if len(cases) == 1:
        return cases[0][0]
    spread = max(v.bounds[1] for v, _ in cases) - min(v.bounds[0] for v, _ in cases)
    return maximum(*[value - _violation(where) * spread for value, where in cases])


def _violation(where: Sequence[Constraint]) -> Expr:
    """Return 0 where all constraints hold, and at least 1 elsewhere."""
    parts = [maximum(0, c.lower - c.expr, c.expr - c.upper) for c in where]
    return sum(parts[1:], parts[0]) if parts else as_expr(0)

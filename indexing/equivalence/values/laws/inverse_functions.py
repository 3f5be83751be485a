"""Laws of logarithms, roots and powers, and values of functions of constants."""

from __future__ import annotations

from typing import Final

from indexing.equivalence.values.laws.exact import NARROW, float_value, is_call
from indexing.equivalence.values.laws.law import Application, Constructors, ValueLaw
from indexing.equivalence.values.terms.functions import ROUNDED, evaluate, function_of, is_float
from indexing.equivalence.values.terms.terms import Formula

LOG_EXP: Final = "log(exp(x)) = x"
LOG_POWER: Final = "log(power(x, y)) = y * log(x)"
SQRT_SQUARE: Final = "sqrt(x * x) = |x|"
POWER: Final = "power(x, 2) = x * x"
EVALUATED: Final = "f(c) = constant"


def _log(algebra: Constructors, call: Application) -> Formula | None:
    (x,) = call.arguments
    if not is_float(call.element_type):
        return None
    if is_call(x, "exponential"):
        algebra.note({LOG_EXP})
        return x.arguments[0]
    if is_call(x, "power"):
        algebra.note({LOG_POWER})
        base, exponent = x.arguments
        log = algebra.apply("log", (), x.type, [base])
        return algebra.apply("multiply", (), x.type, [exponent, log])
    return None


def _sqrt(algebra: Constructors, call: Application) -> Formula | None:
    (x,) = call.arguments
    if is_call(x, "multiply") and len(x.arguments) == 2 and x.arguments[0] is x.arguments[1]:
        if is_float(call.element_type):
            algebra.note({SQRT_SQUARE})
            return algebra.apply("abs", (), call.element_type, [x.arguments[0]])
    return None


def _power(algebra: Constructors, call: Application) -> Formula | None:
    x, exponent = call.arguments
    value = float_value(exponent)
    kind = call.element_type
    if value is None or not is_float(kind):
        return None
    one = algebra.table.constant(1, kind)
    result = None
    if value == 1:
        result = x
    elif value == 0:
        result = one
    elif value == 0.5:
        result = algebra.apply("sqrt", (), kind, [x])
    elif value == -0.5:
        result = algebra.apply("rsqrt", (), kind, [x])
    elif value in (2, 3):
        result = algebra.apply("multiply", (), kind, [x] * int(value))
    elif value == -1:
        result = algebra.apply("divide", (), kind, [one, x])
    if result is not None:
        algebra.note({POWER})
    return result


def _constant_value(algebra: Constructors, call: Application) -> Formula | None:
    """Return the value of a function of constants, whose last bits may be other ones."""
    kind = call.element_type
    if not is_float(kind) or kind in NARROW or any(t.kind != "constant" for t in call.arguments):
        return None
    function = function_of(call.opcode, call.attributes, kind)
    if function is None or any(t.type != kind for t in call.arguments):
        return None
    algebra.note({EVALUATED})
    value = evaluate(function, [t.value for t in call.arguments], kind)
    term = algebra.table.constant(value, kind)
    algebra.computed.add(term)
    return term


FUNCTION_LAWS: Final = (
    ValueLaw(EVALUATED, "real", tuple(sorted(ROUNDED)), "f32 and f64; f(c) is rounded otherwise",
             "The value, with the rounding of this implementation.", _constant_value),
    ValueLaw(LOG_EXP, "real", ("log",), "floats", "Inverse functions of the reals.", _log),
    ValueLaw(SQRT_SQUARE, "real", ("sqrt",), "floats",
             "x * x may overflow or underflow.", _sqrt),
    ValueLaw(POWER, "real", ("power",), "constant exponents 0, 1, 2, 3, -1, 1/2 and -1/2",
             "The definition of powers in the reals.", _power),
)  # fmt: skip

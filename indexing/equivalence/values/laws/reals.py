"""Laws of floats that hold in the reals, up to the sign of zero, or by definition.

They are used only where formulas differ after the exact laws.  Products and quotients become
products of factors and reciprocals with one constant, sums become sums with one constant.
"""

from __future__ import annotations

import math
from typing import Final

from hlo.shapes.shape import ELEMENT_TYPES
from indexing.equivalence.values.laws.exact import (
    NARROW,
    float_value,
    is_call,
    is_float_abs,
    is_negative_choice,
)
from indexing.equivalence.values.laws.extrema import EXTREMUM_LAWS
from indexing.equivalence.values.laws.inverse_functions import FUNCTION_LAWS
from indexing.equivalence.values.laws.law import Application, Constructors, ValueLaw
from indexing.equivalence.values.laws.roundings import EXCESS_LAW
from indexing.equivalence.values.terms.functions import ROUNDED, evaluate, function_of, is_float
from indexing.equivalence.values.terms.terms import Formula

MAX_FACTORS: Final = 64
"""Limit on the operands of one sum or product."""

SUM: Final = "(x + y) + z = x + (y + z)"
ZERO: Final = "x + 0 = x"
MINUS_SUM: Final = "-(x + y) = (-x) + (-y)"
PRODUCT: Final = "(x * y) * z = x * (y * z)"
RECIPROCAL: Final = "x / y = x * (1 / y)"
INVERSE_POWER: Final = "1 / power(x, y) = power(x, -y)"
RSQRT: Final = "1 / sqrt(x) = rsqrt(x)"
EXPONENTIALS: Final = "exp(x) * exp(y) = exp(x + y)"
REDUCED_TOGETHER: Final = "all-reduce(x) + all-reduce(y) = all-reduce(x + y)"
ZERO_BRANCH: Final = "select(p, x, -0) = select(p, x, 0)"
COMPLEX_ONE: Final = "z * 1 = z"
ZERO_PRODUCT: Final = "x * 0 = 0"
MASKED: Final = "select(p, x, 0) * y = select(p, x * y, 0)"
NARROW_FUNCTION: Final = "f(x) in bf16 = convert(f(convert(x)))"


def _sum(algebra: Constructors, call: Application) -> Formula | None:
    """``Σ terms + constant``, nested sums and negated sums included."""
    kind = call.element_type
    if not is_float(kind) or kind in NARROW:
        return None
    terms, constants, uses = _addends(algebra, call)
    if len(terms) > MAX_FACTORS:
        return None
    constant = 0.0
    for value in constants:
        constant = _rounded_result(algebra, "add", kind, constant, value)
    count = len(constants)
    if constant:
        terms.append(_computed_constant(algebra, constant, kind, is_computed=count > 1))
    elif len(terms) < len(call.arguments):
        uses.add(ZERO)
    together = _reduce_together(algebra, terms)
    if len(together) < len(terms):
        terms, uses = together, uses | {REDUCED_TOGETHER}
    algebra.note(uses)
    if len(terms) < 2:
        return terms[0] if terms else algebra.table.constant(0, kind)
    return algebra.raw(Application("add", (), kind, tuple(terms)))


def _reduce_together(algebra: Constructors, terms: list[Formula]) -> list[Formula]:
    """Return terms in which sums among the same devices are one sum."""
    groups: dict[object, list[Formula]] = {}
    merged: list[Formula] = []
    for term in terms:
        array = term.array
        if array is None or array.kind != "opaque" or not _is_device_sum(array):
            merged.append(term)
        else:
            groups.setdefault((array.head, array.dims, term.index), []).append(term)
    for group in groups.values():
        arrays = [t.array for t in group if t.array is not None]
        sent, first = [array.arguments[0] for array in arrays], arrays[0]
        if len(group) > 1:
            sent = [algebra.apply("add", (), first.type, sent)]
        whole = algebra.table.array("opaque", first.head, first.type, first.dims,
                                    [*sent, first.arguments[1]])  # fmt: skip
        merged.append(algebra.table.read(whole, group[0].index))
    return merged


def _is_device_sum(array: Formula) -> bool:
    """Return True for a sum of one array among devices."""
    if array.head[0] not in ("all-reduce", "reduce-scatter") or len(array.arguments) != 2:
        return False
    combiner = array.arguments[1]
    places = [t.array.head[1] for t in combiner.arguments if t.array is not None]
    return is_call(combiner, "add") and sorted(places) == [0, 1]


def _addends(
    algebra: Constructors, call: Application
) -> tuple[list[Formula], list[float], set[str]]:
    """Return the terms and the constants of a nested sum, and the laws that flatten it."""
    terms: list[Formula] = []
    constants: list[float] = []
    uses: set[str] = set()
    pending = [(term, False) for term in call.arguments]
    while pending and len(terms) <= MAX_FACTORS:
        term, is_negative = pending.pop()
        value = float_value(term)
        if is_call(term, "negate"):
            pending.append((term.arguments[0], not is_negative))
        elif is_call(term, "add"):
            uses |= {SUM, MINUS_SUM} if is_negative else {SUM}
            pending += [(inner, is_negative) for inner in term.arguments]
        elif value is not None:
            constants.append(-value if is_negative else value)
        elif is_negative:
            terms.append(algebra.apply("negate", (), call.element_type, [term]))
        else:
            terms.append(term)
    return terms, constants, uses


def _computed_constant(
    algebra: Constructors, value: float, kind: str, *, is_computed: bool
) -> Formula:
    """Return a constant; if laws computed it, its rounding may differ from the program's."""
    term = algebra.table.constant(value, kind)
    if is_computed:
        algebra.computed.add(term)
    return term


def _rounded_result(algebra: Constructors, opcode: str, kind: str, x: float, y: float) -> float:
    """Return a sum or product of constants in the arithmetic of the type."""
    function = function_of(opcode, (), kind)
    assert function is not None
    values = [algebra.table.constant(value, kind).value for value in (x, y)]
    return float(evaluate(function, values, kind))


def _negate(algebra: Constructors, call: Application) -> Formula | None:
    (x,) = call.arguments
    if call.element_type in NARROW or not is_call(x, "add") or not is_float(x.type):
        return None
    algebra.note({MINUS_SUM})
    negated = [
        algebra.raw(Application("negate", (), x.type, (term,)))
        if is_call(term, "add")  # a part of a sum of more than `MAX_FACTORS` terms
        else algebra.apply("negate", (), x.type, [term])
        for term in x.arguments
    ]
    return algebra.apply("add", (), x.type, negated)


class _TooManyFactors(Exception):
    """A product has more than `MAX_FACTORS` factors: it stays nested."""


class _Factors:
    """The factors of a product: ``constant * Π numerators / Π denominators``."""

    def __init__(self, algebra: Constructors, kind: str) -> None:
        self.algebra, self.kind = algebra, kind
        self.constant, self.is_negative, self.is_computed = 1.0, False, False
        self.numerators: list[Formula] = []
        self.denominators: list[Formula] = []
        self.exponents: list[tuple[Formula, bool]] = []
        self.uses: set[str] = set()

    def add(self, term: Formula, inverse: bool) -> None:
        """Multiply by a term or divide by it."""
        pending = [(term, inverse, 0)]
        while pending:
            term, inverse, depth = pending.pop()
            value = float_value(term)
            if is_call(term, "multiply"):
                self.uses |= {PRODUCT} if depth or inverse else set()
                pending += [(each, inverse, depth + 1) for each in term.arguments]
            elif is_call(term, "divide"):
                left, right = term.arguments
                self.uses.add(RECIPROCAL)
                pending += [(left, inverse, depth + 1), (right, not inverse, depth + 1)]
            elif is_call(term, "negate") or is_negative_choice(term):
                self.is_negative = not self.is_negative
                negated = self.algebra.apply("negate", (), self.kind, [term])
                pending.append((negated, inverse, depth))
            elif value is not None and value != 0 and math.isfinite(value):
                self._constant(value, inverse)
            else:
                self._factor(term, inverse)

    def _constant(self, value: float, inverse: bool) -> None:
        self.is_computed |= inverse or self.constant != 1
        if inverse:
            value = _rounded_result(self.algebra, "divide", self.kind, 1.0, value)
        self.constant = _rounded_result(self.algebra, "multiply", self.kind, self.constant, value)

    def _factor(self, term: Formula, inverse: bool) -> None:
        if is_call(term, "exponential"):
            self.exponents.append((term.arguments[0], inverse))
        elif is_call(term, "power") and inverse:
            base, exponent = term.arguments
            self.uses.add(INVERSE_POWER)
            minus = self.algebra.apply("negate", (), self.kind, [exponent])
            self.numerators.append(self.algebra.apply("power", (), self.kind, [base, minus]))
        elif is_call(term, "sqrt", "rsqrt") and inverse:
            self.uses.add(RSQRT)
            other = "rsqrt" if is_call(term, "sqrt") else "sqrt"
            self.numerators.append(self.algebra.apply(other, (), self.kind, term.arguments))
        else:
            side = self.denominators if inverse else self.numerators
            if is_float_abs(term) and term in side:  # |x| * |x| = x * x
                side.remove(term)
                for _ in range(2):
                    self.add(term.arguments[0], inverse)
                return
            side.append(term)
        if len(self.numerators) + len(self.denominators) + len(self.exponents) > MAX_FACTORS:
            raise _TooManyFactors

    def product(self) -> Formula:
        """Return the product in its normal form."""
        algebra, kind = self.algebra, self.kind
        factors = (*self.numerators, *self.denominators, *[term for term, _ in self.exponents])
        is_total = not any(term.is_partial for term in factors)
        if is_total and any(float_value(term) == 0 for term in self.numerators):
            algebra.note({ZERO_PRODUCT})
            return algebra.table.constant(0, kind)
        masked = self._masked_product() if is_total else None
        if masked is not None:
            return masked
        terms = list(self.numerators)
        if self.exponents:
            terms.append(self._exponential())
        one = algebra.table.constant(1, kind)
        for term in self.denominators:
            terms.append(algebra.raw(Application("divide", (), kind, (one, term))))
        constant = -self.constant if self.is_negative else self.constant
        algebra.note(self.uses)
        if constant == -1 and terms:
            return algebra.raw(Application("negate", (), kind, (self._raw(terms),)))
        if constant != 1 or not terms:
            terms.append(_computed_constant(algebra, constant, kind, is_computed=self.is_computed))
        return self._raw(terms)

    def _masked_product(self) -> Formula | None:
        """Return a product with a factor that a predicate masks, as a masked product."""
        for place, term in enumerate(self.numerators):
            zeros = [float_value(t) == 0 for t in term.arguments[1:]]
            if not is_call(term, "select") or not any(zeros):
                continue
            self.uses.add(MASKED)
            p, *branches = term.arguments
            zero = self.algebra.table.constant(0, self.kind)
            del self.numerators[place]
            self.add(branches[zeros[0]], False)
            product = self.product()
            branches[zeros[0]], branches[not zeros[0]] = product, zero
            return self.algebra.apply("select", (), self.kind, [p, *branches])
        return None

    def _raw(self, terms: list[Formula]) -> Formula:
        if len(terms) == 1:
            return terms[0]
        return self.algebra.raw(Application("multiply", (), self.kind, tuple(terms)))

    def _exponential(self) -> Formula:
        algebra, kind = self.algebra, self.kind
        exponents = [algebra.apply("negate", (), kind, [x]) if inverse else x
                     for x, inverse in self.exponents]  # fmt: skip
        if len(exponents) > 1 or self.exponents[0][1]:
            self.uses.add(EXPONENTIALS)
        total = exponents[0]
        if len(exponents) > 1:
            total = algebra.apply("add", (), kind, exponents)
        return algebra.raw(Application("exponential", (), kind, (total,)))


def _product(algebra: Constructors, call: Application) -> Formula | None:
    kind = call.element_type
    if not is_float(kind) or kind in NARROW:
        return None
    factors = _Factors(algebra, kind)
    inverses = (False, call.opcode == "divide")
    if call.opcode == "divide" and float_value(call.arguments[0]) != 1:
        factors.uses.add(RECIPROCAL)
    if call.opcode != "divide" and any(is_call(t, "multiply", "divide") for t in call.arguments):
        factors.uses.add(PRODUCT)
    try:
        for number, term in enumerate(call.arguments):
            factors.add(term, inverses[min(number, 1)])
        return factors.product()
    except _TooManyFactors:
        return None


def _zero_branch(algebra: Constructors, call: Application) -> Formula | None:
    """``select(p, x, -0) = select(p, x, 0)``."""
    predicate, *branches = call.arguments
    values = [float_value(t) for t in branches]
    if not any(value == 0 and math.copysign(1, value) < 0 for value in values):
        return None
    algebra.note({ZERO_BRANCH})
    zero = algebra.table.constant(0, call.element_type)
    branches = [zero if value == 0 else t for value, t in zip(values, branches, strict=True)]
    return algebra.apply("select", (), call.element_type, [predicate, *branches])


def _complex_product(algebra: Constructors, call: Application) -> Formula | None:
    if ELEMENT_TYPES[call.element_type].kind == "complex":
        for x, other in (call.arguments, call.arguments[::-1]):
            if other.kind == "constant" and other.value == 1:
                algebra.note({COMPLEX_ONE})
                return x
    return None


def _narrow_function(algebra: Constructors, call: Application) -> Formula | None:
    if call.element_type not in NARROW or any(t.type not in NARROW for t in call.arguments):
        return None
    algebra.note({NARROW_FUNCTION})
    arguments = [algebra.apply("convert", (), "f32", [t]) for t in call.arguments]
    result = algebra.apply(call.opcode, call.attributes, "f32", arguments)
    return algebra.apply("convert", (), call.element_type, [result])


DEFINITIONS: Final = (
    ValueLaw(NARROW_FUNCTION, "definition", tuple(sorted(ROUNDED)), "bf16 and f16 by way of f32",
             "The rounding of these functions is defined by the implementation; XLA:CPU computes "
             "them in f32.", _narrow_function),
)  # fmt: skip
REAL_LAWS: Final = (
    ValueLaw(SUM, "real", ("add",), "floats", "Associativity in the reals.", _sum),
    ValueLaw(MINUS_SUM, "sign of zero", ("negate",), "floats",
             "Rounding is symmetric; 0 + 0 and -(-0 + -0) have other signs.", _negate),
    ValueLaw(PRODUCT, "real", ("multiply", "divide"), "floats",
             "Associativity in the reals, and x / y = x * (1 / y).", _product),
    ValueLaw(COMPLEX_ONE, "real", ("multiply",), "complex numbers",
             "Infinite parts of z make NaN in products by the zero part of 1.", _complex_product),
    ValueLaw(ZERO_BRANCH, "sign of zero", ("select",), "a constant -0 of floats",
             "0 and -0 are equal numbers.", _zero_branch),
    *FUNCTION_LAWS,
    *EXTREMUM_LAWS,
    EXCESS_LAW,
)  # fmt: skip

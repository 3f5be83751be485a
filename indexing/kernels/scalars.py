"""Scalar ops of kernels as formulas: `arith`, `math` and `complex` in the algebra of HLO's values.

Integers of MLIR have no sign, but terms have a type of HLO.  A term keeps the type that it was read
with, and an op that needs another sign gets the same bits in the type with that sign.  A byte that
holds a `pred` keeps the type `pred` until an op needs its number.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from hlo.shapes.element_type import ELEMENT_TYPES, dtype
from indexing.equivalence.values.laws.algebra import FormulaAlgebra
from indexing.equivalence.values.laws.integers import fits
from indexing.equivalence.values.terms.functions import is_float, is_integral
from indexing.equivalence.values.terms.terms import Formula
from indexing.kernels.attributes import element_name
from indexing.kernels.domains import NotHandled
from indexing.kernels.guarded_ops import PARTIAL, unguarded_conversion, unguarded_op
from indexing.kernels.ir import MlirOp, MlirType

_SAME: Final = {
    "addi": "add", "subi": "subtract", "muli": "multiply", "andi": "and", "ori": "or",
    "xori": "xor", "shli": "shift-left", "addf": "add", "subf": "subtract", "mulf": "multiply",
    "divf": "divide", "remf": "remainder", "maximumf": "maximum", "minimumf": "minimum",
    "negf": "negate", "add": "add", "sub": "subtract", "mul": "multiply", "div": "divide",
    "neg": "negate", "absf": "abs", "exp": "exponential", "expm1": "exponential-minus-one",
    "log": "log", "log1p": "log-plus-one", "sqrt": "sqrt", "rsqrt": "rsqrt", "cbrt": "cbrt",
    "sin": "sine", "cos": "cosine", "tan": "tan", "tanh": "tanh", "erf": "erf", "ceil": "ceil",
    "floor": "floor", "round": "round-nearest-afz", "roundeven": "round-nearest-even",
    "powf": "power", "pow": "power", "atan2": "atan2", "ctpop": "popcnt",
    "ctlz": "count-leading-zeros", "sinh": "sinh", "cosh": "cosh", "acos": "acos",
    "asin": "asin", "atan": "atan", "acosh": "acosh", "asinh": "asinh", "atanh": "atanh",
}  # fmt: skip
"""HLO's opcodes of functions for which the sign of integers is of no account."""
_SIGNED: Final = {
    "minsi": "minimum", "maxsi": "maximum", "shrsi": "shift-right-arithmetic", "absi": "abs",
    "divsi": "divide", "remsi": "remainder",
}  # fmt: skip
_UNSIGNED: Final = {
    "minui": "minimum", "maxui": "maximum", "shrui": "shift-right-logical", "divui": "divide",
    "remui": "remainder",
}  # fmt: skip
OPCODES: Final = {
    name: (opcode, sign)
    for table, sign in ((_SAME, ""), (_SIGNED, "s"), (_UNSIGNED, "u"))
    for name, opcode in table.items()
}
"""HLO's opcode of an op by its name without the dialect, with the sign that its integers have."""
_ORDERED: Final = {"oeq": "EQ", "une": "NE", "olt": "LT", "ole": "LE", "ogt": "GT", "oge": "GE"}
_NEGATED: Final = {"ult": "GE", "ule": "GT", "ugt": "LE", "uge": "LT"}
_INTEGER: Final = {"lt": "LT", "le": "LE", "gt": "GT", "ge": "GE"}
_DIRECTIONS: Final = {"eq": "EQ", "ne": "NE"}


def type_name(held: MlirType) -> str:
    """Return the type of HLO of an element, integers with a sign."""
    name = element_name(held.element)
    if name is None or held.element == "index":
        raise NotHandled(f"values of type {held.element}")
    return name


def with_sign(element_type: str, sign: str) -> str:
    """Return the integer type of the same width with this sign, ``s`` or ``u``."""
    return sign + element_type[1:] if is_integral(element_type) else element_type


class Scalars:
    """Scalar ops of a kernel as formulas."""

    def __init__(self, algebra: FormulaAlgebra) -> None:
        self.algebra, self.table = algebra, algebra.table
        self.true = self.table.constant(True, "pred")
        self.false = self.table.constant(False, "pred")

    # ------------------------------------------------------------ types

    def of_type(self, term: Formula, element_type: str) -> Formula:
        """Return the value with the same bits in a type of the same width."""
        if term.type == element_type:
            return term
        if term.kind == "constant" and element_type != "pred" and is_integral(term.type):
            return self.table.constant(
                np.asarray(term.value).view(dtype(element_type)), element_type
            )
        if term.type == "pred":  # a byte 0 or 1
            return self.algebra.apply("convert", (), element_type, [term])
        if term.kind == "index" and fits(term.index[0], element_type):
            return self.table.index(term.index[0], element_type)
        source = _narrower_integer(term)
        if source is not None and element_type != "pred":
            return self.algebra.apply("convert", (), element_type, [source])
        if element_type == "pred":
            return self._as_pred(term)
        if ELEMENT_TYPES[term.type].bits != ELEMENT_TYPES[element_type].bits:
            raise NotHandled(f"bits of {term.type} as {element_type}")
        return self.algebra.apply("bitcast-convert", (), element_type, [term])

    def _as_pred(self, term: Formula) -> Formula:
        if term.kind == "constant" and int(term.value) in (0, 1):
            return self.table.constant(bool(term.value), "pred")
        if term.kind == "apply" and term.head[0] == "convert" and term.arguments[0].type == "pred":
            return term.arguments[0]
        raise NotHandled(f"a byte of {term.type} as a predicate")

    def alike(self, terms: Sequence[Formula], sign: str = "") -> list[Formula]:
        """Return integers of one width in one type, of this sign if it is of account."""
        kinds = [t.type for t in terms]
        if not sign and len(set(kinds)) == 1:
            return list(terms)
        first = _common_type(terms)
        if first == "pred" and all(_is_bit(t) for t in terms):
            return [self.of_type(t, "pred") for t in terms]
        if first == "pred":
            return list(terms)
        target = with_sign(first, sign) if sign else first
        return [self.of_type(t, target) for t in terms]

    # ------------------------------------------------------------ ops

    def constant(self, op: MlirOp) -> Formula:
        """Return the value of a constant."""
        held = op.result.type
        if held.is_shaped or held.kind == "other":
            raise NotHandled(f"a constant of type {held}")
        return self.table.constant(op.attributes["value"], type_name(held))

    def function(self, op: MlirOp, terms: Sequence[Formula]) -> Formula:
        """Return the value of a scalar op, other than on indices."""
        dialect, _, name = op.name.partition(".")
        if name in ("cmpi", "cmpf"):
            return self._comparison(op, terms)
        if name == "select":
            condition, *sides = terms
            one, other = self.alike(sides)
            if condition.type != "pred" or one.type != other.type:
                raise NotHandled(f"a selection by {condition.type} of {one.type} and {other.type}")
            return self._apply("select", one.type, [condition, one, other])
        if op.name == "math.fma":
            product = self._apply("multiply", terms[0].type, terms[:2])
            return self._apply("add", terms[0].type, [product, terms[2]])
        if dialect == "complex" and name in ("re", "im", "abs"):
            opcode = {"re": "real", "im": "imag", "abs": "abs"}[name]
            return self._apply(opcode, type_name(op.result.type), terms)
        if op.name == "complex.create":
            return self._apply("complex", type_name(op.result.type), terms)
        if name in _CASTS:
            return self._cast(name, terms[0], op)
        if name not in OPCODES or dialect not in ("arith", "math", "complex"):
            raise NotHandled(f"`{op.name}` has no rule")
        opcode, sign = OPCODES[name]
        if op.result.type.element == "i1" and opcode not in ("and", "or", "xor"):
            raise NotHandled(f"`{op.name}` of i1")
        return self._same_type(opcode, self.alike(terms, sign))

    def _same_type(self, opcode: str, terms: Sequence[Formula]) -> Formula:
        """Return a function whose result has the type of the operands."""
        kind = terms[0].type
        if opcode == "xor" and self.true in terms and kind == "pred":
            (other,) = [t for t in terms if t is not self.true] or [self.true]
            return self._apply("not", "pred", [other])
        if kind == "pred" and opcode not in ("and", "or", "xor", "not"):
            terms = [self.of_type(t, "s8") for t in terms]
            kind = "s8"
        if opcode in PARTIAL and is_integral(kind):
            return unguarded_op(self.algebra, opcode, *terms)
        return self._apply(opcode, kind, terms)

    def _apply(self, opcode: str, element_type: str, terms: Sequence[Formula]) -> Formula:
        return self.algebra.apply(opcode, (), element_type, terms)

    def compare(self, direction: str, one: Formula, other: Formula) -> Formula:
        """Return HLO's comparison in this direction."""
        attributes = ("direction", direction), ("type", "")
        return self.algebra.apply("compare", attributes, "pred", [one, other])

    def _comparison(self, op: MlirOp, terms: Sequence[Formula]) -> Formula:
        predicate: str = op.attributes["predicate"]
        if op.name == "arith.cmpf":
            return self._of_floats(predicate, *terms)
        if predicate in _DIRECTIONS:
            one, other = self.alike(terms)
            if one.type == "pred":
                return self._equal_preds(predicate, one, other)
            return self.compare(_DIRECTIONS[predicate], one, other)
        if terms[0].type == terms[1].type == "pred" and predicate[0] == "s":
            raise NotHandled("a signed comparison of predicates")
        one, other = self.alike(terms, predicate[0])
        return self.compare(_INTEGER[predicate[1:]], one, other)

    def _equal_preds(self, predicate: str, one: Formula, other: Formula) -> Formula:
        unequal = self._apply("xor", "pred", [one, other])
        for term, rest in ((one, other), (other, one)):
            if term is self.false:
                unequal = rest
            elif term is self.true:
                unequal = self._apply("not", "pred", [rest])
        return unequal if predicate == "ne" else self._apply("not", "pred", [unequal])

    def _of_floats(self, predicate: str, one: Formula, other: Formula) -> Formula:
        if predicate in _ORDERED:
            return self.compare(_ORDERED[predicate], one, other)
        if predicate in _NEGATED:
            return self._apply("not", "pred", [self.compare(_NEGATED[predicate], one, other)])
        if predicate in ("true", "false"):
            return self.true if predicate == "true" else self.false
        if predicate in ("uno", "ord"):
            sides = [self.compare("NE", term, term) for term in dict.fromkeys((one, other))]
            either = sides[0] if len(sides) == 1 else self._apply("or", "pred", sides)
            return either if predicate == "uno" else self._apply("not", "pred", [either])
        if predicate in ("one", "ueq") and _is_infinity(other) and _is_size(one):
            finite = self._apply("is-finite", "pred", one.arguments)
            return finite if predicate == "one" else self._apply("not", "pred", [finite])
        sides = [self.compare(direction, one, other) for direction in ("LT", "GT")]
        either = self._apply("or", "pred", sides)  # `one`, of which `ueq` is the negation
        return either if predicate == "one" else self._apply("not", "pred", [either])

    def _cast(self, name: str, term: Formula, op: MlirOp) -> Formula:
        target = type_name(op.result.type)
        if name == "bitcast":
            return self.of_type(term, target) if is_integral(target) and is_integral(
                term.type) else self._apply("bitcast-convert", target, [term])  # fmt: skip
        if target == "pred" or term.type == "pred":
            return self._cast_pred(name, term, target, op.operands[0].type.element)
        if name in ("extf", "truncf"):
            return self._apply("convert", target, [term])
        sign = {"extui": "u", "extsi": "s", "sitofp": "s", "uitofp": "u"}.get(name, "")
        if sign:
            return self._apply("convert", target, [self.of_type(term, with_sign(term.type, sign))])
        if name == "trunci":
            return self._apply("convert", with_sign(target, term.type[0]), [term])
        return unguarded_conversion(self.algebra, term, with_sign(target, _TO_INTEGER[name]))

    def _cast_pred(self, name: str, term: Formula, target: str, source: str) -> Formula:
        """Return a cast from or to `i1`, or of a byte that holds a `pred`."""
        if term.type == "pred":
            if name == "extui" and target == "s8":
                return term  # the byte of the pred
            if name in ("trunci", "extui") and target == "pred":
                return term
            is_byte = source != "i1"  # 0 or 1, which is not negative
            if name in ("extui", "uitofp") or (is_byte and name in ("extsi", "sitofp")):
                return self._apply("convert", target, [term])
            raise NotHandled(f"`arith.{name}` of a predicate")
        if name == "trunci":
            one = self.table.constant(1, term.type)
            bit = self._apply("and", term.type, [term, one])
            return self.compare("NE", bit, self.table.constant(0, term.type))
        raise NotHandled(f"`arith.{name}` to i1")


_CASTS: Final = frozenset(
    [
        *("extui", "extsi", "trunci", "extf", "truncf", "sitofp", "uitofp", "fptosi", "fptoui"),
        "bitcast",
    ]
)


_TO_INTEGER: Final = {"fptosi": "s", "fptoui": "u"}


def _is_infinity(term: Formula) -> bool:
    return term.kind == "constant" and is_float(term.type) and float(term.value) == math.inf


def _is_size(term: Formula) -> bool:
    """Return True for the absolute value of a real number."""
    return term.kind == "apply" and term.head[0] == "abs" and is_float(term.arguments[0].type)


def _narrower_integer(term: Formula) -> Formula | None:
    """Return the narrower integer whose value an integer term has in more bits, if it is one."""
    if term.kind != "apply" or term.head[0] != "convert" or not is_integral(term.type):
        return None
    (source,) = term.arguments
    kind = ELEMENT_TYPES[source.type]
    is_narrow = kind.bits < ELEMENT_TYPES[term.type].bits
    return source if is_narrow and kind.kind in ("integral", "unsigned", "pred") else None


def _common_type(terms: Sequence[Formula]) -> str:
    """Return the type of the first term that has one of its own; a constant takes any."""
    own = [t.type for t in terms if t.kind not in ("constant", "index")]
    numbers = [kind for kind in own if kind != "pred"]
    bits = ["pred"] if "pred" in own and all(_is_bit(t) for t in terms) else []
    others = [t.type for t in terms if t.type != "pred"]
    return [*numbers, *bits, *others, terms[0].type][0]


def _is_bit(term: Formula) -> bool:
    return term.type == "pred" or (term.kind == "constant" and int(term.value) in (0, 1))

"""Elementwise ops: element i of the result needs element i of each operand.

Most are a row of a table: the opcode, the formula, how NumPy says it, and which element types it
takes. Those with attributes, with scalar operands or with a result type of its own are classes.

Source: XLA ``docs/operation_semantics.md``; ``xla/service/shape_inference.cc``,
``InferUnaryOpShape`` and ``InferBinaryOpShape``, for the element types.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from hlo.ops.attributes import enum
from hlo.ops.op import HOLDS, Fault, Op, Shape, attribute, constraint, op
from hlo.ops.unify import PartialShape, Unranked, same_shape
from hlo.shapes.shape import ELEMENT_TYPES, AnyShape
from indexing.maps.indexing_map import IndexingMap
from indexing.ops import integer_rules, numerics
from indexing.ops.base import Array, BinaryOp, Entry, MappedOp, UnaryOp
from indexing.ops.element import ElementRule, ElementwiseRule
from indexing.ops.functions import ScalarFunction

PRED = ("pred",)
INTEGERS = ("integral", "unsigned")
FLOATS = ("floating",)
COMPLEX = ("complex",)
BITS = (*PRED, *INTEGERS)
REALS = (*INTEGERS, *FLOATS)
ANALYTIC = (*FLOATS, *COMPLEX)
NUMBERS = (*REALS, *COMPLEX)
ANY = (*PRED, *NUMBERS)

_TYPICAL = {
    "pred": "pred",
    "integral": "s16",
    "unsigned": "u8",
    "floating": "f32",
    "complex": "c64",
}
_PARTS = {"c64": "f32", "c128": "f64"}  # the type of the real and imaginary part
_WHOLES = {part: whole for whole, part in _PARTS.items()}


def same(element_type: str) -> str:
    """The result has the operands' type."""
    return element_type


def part(element_type: str) -> str:
    """The result has the type of the real part."""
    return _PARTS.get(element_type, element_type)


def whole(element_type: str) -> str:
    """The result has the complex type whose parts are operands."""
    return _WHOLES[element_type]


def pred(element_type: str) -> str:
    """The result is true or false."""
    return "pred"


def type_fault(opcode: str, takes: tuple[str, ...], shape: Shape, number: int) -> Fault:
    """The fault of an operand whose element type the op does not take."""
    kind = ELEMENT_TYPES[shape.element_type].kind
    if kind in takes:
        return HOLDS
    names = ", ".join("signed" if name == "integral" else name for name in takes)
    return Fault(f"operand {number} is {shape.element_type}; {opcode} takes {names}", number)


def dims_fault(shapes: tuple[Shape, ...], number: int, like: int) -> Fault:
    """The fault of operand `number` having other dimensions than operand `like`."""
    if shapes[number].dims == shapes[like].dims:
        return HOLDS
    ours, theirs = dims_text(shapes[number]), dims_text(shapes[like])
    label = f"operand {number} is {ours}, operand {like} is {theirs}"
    return Fault(label, number, "HLO broadcasts nothing by itself: write a broadcast instruction")


def dims_text(shape: Shape) -> str:
    """The dimensions as HLO text."""
    return f"[{','.join(map(str, shape.dims))}]"


def _unranked(op: Op, *operands: Any) -> PartialShape:
    """The result for operands of unknown rank: its shape is theirs in all but the element type."""
    known = all(getattr(operand, "element_type", "") for operand in operands)
    found: PartialShape = op.infer_shape(*operands) if known else Unranked()
    return found


class ElementwiseOp(MappedOp):
    """An op whose result has at each index a function of the operands' elements at this index."""

    __slots__ = ()

    @property
    def function(self) -> ScalarFunction:
        """What is done with the elements: the kernel, unless the op has a better name for it."""
        return ScalarFunction.of(self.kernel, self.opcode.replace("-", "_"))

    def element(self, out: Shape, *operands: Shape) -> ElementRule:
        return ElementwiseRule(self.function)


class UnaryElementwise(ElementwiseOp, UnaryOp):
    """``out[i] = function(operand[i])``."""

    __slots__ = ()
    takes: ClassVar[tuple[str, ...]] = ANY

    def infer_unranked(self, *operands: PartialShape) -> PartialShape:
        return _unranked(self, *operands)

    @constraint("C1", "the op is defined for the element type of the operand")
    def takes_type(self, operand: Shape) -> Fault:
        return type_fault(self.opcode, self.takes, operand, 0)

    def infer_shape(self, operand: Shape) -> AnyShape:
        return operand.with_layout(None)

    def output_to_input(self, out: Shape, operand: Shape) -> Entry:
        return IndexingMap.identity(out)


class BinaryElementwise(ElementwiseOp, BinaryOp):
    """``out[i] = function(left[i], right[i])``."""

    __slots__ = ()
    takes: ClassVar[tuple[str, ...]] = ANY
    types: ClassVar[tuple[str, ...]] = ("T", "T")

    def unified(self, *operands: PartialShape) -> Sequence[PartialShape]:
        types = [t for s in operands if (t := getattr(s, "element_type", ""))]
        typed = [Unranked(types[0]) if s == Unranked() and types else s for s in operands]
        return same_shape(*typed)

    def infer_unranked(self, *operands: PartialShape) -> PartialShape:
        return _unranked(self, *operands)

    @constraint("C1", "the op is defined for the element type of the operands")
    def takes_types(self, left: Shape, right: Shape) -> Fault:
        return type_fault(self.opcode, self.takes, left, 0)

    @constraint("C2", "the operands have the same dimensions")
    def same_dims(self, left: Shape, right: Shape) -> Fault:
        return dims_fault((left, right), 1, like=0)

    def infer_shape(self, left: Shape, right: Shape) -> Shape:
        return left.with_layout(None)

    def output_to_input(self, out: Shape, left: Shape, right: Shape) -> tuple[Entry, Entry]:
        return IndexingMap.identity(out), IndexingMap.identity(out)


# ---------------------------------------------------------------- the table


@dataclass(frozen=True, slots=True)
class Row:
    """An elementwise op without attributes.

    Attributes:
        opcode: as in HLO text.
        formula: element i of the result, from the operands' elements x (and y).
        function: the same on arrays.
        takes: kinds of element types.
        gives: the element type of the result from that of the operands.
    """

    opcode: str
    formula: str
    function: Callable[..., Any]
    takes: tuple[str, ...]
    gives: Callable[[str], str] = same

    def samples(self, operands: str) -> list[str]:
        """One for each kind of element, a scalar and an empty one."""
        first = _TYPICAL[self.takes[0]]
        shapes = [(_TYPICAL[kind], "[2,3]") for kind in self.takes]
        return [
            f"{self.gives(kind)}{sizes} {self.opcode}"
            f"({', '.join(f'{kind}{sizes} {p}' for p in operands)})"
            for kind, sizes in [*shapes, (first, "[]"), (first, "[0,3]")]
        ]

    def register(self, base: type[Op], operands: str) -> None:
        """Makes a class of this row and registers it."""
        name = "".join(word.capitalize() for word in self.opcode.split("-"))
        body = {
            "__doc__": f"``out[i] = {self.formula}``, of the operands' elements i.",
            "__module__": __name__,
            "row": self,
            "takes": self.takes,
        }
        op(self.opcode, samples=self.samples(operands))(type(name, (base,), body))


class TableOp(ElementwiseOp):
    """An op from the table."""

    __slots__ = ()
    row: ClassVar[Row]

    @property
    def function(self) -> ScalarFunction:
        return ScalarFunction.of(self.row.function)

    def infer_shape(self, *operands: Shape) -> Shape:
        first = operands[0]
        return first.with_element_type(self.row.gives(first.element_type)).with_layout(None)

    def kernel(self, *operands: Array) -> Array:
        with np.errstate(all="ignore"):
            return numerics.on_plain(self.row.function, *operands)


class UnaryRow(TableOp, UnaryElementwise):
    """An op with one operand from the table."""

    __slots__ = ()


class BinaryRow(TableOp, BinaryElementwise):
    """An op with two operands from the table."""

    __slots__ = ()


# fmt: off
_UNARY = [
    #   opcode                   formula                   function                types
    Row("abs",                   "|x|",                    np.abs,                 NUMBERS, part),
    Row("acos",                  "arccos(x)",              np.arccos,              ANALYTIC),
    Row("acosh",                 "arcosh(x)",              np.arccosh,             ANALYTIC),
    Row("asin",                  "arcsin(x)",              np.arcsin,              ANALYTIC),
    Row("asinh",                 "arsinh(x)",              np.arcsinh,             ANALYTIC),
    Row("atan",                  "arctan(x)",              np.arctan,              ANALYTIC),
    Row("atanh",                 "artanh(x)",              np.arctanh,             ANALYTIC),
    Row("cbrt",                  "x^(1/3)",                numerics.cbrt,          ANALYTIC),
    Row("ceil",                  "⌈x⌉",                    np.ceil,                FLOATS),
    Row("cosine",                "cos(x)",                 np.cos,                 ANALYTIC),
    Row("cosh",                  "cosh(x)",                np.cosh,                ANALYTIC),
    Row("count-leading-zeros",   "leading zeros of x",     numerics.leading_zeros, INTEGERS),
    Row("erf",                   "erf(x)",                 numerics.erf,           FLOATS),
    Row("exponential",           "e^x",                    np.exp,                 ANALYTIC),
    Row("exponential-minus-one", "e^x − 1",                np.expm1,               ANALYTIC),
    Row("floor",                 "⌊x⌋",                    np.floor,               FLOATS),
    Row("is-finite",             "x is finite",            np.isfinite,            FLOATS, pred),
    Row("log",                   "ln x",                   np.log,                 ANALYTIC),
    Row("log-plus-one",          "ln(x + 1)",              np.log1p,               ANALYTIC),
    Row("logistic",              "1 / (1 + e^−x)",         numerics.logistic,      ANALYTIC),
    Row("negate",                "−x",                     np.negative,            NUMBERS),
    Row("not",                   "¬x, bit by bit",         np.invert,              BITS),
    Row("popcnt",                "one bits of x",          numerics.population,    INTEGERS),
    Row("real",                  "Re x",                   np.real,                ANALYTIC, part),
    Row("round-nearest-afz",     "round(x), ties outward", numerics.round_away,    FLOATS),
    Row("round-nearest-even",    "round(x), ties to even", np.rint,                FLOATS),
    Row("rsqrt",                 "1 / √x",                 numerics.rsqrt,         ANALYTIC),
    Row("sign",                  "x / |x|, or 0",          numerics.sign,          NUMBERS),
    Row("sine",                  "sin(x)",                 np.sin,                 ANALYTIC),
    Row("sinh",                  "sinh(x)",                np.sinh,                ANALYTIC),
    Row("sqrt",                  "√x",                     np.sqrt,                ANALYTIC),
    Row("tan",                   "tan(x)",                 np.tan,                 ANALYTIC),
    Row("tanh",                  "tanh(x)",                np.tanh,                ANALYTIC),
]

_BINARY = [
    #   opcode                    formula                function                   types
    Row("add",                    "x + y",               np.add,                    ANY),
    Row("and",                    "x ∧ y, bit by bit",   np.bitwise_and,            BITS),
    Row("atan2",                  "angle of (y, x)",     numerics.angle,            ANALYTIC),
    Row("complex",                "x + y·√−1",           numerics.complex_number,   FLOATS, whole),
    Row("divide",                 "x / y",               numerics.divide,           NUMBERS),
    Row("maximum",                "max(x, y)",           np.maximum,                ANY),
    Row("minimum",                "min(x, y)",           np.minimum,                ANY),
    Row("mulhi",                  "upper half of x · y", numerics.high_product,     INTEGERS),
    Row("multiply",               "x · y",               np.multiply,               ANY),
    Row("or",                     "x ∨ y, bit by bit",   np.bitwise_or,             BITS),
    Row("power",                  "x^y",                 numerics.power,            NUMBERS),
    Row("remainder",              "x − y·trunc(x / y)",  numerics.remainder,        REALS),
    Row("shift-left",             "x · 2^y",             numerics.shift_left,       INTEGERS),
    Row("shift-right-arithmetic", "⌊x / 2^y⌋",           numerics.shift_arithmetic, INTEGERS),
    Row("shift-right-logical",    "the same, unsigned",  numerics.shift_logical,    INTEGERS),
    Row("subtract",               "x − y",               np.subtract,               NUMBERS),
    Row("xor",                    "x ⊕ y, bit by bit",   np.bitwise_xor,            BITS),
]
# fmt: on

for _row in _UNARY:
    _row.register(UnaryRow, "x")
for _row in _BINARY:
    _row.register(BinaryRow, "xy")


# ---------------------------------------------------------------- ops with attributes


_COMPARISONS = {
    "EQ": ("==", np.equal),
    "NE": ("!=", np.not_equal),
    "GE": (">=", np.greater_equal),
    "GT": (">", np.greater),
    "LE": ("<=", np.less_equal),
    "LT": ("<", np.less),
}


@op(
    "compare",
    samples=[
        "pred[2,3] compare(f32[2,3] p, f32[2,3] q), direction=LT",
        "pred[5] compare(f32[5] p, f32[5] q), direction=GE, type=TOTALORDER",
        "pred[] compare(u8[] p, u8[] q), direction=NE, type=UNSIGNED",
    ],
)
class Compare(BinaryElementwise):
    """``out[i] = left[i] direction right[i]``."""

    direction: str = attribute(enum(*_COMPARISONS))
    type: str = attribute(enum("", "FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED"), default="")

    @property
    def function(self) -> ScalarFunction:
        rule, sign = integer_rules.comparison(self.direction), _COMPARISONS[self.direction][0]
        if self.type == "TOTALORDER":
            return ScalarFunction("compare", "call", self.kernel, rule)
        return ScalarFunction(sign, "infix", self.kernel, rule)

    def infer_shape(self, left: Shape, right: Shape) -> Shape:
        return left.with_element_type("pred").with_layout(None)

    def kernel(self, left: Array, right: Array) -> Array:
        if self.type == "TOTALORDER" and not numerics.is_integer(left):
            left, right = numerics.total_order(left), numerics.total_order(right)
        with np.errstate(invalid="ignore"):
            return np.asarray(_COMPARISONS[self.direction][1](left, right))


@op("imag", samples=["f32[2,3] imag(c64[2,3] p)", "f32[5] imag(f32[5] p)"])
class Imag(UnaryElementwise):
    """``out[i] = Im operand[i]``: 0 for real numbers, of which nothing is read."""

    takes: ClassVar[tuple[str, ...]] = ANALYTIC

    def element(self, out: Shape, *operands: Shape) -> ElementRule:
        return ElementwiseRule(self.function, reads_nothing=operands[0].element_type not in _PARTS)

    def infer_shape(self, operand: Shape) -> Shape:
        return operand.with_element_type(part(operand.element_type)).with_layout(None)

    def output_to_input(self, out: Shape, operand: Shape) -> Entry:
        return IndexingMap.identity(out) if operand.element_type in _PARTS else ()

    def kernel(self, operand: Array) -> Array:
        return np.imag(operand)

"""Elementwise ops: element i of the result needs element i of each operand.

Most ops are a row of a table: the opcode, the formula, the NumPy function and the accepted element
types. Ops with attributes or with a special result type are classes.

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
from indexing.ops.base import Array, BinaryOp, MappedOp, OperandMaps, UnaryOp
from indexing.ops.element import DecidedRead, ElementRule, ElementwiseRule, Work
from indexing.ops.functions import CHOOSING, ScalarFunction, function_on

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
REAL_TYPES = {"c64": "f32", "c128": "f64"}  # of the real and imaginary part


def same(element_type: str) -> str:
    """The element type itself."""
    return element_type


def real(element_type: str) -> str:
    """The type of the real part of a number of this type."""
    return REAL_TYPES.get(element_type, element_type)


def pred(element_type: str) -> str:
    """The type pred."""
    return "pred"


def type_fault(opcode: str, takes: tuple[str, ...], shape: Shape, number: int) -> Fault:
    """The fault of an operand whose element type the op does not accept."""
    kind = ELEMENT_TYPES[shape.element_type].kind
    if kind in takes:
        return HOLDS
    names = ", ".join("signed" if name == "integral" else name for name in takes)
    return Fault(f"operand {number} is {shape.element_type}; {opcode} accepts {names}", number)


def dims_fault(shapes: tuple[Shape, ...], number: int, like: int) -> Fault:
    """The fault of operand `number` if its dimensions differ from those of operand `like`."""
    if shapes[number].dims == shapes[like].dims:
        return HOLDS
    ours, theirs = dims_text(shapes[number]), dims_text(shapes[like])
    label = f"operand {number} is {ours}, operand {like} is {theirs}"
    return Fault(label, number, "add a broadcast instruction: HLO does not broadcast implicitly")


def dims_text(shape: Shape) -> str:
    """The dimensions of a shape as HLO text."""
    return f"[{','.join(map(str, shape.dims))}]"


def _unranked_result(op: Op, *operands: Any) -> PartialShape:
    """The result shape for operands of unknown rank, which differs only in the element type."""
    is_typed = all(getattr(operand, "element_type", "") for operand in operands)
    shape: PartialShape = op.infer_shape(*operands) if is_typed else Unranked()
    return shape


class ElementwiseOp(MappedOp):
    """An op that applies a scalar function to the operand elements at each index.

    Class attributes:
        is_exact: floating-point values are never rounded.
    """

    __slots__ = ()
    is_splittable: ClassVar[bool] = True
    counts_reads: ClassVar[bool] = True
    keeps_layout: ClassVar[bool] = True
    is_exact: ClassVar[bool] = False

    @property
    def function(self) -> ScalarFunction:
        """The scalar function; the default is the kernel."""
        return ScalarFunction.of(self.kernel, self.opcode.replace("-", "_"))

    def element(self, out: Shape, *operands: Shape) -> ElementRule:
        return ElementwiseRule(self.function)


class UnaryElementwise(ElementwiseOp, UnaryOp):
    """``out[i] = function(operand[i])``.

    Class attributes:
        takes: the accepted kinds of element types, such as `FLOATS`.
    """

    __slots__ = ()
    takes: ClassVar[tuple[str, ...]] = ANY

    def infer_unranked(self, *operands: PartialShape) -> PartialShape:
        return _unranked_result(self, *operands)

    @constraint("C1", "the op must be defined for the element type of the operand")
    def takes_type(self, operand: Shape) -> Fault:
        return type_fault(self.opcode, self.takes, operand, 0)

    def infer_shape(self, operand: Shape) -> AnyShape:
        return operand.with_layout(None)

    def output_to_input(self, out: Shape, operand: Shape) -> OperandMaps:
        return IndexingMap.identity(out)


class BinaryElementwise(ElementwiseOp, BinaryOp):
    """``out[i] = function(left[i], right[i])``.

    Class attributes:
        commutes: True if the operands may be exchanged.
        takes: the accepted kinds of element types, such as `FLOATS`.
    """

    __slots__ = ()
    commutes: ClassVar[bool] = False
    takes: ClassVar[tuple[str, ...]] = ANY
    types: ClassVar[tuple[str, ...]] = ("T", "T")

    def unify_operands(self, *operands: PartialShape) -> Sequence[PartialShape]:
        types = [t for s in operands if (t := getattr(s, "element_type", ""))]
        typed = [Unranked(types[0]) if s == Unranked() and types else s for s in operands]
        return same_shape(*typed)

    def infer_unranked(self, *operands: PartialShape) -> PartialShape:
        return _unranked_result(self, *operands)

    @constraint("C1", "the op must be defined for the element type of the operands")
    def takes_types(self, left: Shape, right: Shape) -> Fault:
        return type_fault(self.opcode, self.takes, left, 0)

    @constraint("C2", "the operands must have the same dimensions")
    def same_dims(self, left: Shape, right: Shape) -> Fault:
        return dims_fault((left, right), 1, like=0)

    def infer_shape(self, left: Shape, right: Shape) -> Shape:
        return left.with_layout(None)

    def output_to_input(
        self, out: Shape, left: Shape, right: Shape
    ) -> tuple[OperandMaps, OperandMaps]:
        return IndexingMap.identity(out), IndexingMap.identity(out)


# ---------------------------------------------------------------- the table


@dataclass(frozen=True, slots=True)
class OpRow:
    """A row of the table of elementwise ops: an op without attributes.

    Attributes:
        opcode: as in HLO text.
        formula: element i of the result, from the operands' elements x (and y).
        function: the formula on arrays.
        takes: the accepted kinds of element types.
        result_type: the element type of the result, from the operands' element type.
    """

    opcode: str
    formula: str
    function: Callable[..., Any]
    takes: tuple[str, ...]
    result_type: Callable[[str], str] = same

    def samples(self, operands: str) -> list[str]:
        """A sample for each accepted kind, a scalar and an empty array."""
        first = _TYPICAL[self.takes[0]]
        shapes = [(_TYPICAL[kind], "[2,3]") for kind in self.takes]
        return [
            f"{self.result_type(kind)}{sizes} {self.opcode}"
            f"({', '.join(f'{kind}{sizes} {p}' for p in operands)})"
            for kind, sizes in [*shapes, (first, "[]"), (first, "[0,3]")]
        ]

    def register(self, base: type[Op], operands: str) -> None:
        """Create the op class of this row and register it."""
        name = "".join(word.capitalize() for word in self.opcode.split("-"))
        is_unary = len(operands) == 1
        elements = "x is the operand element" if is_unary else "x and y are the operand elements"
        body = {
            "__doc__": f"``out[i] = {self.formula}``, where {elements} at i.",
            "__module__": __name__,
            "row": self,
            "takes": self.takes,
            "is_exact": self.function in CHOOSING,
            "work_of_element": Work(*((0, 1) if self.opcode in TRANSCENDENTAL else (1, 0))),
        }
        op(self.opcode, samples=self.samples(operands))(type(name, (base,), body))


class TableOp(ElementwiseOp):
    """An op of the table."""

    __slots__ = ()
    row: ClassVar[OpRow]

    @property
    def function(self) -> ScalarFunction:
        return ScalarFunction.of(self.row.function)

    def element(self, out: Shape, *operands: Shape) -> ElementRule:
        return ElementwiseRule(function_on(self.row.function, out.element_type))

    def infer_shape(self, *operands: Shape) -> Shape:
        first = operands[0]
        return first.with_element_type(self.row.result_type(first.element_type)).with_layout(None)

    def kernel(self, *operands: Array) -> Array:
        with np.errstate(all="ignore"):
            return numerics.on_plain(self.row.function, *operands)


class UnaryTableOp(TableOp, UnaryElementwise):
    """An op of the table with one operand."""

    __slots__ = ()


class BinaryTableOp(TableOp, BinaryElementwise):
    """An op of the table with two operands."""

    __slots__ = ()


class CommutativeTableOp(BinaryTableOp):
    """An op of the table with two operands that may be exchanged."""

    __slots__ = ()
    commutes: ClassVar[bool] = True

    def decided_reads(self, out: Shape) -> tuple[DecidedRead, ...]:
        value = integer_rules.absorbing(self.row.function, out.element_type)
        if value is None:
            return ()
        return DecidedRead(0, 1, value, False), DecidedRead(1, 0, value, False)


# fmt: off
_UNARY = [
    #     opcode                   formula               function                types
    OpRow("abs",                   "|x|",                np.abs,                 NUMBERS, real),
    OpRow("acos",                  "arccos(x)",          np.arccos,              ANALYTIC),
    OpRow("acosh",                 "arcosh(x)",          np.arccosh,             ANALYTIC),
    OpRow("asin",                  "arcsin(x)",          np.arcsin,              ANALYTIC),
    OpRow("asinh",                 "arsinh(x)",          np.arcsinh,             ANALYTIC),
    OpRow("atan",                  "arctan(x)",          np.arctan,              ANALYTIC),
    OpRow("atanh",                 "artanh(x)",          np.arctanh,             ANALYTIC),
    OpRow("cbrt",                  "x^(1/3)",            numerics.cbrt,          ANALYTIC),
    OpRow("ceil",                  "⌈x⌉",                np.ceil,                FLOATS),
    OpRow("cosine",                "cos(x)",             np.cos,                 ANALYTIC),
    OpRow("cosh",                  "cosh(x)",            np.cosh,                ANALYTIC),
    OpRow("count-leading-zeros",   "leading zeros of x", numerics.leading_zeros, INTEGERS),
    OpRow("erf",                   "erf(x)",             numerics.erf,           FLOATS),
    OpRow("exponential",           "e^x",                np.exp,                 ANALYTIC),
    OpRow("exponential-minus-one", "e^x − 1",            np.expm1,               ANALYTIC),
    OpRow("floor",                 "⌊x⌋",                np.floor,               FLOATS),
    OpRow("is-finite",             "x is finite",        np.isfinite,            FLOATS, pred),
    OpRow("log",                   "ln x",               np.log,                 ANALYTIC),
    OpRow("log-plus-one",          "ln(x + 1)",          np.log1p,               ANALYTIC),
    OpRow("logistic",              "1 / (1 + e^−x)",     numerics.logistic,      ANALYTIC),
    OpRow("negate",                "−x",                 np.negative,            NUMBERS),
    OpRow("not",                   "¬x, bitwise",        np.invert,              BITS),
    OpRow("popcnt",                "one bits of x",      numerics.population,    INTEGERS),
    OpRow("real",                  "Re x",               np.real,                ANALYTIC, real),
    OpRow("round-nearest-afz",     "⌊x⌉, ties away",     numerics.round_away,    FLOATS),
    OpRow("round-nearest-even",    "⌊x⌉, ties to even",  np.rint,                FLOATS),
    OpRow("rsqrt",                 "1 / √x",             numerics.rsqrt,         ANALYTIC),
    OpRow("sign",                  "x / |x|, or 0",      numerics.sign,          NUMBERS),
    OpRow("sine",                  "sin(x)",             np.sin,                 ANALYTIC),
    OpRow("sinh",                  "sinh(x)",            np.sinh,                ANALYTIC),
    OpRow("sqrt",                  "√x",                 np.sqrt,                ANALYTIC),
    OpRow("tan",                   "tan(x)",             np.tan,                 ANALYTIC),
    OpRow("tanh",                  "tanh(x)",            np.tanh,                ANALYTIC),
]

_COMMUTATIVE = [
    #     opcode                    formula               function                   types
    OpRow("add",                    "x + y",              np.add,                    ANY),
    OpRow("and",                    "x ∧ y, bitwise",     np.bitwise_and,            BITS),
    OpRow("maximum",                "max(x, y)",          np.maximum,                ANY),
    OpRow("minimum",                "min(x, y)",          np.minimum,                ANY),
    OpRow("mulhi",                  "upper half of x·y",  numerics.high_product,     INTEGERS),
    OpRow("multiply",               "x · y",              np.multiply,               ANY),
    OpRow("or",                     "x ∨ y, bitwise",     np.bitwise_or,             BITS),
    OpRow("xor",                    "x ⊕ y, bitwise",     np.bitwise_xor,            BITS),
]

_BINARY = [
    #     opcode                    formula               function                   types
    OpRow("atan2",                  "angle of (y, x)",    numerics.angle,            ANALYTIC),
    OpRow("divide",                 "x / y",              numerics.divide,           NUMBERS),
    OpRow("power",                  "x^y",                numerics.power,            NUMBERS),
    OpRow("remainder",              "x − y·trunc(x / y)", numerics.remainder,        REALS),
    OpRow("shift-left",             "x · 2^y",            numerics.shift_left,       INTEGERS),
    OpRow("shift-right-arithmetic", "⌊x / 2^y⌋",          numerics.shift_arithmetic, INTEGERS),
    OpRow("shift-right-logical",    "⌊x / 2^y⌋ unsigned", numerics.shift_logical,    INTEGERS),
    OpRow("subtract",               "x − y",              np.subtract,               NUMBERS),
]
# fmt: on

TRANSCENDENTAL = frozenset(
    [
        *("acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "cosine", "cosh"),
        *("erf", "exponential", "exponential-minus-one", "log", "log-plus-one", "logistic"),
        *("power", "rsqrt", "sine", "sinh", "sqrt", "tan", "tanh"),
    ]
)
"""The ops of the table whose elements count as transcendental functions, not as operations."""

for _row in _UNARY:
    _row.register(UnaryTableOp, "x")
for _row in _COMMUTATIVE:
    _row.register(CommutativeTableOp, "xy")
for _row in _BINARY:
    _row.register(BinaryTableOp, "xy")


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

    is_exact: ClassVar[bool] = True
    direction: str = attribute(enum(*_COMPARISONS))
    type: str = attribute(enum("", "FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED"), default="")

    @property
    def function(self) -> ScalarFunction:
        rule, sign = integer_rules.comparison(self.direction), _COMPARISONS[self.direction][0]
        if self.type == "TOTALORDER":
            return ScalarFunction("compare", "call", self.kernel, rule)
        return ScalarFunction(sign, "infix", self.kernel, rule)

    @constraint("C3", "complex numbers have no total order")
    def has_order(self, left: Shape, right: Shape) -> Fault:
        if self.type != "TOTALORDER" or left.element_type not in REAL_TYPES:
            return HOLDS
        return Fault(f"the operands are {left.element_type}", "type")

    def infer_shape(self, left: Shape, right: Shape) -> Shape:
        return left.with_element_type("pred").with_layout(None)

    def kernel(self, left: Array, right: Array) -> Array:
        if self.type == "TOTALORDER" and not numerics.is_integer(left):
            left, right = numerics.total_order(left), numerics.total_order(right)
        with np.errstate(invalid="ignore"):
            return np.asarray(_COMPARISONS[self.direction][1](left, right))

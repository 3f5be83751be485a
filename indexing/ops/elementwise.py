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

from hlo.ops.attributes import at_least, enum, integer
from hlo.ops.op import HOLDS, Fault, Op, Shape, attribute, constraint, declared, op
from hlo.ops.unify import Dim, Known, Unranked, array, dims_of, same_dims, same_shape
from hlo.shapes.shape import ELEMENT_TYPES, AnyShape, dtype
from indexing.maps.indexing_map import IndexingMap, dims, ranges
from indexing.ops import numerics
from indexing.ops.base import Array, BinaryOp, Entry, UnaryOp
from indexing.ops.structure import Barrier

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
    ours, theirs = _dims(shapes[number]), _dims(shapes[like])
    label = f"operand {number} is {ours}, operand {like} is {theirs}"
    return Fault(label, number, "HLO broadcasts nothing by itself: write a broadcast instruction")


def _dims(shape: Shape) -> str:
    return f"[{','.join(map(str, shape.dims))}]"


def _unranked(op: Op, *operands: Any) -> Known:
    """The result for operands of unknown rank: its shape is theirs in all but the element type."""
    known = all(getattr(operand, "element_type", "") for operand in operands)
    found: Known = op.infer_shape(*operands) if known else Unranked()
    return found


class UnaryElementwise(UnaryOp):
    """``out[i] = function(operand[i])``."""

    __slots__ = ()
    takes: ClassVar[tuple[str, ...]] = ANY
    takes_partial: ClassVar[bool] = True

    def infer_unranked(self, *operands: Known) -> Known:
        return _unranked(self, *operands)

    @constraint("C1", "the op is defined for the element type of the operand")
    def takes_type(self, operand: Shape) -> Fault:
        return type_fault(self.opcode, self.takes, operand, 0)

    def infer_shape(self, operand: Shape) -> AnyShape:
        return operand.with_layout(None)

    def output_to_input(self, out: Shape, operand: Shape) -> Entry:
        return IndexingMap.identity(out)

    def input_to_output(self, out: Shape, operand: Shape) -> Entry:
        return IndexingMap.identity(out)


class BinaryElementwise(BinaryOp):
    """``out[i] = function(left[i], right[i])``."""

    __slots__ = ()
    takes: ClassVar[tuple[str, ...]] = ANY
    types: ClassVar[tuple[str, ...]] = ("T", "T")
    takes_partial: ClassVar[bool] = True

    def unified(self, *operands: Known) -> Sequence[Known]:
        types = [t for s in operands if (t := getattr(s, "element_type", ""))]
        typed = [Unranked(types[0]) if s == Unranked() and types else s for s in operands]
        return same_shape(*typed)

    def infer_unranked(self, *operands: Known) -> Known:
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

    def input_to_output(self, out: Shape, left: Shape, right: Shape) -> tuple[Entry, Entry]:
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


class UnaryRow(UnaryElementwise):
    """An op with one operand from the table."""

    __slots__ = ()
    row: ClassVar[Row]

    def infer_shape(self, operand: Shape) -> Shape:
        return operand.with_element_type(self.row.gives(operand.element_type)).with_layout(None)

    def kernel(self, operand: Array) -> Array:
        with np.errstate(all="ignore"):
            return numerics.on_plain(self.row.function, operand)


class BinaryRow(BinaryElementwise):
    """An op with two operands from the table."""

    __slots__ = ()
    row: ClassVar[Row]

    def infer_shape(self, left: Shape, right: Shape) -> Shape:
        return left.with_element_type(self.row.gives(left.element_type)).with_layout(None)

    def kernel(self, left: Array, right: Array) -> Array:
        with np.errstate(all="ignore"):
            return numerics.on_plain(self.row.function, left, right)


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
    "EQ": np.equal,
    "NE": np.not_equal,
    "GE": np.greater_equal,
    "GT": np.greater,
    "LE": np.less_equal,
    "LT": np.less,
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

    def infer_shape(self, left: Shape, right: Shape) -> Shape:
        return left.with_element_type("pred").with_layout(None)

    def kernel(self, left: Array, right: Array) -> Array:
        if self.type == "TOTALORDER" and not numerics.is_integer(left):
            left, right = numerics.total_order(left), numerics.total_order(right)
        with np.errstate(invalid="ignore"):
            return np.asarray(_COMPARISONS[self.direction](left, right))


@op(
    "copy",
    samples=[
        "f32[2,3]{0,1} copy(f32[2,3] p)",
        "pred[] copy(pred[] p)",
        "s8[0] copy(s8[0] p)",
        "(f32[2,3]{0,1}, (s32[], token[])) copy((f32[2,3], (s32[], token[])) p)",
    ],
)
class Copy(Barrier):
    """``out[i] = operand[i]``, in another place or layout; of a tuple, each array in it."""

    def infer_unranked(self, *operands: Known) -> Known:
        return operands[0]

    def infer_shape(self, operand: AnyShape) -> AnyShape:
        return operand.with_layout(None) if isinstance(operand, Shape) else operand


@op("imag", samples=["f32[2,3] imag(c64[2,3] p)", "f32[5] imag(f32[5] p)"])
class Imag(UnaryElementwise):
    """``out[i] = Im operand[i]``: 0 for real numbers, of which nothing is read."""

    takes: ClassVar[tuple[str, ...]] = ANALYTIC

    def infer_shape(self, operand: Shape) -> Shape:
        return operand.with_element_type(part(operand.element_type)).with_layout(None)

    def output_to_input(self, out: Shape, operand: Shape) -> Entry:
        return IndexingMap.identity(out) if operand.element_type in _PARTS else ()

    def input_to_output(self, out: Shape, operand: Shape) -> Entry:
        return self.output_to_input(out, operand)

    def kernel(self, operand: Array) -> Array:
        return np.imag(operand)


@op(
    "convert",
    samples=[
        "s8[2,3] convert(f32[2,3] p)",
        "f32[5] convert(pred[5] p)",
        "bf16[] convert(f32[] p)",
        "u8[3] convert(s16[3] p)",
        "pred[0] convert(f32[0] p)",
    ],
)
class Convert(UnaryElementwise):
    """``out[i] = operand[i]`` as a value of the result's type."""

    shape: Shape = declared()

    def infer_shape(self, operand: Shape) -> Shape:
        return operand.with_element_type(self.shape.element_type).with_layout(None)

    def kernel(self, operand: Array) -> Array:
        with np.errstate(all="ignore"):
            return numerics.converted(operand, dtype(self.shape.element_type))


@op(
    "reduce-precision",
    samples=["f32[7] reduce-precision(f32[7] p), exponent_bits=5, mantissa_bits=2"],
)
class ReducePrecision(UnaryElementwise):
    """``out[i]`` is operand[i] rounded to a type with so many exponent and mantissa bits."""

    takes: ClassVar[tuple[str, ...]] = FLOATS
    exponent_bits: int = attribute(at_least(integer, 1))
    mantissa_bits: int = attribute(at_least(integer, 0))

    def kernel(self, operand: Array) -> Array:
        with np.errstate(all="ignore"):
            return numerics.reduced_precision(operand, self.exponent_bits, self.mantissa_bits)


@op("stochastic-convert", samples=["s8[5] stochastic-convert(f32[5] p, u32[5] q)"])
class StochasticConvert(BinaryElementwise):
    """``out[i]`` is left[i] in the result's type, rounded up or down as the bits right[i] say."""

    takes: ClassVar[tuple[str, ...]] = FLOATS
    types: ClassVar[tuple[str, ...]] = ("any", "unsigned")
    shape: Shape = declared()

    def unified(self, *operands: Known) -> Sequence[Known]:
        return same_shape(*operands)

    @constraint("C3", "there are as many random bits as the operand has")
    def same_bits(self, left: Shape, right: Shape) -> Fault:
        ours, theirs = ELEMENT_TYPES[left.element_type], ELEMENT_TYPES[right.element_type]
        if ours.bits == theirs.bits:
            return HOLDS
        return Fault(f"operand 1 is {theirs.name}", 1, f"convert it to u{ours.bits}")

    def infer_shape(self, left: Shape, right: Shape) -> Shape:
        return left.with_element_type(self.shape.element_type).with_layout(None)

    def kernel(self, left: Array, right: Array) -> Array:
        with np.errstate(all="ignore"):
            return numerics.stochastically_converted(left, right, dtype(self.shape.element_type))


@op(
    "bitcast-convert",
    samples=[
        "u8[3,5,4] bitcast-convert(f32[3,5] p)",
        "u32[3] bitcast-convert(u8[3,4] p)",
        "s16[2,3] bitcast-convert(u16[2,3] p)",
        "f32[] bitcast-convert(u16[2] p)",
        "u8[0,2] bitcast-convert(u16[0] p)",
    ],
)
class BitcastConvert(UnaryElementwise):
    """``out[i]`` has the bits of operand[i]; other widths add or drop a minor dimension."""

    shape: Shape = declared()

    def infer_unranked(self, *operands: Known) -> Known:
        return Unranked(self.shape.element_type)

    @property
    def _bits(self) -> int:
        return ELEMENT_TYPES[self.shape.element_type].bits

    @constraint("C3", "an operand of narrower elements has them in its last dimension")
    def has_parts(self, operand: Shape) -> Fault:
        parts = self._bits // ELEMENT_TYPES[operand.element_type].bits
        if parts <= 1 or same_dims(operand.dims[-1:], (parts,)):
            return HOLDS
        return Fault(f"the last dimension of {_dims(operand)} is not {parts}", 0)

    def infer_shape(self, operand: Shape) -> Shape:
        bits = ELEMENT_TYPES[operand.element_type].bits
        sizes: Sequence[Dim | int] = dims_of(operand)
        if bits > self._bits:
            sizes = [*sizes, bits // self._bits]
        elif bits < self._bits:
            sizes = sizes[:-1]
        return array(self.shape.element_type, sizes)

    def output_to_input(self, out: Shape, operand: Shape) -> IndexingMap:
        return _same_leading(out, operand)

    def input_to_output(self, out: Shape, operand: Shape) -> IndexingMap:
        return _same_leading(operand, out)

    def kernel(self, operand: Array) -> Array:
        kind = dtype(self.shape.element_type)
        if kind.itemsize == operand.itemsize:
            return operand.view(kind)
        flat = np.ascontiguousarray(operand).reshape(-1)
        return flat.view(kind).reshape(self.shape.dims)


def _same_leading(source: Shape, target: Shape) -> IndexingMap:
    """The map between elements whose leading indices agree; a further minor dimension is free."""
    i = dims(source)
    s = ranges(*target.dims[source.rank :])
    return IndexingMap.of(i, [*i[: target.rank], *s], ranges=s)

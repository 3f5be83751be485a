"""Scalar ops on the values of lanes, on NumPy: those of HLO's functions, by the same tables.

What `arith` leaves undefined, such as a quotient by 0, is a value that is not defined.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from hlo.shapes.element_type import ELEMENT_TYPES, dtype, range_of
from indexing.equivalence.values.terms.functions import evaluate, function_of, is_integral
from indexing.kernels.attributes import element_name
from indexing.kernels.guarded_ops import PARTIAL
from indexing.kernels.ir import MlirOp
from indexing.kernels.lane_memory import Array, Lanes, LaneValue, NotExecuted, all_defined
from indexing.kernels.scalars import OPCODES, with_sign

_COMPARISONS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
    "ge": np.greater_equal,
}  # fmt: skip
_NUMBERS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "maxnumf": np.fmax, "minnumf": np.fmin
}  # fmt: skip
_INDICES: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "addi": np.add, "subi": np.subtract, "muli": np.multiply, "andi": np.bitwise_and,
    "ori": np.bitwise_or, "xori": np.bitwise_xor, "minsi": np.minimum, "maxsi": np.maximum,
}  # fmt: skip
_OF_BITS: Final = {
    "addi": "xori", "subi": "xori", "muli": "andi", "maxsi": "andi", "minsi": "ori",
    "maxui": "ori", "minui": "andi",
}  # fmt: skip
"""The ops that arithmetic of single bits is; the sign of a bit that is set is negative."""
_QUOTIENTS: Final = ("divsi", "remsi", "divui", "remui", "floordivsi")


def element_type(element: str) -> str:
    """Return HLO's type of elements, integers with a sign."""
    name = element_name(element)
    if name is None:
        raise NotExecuted(f"elements of type {element}")
    return name


def scalar_op(op: MlirOp, values: Sequence[LaneValue], width: int, lanes: Lanes) -> LaneValue:
    """Return the value of an op on scalars or, element by element, on tiles and vectors.

    Raises:
        KernelFault: an index does not fit in its width.
        NotExecuted: the op is not covered.
    """
    dialect, _, name = op.name.partition(".")
    with np.errstate(all="ignore"):
        if name == "select":
            return _select(*values)
        data, known = _result(op, dialect, name, [value.data for value in values], width, lanes)
    both = all_defined(*values)
    if known is not None and not known.all():
        both = known if both is None else both & known
    return LaneValue(data, both)


def _select(condition: LaneValue, one: LaneValue, other: LaneValue) -> LaneValue:
    if condition.data.dtype != np.bool_:
        raise NotExecuted("a selection by a value that is not an `i1`")
    chosen = condition.moved(
        lambda a: a.reshape(len(a), *[1] * (one.data.ndim - a.ndim), *a.shape[1:])
    )
    data = np.where(chosen.data, one.data, other.data)
    if all_defined(condition, one, other) is None:
        return LaneValue(data)
    known = np.where(chosen.data, one.mask(), other.mask()) & chosen.mask()
    return LaneValue(data, known)


def _result(
    op: MlirOp, dialect: str, name: str, arrays: Sequence[Array], width: int, lanes: Lanes
) -> tuple[Array, Array | None]:
    if name in ("cmpi", "cmpf"):
        one, other = arrays
        return _compare(op, one, other, width), None
    if name in _CASTS:
        return _cast(op, name, arrays[0], width, lanes), None
    target = op.result.type
    if target.element == "index":
        return _of_indices(op, name, arrays, width, lanes)
    kind = element_type(target.element)
    if name in ("fptosi", "fptoui"):
        return _integers(arrays[0], with_sign(kind, name[-2]), kind)
    if name in _NUMBERS:
        return _NUMBERS[name](*arrays), None
    if dialect == "complex" and name in ("re", "im", "abs", "create"):
        opcode = {"re": "real", "im": "imag", "create": "complex"}.get(name, name)
        return _call(opcode, kind, arrays), None
    return _of_elements(op, dialect, name, arrays)


def _of_elements(
    op: MlirOp, dialect: str, name: str, arrays: Sequence[Array]
) -> tuple[Array, Array | None]:
    """Return the result of one of HLO's functions, and where it is defined."""
    kind = element_type(op.result.type.element)
    name = _OF_BITS.get(name, name) if kind == "pred" else name
    opcode, sign = OPCODES.get(name, ("", ""))
    if dialect == "stablehlo":
        opcode, sign = name.replace("_", "-"), ""
    if not opcode or (kind == "pred" and opcode not in ("and", "or", "xor", "not")):
        raise NotExecuted(f"`{op.name}`")
    if not is_integral(kind):
        return _call(opcode, kind, arrays), None
    own = with_sign(kind, sign or "s")
    arrays = [array.view(dtype(own)) for array in arrays]
    known = _is_defined(opcode, own, *arrays) if opcode in PARTIAL else None
    return _call(opcode, own, arrays).view(dtype(kind)), known


def _call(opcode: str, kind: str, arrays: Sequence[Array]) -> Array:
    function = function_of(opcode, (), kind)
    if function is None:
        raise NotExecuted(f"the function `{opcode}` of {kind}")
    return np.asarray(evaluate(function, arrays, kind))


def _is_defined(opcode: str, kind: str, one: Array, other: Array) -> Array:
    bits = ELEMENT_TYPES[kind].bits
    if opcode.startswith("shift"):
        return np.asarray(_as_unsigned(other, bits) < bits)
    if kind[0] == "u":
        return np.asarray(other != 0)
    return np.asarray((other != 0) & ~((other == -1) & (one == -(1 << bits - 1))))


def _as_unsigned(array: Array, bits: int) -> Array:
    """Return the numbers that integers, or booleans, are without a sign."""
    wide = array.astype(np.int64).astype(np.uint64)
    return wide if bits >= 64 else wide & np.uint64((1 << bits) - 1)


def _bits(element: str, width: int) -> int:
    return width if element == "index" else ELEMENT_TYPES[element_type(element)].bits


def _compare(op: MlirOp, one: Array, other: Array, width: int) -> Array:
    predicate: str = op.attributes["predicate"]
    element = op.operands[0].type.element
    if op.name == "arith.cmpi":
        if predicate in ("eq", "ne"):
            return np.asarray(_COMPARISONS[predicate](one, other))
        if predicate[0] == "u":
            bits = 1 if element == "i1" else _bits(element, width)
            one, other = _as_unsigned(one, bits), _as_unsigned(other, bits)
        elif element == "i1":
            one, other = -one.astype(np.int8), -other.astype(np.int8)
        return np.asarray(_COMPARISONS[predicate[1:]](one, other))
    unordered = (one != one) | (other != other)
    if predicate in ("uno", "ord"):
        return np.asarray(unordered if predicate == "uno" else ~unordered)
    if predicate in ("true", "false"):
        return np.full(unordered.shape, predicate == "true")
    result = _COMPARISONS[predicate[1:]](one, other)
    return np.asarray(result | unordered if predicate[0] == "u" else result & ~unordered)


_CASTS: Final = (
    "extui", "extsi", "trunci", "extf", "truncf", "sitofp", "uitofp", "index_cast", "index_castui",
    "convert",
)  # fmt: skip


def _cast(op: MlirOp, name: str, array: Array, width: int, lanes: Lanes) -> Array:
    source, target = op.operands[0].type.element, op.result.type.element
    if name == "convert":  # of StableHLO, by values
        return _call("convert", element_type(target), [array])
    if name in ("extf", "truncf"):
        return array.astype(dtype(element_type(target)))
    if target == "i1":
        return np.asarray(array.astype(np.int64) & 1, np.bool_)
    bits = 1 if source == "i1" else _bits(source, width)
    if name in ("extui", "uitofp", "index_castui"):
        array = _as_unsigned(array, bits)
    elif source == "i1":
        array = -array.astype(np.int8)
    if target == "index":
        return _as_signed(array.astype(np.int64), width)
    if name in ("sitofp", "uitofp"):
        return array.astype(dtype(element_type(target)))
    kind = element_type(target)
    narrow = _as_signed(array.astype(np.int64), ELEMENT_TYPES[kind].bits)
    return narrow.astype(dtype(kind))


def _integers(array: Array, kind: str, target: str) -> tuple[Array, Array]:
    """Return floats without their fractions, and which of them are integers of a type."""
    limits = range_of(kind)
    assert limits is not None
    whole = np.trunc(array.astype(np.float64))
    known = (whole >= limits[0]) & (whole < limits[1] + 1)
    numbers = np.where(known, whole, 0).astype(dtype(kind))
    return numbers.view(dtype(target)), known


def _as_signed(array: Array, bits: int) -> Array:
    """Return the numbers that the low bits are, the highest of which is the sign."""
    if bits >= 64:
        return array
    half = 1 << bits - 1
    return ((array & (2 * half - 1)) ^ half) - half


def _of_indices(
    op: MlirOp, name: str, arrays: Sequence[Array], width: int, lanes: Lanes
) -> tuple[Array, Array | None]:
    one, other = arrays
    if name in _QUOTIENTS:
        limit = -(1 << width - 1)
        known = (other != 0) & ~((other == -1) & (one == limit))
        if name in ("divui", "remui") and ((one < 0) | (other < 0)).any():
            raise NotExecuted("an unsigned quotient of negative indices")
        safe = np.where(known, other, 1)
        floor = one // safe
        if name == "floordivsi":
            return floor, known
        rest = np.fmod(one, safe)
        return ((one - rest) // safe if name[0] == "d" else rest), known
    if name not in _INDICES:
        raise NotExecuted(f"`{op.name}` of indices")
    return checked_index(_INDICES[name](one, other), width, lanes, op), None


def checked_index(array: Array, width: int, lanes: Lanes, op: MlirOp) -> Array:
    """Return indices that fit in their width.

    Raises:
        KernelFault: an index does not fit.
    """
    if width < 64 and array.size:
        limit = 1 << width - 1
        beyond = (array < -limit) | (array >= limit)
        if beyond.any():
            what = f"an index of {width} bits overflows in `{op.name}`, line {op.span.line}"
            raise lanes.fault(what, int(np.argmax(beyond)))
    return array

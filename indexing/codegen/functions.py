"""Elementwise ops as functions of scalars, as they are written in sources."""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable
from typing import Any, Final

import ml_dtypes
import numpy as np

from hlo.ops.op import Op
from indexing.codegen.nest import Array, Function
from indexing.ops import numerics
from indexing.ops.conversions import Convert
from indexing.ops.elementwise import BinaryRow, Compare, UnaryRow

_INFIX: Final = {
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "and": "&",
    "or": "|",
    "xor": "^",
}
_PREFIX: Final = {"negate": "-", "not": "~"}
_RELATIONS: Final = {"EQ": "==", "NE": "!=", "GE": ">=", "GT": ">", "LE": "<=", "LT": "<"}
_LOOP_VARIABLE: Final = re.compile(r"(d|s|u|rt|i_[dsu])\d+[a-h]?_*|total\d*")
# What sources use under its own name.
_LIBRARIES: Final = frozenset({"np", "ml_dtypes", "numerics", "range", "min", "max", "int"})
_HELPERS: Final = frozenset({"clamp", "clamped", "contract", "put", "window"})
_RESERVED: Final = _LIBRARIES | _HELPERS | {"out"}


def identifier(name: str) -> str:
    """`name` as a name of Python that is no loop variable.

    >>> identifier("fusion.3"), identifier("lambda"), identifier("0x"), identifier("d0")
    ('fusion_3', 'lambda_', '_0x', '_d0')
    """
    found = re.sub(r"\W", "_", name, flags=re.ASCII)
    if _LOOP_VARIABLE.fullmatch(found):
        return f"_{found}"
    if keyword.iskeyword(found) or found in _RESERVED:
        return f"{found}_"
    return f"_{found}" if found[:1].isdigit() or not found else found


def dtype_text(dtype: np.dtype[Any]) -> str:
    """How sources name a type: ``np.float32``, ``ml_dtypes.bfloat16``."""
    if dtype.kind == "b":
        return "np.bool_"
    return f"{'ml_dtypes' if hasattr(ml_dtypes, dtype.name) else 'np'}.{dtype.name}"


def scalar_text(value: Array) -> str:
    """How sources write a number.

    >>> scalar_text(np.asarray(0.5, np.float32)), scalar_text(np.asarray(-np.inf, np.float16))
    ('np.float32(0.5)', 'np.float16(-np.inf)')
    """
    if value.dtype.kind == "b":
        return f"np.{bool(value)}_"
    number = value.item()
    if isinstance(number, complex):
        text = f"complex({_float_text(number.real)}, {_float_text(number.imag)})"
    elif value.dtype.kind in "iu" or numerics.is_integer(value):
        text = str(int(number))
    else:
        text = _float_text(float(number))
    return f"{dtype_text(value.dtype)}({text})"


def _float_text(number: float) -> str:
    if number != number:
        return "np.nan" if not np.signbit(number) else "-np.nan"
    if number in (np.inf, -np.inf):
        return "np.inf" if number > 0 else "-np.inf"
    return repr(number)


def function_of(op: Op) -> Function:
    """What an elementwise op does with elements."""
    opcode = op.opcode
    call: Any = op.kernel  # type: ignore[attr-defined]  # elementwise ops have kernels
    if isinstance(op, Compare) and (op.type != "TOTALORDER"):
        return Function(_RELATIONS[op.direction], "infix", call)
    if isinstance(op, Convert):
        return Function(f"to_{op.shape.element_type}", "call", call)
    if isinstance(op, UnaryRow | BinaryRow):
        plain = type(op).kernel in (UnaryRow.kernel, BinaryRow.kernel)
        if plain:
            call = op.row.function
        if opcode in _INFIX:
            return Function(_INFIX[opcode], "infix", call)
        if opcode in _PREFIX:
            return Function(_PREFIX[opcode], "prefix", call)
        if plain:
            return Function(_library_name(call, opcode), "call", call)
    if opcode == "select":
        return Function("np.where", "call", np.where)
    return Function(identifier(opcode), "call", call)


def _library_name(call: Callable[..., Any], opcode: str) -> str:
    """Where a person finds the function."""
    name = getattr(call, "__name__", "")
    if getattr(np, name, None) is call:
        return f"np.{name}"
    if getattr(numerics, name, None) is call:
        return f"numerics.{name}"
    return identifier(opcode)


def cast(dtype: np.dtype[Any], element_type: str) -> Function:
    """Arrays (and scalars) as another type, rounded as NumPy does it."""
    return Function(f"to_{element_type}", "call", lambda x: np.asarray(x).astype(dtype))


def reinterpreted(dtype: np.dtype[Any], element_type: str) -> Function:
    """The bits of the elements as those of another type of the same width."""
    return Function(f"bits_as_{element_type}", "call", lambda x: np.asarray(x).view(dtype))


def joined(dtype: np.dtype[Any], element_type: str) -> Function:
    """The bits of several narrow elements as one wide element, the lowest bits first.

    >>> bytes_ = np.uint8([1]), np.uint8([2])
    >>> joined(np.dtype(np.uint16), "u16").call(*bytes_)
    array([513], dtype=uint16)
    """

    def call(*parts: Array) -> Array:
        stacked = np.stack(np.broadcast_arrays(*parts), axis=-1)
        return np.asarray(np.ascontiguousarray(stacked).view(dtype)[..., 0])

    return Function(f"join_{element_type}", "call", call)


def part_of(dtype: np.dtype[Any], element_type: str) -> Function:
    """The bits of one narrow element of the several that a wide one is, by its number.

    >>> part_of(np.dtype(np.uint8), "u8").call(np.uint16([513]), np.int64([1]))
    array([2], dtype=uint8)
    """

    def call(whole: Array, number: Array) -> Array:
        whole, number = np.broadcast_arrays(whole, number)
        parts = np.array(whole, order="C")[..., None].view(dtype)
        return np.asarray(np.take_along_axis(parts, number[..., None], -1)[..., 0])

    return Function(f"part_{element_type}", "call", call)


def batch_norm(epsilon: float) -> Function:
    """``(x − mean) · scale / √(variance + epsilon) + offset``, as batch-norm-inference has it."""

    def call(x: Array, scale: Array, offset: Array, mean: Array, variance: Array) -> Array:
        root = np.sqrt(variance + x.dtype.type(epsilon))
        return np.asarray((x - mean) * (scale / root) + offset)

    return Function("normalised", "call", call)


ADD: Final = Function("+", "infix", np.add)
MULTIPLY: Final = Function("*", "infix", np.multiply)
_UFUNCS: Final[dict[str, Any]] = {
    "+": np.add,
    "*": np.multiply,
    "&": np.bitwise_and,
    "|": np.bitwise_or,
    "^": np.bitwise_xor,
}


def ufunc_of(function: Function) -> Any:
    """The NumPy function that folds many values as `function` folds two; None if there is none."""
    if function.style == "infix":
        return _UFUNCS.get(function.name)
    return function.call if function.call in (np.maximum, np.minimum) else None

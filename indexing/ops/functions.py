"""Functions of elements: how sources spell them, and what they compute on arrays and expressions.

`ScalarFunction.of` knows the NumPy functions that have an operator, and the homes of the others.
NumPy's folding functions and their neutral elements are here as well.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import numpy as np

from indexing.ops import numerics
from indexing.ops.integer_rules import RULES, IntegerRule

if TYPE_CHECKING:
    from numpy.typing import NDArray

Array: TypeAlias = "NDArray[Any]"

INFIX: Final[dict[Any, str]] = {
    np.add: "+",
    np.subtract: "-",
    np.multiply: "*",
    np.bitwise_and: "&",
    np.bitwise_or: "|",
    np.bitwise_xor: "^",
}
PREFIX: Final[dict[Any, str]] = {np.negative: "-", np.invert: "~"}
FOLDING: Final = frozenset(
    [
        *(np.add, np.multiply, np.maximum, np.minimum),
        *(np.bitwise_and, np.bitwise_or, np.bitwise_xor),
    ]
)
"""The ufuncs that fold arrays: associative, commutative, and with a neutral element."""


@dataclass(frozen=True, slots=True, eq=False)
class ScalarFunction:
    """A function of scalars, applied to arrays element by element.

    Attributes:
        name: as sources write it: ``+``, ``np.exp``, ``numerics.divide``, ``to_f32``, ``imag``. A
            call without a dot is a name that a printer still has to make unique in its source.
        style: whether it is written between its arguments, before its argument, or as a call.
        call: the function on arrays.
        integer: its exact integer arithmetic on expressions, if it has one.
        commutes: the order of its two arguments does not matter.
    """

    name: str
    style: Literal["infix", "prefix", "call"]
    call: Callable[..., Any]
    integer: IntegerRule | None = None
    commutes: bool = False

    @classmethod
    def of(cls, call: Callable[..., Any], name: str = "") -> ScalarFunction:
        """The function `call`; `name` is its name if neither NumPy nor `numerics` has it.

        >>> ScalarFunction.of(np.add).name, ScalarFunction.of(np.exp).name
        ('+', 'np.exp')
        """
        integer, commutes = RULES.get(call), call in FOLDING
        if call in INFIX:
            return cls(INFIX[call], "infix", call, integer, commutes)
        if call in PREFIX:
            return cls(PREFIX[call], "prefix", call, integer)
        return cls(_library_name(call) or name, "call", call, integer, commutes)

    @property
    def ufunc(self) -> Any:
        """The NumPy ufunc that folds many values as this folds two; None if there is none."""
        return self.call if self.call in FOLDING else None


def _library_name(call: Callable[..., Any]) -> str:
    """The name of a function of NumPy or `numerics` with its module; empty for others."""
    name = getattr(call, "__name__", "")
    if getattr(np, name, None) is call:
        return f"np.{name}"
    return f"numerics.{name}" if getattr(numerics, name, None) is call else ""


def neutral(ufunc: Any, dtype: np.dtype[Any]) -> Any:
    """The number of a type that changes no total of `ufunc`, one of `FOLDING`.

    >>> neutral(np.maximum, np.dtype(np.int8)), neutral(np.bitwise_and, np.dtype(np.uint8))
    (np.int8(-128), np.uint8(255))
    """
    value: Any = ufunc.identity
    if ufunc is np.bitwise_and:
        value = -1  # every bit of any integer type, and True
    elif ufunc in (np.maximum, np.minimum):
        is_max = ufunc is np.maximum
        if dtype.kind == "b":
            value = not is_max
        elif numerics.is_integer(np.empty(0, dtype)):
            value = numerics.limits(dtype)[not is_max]
        else:
            value = -np.inf if is_max else np.inf
    return np.asarray(value).astype(dtype)[()]


# ---------------------------------------------------------------- types and bits


def cast(dtype: np.dtype[Any], element_type: str) -> ScalarFunction:
    """Elements as another type, rounded as NumPy does it."""
    return ScalarFunction(f"to_{element_type}", "call", lambda x: np.asarray(x).astype(dtype))


def reinterpreted(dtype: np.dtype[Any], element_type: str) -> ScalarFunction:
    """The bits of elements as those of another type of the same width."""
    return ScalarFunction(f"bits_as_{element_type}", "call", lambda x: np.asarray(x).view(dtype))


def joined(dtype: np.dtype[Any], element_type: str) -> ScalarFunction:
    """The bits of several narrow elements as one wide element, the lowest bits first.

    >>> bytes_ = np.uint8([1]), np.uint8([2])
    >>> joined(np.dtype(np.uint16), "u16").call(*bytes_)
    array([513], dtype=uint16)
    """

    def call(*parts: Array) -> Array:
        stacked = np.stack(np.broadcast_arrays(*parts), axis=-1)
        return np.asarray(np.ascontiguousarray(stacked).view(dtype)[..., 0])

    return ScalarFunction(f"join_{element_type}", "call", call)


def part_of(dtype: np.dtype[Any], element_type: str) -> ScalarFunction:
    """The bits of one of the narrow elements in a wide one, by its number.

    >>> part_of(np.dtype(np.uint8), "u8").call(np.uint16([513]), np.int64([1]))
    array([2], dtype=uint8)
    """

    def call(whole: Array, number: Array) -> Array:
        whole, number = np.broadcast_arrays(whole, number)
        parts = np.array(whole, order="C")[..., None].view(dtype)
        return np.asarray(np.take_along_axis(parts, number[..., None], -1)[..., 0])

    return ScalarFunction(f"part_{element_type}", "call", call)


ADD: Final = ScalarFunction.of(np.add)
MULTIPLY: Final = ScalarFunction.of(np.multiply)

"""Scalar functions: their name in generated sources, and their values on arrays and expressions.

`ScalarFunction.of` returns the operator of a NumPy function that has one, and the module of any
other function. The module also lists the ufuncs that can reduce arrays, and their neutral elements.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import numpy as np

from indexing.ops import numerics
from indexing.ops.bits import repack_bits
from indexing.ops.integer_rules import RULES, IntegerRule, rule_of

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
REDUCING_UFUNCS: Final = frozenset(
    [
        *(np.add, np.multiply, np.maximum, np.minimum),
        *(np.bitwise_and, np.bitwise_or, np.bitwise_xor),
    ]
)
"""The ufuncs that reduce arrays: associative, commutative, and with a neutral element."""

CHOOSING: Final = frozenset(
    [
        *(np.negative, np.abs, np.maximum, np.minimum, np.where, numerics.sign),
        *(np.floor, np.ceil, np.rint, numerics.round_away),
    ]
)
"""The functions whose floating-point values are exact."""
ROUNDING: Final = frozenset([np.add, np.subtract, np.multiply])
"""The functions whose floating-point values are rounded correctly, if nothing else is."""


@dataclass(frozen=True, slots=True, eq=False)
class ScalarFunction:
    """A function of scalars, applied to arrays element by element.

    Attributes:
        name: as in generated sources: ``+``, ``np.exp``, ``numerics.divide``, ``to_f32``, ``imag``.
            A printer makes a name without a dot unique in its source.
        style: the notation: between the arguments, before the argument, or as a call.
        call: the function on arrays.
        integer: the exact integer arithmetic on expressions, if there is one.
        commutes: the function of two arguments is commutative.
    """

    name: str
    style: Literal["infix", "prefix", "call"]
    call: Callable[..., Any]
    integer: IntegerRule | None = None
    commutes: bool = False

    @classmethod
    def of(cls, call: Callable[..., Any], name: str = "") -> ScalarFunction:
        """Return the scalar function of `call`.

        Args:
            name: the name if neither NumPy nor `numerics` contains the function.

        >>> ScalarFunction.of(np.add).name, ScalarFunction.of(np.exp).name
        ('+', 'np.exp')
        """
        integer, commutes = RULES.get(call), call in REDUCING_UFUNCS
        if call in INFIX:
            return cls(INFIX[call], "infix", call, integer, commutes)
        if call in PREFIX:
            return cls(PREFIX[call], "prefix", call, integer)
        return cls(_library_name(call) or name, "call", call, integer, commutes)

    def result_dtype(self, *dtypes: np.dtype[Any]) -> np.dtype[Any]:
        """Return the type of the function's values for arguments of these types.

        >>> import ml_dtypes
        >>> ScalarFunction.of(np.invert).result_dtype(np.dtype(ml_dtypes.int4))
        dtype('int8')
        """
        with np.errstate(all="ignore"):
            values = self.call(*[np.zeros(0, dtype) for dtype in dtypes])
        return np.asarray(values).dtype

    @property
    def is_arithmetic(self) -> bool:
        """The function is an operator with an augmented assignment, as ``+=``; ``<`` has none."""
        return self.call in INFIX

    @property
    def ufunc(self) -> Any:
        """The NumPy ufunc that reduces an array by this function; None if there is none."""
        return self.call if self.call in REDUCING_UFUNCS else None


def _library_name(call: Callable[..., Any]) -> str:
    """The qualified name of a function of NumPy or `numerics`; empty for other functions."""
    name = getattr(call, "__name__", "")
    if getattr(np, name, None) is call:
        return f"np.{name}"
    return f"numerics.{name}" if getattr(numerics, name, None) is call else ""


def neutral(ufunc: Any, dtype: np.dtype[Any]) -> Any:
    """The neutral element of `ufunc`, one of `REDUCING_UFUNCS`, in the type `dtype`.

    >>> neutral(np.maximum, np.dtype(np.int8)), neutral(np.bitwise_and, np.dtype(np.uint8))
    (np.int8(-128), np.uint8(255))
    """
    value: Any = ufunc.identity
    if ufunc is np.bitwise_and:
        value = -1  # all bits set in any integer type, and True
    elif ufunc in (np.maximum, np.minimum):
        is_max = ufunc is np.maximum
        if dtype.kind == "b":
            value = not is_max
        elif numerics.is_integer(np.empty(0, dtype)):
            value = numerics.limits(dtype)[not is_max]
        else:
            value = numerics.extremes(dtype)[not is_max]
    return np.asarray(value).astype(dtype)[()]


# ---------------------------------------------------------------- types and bits


def cast(dtype: np.dtype[Any], element_type: str) -> ScalarFunction:
    """The conversion to another type, rounded as in NumPy."""
    return ScalarFunction(f"to_{element_type}", "call", lambda x: np.asarray(x).astype(dtype))


def reinterpretation(
    dtype: np.dtype[Any], element_type: str, widths: tuple[int, int]
) -> ScalarFunction:
    """The reinterpretation of the bits as another type; `widths` as in `bits.repack_bits`."""

    def call(x: Array) -> Array:
        return repack_bits(np.asarray(x)[..., None], dtype, widths)[..., 0]

    return ScalarFunction(f"bits_as_{element_type}", "call", call)


@lru_cache(1 << 10)
def function_on(function: Callable[..., Any], element_type: str) -> ScalarFunction:
    """The function of arrays whose result has this element type, with its rule for integers.

    >>> function_on(np.add, "s32").integer.__name__, function_on(np.exp, "f32").integer
    ('sum_rule', None)
    """
    return replace(ScalarFunction.of(function), integer=rule_of(function, element_type))


def joining_function(
    dtype: np.dtype[Any], element_type: str, widths: tuple[int, int]
) -> ScalarFunction:
    """The function that joins the bits of several narrow elements, the lowest bits first.

    >>> bytes_ = np.uint8([1]), np.uint8([2])
    >>> joining_function(np.dtype(np.uint16), "u16", (8, 16)).call(*bytes_)
    array([513], dtype=uint16)
    """

    def call(*parts: Array) -> Array:
        return repack_bits(np.stack(np.broadcast_arrays(*parts), axis=-1), dtype, widths)[..., 0]

    return ScalarFunction(f"join_{element_type}", "call", call)


def part_of(dtype: np.dtype[Any], element_type: str, widths: tuple[int, int]) -> ScalarFunction:
    """The function that extracts a narrow element by its number from the bits of a wide element.

    >>> part_of(np.dtype(np.uint8), "u8", (16, 8)).call(np.uint16([513]), np.int64([1]))
    array([2], dtype=uint8)
    """

    def call(whole: Array, number: Array) -> Array:
        whole, number = np.broadcast_arrays(whole, number)
        parts = repack_bits(whole[..., None], dtype, widths)
        return np.asarray(np.take_along_axis(parts, number[..., None], -1)[..., 0])

    return ScalarFunction(f"part_{element_type}", "call", call)


ADD: Final = ScalarFunction.of(np.add)
MULTIPLY: Final = ScalarFunction.of(np.multiply)

"""What HLO's arithmetic gives where NumPy's differs: on arrays of one element type.

Sources: XLA ``docs/operation_semantics.md`` and, where it is silent, XLA's evaluator
(``xla/hlo/evaluator/hlo_evaluator_typed_visitor.h``): integer division truncates, a division by
zero gives −1 and its remainder the dividend; shifts by the width or more shift everything out;
conversion to an integer saturates.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]


def is_integer(array: Array) -> bool:
    """Signed or unsigned, also of few bits."""
    return array.dtype.kind in "iu" or array.dtype.name.startswith(("int", "uint"))


_small_limits: Any = ml_dtypes.iinfo  # has no types


def limits(dtype: np.dtype[Any]) -> tuple[int, int]:
    """Smallest and largest value of an integer type."""
    info: Any = np.iinfo(dtype) if dtype.kind in "iu" else _small_limits(dtype)
    return int(info.min), int(info.max)


def width(dtype: np.dtype[Any]) -> int:
    """Bits of an integer type."""
    low, high = limits(dtype)
    return (high - low).bit_length()


def each(function: Callable[[Any], Any], x: Array) -> Array:
    """``function(number)`` for each number of an array, in an array of the same type."""
    return np.asarray(np.frompyfunc(function, 1, 1)(x)).astype(x.dtype)


def wrapped(value: int, dtype: np.dtype[Any]) -> int:
    """`value` modulo two to the width of an integer type, as a value of the type."""
    low, high = limits(dtype)
    return (value - low) % (high - low + 1) + low


def on_integers(function: Callable[[int, int, int], int]) -> Callable[[Array, Array], Array]:
    """``function(a, b, width)`` of Python's integers, element by element, wrapped around."""

    def on_arrays(left: Array, right: Array) -> Array:
        bits = width(left.dtype)
        apply = np.frompyfunc(
            lambda a, b: wrapped(function(int(a), int(b), bits), left.dtype), 2, 1
        )
        return np.asarray(apply(left, right)).astype(left.dtype)

    return on_arrays


# ---------------------------------------------------------------- one operand


def logistic(x: Array) -> Array:
    one = x.dtype.type(1)
    return np.asarray(one / (one + np.exp(-x)))


def rsqrt(x: Array) -> Array:
    return np.asarray(x.dtype.type(1) / np.sqrt(x))


def cbrt(x: Array) -> Array:
    return np.asarray(x ** (1 / 3) if x.dtype.kind == "c" else np.cbrt(x))


def sign(x: Array) -> Array:
    return x if x.dtype.kind == "b" else np.where(x == 0, x, np.sign(x))


def round_away(x: Array) -> Array:
    """To the nearest integer, halves away from zero."""
    whole = np.trunc(x)
    away = np.abs(x - whole) >= x.dtype.type(0.5)
    return np.where(away, whole + np.sign(x), whole).astype(x.dtype)


def erf(x: Array) -> Array:
    return each(lambda value: math.erf(float(value)), x)


def leading_zeros(x: Array) -> Array:
    bits = width(x.dtype)
    return each(lambda value: bits - (int(value) % (1 << bits)).bit_length(), x)


def population(x: Array) -> Array:
    bits = width(x.dtype)
    return each(lambda value: (int(value) % (1 << bits)).bit_count(), x)


def reduced_precision(x: Array, exponent_bits: int, mantissa_bits: int) -> Array:
    """`x` rounded (half to even) to a narrower floating type, then widened again."""
    wide = x.astype(np.float64)
    mantissa, exponent = np.frexp(wide)
    step = 2.0 ** (mantissa_bits + 1)
    rounded = np.ldexp(np.rint(mantissa * step) / step, exponent)
    largest = 2.0 ** (2 ** (exponent_bits - 1) - 1) * (2 - 2.0**-mantissa_bits)
    smallest = 2.0 ** (2 - 2 ** (exponent_bits - 1))  # the least normal number; below is flushed
    rounded = np.where(np.abs(rounded) > largest, np.copysign(np.inf, wide), rounded)
    rounded = np.where(np.abs(rounded) < smallest, np.copysign(0.0, wide), rounded)
    return np.where(np.isfinite(wide), rounded, wide).astype(x.dtype)


def converted(x: Array, dtype: np.dtype[Any]) -> Array:
    """The values of `x` in another type: saturating from floating to integer, NaN to 0."""
    if x.dtype.kind == "c" and dtype.kind != "c":
        x = x.real
    if dtype.kind == "b":
        return np.asarray(x != 0)
    target = np.empty(0, dtype)
    if not is_integer(target):
        return x.astype(dtype)
    if is_integer(x) or x.dtype.kind == "b":
        if dtype.kind in "iu" and x.dtype.kind in "iub":
            return x.astype(dtype)
        return np.asarray(np.frompyfunc(lambda v: wrapped(int(v), dtype), 1, 1)(x)).astype(dtype)
    low, high = limits(dtype)

    def saturated(value: Any) -> int:
        number = float(value)
        if math.isnan(number):
            return 0
        return low if number <= low else high if number >= high else int(number)

    return np.asarray(np.frompyfunc(saturated, 1, 1)(x)).astype(dtype)


def stochastically_converted(x: Array, random: Array, dtype: np.dtype[Any]) -> Array:
    """`x` rounded to an integer, up with the probability of its fraction, as `random` decides."""
    magnitude = np.abs(x.astype(np.float64))
    whole = np.trunc(magnitude)
    threshold = (magnitude - whole) * 2.0 ** width(random.dtype)
    rounded = np.where(random.astype(np.float64) < threshold, whole + 1, whole)
    return converted(np.copysign(rounded, x.astype(np.float64)), dtype)


# ---------------------------------------------------------------- two operands


def complex_number(real: Array, imaginary: Array) -> Array:
    out = np.empty(real.shape, np.result_type(real.dtype, np.complex64))
    out.real, out.imag = real, imaginary
    return out


def angle(y: Array, x: Array) -> Array:
    """The angle of the point (x, y); for complex numbers ``−i·ln((x + i·y) / √(x² + y²))``."""
    if y.dtype.kind != "c":
        return np.asarray(np.arctan2(y, x))
    return np.asarray(-1j * np.log((x + 1j * y) / np.sqrt(x * x + y * y))).astype(y.dtype)


def divide(a: Array, b: Array) -> Array:
    return on_integers(_quotient)(a, b) if is_integer(a) else np.asarray(a / b)


def remainder(a: Array, b: Array) -> Array:
    return on_integers(_remainder)(a, b) if is_integer(a) else np.fmod(a, b)


def power(a: Array, b: Array) -> Array:
    return on_integers(_power)(a, b) if is_integer(a) else np.power(a, b)


def high_product(a: Array, b: Array) -> Array:
    """The upper half of the product's bits."""
    return on_integers(lambda x, y, bits: (x * y) >> bits)(a, b)


def shift_left(a: Array, b: Array) -> Array:
    return on_integers(lambda x, y, bits: x << y if 0 <= y < bits else 0)(a, b)


def shift_arithmetic(a: Array, b: Array) -> Array:
    """The highest bit fills up, whether it is a sign or not."""
    return on_integers(lambda x, y, bits: _signed(x, bits) >> (y if 0 <= y < bits else bits))(a, b)


def shift_logical(a: Array, b: Array) -> Array:
    return on_integers(lambda x, y, bits: (x % (1 << bits)) >> y if 0 <= y < bits else 0)(a, b)


def _signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) == 1 else value


def _quotient(a: int, b: int, bits: int) -> int:
    if b == 0:
        return -1
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _remainder(a: int, b: int, bits: int) -> int:
    return a - b * _quotient(a, b, bits) if b else a


def _power(a: int, b: int, bits: int) -> int:
    if b >= 0:
        return pow(a, b, 1 << bits)
    return {1: 1, -1: -1 if b % 2 else 1}.get(a, 0)


def total_order(x: Array) -> Array:
    """Integers in the order −NaN < −∞ < .. < −0 < +0 < .. < ∞ < NaN."""
    bits = x.view(np.dtype(f"int{x.dtype.itemsize * 8}"))
    return np.where(bits < 0, np.bitwise_xor(bits, np.iinfo(bits.dtype).max), bits)

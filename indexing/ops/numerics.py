"""HLO arithmetic where it differs from NumPy, on arrays of one element type.

Integer division truncates. A division by zero gives −1, and its remainder is the dividend. A shift
by the width or more shifts out all bits. Conversion from floating point to an integer saturates.

Sources: XLA ``docs/operation_semantics.md``; for cases that it leaves open, the XLA evaluator,
``xla/hlo/evaluator/hlo_evaluator_typed_visitor.h``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from indexing.ops.unspecified import record_conversion, record_division

Array: TypeAlias = NDArray[Any]


def is_integer(array: Array) -> bool:
    """Return True for signed and unsigned integers, including the sub-byte types."""
    return array.dtype.kind in "iu" or array.dtype.name.startswith(("int", "uint"))


_small_limits: Any = ml_dtypes.iinfo  # has no types


def has_nan(dtype: np.dtype[Any]) -> bool:
    """Return True for a type of real floating-point numbers with NaN.

    >>> import ml_dtypes
    >>> [has_nan(np.dtype(t)) for t in ("f4", "c8", "i4", "bool", ml_dtypes.float4_e2m1fn)]
    [True, False, False, False, False]
    """
    if dtype.kind not in "fV" or is_integer(np.empty((), dtype)):
        return False
    with np.errstate(all="ignore"):
        return bool(np.isnan(np.asarray(np.nan).astype(dtype).astype(np.float64)))


def limits(dtype: np.dtype[Any]) -> tuple[int, int]:
    """Smallest and largest value of an integer type."""
    info: Any = np.iinfo(dtype) if dtype.kind in "iu" else _small_limits(dtype)
    return int(info.min), int(info.max)


def extremes(dtype: np.dtype[Any]) -> tuple[Any, Any]:
    """Smallest and largest value of a floating-point type: infinities, if it has them.

    >>> extremes(np.dtype(np.float32)), extremes(np.dtype(ml_dtypes.float8_e4m3fn))
    ((-inf, inf), (-448, 448))
    """
    if np.isinf(np.asarray(np.inf).astype(dtype)):
        return -np.inf, np.inf
    info: Any = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call] # the package has no types
    return info.min, info.max


def width(dtype: np.dtype[Any]) -> int:
    """Bits of an integer type."""
    low, high = limits(dtype)
    return (high - low).bit_length()


def wrap_integers(x: Array, dtype: np.dtype[Any]) -> Array:
    """`x` modulo ``2 ** width(dtype)``, as values of the integer type `dtype`.

    >>> wrap_integers(np.array([5, 9, -9]), np.dtype(ml_dtypes.int4))
    array([5, -7, 7], dtype=int4)
    """
    if dtype.kind in "iu":
        return x.astype(dtype)
    low, high = limits(dtype)
    wide = x.astype(np.int64)
    return np.asarray(((wide - low) & (high - low)) + low).astype(dtype)


def clamp(value: Any, low: int, high: int) -> Any:
    """Convert a scalar or an array to indices, clamped to ``[low, high]``.

    >>> clamp(np.uint8(200), 0, 300), clamp(np.array([-3, 7]), 0, 5)
    (200, array([0, 5]))
    """
    array = np.asarray(value)
    if not array.ndim:
        return min(max(int(array), low), high)
    if array.dtype == np.uint64:
        array = np.minimum(array, np.uint64(max(high, 0)))
    return np.clip(array.astype(np.int64), low, high)


def on_integers(function: Callable[[Array, Array, int], Array]) -> Callable[[Array, Array], Array]:
    """Return ``(a, b) -> function(a, b, width)`` on integer arrays, including sub-byte types.

    Sub-byte integers are computed in 64 bits and wrapped.
    """

    def on_arrays(left: Array, right: Array) -> Array:
        kind, bits = left.dtype, width(left.dtype)
        if kind.kind not in "iu":
            left, right = left.astype(np.int64), right.astype(np.int64)
        with np.errstate(all="ignore"):
            return wrap_integers(np.asarray(function(left, right, bits)), kind)

    return on_arrays


def on_plain(function: Callable[..., Any], *arrays: Array) -> Array:
    """``function(*arrays)``; ufuncs of sub-byte integers are computed in 64 bits and wrapped.

    >>> on_plain(np.add, np.array([7], ml_dtypes.int4), np.array([2], ml_dtypes.int4))
    array([-7], dtype=int4)
    """
    kind = arrays[0].dtype
    if not isinstance(function, np.ufunc) or kind.kind in "biufc" or not is_integer(arrays[0]):
        return np.asarray(function(*arrays))
    wide = np.asarray(function(*[array.astype(np.int64) for array in arrays]))
    return wrap_integers(wide, kind) if wide.dtype == np.int64 else wide


# ---------------------------------------------------------------- one operand


def logistic(x: Array) -> Array:
    one = x.dtype.type(1)
    return np.asarray(one / (one + np.exp(-x)))


def rsqrt(x: Array) -> Array:
    return np.asarray(x.dtype.type(1) / np.sqrt(x))


def cbrt(x: Array) -> Array:
    return np.asarray(x ** (1 / 3) if x.dtype.kind == "c" else np.cbrt(x))


def sign(x: Array) -> Array:
    return x if x.dtype.kind == "b" else np.where(x == 0, x, np.sign(x)).astype(x.dtype)


def round_away(x: Array) -> Array:
    """`x` rounded to the nearest integer, ties away from zero."""
    whole = np.trunc(x)
    away = np.abs(x - whole) >= x.dtype.type(0.5)
    return np.where(away, whole + np.sign(x), whole).astype(x.dtype)


def erf(x: Array) -> Array:
    """The error function in double precision, rounded to the type of `x`."""
    values = map(math.erf, x.astype(np.float64).flat)
    return np.fromiter(values, np.float64, x.size).reshape(x.shape).astype(x.dtype)


def _bits(x: Array) -> Array:
    """The bits of integers, zero-extended to ``uint64``."""
    wide = x.astype(np.uint64 if x.dtype.kind == "u" else np.int64).view(np.uint64)
    return np.asarray(wide & np.uint64((1 << width(x.dtype)) - 1))


def leading_zeros(x: Array) -> Array:
    below = _bits(x)
    for shift in (1, 2, 4, 8, 16, 32):
        below = below | (below >> np.uint64(shift))
    count = width(x.dtype) - np.bitwise_count(below).astype(np.int64)
    return wrap_integers(count, x.dtype)


def population(x: Array) -> Array:
    return wrap_integers(np.bitwise_count(_bits(x)).astype(np.int64), x.dtype)


def reduced_precision(x: Array, exponent_bits: int, mantissa_bits: int) -> Array:
    """`x` rounded (ties to even) to a narrower floating-point format, then widened again.

    Fewer exponent bits than those of `x` flush subnormal numbers to zero. A format with as many
    exponent and mantissa bits changes nothing.
    """
    own: Any = ml_dtypes.finfo(x.dtype)  # type: ignore[no-untyped-call] # the package has no types
    wide = x.astype(np.float64)
    exponent = np.maximum(np.frexp(wide)[1], own.minexp + 1)  # subnormals have fewer bits
    step = 2.0 ** (min(mantissa_bits, own.nmant) + 1)
    rounded = np.ldexp(np.rint(np.ldexp(wide, -exponent) * step) / step, exponent)
    if exponent_bits < own.nexp:
        largest = 2.0 ** (2 ** (exponent_bits - 1) - 1) * (2 - 2.0**-mantissa_bits)
        smallest = 2.0 ** (2 - 2 ** (exponent_bits - 1))  # smallest normal number
        rounded = np.where(np.abs(rounded) > largest, np.copysign(np.inf, wide), rounded)
        rounded = np.where(np.abs(rounded) < smallest, np.copysign(0.0, wide), rounded)
    return np.where(np.isfinite(wide), rounded, wide).astype(x.dtype)


def convert_array(x: Array, dtype: np.dtype[Any]) -> Array:
    """`x` converted to `dtype`; from floating point to integer it saturates, and NaN gives 0."""
    if x.dtype.kind == "c" and dtype.kind != "c":
        x = x.real
    if dtype.kind == "b":
        return np.asarray(x != 0)
    if not is_integer(np.empty(0, dtype)):
        return x.astype(dtype)
    if is_integer(x) or x.dtype.kind == "b":
        return wrap_integers(x, dtype)
    low, high = limits(dtype)
    record_conversion(x, low, high)
    values = np.where(np.isnan(x), x.dtype.type(0), x).astype(np.float64)
    inside = (values > low) & (values < high)  # the bounds may not be representable
    whole = np.where(inside, values, 0).astype(np.int64 if low else np.uint64)
    edges = np.where(values >= high, high, low).astype(whole.dtype)
    return np.where(inside, whole, edges).astype(dtype)


def convert_stochastically(x: Array, random: Array, dtype: np.dtype[Any]) -> Array:
    """`x` rounded to an integer; `random` rounds the magnitude up with its fraction's probability.

    Args:
        x: floating-point values.
        random: unsigned integers, uniformly distributed.
        dtype: the integer type of the result.
    """
    magnitude = np.abs(x.astype(np.float64))
    whole = np.trunc(magnitude)
    threshold = (magnitude - whole) * 2.0 ** width(random.dtype)
    rounded = np.where(random.astype(np.float64) < threshold, whole + 1, whole)
    return convert_array(np.copysign(rounded, x.astype(np.float64)), dtype)


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
    if is_integer(a):
        record_division(a, b, limits(a.dtype)[0])
        return on_integers(_quotient)(a, b)
    return _complex_quotient(a, b) if a.dtype.kind == "c" else np.asarray(a / b)


def _complex_quotient(a: Array, b: Array) -> Array:
    """``a / b``; infinite over finite is infinite, finite over infinite is zero.

    Source: C standard, annex G.5.1.
    """
    result = np.asarray(a / b)
    lost = (np.isnan(result.real) & np.isnan(result.imag)) | (b == 0)
    if not lost.any():
        return result
    one, zero = a.real.dtype.type(1), a.real.dtype.type(0)
    infinite = a.real.dtype.type(np.inf)

    def box_infinities(x: Array) -> Array:
        return np.asarray(np.copysign(np.where(np.isinf(x), one, zero), x))

    def times(factor: Any, left: tuple[Array, Array], right: tuple[Array, Array]) -> Array:
        (x, y), (c, d) = left, right
        return complex_number(factor * (x * c + y * d), factor * (y * c - x * d))

    parts, others = (a.real, a.imag), (b.real, b.imag)
    by_zero = (b == 0) & ~(np.isnan(a.real) & np.isnan(a.imag))
    unbounded = np.copysign(infinite, b.real)
    is_large = np.isinf(a) & np.isfinite(b)
    is_small = np.isfinite(a) & np.isinf(b)
    fixes = [
        (by_zero, complex_number(unbounded * a.real, unbounded * a.imag)),
        (is_large, times(infinite, (box_infinities(a.real), box_infinities(a.imag)), others)),
        (is_small, times(zero, parts, (box_infinities(b.real), box_infinities(b.imag)))),
    ]
    for applies, value in reversed(fixes):
        result = np.where(lost & applies, value, result)
    return np.asarray(result, a.dtype)


def remainder(a: Array, b: Array) -> Array:
    if is_integer(a):
        record_division(a, b, limits(a.dtype)[0])
        return on_integers(_remainder)(a, b)
    return np.fmod(a, b)


def power(a: Array, b: Array) -> Array:
    return on_integers(_power)(a, b) if is_integer(a) else np.power(a, b)


def high_product(a: Array, b: Array) -> Array:
    """The upper half of the bits of the product."""
    return on_integers(_high_product)(a, b)


def shift_left(a: Array, b: Array) -> Array:
    return on_integers(lambda x, y, bits: _shift_within(np.left_shift, x, y, bits, x * 0))(a, b)


def shift_arithmetic(a: Array, b: Array) -> Array:
    """``a >> b``, filled with the highest bit of `a`, also for unsigned types."""
    return on_integers(_shift_arithmetic)(a, b)


def shift_logical(a: Array, b: Array) -> Array:
    return on_integers(_shift_logical)(a, b)


def _quotient(a: Array, b: Array, bits: int) -> Array:
    divisor = np.where(b == 0, b.dtype.type(1), b)
    floor = a // divisor
    rounds_up = ((a < 0) != (divisor < 0)) & (floor * divisor != a)
    return np.where(b == 0, ~b, floor + rounds_up.astype(a.dtype))  # ~0 is −1


def _remainder(a: Array, b: Array, bits: int) -> Array:
    return np.where(b == 0, a, np.fmod(a, np.where(b == 0, b.dtype.type(1), b)))


def _power(a: Array, b: Array, bits: int) -> Array:
    """``a ** b`` by squaring; for a negative exponent it is 0, except for bases 1 and −1."""
    one = a.dtype.type(1)
    square, exponent = a, np.where(b < 0, b & one, b)
    result = np.broadcast_to(one, np.broadcast_shapes(a.shape, b.shape))
    while exponent.any():
        result = np.where(exponent & one, result * square, result)
        square, exponent = square * square, exponent >> one
    return np.asarray(np.where((b < 0) & (np.abs(a) != one), a.dtype.type(0), result))


def _high_product(a: Array, b: Array, bits: int) -> Array:
    if bits < 32 or (bits == 32 and a.dtype.kind == "i"):
        return (a.astype(np.int64) * b.astype(np.int64)) >> bits
    if bits == 32:
        return (a.astype(np.uint64) * b.astype(np.uint64)) >> np.uint64(32)
    half, mask = np.uint64(32), np.uint64(2**32 - 1)
    x, y = a.astype(np.uint64), b.astype(np.uint64)
    low = (x & mask) * (y & mask)
    middle = (x >> half) * (y & mask) + (low >> half)
    other = (x & mask) * (y >> half) + (middle & mask)
    high = (x >> half) * (y >> half) + (middle >> half) + (other >> half)
    if a.dtype.kind == "i":  # the unsigned value of a negative number is 2^64 too large
        high = high - np.where(a < 0, y, np.uint64(0)) - np.where(b < 0, x, np.uint64(0))
    return np.asarray(high)


def _shift_within(shift: Callable[..., Any], x: Array, y: Array, bits: int, beyond: Array) -> Array:
    """``shift(x, y)``, or `beyond` where y is negative or at least the width."""
    inside = (y >= 0) & (y < bits)
    return np.where(inside, shift(x, np.where(inside, y, y.dtype.type(0))), beyond)


def _shift_arithmetic(x: Array, y: Array, bits: int) -> Array:
    signed = x
    if x.dtype.kind == "u":
        signed = x.view(np.dtype(f"i{x.dtype.itemsize}"))
        y = np.minimum(y, y.dtype.type(bits)).astype(signed.dtype)
    elif bits < 8:
        top = 1 << (bits - 1)  # the sign bit of the narrow type
        signed = ((x & (2 * top - 1)) ^ top) - top
    sign = signed >> signed.dtype.type(8 * signed.dtype.itemsize - 1)
    return _shift_within(np.right_shift, signed, y, bits, sign)


def _shift_logical(x: Array, y: Array, bits: int) -> Array:
    unsigned = x & ((1 << bits) - 1) if bits < 8 else x.view(np.dtype(f"u{x.dtype.itemsize}"))
    amount = np.where((y >= 0) & (y < bits), y, y.dtype.type(bits)).astype(unsigned.dtype)
    return _shift_within(np.right_shift, unsigned, amount, bits, unsigned * 0)


def total_order(x: Array) -> Array:
    """Integers that are ordered as −NaN < −∞ < .. < −0 < +0 < .. < ∞ < NaN."""
    if x.dtype == ml_dtypes.float8_e8m0fnu:  # unsigned powers of two
        return x.view(np.uint8)
    bits = x.view(np.dtype(f"int{x.dtype.itemsize * 8}"))
    if x.dtype == ml_dtypes.float4_e2m1fn:
        bits = bits << 4
    return np.where(bits < 0, np.bitwise_xor(bits, np.iinfo(bits.dtype).max), bits)

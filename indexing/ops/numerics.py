"""What HLO's arithmetic gives where NumPy's differs: on arrays of one element type.

Sources: XLA ``docs/operation_semantics.md`` and, where it is silent, XLA's evaluator
(``xla/hlo/evaluator/hlo_evaluator_typed_visitor.h``): integer division truncates, a division by
zero gives −1 and its remainder the dividend; shifts by the width or more shift everything out;
conversion to an integer saturates.
"""

from __future__ import annotations

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


def wrapped(x: Array, dtype: np.dtype[Any]) -> Array:
    """Integers modulo two to the width of an integer type, as values of the type.

    >>> wrapped(np.array([5, 9, -9]), np.dtype(ml_dtypes.int4))
    array([5, -7, 7], dtype=int4)
    """
    if dtype.kind in "iu":
        return x.astype(dtype)
    low, high = limits(dtype)
    wide = x.astype(np.int64)
    return np.asarray(((wide - low) & (high - low)) + low).astype(dtype)


def on_integers(function: Callable[[Array, Array, int], Array]) -> Callable[[Array, Array], Array]:
    """``function(a, b, width)`` on arrays of integers, also on those types that NumPy lacks."""

    def on_arrays(left: Array, right: Array) -> Array:
        kind, bits = left.dtype, width(left.dtype)
        if kind.kind not in "iu":
            left, right = left.astype(np.int64), right.astype(np.int64)
        with np.errstate(all="ignore"):
            return wrapped(np.asarray(function(left, right, bits)), kind)

    return on_arrays


def on_plain(function: Callable[..., Any], *arrays: Array) -> Array:
    """``function(*arrays)``; NumPy's functions of integers that it lacks go by those of 64 bits.

    >>> on_plain(np.add, np.array([7], ml_dtypes.int4), np.array([2], ml_dtypes.int4))
    array([-7], dtype=int4)
    """
    kind = arrays[0].dtype
    if not isinstance(function, np.ufunc) or kind.kind in "biufc" or not is_integer(arrays[0]):
        return np.asarray(function(*arrays))
    found = np.asarray(function(*[array.astype(np.int64) for array in arrays]))
    return wrapped(found, kind) if found.dtype == np.int64 else found


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
    """To the nearest integer, halves away from zero."""
    whole = np.trunc(x)
    away = np.abs(x - whole) >= x.dtype.type(0.5)
    return np.where(away, whole + np.sign(x), whole).astype(x.dtype)


def erf(x: Array) -> Array:
    from scipy.special import erf  # quick to use, slow to load

    wide = x if x.dtype in (np.float32, np.float64) else x.astype(np.float32)
    return np.asarray(erf(wide)).astype(x.dtype)


def _bits(x: Array) -> Array:
    """The bits of integers, as integers of 64 bits without sign."""
    wide = x.astype(np.uint64 if x.dtype.kind == "u" else np.int64).view(np.uint64)
    return np.asarray(wide & np.uint64((1 << width(x.dtype)) - 1))


def leading_zeros(x: Array) -> Array:
    below = _bits(x)
    for shift in (1, 2, 4, 8, 16, 32):
        below = below | (below >> np.uint64(shift))
    count = width(x.dtype) - np.bitwise_count(below).astype(np.int64)
    return wrapped(count, x.dtype)


def population(x: Array) -> Array:
    return wrapped(np.bitwise_count(_bits(x)).astype(np.int64), x.dtype)


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
    if not is_integer(np.empty(0, dtype)):
        return x.astype(dtype)
    if is_integer(x) or x.dtype.kind == "b":
        return wrapped(x, dtype)
    low, high = limits(dtype)
    values = np.where(np.isnan(x), x.dtype.type(0), x).astype(np.float64)
    inside = (values > low) & (values < high)  # neither bound need be a floating number
    whole = np.where(inside, values, 0).astype(np.int64 if low else np.uint64)
    edges = np.where(values >= high, high, low).astype(whole.dtype)
    return np.where(inside, whole, edges).astype(dtype)


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
    if is_integer(a):
        return on_integers(_quotient)(a, b)
    return _complex_quotient(a, b) if a.dtype.kind == "c" else np.asarray(a / b)


def _complex_quotient(a: Array, b: Array) -> Array:
    """As C says (annex G.5.1): infinite over finite is infinite, finite over infinite is zero."""
    found = np.asarray(a / b)
    lost = (np.isnan(found.real) & np.isnan(found.imag)) | (b == 0)
    if not lost.any():
        return found
    one, zero = a.real.dtype.type(1), a.real.dtype.type(0)
    infinite = a.real.dtype.type(np.inf)

    def boxed(x: Array) -> Array:
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
        (is_large, times(infinite, (boxed(a.real), boxed(a.imag)), others)),
        (is_small, times(zero, parts, (boxed(b.real), boxed(b.imag)))),
    ]
    for applies, value in reversed(fixes):
        found = np.where(lost & applies, value, found)
    return np.asarray(found, a.dtype)


def remainder(a: Array, b: Array) -> Array:
    return on_integers(_remainder)(a, b) if is_integer(a) else np.fmod(a, b)


def power(a: Array, b: Array) -> Array:
    return on_integers(_power)(a, b) if is_integer(a) else np.power(a, b)


def high_product(a: Array, b: Array) -> Array:
    """The upper half of the product's bits."""
    return on_integers(_high_product)(a, b)


def shift_left(a: Array, b: Array) -> Array:
    return on_integers(lambda x, y, bits: _shifted(np.left_shift, x, y, bits, x * 0))(a, b)


def shift_arithmetic(a: Array, b: Array) -> Array:
    """The highest bit fills up, whether it is a sign or not."""
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
    """By squaring; with a negative exponent only 1 and −1 have powers other than 0."""
    one = a.dtype.type(1)
    square, left = a, np.where(b < 0, b & one, b)
    found = np.broadcast_to(one, np.broadcast_shapes(a.shape, b.shape))
    while left.any():
        found = np.where(left & one, found * square, found)
        square, left = square * square, left >> one
    return np.asarray(np.where((b < 0) & (np.abs(a) != one), a.dtype.type(0), found))


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
    if a.dtype.kind == "i":  # a negative number is 2^64 too large
        high = high - np.where(a < 0, y, np.uint64(0)) - np.where(b < 0, x, np.uint64(0))
    return np.asarray(high)


def _shifted(shift: Callable[..., Any], x: Array, y: Array, bits: int, beyond: Array) -> Array:
    """``shift(x, y)``, or `beyond` where y is negative or the width or more."""
    inside = (y >= 0) & (y < bits)
    return np.where(inside, shift(x, np.where(inside, y, y.dtype.type(0))), beyond)


def _shift_arithmetic(x: Array, y: Array, bits: int) -> Array:
    signed = x
    if x.dtype.kind == "u":
        signed = x.view(np.dtype(f"i{x.dtype.itemsize}"))
        y = np.minimum(y, y.dtype.type(bits)).astype(signed.dtype)
    elif bits < 8:
        top = 1 << (bits - 1)  # the sign that the widened bits would have
        signed = ((x & (2 * top - 1)) ^ top) - top
    sign = signed >> signed.dtype.type(8 * signed.dtype.itemsize - 1)
    return _shifted(np.right_shift, signed, y, bits, sign)


def _shift_logical(x: Array, y: Array, bits: int) -> Array:
    unsigned = x & ((1 << bits) - 1) if bits < 8 else x.view(np.dtype(f"u{x.dtype.itemsize}"))
    amount = np.where((y >= 0) & (y < bits), y, y.dtype.type(bits)).astype(unsigned.dtype)
    return _shifted(np.right_shift, unsigned, amount, bits, unsigned * 0)


def total_order(x: Array) -> Array:
    """Integers in the order −NaN < −∞ < .. < −0 < +0 < .. < ∞ < NaN."""
    if x.dtype == ml_dtypes.float8_e8m0fnu:  # powers of two without a sign
        return x.view(np.uint8)
    bits = x.view(np.dtype(f"int{x.dtype.itemsize * 8}"))
    if x.dtype == ml_dtypes.float4_e2m1fn:
        bits = bits << 4
    return np.where(bits < 0, np.bitwise_xor(bits, np.iinfo(bits.dtype).max), bits)

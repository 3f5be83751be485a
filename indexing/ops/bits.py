"""Bits of array elements as XLA stores them: low bits first, also for elements below one byte."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def repack_bits(array: NDArray[Any], dtype: np.dtype[Any], widths: tuple[int, int]) -> NDArray[Any]:
    """Return the elements of type `dtype` that have the bits of the elements along the last axis.

    Args:
        array: the elements. Types narrower than one byte take a byte each, as in ml_dtypes.
        dtype: the type of the result.
        widths: the bits of one element in memory: of `array`, and of the result. A width may exceed
            the bits of the type; the excess bits are those of its NumPy type, then zeros.
    Returns:
        An array whose last axis has as many elements as the bits fill.

    >>> import ml_dtypes
    >>> nibbles = np.array([[3, 2], [2, 1], [1, 0]], ml_dtypes.int4)
    >>> repack_bits(nibbles, np.dtype(np.int8), (4, 8)).tolist()
    [[35], [18], [1]]

    Source: XLA ``docs/operation_semantics.md``, "BitcastConvertType"; `ml_dtypes` for storage.
    """
    array = np.ascontiguousarray(array)
    ours, theirs = widths
    if (ours, theirs) == (8 * array.itemsize, 8 * dtype.itemsize):
        return array.view(dtype)
    bits = _fit_width(_bits_of(array), ours)
    count = array.shape[-1] * ours // theirs
    bits = bits.reshape(*array.shape[:-1], -1)[..., : count * theirs]
    stored = _fit_width(bits.reshape(*array.shape[:-1], count, theirs), 8 * dtype.itemsize)
    packed = np.packbits(stored, axis=-1, bitorder="little")
    return packed.view(dtype)[..., 0]


def _bits_of(array: NDArray[Any]) -> NDArray[np.uint8]:
    """The bits of each element along a new last axis."""
    stored = array[..., None].view(np.uint8)
    return np.unpackbits(stored, axis=-1, bitorder="little")


def _fit_width(bits: NDArray[np.uint8], width: int) -> NDArray[np.uint8]:
    """The lowest `width` bits along the last axis; missing high bits are 0."""
    missing = width - bits.shape[-1]
    if missing <= 0:
        return bits[..., :width]
    return np.pad(bits, [*[(0, 0)] * (bits.ndim - 1), (0, missing)])

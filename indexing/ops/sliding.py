"""NumPy kernels of sliding windows: overlaps with an array, window reductions and correlation."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product
from math import gcd
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hlo.ops.attributes import WindowDimension, dilated_size
from indexing.ops.functions import neutral
from indexing.ops.reductions import narrow, widen

Array: TypeAlias = NDArray[Any]
Slices: TypeAlias = tuple[slice, ...]


def overlap(
    window: Sequence[WindowDimension], element: Sequence[int], sizes: Sequence[int]
) -> tuple[Slices, Slices] | None:
    """Window positions where window element `element` is on the array, and the array's indices.

    Returns:
        Slices of positions and slices of indices, of equal length in each dimension; None if the
        window element is never on the array.

    >>> w = WindowDimension(size=3, stride=2, low=1, high=1)
    >>> overlap([w], [0], [13])
    ((slice(1, 7, 1),), (slice(1, 12, 2),))
    """
    slices = [_overlap(*each) for each in zip(window, element, sizes, strict=True)]
    pairs = [pair for pair in slices if pair is not None]
    if len(pairs) < len(slices):
        return None
    return tuple([at for at, _ in pairs]), tuple([on for _, on in pairs])


def _overlap(w: WindowDimension, s: int, size: int) -> tuple[slice, slice] | None:
    """`overlap` in one dimension.

    At position i, window element s is at ``i·stride + s·window_dilation − low`` of the array that
    is dilated by base_dilation.
    """
    base = s * w.window_dilation - w.low
    step = w.base_dilation // gcd(w.stride, w.base_dilation)
    last = (size - 1) * w.base_dilation
    first = max(0, -(base // w.stride))
    end = min(w.positions(size) - 1, (last - base) // w.stride)
    while first <= end and (first * w.stride + base) % w.base_dilation:
        first += 1  # at most base_dilation times, unless no position exists
        if first > step + max(0, -(base // w.stride)):
            return None
    if first > end or size == 0:
        return None
    count = (end - first) // step + 1
    on = (first * w.stride + base) // w.base_dilation
    stride = step * w.stride // w.base_dilation
    positions = slice(first, first + (count - 1) * step + 1, step)
    return positions, slice(on, on + (count - 1) * stride + 1, stride)


def overlaps(
    window: Sequence[WindowDimension], sizes: Sequence[int]
) -> Iterator[tuple[tuple[int, ...], Slices, Slices]]:
    """Yield each window element that is on the array at some position, in order, with `overlap`.

    >>> from hlo.ops.attributes import WindowDimension
    >>> from indexing.ops.sliding import overlaps
    >>> for taps, positions, elements in overlaps([WindowDimension(size=2, low=1)], [3]):
    ...     print(taps, positions, elements)
    (0,) (slice(1, 3, 1),) (slice(0, 2, 1),)
    (1,) (slice(0, 3, 1),) (slice(0, 3, 1),)
    """
    for s in product(*[range(w.size) for w in window]):
        slices = overlap(window, s, sizes)
        if slices is not None:
            yield s, *slices


def window_totals(
    ufunc: np.ufunc, init: Array, array: Array, window: Sequence[WindowDimension]
) -> Array:
    """Reduction of each window with `ufunc`, dimension by dimension; `init` is combined last.

    >>> import numpy as np
    >>> from hlo.ops.attributes import WindowDimension
    >>> from indexing.ops.sliding import window_totals
    >>> window = [WindowDimension(size=2, stride=2)]
    >>> window_totals(np.add, np.float32(100), np.arange(6, dtype="f4"), window).tolist()
    [101.0, 105.0, 109.0]
    """
    wide = widen(array)
    padding = neutral(ufunc, wide.dtype)
    with np.errstate(all="ignore"):
        for axis, w in enumerate(window):
            if w != WindowDimension(size=1):
                wide = _reduce_along(ufunc, padding, wide, axis, w)
        return narrow(np.asarray(ufunc(wide, init.astype(wide.dtype))), array.dtype)


def _reduce_along(
    ufunc: np.ufunc, padding: Any, array: Array, axis: int, w: WindowDimension
) -> Array:
    """Reduction of the windows along one dimension of an array."""
    rows = np.moveaxis(array, axis, 0)
    size, count = rows.shape[0], w.positions(rows.shape[0])
    length = dilated_size(w.size, w.window_dilation) + max(0, count - 1) * w.stride
    padded = np.full((length, *rows.shape[1:]), padding, rows.dtype)
    first = max(0, -(w.low // w.base_dilation))  # the first element after negative padding
    places = range(w.low + first * w.base_dilation, length, w.base_dilation)[: max(0, size - first)]
    padded[places.start : places.start + len(places) * w.base_dilation : w.base_dilation][
        : len(places)
    ] = rows[first : first + len(places)]
    starts = length - (w.size - 1) * w.window_dilation
    total, covered, chunk, span = None, 0, padded, 1
    while covered < w.size:  # `chunk` contains reductions of `span` neighbours; `span` doubles
        if (w.size - covered) & span:
            begin = covered * w.window_dilation
            part = chunk[begin : begin + starts]
            total = part if total is None else ufunc(total, part)
            covered += span
        if covered < w.size:
            shift = span * w.window_dilation
            chunk = ufunc(chunk[: len(chunk) - shift], chunk[shift:])
            span *= 2
    assert total is not None
    return np.moveaxis(total[:: w.stride][:count], 0, axis)


_MOST_ELEMENTS: Final = 256
"""Limit on the elements of a padded window that are summed one by one."""


def cross_correlation(array: Array, taps: Array, window: Sequence[WindowDimension]) -> Array:
    """Cross-correlation of an array with `taps`: the sum of products at each window position.

    Holes and padding contribute nothing, also where a tap is infinite or no number.

    Args:
        array: dimensions group, batch, those of the window, input feature.
        taps: dimensions group, those of the window, input feature, output feature.
        window: strides, padding and dilations.
    Returns:
        Dimensions group, batch, those of the window, output feature.

    >>> import numpy as np
    >>> from hlo.ops.attributes import WindowDimension
    >>> from indexing.ops.sliding import cross_correlation
    >>> array = np.arange(4, dtype="f4").reshape(1, 1, 4, 1)
    >>> taps = np.array([1, 10], "f4").reshape(1, 2, 1, 1)
    >>> cross_correlation(array, taps, [WindowDimension(size=2)]).ravel().tolist()
    [10.0, 21.0, 32.0]
    """
    spatial = array.shape[2:-1]
    counts = [w.positions(n) for w, n in zip(window, spatial, strict=True)]
    groups, batch, outputs = array.shape[0], array.shape[1], taps.shape[-1]
    shape = (groups, batch, *counts, outputs)
    length = math.prod(taps.shape[1:-1])
    if 0 in shape or length == 0:
        return np.zeros(shape, array.dtype)
    with np.errstate(all="ignore"):
        if _sums_by_element(taps, window):
            return _sum_by_element(array, taps, window, shape)
    windows = _windows_view(array, counts, window)
    flat = taps.reshape(groups, length, outputs)

    def sums(part: Array) -> Array:
        rows = part.reshape(groups, -1, length)
        products: Array = np.matmul(rows, flat)
        return products.reshape(*part.shape[: len(counts) + 2], outputs)

    with np.errstate(all="ignore"):
        blocks = list(_blocks(shape[1:-1], groups * length * array.dtype.itemsize))
        if len(blocks) == 1:
            return sums(windows)
        out = np.empty(shape, array.dtype)
        for place in blocks:
            out[:, *place] = sums(windows[:, *place])
    return out


def add_padding_products(
    total: Array, taps: Array, window: Sequence[WindowDimension], sizes: Sequence[int]
) -> Array:
    """Add the products of taps with the zeros of padding: NaN for infinities and NaN, else 0.

    Args:
        total: the result of `cross_correlation` with these taps; may be changed.
        sizes: those of the array, for each dimension of the window.

    >>> import numpy as np
    >>> from hlo.ops.attributes import WindowDimension
    >>> from indexing.ops.sliding import add_padding_products
    >>> taps = np.array([np.inf, 10], "f4").reshape(1, 2, 1, 1)
    >>> totals = np.zeros((1, 1, 4, 1), "f4")  # a window of 2 elements, one of padding before 4
    >>> add_padding_products(totals, taps, [WindowDimension(size=2, low=1)], [4]).ravel().tolist()
    [nan, 0.0, 0.0, 0.0]
    """
    with np.errstate(all="ignore"):
        products = np.moveaxis((taps * 0).sum(-2), 0, -2)  # the window, group, output feature
        for s in map(tuple, np.argwhere(np.any(products != 0, axis=(-2, -1)))):
            is_padding = np.ones(total.shape[2:-1], bool)
            slices = overlap(window, s, sizes)
            if slices is not None:
                is_padding[slices[0]] = False
            total[:, :, is_padding] += products[s][:, None, None]
    return total


def _sums_by_element(taps: Array, window: Sequence[WindowDimension]) -> bool:
    """Return True if `cross_correlation` multiplies no zero of holes and padding.

    Values decide for large windows only: a sum in another order rounds otherwise.
    """
    if any(w.base_dilation > 1 for w in window):
        return True
    is_padded = any(w.low > 0 or w.high > 0 for w in window)
    is_small = math.prod(w.size for w in window) <= _MOST_ELEMENTS
    return is_padded and (is_small or bool(np.any(taps * 0 != 0)))


def _sum_by_element(
    array: Array, taps: Array, window: Sequence[WindowDimension], shape: Sequence[int]
) -> Array:
    """`cross_correlation` as a sum over window elements, each times the elements below it."""
    out = np.zeros(shape, array.dtype)
    for s, at, on in overlaps(window, array.shape[2:-1]):
        part = array[:, :, *on]
        tap: tuple[slice | int, ...] = (slice(None), *s)
        products = np.matmul(part.reshape(len(part), -1, part.shape[-1]), taps[tap])
        out[:, :, *at] += products.reshape(*part.shape[:-1], shape[-1])
    return out


def _windows_view(array: Array, counts: Sequence[int], window: Sequence[WindowDimension]) -> Array:
    """View with dimensions group, batch, positions, window, input; zero where no element is."""
    sizes = [
        dilated_size(w.size, w.window_dilation) + (n - 1) * w.stride
        for w, n in zip(window, counts, strict=True)
    ]
    padded = _pad(array, sizes, window)
    steps = padded.strides[2:-1]
    strides = [
        *padded.strides[:2],
        *[step * w.stride for step, w in zip(steps, window, strict=True)],
        *[step * w.window_dilation for step, w in zip(steps, window, strict=True)],
        padded.strides[-1],
    ]
    shape = [*padded.shape[:2], *counts, *[w.size for w in window], padded.shape[-1]]
    return np.lib.stride_tricks.as_strided(padded, shape, strides, writeable=False)


def _pad(array: Array, sizes: Sequence[int], window: Sequence[WindowDimension]) -> Array:
    """The array with the padding of the window, cropped to `sizes`."""
    source: list[slice] = [slice(None), slice(None)]
    target: list[slice] = [slice(None), slice(None)]
    for w, n, size in zip(window, array.shape[2:-1], sizes, strict=True):
        end = max(0, min(n, size - w.low))
        source.append(slice(max(0, -w.low), end))
        target.append(slice(max(0, w.low), max(0, end + w.low)))
    cut: Array = array[tuple(source)]
    if cut.shape[2:-1] == tuple(sizes):
        return cut
    padded = np.zeros((*array.shape[:2], *sizes, array.shape[-1]), array.dtype)
    padded[tuple(target)] = cut
    return padded


_BLOCK = 1 << 25


def _blocks(sizes: Sequence[int], each: int) -> Iterator[tuple[slice, ...]]:
    """Yield parts of about `_BLOCK` bytes of an index space, split along its first two dimensions.

    Args:
        sizes: the sizes of the index space.
        each: bytes that each element of the index space needs.
    """
    inner = [math.prod(sizes[k + 1 :]) * each for k in range(2)]
    steps = [max(1, min(n, _BLOCK // max(1, i))) for n, i in zip(sizes, inner, strict=False)]
    for starts in product(*[range(0, n, step) for n, step in zip(sizes, steps, strict=False)]):
        yield tuple([slice(at, at + step) for at, step in zip(starts, steps, strict=False)])


def windows_of(array: Array, sizes: Sequence[int]) -> Array:
    """View of the windows of these sizes: dimensions of their starts, then those of a window.

    >>> import numpy as np
    >>> from indexing.ops.sliding import windows_of
    >>> windows_of(np.arange(4), [3]).tolist()
    [[0, 1, 2], [1, 2, 3]]
    """
    plain = array if array.dtype.isbuiltin == 1 else array.view(f"u{array.dtype.itemsize}")
    windows = np.lib.stride_tricks.sliding_window_view(plain, tuple(sizes))
    return windows.view(array.dtype)


__all__ = [
    "add_padding_products",
    "cross_correlation",
    "overlap",
    "overlaps",
    "window_totals",
    "windows_of",
]

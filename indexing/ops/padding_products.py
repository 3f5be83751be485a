"""Products of a convolution's kernel with the zeros of padding and holes, in XLA:CPU."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import Any, Literal, TypeAlias

import numpy as np

from hlo.ops.attributes import WindowDimension
from indexing.ops.numerics import has_nan
from indexing.ops.windows import is_batch

PaddingProducts: TypeAlias = Literal["multiplied", "omitted", "unknown"]


def padding_products(
    window: Sequence[WindowDimension],
    sizes: Sequence[int],
    counts: Iterable[int],
    types: Iterable[np.dtype[Any]],
    feature_groups: int = 1,
    batch_groups: int = 1,
) -> PaddingProducts:
    """Return what XLA:CPU does with the products of kernel elements and the zeros of padding.

    Eigen multiplies.  XLA:CPU does not call it for elements without NaN or of 64 bits, arrays of at
    most two elements, which may be unaligned, reversed windows, and more than three dimensions.
    Windows of one or two dimensions that are dilated at the base only are another function's,
    unless there are feature groups.

    Args:
        sizes: those of the array, for each dimension of the window.
        counts: numbers of elements of the operands and the result.
        types: those of the operands and the result.
    Returns:
        "unknown" for batch groups, which XLA:CPU replaces, for windows with more elements than the
        array, which it may exchange, and for batch dimensions of a dot.

    >>> three, f32 = [WindowDimension(size=3, low=1, high=1)], np.dtype(np.float32)
    >>> padding_products(three, [5], [5, 3, 5], [f32])
    'multiplied'
    >>> padding_products(three, [5], [5, 3, 5], [np.dtype(np.float64)])
    'omitted'
    >>> padding_products(three, [2], [4, 3, 4], [f32])
    'unknown'
    """
    if any(kind.itemsize > 4 or not has_nan(kind) for kind in types):
        return "omitted"
    if batch_groups > 1:
        return "unknown"
    if min(counts) <= 2 or _multiplies_elements_only(window, feature_groups):
        return "omitted"
    is_large = prod([w.size for w in window]) > prod(sizes)
    return "unknown" if is_large or any(map(is_batch, window, sizes)) else "multiplied"


def _multiplies_elements_only(window: Sequence[WindowDimension], feature_groups: int) -> bool:
    """Return True if XLA:CPU does not give these windows to Eigen."""
    if not 1 <= len(window) <= 3 or any(w.is_reversed for w in window):
        return True
    steps = [n for w in window for n in (w.stride, w.window_dilation)]
    is_dilated = any(w.base_dilation > 1 for w in window) and max(steps) == 1
    return is_dilated and len(window) < 3 and feature_groups == 1


def is_solved(w: WindowDimension, size: int, products: PaddingProducts) -> bool:
    """Return True if the formula of `only_element`, if there is one, is the window element.

    >>> is_solved(WindowDimension(size=2, stride=2, low=1, high=1), 2, "multiplied")
    False
    """
    return products == "omitted" or is_batch(w, size)


__all__ = ["PaddingProducts", "is_solved", "padding_products"]

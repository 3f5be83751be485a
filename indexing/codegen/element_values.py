"""Values with which validation fills arrays, or single elements."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, permutations
from typing import Final

import numpy as np

from indexing.codegen.differences import ElementIndex
from indexing.codegen.graph import Array
from indexing.ops.numerics import is_integer, limits

INDEX_FILLS: Final = 24
"""Number of fillings of integer operands with parts of an index: of their rows, and elements."""


def rows_selecting(array: Array, at: ElementIndex) -> list[Array]:
    """Return rows of an array of indices that select the element at `at`, in any order.

    The start of a window that fills its dimension is 0.

    >>> for row in rows_selecting(np.zeros((4, 2), np.int32), (5, 7)):
    ...     print(*row, end="  ")
    0 5  0 7  5 0  5 7  7 0  7 5
    """
    width = array.shape[-1] if array.shape else 1
    rows = [
        np.array(row).astype(array.dtype)
        for row in islice(permutations((0, *at), width), INDEX_FILLS)
    ]
    return [row if array.shape else row[0] for row in rows]


def is_square(array: Array) -> bool:
    """Return True for matrices, or a batch of them, with as many rows as columns."""
    is_matrix = array.ndim > 1 and array.shape[-1] == array.shape[-2]
    return is_matrix and array.dtype.kind in "fcV" and not is_integer(array)


def extremes(array: Array) -> Iterator[Array]:
    """Yield the largest integer, or else the infinities and a NaN, of the type of an array."""
    if is_integer(array):
        yield np.asarray(limits(array.dtype)[1]).astype(array.dtype)
    elif array.dtype.kind in "fcV":
        for value in (np.nan, np.inf, -np.inf):
            with np.errstate(all="ignore"):
                yield np.asarray(value).astype(array.dtype)


def fill(array: Array, value: float) -> bool:
    """Set all elements of an array, unless its type lacks the value; return True if it is set."""
    if array.dtype.kind == "b" and not 0 <= value <= 1:
        return False
    if is_integer(array):
        least, largest = limits(array.dtype)
        if not least <= value <= largest:
            return False
    with np.errstate(all="ignore"):
        array[...] = np.asarray(value).astype(array.dtype)
    return True

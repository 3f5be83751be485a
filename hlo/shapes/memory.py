"""Arrays in memory: positions of elements, padding, and conversion to physical buffers.

The layout of an array maps the index of an element to its position, counted in elements from 0, and
back. Some positions are padding. All functions accept numbers and NumPy arrays;
`indexing.maps.layouts` gives the same functions as indexing maps.

>>> import numpy
>>> letters = numpy.array([["a", "b", "c"], ["d", "e", "f"]])
>>> print(*to_physical(letters, Layout((0, 1))))
a d b e c f

Source: XLA ``docs/shapes.md``, "Layout" and "Padding"; ``docs/tiled_layout.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from hlo.arguments import checked, wrong_argument
from hlo.shapes.layout import Layout
from hlo.shapes.tiling import extent, index_at, index_with_guards, padded_dims, position_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

Numbers: TypeAlias = "int | Sequence[int] | NDArray[Any]"
Positions: TypeAlias = "int | NDArray[Any]"

MAX_KEPT: Final = 1 << 16
"""Limit on the elements of an array whose positions are kept for the next array of its shape."""


def linear_index(multi: Sequence[Numbers], dims: Sequence[int], layout: Layout) -> Positions:
    """Return the position of the element at an index, or an array of positions for arrays.

    >>> linear_index((2, 3), (3, 5), Layout((1, 0), tiles=((2, 2),)))
    17
    >>> linear_index(([0, 2], 3), (3, 5), Layout((1, 0)))
    array([ 3, 13])

    Raises:
        IndexError: an index is out of range.
    """
    if len(multi) != len(dims):
        raise IndexError(f"an index of {len(multi)} numbers for an array of {len(dims)} dimensions")
    one = [i for i in multi if isinstance(i, int)]
    if len(one) == len(multi):
        if not all(0 <= i < n for i, n in zip(one, dims, strict=True)):
            raise IndexError(f"index {tuple(one)} is out of range for dimensions {tuple(dims)}")
        position: int = position_of(one, dims, layout)
        return position
    import numpy

    arrays = numpy.broadcast_arrays(*[_integers("linear_index", "multi", i) for i in multi])
    for number, (array, size) in enumerate(zip(arrays, dims, strict=True)):
        if ((array < 0) | (array >= size)).any():
            raise IndexError(f"an index of dimension {number} is not in [0, {size - 1}]")
    positions: NDArray[Any] = numpy.asarray(position_of(arrays, dims, layout))
    return positions


def multi_index(
    linear: Numbers, dims: Sequence[int], layout: Layout
) -> tuple[int, ...] | tuple[NDArray[Any], ...] | None:
    """Return the index of the element at a position; None for padding.

    For an array of positions, return a tuple of arrays with -1 for padding.

    >>> layout = Layout((1, 0), tiles=((2, 2),))
    >>> multi_index(17, (3, 5), layout), multi_index(18, (3, 5), layout)
    ((2, 3), None)
    >>> multi_index([17, 18], (3, 5), layout)
    (array([ 2, -1]), array([ 3, -1]))

    Raises:
        IndexError: a position is out of range.
    """
    size = extent(dims, layout)
    if isinstance(linear, int):
        if not 0 <= linear < size:
            raise IndexError(f"position {linear} is not in [0, {size - 1}]")
        return index_at(linear, dims, layout)
    import numpy

    positions = _integers("multi_index", "linear", linear)
    if ((positions < 0) | (positions >= size)).any():
        raise IndexError(f"a position is not in [0, {size - 1}]")
    index, guards = index_with_guards(positions, dims, layout)
    is_data = numpy.ones(positions.shape, dtype=bool)
    for guard in guards:
        is_data &= guard.value < guard.limit
    return tuple([numpy.where(is_data, i, -1) for i in index])


def is_padding(linear: Numbers, dims: Sequence[int], layout: Layout) -> bool | NDArray[Any]:
    """Return True if a position is padding; elementwise for an array of positions.

    >>> is_padding(range(6), (3,), Layout((0,), tiles=((2,),), tail_padding=6))
    array([False, False, False,  True,  True,  True])

    Raises:
        IndexError: a position is out of range.
    """
    import numpy

    if isinstance(linear, int):
        return multi_index(linear, dims, layout) is None
    positions = _integers("is_padding", "linear", linear)
    if ((positions < 0) | (positions >= extent(dims, layout))).any():
        raise IndexError(f"a position is not in [0, {extent(dims, layout) - 1}]")
    _, guards = index_with_guards(positions, dims, layout)
    padding = numpy.zeros(positions.shape, dtype=bool)
    for guard in guards:
        padding |= guard.value >= guard.limit
    return padding


def _integers(function: str, name: str, numbers: Numbers) -> NDArray[Any]:
    """Return integers as an array; raise `TypeError` for other values."""
    import numpy

    array = numpy.asarray(numbers)
    if array.dtype.kind not in "iu" and array.size:
        raise wrong_argument(function, name, int | Sequence[int], numbers)
    return array.astype(numpy.int64)


def strides(dims: Sequence[int], layout: Layout) -> tuple[int, ...]:
    """Return the distance of adjacent elements along each dimension, in elements.

    >>> strides((2, 3), Layout((0, 1))), strides((2, 3), Layout((1, 0), padded_dimensions=(4, 8)))
    ((1, 2), (8, 1))

    Raises:
        ValueError: the layout has tiles, so the distance is not constant.
    """
    if layout.tiles:
        raise ValueError(f"the tiled layout {layout} has no strides; use linear_index")
    sizes = padded_dims(dims, layout)
    distances, step = [0] * len(dims), 1
    for d in layout.minor_to_major:
        distances[d] = step
        step *= sizes[d]
    return tuple(distances)


# ---------------------------------------------------------------- buffers


@checked
def to_physical(array: ArrayLike, layout: Layout) -> NDArray[Any]:
    """Return the physical buffer of `array` stored with `layout`, as a vector of elements.

    Padding is ``layout.padding_value``, or 0 if that is None.

    Args:
        array: the logical array.
        layout: a layout of the array's rank.
    Raises:
        ValueError: the layout has another rank, or padded dimensions smaller than the array.

    >>> padded = Layout((0, 1), padded_dimensions=(3, 5))
    >>> to_physical([[1, 2, 3], [4, 5, 6]], padded)
    array([1, 4, 0, 2, 5, 0, 3, 6, 0, 0, 0, 0, 0, 0, 0])

    Source: XLA ``docs/shapes.md`` and ``docs/tiled_layout.md``.
    """
    import numpy

    values = numpy.asarray(array)
    fill = 0 if layout.padding_value is None else layout.padding_value
    buffer = numpy.zeros(extent(values.shape, layout), dtype=values.dtype)
    if fill != 0:  # numpy.zeros fills strings and objects with their own zero
        buffer[:] = fill
    buffer[_positions(values.shape, layout)] = values
    return buffer


@checked
def from_physical(buffer: ArrayLike, layout: Layout, dims: Sequence[int]) -> NDArray[Any]:
    """Return the array of dimensions `dims` that is stored in `buffer`: inverse of `to_physical`.

    Args:
        buffer: a vector of elements, one for each position in memory.
        layout: the layout of the array.
        dims: the logical dimensions.

    >>> from_physical(list("adbecf"), Layout((0, 1)), (2, 3))
    array([['a', 'b', 'c'],
           ['d', 'e', 'f']], dtype='<U1')

    Raises:
        ValueError: the length of the buffer is not the size of the array in memory.

    Source: XLA ``docs/shapes.md`` and ``docs/tiled_layout.md``.
    """
    import numpy

    values = numpy.asarray(buffer)
    if values.shape != (extent(dims, layout),):
        wanted = f"{extent(dims, layout)} elements in memory"
        raise ValueError(f"the array has {wanted}, but the buffer has shape {values.shape}")
    array: NDArray[Any] = values[_positions(tuple(dims), layout)]
    return array


def _positions(dims: tuple[int, ...], layout: Layout) -> Any:
    """Return the position of each element of an array."""
    compute = _known_positions if prod(dims) <= MAX_KEPT else _known_positions.__wrapped__
    return compute(dims, layout)


@lru_cache(maxsize=1 << 5)
def _known_positions(dims: tuple[int, ...], layout: Layout) -> Any:
    import numpy

    return position_of(list(numpy.indices(dims)), dims, layout)

"""Arrays in memory: positions of elements, padding, and buffers of what really lies there.

For each array shape there is a map from the index of an element to its position, counted in
elements from 0, and back; some positions hold padding. Everything works on numbers and on NumPy
arrays alike; `indexing.maps.layouts` has the same as indexing maps.

>>> import numpy
>>> letters = numpy.array([["a", "b", "c"], ["d", "e", "f"]])
>>> print(*to_physical(letters, Layout((0, 1))))
a d b e c f

Source: XLA ``docs/shapes.md``, "Layout" and "Padding"; ``docs/tiled_layout.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from hlo.shapes.layout import Layout
from hlo.shapes.tiling import extent, index_at, index_with_guards, position_of, room_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

Numbers: TypeAlias = "int | Sequence[int] | NDArray[Any]"
Positions: TypeAlias = "int | NDArray[Any]"


def linear_index(multi: Sequence[Numbers], dims: Sequence[int], layout: Layout) -> Positions:
    """The position of the element at an index; of many, if the numbers are arrays.

    >>> linear_index((2, 3), (3, 5), Layout((1, 0), tiles=((2, 2),)))
    17
    >>> linear_index(([0, 2], 3), (3, 5), Layout((1, 0)))
    array([ 3, 13])

    Raises:
        IndexError: an index is outside the array.
    """
    if len(multi) != len(dims):
        raise IndexError(f"an index of {len(multi)} numbers for an array of {len(dims)} dimensions")
    one = [i for i in multi if isinstance(i, int)]
    if len(one) == len(multi):
        if not all(0 <= i < n for i, n in zip(one, dims, strict=True)):
            raise IndexError(f"the index {tuple(one)} is outside {tuple(dims)}")
        found: int = position_of(one, dims, layout)
        return found
    import numpy

    arrays = numpy.broadcast_arrays(*[numpy.asarray(i, dtype=numpy.int64) for i in multi])
    for number, (array, size) in enumerate(zip(arrays, dims, strict=True)):
        if ((array < 0) | (array >= size)).any():
            raise IndexError(f"an index of dimension {number} is outside [0, {size - 1}]")
    positions: NDArray[Any] = numpy.asarray(position_of(arrays, dims, layout))
    return positions


def multi_index(
    linear: Numbers, dims: Sequence[int], layout: Layout
) -> tuple[int, ...] | tuple[NDArray[Any], ...] | None:
    """The index of the element at a position; None where padding lies.

    For an array of positions a tuple of arrays, which hold -1 where padding lies.

    >>> layout = Layout((1, 0), tiles=((2, 2),))
    >>> multi_index(17, (3, 5), layout), multi_index(18, (3, 5), layout)
    ((2, 3), None)
    >>> multi_index([17, 18], (3, 5), layout)
    (array([ 2, -1]), array([ 3, -1]))

    Raises:
        IndexError: a position is outside the memory that the array takes.
    """
    room = extent(dims, layout)
    if isinstance(linear, int):
        if not 0 <= linear < room:
            raise IndexError(f"the position {linear} is outside [0, {room - 1}]")
        return index_at(linear, dims, layout)
    import numpy

    positions = numpy.asarray(linear, dtype=numpy.int64)
    if ((positions < 0) | (positions >= room)).any():
        raise IndexError(f"a position is outside [0, {room - 1}]")
    index, guards = index_with_guards(positions, dims, layout)
    holds = numpy.ones(positions.shape, dtype=bool)
    for guard in guards:
        holds &= guard.value < guard.limit
    return tuple([numpy.where(holds, i, -1) for i in index])


def is_padding(linear: Numbers, dims: Sequence[int], layout: Layout) -> bool | NDArray[Any]:
    """Says whether no element lies at a position; for each one of an array of positions.

    >>> is_padding(range(6), (3,), Layout((0,), tiles=((2,),), tail_padding=6))
    array([False, False, False,  True,  True,  True])

    Raises:
        IndexError: a position is outside the memory that the array takes.
    """
    import numpy

    if isinstance(linear, int):
        return multi_index(linear, dims, layout) is None
    positions = numpy.asarray(linear, dtype=numpy.int64)
    if ((positions < 0) | (positions >= extent(dims, layout))).any():
        raise IndexError(f"a position is outside [0, {extent(dims, layout) - 1}]")
    _, guards = index_with_guards(positions, dims, layout)
    found = numpy.zeros(positions.shape, dtype=bool)
    for guard in guards:
        found |= guard.value >= guard.limit
    return found


def strides(dims: Sequence[int], layout: Layout) -> tuple[int, ...]:
    """For each dimension, how far apart in memory neighbouring elements are, in elements.

    >>> strides((2, 3), Layout((0, 1))), strides((2, 3), Layout((1, 0), padded_dimensions=(4, 8)))
    ((1, 2), (8, 1))

    Raises:
        ValueError: the layout has tiles: the distance is not the same everywhere.
    """
    if layout.tiles:
        raise ValueError(f"the tiled layout {layout} has no strides; ask linear_index")
    room = room_of(dims, layout)
    found, step = [0] * len(dims), 1
    for d in layout.minor_to_major:
        found[d] = step
        step *= room[d]
    return tuple(found)


# ---------------------------------------------------------------- buffers


def to_physical(array: ArrayLike, layout: Layout) -> NDArray[Any]:
    """What lies in memory, position by position, when `array` is stored with `layout`.

    Where no element lies, there is ``layout.padding_value``, or 0 if it is not said.

    >>> padded = Layout((0, 1), padded_dimensions=(3, 5))
    >>> to_physical([[1, 2, 3], [4, 5, 6]], padded)
    array([1, 4, 0, 2, 5, 0, 3, 6, 0, 0, 0, 0, 0, 0, 0])
    """
    import numpy

    values = numpy.asarray(array)
    fill = 0 if layout.padding_value is None else layout.padding_value
    buffer = numpy.zeros(extent(values.shape, layout), dtype=values.dtype)
    if fill != 0:  # the zero of texts and objects is not a number
        buffer[:] = fill
    buffer[position_of(list(numpy.indices(values.shape)), values.shape, layout)] = values
    return buffer


def from_physical(buffer: ArrayLike, layout: Layout, dims: Sequence[int]) -> NDArray[Any]:
    """The array of sizes `dims` that is stored in `buffer`; `to_physical` undone.

    >>> from_physical(list("adbecf"), Layout((0, 1)), (2, 3))
    array([['a', 'b', 'c'],
           ['d', 'e', 'f']], dtype='<U1')

    Raises:
        ValueError: the buffer is not as long as the memory that the array takes.
    """
    import numpy

    values = numpy.asarray(buffer)
    if values.shape != (extent(dims, layout),):
        wanted = f"{extent(dims, layout)} positions"
        raise ValueError(f"the memory has {wanted}, but the buffer is {values.shape}")
    found: NDArray[Any] = values[position_of(list(numpy.indices(tuple(dims))), dims, layout)]
    return found

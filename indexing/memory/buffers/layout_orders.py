"""Orders of dimensions: in which order an array has its elements in memory as another array."""

from __future__ import annotations

from typing import Final

from hlo.shapes.layout import Layout
from hlo.shapes.memory import strides
from hlo.shapes.shape import Shape
from indexing.maps.arrays import ArrayRef
from indexing.maps.indexing_map import IndexingMap
from simplifier.atoms import Variable
from simplifier.linear import as_expr
from simplifier.unknown import Unknown

_LONG: Final = "the map of what is copied has too many parts"


def order_of(read: IndexingMap, source: ArrayRef) -> Layout | Unknown:
    """Return the order of dimensions in which an array has its elements as in their source.

    Args:
        read: the map from the index of the array to that of the source.
        source: the array that is read, which has a layout.

    >>> import hlo
    >>> source = hlo.parse("ENTRY e { ROOT x = f32[2,3,5]{0,2,1} parameter(0) }").entry.root
    >>> read = IndexingMap.over((5, 2, 3), lambda d: [d[1], d[2], d[0]])
    >>> print(order_of(read, ArrayRef(source)))
    {1,0,2}
    """
    if read.grade == "may":
        return Unknown(_LONG)
    shape = source.array_shape
    assert shape is not None
    given = shape.layout_or_default
    return Layout(given.minor_to_major) if _is_identity(read, shape) else _order_by(read, shape)


def order_of_source(read: IndexingMap, result: Shape, source: ArrayRef) -> Layout | Unknown:
    """Return the order of dimensions in which a source has its elements as in what is read from it.

    Args:
        read: the map from the index of the result to that of the source.
        result: the shape of what is read, with its layout.
        source: the array that is read; a part of it may be read.
    """
    if read.grade == "may":
        return Unknown(_LONG)
    shape = source.array_shape
    assert shape is not None
    if shape.dims == result.dims and _is_identity(read, shape):
        return Layout(result.layout_or_default.minor_to_major)
    written = read.fix(**{each.name: each.lower for each in _runtime(read)}).inverse()
    if isinstance(written, Unknown):
        return written
    if len(written) != 1 or written[0].ranges:
        return Unknown("elements are copied to several places")
    order = _order_by(written[0], result)
    return order if isinstance(order, Unknown) else _with_fixed_dims(order, written[0], shape)


def _with_fixed_dims(order: Layout, written: IndexingMap, source: Shape) -> Layout:
    """Return an order in which dimensions come last whose index is the same for all elements."""
    fixed = {d for d, each in enumerate(written.dims) if each.size == 1 and source.dims[d] > 1}
    moving = [d for d in order.minor_to_major if d not in fixed]
    kept = [d for d in source.layout_or_default.minor_to_major if d in fixed]
    return Layout((*moving, *kept))


def _order_by(read: IndexingMap, source: Shape) -> Layout | Unknown:
    """Return the order in which the positions that are read ascend, dimension by dimension."""
    steps = _ascending_steps(read, source)
    if steps is None:
        return Unknown("no order of its dimensions is the order of the copied elements")
    if not _keeps_tiles(steps, read, source):
        return Unknown("the copy splits or merges dimensions that are stored in tiles")
    single = [d for d, each in enumerate(read.dims) if each.size == 1]
    return Layout((*[d for _, d in steps], *single[::-1]))


def _ascending_steps(read: IndexingMap, source: Shape) -> list[tuple[int, int]] | None:
    """Return for each dimension how far apart its neighbours are in the source, with its number.

    None if they have no fixed distance, or if the ranges of two dimensions overlap.
    """
    distances = strides(source.dims, Layout(source.layout_or_default.minor_to_major))
    position = sum((e * n for e, n in zip(read.results, distances, strict=True)), as_expr(0))
    if not set(position.parts) <= {*read.dims, *_runtime(read)} or read.ranges:
        return None
    wide = [(position.parts.get(each, 0), d) for d, each in enumerate(read.dims) if each.size > 1]
    end = 1  # of the positions of more minor dimensions
    for step, d in sorted(wide):
        if step < end:
            return None
        end = step * read.dims[d].size
    return sorted(wide)


def _keeps_tiles(steps: list[tuple[int, int]], read: IndexingMap, source: Shape) -> bool:
    """Return True if the dimensions that tiles divide and pad are the same in both arrays."""
    layout = source.layout_or_default
    tiled = layout.minor_to_major[: max([len(tile) for tile in layout.tiles], default=0)]
    distances = strides(source.dims, Layout(layout.minor_to_major))
    mine = [(step, read.dims[d].size) for step, d in steps][: len(tiled)]
    theirs = [(distances[d], source.dims[d]) for d in tiled]
    others = [size for _, size in theirs[len(mine) :]]
    return mine == theirs[: len(mine)] and all(size == 1 for size in others)


def _is_identity(read: IndexingMap, shape: Shape) -> bool:
    return read == IndexingMap.identity(shape)


def _runtime(read: IndexingMap) -> list[Variable]:
    return [each.variable for each in read.runtime]

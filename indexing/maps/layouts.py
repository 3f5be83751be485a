"""Layouts as indexing maps: from the index of an element to its place in memory, and back.

Positions count elements from 0, padding included. For ``f32[3,5]{1,0:T(2,2)}``, the example of
XLA's ``docs/tiled_layout.md``, in which element (2, 3) lies at 17:

>>> from hlo import parse_shape
>>> tiled = parse_shape("f32[3,5]{1,0:T(2,2)}")
>>> print(physical_map(tiled).simplify())
(d0, d1) -> (d0 * 2 + d1 + (d0 floordiv 2) * 8 + (d1 floordiv 2) * 2),
domain: d0 in [0, 2], d1 in [0, 4]
>>> physical_map(tiled).evaluate((2, 3))
(17,)

Whether a change of layout is free, whether a read is one block of memory: these are questions to
such maps, so that one definition (`hlo.shapes.tiling`) holds for numbers, arrays and maps.
"""

from __future__ import annotations

from hlo.shapes.shape import Shape
from hlo.shapes.tiling import index_with_guards, position_of
from indexing.maps.indexing_map import Difference, IndexingMap, dims
from simplifier import exact
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.linear import as_expr
from simplifier.unknown import Unknown, about


def physical_map(shape: Shape) -> IndexingMap:
    """From the index of each element to its position in memory.

    >>> from hlo import parse_shape
    >>> print(physical_map(parse_shape("f32[2,3]{0,1}")))
    (d0, d1) -> (d0 + d1 * 2), domain: d0 in [0, 1], d1 in [0, 2]
    """
    layout = shape.layout_or_default
    return IndexingMap.over(shape, lambda d: [position_of(d, shape.dims, layout)])


def logical_map(shape: Shape) -> IndexingMap:
    """From each position in memory to the index of the element there.

    The inverse of `physical_map`: the constraints leave out the positions where padding lies.

    >>> from hlo import parse_shape
    >>> print(logical_map(parse_shape("f32[2,3]{0,1}")).simplify())
    (d0) -> (d0 mod 2, d0 floordiv 2), domain: d0 in [0, 5]
    >>> print(logical_map(parse_shape("f32[3]{0:T(4)}")).simplify())
    (d0) -> (d0), domain: d0 in [0, 2]
    """
    position = dims((shape.physical_size,))
    index, guards = index_with_guards(position[0], shape.dims, shape.layout_or_default)
    data = [Constraint(as_expr(guard.value), 0, guard.limit - 1) for guard in guards]
    return IndexingMap.of(position, index, constraints=data)


def layout_change(source: Shape, target: Shape) -> IndexingMap:
    """From each position in the memory of `target` to where `source` has the same element.

    It is what a copy reads that changes one layout to the other.

    >>> from hlo import parse_shape
    >>> row, column = parse_shape("f32[2,3]{1,0}"), parse_shape("f32[2,3]{0,1}")
    >>> change = layout_change(source=row, target=column)
    >>> [change.evaluate([position]) for position in range(6)]
    [(0,), (3,), (1,), (4,), (2,), (5,)]

    Raises:
        ValueError: the two do not have the same elements.
    """
    if source.dims != target.dims:
        raise ValueError(f"{source} and {target} do not have the same elements")
    return logical_map(target).then(physical_map(source)).simplify()


def row_major_map(source: Shape, target: Shape) -> IndexingMap:
    """From each element of `target` to that of `source` with the same place in row-major order.

    That is what a reshape reads, and an identity where the dimensions are the same.

    Raises:
        ValueError: the numbers of elements are different.
    """
    if source.size != target.size:
        raise ValueError(f"{source} and {target} have different numbers of elements")
    plain = source.with_dims(source.dims), target.with_dims(target.dims)
    return physical_map(plain[1]).then(logical_map(plain[0])).simplify()


def is_bitcast(
    source: Shape, target: Shape, reads: IndexingMap | None = None
) -> bool | Difference | Unknown:
    """Whether `target` is `source` in the same memory: every element stays where it is.

    Args:
        source, target: what is read and what comes of it, with layouts.
        reads: from each element of `target` to the one of `source` that it is; `row_major_map` if
            it is not given: a copy or a reshape. For a transpose give that op's own map.

    Returns:
        True; or False where the two take different memory, or an element that moves: a `Difference`
        of `physical_map(target)` and where its elements lie in the source.

    >>> from hlo import parse_shape
    >>> tall, wide = parse_shape("f32[6,4]"), parse_shape("f32[2,3,4]")
    >>> is_bitcast(source=tall, target=wide)
    True
    >>> bool(is_bitcast(source=tall, target=parse_shape("f32[2,3,4]{0,1,2}")))
    False
    """
    if source.element_bits != target.element_bits or source.physical_size != target.physical_size:
        return False
    if reads is None:
        if source.size != target.size:
            return False
        reads = row_major_map(source, target)
    return physical_map(target).is_equal(reads.then(physical_map(source)).simplify())


def is_contiguous(reads: IndexingMap, shape: Shape) -> bool | Unknown:
    """Whether the elements of `shape` that are read are one block of memory, without a gap.

    Padding between them is a gap. What is empty is contiguous.

    Args:
        reads: a map to the elements of `shape`, without runtime variables.
        shape: the array, with its layout.

    Raises:
        ValueError: the map has runtime variables.

    >>> rows = IndexingMap.over((2, 8), lambda d: [d[0] + 1, d[1]])
    >>> from hlo import parse_shape
    >>> is_contiguous(rows, parse_shape("f32[4,8]{1,0}"))
    True
    >>> is_contiguous(rows, parse_shape("f32[4,8]{0,1}"))
    False
    """
    places = reads.then(physical_map(shape)).simplify()
    if places.runtime:
        raise ValueError("which elements are read depends on values that only the program knows")
    (place,) = places.results
    found = exact.bounds(places.variables, places.constraints, place)
    if isinstance(found, Unknown):
        return about(found, "which positions are read by", places)
    if found is None:
        return True
    position = Variable("position", *found)
    touched = IndexingMap.of(
        (position,),
        (),
        ranges=places.variables,
        constraints=(*places.constraints, Constraint(place - position, 0, 0)),
    )
    answer = touched.is_equal(IndexingMap.of((position,), ()))
    return answer if isinstance(answer, Unknown) else bool(answer)

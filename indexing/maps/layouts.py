"""Layouts as indexing maps: from the index of an element to its position in memory, and back.

Positions count elements from 0, padding included. In ``f32[3,5]{1,0:T(2,2)}``, the example of
XLA's ``docs/tiled_layout.md``, element (2, 3) has position 17:

>>> from hlo import parse_shape
>>> tiled = parse_shape("f32[3,5]{1,0:T(2,2)}")
>>> print(physical_map(tiled).simplify())
(d0, d1) -> (d0 * 2 + d1 + (d0 floordiv 2) * 8 + (d1 floordiv 2) * 2),
domain: d0 in [0, 2], d1 in [0, 4]
>>> physical_map(tiled).evaluate((2, 3))
(17,)

`is_bitcast` and `is_contiguous` are decided on these maps, so that one definition of layouts
(`hlo.shapes.tiling`) serves numbers, arrays and maps.
"""

from __future__ import annotations

from hlo.shapes.shape import Shape
from hlo.shapes.tiling import index_with_guards, position_of
from indexing.maps.indexing_map import Difference, IndexingMap, dims
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.linear import as_expr
from simplifier.unknown import Unknown, with_query


def physical_map(shape: Shape) -> IndexingMap:
    """Return the map from the index of each element to its position in memory.

    >>> from hlo import parse_shape
    >>> print(physical_map(parse_shape("f32[2,3]{0,1}")))
    (d0, d1) -> (d0 + d1 * 2), domain: d0 in [0, 1], d1 in [0, 2]
    """
    layout = shape.layout_or_default
    return IndexingMap.over(shape, lambda d: [position_of(d, shape.dims, layout)])


def logical_map(shape: Shape) -> IndexingMap:
    """Return the map from each position in memory to the index of the element there.

    It is the inverse of `physical_map`: the constraints exclude the positions of padding.

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
    """Return the map from each position in `target` to the position of that element in `source`.

    These are the reads of a copy that changes the layout.

    >>> from hlo import parse_shape
    >>> row, column = parse_shape("f32[2,3]{1,0}"), parse_shape("f32[2,3]{0,1}")
    >>> change = layout_change(source=row, target=column)
    >>> [change.evaluate([position]) for position in range(6)]
    [(0,), (3,), (1,), (4,), (2,), (5,)]

    Raises:
        ValueError: the shapes have different dimensions.
    """
    if source.dims != target.dims:
        raise ValueError(f"a layout change keeps the dimensions: {source} and {target} differ")
    return logical_map(target).then(physical_map(source)).simplify()


def row_major_map(source: Shape, target: Shape) -> IndexingMap:
    """Return the map from each element of `target` to the same row-major position in `source`.

    These are the reads of a reshape; for equal dimensions, the map is an identity.

    Raises:
        ValueError: the numbers of elements are different.

    >>> from hlo import parse_shape
    >>> print(row_major_map(source=parse_shape("f32[6]"), target=parse_shape("f32[2,3]")))
    (d0, d1) -> (d0 * 3 + d1), domain: d0 in [0, 1], d1 in [0, 2]
    """
    if source.size != target.size:
        raise ValueError(
            f"the number of elements must not change: {source} has {source.size}, {target} has "
            f"{target.size}"
        )
    plain = source.with_dims(source.dims), target.with_dims(target.dims)
    return physical_map(plain[1]).then(logical_map(plain[0])).simplify()


def is_bitcast(
    source: Shape, target: Shape, reads: IndexingMap | None = None
) -> bool | Difference | Unknown:
    """Return True if `target` is a view of the memory of `source`: no element moves.

    Args:
        source, target: the shapes before and after, with layouts.
        reads: the map from each element of `target` to the element of `source` that it copies;
            `row_major_map` if omitted, for a copy or a reshape. For a transpose pass its own map.

    Returns:
        `True`; `False` if the two have different sizes in memory; or a `Difference` between
        `physical_map(target)` and the positions in `source`, with an element that moves.

    Source: XLA ``docs/operation_semantics.md``, "Bitcast".

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
    """Return True if the read elements of `shape` are one block of memory, without gaps.

    Padding between elements is a gap. An empty set of elements is contiguous.

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
    from simplifier import exact  # loads ISL

    places = reads.then(physical_map(shape)).simplify()
    if places.runtime:
        names = ", ".join(rt.name for rt in places.runtime)
        raise ValueError(f"the elements read depend on runtime variables: {names}")
    (place,) = places.results
    bounds = exact.bounds(places.variables, places.constraints, place)
    if isinstance(bounds, Unknown):
        return with_query(bounds, "cannot decide which positions are read by", places)
    if bounds is None:
        return True
    position = Variable("position", *bounds)
    touched = IndexingMap.of(
        (position,),
        (),
        ranges=places.variables,
        constraints=(*places.constraints, Constraint(place - position, 0, 0)),
    )
    answer = touched.is_equal(IndexingMap.of((position,), ()))
    return answer if isinstance(answer, Unknown) else bool(answer)

"""Partial shapes, and their unification.

A dimension ``?`` has an unknown size, a dimension ``<=n`` any size up to n. The rank of an
`Unranked` array is unknown too. A shape function computes with `Dim`, which propagates unknown
sizes through sums and products:

>>> rows, columns = dims_of(Shape("f32", (UNBOUNDED, 4), dynamic=(True, True)))
>>> print(array("f32", [rows + 2, columns * 3, max(0, 5)]))
f32[?,<=12,5]

Unification refines shapes by each other, or raises `Conflict`:

>>> print(merge(Shape("f32", (2, UNBOUNDED)), Shape("f32", (UNBOUNDED, 3))))
f32[2,3]
>>> print(with_rank(Unranked("f32"), 2))
f32[?,?]
>>> merge(Shape("f32", (2, 4)), Shape("f32", (UNBOUNDED, 3)))
Traceback (most recent call last):
...
hlo.ops.unify.Conflict: dimension 1 is 4 in f32[2,4], but 3 in f32[?,3]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from hlo.shapes.layout import Layout
from hlo.shapes.shape import ELEMENT_TYPES, UNBOUNDED, AnyShape, Shape, TupleShape, leaves


class Conflict(ValueError):
    """A contradiction of two partial shapes.

    Attributes:
        operands: the numbers of the contradicting operands; empty if no operands are involved.
    """

    def __init__(self, message: str, operands: tuple[int, ...] = ()) -> None:
        super().__init__(message)
        self.operands = operands


@dataclass(frozen=True, slots=True)
class Unranked:
    """An array of unknown rank, with an optional element type.

    >>> print(Unranked(), Unranked("f32"))
    ?[..] f32[..]
    """

    element_type: str = ""

    def with_element_type(self, element_type: str) -> Unranked:
        """Return an unranked array of another element type."""
        return Unranked(element_type)

    def with_layout(self, layout: Layout | None) -> Unranked:
        """Return the array itself: without a rank it has no layout."""
        return self

    def __str__(self) -> str:
        return f"{self.element_type or '?'}[..]"


PartialShape: TypeAlias = AnyShape | Unranked
"""A shape with dimensions of unknown size, or of unknown rank."""


def is_partial(shape: PartialShape) -> bool:
    """Return True if a shape has unknown dimensions or an unknown rank.

    >>> is_partial(Shape("f32", (2, UNBOUNDED))), is_partial(Shape("f32", (2,), dynamic=(True,)))
    (True, False)
    """
    if isinstance(shape, Shape):
        return UNBOUNDED in shape.dims
    return isinstance(shape, Unranked) or _has_partial_leaf(shape)


@lru_cache(maxsize=1 << 7)  # each of n elements of a tuple checks the whole tuple
def _has_partial_leaf(shape: AnyShape) -> bool:
    return any(UNBOUNDED in leaf.dims for _, leaf in leaves(shape) if isinstance(leaf, Shape))


# ---------------------------------------------------------------- dimensions


@dataclass(frozen=True, slots=True)
class Dim:
    """The size of a dimension: a number, a bound (`dynamic`), or `UNBOUNDED`."""

    size: int
    dynamic: bool = False

    @property
    def is_known(self) -> bool:
        """True if the size or a bound of it is known."""
        return self.size != UNBOUNDED

    def map(self, function: Callable[[int], int]) -> Dim:
        """Apply a monotonically increasing `function` to the size.

        >>> Dim(7).map(lambda size: size // 2), Dim(UNBOUNDED).map(lambda size: size // 2)
        (Dim(size=3, dynamic=False), Dim(size=-1, dynamic=True))
        """
        return Dim(function(self.size), self.dynamic) if self.is_known else UNKNOWN

    def __add__(self, other: Dim | int) -> Dim:
        return _combine_sizes(self, other, lambda a, b: a + b)

    def __mul__(self, other: Dim | int) -> Dim:
        return _combine_sizes(self, other, lambda a, b: a * b)

    __radd__ = __add__
    __rmul__ = __mul__


UNKNOWN = Dim(UNBOUNDED, True)


def _combine_sizes(one: Dim, other: Dim | int, function: Callable[[int, int], int]) -> Dim:
    two = other if isinstance(other, Dim) else Dim(other)
    if not (one.is_known and two.is_known):
        return UNKNOWN
    return Dim(function(one.size, two.size), one.dynamic or two.dynamic)


def dims_of(shape: Shape) -> tuple[Dim, ...]:
    """Return the dimensions of an array as `Dim`."""
    flags = shape.dynamic or (False,) * shape.rank
    return tuple(map(Dim, shape.dims, flags))


def array(element_type: str, dims: Iterable[Dim | int]) -> Shape:
    """Return the array shape of the given dimensions."""
    sizes = [d if isinstance(d, Dim) else Dim(d) for d in dims]
    return Shape(
        element_type, tuple(d.size for d in sizes), dynamic=tuple(d.dynamic for d in sizes)
    )


def may_be(size: int, other: int) -> bool:
    """Return True if two sizes are equal or one of them is unknown."""
    return size == other or UNBOUNDED in (size, other)


def may_be_same_dims(one: Sequence[int], other: Sequence[int]) -> bool:
    """Return True if the ranks are equal and `may_be` is true for each pair of sizes.

    >>> may_be_same_dims((2, UNBOUNDED), (2, 3)), may_be_same_dims((2, UNBOUNDED), (3, 3))
    (True, False)
    """
    return one == other or (len(one) == len(other) and all(map(may_be, one, other)))


def may_be_at_most(size: int, limit: int) -> bool:
    """Return True if ``size <= limit`` or one of them is unknown."""
    return size <= limit or limit == UNBOUNDED


def may_divide(part: int, whole: int) -> bool:
    """Return True if `part` is positive and divides `whole`, or one of them is unknown."""
    return UNBOUNDED in (part, whole) or (part > 0 and whole % part == 0)


# ---------------------------------------------------------------- unification


def with_rank(shape: PartialShape, rank: int) -> PartialShape:
    """Return `shape` refined to rank `rank`; the dimensions of an unranked array become unknown.

    An unranked array without an element type is returned unchanged.

    Raises:
        Conflict: the shape has another rank or is not an array.
    """
    if isinstance(shape, Unranked):
        return array(shape.element_type, [UNKNOWN] * rank) if shape.element_type else shape
    if isinstance(shape, Shape) and shape.rank == rank:
        return shape
    raise Conflict(f"{shape} is not an array of rank {rank}")


def same_rank(*shapes: PartialShape) -> list[PartialShape]:
    """Return the shapes with every unranked one refined to the rank of the first ranked one.

    >>> print(*same_rank(Shape("f32", (2, 3)), Unranked("s8")))
    f32[2,3] s8[?,?]
    """
    ranks = [shape.rank for shape in shapes if isinstance(shape, Shape)][:1]
    unranked = [isinstance(shape, Unranked) for shape in shapes]
    return [
        with_rank(shape, ranks[0]) if ranks and is_open else shape
        for shape, is_open in zip(shapes, unranked, strict=True)
    ]


def same_sizes(
    operands: Iterable[PartialShape], *groups: Iterable[tuple[int, int]]
) -> list[PartialShape]:
    """Return the operands, refined by the equality of the sizes in each group.

    Args:
        operands: shapes of the operands.
        groups: pairs (operand, dimension) of dimensions that must have one size.

    >>> print(*same_sizes([Shape("f32", (UNBOUNDED, 2)), Shape("s8", (3,))], [(0, 0), (1, -1)]))
    f32[3,2] s8[3]

    Raises:
        Conflict: two dimensions of a group have different sizes.
    """
    refined = list(operands)
    for group in groups:
        sizes = {
            (number, k % shape.rank): dims_of(shape)[k]
            for number, k in group
            if isinstance(shape := refined[number], Shape) and -shape.rank <= k < shape.rank
        }
        total = UNKNOWN
        for place, size in sizes.items():
            both = _both(total, size)
            if both is None:
                first = next(p for p, s in sizes.items() if _both(s, size) is None)
                raise _different(first, sizes[first], place, size)
            total = both
        for number, k in sizes:
            refined[number] = _with_size(refined[number], k, total)
    return refined


def _different(
    one: tuple[int, int], one_size: Dim, other: tuple[int, int], other_size: Dim
) -> Conflict:
    texts = [
        f"dimension {k} of operand {number} is {dim.size}"
        for (number, k), dim in ((one, one_size), (other, other_size))
    ]
    return Conflict(", ".join(texts), (one[0], other[0]))


def _with_size(shape: PartialShape, dimension: int, size: Dim) -> PartialShape:
    if not isinstance(shape, Shape):
        return shape
    sizes = list(dims_of(shape))
    sizes[dimension] = size
    return array(shape.element_type, sizes).with_layout(shape.layout)


def _both(one: Dim, other: Dim) -> Dim | None:
    """Return the size compatible with both, or None; a bound is compatible with smaller sizes."""
    if not (one.is_known and other.is_known):
        return one if one.is_known else other
    if one.size == other.size:
        return Dim(one.size, one.dynamic and other.dynamic)
    low, high = sorted((one, other), key=lambda dim: dim.size)
    return low if high.dynamic else None


def merge(one: PartialShape, other: PartialShape) -> PartialShape:
    """Return the unification of two partial shapes.

    The result has the element type and the layout of the first shape, and every size that either
    of them specifies. A bound ``<=n`` is compatible with every size up to n.

    Raises:
        Conflict: the shapes contradict each other.
    """
    match one, other:
        case Unranked(), Unranked():
            return Unranked(one.element_type or other.element_type)
        case Unranked(), Shape():
            return other.with_element_type(one.element_type) if one.element_type else other
        case Unranked(), _:
            return other
        case _, Unranked():
            return one
        case Shape(), Shape():
            return _merge_shapes(one, other)
        case TupleShape(ours), TupleShape(theirs) if len(ours) == len(theirs):
            elements = [merge(a, b) for a, b in zip(ours, theirs, strict=True)]
            return TupleShape(tuple([e for e in elements if not isinstance(e, Unranked)]))
        case _ if one == other:
            return one
    raise Conflict(f"{one} and {other} are incompatible")


def _merge_shapes(one: Shape, other: Shape) -> Shape:
    if one.rank != other.rank:
        raise Conflict(
            f"{_shape_text(one)} has rank {one.rank}, "
            f"but {_shape_text(other)} has rank {other.rank}"
        )
    if not same_but_precision(one.element_type, other.element_type):
        raise Conflict(f"{_shape_text(one)} and {_shape_text(other)} have different element types")
    dims = []
    for k, (a, b) in enumerate(zip(dims_of(one), dims_of(other), strict=True)):
        both = _both(a, b)
        if both is None:
            sizes = f"{a.size} in {_shape_text(one)}, but {b.size} in {_shape_text(other)}"
            raise Conflict(f"dimension {k} is {sizes}")
        dims.append(both)
    merged = array(one.element_type, dims)
    return merged if one.layout is None else merged.with_layout(one.layout)


def same_shape(*shapes: PartialShape) -> tuple[PartialShape, ...]:
    """Return operands refined by the equality of their dimensions.

    >>> print(*same_shape(Shape("f32", (2, UNBOUNDED)), Unranked("s32"), Shape("u8", (-1, 3))))
    f32[2,3] s32[2,3] u8[2,3]

    Raises:
        Conflict: two operands have different dimensions; the exception has their numbers.
    """
    total: PartialShape = Unranked()
    for number, shape in enumerate(shapes):
        bare = shape.with_element_type("pred") if isinstance(shape, Shape) else Unranked()
        try:
            total = merge(total, bare)
        except Conflict:
            first = next(k for k in range(number) if _differ(shapes[k], shape))
            kinds = _shape_text(shapes[first]), _shape_text(shape)
            message = f"operand {first} is {kinds[0]}, operand {number} {kinds[1]}"
            raise Conflict(message, (first, number)) from None
    if not isinstance(total, Shape):
        return shapes
    return tuple([_like(total, shape) for shape in shapes])


def _like(total: Shape, shape: PartialShape) -> PartialShape:
    """Return the array `total` with the element type of `shape`, or `shape` if it has none."""
    known = isinstance(shape, Shape | Unranked) and shape.element_type
    return total.with_element_type(known) if known else shape


def _differ(one: PartialShape, other: PartialShape) -> bool:
    if not (isinstance(one, Shape) and isinstance(other, Shape)):
        return False
    return one.rank != other.rank or not all(map(may_be, one.dims, other.dims))


def same_but_precision(one: str, other: str) -> bool:
    """Return True if two element types are equal or both floating-point of any precision."""
    return one == other or ELEMENT_TYPES[one].kind == ELEMENT_TYPES[other].kind == "floating"


def _shape_text(shape: PartialShape) -> str:
    return str(shape.with_layout(None) if isinstance(shape, Shape) else shape)

"""Shapes of which not all is known, and what several of them tell about each other.

A dimension ``?`` has an unknown size, ``<=n`` any size up to n; of an `Unranked` array not even the
number of dimensions is known. A shape function calculates with `Dim`, which carries what is not
known through sums and products:

>>> rows, columns = dims_of(Shape("f32", (UNBOUNDED, 4), dynamic=(True, True)))
>>> print(array("f32", [rows + 2, columns * 3, max(0, 5)]))
f32[?,<=12,5]

and asks for what must be so:

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
from typing import TypeAlias

from hlo.shapes.layout import Layout
from hlo.shapes.shape import ELEMENT_TYPES, UNBOUNDED, AnyShape, Shape, TupleShape, leaves


class Conflict(ValueError):
    """Two things that are known contradict each other.

    Attributes:
        operands: the numbers of the operands that do, where operands do.
    """

    def __init__(self, message: str, operands: tuple[int, ...] = ()) -> None:
        super().__init__(message)
        self.operands = operands


@dataclass(frozen=True, slots=True)
class Unranked:
    """A value of which no dimension is known, and the element type only if it is given.

    >>> print(Unranked(), Unranked("f32"))
    ?[..] f32[..]
    """

    element_type: str = ""

    def with_element_type(self, element_type: str) -> Unranked:
        """The same with elements of another type."""
        return Unranked(element_type)

    def with_layout(self, layout: Layout | None) -> Unranked:
        """The same: what has no dimensions has no order of them."""
        return self

    def __str__(self) -> str:
        return f"{self.element_type or '?'}[..]"


PartialShape: TypeAlias = AnyShape | Unranked
"""What is known of an instruction's value."""


def is_partial(shape: PartialShape) -> bool:
    """Says that something about a shape is not known.

    >>> is_partial(Shape("f32", (2, UNBOUNDED))), is_partial(Shape("f32", (2,), dynamic=(True,)))
    (True, False)
    """
    if isinstance(shape, Unranked):
        return True
    return any(UNBOUNDED in leaf.dims for _, leaf in leaves(shape) if isinstance(leaf, Shape))


# ---------------------------------------------------------------- dimensions


@dataclass(frozen=True, slots=True)
class Dim:
    """The size of a dimension: a number, a bound (`dynamic`), or `UNBOUNDED`."""

    size: int
    dynamic: bool = False

    @property
    def is_known(self) -> bool:
        """Says that there is a number, if only a bound."""
        return self.size != UNBOUNDED

    def through(self, function: Callable[[int], int]) -> Dim:
        """The size that `function` gives; it must not fall where its argument grows.

        >>> Dim(7).through(lambda size: size // 2), Dim(UNBOUNDED).through(lambda size: size // 2)
        (Dim(size=3, dynamic=False), Dim(size=-1, dynamic=True))
        """
        return Dim(function(self.size), self.dynamic) if self.is_known else UNKNOWN

    def __add__(self, other: Dim | int) -> Dim:
        return _combined(self, other, lambda a, b: a + b)

    def __mul__(self, other: Dim | int) -> Dim:
        return _combined(self, other, lambda a, b: a * b)

    __radd__ = __add__
    __rmul__ = __mul__


UNKNOWN = Dim(UNBOUNDED, True)


def _combined(one: Dim, other: Dim | int, function: Callable[[int, int], int]) -> Dim:
    two = other if isinstance(other, Dim) else Dim(other)
    if not (one.is_known and two.is_known):
        return UNKNOWN
    return Dim(function(one.size, two.size), one.dynamic or two.dynamic)


def dims_of(shape: Shape) -> tuple[Dim, ...]:
    """The dimensions of an array, to calculate with."""
    flags = shape.dynamic or (False,) * shape.rank
    return tuple(map(Dim, shape.dims, flags))


def array(element_type: str, dims: Iterable[Dim | int]) -> Shape:
    """The array of these dimensions."""
    found = [d if isinstance(d, Dim) else Dim(d) for d in dims]
    return Shape(
        element_type, tuple(d.size for d in found), dynamic=tuple(d.dynamic for d in found)
    )


def may_be(size: int, other: int) -> bool:
    """Says that two sizes are the same, or that one is not known."""
    return size == other or UNBOUNDED in (size, other)


def same_dims(one: Sequence[int], other: Sequence[int]) -> bool:
    """Says that there are as many sizes, and that each pair may be the same.

    >>> same_dims((2, UNBOUNDED), (2, 3)), same_dims((2, UNBOUNDED), (3, 3))
    (True, False)
    """
    return one == other or (len(one) == len(other) and all(map(may_be, one, other)))


def at_most(size: int, limit: int) -> bool:
    """Says that a size is not above another, or that one is not known."""
    return size <= limit or limit == UNBOUNDED


def may_divide(part: int, whole: int) -> bool:
    """Says that a size is a multiple of another that is not 0, or that one is not known."""
    return UNBOUNDED in (part, whole) or (part > 0 and whole % part == 0)


# ---------------------------------------------------------------- what must be so


def with_rank(shape: PartialShape, rank: int) -> PartialShape:
    """An array of so many dimensions, all unknown if `shape` has no rank.

    Something of which not even the element type is known stays so.

    Raises:
        Conflict: it has another rank, or is no array.
    """
    if isinstance(shape, Unranked):
        return array(shape.element_type, [UNKNOWN] * rank) if shape.element_type else shape
    if isinstance(shape, Shape) and shape.rank == rank:
        return shape
    raise Conflict(f"{shape} is no array of {rank} dimension{'s' * (rank != 1)}")


def same_rank(*shapes: PartialShape) -> list[PartialShape]:
    """The shapes, those without a rank with that of the first one that has one.

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
    """Operands of which the dimensions in a group, pairs (operand, dimension), have one size.

    >>> print(*same_sizes([Shape("f32", (UNBOUNDED, 2)), Shape("s8", (3,))], [(0, 0), (1, -1)]))
    f32[3,2] s8[3]

    Raises:
        Conflict: two of a group have different ones.
    """
    found = list(operands)
    for group in groups:
        sizes = {
            (number, k % shape.rank): dims_of(shape)[k]
            for number, k in group
            if isinstance(shape := found[number], Shape) and -shape.rank <= k < shape.rank
        }
        total = UNKNOWN
        for place, size in sizes.items():
            both = _both(total, size)
            if both is None:
                first = next(p for p, s in sizes.items() if _both(s, size) is None)
                raise _different(first, sizes[first], place, size)
            total = both
        for number, k in sizes:
            found[number] = _with_size(found[number], k, total)
    return found


def _different(one: tuple[int, int], size: Dim, other: tuple[int, int], its: Dim) -> Conflict:
    texts = [
        f"dimension {k} of operand {number} is {dim.size}"
        for (number, k), dim in ((one, size), (other, its))
    ]
    return Conflict(", ".join(texts), (one[0], other[0]))


def _with_size(shape: PartialShape, dimension: int, size: Dim) -> PartialShape:
    if not isinstance(shape, Shape):
        return shape
    sizes = list(dims_of(shape))
    sizes[dimension] = size
    return array(shape.element_type, sizes).with_layout(shape.layout)


def _both(one: Dim, other: Dim) -> Dim | None:
    """The size that is both; None if there is none. A bound goes with any size up to it."""
    if not (one.is_known and other.is_known):
        return one if one.is_known else other
    if one.size == other.size:
        return Dim(one.size, one.dynamic and other.dynamic)
    low, high = sorted((one, other), key=lambda dim: dim.size)
    return low if high.dynamic else None


def merge(one: PartialShape, other: PartialShape) -> PartialShape:
    """What is known when both are true: the element type of the first, every size either knows.

    A bound ``<=n`` goes with any size up to n. The layout is the first one's.

    Raises:
        Conflict: they contradict each other.
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
            return _merged(one, other)
        case TupleShape(ours), TupleShape(theirs) if len(ours) == len(theirs):
            elements = [merge(a, b) for a, b in zip(ours, theirs, strict=True)]
            return TupleShape(tuple([e for e in elements if not isinstance(e, Unranked)]))
        case _ if one == other:
            return one
    raise Conflict(f"{one} and {other} are different things")


def _merged(one: Shape, other: Shape) -> Shape:
    if one.rank != other.rank:
        raise Conflict(
            f"{_text(one)} has rank {one.rank}, but {_text(other)} has rank {other.rank}"
        )
    if not same_but_precision(one.element_type, other.element_type):
        raise Conflict(f"{_text(one)} and {_text(other)} have elements of different types")
    found = []
    for k, (a, b) in enumerate(zip(dims_of(one), dims_of(other), strict=True)):
        both = _both(a, b)
        if both is None:
            sizes = f"{a.size} in {_text(one)}, but {b.size} in {_text(other)}"
            raise Conflict(f"dimension {k} is {sizes}")
        found.append(both)
    merged = array(one.element_type, found)
    return merged if one.layout is None else merged.with_layout(one.layout)


def same_shape(*shapes: PartialShape) -> tuple[PartialShape, ...]:
    """Operands that have the same dimensions, each with what the others tell about them.

    >>> print(*same_shape(Shape("f32", (2, UNBOUNDED)), Unranked("s32"), Shape("u8", (-1, 3))))
    f32[2,3] s32[2,3] u8[2,3]

    Raises:
        Conflict: two of them have different ones; it holds their numbers.
    """
    total: PartialShape = Unranked()
    for number, shape in enumerate(shapes):
        bare = shape.with_element_type("pred") if isinstance(shape, Shape) else Unranked()
        try:
            total = merge(total, bare)
        except Conflict:
            first = next(k for k in range(number) if _differ(shapes[k], shape))
            message = f"operand {first} is {_text(shapes[first])}, operand {number} {_text(shape)}"
            raise Conflict(message, (first, number)) from None
    if not isinstance(total, Shape):
        return shapes
    return tuple([_like(total, shape) for shape in shapes])


def _like(total: Shape, shape: PartialShape) -> PartialShape:
    """The array `total` with the elements of `shape`, if they are known."""
    known = isinstance(shape, Shape | Unranked) and shape.element_type
    return total.with_element_type(known) if known else shape


def _differ(one: PartialShape, other: PartialShape) -> bool:
    if not (isinstance(one, Shape) and isinstance(other, Shape)):
        return False
    return one.rank != other.rank or not all(map(may_be, one.dims, other.dims))


def same_but_precision(one: str, other: str) -> bool:
    """Says that two element types are the same, or floating ones: their precision may be mixed."""
    return one == other or ELEMENT_TYPES[one].kind == ELEMENT_TYPES[other].kind == "floating"


def _text(shape: PartialShape) -> str:
    return str(shape.with_layout(None) if isinstance(shape, Shape) else shape)

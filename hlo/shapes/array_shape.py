"""Array shapes: element type, dimensions and layout, and what follows from them about memory.

Source: XLA ``docs/shapes.md``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hlo.shapes import memory, tiling
from hlo.shapes.element_type import ELEMENT_TYPES
from hlo.shapes.layout import Layout

if TYPE_CHECKING:
    from numpy.typing import NDArray

UNBOUNDED = -1  # a dimension `?`: of any size
MAX_ELEMENTS = 2**63 - 1  # XLA counts elements in a signed 64-bit number


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """An array: the type of its elements, its dimensions, and how it lies in memory.

    Attributes:
        element_type: a name from `ELEMENT_TYPES`.
        dims: sizes of the dimensions; `UNBOUNDED` for ``?``; the bound for a dynamic dimension
            ``<=n``.
        layout: None when the text gives none.
        dynamic: for each dimension, whether its size varies; empty when none does.

    >>> print(Shape("f32", (2, 3), dynamic=(True, False)))
    f32[<=2,3]
    """

    element_type: str
    dims: tuple[int, ...]
    layout: Layout | None = None
    dynamic: tuple[bool, ...] = ()
    _hash: int = field(init=False, repr=False)  # shapes are keys of memo tables

    def __post_init__(self) -> None:
        object.__setattr__(self, "dims", tuple(self.dims))
        if UNBOUNDED in self.dims:  # such a dimension is dynamic, said or not
            given = self.dynamic or (False,) * len(self.dims)
            flags = tuple(f or n == UNBOUNDED for f, n in zip(given, self.dims, strict=True))
            object.__setattr__(self, "dynamic", flags)
        elif not any(self.dynamic):
            object.__setattr__(self, "dynamic", ())
        if not self.dims and self.layout == Layout():  # nothing to order: not written
            object.__setattr__(self, "layout", None)
        if fault := self._fault():
            raise ValueError(fault)
        object.__setattr__(self, "_hash", hash(self._fields()))

    def _fields(self) -> tuple[object, ...]:
        return self.element_type, self.dims, self.layout, self.dynamic

    def _fault(self) -> str:
        if self.element_type not in ELEMENT_TYPES:
            return f"{self.element_type!r} is not an element type"
        if any(size < 0 and size != UNBOUNDED for size in self.dims):
            return f"a dimension of {self.dims} is negative"
        if math.prod(size for size in self.dims if size > 0) > MAX_ELEMENTS:
            return "the number of elements does not fit into 64 bits"
        if self.dynamic and len(self.dynamic) != self.rank:
            return f"{len(self.dynamic)} dynamic flags are given for {self.rank} dimensions"
        if self.layout is not None and self.layout.rank != self.rank:
            return f"the layout orders {self.layout.rank} dimensions, but the array has {self.rank}"
        room = self.layout.padded_dimensions if self.layout else ()
        if any(wide < size for wide, size in zip(room, self.dims, strict=False)):
            return f"the dimensions {self.dims} do not fit into the padded ones {room}"
        return ""

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.dims)

    @property
    def size(self) -> int:
        """Number of elements; a dynamic dimension counts as its bound.

        Raises:
            ValueError: a dimension is unbounded.
        """
        if UNBOUNDED in self.dims:
            raise ValueError(f"{self} has an unbounded dimension, and so no size")
        return math.prod(self.dims)

    @property
    def is_dynamic(self) -> bool:
        """Says that some dimension has no fixed size."""
        return bool(self.dynamic)

    @property
    def layout_or_default(self) -> Layout:
        """The layout; row-major where the text gives none, as XLA assumes."""
        return self.layout or Layout.row_major(self.rank)

    def with_dims(self, dims: Iterable[int], dynamic: Iterable[bool] = ()) -> Shape:
        """The same element type with other dimensions, without a layout.

        >>> print(Shape("f32", (2, 3)).with_dims([3, 2]))
        f32[3,2]
        """
        return Shape(self.element_type, tuple(dims), dynamic=tuple(dynamic))

    def with_element_type(self, element_type: str) -> Shape:
        """The same array with elements of another type."""
        return Shape(element_type, self.dims, self.layout, self.dynamic)

    def with_layout(self, layout: Layout | None) -> Shape:
        """The same array lying in memory in another way."""
        return Shape(self.element_type, self.dims, layout, self.dynamic)

    def compatible(self, other: object) -> bool:
        """Says that both may hold the same elements: types and dimensions agree.

        Layouts need not agree, nor which dimensions are dynamic, and ``?`` goes with any size; as
        in XLA (``ShapeUtil::Compatible``).

        >>> Shape("f32", (2, 3), Layout((0, 1))).compatible(Shape("f32", (2, UNBOUNDED)))
        True
        """
        if not isinstance(other, Shape) or self.element_type != other.element_type:
            return False
        return self.dims == other.dims or (
            self.rank == other.rank
            and all(
                a == b or UNBOUNDED in (a, b) for a, b in zip(self.dims, other.dims, strict=True)
            )
        )

    # ------------------------------------------------------------ in memory

    @property
    def true_rank(self) -> int:
        """Number of dimensions that have more than one element, or none.

        >>> Shape("f32", (5, 1, 3)).true_rank
        2
        """
        return sum(size != 1 for size in self.dims)

    @property
    def element_bits(self) -> int:
        """Bits that one element takes: whole bytes, unless the layout packs elements.

        >>> packed = Layout((0,), element_bits=4)
        >>> Shape("s4", (3,)).element_bits, Shape("s4", (3,), packed).element_bits
        (8, 4)
        """
        packed = self.layout.element_bits if self.layout else 0
        return packed or max(8, ELEMENT_TYPES[self.element_type].bits)

    @property
    def bytes(self) -> int:
        """Bytes that the elements take, without padding."""
        return -(-self.size * self.element_bits // 8)

    @property
    def physical_size(self) -> int:
        """Elements that memory has room for, padding included.

        >>> Shape("f32", (3, 5), Layout((1, 0), tiles=((2, 2),))).physical_size
        24
        """
        _ = self.size  # which an unbounded dimension does not have
        return tiling.extent(self.dims, self.layout_or_default)

    @property
    def physical_bytes(self) -> int:
        """Bytes that memory has room for, padding included."""
        return -(-self.physical_size * self.element_bits // 8)

    @property
    def strides(self) -> tuple[int, ...]:
        """For each dimension, how far apart neighbouring elements are, in elements.

        Raises:
            ValueError: the layout has tiles: the distance is not the same everywhere.

        >>> Shape("f32", (2, 3), Layout((0, 1))).strides
        (1, 2)
        """
        return memory.strides(self.dims, self.layout_or_default)

    def dim(self, dimension: int) -> int:
        """The size of a dimension, which may be counted from the end.

        >>> Shape("f32", (2, 3)).dim(-1)
        3
        """
        if not -self.rank <= dimension < self.rank:
            raise IndexError(f"there is no dimension {dimension} in {self}")
        return self.dims[dimension]

    def linear_index(self, multi: Sequence[memory.Numbers]) -> memory.Positions:
        """The position in memory, in elements, of the element at index `multi`.

        The numbers may be NumPy arrays: that many positions are given.

        >>> Shape("f32", (3, 5), Layout((1, 0), tiles=((2, 2),))).linear_index((2, 3))
        17

        Raises:
            IndexError: an index is outside the array.
        """
        return memory.linear_index(multi, self.dims, self.layout_or_default)

    def multi_index(
        self, linear: memory.Numbers
    ) -> tuple[int, ...] | tuple[NDArray[Any], ...] | None:
        """The index of the element at a position in memory; None where padding lies.

        For an array of positions a tuple of arrays, which hold -1 where padding lies.

        >>> Shape("f32", (3, 5), Layout((1, 0), tiles=((2, 2),))).multi_index(17)
        (2, 3)

        Raises:
            IndexError: a position is outside the memory that the array takes.
        """
        return memory.multi_index(linear, self.dims, self.layout_or_default)

    def is_padding(self, linear: memory.Numbers) -> bool | NDArray[Any]:
        """Says whether no element lies at a position in memory; for each one of an array.

        >>> Shape("f32", (3, 5), Layout((1, 0), tiles=((2, 2),))).is_padding(18)
        True

        Raises:
            IndexError: a position is outside the memory that the array takes.
        """
        return memory.is_padding(linear, self.dims, self.layout_or_default)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Shape):
            return NotImplemented
        return self._hash == other._hash and self._fields() == other._fields()

    def __str__(self) -> str:
        flags = self.dynamic or (False,) * self.rank
        dims = ",".join(map(_dimension, self.dims, flags))
        return f"{self.element_type}[{dims}]{'' if self.layout is None else self.layout}"


def _dimension(size: int, is_dynamic: bool) -> str:
    if size == UNBOUNDED:
        return "?"
    return f"<={size}" if is_dynamic else str(size)

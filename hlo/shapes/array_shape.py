"""Array shapes: element type, dimensions, layout, and their sizes and positions in memory.

Source: XLA ``docs/shapes.md``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from hlo.arguments import checked, checked_constructor
from hlo.html import DescribedShape
from hlo.shapes import memory, tiling
from hlo.shapes.element_type import ELEMENT_TYPES
from hlo.shapes.layout import Layout

if TYPE_CHECKING:
    from numpy.typing import NDArray

UNBOUNDED = -1  # a dimension `?` of unknown size
MAX_ELEMENTS = 2**63 - 1  # XLA counts elements in a signed 64-bit number


@checked_constructor
@dataclass(frozen=True, slots=True, eq=False)
class Shape(DescribedShape):
    """The shape of an array: element type, dimensions and layout.

    Attributes:
        element_type: a name from `ELEMENT_TYPES`.
        dims: sizes of the dimensions; `UNBOUNDED` for ``?``; the bound for a dynamic dimension
            ``<=n``.
        layout: the layout, or None if the text has none.
        dynamic: one flag for each dimension, True if its size is dynamic; empty if all are static.
    Raises:
        ValueError: an unknown element type, a negative size, too many elements, or a layout of
            another rank.

    >>> print(Shape("f32", (2, 3), dynamic=(True, False)))
    f32[<=2,3]

    Source: XLA ``docs/shapes.md``.
    """

    element_type: str
    dims: tuple[int, ...]
    layout: Layout | None = None
    dynamic: tuple[bool, ...] = ()
    _hash: int = field(init=False, repr=False)  # memoised: shapes are keys of memo tables

    def __post_init__(self) -> None:
        object.__setattr__(self, "dims", tuple(self.dims))
        if UNBOUNDED in self.dims:  # an unbounded dimension is always dynamic
            given = self.dynamic or (False,) * len(self.dims)
            flags = tuple(f or n == UNBOUNDED for f, n in zip(given, self.dims, strict=True))
            object.__setattr__(self, "dynamic", flags)
        elif not any(self.dynamic):
            object.__setattr__(self, "dynamic", ())
        if not self.dims and self.layout == Layout():  # the layout of a scalar is not printed
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
            return f"negative dimension in {self.dims}"
        if math.prod(size for size in self.dims if size > 0) > MAX_ELEMENTS:
            return "the number of elements overflows 64 bits"
        if self.dynamic and len(self.dynamic) != self.rank:
            return f"{len(self.dynamic)} dynamic flags for {self.rank} dimensions"
        if self.layout is not None and self.layout.rank != self.rank:
            return f"the layout has rank {self.layout.rank}, but the array has rank {self.rank}"
        padded = self.layout.padded_dimensions if self.layout else ()
        if any(wide < size for wide, size in zip(padded, self.dims, strict=False)):
            return f"the dimensions {self.dims} exceed the padded dimensions {padded}"
        return ""

    @property
    def rank(self) -> int:
        """Number of dimensions.

        >>> Shape("f32", (5, 1, 3)).rank, Shape("f32", ()).rank
        (3, 0)
        """
        return len(self.dims)

    @property
    def size(self) -> int:
        """Number of elements; a dynamic dimension counts as its bound.

        Raises:
            ValueError: a dimension is unbounded.

        >>> Shape("f32", (5, 3)).size, Shape("f32", (5, 3), dynamic=(True, False)).size
        (15, 15)
        """
        if UNBOUNDED in self.dims:
            raise ValueError(f"the size of {self} is unknown: it has an unbounded dimension")
        return math.prod(self.dims)

    @property
    def is_dynamic(self) -> bool:
        """True if some dimension is dynamic.

        >>> bounded = Shape("f32", (5, 3), dynamic=(True, False))  # f32[<=5,3]
        >>> bounded.is_dynamic, Shape("f32", (UNBOUNDED,)).is_dynamic, Shape("f32", (5,)).is_dynamic
        (True, True, False)
        """
        return bool(self.dynamic)

    @property
    def layout_or_default(self) -> Layout:
        """The layout; row-major if the text has none, as in XLA.

        >>> print(Shape("f32", (2, 3, 5)).layout_or_default)
        {2,1,0}
        """
        return self.layout or Layout.row_major(self.rank)

    @checked
    def with_dims(self, dims: Iterable[int], dynamic: Iterable[bool] = ()) -> Shape:
        """Return a shape of the same element type with other dimensions and no layout.

        >>> print(Shape("f32", (2, 3)).with_dims([3, 2]))
        f32[3,2]
        """
        return Shape(self.element_type, tuple(dims), dynamic=tuple(dynamic))

    @checked
    def with_element_type(self, element_type: str) -> Shape:
        """Return the same array with another element type.

        >>> from hlo import parse_shape
        >>> print(parse_shape("f32[2,3]{0,1}").with_element_type("bf16"))
        bf16[2,3]{0,1}
        """
        if element_type == self.element_type:
            return self
        return Shape(element_type, self.dims, self.layout, self.dynamic)

    @checked
    def with_layout(self, layout: Layout | None) -> Shape:
        """Return the same array with another layout.

        >>> from hlo import parse_shape
        >>> print(parse_shape("f32[2,3]{0,1}").with_layout(None))
        f32[2,3]
        """
        if layout is self.layout:
            return self
        return Shape(self.element_type, self.dims, layout, self.dynamic)

    def compatible(self, other: object) -> bool:
        """Return True if the element types and dimensions are equal.

        Layouts and dynamic flags are ignored, and ``?`` is compatible with every size. Source: XLA
        ``ShapeUtil::Compatible``.

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
        """Number of dimensions whose size is not 1.

        >>> Shape("f32", (5, 1, 3)).true_rank
        2
        """
        return sum(size != 1 for size in self.dims)

    @property
    def element_bits(self) -> int:
        """Bits of one element in memory: whole bytes, unless the layout packs elements.

        >>> packed = Layout((0,), element_bits=4)
        >>> Shape("s4", (3,)).element_bits, Shape("s4", (3,), packed).element_bits
        (8, 4)
        """
        packed = self.layout.element_bits if self.layout else 0
        return packed or max(8, ELEMENT_TYPES[self.element_type].bits)

    @property
    def bytes(self) -> int:
        """Bytes of the elements, without padding.

        Raises:
            ValueError: a dimension is unbounded.

        >>> packed = Layout((0,), element_bits=4)
        >>> Shape("s4", (3,)).bytes, Shape("s4", (3,), packed).bytes  # 12 bits need 2 bytes
        (3, 2)
        """
        return -(-self.size * self.element_bits // 8)

    @property
    def physical_size(self) -> int:
        """Number of elements in memory, with padding.

        >>> Shape("f32", (3, 5), Layout((1, 0), tiles=((2, 2),))).physical_size
        24
        """
        return _physical_size(self)

    @property
    def physical_bytes(self) -> int:
        """Bytes in memory, with padding.

        >>> tiled = Shape("f32", (3, 5), Layout((1, 0), tiles=((2, 2),)))
        >>> tiled.bytes, tiled.physical_bytes  # 3 x 5 elements, padded to 4 x 6
        (60, 96)
        """
        return -(-self.physical_size * self.element_bits // 8)

    @property
    def strides(self) -> tuple[int, ...]:
        """The distance of adjacent elements along each dimension, in elements.

        Raises:
            ValueError: the layout has tiles, so the distance is not constant.

        >>> Shape("f32", (2, 3), Layout((0, 1))).strides
        (1, 2)
        """
        return memory.strides(self.dims, self.layout_or_default)

    @checked
    def dim(self, dimension: int) -> int:
        """Return the size of a dimension; negative numbers count from the end.

        Raises:
            IndexError: the dimension is out of range.

        >>> Shape("f32", (2, 3)).dim(-1)
        3
        """
        if not -self.rank <= dimension < self.rank:
            raise IndexError(f"dimension {dimension} is out of range for {self}")
        return self.dims[dimension]

    @checked
    def linear_index(self, multi: Sequence[memory.Numbers]) -> memory.Positions:
        """Return the position in memory, in elements, of the element at index `multi`.

        With NumPy arrays as numbers, the result is an array of positions.

        >>> Shape("f32", (3, 5), Layout((1, 0), tiles=((2, 2),))).linear_index((2, 3))
        17

        Raises:
            IndexError: an index is out of range.
        """
        return memory.linear_index(multi, self.dims, self.layout_or_default)

    @checked
    def multi_index(
        self, linear: memory.Numbers
    ) -> tuple[int, ...] | tuple[NDArray[Any], ...] | None:
        """Return the index of the element at a position in memory; None for padding.

        With an array of positions, the result is a tuple of arrays with -1 for padding.

        >>> Shape("f32", (3, 5), Layout((1, 0), tiles=((2, 2),))).multi_index(17)
        (2, 3)

        Raises:
            IndexError: a position is out of range.
        """
        return memory.multi_index(linear, self.dims, self.layout_or_default)

    @checked
    def is_padding(self, linear: memory.Numbers) -> bool | NDArray[Any]:
        """Return True if a position in memory is padding; elementwise for an array of positions.

        >>> Shape("f32", (3, 5), Layout((1, 0), tiles=((2, 2),))).is_padding(18)
        True

        Raises:
            IndexError: a position is out of range.
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

    def __repr__(self) -> str:
        return f"<shape {self}>"

    def __str__(self) -> str:
        flags = self.dynamic or (False,) * self.rank
        dims = ",".join(map(_dimension, self.dims, flags))
        return f"{self.element_type}[{dims}]{'' if self.layout is None else self.layout}"


@lru_cache(maxsize=1 << 11)
def _physical_size(shape: Shape) -> int:
    _ = shape.size  # raises if a dimension is unbounded
    return tiling.extent(shape.dims, shape.layout_or_default)


def _dimension(size: int, is_dynamic: bool) -> str:
    if size == UNBOUNDED:
        return "?"
    return f"<={size}" if is_dynamic else str(size)

"""`CuteLayout`: a layout of CuTe, from coordinates to offsets, with an optional swizzle.

``layout(c) = swizzle(offset + Σ_k c_k · stride_k)``.  Shape and stride are integers or nested
tuples of the same form.  An entry of the outermost tuple is a *mode*.

Linear indices differ from those of HLO.  A single integer as coordinate is *colexicographic*: the
first mode changes fastest.  HLO counts in row-major order: the last dimension changes fastest.  A
map and its layout have the same order: dimension ``k`` is mode ``k``.

>>> row_major = CuteLayout((2, 3), (3, 1))
>>> [row_major(i) for i in range(6)]
[0, 3, 1, 4, 2, 5]

Source: CUTLASS documentation, "CuTe Layouts" and "CuTe Layout Algebra".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

import indexing.methods as methods
from hlo.arguments import checked, integer, wrong_argument
from indexing.devices.gpus import Gpu
from indexing.maps.indexing_map import IndexingMap
from indexing.memory.layouts.swizzle import Swizzle
from simplifier.linear import Expr
from simplifier.unknown import Unknown

IntTuple: TypeAlias = "int | tuple[IntTuple, ...]"
"""An integer, or a tuple of these."""
Tiler: TypeAlias = "CuteLayout | int | Sequence[Tiler]"
"""A layout, a size ``n`` for ``n:1``, or one of these for each of the first modes."""


class Leaf(NamedTuple):
    """A mode that is not nested: ``size:stride``."""

    size: int
    stride: int

    def __str__(self) -> str:
        return f"{self.size}:{self.stride}"


@dataclass(frozen=True, slots=True)
class CuteLayout:
    """A function from coordinates to offsets: ``swizzle(offset + Σ_k c_k · stride_k)``.

    Attributes:
        shape, stride: integers, or nested tuples of the same form.
        swizzle: applied to the sum; `None` for the identity.
        offset: added before the swizzle.

    Raises:
        ValueError: shape and stride have different forms, a size is not positive, or the swizzle is
            applied to a negative sum.

    >>> layout = CuteLayout((4, (2, 3)), (2, (1, 8)))
    >>> layout(1, 5), layout(1, (1, 2)), layout(21)
    (19, 19, 19)
    >>> print(CuteLayout(8, 1, Swizzle.xor(bits=1, base=0, shift=2)))
    Sw<1,0,2> o 0 o 8:1
    >>> layout = CuteLayout(8, 1, Swizzle.xor(bits=1, base=0, shift=2))
    >>> print(layout.is_affine, layout.affine, layout.size, layout.with_affine(CuteLayout(8, 2)))
    False 8:1 8 Sw<1,0,2> o 0 o 8:2
    """

    shape: IntTuple
    stride: IntTuple
    swizzle: Swizzle | None = None
    offset: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.swizzle, Swizzle | None):
            raise wrong_argument("CuteLayout", "swizzle", Swizzle, self.swizzle)
        shape, stride = (_int_tuple(name, getattr(self, name)) for name in ("shape", "stride"))
        leaves = list(_leaves(shape, stride))
        if any(leaf.size < 1 for leaf in leaves):
            raise ValueError(f"the sizes of a layout are positive, not {int_tuple_text(shape)}")
        offset = integer("CuteLayout", "offset", self.offset)
        lowest = offset + sum(min(0, (leaf.size - 1) * leaf.stride) for leaf in leaves)
        identity = self.swizzle is None or not self.swizzle.columns
        if lowest < 0 and not identity:
            raise ValueError(f"a swizzle needs offsets of at least 0; the lowest is {lowest}")
        for name, value in (
            ("shape", shape),
            ("stride", stride),
            ("swizzle", None if identity else self.swizzle),
            ("offset", offset),
        ):
            object.__setattr__(self, name, value)

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        """The sizes and strides without nesting.

        >>> print(*CuteLayout((4, (2, 3)), (2, (1, 8))).leaves)
        4:2 2:1 3:8
        """
        return tuple(_leaves(self.shape, self.stride))

    @property
    def modes(self) -> tuple[CuteLayout, ...]:
        """The affine layout of each mode: without the swizzle and the offset.

        >>> print(*CuteLayout((4, (2, 3)), (2, (1, 8))).modes)
        4:2 (2,3):(1,8)
        """
        if isinstance(self.shape, int):
            return (CuteLayout(self.shape, self.stride),)
        assert isinstance(self.stride, tuple), "shape and stride have the same form"
        pairs = zip(self.shape, self.stride, strict=True)
        return tuple([CuteLayout(shape, stride) for shape, stride in pairs])

    @property
    def is_affine(self) -> bool:
        """True if there are no swizzle and no offset."""
        return self.swizzle is None and self.offset == 0

    @property
    def affine(self) -> CuteLayout:
        """The layout without the swizzle and the offset."""
        return self if self.is_affine else CuteLayout(self.shape, self.stride)

    @checked
    def with_affine(self, affine: CuteLayout) -> CuteLayout:
        """Return `affine` with the swizzle and the offset of this layout."""
        return CuteLayout(affine.shape, affine.stride, self.swizzle, self.offset)

    @property
    def size(self) -> int:
        """The number of coordinates."""
        return prod(leaf.size for leaf in self.leaves)

    @property
    def cosize(self) -> int:
        """One more than the distance of the farthest offsets, before the swizzle.

        >>> CuteLayout((4, 2), (2, 16)).cosize
        23
        """
        return 1 + sum((leaf.size - 1) * abs(leaf.stride) for leaf in self.leaves)

    def __str__(self) -> str:
        affine = f"{int_tuple_text(self.shape)}:{int_tuple_text(self.stride)}"
        if self.is_affine:
            return affine
        return f"{Swizzle(()) if self.swizzle is None else self.swizzle} o {self.offset} o {affine}"

    def __call__(self, *coordinate: IntTuple) -> int:
        """Return the offset of a coordinate.

        Args:
            coordinate: one coordinate for each mode; or one integer, the colexicographic index.
                The coordinate of a nested mode is a tuple, or its colexicographic index.
        Raises:
            IndexError: the coordinate is outside the shape.
            ValueError: the coordinate has another form than the shape.
        """
        given = _int_tuple("coordinate", coordinate[0] if len(coordinate) == 1 else coordinate)
        if isinstance(given, tuple) and len(given) > 1 and _rank(self.shape) == 1:
            given = (given,)  # the coordinate of the only mode, which is nested
        total = self.offset + _offset(given, self.shape, self.stride)
        return total if self.swizzle is None else self.swizzle(total)

    def offsets(self) -> NDArray[np.int64]:
        """Return the offsets of all coordinates, in colexicographic order.

        >>> CuteLayout((2, 3), (3, 1)).offsets().tolist()
        [0, 3, 1, 4, 2, 5]
        """
        total = np.array([self.offset], np.int64)
        for size, stride in self.leaves:
            total = (np.arange(size)[:, None] * stride + total).reshape(-1)
        return total if self.swizzle is None else self.swizzle(total)

    @checked
    def plot(
        self,
        device: str | Gpu | None = None,
        element_bits: int = 32,
        backend: methods.Backend = "svg",
        theme: methods.Theme = "auto",
    ) -> Any:
        """Return a picture of the offsets: rows are the first mode, columns the second one.

        Args:
            device: draw banks of shared memory of this GPU instead of offsets.
            element_bits: the bits of an element.
            backend, theme: as in `Answer.plot`.
        Returns:
            A `Drawing`.
        Raises:
            ImportError: matplotlib is not installed.
            ValueError: the GPU is not known, or `element_bits` is less than 1.

        >>> CuteLayout((4, 8), (8, 1)).plot()
        <drawing of 'layout (4,8):(8,1)'>
        """
        return methods.plot_cute(self, device, element_bits, backend, theme)

    @property
    def map(self) -> IndexingMap:
        """The map from the coordinates, one dimension for each mode, to the offset.

        A nested mode is one dimension: its colexicographic index.

        >>> print(CuteLayout((4, (2, 3)), (2, (1, 8))).map)
        (d0, d1) -> (d0 * 2 + d1 + (d1 floordiv 2) * 6), domain: d0 in [0, 3], d1 in [0, 5]
        """
        modes = self.modes

        def result(d: Sequence[Expr]) -> list[Expr]:
            total = Expr({}, self.offset)
            for mode, index in zip(modes, d, strict=True):
                below = 1
                for size, stride in mode.leaves:
                    total += index // below % size * stride
                    below *= size
            return [total if self.swizzle is None else self.swizzle.expr(total)]

        return IndexingMap.over([mode.size for mode in modes], result)

    # ------------------------------------------------------------ algebra

    def coalesce(self) -> CuteLayout:
        """Return the layout with the fewest modes and the same offset for each linear index.

        Source: CUTLASS, "CuTe Layout Algebra", "Coalesce".

        >>> print(CuteLayout((2, (1, 6)), (1, (6, 2))).coalesce())
        12:1
        """
        return methods.coalesce_layout(self)

    def composition(self, inner: Tiler) -> CuteLayout | Unknown:
        """Return ``c -> self(inner(c))``, with the coordinates of `inner`.

        As in CuTe, the last mode of the coalesced layout has no upper limit: indices beyond its
        size have offsets, too.  A sequence of layouts is composed with the first modes, one by one.

        Returns:
            `Unknown` if a size or stride of `inner` does not divide as CuTe requires, if a sum of
            coordinates of `inner` carries into the next mode of this layout, or if `inner` has a
            swizzle, an offset or a negative stride.
        Source: CUTLASS, "CuTe Layout Algebra", "Composition".

        >>> print(CuteLayout((6, 2), (8, 2)).composition(CuteLayout((4, 3), (3, 1))))
        ((2,2),3):((24,2),8)
        >>> print(CuteLayout((4, 6), (1, 8)).composition(CuteLayout(4, 3)))
        cannot compose (4,6):(1,8) with 4:3: the stride 3 neither divides the size 4 nor is a \
multiple of it
        """
        return methods.composition(self, inner)

    def complement(self, cotarget: int) -> CuteLayout | Unknown:
        """Return a layout whose offsets, added to those of this layout, are distinct.

        They fill ``[0, cotarget)`` if each stride is a multiple of the extent of the smaller modes.

        Args:
            cotarget: the number of offsets to fill.
        Returns:
            `Unknown` if two coordinates may have the same offset, if a stride is negative, or if
            the layout has a swizzle or an offset.
        Source: CUTLASS, "CuTe Layout Algebra", "Complement".

        >>> print(CuteLayout((2, 2), (1, 6)).complement(24))
        (3,2):(2,12)
        """
        return methods.complement(self, cotarget)

    def logical_divide(self, tiler: Tiler) -> CuteLayout | Unknown:
        """Return the layout with two modes: the elements of a tile, and the tiles.

        ``self ∘ (tiler, tiler.complement(self.size))``.  A sequence divides the first modes.  If a
        tile does not divide the size, the last tile has coordinates beyond it, as in CuTe.

        Returns:
            `Unknown` if the complement, or the composition, is; or if the tiles miss elements.
        Source: CUTLASS, "CuTe Layout Algebra", "Division (Tilers)".

        >>> print(CuteLayout((4, 2, 3), (2, 1, 8)).logical_divide(CuteLayout(4, 2)))
        ((2,2),(2,3)):((4,1),(2,8))
        """
        return methods.logical_divide(self, tiler)

    def logical_product(self, tiler: Tiler) -> CuteLayout | Unknown:
        """Return the layout with two modes: this layout, and its copies, ordered by `tiler`.

        ``(self, self.complement(self.size · tiler.cosize) ∘ tiler)``.  A sequence replicates the
        first modes.

        Returns:
            `Unknown` if the complement, or the composition, is.
        Source: CUTLASS, "CuTe Layout Algebra", "Product (Tiling)".

        >>> print(CuteLayout((2, 2), (4, 1)).logical_product(CuteLayout(6, 1)))
        ((2,2),(2,3)):((4,1),(2,8))
        """
        return methods.logical_product(self, tiler)

    def right_inverse(self) -> CuteLayout | Unknown:
        """Return a layout with ``self(inverse(i)) = i`` for each of its indices.

        It has the offsets from 0 to the first that no chain of strides reaches.

        Returns:
            `Unknown` if the layout has a swizzle or an offset.
        Source: CUTLASS ``include/cute/layout.hpp``, ``right_inverse``.

        >>> print(CuteLayout((8, 4), (4, 1)).right_inverse())
        (4,8):(8,1)
        """
        return methods.right_inverse(self)

    def left_inverse(self) -> CuteLayout | Unknown:
        """Return a layout with ``inverse(self(i)) = i`` for each linear index of this layout.

        Returns:
            `Unknown` if the layout is not injective, if a stride does not divide the next larger
            stride, if a stride is negative, or if the layout has a swizzle or an offset.
        Source: CUTLASS ``include/cute/layout.hpp``, ``left_inverse``.

        >>> print(CuteLayout((4, 8), (1, 5)).left_inverse())
        (5,8):(1,4)
        """
        return methods.left_inverse(self)


def int_tuple_text(value: IntTuple) -> str:
    """Return the text of an integer or nested tuple, as CuTe prints it.

    >>> int_tuple_text((4, (2, 3)))
    '(4,(2,3))'
    """
    return str(value) if isinstance(value, int) else f"({','.join(map(int_tuple_text, value))})"


def _int_tuple(name: str, value: object) -> IntTuple:
    """An integer, or a nested tuple, of integers of any type."""
    if isinstance(value, tuple | list):
        return tuple([_int_tuple(name, each) for each in value])
    return integer("CuteLayout", name, value)


def _rank(value: IntTuple) -> int:
    return 1 if isinstance(value, int) else len(value)


def _leaves(shape: IntTuple, stride: IntTuple) -> Iterator[Leaf]:
    if isinstance(shape, int) and isinstance(stride, int):
        yield Leaf(shape, stride)
    elif isinstance(shape, tuple) and isinstance(stride, tuple) and len(shape) == len(stride):
        for each in map(_leaves, shape, stride):
            yield from each
    else:
        raise ValueError(
            f"shape and stride have different forms: {int_tuple_text(shape)} and "
            f"{int_tuple_text(stride)}"
        )


def _offset(coordinate: IntTuple, shape: IntTuple, stride: IntTuple) -> int:
    """The affine offset of a coordinate: a tuple of the form of `shape`, or a linear index."""
    if isinstance(coordinate, int):
        leaves = list(_leaves(shape, stride))
        size = prod(leaf.size for leaf in leaves)
        if not 0 <= coordinate < size:
            raise IndexError(f"the index {coordinate} is outside [0, {size - 1}]")
        total = 0
        for leaf in leaves:
            coordinate, digit = divmod(coordinate, leaf.size)
            total += digit * leaf.stride
        return total
    if isinstance(shape, int) or isinstance(stride, int) or len(shape) != len(coordinate):
        raise ValueError(
            f"the coordinate {int_tuple_text(coordinate)} has another form than the shape "
            f"{int_tuple_text(shape)}"
        )
    return sum(map(_offset, coordinate, shape, stride))

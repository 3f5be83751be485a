"""Memrefs of a kernel's body as parts of the buffers that its arguments are.

A part is a box: for each dimension its first element, an expression of the grid, and its size.  It
is `None` where it may be any part of the buffer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Final, TypeAlias

from hlo.shapes.element_type import ELEMENT_TYPES
from indexing.kernels.attributes import element_name
from indexing.kernels.ir import MlirType
from simplifier.linear import Expr, as_expr

Box: TypeAlias = "tuple[tuple[Expr, int], ...] | None"

LOCAL: Final = -1
"""A buffer that is allocated in the body, and that no later step has."""
HIDDEN: Final = -2
"""State that no memref names, such as that of the random number generator."""


@dataclass(frozen=True, slots=True)
class MemoryView:
    """The memory that a memref refers to.

    Attributes:
        buffer: the number of the argument, `LOCAL` or `HIDDEN`.
        box: the part of the buffer.
        is_aligned: True if dimension k of the memref is dimension k of the box.
        fills: True if the memref has all elements of the box.
    """

    buffer: int
    box: Box
    is_aligned: bool = False
    fills: bool = False

    @classmethod
    def of_argument(cls, number: int, held: MlirType) -> MemoryView:
        """Return the view of a whole argument."""
        if any(size < 0 for size in held.dims):
            return cls(number, None)
        return cls(number, tuple([(as_expr(0), n) for n in held.dims]), True, True)

    def part(self, starts: Sequence[object], sizes: Sequence[int]) -> MemoryView:
        """Return the view of a slice; any part of the box if its place is not known.

        >>> rows = MemoryView.of_argument(0, MlirType("memref", "f32", (32, 128)))
        >>> [str(start) for start, _ in rows.part([as_expr(8), as_expr(0)], (8, 128)).box]
        ['8', '0']
        """
        exprs = [e for e in starts if isinstance(e, Expr)]
        if self.box is None or not self.is_aligned or not len(exprs) == len(starts) == len(sizes):
            return replace(self, is_aligned=False, fills=False)
        if len(self.box) != len(exprs) or any(size < 0 for size in sizes):
            return replace(self, is_aligned=False, fills=False)
        inner = zip(self.box, exprs, sizes, strict=True)
        box = tuple([(first + start, size) for (first, _), start, size in inner])
        return MemoryView(self.buffer, box, True, True)

    def reshaped(self, before: MlirType, after: MlirType) -> MemoryView:
        """Return the view of a memref with other dimensions or another element type."""
        same = _bits(before)
        return replace(self, is_aligned=False, fills=self.fills and same == _bits(after) != 0)

    def access(self, held: MlirType, starts: Sequence[object], sizes: Sequence[int]) -> MemoryView:
        """Return the part that a load or a store of a vector has; `fills` if it is all of it.

        Args:
            held: the type of the memref.
            sizes: those of the vector, which may have fewer dimensions than the memref.
        """
        if self.is_aligned and len(sizes) <= len(starts):
            return self.part(starts, (*[1] * (len(starts) - len(sizes)), *sizes))
        return replace(self, fills=self.fills and prod(sizes) == prod(held.dims) > 0)


def contains_box(outer: Box, inner: Box) -> bool:
    """Return True if interval bounds prove that a box has all elements of another one.

    >>> whole, row = ((as_expr(0), 8),), ((as_expr(3), 1),)
    >>> contains_box(whole, row), contains_box(row, whole), contains_box(row, None)
    (True, False, False)
    """
    if outer is None or inner is None or len(outer) != len(inner):
        return False
    for (first, size), (start, count) in zip(outer, inner, strict=True):
        low, high = (start - first).bounds
        if low < 0 or high + count > size:
            return False
    return True


def _bits(held: MlirType) -> int:
    """The bits of a memref; 0 if they are not known."""
    name = element_name(held.element)
    bits = 0 if name is None else ELEMENT_TYPES[name].bits
    return 0 if any(size < 0 for size in held.dims) else prod(held.dims) * bits

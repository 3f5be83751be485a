"""Layouts of Triton: which thread holds each element of a tile, by the bits of its index.

All sizes are powers of two, so that an element has a number whose bits are those of its indices,
the last dimension lowest.  A layout gives each bit to the registers of a thread, to the lanes of a
warp or to the warps; a lane or warp that holds no element of its own has the bit 0: it holds what
another one does.

Source: Triton ``include/triton/Dialect/TritonGPU/IR/TritonGPUAttrDefs.td``, "blocked encoding" and
"slice encoding"; ``lib/Dialect/TritonGPU/Transforms/Coalesce.cpp``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Final

LANES: Final = 32
"""Threads of a warp."""
_VECTOR_BITS: Final = 128
"""Most bits that a thread loads or stores at once."""


@dataclass(frozen=True, slots=True)
class BitLayout:
    """The bits of the elements of a tile, by what holds them.

    Attributes:
        shape: the sizes of the tile.
        registers, lanes, warps: powers of two, or 0; the lowest bit of the holder first.
    """

    shape: tuple[int, ...]
    registers: tuple[int, ...]
    lanes: tuple[int, ...]
    warps: tuple[int, ...]

    def strides(self) -> tuple[int, ...]:
        """Return the number of elements between two indices of each dimension.

        >>> BitLayout((4, 8), (), (), ()).strides()
        (8, 1)
        """
        return tuple([prod(self.shape[k + 1 :]) for k in range(len(self.shape))])

    def bits_of(self, dim: int) -> set[int]:
        """Return the bits of a dimension."""
        stride, size = self.strides()[dim], self.shape[dim]
        return {stride << k for k in range(size.bit_length() - 1)}

    def without(self, dim: int) -> BitLayout:
        """Return the layout of a slice: all indices of a dimension are one.

        >>> BitLayout((2, 4), (1,), (2, 4), ()).without(1)
        BitLayout(shape=(2,), registers=(), lanes=(0, 1), warps=())
        """
        stride, size = self.strides()[dim], self.shape[dim]
        own = self.bits_of(dim)

        def move_bit(bit: int) -> int:
            if bit in own:
                return 0
            return bit if bit < stride else bit // size

        registers = [move_bit(bit) for bit in self.registers]
        return BitLayout(
            (*self.shape[:dim], *self.shape[dim + 1 :]),
            tuple([bit for bit in registers if bit]),
            tuple(map(move_bit, self.lanes)),
            tuple(map(move_bit, self.warps)),
        )

    def reshaped(self, shape: Sequence[int]) -> BitLayout:
        """Return the same layout of a tile with other sizes, row by row."""
        return BitLayout(tuple(shape), self.registers, self.lanes, self.warps)


def blocked_layout(
    shape: Sequence[int], vector: int, warps: int, order: Sequence[int] | None = None
) -> BitLayout:
    """Return a blocked layout: lanes, then warps, from the fastest dimension on.

    Args:
        shape: the sizes of the tile.
        vector: adjacent elements of a thread along the fastest dimension.
        warps: the number of warps of a block.
        order: the dimensions, the fastest first; by default, the last dimension.

    >>> blocked_layout((4, 128), 8, 2)
    BitLayout(shape=(4, 128), registers=(1, 2, 4), lanes=(8, 16, 32, 64, 128), warps=(256,))
    >>> blocked_layout((16,), 1, 1).lanes
    (1, 2, 4, 8, 0)
    """
    dims = list(range(len(shape)))[::-1] if order is None else list(order)
    strides = BitLayout(tuple(shape), (), (), ()).strides()
    free = {d: [strides[d] << k for k in range(shape[d].bit_length() - 1)] for d in dims}
    taken = vector.bit_length() - 1
    registers = free[dims[0]][:taken]
    free[dims[0]] = free[dims[0]][taken:]
    holders = []
    for count in (LANES, warps):
        number = count.bit_length() - 1
        bits: list[int] = []
        for d in dims:
            own = free[d][: number - len(bits)]
            free[d] = free[d][len(own) :]
            bits += own
        holders.append((*bits, *[0] * (number - len(bits))))
    registers += [bit for d in dims for bit in free[d]]
    return BitLayout(tuple(shape), tuple(registers), *holders)


def vector_of(shape: Sequence[int], bits: int, warps: int, run: int | None = None) -> int:
    """Return how many adjacent elements a thread loads at once.

    Args:
        shape: the sizes of the tile.
        bits: bits of an element.
        warps: the number of warps of a block.
        run: adjacent elements in memory; by default, the last dimension.

    >>> vector_of((4, 128), 16, 2), vector_of((4, 128), 16, 4), vector_of((10, 16), 32, 1, 2)
    (8, 4, 2)
    """
    own = shape[-1] if run is None else run
    return max(1, min(_VECTOR_BITS // bits, own, prod(shape) // (LANES * warps)))


def squeeze(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the sizes of a tile without those of 1; one of them if there are no others.

    >>> squeeze((1, 4, 128)), squeeze((1, 1))
    ((4, 128), (1,))
    """
    return tuple([n for n in shape if n != 1]) or (1,)


def squeezed_for_reduction(shape: Sequence[int], dim: int) -> tuple[tuple[int, ...], int]:
    """Return the sizes of a tile that XLA reduces along a dimension, and the dimension.

    XLA drops dimensions of 1 from the result up.  One next to the reduced dimension stays: without
    it, the result with the reduced dimension as 1 has the sizes of the result itself.

    >>> squeezed_for_reduction((1, 4, 128), 2), squeezed_for_reduction((2, 4, 1, 256), 3)
    (((4, 128), 1), ((2, 4, 1, 256), 3))
    """
    sizes, at, k, is_kept = list(shape), dim, 0, False
    while k < len(sizes):
        rest = sizes[:at] + sizes[at + 1 :]
        expanded = [*rest[:at], 1, *rest[at:]]
        if k == at or sizes[k] != 1:
            k += 1
        elif not is_kept and expanded[:k] + expanded[k + 1 :] == rest:
            is_kept = True
            k += 1
        else:
            del sizes[k]
            at -= k < at
    return tuple(sizes), at

"""Shared memory through which Triton moves elements between the threads of a block.

A conversion between two layouts writes the elements in the order of one, and reads them in that of
the other.  Elements that a thread holds in both may pass one after the other (`_Buffer.rounds`), so
the buffer is that much smaller.  Which of them do depends on the instructions: 128 bits of a
thread, or the 8 x 8 matrices of ``stmatrix`` and ``ldmatrix``, whichever have the fewest conflicts
of memory banks.  A reduction moves one value of each warp to the lanes of one.

Bits are those of `triton_layouts`.  Source: Triton ``lib/Tools/GenericSwizzling.cpp``;
``third_party/nvidia/lib/TritonNVIDIAGPUToLLVM/Allocation.cpp``; ``lib/Analysis/Utility.cpp``,
``ReduceOpHelper`` and ``cvtNeedsWarpShuffle``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, zip_longest
from math import prod
from typing import Final, NamedTuple

from indexing.tiling.loops.triton_layouts import BitLayout

_BANK_BITS: Final = 32 * 32
_MAX_SHUFFLES: Final = 1
"""Most bits that move between registers and lanes without shared memory."""


class _Instruction(NamedTuple):
    """Lanes whose elements an instruction joins, and lanes that give an address each."""

    joined: tuple[int, ...]
    addresses: tuple[int, ...]

    @property
    def parts(self) -> int:
        """Bits by which the instruction moves several matrices at once."""
        return len(self.joined) + len(self.addresses) - 3


_VECTOR: Final = _Instruction((), (0, 1, 2))
_MATRIX: Final = _Instruction((0, 1), (2, 3, 4))
_TRANSPOSED: Final = _Instruction((2, 3, 4), (0, 1))


@dataclass(frozen=True, slots=True)
class _Buffer:
    """How a conversion uses shared memory.

    Attributes:
        conflicts: conflicts of banks of a store and a load.
        rounds: bits of elements that pass one after the other.
    """

    conflicts: int
    rounds: int


def conversion_bytes(src: BitLayout, dst: BitLayout, bits: int, capability: int = 90) -> int:
    """Return the bytes of shared memory of a conversion; 0 if it needs none.

    Args:
        src, dst: layouts of one tile.
        bits: bits of an element.
        capability: that of the GPU, such as 90.

    >>> from indexing.tiling.loops.triton_layouts import blocked_layout
    >>> row = blocked_layout((1, 256), 1, 1).without(0)
    >>> conversion_bytes(blocked_layout((256,), 4, 1), row, 32)
    512
    """
    if src.warps == dst.warps:
        moved = set(src.registers) & set(dst.lanes) - {0}
        back = set(dst.registers) & set(src.lanes) - {0}
        if src.lanes == dst.lanes or max(len(moved), len(back)) <= _MAX_SHUFFLES:
            return 0
    bits = max(bits, 8)
    stores = [_VECTOR, *([_MATRIX] if capability >= 90 and bits <= 32 else [])]
    loads = [_VECTOR, *([_MATRIX] if capability >= 75 and bits <= 32 else [])]
    if bits == 16:
        stores += [_TRANSPOSED] if capability >= 90 else []
        loads += [_TRANSPOSED] if capability >= 75 else []
    buffers = [
        buffer
        for store in stores
        for load in loads
        if (buffer := _join_layouts(src, dst, bits, store, load)) is not None
    ]
    best = min(buffers, key=lambda each: (each.conflicts, -each.rounds), default=None) or _plain(
        src, dst, bits
    )
    return (prod(src.shape) >> best.rounds) * bits // 8


def reduction_bytes(layout: BitLayout, dim: int, bits: int) -> int:
    """Return the bytes of shared memory of a reduction along a dimension.

    >>> from indexing.tiling.loops.triton_layouts import blocked_layout
    >>> [reduction_bytes(blocked_layout((rows, 64), 1, 2), 1, 32) for rows in (1, 4)]
    [8, 32]
    """
    own = layout.bits_of(dim)
    partial = [bit for bit in layout.warps if bit in own]
    if not partial:
        return 0
    size, stride = 1 << len(partial), layout.strides()[dim]
    full = layout.shape[dim]

    def place_bit(bit: int) -> int:
        if bit in own:
            return stride << partial.index(bit) if bit in partial else 0
        return bit if bit < stride else bit // full * size

    shape = (*layout.shape[:dim], size, *layout.shape[dim + 1 :])
    registers = tuple([place_bit(bit) for bit in layout.registers if bit not in own])
    first = BitLayout(
        shape, registers, tuple(map(place_bit, layout.lanes)), tuple(map(place_bit, layout.warps))
    )
    lanes, warps = list(first.lanes), list(first.warps)
    free = [k for k, bit in enumerate(lanes) if not bit]
    places = free if len(free) >= len(partial) else range(len(lanes))
    moving = [k for k, bit in enumerate(layout.warps) if bit in own]
    for lane, warp in zip(places, moving, strict=False):
        lanes[lane], warps[warp] = warps[warp], lanes[lane]
    second = replace(first, lanes=tuple(lanes), warps=tuple(warps))
    rounds = _plain(first, second, max(bits, 8)).rounds
    return (prod(shape) >> rounds) * max(bits, 8) // 8


# ---------------------------------------------------------------- instructions


def _common(src: Iterable[int], dst: Iterable[int]) -> list[int]:
    known = set(dst)
    return [bit for bit in src if bit and bit in known]


def _join_layouts(
    src: BitLayout, dst: BitLayout, bits: int, store: _Instruction, load: _Instruction
) -> _Buffer | None:
    """Return the buffer of two instructions that move 128 bits at once; None if they cannot."""
    vector = _moved_by_both((src, store), (dst, load), (128 // bits).bit_length() - 1)
    if vector is None:
        return None
    stored, loaded = _phase(src, store, vector), _phase(dst, load, vector)
    if stored is None or loaded is None:
        return None
    return _buffer(src, dst, bits, vector, stored, loaded, min(store.parts, load.parts))


def _moved_by_both(
    store: tuple[BitLayout, _Instruction], load: tuple[BitLayout, _Instruction], count: int
) -> list[int] | None:
    """Return the bits of the elements that two instructions move at once: registers, then lanes.

    None if the instructions have no such elements in common.

    Args:
        store, load: each instruction, with the layout of its elements.
        count: the number of bits.
    """
    (first, fewer), (second, more) = sorted((store, load), key=lambda each: len(each[1].joined))
    registers = _common(first.registers, second.registers)
    needed = count - len(more.joined)
    if not 0 <= needed <= len(registers):
        return None
    lanes = [second.lanes[k] for k in more.joined]
    split = len(more.joined) - len(fewer.joined)  # the first lanes are registers of the other
    if 0 in lanes or not set(lanes[:split]) <= set(first.registers):
        return None
    if lanes[split:] != [first.lanes[k] for k in fewer.joined]:
        return None
    return registers[:needed] + lanes


def _phase(layout: BitLayout, instruction: _Instruction, vector: Sequence[int]) -> list[int] | None:
    """Return the bits of the 8 vectors that an instruction accesses in one phase.

    None if a thread has too few elements for the vectors without an address.
    """
    needed = 3 - len(instruction.addresses)
    registers = [bit for bit in layout.registers if bit not in vector][:needed]
    if len(registers) < needed:
        return None
    return [*registers, *[layout.lanes[k] for k in instruction.addresses]]


def _plain(src: BitLayout, dst: BitLayout, bits: int) -> _Buffer:
    """Return the buffer of stores and loads of as many bits as both layouts have in registers."""
    vector = _common(src.registers, dst.registers)[: (128 // bits).bit_length() - 1]
    bank = (32 // bits).bit_length() - 1 if bits < 32 else 0
    if len(vector) < bank:
        vector = _bank_word(vector, src, dst, bank)
    wide = max(1, (1 << len(vector)) * bits // 32).bit_length() - 1
    tiles = [list(each.lanes[: len(each.lanes) - wide]) for each in (src, dst)]
    return _buffer(src, dst, bits, vector, tiles[0], tiles[1], 0)


def _bank_word(vector: Sequence[int], src: BitLayout, dst: BitLayout, size: int) -> list[int]:
    """Return the bits of one word of a bank: those of a vector, of registers, then of warps."""
    word = [*vector, *_registers_to_warps(vector, src, dst)]
    if len(word) < size:
        word += _common(src.warps, dst.warps)
    for bit in chain.from_iterable(zip_longest(src.warps, dst.warps, fillvalue=0)):
        if bit and bit not in word:
            word.append(bit)
    return word[:size]


def _registers_to_warps(vector: Sequence[int], src: BitLayout, dst: BitLayout) -> list[int]:
    """Return the bits, except those of a vector, of registers of one layout and warps of the other.

    The registers are those of the layout with more such bits, or with the least one.
    """
    stored = _common([bit for bit in src.registers if bit not in vector], dst.warps)
    loaded = _common([bit for bit in dst.registers if bit not in vector], src.warps)
    if len(stored) == len(loaded) and stored:
        return stored if min(stored) < min(loaded) else loaded
    return stored if len(stored) > len(loaded) else loaded


def _buffer(
    src: BitLayout,
    dst: BitLayout,
    bits: int,
    vector: Sequence[int],
    store: Sequence[int],
    load: Sequence[int],
    kept: int,
) -> _Buffer:
    """Return the buffer for bits of a vector, and of the lanes that store and load at once."""
    count = prod(src.shape).bit_length() - 1
    banks = (_BANK_BITS // ((1 << len(vector)) * bits)).bit_length() - 1
    lines = max(0, count - len(vector) - min(banks, count - len(vector)))
    segment = _lines({*vector, *store} - {0}, {*vector, *load} - {0}, count, lines)
    both = set(src.registers) & set(dst.registers)
    rounds = [bit for bit in segment if bit in both][kept:]
    rest = [bit for bit in segment if bit not in rounds]
    conflicts = sum([(1 << _dimension_of_both(rest, tile)) - 1 for tile in (store, load)])
    return _Buffer(conflicts, len(rounds))


def _lines(store: set[int], load: set[int], count: int, lines: int) -> list[int]:
    """Return the bits that choose a line of all banks, so that few accesses hit one bank."""
    segment = [1 << k for k in range(count) if 1 << k not in store and 1 << k not in load]
    if len(segment) >= lines:
        return segment[:lines]
    first, second = sorted(store - load), sorted(load - store)
    if len(first) > len(second):
        first, second = second, first
    shared = min(max(0, lines - len(first) - len(segment)), len(first))
    segment += [first[k] ^ second[k] for k in range(shared, len(first))]
    return (segment + first[:shared] + second[:shared])[:lines]


def _rank(vectors: Iterable[int]) -> int:
    """Return the dimension of the space of bits that vectors span."""
    basis: list[int] = []
    for vector in vectors:
        for each in basis:
            vector = min(vector, vector ^ each)
        if vector:
            basis.append(vector)
    return len(basis)


def _dimension_of_both(first: Sequence[int], second: Sequence[int]) -> int:
    return _rank(first) + _rank(second) - _rank([*first, *second])

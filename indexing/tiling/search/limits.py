"""Limits on tilings: sizes of tiles, memory of the tiles together, and the number of tiles.

Two limits are estimates, because registers and shared memory are allocated by the compiler of the
kernel: `TileMemory.registers` and `TileMemory.shared_memory` state what they assume.

>>> TilingLimits.of_gpu("H100").max_shared_memory
232448
>>> print(TilingLimits(max_elements=100).violation(TileMemory(TileArray((8, 16), 32), (), tiles=4)))
128 elements in the tile [8, 16] of the result: at most 100 allowed
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from math import prod
from typing import Final

from hlo.arguments import checked, checked_constructor
from indexing.devices.gpus import gpu

XLA_REGISTER_SHARE: Final = 0.4
"""Share of a block's registers that one tile may fill.

Source: XLA ``xla/service/gpu/model/gpu_indexing_performance_model.cc``, ``DoesTileFitInRegisters``.
"""

XLA_MIN_ELEMENTS: Final = 16
"""Fewest elements of a tile of the output.

Source: XLA ``xla/service/gpu/model/triton_emitter_constraints.cc``, ``kMinReasonableTileSize``.
"""


def padded_size(size: int) -> int:
    """Return the next power of two.

    >>> padded_size(5), padded_size(8), padded_size(0)
    (8, 8, 0)
    """
    return 1 << (size - 1).bit_length() if size else 0


@dataclass(frozen=True, slots=True)
class TileArray:
    """The part of one array that one tile holds.

    Attributes:
        sizes: the sizes of the box that holds the elements.
        bits: bits of one element in memory.
        elements: number of elements, if the tile holds fewer than the box.
    """

    sizes: tuple[int, ...]
    bits: int
    elements: int | None = None

    @property
    def count(self) -> int:
        """Number of elements that the tile holds."""
        return prod(self.sizes) if self.elements is None else self.elements

    @property
    def bytes(self) -> int:
        """Bytes of these elements."""
        return -(-self.count * self.bits // 8)

    def pad_sizes(self) -> TileArray:
        """Return the box with each size rounded up to a power of two, as Triton allocates it.

        >>> TileArray((3, 8, 0), 32).pad_sizes().sizes
        (4, 8, 0)
        """
        return TileArray(tuple(map(padded_size, self.sizes)), self.bits)


@dataclass(frozen=True, slots=True)
class TileMemory:
    """The largest tile of each array, and the number of tiles of the result.

    Attributes:
        result: the tile of the result.
        operands: the tiles of the operands.
        tiles: number of tiles of the result.

    >>> tile = TileMemory(TileArray((2, 4), 32), (TileArray((2, 8), 16), TileArray((8, 4), 16)), 6)
    >>> tile.working_set, tile.registers, tile.shared_memory
    (128, 56, 96)
    """

    result: TileArray
    operands: tuple[TileArray, ...]
    tiles: int

    @property
    def arrays(self) -> tuple[TileArray, ...]:
        """The tile of the result, then those of the operands."""
        return (self.result, *self.operands)

    @property
    def working_set(self) -> int:
        """Bytes of the tiles of the result and of all operands together."""
        return sum(array.bytes for array in self.arrays)

    @property
    def registers(self) -> int:
        """Estimate of the 32-bit registers of one block.

        It assumes that all tiles are held at once, and that an element fills whole registers.
        Registers for indices and intermediate values are not counted.
        """
        return sum(array.count * -(-array.bits // 32) for array in self.arrays)

    @property
    def shared_memory(self) -> int:
        """Estimate of the bytes of shared memory of one block.

        It assumes that every operand is staged through shared memory in one stage, and that the
        result stays in registers.
        """
        return sum(array.bytes for array in self.operands)

    def pad_sizes(self) -> TileMemory:
        """Return the same tiles with sizes that are powers of two."""
        return TileMemory(
            self.result.pad_sizes(),
            tuple([array.pad_sizes() for array in self.operands]),
            self.tiles,
        )


@checked_constructor
@dataclass(frozen=True, slots=True, kw_only=True)
class TilingLimits:
    """Limits that a tiling must keep; `None` does not limit.

    Attributes:
        min_elements: fewest elements of the tile of the result.
        max_elements: most elements of any one tile, of the result or of an operand.
        max_working_set: most bytes of the tiles of the result and of all operands together.
        max_registers: most 32-bit registers of a block, by the estimate `TileMemory.registers`.
        max_shared_memory: most bytes of shared memory of a block, by the estimate
            `TileMemory.shared_memory`.
        max_tiles: most tiles of the result, such as the blocks that a device can launch.
        padded: count elements, bytes and registers with each size rounded up to a power of two.

    Raises:
        ValueError: a limit is negative.

    >>> limits = TilingLimits(max_working_set=1024)
    >>> limits.violation(TileMemory(TileArray((8, 8), 32), (TileArray((8, 8), 32),), tiles=1))
    >>> limits.violation(TileMemory(TileArray((8, 16), 32), (TileArray((8, 32), 32),), tiles=1))
    'a working set of 1,536 bytes: at most 1,024 allowed'
    """

    min_elements: int | None = None
    max_elements: int | None = None
    max_working_set: int | None = None
    max_registers: int | None = None
    max_shared_memory: int | None = None
    max_tiles: int | None = None
    padded: bool = False

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None and value < 0:
                raise ValueError(f"{field.name}={value}: expected at least 0")

    @classmethod
    @checked
    def of_gpu(cls, name: str) -> TilingLimits:
        """Return the registers, the shared memory and the number of blocks of a GPU model.

        Raises:
            ValueError: the model is not known.
        Source: `indexing.devices.gpus.GPUS`.

        >>> TilingLimits.of_gpu("A100").max_registers
        65536
        """
        model = gpu(name)
        return cls(
            max_registers=model.registers_per_block,
            max_shared_memory=model.shared_memory_per_block,
            max_tiles=model.max_blocks,
        )

    @classmethod
    @checked
    def xla(cls, name: str) -> TilingLimits:
        """Return the limits by which XLA prunes the tilings of a Triton fusion on a GPU model.

        The tile of the result has at least 16 elements.  Each tile, with sizes rounded up to
        powers of two, has at most 0.4 elements for each register of a block.  The number of tiles
        is below the number of blocks of a launch.

        Not included: XLA's limit of 256 on each size of a tile of a dot's operand, and its
        constraints of reshapes and concatenations.

        Raises:
            ValueError: the model is not known.
        Source: XLA ``xla/service/gpu/model/triton_emitter_constraints.cc``,
            ``ParametersSatisfyConstraints``; ``gpu_indexing_performance_model.cc``,
            ``DoesComputationFitInRegisters``.

        >>> TilingLimits.xla("A100").max_elements
        26214
        """
        model = gpu(name)
        return cls(
            min_elements=XLA_MIN_ELEMENTS,
            max_elements=int(XLA_REGISTER_SHARE * model.registers_per_block),
            max_tiles=model.max_blocks - 1,
            padded=True,
        )

    def violation(self, tile: TileMemory) -> str | None:
        """Return the first limit that a tiling exceeds, in words, or `None`."""
        if self.min_elements is not None and tile.result.count < self.min_elements:
            return (
                f"{_elements(tile.result)} of the result: at least {self.min_elements:,} required"
            )
        return self.excess(tile)

    def excess(self, tile: TileMemory) -> str | None:
        """Return the first upper limit on memory or tiles that a tiling exceeds, or `None`.

        Operands that are left out count as empty, so an excess without them remains one with them.

        >>> limits = TilingLimits(min_elements=8, max_tiles=4)
        >>> small = TileMemory(TileArray((2, 2), 32), (), tiles=6)
        >>> limits.excess(small), limits.violation(small)
        ('6 tiles: at most 4 allowed',
         '4 elements in the tile [2, 2] of the result: at least 8 required')
        """
        if self.max_tiles is not None and tile.tiles > self.max_tiles:
            return f"{tile.tiles:,} tiles: at most {self.max_tiles:,} allowed"
        return next(self._memory_excesses(tile.pad_sizes() if self.padded else tile), None)

    def _memory_excesses(self, tile: TileMemory) -> Iterator[str]:
        padding = ", with sizes padded to powers of two" if self.padded else ""
        for k, array in enumerate(tile.arrays):
            if self.max_elements is not None and array.count > self.max_elements:
                place = f"operand {k - 1}" if k else "the result"
                yield (
                    f"{_elements(array)} of {place}{padding}: at most {self.max_elements:,} allowed"
                )
        totals: Sequence[tuple[str, int, int | None]] = (
            ("a working set of {:,} bytes", tile.working_set, self.max_working_set),
            ("an estimate of {:,} registers", tile.registers, self.max_registers),
            (
                "an estimate of {:,} bytes of shared memory",
                tile.shared_memory,
                self.max_shared_memory,
            ),
        )
        for words, value, limit in totals:
            if limit is not None and value > limit:
                yield f"{words.format(value)}{padding}: at most {limit:,} allowed"


def _elements(array: TileArray) -> str:
    return f"{array.count:,} elements in the tile {list(array.sizes)}"

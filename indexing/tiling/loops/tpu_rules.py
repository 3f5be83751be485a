"""Rules of TPUs for tilings with loops: blocks that Mosaic accepts, and VMEM."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

from hlo.arguments import checked_constructor
from hlo.shapes.shape import Shape
from indexing.devices.tpus import LANES, padded_bytes, tile_rows, vmem_capacity
from indexing.tiling.loops.accumulators import Accumulators
from indexing.tiling.loops.axes import Axes
from indexing.tiling.loops.block_figures import BlockFigures
from indexing.tiling.loops.block_rules import DeviceRules, Violation
from indexing.tiling.loops.dot_tiles import read_extents
from indexing.tiling.loops.loop_model import LoopModel
from indexing.tiling.loops.phases import LoopPhase
from indexing.tiling.loops.sequential import sequential_loads
from simplifier.unknown import Unknown

BUFFERS = 2
"""Buffers of each block: one is used while the other is loaded or stored."""
MIN_ROW = 1024
"""Elements of which a block of rank 1 has a multiple."""


@checked_constructor
@dataclass(frozen=True, slots=True, kw_only=True)
class TpuRules(DeviceRules):
    """Limits of a TPU core on the blocks of a Pallas kernel, whose grid runs in sequence.

    The last two sizes of each block are multiples of a tile of rows by 128, or those of the array.

    Attributes:
        name: the TPU.
        processors: 1, the core.
        vmem: most bytes of VMEM of blocks, each in two buffers, and of accumulators.

    Source: JAX ``docs/pallas/tpu/details.rst``, "Array Layouts"; ``docs/pallas/tpu/pipelining.md``.

    >>> TpuRules.of_tpu("v5e").vmem >> 20
    128
    """

    keeps_tiles: ClassVar[bool] = True
    name: str
    vmem: int
    processors: int = 1

    @classmethod
    def of_tpu(cls, name: str) -> TpuRules:
        """Return the rules of a TPU, such as "v5e".

        Raises:
            ValueError: the TPU is not known.
        """
        return cls(name=name, vmem=vmem_capacity(name))

    def loaded(
        self,
        model: LoopModel,
        axes: Axes,
        phases: Sequence[LoopPhase],
        figures: BlockFigures,  # counts loads of each block from nothing
    ) -> int | Unknown:
        """Return the bytes that the core loads, block by block in row-major order."""
        return sequential_loads(phases, axes, range(model.rank), model.tables)

    def too_small(self, model: LoopModel, axes: Axes) -> Iterator[Violation]:
        """Yield violations of blocks that are smaller than a tile."""
        for name, shape, extents, uncut in _blocks(model, axes):
            for size, whole, tile in tiled_sizes(shape, extents, uncut):
                if size < min(tile, whole):
                    yield (
                        "tile",
                        f"{size} indices of a dimension of {name}: at least {min(tile, whole)} "
                        "required",
                    )

    def too_large(self, model: LoopModel, axes: Axes) -> Iterator[Violation]:
        """Yield the violation of one array whose block does not fit into VMEM."""
        for name, shape, extents, _ in _blocks(model, axes):
            needed = BUFFERS * _padded_bytes(shape, extents)
            if needed > self.vmem:
                yield "VMEM", f"{needed:,} bytes of {name}: at most {self.vmem:,} allowed"

    def of_figures(
        self,
        model: LoopModel,
        axes: Axes,
        figures: BlockFigures,
        accumulators: Accumulators,
        stages: int | None = None,  # two buffers of each block
        warps: int | None = None,
    ) -> Iterator[Violation]:
        """Yield violations of sizes that are no multiples of a tile, and of VMEM."""
        for name, shape, extents, uncut in _blocks(model, axes):
            for size, whole, tile in tiled_sizes(shape, extents, uncut):
                if size % tile and size != whole:
                    yield (
                        "tile",
                        f"{size} indices of a dimension of {name}: a multiple of {tile} or all "
                        f"{whole} required",
                    )
        needed = vmem_of(model, axes, figures, accumulators)
        if needed > self.vmem:
            yield "VMEM", f"{needed:,} bytes: at most {self.vmem:,} allowed"


def tiled_sizes(
    shape: Shape, extents: Sequence[int], uncut: Sequence[int]
) -> Iterator[tuple[int, int, int]]:
    """Yield the size of a block, that of all blocks and that of a tile, for the last dimensions.

    >>> list(tiled_sizes(Shape("bf16", (4, 64, 512)), (1, 32, 128), (4, 64, 512)))
    [(32, 64, 16), (128, 512, 128)]
    """
    tiles = (tile_rows(shape.element_bits), LANES) if shape.rank > 1 else (MIN_ROW,)
    last = list(zip(extents, uncut, strict=True))[-len(tiles) :]
    for (size, whole), tile in zip(last, tiles[: len(last)], strict=True):
        yield size, whole, tile


def vmem_of(model: LoopModel, axes: Axes, figures: BlockFigures, accumulators: Accumulators) -> int:
    """Return the bytes of blocks in VMEM in the largest phase, of the result, and accumulators."""
    result = _padded_bytes(model.shape, [axes[k].step for k in range(model.rank)])
    operands = [
        sum([_padded_bytes(tile.array.array_shape, tile.extents) for tile in phase.tiles])
        for phase in figures.phases
    ]
    return BUFFERS * (max(operands, default=0) + result) + accumulators.vmem_bytes


def _blocks(
    model: LoopModel, axes: Axes
) -> Iterator[tuple[str, Shape, tuple[int, ...], tuple[int, ...]]]:
    """Yield the name, the array and the sizes of each block, the result's first.

    The last sizes are those of a block that no axis cuts.
    """
    dims = model.shape.dims
    yield "the result", model.shape, tuple([axes[k].step for k in range(model.rank)]), dims
    for array, extents, uncut in read_extents(model, axes):
        if array.array_shape is not None:
            yield f"`{array.instruction.name}`", array.array_shape, extents, uncut


def _padded_bytes(shape: Shape | None, extents: Sequence[int]) -> int:
    assert shape is not None
    if not prod(extents):
        return 0
    return padded_bytes(extents, shape.element_type, shape.element_bits)

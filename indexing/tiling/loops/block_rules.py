"""Rules of devices for tilings with loops: data with their sources, and violations in words."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar, TypeAlias

from hlo.arguments import checked_constructor
from indexing.devices.gpus import PROCESSORS, gpu
from indexing.tiling.loops.accumulators import Accumulators
from indexing.tiling.loops.axes import Axes
from indexing.tiling.loops.block_figures import BlockFigures
from indexing.tiling.loops.dot_tiles import (
    DotTile,
    contiguous_bytes,
    dot_tiles,
    has_dots,
    has_products,
    read_extents,
)
from indexing.tiling.loops.loop_model import LoopModel
from indexing.tiling.loops.loop_objectives import AverageProcessor, FewestBytes, LoopObjective
from indexing.tiling.loops.phases import LoopPhase
from indexing.tiling.loops.warps import (
    MAX_THREAD_REGISTERS,
    OTHER_REGISTERS,
    warps_of_dots,
    warps_of_rows,
)
from indexing.tiling.search.limits import XLA_REGISTER_SHARE, padded_size
from simplifier.unknown import Unknown

Violation: TypeAlias = tuple[str, str]
"""A rule, and how a tiling violates it, in words."""


class DeviceRules(ABC):
    """Rules of a device for tilings with loops.

    Attributes:
        name: the device.
        processors: the number of blocks that run at once.
        keeps_tiles: True if a block finds the tiles of the block before it.
    """

    __slots__ = ()

    name: str
    processors: int
    keeps_tiles: ClassVar[bool] = False

    @abstractmethod
    def loaded(
        self,
        model: LoopModel,
        axes: Axes,
        phases: Sequence[LoopPhase],
        figures: BlockFigures,
    ) -> int | Unknown:
        """Return the bytes that all blocks load."""

    @property
    def objective(self) -> LoopObjective:
        """The objective of a search that is given none."""
        return FewestBytes(self.processors)

    def warps(
        self, model: LoopModel, axes: Axes, figures: BlockFigures, accumulators: Accumulators
    ) -> int | None:
        """Return the number of warps of a block; None on devices without warps."""
        return None

    @abstractmethod
    def too_small(self, model: LoopModel, axes: Axes) -> Iterator[Violation]:
        """Yield violations of sizes that finer tilings violate, too."""

    @abstractmethod
    def too_large(self, model: LoopModel, axes: Axes) -> Iterator[Violation]:
        """Yield violations of sizes that coarser tilings violate, too."""

    def too_short(self, model: LoopModel, axes: Axes) -> Iterator[Violation]:
        """Yield what the search refuses although compilers accept it; finer tilings are worse."""
        yield from ()

    def too_full(self, model: LoopModel, accumulators: Accumulators) -> Iterator[Violation]:
        """Yield what the search refuses although a kernel may have it: blocks hold too much."""
        yield from ()

    @abstractmethod
    def of_figures(
        self,
        model: LoopModel,
        axes: Axes,
        figures: BlockFigures,
        accumulators: Accumulators,
        stages: int | None = None,
        warps: int | None = None,
    ) -> Iterator[Violation]:
        """Yield violations of what a block holds.

        Args:
            accumulators: what the accumulators of a block hold.
            stages: the stages of the loops; by default, those of `PhaseFigures.default_stages`.
            warps: the number of warps of a block; by default, those of `warps`.
        """

    def violations(
        self,
        model: LoopModel,
        axes: Axes,
        figures: BlockFigures,
        accumulators: Accumulators,
        stages: int | None = None,
        warps: int | None = None,
    ) -> Iterator[Violation]:
        """Yield all violations of a tiling; see `of_figures`."""
        yield from self.too_small(model, axes)
        yield from self.too_large(model, axes)
        yield from self.of_figures(model, axes, figures, accumulators, stages, warps)


@checked_constructor
@dataclass(frozen=True, slots=True, kw_only=True)
class BlockRules(DeviceRules):
    """Limits of a device and of the compiler of its kernels on the tiles of a block.

    Attributes:
        name: the device.
        processors: the number of multiprocessors.
        shared_memory: most bytes of staged operand tiles of a block, of dots and convolutions.
        registers: 32-bit registers of a block; `OTHER_REGISTERS` of each thread hold no
            accumulators.  The search leaves half of them to operands and addresses.
        min_rows, min_columns: least sizes of the tile of a dot, or the whole dimensions.
        min_contracted: least step of a contracted dimension in elements, or the whole dimension;
            at least 128 bits, too.
        max_dot_size: most indices of a dot's operand along one dimension.
        max_elements: most elements of the tile of the result, padded to powers of two.
        min_run: least bytes of adjacent elements of a tile that the search accepts, or a whole row.
        max_blocks: most blocks of a launch.
        threads_per_warp: threads of a warp.
        max_threads: most threads of a block.

    Source: XLA ``xla/backends/gpu/codegen/triton``, ``VerifyTritonConstraints`` and
    ``TilingSpace::GetValidTilings``, 2026 (256, 2^20, 0.4 of the registers); Triton,
    ``min_dot_size`` of its CUDA backend (16, 8, 128 bits), and of its AMD backend for gfx94, CDNA 3
    (16, 16, 8 elements, of int8 16); Triton, ``python/tutorials/gluon/05-wgmma.py``,
    ``find_configs`` (16 registers of each thread); `indexing.devices.gpus`.

    >>> BlockRules.of_gpu("H100").shared_memory, BlockRules.of_gpu("H100").processors
    (232448, 132)
    """

    name: str
    processors: int
    shared_memory: int
    registers: int
    min_rows: int = 16
    min_columns: int = 8
    min_contracted: int = 16
    max_dot_size: int = 256
    max_elements: int = 1 << 20
    min_run: int = 64
    max_blocks: int = 2**31 - 1
    threads_per_warp: int = 32
    max_threads: int = 1024

    @classmethod
    def of_gpu(cls, name: str) -> BlockRules:
        """Return the rules of a GPU model for kernels of Triton.

        Raises:
            ValueError: the model is not known.
        """
        model = gpu(name)
        processor = PROCESSORS[model.name]
        is_rocm = processor.platform == "rocm"
        return cls(
            name=model.name,
            processors=processor.core_count,
            min_columns=16 if is_rocm else 8,
            min_contracted=8 if is_rocm else 16,
            shared_memory=model.shared_memory_per_block,
            registers=model.registers_per_block,
            max_blocks=model.max_blocks,
            threads_per_warp=model.threads_per_warp,
        )

    @property
    def max_accumulators(self) -> int:
        """Most registers of accumulators in tilings that the search accepts."""
        return self.registers // 2

    @property
    def max_tile(self) -> int:
        """Most elements of a tile that a block without dots holds in registers."""
        return int(XLA_REGISTER_SHARE * self.registers)

    def loaded(
        self,
        model: LoopModel,  # blocks run at once, in no order
        axes: Axes,
        phases: Sequence[LoopPhase],
        figures: BlockFigures,
    ) -> int | Unknown:
        """Return the bytes that all blocks load, each from nothing."""
        return figures.loaded

    @property
    def objective(self) -> LoopObjective:
        """The objective of a search that is given none."""
        return AverageProcessor(self.processors)

    def warps(
        self, model: LoopModel, axes: Axes, figures: BlockFigures, accumulators: Accumulators
    ) -> int:
        """Return the number of warps of a block: see `indexing.tiling.loops.warps`."""
        dots = list(dot_tiles(model, axes))
        if dots:
            rows = max([padded_size(dot.rows[0]) for dot in dots])
            return warps_of_dots(rows, accumulators.registers, self.name)
        tiles = [prod(map(padded_size, [axes[k].step for k in range(model.rank)]))]
        extents = [tile.extents for phase in figures.phases for tile in phase.tiles]
        tiles += [prod(map(padded_size, sizes)) for sizes in extents]
        return warps_of_rows(max(*tiles, accumulators.registers))

    # ------------------------------------------------------------ violations

    def too_full(self, model: LoopModel, accumulators: Accumulators) -> Iterator[Violation]:
        """Yield accumulators that leave less than half of the registers to operands."""
        registers = accumulators.registers
        if has_products(model) and registers > self.max_accumulators:
            yield (
                "registers",
                f"{registers:,} accumulator registers: at most {self.max_accumulators:,} "
                "allowed, half of a block's",
            )

    def too_small(self, model: LoopModel, axes: Axes) -> Iterator[Violation]:
        """Yield violations of sizes that are too small."""
        for dot in dot_tiles(model, axes):
            yield from self._of_dot(dot)

    def too_short(self, model: LoopModel, axes: Axes) -> Iterator[Violation]:
        """Yield the arrays whose tiles have too few adjacent bytes for efficient transfers."""
        steps = [axes[k].step for k in range(model.rank)]
        run = contiguous_bytes(model.shape, steps)
        if run is not None and run < self.min_run:
            yield "run", f"{run} adjacent bytes of the result: at least {self.min_run} required"
        for array, extents, uncut in read_extents(model, axes):
            shape = array.array_shape
            run = None if shape is None else contiguous_bytes(shape, extents, uncut)
            if run is not None and run < self.min_run:
                name = array.instruction.name
                yield "run", f"{run} adjacent bytes of `{name}`: at least {self.min_run} required"

    def too_large(self, model: LoopModel, axes: Axes) -> Iterator[Violation]:
        """Yield violations of sizes that are too large."""
        steps = [axes[k].step for k in range(model.rank)]
        elements = prod(map(padded_size, steps))
        if elements > self.max_elements:
            yield "elements", f"{elements:,} padded elements: at most {self.max_elements:,} allowed"
        for dot in dot_tiles(model, axes, above=self.max_dot_size):
            if dot.largest > self.max_dot_size:
                yield (
                    "dot size",
                    f"an operand of `{dot.name}` has {dot.largest} indices along a dimension: at "
                    f"most {self.max_dot_size} allowed; the nearest legal size is "
                    f"{self.max_dot_size}",
                )
        if has_dots(model):
            return
        reads = read_extents(model, axes, above=self.max_tile)
        tiles = [(f"`{array.instruction.name}`", extents) for array, extents, _ in reads]
        for name, extents in [("the result", tuple(steps)), *tiles]:
            count = prod(map(padded_size, extents))
            if count > self.max_tile:
                yield (
                    "registers",
                    f"{count:,} padded elements of {name}: at most {self.max_tile:,} allowed",
                )

    def _of_dot(self, dot: DotTile) -> Iterator[Violation]:
        least = max(self.min_contracted, 128 // dot.bits)
        for name, (size, whole), low in (
            ("rows", dot.rows, self.min_rows),
            ("columns", dot.columns, self.min_columns),
            ("contracted", dot.contracted, least),
        ):
            if size < min(low, whole):
                yield (
                    f"dot {name}",
                    f"`{dot.name}` has a tile of {size} {name}: at least {low} required; the "
                    f"nearest legal size is {min(low, whole)}",
                )

    def of_figures(
        self,
        model: LoopModel,
        axes: Axes,  # figures suffice
        figures: BlockFigures,
        accumulators: Accumulators,
        stages: int | None = None,
        warps: int | None = None,
    ) -> Iterator[Violation]:
        """Yield violations of what a block holds."""
        if figures.blocks > self.max_blocks:
            yield "blocks", f"{figures.blocks:,} blocks: at most {self.max_blocks:,} allowed"
        chosen = self.warps(model, axes, figures, accumulators) if warps is None else warps
        threads = chosen * self.threads_per_warp
        if threads > self.max_threads:
            yield "threads", f"{threads:,} threads: at most {self.max_threads:,} allowed"
        if has_products(model):
            held, needed = self.registers - OTHER_REGISTERS * threads, accumulators.registers
            if needed > held:
                yield (
                    "registers",
                    f"{needed:,} accumulator registers: at most {held:,} allowed beside "
                    f"{OTHER_REGISTERS} of each of {threads:,} threads",
                )
            elif -(-needed // threads) > MAX_THREAD_REGISTERS:
                yield (
                    "registers",
                    f"{-(-needed // threads):,} accumulator registers of each of "
                    f"{threads:,} threads: at most {MAX_THREAD_REGISTERS} allowed",
                )
            shared = max(phase.shared_bytes(stages) for phase in figures.phases)
            if shared > self.shared_memory:
                yield (
                    "shared memory",
                    f"{shared:,} bytes of shared memory: at most {self.shared_memory:,} allowed",
                )

"""`LoopTiling`: tiles whose blocks run over contracted, reduced and window dimensions in steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from math import prod
from operator import or_

import indexing.methods as methods
from hlo.arguments import checked, integers
from hlo.modules.module import Instruction
from hlo.shapes.shape import Shape
from indexing.devices.gpus import PROCESSORS
from indexing.maps.arrays import ArrayRef
from indexing.maps.indexing_map import Grade
from indexing.maps.regions.needed import region_inside
from indexing.maps.regions.region import Region
from indexing.tiling.computations.tile_boxes import concrete_box
from indexing.tiling.loops.accumulators import Accumulators, accumulators_of
from indexing.tiling.loops.axes import Axes
from indexing.tiling.loops.block_figures import BlockFigures, PhaseFigures
from indexing.tiling.loops.loop_model import LoopModel
from indexing.tiling.loops.loop_parts import LoopRead as LoopRead
from indexing.tiling.loops.loop_parts import TilingLoop as TilingLoop
from indexing.tiling.loops.nests import NestRead, waits_for
from indexing.tiling.loops.phases import LoopPhase
from indexing.tiling.loops.printed_kernels import PrintedKernels
from indexing.tiling.loops.rules import rules_of
from indexing.tiling.loops.sequential import sequential_loads
from indexing.tiling.loops.tpu_rules import vmem_of
from indexing.tiling.loops.waves import wave_bytes
from indexing.tiling.sets.tile_grid import TileGrid
from indexing.tiling.sizes.tile_sizes import dimension_of
from simplifier.unknown import Unknown


@dataclass(frozen=True, eq=False, repr=False)
class LoopTiling(PrintedKernels):
    """The tiles of an output, with the loops of each block.

    A block computes one tile.  It runs through `phases` in order, and through the steps of the
    loops of each.  Figures count sets of elements, block by block and step by step.

    Attributes:
        instruction: the instruction whose output is tiled.
        sizes: the size of a tile in each dimension.
        loops: the loops.
        split_k: the number of blocks that share the loop of one tile.
        model: the nests.
        axes: the tiled dimensions and loops, each cut into tiles or steps.
        serial: the tiled dimensions through which a block walks.
        loop_phases: the nests of each phase.
        allows_online: True if a reduction may run in step with a statistic that it needs.

    >>> import hlo, indexing
    >>> (dot,) = hlo.load("examples/attention.opt.hlo").find("dot.7")  # of f32[64,64], twice
    >>> tiling = indexing.tile(dot, (32, 64), loop_sizes={"k": 8})
    >>> tiling.grid, tiling.blocks, tiling.steps, tiling.loaded  # 2 * (32 + 64) * 64 floats
    ((2, 1), 2, 8, 49152)
    >>> tiling.bytes, tiling.compulsory, tiling.wave_bytes(), tiling.sequential_bytes()
    (65536, 49152, 49152, 65536)
    >>> tiling.resident_bytes, tiling.shared_bytes(stages=3), str(tiling.at(1, 0, step=2)[0])
    (3072, 9216, '[32:64, 16:24]')
    """

    instruction: Instruction
    sizes: tuple[int, ...]
    loops: tuple[TilingLoop, ...]
    split_k: int
    model: LoopModel
    axes: Axes
    serial: frozenset[int]
    loop_phases: tuple[LoopPhase, ...]
    allows_online: bool

    @property
    def shape(self) -> Shape:
        """The shape of the tiled array."""
        return self.model.shape

    @property
    def grid(self) -> tuple[int, ...]:
        """The number of blocks along each dimension, without `split_k`."""
        return self._grid.counts

    @property
    def blocks(self) -> int:
        """The number of blocks."""
        return prod(self.grid) * self.split_k

    @property
    def divides(self) -> tuple[bool, ...]:
        """For each dimension, True if all tiles are whole."""
        return self._grid.divides

    @property
    def loop_sizes(self) -> tuple[int, ...]:
        """The step of each loop, in the order of `TileAnalysis.dimensions`."""
        rank = self.model.rank
        return tuple([self.axes[rank + k].step for k in range(len(self.model.loops))])

    @property
    def steps(self) -> int:
        """The number of steps of a block, in all phases with loops; at least 1."""
        pairs = zip(self.loop_phases, self._own_steps, strict=True)
        return max(1, sum([steps for phase, steps in pairs if phase.has_loops]))

    @property
    def passes(self) -> int:
        """The number of phases with loops, and of an epilogue that reads what they read."""
        seen: set[ArrayRef] = set()
        count = 0
        for phase in self.loop_phases:
            arrays = {each.array for each in phase.arrays}
            count += phase.has_loops or bool(arrays & seen)
            seen |= arrays
        return count

    @property
    def online(self) -> bool:
        """True if a reduction runs in step with a statistic that it needs, and is rescaled."""
        return any(
            other in phase.nests
            for phase in self.loop_phases
            for nest in phase.nests
            for other in waits_for(nest)
        )

    @property
    def phases(self) -> tuple[PhaseFigures, ...] | Unknown:
        """Figures by phase, in the order in which a block runs them."""
        figures = self._figures
        return figures if isinstance(figures, Unknown) else figures.phases

    # ------------------------------------------------------------ traffic

    @property
    def loaded(self) -> int | Unknown:
        """Bytes that all blocks load."""
        figures = self._figures
        return figures if isinstance(figures, Unknown) else figures.loaded

    @property
    def bytes(self) -> int | Unknown:
        """Bytes that all blocks load and store, without caches.

        With `split_k`, the partial results in float32 are stored and loaded, too.
        """
        loaded = self.loaded
        if isinstance(loaded, Unknown):
            return loaded
        partial = 2 * self.split_k * self.shape.size * 4 if self.split_k > 1 else 0
        return loaded + self.shape.bytes + partial

    @property
    def compulsory(self) -> int | Unknown:
        """Bytes with each element loaded or stored once."""
        touched = self.model.touched
        return touched if isinstance(touched, Unknown) else touched + self.shape.bytes

    @checked
    def wave_bytes(
        self, order: str = "row", sms: int | str = "H100", occupancy: int = 1
    ) -> int | Unknown:
        """Return the bytes that waves of blocks in lockstep load and store.

        The blocks of a wave share the loads of each step, and nothing survives between waves.

        Args:
            order: the order of the blocks: see `indexing.BlockOrder.parse`.
            sms: the number of multiprocessors, or the name of a GPU.
            occupancy: the number of blocks of one multiprocessor.
        Raises:
            ValueError: the order or the GPU is not known, or a number is not positive.
        """
        count = PROCESSORS[sms].core_count if isinstance(sms, str) and sms in PROCESSORS else sms
        if isinstance(count, str) or count < 1 or occupancy < 1:
            known = ", ".join(PROCESSORS)
            raise ValueError(
                f"sms={sms!r}, occupancy={occupancy}: expected positive numbers, or one of {known}"
            )
        numbers = methods.BlockOrder.parse(order, self.grid).numbers
        blocks = frozenset(range(self.model.rank)) - self.serial
        loaded = wave_bytes(
            self.loop_phases, self.axes, blocks, self.model.tables, numbers, count * occupancy
        )
        return loaded if isinstance(loaded, Unknown) else loaded + self.shape.bytes

    @checked
    def sequential_bytes(self, order: str | Sequence[int] = "row") -> int | Unknown:
        """Return the bytes that one core moves which runs the blocks in sequence, as a TPU does.

        A tile equal to that of the step before is not loaded again.

        Args:
            order: "row" or "column", or the dimensions of the result, the outermost first.
        Raises:
            ValueError: the order is not known, or the blocks share loops by `split_k`.
        """
        rank = self.model.rank
        known = {"row": range(rank), "column": range(rank - 1, -1, -1)}
        axes = known.get(order) if isinstance(order, str) else order
        if axes is None or sorted(axes) != list(range(rank)) or self.split_k > 1:
            raise ValueError(
                f'order={order!r}, split_k={self.split_k}: expected "row", "column" or each of '
                f"{rank} dimensions once, and no shared loops"
            )
        blocks = [axis for axis in axes if axis not in self.serial]
        loaded = sequential_loads(self.loop_phases, self.axes, blocks, self.model.tables)
        return loaded if isinstance(loaded, Unknown) else loaded + self.shape.bytes

    @property
    def grade(self) -> Grade:
        """Grade "may" if figures are upper bounds."""
        figures = self._figures
        return "may" if isinstance(figures, Unknown) else figures.grade

    # ------------------------------------------------------------ residency

    @property
    def resident_bytes(self) -> int | Unknown:
        """The most bytes of operand tiles, staying or of a step, of a block in one stage.

        The maximum over phases, without accumulators.
        """
        return figures if isinstance(figures := self._figures, Unknown) else figures.resident

    @property
    def padded_resident_bytes(self) -> int | Unknown:
        """`resident_bytes`, with each size of a tile rounded up to a power of two."""
        figures = self._figures
        return figures if isinstance(figures, Unknown) else figures.padded_resident

    @property
    def stages(self) -> int:
        """The number of stages of the longest phase: as many as steps, at most 3."""
        figures = self._figures
        if isinstance(figures, Unknown):
            return 1
        return max([phase.default_stages for phase in figures.phases], default=1)

    @checked
    def shared_bytes(self, stages: int | None = None, padded: bool = False) -> int | Unknown:
        """Return the bytes of staying tiles, and of changing ones in each stage.

        Args:
            stages: the number of stages; by default, `stages`.
            padded: round each size up to a power of two.
        """
        figures = self._figures
        if isinstance(figures, Unknown):
            return figures
        return max([phase.shared_bytes(stages, padded) for phase in figures.phases], default=0)

    @property
    def vmem_bytes(self) -> int | Unknown:
        """Bytes of VMEM of a TPU's core: padded blocks in two buffers, accumulators of products."""
        held = self._held
        return held if isinstance(held, Unknown) else vmem_of(self.model, self.axes, *held)

    @property
    def accumulator_registers(self) -> int | Unknown:
        """Elements of accumulators of a block, each of which fills a 32-bit register."""
        held = self._accumulators
        return held if isinstance(held, Unknown) else held.registers

    @cached_property
    def _accumulators(self) -> Accumulators | Unknown:
        return accumulators_of(self.model, self.loop_phases, self.axes)

    # ------------------------------------------------------------ devices

    @checked
    def warps(self, device: str = "H100") -> int | Unknown | None:
        """Return the number of warps of a block on a GPU; None on a TPU.

        Raises:
            ValueError: the device is not known.
        """
        rules, held = rules_of(device), self._held
        return held if isinstance(held, Unknown) else rules.warps(self.model, self.axes, *held)

    @checked
    def violations(
        self, device: str = "H100", stages: int | None = None, warps: int | None = None
    ) -> tuple[str, ...] | Unknown:
        """Return how the tiling violates rules of a device and of the compiler of its kernels.

        The search refuses few adjacent bytes and accumulators in most registers, too.

        Args:
            device: a GPU such as "H100", or a TPU such as "v5e".
            stages, warps: those of the kernel; by default, `stages` and `warps`.
        Raises:
            ValueError: the device is not known.
        """
        rules, held = rules_of(device), self._held
        if isinstance(held, Unknown):
            return held
        violated = rules.violations(self.model, self.axes, *held, stages, warps)
        return tuple([reason for _, reason in violated])

    # ------------------------------------------------------------ elements

    @property
    def arrays(self) -> tuple[ArrayRef, ...]:
        """The arrays that are read, in the order of the regions of `at`."""
        return self.model.arrays

    @property
    def operands(self) -> tuple[LoopRead, ...]:
        """The box of each read in each step, by phase."""
        sizes = self.model.sizes
        steps = [self.axes[k].step for k in range(len(sizes))]
        reads = [(k, r) for k, p in enumerate(self.loop_phases) for n in p.nests for r in n.reads]
        return tuple([LoopRead(r.array, k, concrete_box(r.needed, steps, sizes)) for k, r in reads])

    @checked
    def at(self, *index: int, step: int | None = None) -> tuple[Region, ...]:
        """Return the elements of each array of `arrays` that a block needs in one step.

        Args:
            index: the index of the block in each dimension.
            step: the number of the step, counted through all phases from 0; by default, all steps.
        Raises:
            IndexError: there is no such block or step.
            ValueError: the number of indices is not the rank.
        """
        block = self._grid.slices(integers("LoopTiling", "index", index))
        ranks = {a: a.array_shape.rank if a.array_shape else 0 for a in self.arrays}
        regions = {a: Region.of_boxes((), rank) for a, rank in ranks.items()}
        for phase, own in self._choose_phases(step):
            for nest in phase.nests:
                for read in nest.reads:
                    point = self._point(phase, read, block, own)
                    part = region_inside(read.needed, point, {})
                    regions[read.array] = reduce(or_, [regions[read.array], part])
        return tuple(regions.values())

    def _choose_phases(self, step: int | None) -> list[tuple[LoopPhase, dict[int, int]]]:
        """Return the phase of a step, and the step of each of its loops; or all phases."""
        if step is None:
            return [(phase, {}) for phase in self.loop_phases]
        rest = step
        for phase, count in zip(self.loop_phases, self._all_steps, strict=True):
            if 0 <= rest < count:
                index: dict[int, int] = {}
                for axis in reversed(phase.all_loops):
                    rest, index[axis] = divmod(rest, self.axes[axis].count)
                return [(phase, index)]
            rest -= count
        raise IndexError(f"step={step}: a block has {sum(self._all_steps)} steps, from 0")

    def _point(
        self, phase: LoopPhase, read: NestRead, block: Sequence[slice], own: dict[int, int]
    ) -> list[slice]:
        point: list[slice] = []
        for d in read.needed.dims:
            axis = dimension_of(d)
            axis = phase.renamed.get(axis, axis)
            if axis in own:
                start = own[axis] * self.axes[axis].step
                point.append(slice(start, min(start + self.axes[axis].step, self.axes[axis].size)))
            else:
                point.append(block[axis] if axis < self.model.rank else slice(0, d.upper + 1))
        return point

    # ------------------------------------------------------------ parts

    @property
    def _grid(self) -> TileGrid:
        return TileGrid(self.shape.dims, self.sizes)

    @property
    def _all_steps(self) -> list[int]:
        return [phase.steps(self.axes) for phase in self.loop_phases]

    @property
    def _own_steps(self) -> list[int]:
        first, *others = self._all_steps
        return [-(-first // self.split_k), *others]

    @cached_property
    def _figures(self) -> BlockFigures | Unknown:
        return self.model.measure(self.axes, self.loop_phases, self.serial, self.split_k)

    @property
    def _held(self) -> tuple[BlockFigures, Accumulators] | Unknown:
        figures, accumulators = self._figures, self._accumulators
        if isinstance(figures, Unknown):
            return figures
        return accumulators if isinstance(accumulators, Unknown) else (figures, accumulators)

    def __str__(self) -> str:
        return methods.loop_tiling_text(self)

    def __repr__(self) -> str:
        return f"<tiling of {self.instruction.name!r} with loops: sizes {self.sizes}>"

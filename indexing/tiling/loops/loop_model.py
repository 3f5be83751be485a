"""`LoopModel`: the nests of an instruction, from which figures of any sizes and steps follow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from hlo.modules.module import Instruction
from hlo.shapes.shape import Shape, leaves
from indexing.dataflow.needed import dependencies_of
from indexing.dataflow.soundness import require_sound
from indexing.maps.arrays import ArrayRef
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.options import Options
from indexing.ops.control import While
from indexing.ops.element import ElementOp
from indexing.ops.scan import Scan
from indexing.tiling.computations.tile_graph import TileGraph, TileLoop, computed_array
from indexing.tiling.loops.axes import Axes, StepAxis
from indexing.tiling.loops.block_figures import BlockFigures, bytes_of, measure
from indexing.tiling.loops.nests import BlockNest, nests_of, used_map
from indexing.tiling.loops.phases import LoopPhase, phases_of
from indexing.tiling.loops.rescaling import can_rescale
from indexing.tiling.loops.set_tables import PlacedRead, SetTable, place_read
from indexing.tiling.loops.step_sets import StepSets
from indexing.tiling.sets.tiled_answers import Target
from indexing.tiling.sizes.tile_sizes import dimension_of
from simplifier.linear import Expr
from simplifier.unknown import Unknown


@dataclass(frozen=True, eq=False)
class LoopModel:
    """The tiles of an output and of all arrays that it is computed from, in nests.

    Attributes:
        instruction: the instruction whose output is tiled.
        array: the output.
        shape: its shape.
        graph: the tiles.
        nests: the nests, each after those that it needs; the epilogue is last.
        loops: the loops, in the order of `tile_analysis`.
        to: "operands" or "parameters": where the tiles of arrays end.
        output_id: the number of the output.
    """

    instruction: Instruction
    array: ArrayRef
    shape: Shape
    graph: TileGraph
    nests: tuple[BlockNest, ...]
    loops: tuple[TileLoop, ...]
    to: Target
    output_id: int
    _tables: dict[ArrayRef, SetTable] = field(default_factory=dict)
    _online: dict[tuple[BlockNest, BlockNest], bool] = field(default_factory=dict)

    @property
    def rank(self) -> int:
        """The number of parallel dimensions; loops are numbered from it."""
        return self.shape.rank

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The size of each axis: of the parallel dimensions, then of the loops."""
        return (*self.shape.dims, *[loop.variable.upper + 1 for loop in self.loops])

    def axes(self, steps: Sequence[int]) -> Axes:
        """Return the axes for given tile sizes and steps."""
        pairs = zip(self.sizes, steps, strict=True)
        return {k: StepAxis(n, min(step, n)) for k, (n, step) in enumerate(pairs)}

    @cached_property
    def whole_axes(self) -> Axes:
        """The axes of one tile and one step."""
        return self.axes(self.sizes)

    @cached_property
    def whole_dimensions(self) -> Mapping[int, str]:
        """The axes that no block cuts, each with the reason.

        They are dimensions whose elements an instruction computes together, such as those that it
        sorts, or those of a recurrence: a block with a part of them would have to compute the
        others, too.
        """
        reasons: dict[int, str] = {}
        for node in self.graph.nodes():
            instruction = node.array.instruction
            if node.map is None or not node.operands or not _computes_together(instruction):
                continue
            reads = [operand.map for _, operand in node.operands if operand.map is not None]
            for place, result in enumerate(node.map.results):
                if any(_keeps(read, result) for read in reads):
                    continue
                for variable in set(result.variables()).intersection(node.map.dims):
                    reason = f"`{instruction.name}` computes dimension {place} as a whole"
                    reasons.setdefault(dimension_of(variable), reason)
        return reasons

    def cut_dimension(self, axes: Axes) -> str:
        """Return the reason why a block may not cut a dimension as it does; empty if it may."""
        for axis, reason in sorted(self.whole_dimensions.items()):
            if axes[axis].count > 1:
                own = axes[axis]
                return f"{reason}: a tile has {own.step} of {own.size} indices; write {own.size}"
        return ""

    @cached_property
    def arrays(self) -> tuple[ArrayRef, ...]:
        """The arrays that are read, in the order of their instructions."""
        reads = {read.array: None for nest in self.nests for read in nest.reads}
        return tuple(sorted(reads, key=lambda array: (array.instruction.index, array.path)))

    @property
    def tables(self) -> Mapping[ArrayRef, SetTable]:
        """The sets of each array, memoised."""
        for array in self.arrays:
            self.table(array)
        return self._tables

    def table(self, array: ArrayRef) -> SetTable:
        """Return the sets of an array."""
        if array not in self._tables:
            shape = array.array_shape
            assert shape is not None
            self._tables[array] = SetTable(shape.dims)
        return self._tables[array]

    def can_rescale(self, statistic: BlockNest, user: BlockNest) -> bool:
        """Return True if `user` may run in step with `statistic`, whose result it needs."""
        key = statistic, user
        if key not in self._online:
            self._online[key] = can_rescale(self.graph, statistic, user)
        return self._online[key]

    def phases(
        self, axes: Axes, serial: frozenset[int] = frozenset(), online: bool = True
    ) -> tuple[LoopPhase, ...]:
        """Return the phases of a block.

        Args:
            axes: the axes by number.
            serial: parallel axes that a block walks serially.
            online: put a nest into the phase of a statistic by which it can be rescaled.
        """
        law = self.can_rescale if online else lambda _, __: False
        return phases_of(self.nests, axes, serial, law)

    def measure(
        self,
        axes: Axes,
        phases: Sequence[LoopPhase],
        serial: frozenset[int] = frozenset(),
        splits: int = 1,
    ) -> BlockFigures | Unknown:
        """Return the figures of all blocks."""
        blocks = frozenset(range(self.rank)) - serial
        return measure(phases, axes, blocks, self.tables, splits)

    @cached_property
    def touched(self) -> int | Unknown:
        """The bytes of the distinct elements that are read."""
        axes = {k: StepAxis(max(1, n), max(1, n)) for k, n in enumerate(self.sizes)}
        total = 0
        for array in self.arrays:
            sets = self.table(array).union(self.reads_of(array), axes)
            if isinstance(sets, Unknown):
                return sets
            total += bytes_of(array, int(sets.count().values.sum()))
        return total

    def has_disjoint_tiles(self, axes: Axes, phases: Sequence[LoopPhase]) -> bool:
        """Return True if the tiles of each array in a phase have no element in common.

        Then a tile has the elements of the one before, or none of them.
        """
        for each in [each for phase in phases for each in phase.arrays]:
            sets = self.table(each.array).union(each.reads, axes)
            whole = self.table(each.array).union(each.reads, self.whole_axes)
            if isinstance(sets, Unknown) or isinstance(whole, Unknown):
                return False
            if sets.loaded(()) != whole.loaded(()):
                return False
        return True

    @cached_property
    def distinct_reads(self) -> tuple[tuple[ArrayRef, tuple[PlacedRead, ...]], ...]:
        """All reads by array."""
        return tuple([(array, self.reads_of(array)) for array in self.arrays])

    def reads_of(self, array: ArrayRef) -> tuple[PlacedRead, ...]:
        """Return all reads of an array."""
        reads = [r.read for nest in self.nests for r in nest.reads if r.array == array]
        return tuple(dict.fromkeys([place_read(read, {}) for read in reads]))

    def sets(self, array: ArrayRef, to_array: IndexingMap, axes: Axes) -> StepSets | Unknown:
        """Return the elements of a computed array in each tile."""
        return self.table(array).union([place_read(used_map(to_array), {})], axes)


def _computes_together(instruction: Instruction) -> bool:
    """Return True if elements along dimensions that an instruction does not keep need each other.

    So do those of a recurrence, which carries a value from step to step.
    """
    op = instruction.op
    return isinstance(op, Scan | While) or (isinstance(op, ElementOp) and op.computes_slices)


def _keeps(read: IndexingMap, result: Expr) -> bool:
    """Return True if a read has one index for each index of a result, without constraints."""
    constrained = {v for c in read.constraints for v in c.expr.variables()}
    return result in read.results and constrained.isdisjoint(result.variables())


@dataclass(frozen=True, slots=True, eq=False)
class _Inside:
    """True for the arrays that an instruction computes; called by `TileGraph`, and pickled."""

    instruction: Instruction
    to: Target

    def __call__(self, array: ArrayRef) -> bool:
        is_own = bool(array.calls) or array.instruction is self.instruction
        return self.to == "parameters" or is_own


def loop_model(
    instruction: Instruction, to: Target = "operands", output_id: int = 0, masks: bool = True
) -> LoopModel | Unknown:
    """Return the nests of an output of an instruction.

    Args:
        instruction: the instruction, whose computation is entered if it is a fusion or call.
        to: "operands", or "parameters" to enter all instructions that it depends on.
        output_id: the number of the output.
        masks: leave out elements that a mask makes unneeded.
    Raises:
        HloError: an instruction is invalid.
        IndexError: `output_id` is out of range.
    """
    require_sound(dependencies_of([instruction]) if to == "parameters" else [instruction])
    outputs = list(leaves(instruction.shape))
    if not 0 <= output_id < len(outputs):
        raise IndexError(f"output_id={output_id}: `{instruction.name}` has {len(outputs)} outputs")

    inside = _Inside(instruction, to)
    array = computed_array(ArrayRef(instruction, outputs[output_id][0]), inside)
    shape = array.array_shape
    if shape is None or any(n < 1 for n in shape.dims):
        reason = f"`{instruction.name}` is {instruction.shape}: it has no elements to tile"
        return Unknown(reason, instruction)
    identity = IndexingMap.identity(shape)
    options = Options(masks=masks, exact=True)
    graph = TileGraph([(array, identity)], shape.rank, inside, options=options)
    nests = nests_of(graph)
    if isinstance(nests, Unknown):
        return nests
    loops = tuple(graph.loops)
    return LoopModel(instruction, array, shape, graph, nests, loops, to, output_id)

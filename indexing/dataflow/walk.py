"""The walk over the arrays of a program that composes maps along its edges.

The walk visits each instruction once, backward from an output or forward to it.  Each array carries
the set of all maps to it (`indexing.maps.map_set`); paths are never enumerated.  A called
computation is summarised once for each leaf of its result, and its summary is used like the maps of
an op.  `Edges` provides the edges of each instruction.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from hlo.modules.module import Computation, Instruction, Module
from hlo.shapes.shape import leaves
from indexing.dataflow.called import Callee, to_summarise
from indexing.dataflow.compositions import Compositions, PairBudget
from indexing.dataflow.edges import Edges
from indexing.dataflow.loops.iteration import ENDLESS, Iteration
from indexing.dataflow.needed import dependencies_of, dependent_on_parameters
from indexing.dataflow.soundness import require_sound
from indexing.dataflow.summaries import memoised_summary, shared_summary
from indexing.dataflow.users_first import UsersFirst
from indexing.maps.arrays import ArrayRef, Path
from indexing.maps.converse import converse
from indexing.maps.map_set import MapSet
from indexing.ops.access_edge import AccessEdge, why_unbounded
from indexing.ops.structured_ops import MapsByLeaf

if TYPE_CHECKING:
    from indexing.dataflow.loops.loop_reads import LoopReads


@dataclass(frozen=True, slots=True)
class Walk:
    """A walk along `edges`.  Equal walks share the memoised summaries of computations."""

    edges: Edges

    @property
    def without_assumptions(self) -> Walk:
        """The walk that assumes nothing about values."""
        return Walk(self.edges.without_assumptions)

    # ------------------------------------------------------------ one instruction

    def backward_edges(self, array: ArrayRef, *, fold: bool = False) -> Iterable[AccessEdge]:
        """Return the edges from an array back to the operands of its instruction.

        Args:
            fold: replace runtime variables by their value if the program determines it.
        """
        instruction = array.instruction
        if not instruction.operands or (array.path == () and not leaves(instruction.shape)):
            return ()  # the empty tuple has no outputs
        called = self.edges.in_call(instruction) if fold else self.edges
        walk = self._along(called, instruction, backward=True)
        return self.edges.backward_edges(array, walk, fold=fold)

    def forward_edges(
        self,
        instruction: Instruction,
        operands: Collection[int],
        outputs: Collection[Path],
        *,
        fold: bool = False,
    ) -> Iterable[AccessEdge]:
        """Return the edges from `operands` to the leaves at `outputs` of the result."""
        return self.edges.forward_edges(instruction, operands, outputs, self, fold=fold)

    # ------------------------------------------------------------ one computation

    def backward(
        self,
        start: ArrayRef,
        within: Collection[Instruction] | None = None,
        toward: Collection[Instruction] | None = None,
        shared: Compositions | None = None,
    ) -> dict[ArrayRef, MapSet]:
        """Return the maps from `start` to every array that it depends on.

        Args:
            within: follow only the edges of these instructions; by default, of all instructions of
                the computation.
            toward: follow only edges to these instructions, and forget the maps to arrays on the
                way; by default, follow all edges.
            shared: the compositions of several walks.
        """
        compositions = shared or Compositions(self.edges.options, edges_first=False)
        budget = PairBudget()
        map_sets = {start: compositions.shared_set(self._start(start))}
        waiting = UsersFirst(start, within)
        for instruction, arrays in waiting:
            if not instruction.operands:
                continue
            for array in arrays:
                here = map_sets[array] if toward is None else map_sets.pop(array)
                is_over = budget.is_exceeded
                here = compositions.hull(here) if is_over else compositions.coalesced(here)
                lost = is_over or here.lost_exactness
                edges = self.edges.inexact if lost else self.edges
                walk = self._along(edges, instruction, backward=True)
                find, key = partial(walk.backward_edges, array, fold=not is_over), (lost, is_over)
                shaped = edges.shaped_op(instruction), edges.follow_from_shapes
                steps = compositions.steps(array, key, find, toward, self.edges.sizes, shaped)
                for to, edge, along in steps:
                    budget.add(edge, here)
                    total = map_sets.get(to)
                    if total is None:
                        map_sets[to] = along.first(here)
                        if to.instruction.operands:
                            waiting.add(to)
                    else:
                        map_sets[to] = along.add_compositions(total, here)
        return compositions.within(budget, map_sets)

    def to_parameters(
        self, start: ArrayRef, shared: Compositions | None = None
    ) -> dict[ArrayRef, MapSet]:
        """Return the maps from `start` to the parameters of its computation.

        If its instruction has no operands, the only map is the identity.
        """
        toward = dependent_on_parameters(start.instruction.computation)
        return self.backward(start, toward=toward, shared=shared)

    def to_only_parameter(self, start: ArrayRef, shared: Compositions) -> dict[ArrayRef, MapSet]:
        """Return the maps of `to_parameters`, composed as by `sweep` if there is one parameter.

        In both ways, each array has one set of maps.  The sets of `sweep` start at smaller arrays
        in a tree of updates, so a `may` map of the parameter absorbs the others early.
        """
        parameters = start.instruction.computation.parameters
        if sum(len(leaves(parameter.shape)) for parameter in parameters) != 1:
            return self.to_parameters(start, shared)
        compositions = Compositions(self.edges.options, edges_first=True)
        computed: dict[ArrayRef, dict[ArrayRef, MapSet]] = {}
        for array in reversed(self._dependencies(start)):
            computed[array] = self._prepend_edges(array, computed, compositions)
        return computed[start]

    def _dependencies(self, start: ArrayRef) -> list[ArrayRef]:
        """Return the arrays on the way from `start` to parameters, users before operands."""
        toward = dependent_on_parameters(start.instruction.computation)
        reached = {start: None}
        waiting = UsersFirst(start, None)
        order: list[ArrayRef] = []
        for instruction, arrays in waiting:
            order += arrays
            for array in arrays:
                for edge in self.backward_edges(array, fold=True):
                    to = ArrayRef(instruction.operands[edge.operand], edge.operand_path)
                    if to not in reached and to.instruction in toward:
                        reached[to] = None
                        waiting.add(to)
        return order

    def forward(
        self, end: ArrayRef, within: Collection[Instruction] | None = None
    ) -> dict[ArrayRef, MapSet]:
        """Return the maps to `end` from every array that it depends on.

        The walk starts at `end`, so that one walk covers all source arrays.

        Args:
            within: follow only the edges between these instructions; by default, between all
                instructions of the computation.
        """
        compositions = Compositions(self.edges.options, edges_first=True)
        budget = PairBudget()
        map_sets = {end: compositions.shared_set(self._start(end))}
        waiting = UsersFirst(end, within)
        for instruction, arrays in waiting:
            is_over = budget.is_exceeded
            follow = compositions.hull if is_over else compositions.coalesced
            map_sets |= {array: follow(map_sets[array]) for array in arrays}
            outputs = sorted([array.path for array in arrays])
            operands: Collection[int] = range(len(instruction.operands))
            if within is not None:
                operands = [k for k in operands if instruction.operands[k] in within]
            lost = is_over or all(map_sets[array].lost_exactness for array in arrays)
            edges = self.edges.inexact if lost else self.edges
            walk = self._along(edges, instruction, backward=False)
            for edge in walk.forward_edges(instruction, operands, outputs, fold=not is_over):
                later = map_sets[ArrayRef(instruction, edge.output_path)]
                start = ArrayRef(instruction.operands[edge.operand], edge.operand_path)
                budget.add(edge, later)
                along = compositions.along(edge, self.edges.dims(start))
                total = map_sets.get(start)
                if total is None:
                    map_sets[start] = along.first(later)
                    waiting.add(start)
                else:
                    map_sets[start] = along.add_compositions(total, later)
        return compositions.within(budget, map_sets)

    def sweep(self, computation: Computation) -> Iterator[tuple[ArrayRef, dict[ArrayRef, MapSet]]]:
        """Yield every array of a computation, in text order, with the maps to its parameters.

        Each instruction composes its edges with the maps of its operands.  The time is linear in
        the size of the answers; maps are dropped after their last use.
        """
        last_use = {o: i.index for i in computation.instructions for o in i.operands}
        compositions = Compositions(self.edges.options, edges_first=True)
        computed: dict[ArrayRef, dict[ArrayRef, MapSet]] = {}
        for instruction in computation.instructions:
            for path, _ in leaves(instruction.shape):
                array = ArrayRef(instruction, path)
                computed[array] = self._prepend_edges(array, computed, compositions)
                yield array, computed[array]
            for operand in (instruction, *instruction.operands):
                if last_use.get(operand, operand.index) == instruction.index:
                    for path, _ in leaves(operand.shape):
                        computed.pop(ArrayRef(operand, path), None)

    def _prepend_edges(
        self,
        array: ArrayRef,
        computed: Mapping[ArrayRef, Mapping[ArrayRef, MapSet]],
        compositions: Compositions,
    ) -> dict[ArrayRef, MapSet]:
        """Return the maps from an array to each parameter, given those of the operands."""
        instruction = array.instruction
        if instruction.opcode == "parameter":
            return {array: compositions.shared_set(self._start(array))}
        reached: dict[ArrayRef, MapSet] = {}
        budget = PairBudget()
        if self._prepend(self, array, computed, reached, compositions, budget, lost=False):
            walk = self._along(self.edges.inexact, instruction, backward=True)
            self._prepend(walk, array, computed, reached, compositions, budget, lost=True)
        return compositions.within(budget, reached)

    def _prepend(
        self,
        walk: Walk,
        array: ArrayRef,
        computed: Mapping[ArrayRef, Mapping[ArrayRef, MapSet]],
        reached: dict[ArrayRef, MapSet],
        compositions: Compositions,
        budget: PairBudget,
        *,
        lost: bool,
    ) -> bool:
        """Compose the edges of `walk` with the map sets whose `lost_exactness` is `lost`.

        Returns:
            True if there are other map sets.
        """
        are_others = False
        dims, operands = self.edges.dims(array), array.instruction.operands
        for edge in walk.backward_edges(array, fold=True):
            operand = ArrayRef(operands[edge.operand], edge.operand_path)
            along = compositions.along(edge, dims)
            for parameter, later in computed.get(operand, {}).items():
                if (later.is_over_budget and later.lost_exactness) != lost:
                    are_others = True
                    continue
                if budget.is_exceeded:
                    later = compositions.hull(later)
                budget.add(edge, later)
                total = reached.get(parameter)
                reached[parameter] = (
                    along.first(later) if total is None else along.add_compositions(total, later)
                )
        return are_others

    def _along(self, edges: Edges, instruction: Instruction, *, backward: bool) -> Walk:
        """Return the walk along other edges, prepared for one instruction."""
        if edges is self.edges:
            return self
        walk = Walk(edges)
        if instruction.called_computations:
            walk.prepare([instruction], backward=backward)
        return walk

    def _start(self, array: ArrayRef) -> MapSet:
        """Return the identity map of an array, as a set."""
        identity = self.edges.empty_map_set(array, array)
        reason = why_unbounded(array)
        identity.extend(self.edges.identity(array) if reason is None else (), reason)
        return identity

    # ------------------------------------------------------------ called computations

    def read_summary(self, computation: Computation, path: Path) -> MapsByLeaf:
        """Return the maps from the leaf at `path` of the root to the leaves of parameters."""
        return self._summary(computation, path, backward=True)

    def write_summary(self, computation: Computation, path: Path) -> MapsByLeaf:
        """Return the maps from the leaves of parameters to the leaf at `path` of the root."""
        return self._summary(computation, path, backward=False)

    def _summary(self, computation: Computation, path: Path, *, backward: bool) -> MapsByLeaf:
        iteration = self.edges.iteration
        if iteration is not None and computation is not iteration.body:
            return Walk(self.edges.inside(None))._summary(computation, path, backward=backward)

        def summarise() -> MapsByLeaf:
            root = ArrayRef(computation.root, path)
            compositions = self.compositions(computation.module)
            reached = self.to_parameters(root, compositions) if backward else self.forward(root)
            return shared_summary(computation, reached)

        question, is_shared = (self, path, backward), self.edges.share_summaries
        return memoised_summary(computation, question, summarise, is_shared=is_shared)

    def compositions(self, module: Module) -> Compositions:
        """Return the compositions of all summaries: called computations are alike."""
        compositions = Compositions(self.edges.options, edges_first=False)
        if not compositions.is_sharing:
            return compositions
        return module.memoised((Walk.compositions, self), lambda: compositions)

    # ------------------------------------------------------------ loops

    def loop_maps(self, loop: Instruction, path: Path, *, backward: bool) -> dict[Path, MapSet]:
        """Return the maps between a leaf of the result of a loop and the leaves of its operand."""
        if self.edges.iteration is not None:
            return Walk(self.edges.inside(None)).loop_maps(loop, path, backward=backward)

        def compute_maps() -> dict[Path, MapSet]:
            if not backward:
                return self._loop_writes(loop, path)
            return self._closed_form(loop).reads(path)

        return loop.module.memoised((self, loop, path, backward), compute_maps)

    def _loop_writes(self, loop: Instruction, path: Path) -> dict[Path, MapSet]:
        end, (operand,) = ArrayRef(loop, path), loop.operands
        writes: dict[Path, MapSet] = {}
        for leaf, maps in self.loop_maps(loop, path, backward=True).items():
            start = ArrayRef(operand, leaf)
            spaces = self.edges.spaces(start, end)
            assert spaces.start is not None
            writes[leaf] = MapSet((), spaces, self.edges.options)
            options = self.edges.options
            converses = {m: options.simplify_map(converse(m, spaces.start)) for m in maps.effective}
            writes[leaf].extend(
                converses, maps.unknown, maps.reasons, maps.control, converses.__getitem__
            )
        return writes

    def _closed_form(self, loop: Instruction) -> LoopReads:
        from indexing.dataflow.loops.loop_reads import LoopReads  # only for loops

        def make_reads() -> LoopReads:
            iteration = _iteration(loop)
            body, condition = iteration.body, iteration.condition
            edges = self.edges.without_runtime_masks

            def maps_without_masks(computation: Computation, path: Path) -> MapsByLeaf:
                plain = Walk(edges.inside(None))
                plain.prepare(dependencies_of([computation.root]), backward=True)
                walk = plain if computation is condition else Walk(edges.inside(iteration))
                return walk.read_summary(computation, path)

            if iteration.most == ENDLESS:
                return LoopReads(iteration, self.edges, maps_without_masks, maps_without_masks)
            Walk(self.edges.inside(None)).prepare(dependencies_of([body.root]), backward=True)
            masked = Walk(self.edges.inside(iteration)).read_summary
            return LoopReads(iteration, self.edges, masked, maps_without_masks)

        return loop.module.memoised((self, loop), make_reads)

    def prepare(self, instructions: Iterable[Instruction], *, backward: bool) -> None:
        """Check `instructions` and summarise the computations that they call, innermost first.

        Every walk is preceded by this call for the instructions whose edges it takes.
        Callees precede callers in `Module.computations`, so deep nesting needs no recursion.
        Bodies of loops are summarised in one iteration, with exact maps, for all walks.
        """
        instructions = list(instructions)
        require_sound(instructions)
        instructions = [each for each in instructions if each.called_computations]
        if not instructions:
            return
        edges, memo = self.edges, instructions[0].module.memo
        prepared: set[Callee] = memo.setdefault((Walk.prepare, self, backward), set())
        in_loops = edges.iteration is not None or edges == edges.inside(None)
        called = to_summarise(instructions, prepared, in_loops=in_loops)
        if edges.base is not edges:
            Walk(edges.base).prepare(instructions, backward=backward)
        for computation, loop in called:
            if edges.crosses(computation):
                directions = edges.directions(backward) if loop is None else (True,)
                walk = self if loop is None else Walk(edges.inside(_iteration(loop)))
                for path, _ in leaves(computation.root.shape):
                    for direction in directions:
                        walk._summary(computation, path, backward=direction)
        prepared.update(called)


def _iteration(loop: Instruction) -> Iteration:
    return loop.module.memoised((Iteration, loop), lambda: Iteration(loop))

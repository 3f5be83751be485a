"""The edges of an instruction: maps between the arrays that it reads and those that it writes.

A walk through a program (`indexing.dataflow.walk`) takes its edges from an `Edges` object:
`LocalEdges` within one device, `indexing.dataflow.device_edges.DeviceEdges` across devices.
"""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from hlo.memo import Memo
from hlo.modules.module import Computation, Instruction
from hlo.shapes.shape import leaf_number
from indexing.dataflow.arguments import arguments_decide
from indexing.dataflow.loops.iteration import AnyIteration, Iteration, in_call
from indexing.dataflow.op_edges import edge_of, graded_edge, routed_edges, unknown_edges
from indexing.dataflow.refinement import (
    has_exact_pieces,
    prefer_exact,
    refine_edges,
    unfolded_edges,
)
from indexing.dataflow.shaped_ops import ShapedOp, depends_on_values, shaped_op, sharing_key
from indexing.dataflow.summaries import Summarising, summaries_of
from indexing.maps.answers import Direction
from indexing.maps.arrays import ArrayRef, Path
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.map_set import MapSet
from indexing.maps.options import Options
from indexing.maps.space_pairs import SpacePair
from indexing.ops.access_edge import AccessEdge, bound_edge, dims, identity
from indexing.ops.base import MappedOp, RoutingOp
from indexing.ops.needed_operands import NeededOperands, reads_several
from indexing.ops.structured_ops import StructuredOp, Summaries
from simplifier.atoms import Variable


class Edges(metaclass=ABCMeta):
    """The edges of instructions and the index spaces of their maps.

    Instructions must be sound (`indexing.dataflow.soundness`).  Equal `Edges` have equal answers:
    they are part of the key of memoised summaries.
    """

    __slots__ = ()
    options: Options
    iteration: AnyIteration | None

    @abstractmethod
    def backward_edges(
        self, array: ArrayRef, walk: Summarising, *, fold: bool
    ) -> Iterable[AccessEdge]:
        """Return the edges from an array back to the operands of its instruction.

        Args:
            walk: summarises called computations and loops.
            fold: replace runtime variables by their value if the program determines it.
        """

    @abstractmethod
    def forward_edges(
        self,
        instruction: Instruction,
        operands: Collection[int],
        outputs: Collection[Path],
        walk: Summarising,
        *,
        fold: bool,
    ) -> Iterable[AccessEdge]:
        """Return the edges from `operands` to the leaves at `outputs` of the result.

        Args:
            walk: summarises called computations and loops.
            fold: see `backward_edges`.
        """

    @abstractmethod
    def identity(self, array: ArrayRef) -> tuple[IndexingMap, ...]:
        """Return the identity map of an array; no map for a leaf such as a token."""

    @abstractmethod
    def dims(self, array: ArrayRef) -> tuple[Variable, ...] | None:
        """Return the dimensions of maps from an array; None for a leaf such as a token."""

    @abstractmethod
    def sizes(self, array: ArrayRef) -> tuple[int, ...] | None:
        """Return the sizes of the space that maps to an array lead to; None for a token."""

    def spaces(self, start: ArrayRef, end: ArrayRef) -> SpacePair:
        """Return the index spaces of maps from one array to another."""
        return SpacePair(self.dims(start), self.sizes(end))

    def empty_map_set(self, start: ArrayRef, end: ArrayRef) -> MapSet:
        """Return an empty set for maps from one array to another."""
        return MapSet((), self.spaces(start, end), self.options)

    @property
    @abstractmethod
    def inexact(self) -> Edges:
        """These edges without the option ``exact``; the same object if it is not set."""

    @abstractmethod
    def inside(self, iteration: Iteration | None) -> Edges:
        """Return the edges with exact maps in one iteration of a loop; for None, in any."""

    def in_call(self, call: Instruction) -> Edges:
        """Return the edges with what the arguments of a call decide; the same object if nothing."""
        return self

    @abstractmethod
    def with_options(self, options: Options) -> Edges:
        """Return these edges with other options."""

    @property
    def without_assumptions(self) -> Edges:
        """These edges without the option ``assume``."""
        return self.with_options(replace(self.options, assume=()))

    @property
    def without_runtime_masks(self) -> Edges:
        """These edges without the option ``runtime_masks``."""
        return self.with_options(replace(self.options, runtime_masks=False))

    @property
    def base(self) -> Edges:
        """The edges that these are derived from; their summaries are prepared as well."""
        return self

    @property
    def share_summaries(self) -> bool:
        """True if computations of one structure have equal edges: no calls or proofs count."""
        return False

    def crosses(self, computation: Computation) -> bool:
        """Return True if the edges of a computation may differ from those of `base`."""
        return True

    def directions(self, backward: bool) -> tuple[bool, ...]:
        """Return the directions of the summaries that a walk in one direction needs."""
        return (backward,)

    def sharing_key(
        self, instruction: Instruction, direction: Direction, output: int | Path
    ) -> Hashable | None:
        """Return the key of edges and answers that may follow from the op and the shapes alone.

        They have no runtime variables, and no reasons that refer to the instruction.

        Args:
            output: the output or operand that the maps start from: its number, or its path.
        """
        return None

    def shaped_op(self, instruction: Instruction) -> ShapedOp | None:
        """Return what backward edges may follow from, without options that prove or trace maps."""
        return None

    def follow_from_shapes(self, array: ArrayRef) -> bool:
        """Return True if the backward edges of an array, found before, follow from `shaped_op`."""
        return False


@dataclass(frozen=True, slots=True)
class LocalEdges(Edges):
    """Edges within one device: the maps of ops, with the sources of their runtime variables.

    Attributes:
        every_operand: also relate the operands that a called computation ignores, as the element
            rules of ops expect.
        iteration: what is known inside of the body of a loop, else None.
        calls: the number of calls around a computation whose arguments are known.
    """

    options: Options
    every_operand: bool = False
    iteration: AnyIteration | None = None
    calls: int = 0

    def directions(self, backward: bool) -> tuple[bool, ...]:
        return () if self.every_operand else (backward,)

    @property
    def share_summaries(self) -> bool:
        return self.iteration is None and not self.calls and self.options.sharing_key is not None

    @property
    def inexact(self) -> LocalEdges:
        if not self.options.exact:
            return self
        options = replace(self.options, exact=False, runtime_masks=False)
        return LocalEdges(options, iteration=self.iteration)

    def with_options(self, options: Options) -> LocalEdges:
        return replace(self, options=options)

    def inside(self, iteration: Iteration | None) -> LocalEdges:
        calls = self.calls if iteration is None else 0
        return LocalEdges(self.options.inside_loops, iteration=iteration, calls=calls)

    def in_call(self, call: Instruction) -> LocalEdges:
        if self.every_operand:
            return self
        iteration = in_call(self.iteration, call)
        calls = self.calls + arguments_decide(call, self.calls)
        if iteration is self.iteration and calls == self.calls:
            return self
        return replace(self, iteration=iteration, calls=calls)

    def sharing_key(
        self, instruction: Instruction, direction: Direction, output: int | Path
    ) -> Hashable | None:
        key = sharing_key(instruction, direction, output, self.options)
        return None if key is None else (key, self.every_operand)

    def shaped_op(self, instruction: Instruction) -> ShapedOp | None:
        shaped = None if self.options.assume else shaped_op(instruction)
        return None if shaped is None or shaped.depends_on_values else shaped

    def follow_from_shapes(self, array: ArrayRef) -> bool:
        return self.sharing_key(array.instruction, "output-to-input", array.path) in _SHARED

    def backward_edges(
        self, array: ArrayRef, walk: Summarising, *, fold: bool
    ) -> Iterable[AccessEdge]:
        key = self.sharing_key(array.instruction, "output-to-input", array.path)
        edges = None if key is None else _SHARED.get(key)
        if edges is None:
            edges = tuple(self._backward_edges(array, self._summaries(walk, backward=True)))
            if key is not None and all(edge.is_of_shapes for edge in edges):
                _SHARED.keep(key, edges)
        elif not self.options.assume and not depends_on_values(array.instruction):
            return edges
        return self._refine(
            array.instruction,
            edges,
            lambda exact: exact.backward_edges(array, walk, fold=fold),
            fold=fold,
            backward=True,
        )

    def _summaries(self, walk: Summarising, *, backward: bool) -> Summaries:
        """Return the summaries for the edges of an op that `_refine` refines."""
        is_inside = self.iteration is not None and self.options.follows_masks
        restricts = not self.every_operand and (is_inside or self._follows_runtime_masks)
        return summaries_of(walk, backward=backward, restricts_branches=restricts)

    @property
    def _follows_runtime_masks(self) -> bool:
        return self.options.follows_runtime_masks and self.iteration is None

    def _backward_edges(self, array: ArrayRef, summaries: Summaries) -> Iterable[AccessEdge]:
        instruction, path, _ = array
        op = instruction.op
        if isinstance(op, RoutingOp):
            operand, operand_path = op.route(path)
            edge = AccessEdge(operand, operand_path, path, identity(array))
            return (bound_edge(instruction, edge),)
        if isinstance(op, StructuredOp):
            return (bound_edge(instruction, e) for e in op.edges(instruction, path, summaries))
        if not isinstance(op, MappedOp):
            return unknown_edges(instruction, range(len(instruction.operands)), [path])
        shapes = tuple([operand.shape for operand in instruction.operands])
        number = leaf_number(instruction.shape, path)
        options = self.options.exact, self.every_operand
        operand_maps = op.reads(instruction.shape, shapes, number, *options)
        needed = self._needed_operands(op, instruction, number, summaries)
        if needed is None:
            return [edge_of(instruction, k, path, maps) for k, maps in enumerate(operand_maps)]
        edges = [(k, edge_of(instruction, k, path, operand_maps[k])) for k in sorted(needed.grades)]
        return [
            graded_edge(edge, instruction, needed, reads_several=reads_several(operand_maps[k]))
            for k, edge in edges
        ]

    def _refine(
        self,
        instruction: Instruction,
        edges: Iterable[AccessEdge],
        exact_edges: Callable[[LocalEdges], Iterable[AccessEdge]],
        *,
        fold: bool,
        backward: bool,
    ) -> Iterable[AccessEdge]:
        """Return edges with what the program determines if `fold`, and few exact pieces."""
        if self.every_operand:
            return edges
        options = self.options
        if fold:
            around, calls = self.iteration, self.calls
            refined = refine_edges(
                instruction, edges, around, backward=backward, options=options, calls=calls
            )
        else:
            of_runtime = self._follows_runtime_masks
            around = self.iteration
            refined = unfolded_edges(instruction, edges, around, of_runtime, backward=backward)
        if options.exact or not options.runtime_masks or not has_exact_pieces(instruction):
            return refined
        exact = replace(self, options=replace(self.options, exact=True))
        return prefer_exact(instruction, refined, exact_edges(exact), options, self.calls)

    def _needed_operands(
        self, op: MappedOp, instruction: Instruction, output_id: int, summaries: Summaries
    ) -> NeededOperands | None:
        """Return the operands that an output needs; None for all operands that its maps read."""
        if self.every_operand or not instruction.called_computations:
            return None
        return op.needed_operands(instruction, output_id, summaries.parameters_read)

    def forward_edges(
        self,
        instruction: Instruction,
        operands: Collection[int],
        outputs: Collection[Path],
        walk: Summarising,
        *,
        fold: bool,
    ) -> Iterable[AccessEdge]:
        summaries = self._summaries(walk, backward=False)
        edges = self._forward_edges(instruction, operands, outputs, summaries)
        from_, to = set(operands), set(outputs)
        kept = [edge for edge in edges if edge.operand in from_ and edge.output_path in to]
        kept.sort(key=lambda edge: (edge.operand, edge.operand_path))
        return self._refine(
            instruction,
            kept,
            lambda exact: exact.forward_edges(instruction, operands, outputs, walk, fold=fold),
            fold=fold,
            backward=False,
        )

    def _forward_edges(
        self,
        instruction: Instruction,
        operands: Collection[int],
        outputs: Collection[Path],
        summaries: Summaries,
    ) -> Iterable[AccessEdge]:
        op = instruction.op
        if isinstance(op, RoutingOp):
            return routed_edges(op, instruction, operands, outputs)
        if isinstance(op, StructuredOp):
            edges = (edge for path in outputs for edge in op.edges(instruction, path, summaries))
            return (bound_edge(instruction, edge) for edge in edges)
        if isinstance(op, MappedOp):
            return self._write_edges(op, instruction, operands, outputs, summaries)
        return unknown_edges(instruction, operands, outputs)

    def _write_edges(
        self,
        op: MappedOp,
        instruction: Instruction,
        operands: Collection[int],
        outputs: Collection[Path],
        summaries: Summaries,
    ) -> Iterator[AccessEdge]:
        shapes, exact = tuple([each.shape for each in instruction.operands]), self.options.exact
        numbers = [leaf_number(instruction.shape, output) for output in outputs]
        written = op.writes_to(instruction.shape, shapes, numbers, exact)
        for number, output, operand_maps in zip(numbers, outputs, written, strict=True):
            needed = self._needed_operands(op, instruction, number, summaries)
            if needed is None:
                for operand in operands:
                    yield edge_of(instruction, operand, output, operand_maps[operand])
                continue
            reads = op.reads(instruction.shape, shapes, number, exact) if needed.only_last else ()
            for operand in [k for k in operands if k in needed.grades]:
                several = operand in needed.only_last and reads_several(reads[operand])
                edge = edge_of(instruction, operand, output, operand_maps[operand])
                yield graded_edge(edge, instruction, needed, reads_several=several)

    def identity(self, array: ArrayRef) -> tuple[IndexingMap, ...]:
        return identity(array)

    def dims(self, array: ArrayRef) -> tuple[Variable, ...] | None:
        return dims(array)

    def sizes(self, array: ArrayRef) -> tuple[int, ...] | None:
        shape = array.array_shape
        return None if shape is None else shape.dims


_SHARED: Final = Memo[Hashable, tuple[AccessEdge, ...]](1 << 12)
"""Edges that follow from an op and its shapes; see `Edges.sharing_key`."""

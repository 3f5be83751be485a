"""What one instruction connects: arrays that it reads with arrays that it writes.

A walk through a program (`indexing.dataflow.walk`) takes its `Edges` instruction by instruction:
`LocalEdges` within one device, those of `indexing.dataflow.device_edges` between several.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

from hlo.modules.bind import check_instruction
from hlo.modules.module import Computation, Instruction
from hlo.shapes.shape import Shape, leaves
from hlo.text.source import HloError
from indexing.dataflow.runtime import folded, forwarded_from
from indexing.maps.answers import Unknown
from indexing.maps.arrays import ArrayRef, Path
from indexing.maps.indexing_map import IndexingMap, dims
from indexing.maps.map_set import MapSet, Spaces
from indexing.maps.options import Options
from indexing.ops.access_edge import AccessEdge, identity
from indexing.ops.base import MappedOp, RoutingOp
from indexing.ops.structured_ops import Found, StructuredOp, Summaries
from simplifier.atoms import Variable

Summary = Callable[[Computation, Path], Found]
"""From the leaf at a path of a computation's root the maps to its parameters, or back."""


class Edges(ABC):
    """The edges of instructions, and the index spaces that their maps lead between.

    Edges that are equal have the same answers: they are part of the key under which summaries of
    computations are remembered.
    """

    __slots__ = ()
    options: Options

    @abstractmethod
    def back(self, array: ArrayRef, reads: Summary, *, folds: bool) -> Iterable[AccessEdge]:
        """What an array reads of each operand of its instruction.

        Args:
            reads: summarises called computations, from their results to their parameters.
            folds: replace runtime variables whose value the program determines by that value.

        Raises:
            HloError: the instruction breaks a rule of its op.
        """

    @abstractmethod
    def forward(
        self,
        instruction: Instruction,
        operands: Collection[int],
        outputs: Collection[Path],
        writes: Summary,
        *,
        folds: bool,
    ) -> Iterable[AccessEdge]:
        """Which elements of the leaves at `outputs` need elements of `operands`, leaf by leaf.

        Args:
            writes: summarises called computations, from their parameters to their results.
            folds: see `back`.

        Raises:
            HloError: the instruction breaks a rule of its op.
        """

    @abstractmethod
    def identity(self, array: ArrayRef) -> tuple[IndexingMap, ...]:
        """Each element to itself; no map for what has no elements, such as a token."""

    @abstractmethod
    def ends(self, start: ArrayRef, end: ArrayRef) -> Spaces:
        """The index spaces of maps from one array to another."""

    def maps(self, start: ArrayRef, end: ArrayRef) -> MapSet:
        """A set for maps from one array to another, empty yet."""
        return MapSet((), self.ends(start, end), self.options)

    @property
    def base(self) -> Edges:
        """The edges that these are made from; summaries of those are prepared as well."""
        return self

    def crosses(self, computation: Computation) -> bool:
        """These edges of a computation may differ from those of `base`."""
        return True

    def directions(self, backward: bool) -> tuple[bool, ...]:
        """Which summaries a walk in one direction needs: that of the same direction."""
        return (backward,)


@dataclass(frozen=True, slots=True)
class LocalEdges(Edges):
    """Edges within one device: what ops answer, with runtime variables that name their sources."""

    options: Options

    def back(self, array: ArrayRef, reads: Summary, *, folds: bool) -> Iterable[AccessEdge]:
        edges = self._back(array, reads)
        return map(_folded, edges) if folds else edges

    def _back(self, array: ArrayRef, reads: Summary) -> Iterable[AccessEdge]:
        instruction, path, _ = array
        op = _checked_op(instruction)
        if isinstance(op, RoutingOp):
            operand, operand_path = op.route(path)
            return (AccessEdge(operand, operand_path, path, identity(array)),)
        if isinstance(op, StructuredOp):
            return op.edges(instruction, path, Summaries(reads, True, forwarded_from))
        if not isinstance(op, MappedOp):
            return _unknown_edges(instruction, range(len(instruction.operands)), [path])
        shapes = tuple([operand.shape for operand in instruction.operands])
        number = leaf_number(instruction, path)
        found = op.reads(instruction.shape, shapes, number, self.options.exact)
        return [_edge(instruction, k, path, maps) for k, maps in enumerate(found)]

    def forward(
        self,
        instruction: Instruction,
        operands: Collection[int],
        outputs: Collection[Path],
        writes: Summary,
        *,
        folds: bool,
    ) -> Iterable[AccessEdge]:
        edges = self._forward(instruction, operands, outputs, writes)
        kept = [e for e in edges if e.operand in operands and e.output_path in outputs]
        kept.sort(key=lambda edge: (edge.operand, edge.operand_path))
        return map(_folded, kept) if folds else kept

    def _forward(
        self,
        instruction: Instruction,
        operands: Collection[int],
        outputs: Collection[Path],
        writes: Summary,
    ) -> Iterable[AccessEdge]:
        op = _checked_op(instruction)
        if isinstance(op, RoutingOp):
            return _routed(op, instruction, operands)
        if isinstance(op, StructuredOp):
            summaries = Summaries(writes, False, forwarded_from)
            return (edge for path in outputs for edge in op.edges(instruction, path, summaries))
        if isinstance(op, MappedOp):
            return _written(op, instruction, operands, self.options)
        return _unknown_edges(instruction, operands, outputs)

    def identity(self, array: ArrayRef) -> tuple[IndexingMap, ...]:
        return identity(array)

    def ends(self, start: ArrayRef, end: ArrayRef) -> Spaces:
        return _Arrays(start, end)


_dims = lru_cache(maxsize=1 << 12)(dims)


class _Arrays(NamedTuple):
    """The index spaces of two arrays."""

    source: ArrayRef
    target: ArrayRef

    @property
    def start(self) -> tuple[Variable, ...] | None:
        shape = self.source.array_shape
        return None if shape is None else _dims(shape.dims)

    @property
    def sizes(self) -> tuple[int, ...] | None:
        shape = self.target.array_shape
        return None if shape is None else shape.dims


def _folded(edge: AccessEdge) -> AccessEdge:
    """An edge without the runtime variables whose value the program determines."""
    if not any(found.runtime for found in edge.maps):
        return edge
    return replace(edge, maps=tuple([piece for found in edge.maps for piece in folded(found)]))


def fault_of(instruction: Instruction) -> HloError | None:
    """`hlo.modules.bind.check_instruction`; that nothing is wrong is remembered."""
    sound: set[Instruction] = instruction.module.memo.setdefault(fault_of, set())
    if instruction in sound:
        return None
    error = check_instruction(instruction)
    if error is None and instruction.op is not None:
        sound.add(instruction)
    return error


def _checked_op(instruction: Instruction) -> object:
    error = fault_of(instruction)
    if error is not None:
        raise error
    return instruction.op


def leaf_number(instruction: Instruction, path: Path) -> int:
    """Which output the leaf at `path` of the result is."""
    if not path:
        return 0
    return next(k for k, (at, _) in enumerate(leaves(instruction.shape)) if at == path)


def _routed(
    op: RoutingOp, instruction: Instruction, operands: Iterable[int]
) -> Iterator[AccessEdge]:
    for operand in operands:
        for path, _ in leaves(instruction.operands[operand].shape):
            output = op.route_back(operand, path)
            if output is not None:
                same = identity(ArrayRef(instruction, output))
                yield AccessEdge(operand, path, output, same)


def _written(
    op: MappedOp, instruction: Instruction, operands: Iterable[int], options: Options
) -> Iterator[AccessEdge]:
    shapes = tuple([operand.shape for operand in instruction.operands])
    outputs = [path for path, _ in leaves(instruction.shape)]
    for operand in operands:
        written = op.writes(instruction.shape, shapes, operand, options.exact)
        for output, maps in zip(outputs, written, strict=True):
            yield _edge(instruction, operand, output, maps)


def _edge(
    instruction: Instruction, operand: int, output: Path, maps: tuple[IndexingMap, ...] | Unknown
) -> AccessEdge:
    if isinstance(maps, Unknown):
        reason = f"{instruction.opcode} `{instruction.name}`: {maps.reason}"
        return AccessEdge(operand, (), output, (), Unknown(reason, instruction))
    return AccessEdge(operand, (), output, tuple([_placed(m, instruction) for m in maps]))


def _placed(found: IndexingMap, instruction: Instruction) -> IndexingMap:
    """A map of an op as that of an instruction: runtime variables name their source."""
    if not found.runtime:
        return found
    operands = instruction.operands
    runtime = [
        replace(rt, array=ArrayRef(operands[rt.source])) if isinstance(rt.source, int) else rt
        for rt in found.runtime
    ]
    return replace(found, runtime=tuple(runtime))


def _unknown_edges(
    instruction: Instruction, operands: Iterable[int], outputs: Iterable[Path]
) -> Iterator[AccessEdge]:
    """The opcode is not registered, so its accesses are unknown."""
    reason = f"no maps are known for opcode {instruction.opcode}, of `{instruction.name}`"
    why = Unknown(reason, instruction)
    for output in outputs:
        for operand in operands:
            for path, shape in leaves(instruction.operands[operand].shape):
                if isinstance(shape, Shape):
                    yield AccessEdge(operand, path, output, (), why)

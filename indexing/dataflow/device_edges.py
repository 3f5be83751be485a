"""Edges with the device as the first dimension and result of every map.

Most instructions access only their own device: their maps are lifted.  Collectives access other
devices.  Only a computation that contains a collective is summarised with devices.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace

from hlo.modules.module import Computation, Instruction
from hlo.modules.recursion import bottom_up
from hlo.shapes.shape import Shape
from indexing.dataflow.device_ids import fold_devices
from indexing.dataflow.edges import Edges, LocalEdges
from indexing.dataflow.loops.iteration import AnyIteration, Iteration
from indexing.dataflow.summaries import Summarising, summaries_of
from indexing.dataflow.walk import Walk
from indexing.devices.devices import Devices, GroupsError
from indexing.devices.exchange import ANY_ELEMENT, Participants
from indexing.maps.answers import Unknown
from indexing.maps.arrays import ArrayRef, Path
from indexing.maps.indexing_map import IndexingMap, has_device
from indexing.maps.options import Options
from indexing.maps.over_approximation import full_map
from indexing.maps.reasons import Reason
from indexing.ops.access_edge import AccessEdge
from indexing.ops.collective_bases import IGNORED, SENT, Collective, ReducingCollective
from indexing.ops.control import AsyncStart, Conditional, While
from indexing.ops.structured_ops import InlineOp, StructuredOp, Summaries
from indexing.ops.transfers import Recv
from simplifier.atoms import Variable


@dataclass(frozen=True, slots=True)
class DeviceEdges(Edges):
    """Edges between elements on devices."""

    devices: Devices
    options: Options
    iteration: AnyIteration | None = None

    @property
    def inexact(self) -> DeviceEdges:
        if not self.options.exact:
            return self
        return replace(self, options=replace(self.options, exact=False))

    def with_options(self, options: Options) -> DeviceEdges:
        return replace(self, options=options)

    @property
    def base(self) -> LocalEdges:
        return LocalEdges(self.options, iteration=self.iteration)

    def inside(self, iteration: Iteration | None) -> DeviceEdges:
        return replace(self, options=self.options.inside_loops, iteration=iteration)

    def crosses(self, computation: Computation) -> bool:
        return _contains_crossing(computation)

    def directions(self, backward: bool) -> tuple[bool, ...]:
        return (True,) if backward else (True, False)  # a collective needs what a reducer reads

    def backward_edges(
        self, array: ArrayRef, walk: Summarising, *, fold: bool
    ) -> Iterator[AccessEdge]:
        instruction, path, _ = array
        plain = Walk(self.base).backward_edges(array, fold=fold)
        every, summaries = range(len(instruction.operands)), summaries_of(walk, backward=True)
        for edge in self._with_devices(instruction, [path], every, plain, summaries):
            yield self._fold_starts(edge) if fold else edge

    def forward_edges(
        self,
        instruction: Instruction,
        operands: Collection[int],
        outputs: Collection[Path],
        walk: Summarising,
        *,
        fold: bool,
    ) -> Iterator[AccessEdge]:
        plain = Walk(self.base).forward_edges(instruction, operands, outputs, fold=fold)
        summaries = summaries_of(walk, backward=False)
        for edge in self._with_devices(instruction, outputs, operands, plain, summaries):
            yield self._fold_starts(edge) if fold else edge

    def identity(self, array: ArrayRef) -> tuple[IndexingMap, ...]:
        shape = array.shape
        return (self.devices.identity(shape),) if isinstance(shape, Shape) else ()

    def dims(self, array: ArrayRef) -> tuple[Variable, ...] | None:
        shape = array.array_shape
        return None if shape is None else self.devices.dims(shape)

    def sizes(self, array: ArrayRef) -> tuple[int, ...] | None:
        shape = array.array_shape
        return None if shape is None else (self.devices.count, *shape.dims)

    def _with_devices(
        self,
        instruction: Instruction,
        outputs: Collection[Path],
        operands: Collection[int],
        plain: Iterable[AccessEdge],
        summaries: Summaries,
    ) -> Iterator[AccessEdge]:
        """Yield `plain` edges, which have no device dimension, with devices."""
        op = instruction.op
        if isinstance(op, Collective):
            for edge in plain:
                yield self._collective_edge(instruction, op, edge, summaries)
        elif isinstance(op, Recv):
            yield from _received_edges(instruction, op, outputs)
        elif not (isinstance(op, StructuredOp) and self._calls_crossing(instruction)):
            yield from map(self._lift_edge, plain)
        elif isinstance(op, InlineOp | AsyncStart | Conditional | While):
            for output in outputs:
                for edge in op.edges(instruction, output, summaries):
                    if edge.operand in operands:
                        yield self._lift_edge(edge)
        else:
            for edge in plain:
                yield self._repeated_edge(instruction, edge, summaries.backward)

    def _calls_crossing(self, instruction: Instruction) -> bool:
        return any(map(self.crosses, instruction.called_computations))

    def _lift_edge(self, edge: AccessEdge) -> AccessEdge:
        """Return an edge on every device; maps of called computations may have devices already."""
        lift = self.devices.lift
        return edge.change_maps(lambda m: [m if has_device(m) else lift(m)])

    def _fold_starts(self, edge: AccessEdge) -> AccessEdge:
        """Return an edge without the start indices that are determined by the device."""
        if not any(each.runtime for each in edge.maps):
            return edge
        return edge.change_maps(lambda m: fold_devices(m, self.devices))

    def _repeated_edge(
        self, instruction: Instruction, edge: AccessEdge, backward: bool
    ) -> AccessEdge:
        """Return an edge of a scan that contains collectives: it may depend on every device."""
        out = ArrayRef(instruction, edge.output_path)
        operand = ArrayRef(instruction.operands[edge.operand], edge.operand_path)
        start, end = (out, operand) if backward else (operand, out)
        if not edge.maps:
            return edge
        reason = Reason("a scan with collectives may read every element", instruction)
        return replace(edge, maps=(full_map(self.spaces(start, end)),), reasons=(reason,))

    def _collective_edge(
        self, instruction: Instruction, op: Collective, edge: AccessEdge, summaries: Summaries
    ) -> AccessEdge:
        """Return the edge of a collective, from the participants of its groups."""
        exchange = op.exchange(instruction, edge.output_path, edge.operand)
        if exchange is None or edge.unknown is not None:
            return self._lift_edge(edge)
        out = ArrayRef(instruction, edge.output_path).shape
        operand = ArrayRef(instruction.operands[edge.operand], edge.operand_path).shape
        assert isinstance(out, Shape)
        assert isinstance(operand, Shape)
        if exchange is ANY_ELEMENT:
            participants = Participants.of([tuple(range(self.devices.count))])
        else:
            try:
                participants = op.participants(self.devices)
            except GroupsError as error:
                return _unknown_edge(edge, instruction, str(error))
        if mismatch := exchange.mismatch(out, operand, participants):
            return _unknown_edge(
                edge, instruction, f"{mismatch}; the module runs on {self.devices}"
            )
        obstacle = SENT
        if isinstance(op, ReducingCollective) and not op.needs_every_device(instruction, summaries):
            exchange, obstacle = replace(exchange, grade="may"), IGNORED
        if not summaries.backward:
            exchange, participants = exchange.inverse, participants.inverse
            out, operand = operand, out
        maps = exchange.maps(out, operand, participants, self.devices)
        is_exact = all(m.grade == "exact" for m in maps)
        reasons = () if is_exact else (Reason(obstacle, instruction),)
        exchanged = replace(edge, maps=maps, reasons=reasons)
        absent = self._absent_device(participants) if not op.fills_with_zeros else None
        if absent is None:
            return exchanged
        reason = f"device {absent} is in no group, so its result is undefined"
        return replace(exchanged, unknown=_unknown(instruction, reason))

    def _absent_device(self, participants: Participants) -> int | None:
        """Return the first device that is in no group, or None."""
        present = {device for row, _ in participants.pairs for device in row}
        return next((k for k in range(self.devices.count) if k not in present), None)


def crosses(instruction: Instruction) -> bool:
    """Return True if the instruction, or a computation it calls, accesses other devices."""
    op = instruction.op
    if isinstance(op, Collective | Recv):
        return True
    return isinstance(op, StructuredOp) and any(
        _contains_crossing(called) for called in instruction.called_computations
    )


def _contains_crossing(computation: Computation) -> bool:
    return bottom_up(computation, _contains_crossing, lambda c: any(map(crosses, c)))


def _received_edges(
    instruction: Instruction, op: Recv, outputs: Collection[Path]
) -> Iterator[AccessEdge]:
    """Yield unknown edges: a token does not identify its sender."""
    if not op.is_host_transfer:
        for path in outputs:
            if path[:1] == (0,):
                unknown = _unknown(instruction, "the sender is not known statically")
                yield AccessEdge(0, (), path, (), unknown)


def _unknown_edge(edge: AccessEdge, instruction: Instruction, reason: str) -> AccessEdge:
    return replace(edge, maps=(), unknown=_unknown(instruction, reason))


def _unknown(instruction: Instruction, reason: str) -> Unknown:
    return Unknown(f"{instruction.opcode} `{instruction.name}`: {reason}", instruction)

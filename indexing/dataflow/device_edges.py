"""Edges with the device as the first dimension of every map.

Most instructions stay on their device: their maps are lifted.  Collectives lead to other devices.
A computation that holds a collective is summarised with devices, and one without as it is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace

from hlo.modules.module import Computation, Instruction
from hlo.shapes.shape import Shape
from indexing.dataflow.device_ids import folded
from indexing.dataflow.edges import Edges, LocalEdges, Summary
from indexing.dataflow.runtime import forwarded_from
from indexing.dataflow.walk import Walk
from indexing.devices.devices import Devices, GroupsError, has_device
from indexing.devices.exchange import ANY_ELEMENT, Participants
from indexing.maps.answers import Unknown
from indexing.maps.arrays import ArrayRef, Path
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.map_set import Ends, everything
from indexing.maps.options import Options
from indexing.ops.access_edge import AccessEdge
from indexing.ops.collective_bases import Collective
from indexing.ops.control import AsyncStart, Conditional, While, callees
from indexing.ops.structured_ops import InlineOp, StructuredOp, Summaries
from indexing.ops.transfers import Recv


@dataclass(frozen=True, slots=True)
class DeviceEdges(Edges):
    """Edges between elements on devices."""

    devices: Devices
    options: Options

    @property
    def base(self) -> LocalEdges:
        return LocalEdges(self.options)

    def crosses(self, computation: Computation) -> bool:
        return _holds_crossing(computation)

    def directions(self, backward: bool) -> tuple[bool, ...]:
        return (True,) if backward else (True, False)  # loops always ask what their body reads

    def back(self, array: ArrayRef, reads: Summary, *, folds: bool) -> Iterator[AccessEdge]:
        instruction, path, _ = array
        plain = Walk(self.base).reads(array, folds=folds)
        every, summaries = range(len(instruction.operands)), Summaries(reads, True, forwarded_from)
        for edge in self._with_devices(instruction, [path], every, plain, summaries):
            yield self._folded(edge) if folds else edge

    def forward(
        self,
        instruction: Instruction,
        operands: Collection[int],
        outputs: Collection[Path],
        writes: Summary,
        *,
        folds: bool,
    ) -> Iterator[AccessEdge]:
        plain = Walk(self.base).writes(instruction, operands, outputs, folds=folds)
        summaries = Summaries(writes, False, forwarded_from)
        for edge in self._with_devices(instruction, outputs, operands, plain, summaries):
            yield self._folded(edge) if folds else edge

    def identity(self, array: ArrayRef) -> tuple[IndexingMap, ...]:
        shape = array.shape
        return (self.devices.identity(shape),) if isinstance(shape, Shape) else ()

    def ends(self, start: ArrayRef, end: ArrayRef) -> Ends:
        source, target = start.shape, end.shape
        return Ends(
            self.devices.dims(source) if isinstance(source, Shape) else None,
            (self.devices.count, *target.dims) if isinstance(target, Shape) else None,
        )

    def _with_devices(
        self,
        instruction: Instruction,
        outputs: Collection[Path],
        operands: Collection[int],
        plain: Iterable[AccessEdge],
        summaries: Summaries,
    ) -> Iterator[AccessEdge]:
        """`plain` edges, which know nothing of devices, with devices."""
        op = instruction.op
        if isinstance(op, Collective):
            for edge in plain:
                yield self._exchanged(instruction, op, edge, summaries.backward)
        elif isinstance(op, Recv):
            yield from _received(instruction, op, outputs)
        elif not crosses(instruction):
            yield from map(self._lifted, plain)
        elif isinstance(op, InlineOp | AsyncStart | Conditional):
            for output in outputs:
                for edge in op.edges(instruction, output, summaries):
                    if edge.operand in operands:
                        yield self._lifted(edge)
        else:
            for edge in plain:
                yield self._repeated(instruction, edge, summaries.backward)

    def _lifted(self, edge: AccessEdge) -> AccessEdge:
        """An edge on every device; maps of called computations may have devices already."""
        lift = self.devices.lift
        return replace(edge, maps=tuple([m if has_device(m) else lift(m) for m in edge.maps]))

    def _folded(self, edge: AccessEdge) -> AccessEdge:
        """An edge without the start indices that the number of the device decides."""
        if not any(found.runtime for found in edge.maps):
            return edge
        pieces = [piece for found in edge.maps for piece in folded(found, self.devices)]
        return replace(edge, maps=tuple(pieces))

    def _repeated(self, instruction: Instruction, edge: AccessEdge, backward: bool) -> AccessEdge:
        """An edge of a loop (or the like) with collectives inside, over any number of trips.

        What every trip passes on as it is, on its own device, stays what it is; anything else may
        come from any device.
        """
        out = ArrayRef(instruction, edge.output_path)
        operand = ArrayRef(instruction.operands[edge.operand], edge.operand_path)
        if isinstance(instruction.op, While) and edge.output_path == edge.operand_path:
            _, body = callees(instruction, "condition", "body")
            parameter = ArrayRef(body.parameters[0], edge.output_path)
            found = Walk(self).read_summary(body, edge.output_path)
            if list(found) == [parameter] and found[parameter].unknown is None:
                if list(found[parameter].maps) == list(self.identity(out)):
                    return replace(edge, maps=self.identity(out))
        start, end = (out, operand) if backward else (operand, out)
        return replace(edge, maps=(everything(self.ends(start, end)),) if edge.maps else ())

    def _exchanged(
        self, instruction: Instruction, op: Collective, edge: AccessEdge, backward: bool
    ) -> AccessEdge:
        """An edge of a collective: from which devices, as its groups say."""
        exchange = op.exchange(instruction, edge.output_path, edge.operand)
        if exchange is None or edge.unknown is not None:
            return self._lifted(edge)
        out = ArrayRef(instruction, edge.output_path).shape
        operand = ArrayRef(instruction.operands[edge.operand], edge.operand_path).shape
        assert isinstance(out, Shape)
        assert isinstance(operand, Shape)
        if exchange is ANY_ELEMENT:
            rows = Participants.of([tuple(range(self.devices.count))])
        else:
            try:
                rows = op.participants(self.devices)
            except GroupsError as error:
                return _unknown(edge, instruction, str(error))
        if mismatch := exchange.mismatch(out, operand, rows):
            return _unknown(edge, instruction, f"{mismatch}; it runs as {self.devices}")
        if not backward:
            exchange, rows, out, operand = exchange.inverse, rows.inverse, operand, out
        found = replace(edge, maps=exchange.maps(out, operand, rows, self.devices))
        missing = self._left_out(rows) if not op.fills_with_zeros else None
        if missing is None:
            return found
        reason = f"device {missing} is in none of its groups, and what it has there is undefined"
        return replace(found, unknown=_why(instruction, reason))

    def _left_out(self, rows: Participants) -> int | None:
        """The first device that takes no part."""
        taking = {device for row, _ in rows.pairs for device in row}
        return next((k for k in range(self.devices.count) if k not in taking), None)


def crosses(instruction: Instruction) -> bool:
    """It needs elements of other devices, by itself or in a computation that it calls."""
    op = instruction.op
    if isinstance(op, Collective | Recv):
        return True
    return isinstance(op, StructuredOp) and any(
        _holds_crossing(called) for called in instruction.called_computations
    )


def _holds_crossing(computation: Computation) -> bool:
    return computation.module.remembered(
        (_holds_crossing, computation), lambda: any(map(crosses, computation))
    )


def _received(
    instruction: Instruction, op: Recv, outputs: Collection[Path]
) -> Iterator[AccessEdge]:
    """Unknown edges: a token does not identify its sender."""
    if not op.is_host_transfer:
        for path in outputs:
            if path[:1] == (0,):
                why = _why(instruction, "what another device sends is not followed")
                yield AccessEdge(0, (), path, (), why)


def _unknown(edge: AccessEdge, instruction: Instruction, reason: str) -> AccessEdge:
    return replace(edge, maps=(), unknown=_why(instruction, reason))


def _why(instruction: Instruction, reason: str) -> Unknown:
    return Unknown(f"{instruction.opcode} `{instruction.name}`: {reason}", instruction)

"""Walks through programs with the device as the first dimension of every map.

Most instructions stay on their device: their maps are lifted.  Collectives lead to other devices.
A computation that holds a collective is summarised with devices, and one without as it is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial

from hlo.modules.module import Computation, Instruction
from hlo.shapes.shape import Shape
from indexing.dataflow import walk as graph
from indexing.dataflow.device_ids import folded
from indexing.dataflow.runtime import forwarded_from
from indexing.devices.devices import Devices, GroupsError, has_device
from indexing.devices.exchange import ANYWHERE, Rows
from indexing.maps.answers import Path, Unknown
from indexing.maps.arrays import ArrayRef
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.map_set import MOST_MAPS, MapSet
from indexing.maps.options import Options
from indexing.ops.access_edge import AccessEdge
from indexing.ops.collective_bases import Collective
from indexing.ops.control import AsyncStart, Conditional, While, callees
from indexing.ops.structured_ops import InlineOp, StructuredOp, Summaries
from indexing.ops.transfers import Recv
from simplifier.unknown import first_unknown


@dataclass(frozen=True, slots=True)
class Walk:
    """How to walk: on which devices, and with which options of composition.

    Two computations with the same devices and options have the same summary.
    """

    devices: Devices
    options: Options

    # ------------------------------------------------------------ one instruction

    def edges_back(
        self, instruction: Instruction, path: Path, folds: bool = False
    ) -> Iterator[AccessEdge]:
        """What the leaf at `path` of the result reads of each operand, and on which devices.

        If it `folds`, runtime variables whose value the program says are replaced by that value.
        """
        plain: Iterable[AccessEdge] = graph.edges_back(instruction, path, self.options)
        if folds:
            plain = graph.known_starts(plain)
        every = range(len(instruction.operands))
        for step in self._steps(instruction, [path], every, plain, True):
            yield self._folded(step) if folds else step

    def edges_forward(
        self,
        instruction: Instruction,
        operands: Collection[int],
        outputs: Collection[Path],
        folds: bool = False,
    ) -> Iterator[AccessEdge]:
        """Which elements of the leaves at `outputs`, on which devices, need those of `operands`."""
        plain: Iterable[AccessEdge] = graph.edges_forward(
            instruction, operands, outputs, self.options
        )
        if folds:
            plain = graph.known_starts(plain)
        for step in self._steps(instruction, outputs, operands, plain, False):
            yield self._folded(step) if folds else step

    def _steps(
        self,
        instruction: Instruction,
        outputs: Collection[Path],
        operands: Collection[int],
        plain: Iterable[AccessEdge],
        backward: bool,
    ) -> Iterator[AccessEdge]:
        """`plain` steps, which know nothing of devices, with devices."""
        op = instruction.op
        if isinstance(op, Collective):
            for step in plain:
                yield self._exchanged(instruction, op, step, backward)
        elif isinstance(op, Recv):
            yield from _received(instruction, op, outputs)
        elif not crosses(instruction):
            for step in plain:
                yield self._lifted(step)
        elif isinstance(op, InlineOp | AsyncStart | Conditional):
            summary = self.reads_summary if backward else self.writes_summary
            for output in outputs:
                for step in op.edges(
                    instruction, output, Summaries(summary, backward, forwarded_from)
                ):
                    if step.operand in operands:
                        yield self._lifted(step)
        else:
            for step in plain:
                yield self._repeated(instruction, step, backward)

    def _lifted(self, step: AccessEdge) -> AccessEdge:
        """A step on every device; maps of called computations may have devices already."""
        lift = self.devices.lift
        return replace(step, maps=tuple([m if has_device(m) else lift(m) for m in step.maps]))

    def _folded(self, step: AccessEdge) -> AccessEdge:
        """A step without the start indices that the number of the device decides."""
        if not any(found.runtime for found in step.maps):
            return step
        pieces = [piece for found in step.maps for piece in folded(found, self.devices)]
        return replace(step, maps=tuple(pieces))

    def _repeated(self, instruction: Instruction, step: AccessEdge, backward: bool) -> AccessEdge:
        """A step of a loop (or the like) with collectives inside, over any number of trips.

        What every trip passes on as it is, on its own device, stays what it is; anything else may
        come from any device.
        """
        out = ArrayRef(instruction, step.output_path)
        operand = ArrayRef(instruction.operands[step.operand], step.operand_path)
        if isinstance(instruction.op, While) and step.output_path == step.operand_path:
            _, body = callees(instruction, "condition", "body")
            parameter = ArrayRef(body.parameters[0], step.output_path)
            found = self.reads_summary(body, step.output_path)
            if list(found) == [parameter] and found[parameter].unknown is None:
                if list(found[parameter].maps) == self._identity(out):
                    return replace(step, maps=tuple(self._identity(out)))
        start, end = (out, operand) if backward else (operand, out)
        return replace(step, maps=self._anywhere(start, end) if step.maps else ())

    def _exchanged(
        self, instruction: Instruction, op: Collective, step: AccessEdge, backward: bool
    ) -> AccessEdge:
        """A step of a collective: from which devices, as its groups say."""
        exchange = op.exchange(instruction, step.output_path, step.operand)
        if exchange is None or step.unknown is not None:
            return self._lifted(step)
        out = ArrayRef(instruction, step.output_path).shape
        operand = ArrayRef(instruction.operands[step.operand], step.operand_path).shape
        assert isinstance(out, Shape)
        assert isinstance(operand, Shape)
        if exchange is ANYWHERE:
            rows = Rows.of([tuple(range(self.devices.count))])
        else:
            try:
                rows = op.rows(self.devices)
            except GroupsError as error:
                return _unknown(step, instruction, str(error))
        if misfit := exchange.misfit(out, operand, rows):
            return _unknown(step, instruction, f"{misfit}; it runs as {self.devices}")
        if not backward:
            exchange, rows, out, operand = exchange.inverse, rows.inverse, operand, out
        found = replace(step, maps=exchange.maps(out, operand, rows, self.devices))
        missing = self._left_out(rows) if not op.gives_zeros else None
        if missing is None:
            return found
        reason = f"device {missing} is in none of its groups, and what it has there is undefined"
        return replace(found, unknown=_why(instruction, reason))

    def _left_out(self, rows: Rows) -> int | None:
        """The first device that takes no part."""
        taking = {device for row, _ in rows.pairs for device in row}
        return next((k for k in range(self.devices.count) if k not in taking), None)

    def _identity(self, node: ArrayRef) -> list[IndexingMap]:
        shape = node.shape
        return [self.devices.identity(shape)] if isinstance(shape, Shape) else []

    def _anywhere(self, start: ArrayRef, end: ArrayRef) -> tuple[IndexingMap, ...]:
        match start.shape, end.shape:
            case Shape() as source, Shape() as target:
                return (self.devices.anywhere(source, target.dims),)
        return ()

    # ------------------------------------------------------------ through called computations

    def reads_summary(self, computation: Computation, path: Path) -> dict[ArrayRef, MapSet]:
        """From the leaf at `path` of the root to every leaf of a parameter that it reads."""
        return self._summary(computation, path, True)

    def writes_summary(self, computation: Computation, path: Path) -> dict[ArrayRef, MapSet]:
        """From every leaf of a parameter to the leaf at `path` of the root that needs it."""
        return self._summary(computation, path, False)

    def _summary(
        self, computation: Computation, path: Path, backward: bool
    ) -> dict[ArrayRef, MapSet]:
        def summarised() -> dict[ArrayRef, MapSet]:
            root = ArrayRef(computation.root, path)
            reached = self.backward(root) if backward else self.forward(root)
            return {n: maps for n, maps in reached.items() if n.instruction.opcode == "parameter"}

        return computation.module.remembered((self, computation, path, backward), summarised)

    def prepare(self, instructions: Collection[Instruction], backward: bool) -> None:
        """Summarise what `instructions` call, the innermost first, without devices and with."""
        plain = graph.reads_summary if backward else graph.writes_summary
        graph.prepare(instructions, self.options, plain)
        graph.prepare(instructions, self.options, partial(self._prepared, backward=backward))

    def _prepared(
        self, computation: Computation, path: Path, options: Options, *, backward: bool
    ) -> None:
        if _holds_crossing(computation):
            self.reads_summary(computation, path)  # loops ask for it in both directions
            self._summary(computation, path, backward)

    # ------------------------------------------------------------ through one computation

    def backward(self, start: ArrayRef) -> dict[ArrayRef, MapSet]:
        """From the elements of `start` to those of every array in its computation it needs."""
        steps = partial(self.edges_back, folds=True)

        def join(here: MapSet, step: AccessEdge, to: ArrayRef, there: MapSet) -> None:
            there.add_composed(
                here.maps, step.maps, first_unknown(step.unknown, here.unknown), self.options
            )
            self._widen(there, start, to)

        return graph.walk_back(start, MapSet(dict.fromkeys(self._identity(start))), steps, join)

    def forward(self, end: ArrayRef) -> dict[ArrayRef, MapSet]:
        """From the elements of every array in its computation that `end` needs to those of it."""

        def steps(instruction: Instruction, outputs: list[Path]) -> Iterator[AccessEdge]:
            every = range(len(instruction.operands))
            return self.edges_forward(instruction, every, outputs, folds=True)

        def join(here: MapSet, step: AccessEdge, start: ArrayRef, later: MapSet) -> None:
            here.add_composed(
                step.maps, later.maps, first_unknown(step.unknown, later.unknown), self.options
            )
            self._widen(here, start, end)

        return graph.walk_forward(end, MapSet(dict.fromkeys(self._identity(end))), steps, join)

    def _widen(self, maps: MapSet, start: ArrayRef, end: ArrayRef) -> None:
        """Where there are too many maps, one that needs everything takes their place."""
        if len(maps.maps) > MOST_MAPS:
            maps.maps = dict.fromkeys(self._anywhere(start, end))


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
    """Steps that say nothing: which device sends, the tokens do not tell."""
    if not op.is_host_transfer:
        for path in outputs:
            if path[:1] == (0,):
                why = _why(instruction, "what another device sends is not followed")
                yield AccessEdge(0, (), path, (), why)


def _unknown(step: AccessEdge, instruction: Instruction, reason: str) -> AccessEdge:
    return replace(step, maps=(), unknown=_why(instruction, reason))


def _why(instruction: Instruction, reason: str) -> Unknown:
    return Unknown(f"{instruction.opcode} `{instruction.name}`: {reason}", instruction)

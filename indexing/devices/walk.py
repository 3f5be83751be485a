"""Walks through programs with the device as the first dimension of every map.

Most instructions stay on their device: their maps are lifted.  Collectives lead to other devices.
A computation that holds a collective is summarised with devices, and one without as it is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial

from hlo.module import Computation, Instruction
from hlo.shape import Shape
from indexing import graph
from indexing.access import Path, Unknown
from indexing.devices.devices import Devices, GroupsError, has_device
from indexing.devices.exchange import ANYWHERE, Rows
from indexing.devices.ids import folded
from indexing.leafwise import InlineOp, LeafwiseOp, Summaries
from indexing.map import IndexingMap
from indexing.ops.collective_bases import Collective
from indexing.ops.control import AsyncStart, Conditional, While, callees
from indexing.ops.transfers import Recv
from indexing.steps import MOST_MAPS, Maps, Node, Options, Step, leaf_shape


@dataclass(frozen=True, slots=True)
class Walk:
    """How to walk: on which devices, and with which options of composition.

    Two computations with the same devices and options have the same summary.
    """

    devices: Devices
    options: Options

    # ------------------------------------------------------------ one instruction

    def steps_back(
        self, instruction: Instruction, path: Path, folds: bool = False
    ) -> Iterator[Step]:
        """What the leaf at `path` of the result reads of each operand, and on which devices.

        If it `folds`, runtime variables whose value the program says are replaced by that value.
        """
        plain: Iterable[Step] = graph.steps_back(instruction, path, self.options)
        if folds:
            plain = graph.known_starts(plain)
        every = range(len(instruction.operands))
        for step in self._steps(instruction, [path], every, plain, True):
            yield self._folded(step) if folds else step

    def steps_forward(
        self,
        instruction: Instruction,
        operands: Collection[int],
        outputs: Collection[Path],
        folds: bool = False,
    ) -> Iterator[Step]:
        """Which elements of the leaves at `outputs`, on which devices, need those of `operands`."""
        plain: Iterable[Step] = graph.steps_forward(instruction, operands, outputs, self.options)
        if folds:
            plain = graph.known_starts(plain)
        for step in self._steps(instruction, outputs, operands, plain, False):
            yield self._folded(step) if folds else step

    def _steps(
        self,
        instruction: Instruction,
        outputs: Collection[Path],
        operands: Collection[int],
        plain: Iterable[Step],
        backward: bool,
    ) -> Iterator[Step]:
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
                for step in op.steps(instruction, output, Summaries(summary, backward)):
                    if step.operand in operands:
                        yield self._lifted(step)
        else:
            for step in plain:
                yield self._repeated(instruction, step, backward)

    def _lifted(self, step: Step) -> Step:
        """A step on every device; maps of called computations may have devices already."""
        lift = self.devices.lift
        return replace(step, maps=tuple([m if has_device(m) else lift(m) for m in step.maps]))

    def _folded(self, step: Step) -> Step:
        """A step without the start indices that the number of the device decides."""
        if not any(found.runtime for found in step.maps):
            return step
        pieces = [piece for found in step.maps for piece in folded(found, self.devices)]
        return replace(step, maps=tuple(pieces))

    def _repeated(self, instruction: Instruction, step: Step, backward: bool) -> Step:
        """A step of a loop (or the like) with collectives inside, over any number of trips.

        What every trip passes on as it is, on its own device, stays what it is; anything else may
        come from any device.
        """
        out = instruction, step.output_path
        operand = instruction.operands[step.operand], step.operand_path
        if isinstance(instruction.op, While) and step.output_path == step.operand_path:
            _, body = callees(instruction, "condition", "body")
            parameter = body.parameters[0], step.output_path
            found = self.reads_summary(body, step.output_path)
            if list(found) == [parameter] and not found[parameter].unknown:
                if list(found[parameter].maps) == self._identity(out):
                    return replace(step, maps=tuple(self._identity(out)))
        start, end = (out, operand) if backward else (operand, out)
        return replace(step, maps=self._anywhere(start, end) if step.maps else ())

    def _exchanged(
        self, instruction: Instruction, op: Collective, step: Step, backward: bool
    ) -> Step:
        """A step of a collective: from which devices, as its groups say."""
        exchange = op.exchange(instruction, step.output_path, step.operand)
        if exchange is None or step.unknown:
            return self._lifted(step)
        out = leaf_shape((instruction, step.output_path))
        operand = leaf_shape((instruction.operands[step.operand], step.operand_path))
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

    def _identity(self, node: Node) -> list[IndexingMap]:
        shape = leaf_shape(node)
        return [self.devices.identity(shape)] if isinstance(shape, Shape) else []

    def _anywhere(self, start: Node, end: Node) -> tuple[IndexingMap, ...]:
        match leaf_shape(start), leaf_shape(end):
            case Shape() as source, Shape() as target:
                return (self.devices.anywhere(source, target.dims),)
        return ()

    # ------------------------------------------------------------ through called computations

    def reads_summary(self, computation: Computation, path: Path) -> dict[Node, Maps]:
        """From the leaf at `path` of the root to every leaf of a parameter that it reads."""
        return self._summary(computation, path, True)

    def writes_summary(self, computation: Computation, path: Path) -> dict[Node, Maps]:
        """From every leaf of a parameter to the leaf at `path` of the root that needs it."""
        return self._summary(computation, path, False)

    def _summary(self, computation: Computation, path: Path, backward: bool) -> dict[Node, Maps]:
        def summarised() -> dict[Node, Maps]:
            root = computation.root, path
            reached = self.backward(root) if backward else self.forward(root)
            return {n: maps for n, maps in reached.items() if n[0].opcode == "parameter"}

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

    def backward(self, start: Node) -> dict[Node, Maps]:
        """From the elements of `start` to those of every array in its computation it needs."""
        steps = partial(self.steps_back, folds=True)

        def join(here: Maps, step: Step, to: Node, there: Maps) -> None:
            there.add_composed(here.maps, step.maps, step.unknown or here.unknown, self.options)
            self._widen(there, start, to)

        return graph.walk_back(start, Maps(dict.fromkeys(self._identity(start))), steps, join)

    def forward(self, end: Node) -> dict[Node, Maps]:
        """From the elements of every array in its computation that `end` needs to those of it."""

        def steps(instruction: Instruction, outputs: list[Path]) -> Iterator[Step]:
            every = range(len(instruction.operands))
            return self.steps_forward(instruction, every, outputs, folds=True)

        def join(here: Maps, step: Step, start: Node, later: Maps) -> None:
            here.add_composed(step.maps, later.maps, step.unknown or later.unknown, self.options)
            self._widen(here, start, end)

        return graph.walk_forward(end, Maps(dict.fromkeys(self._identity(end))), steps, join)

    def _widen(self, maps: Maps, start: Node, end: Node) -> None:
        """Where there are too many maps, one that needs everything takes their place."""
        if len(maps.maps) > MOST_MAPS:
            maps.maps = dict.fromkeys(self._anywhere(start, end))


def crosses(instruction: Instruction) -> bool:
    """It needs elements of other devices, by itself or in a computation that it calls."""
    op = instruction.op
    if isinstance(op, Collective | Recv):
        return True
    return isinstance(op, LeafwiseOp) and any(
        _holds_crossing(called) for called in instruction.called_computations
    )


def _holds_crossing(computation: Computation) -> bool:
    return computation.module.remembered(
        (_holds_crossing, computation), lambda: any(map(crosses, computation))
    )


def _received(instruction: Instruction, op: Recv, outputs: Collection[Path]) -> Iterator[Step]:
    """Steps that say nothing: which device sends, the tokens do not tell."""
    if not op.is_host_transfer:
        for path in outputs:
            if path[:1] == (0,):
                why = _why(instruction, "what another device sends is not followed")
                yield Step(0, (), path, (), why)


def _unknown(step: Step, instruction: Instruction, reason: str) -> Step:
    return replace(step, maps=(), unknown=_why(instruction, reason))


def _why(instruction: Instruction, reason: str) -> Unknown:
    return Unknown(f"{instruction.opcode} `{instruction.name}`: {reason}", instruction)

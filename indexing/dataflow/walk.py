"""The walk over the arrays of a program that composes maps.

Backward from an output, or forward to an output, each instruction on the way is visited once and
carries the set of all maps that lead to it (`indexing.maps.map_set`); paths are never enumerated.
A called computation is summarised once for each leaf of its result, and the summary takes part like
the maps of any op.  What an instruction connects comes from `Edges`; every query of this room is a
few lines on a `Walk`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from hlo.modules.module import Computation, Instruction, Module
from hlo.shapes.shape import leaves
from indexing.dataflow.edges import Edges
from indexing.maps.arrays import ArrayRef, Path
from indexing.maps.map_set import MapSet
from indexing.ops.access_edge import AccessEdge
from indexing.ops.structured_ops import StructuredOp


@dataclass(frozen=True, slots=True)
class Walk:
    """Walks along `edges`; those that are equal share the summaries of computations."""

    edges: Edges

    # ------------------------------------------------------------ one instruction

    def reads(self, array: ArrayRef, *, folds: bool = False) -> Iterable[AccessEdge]:
        """What an array reads of each operand of its instruction.

        If it `folds`, runtime variables whose value the program determines are replaced by it.
        """
        return self.edges.back(array, self.read_summary, folds=folds)

    def writes(
        self,
        instruction: Instruction,
        operands: Collection[int],
        outputs: Collection[Path],
        *,
        folds: bool = False,
    ) -> Iterable[AccessEdge]:
        """Which elements of the leaves at `outputs` need elements of `operands`, leaf by leaf."""
        return self.edges.forward(instruction, operands, outputs, self.write_summary, folds=folds)

    # ------------------------------------------------------------ one computation

    def backward(
        self, start: ArrayRef, within: Collection[Instruction] | None = None
    ) -> dict[ArrayRef, MapSet]:
        """From the elements of `start` to those of every array that it needs.

        Args:
            within: follow the edges of these instructions only; of all in its computation, if
                they are not given.
        """
        found = {start: self._start(start)}
        waiting = {start.instruction: [start]}
        for instruction in _up_from(start.instruction, within):
            for array in waiting.pop(instruction, ()):
                here = found[array]
                for edge in self.reads(array, folds=True):
                    to = ArrayRef(instruction.operands[edge.operand], edge.operand_path)
                    if to not in found:
                        found[to] = self.edges.maps(start, to)
                        waiting.setdefault(to.instruction, []).append(to)
                    unknown = here.unknown if edge.unknown is None else edge.unknown
                    found[to].add_composed(here.maps, edge.maps, unknown)
        return found

    def forward(
        self, end: ArrayRef, within: Collection[Instruction] | None = None
    ) -> dict[ArrayRef, MapSet]:
        """From the elements of every array that `end` needs to those of `end`.

        The walk starts at `end` all the same, so that one walk answers for every array.

        Args:
            within: follow the edges between these instructions only; between all, if they are not
                given.
        """
        found = {end: self._start(end)}
        waiting = {end.instruction}
        for instruction in _up_from(end.instruction, within):
            if instruction not in waiting:
                continue
            outputs = [p for p, _ in leaves(instruction.shape) if ArrayRef(instruction, p) in found]
            operands = [
                number
                for number, operand in enumerate(instruction.operands)
                if within is None or operand in within
            ]
            for edge in self.writes(instruction, operands, outputs, folds=True):
                later = found[ArrayRef(instruction, edge.output_path)]
                start = ArrayRef(instruction.operands[edge.operand], edge.operand_path)
                waiting.add(start.instruction)
                if start not in found:
                    found[start] = self.edges.maps(start, end)
                unknown = later.unknown if edge.unknown is None else edge.unknown
                found[start].add_composed(edge.maps, later.maps, unknown)
        return found

    def sweep(self, computation: Computation) -> Iterator[tuple[ArrayRef, dict[ArrayRef, MapSet]]]:
        """For every array of a computation, in text order, the maps to the parameters it needs.

        Each instruction adds one edge to what its operands need: unlike a walk from every array,
        this takes as long as the answers are, and forgets them after their last use.
        """
        last_use = {o: i.index for i in computation.instructions for o in i.operands}
        known: dict[ArrayRef, dict[ArrayRef, MapSet]] = {}
        for instruction in computation.instructions:
            for path, _ in leaves(instruction.shape):
                array = ArrayRef(instruction, path)
                known[array] = self._one_edge(array, known)
                yield array, known[array]
            for operand in (instruction, *instruction.operands):
                if last_use.get(operand, operand.index) == instruction.index:
                    for path, _ in leaves(operand.shape):
                        known.pop(ArrayRef(operand, path), None)

    def _one_edge(
        self, array: ArrayRef, known: Mapping[ArrayRef, Mapping[ArrayRef, MapSet]]
    ) -> dict[ArrayRef, MapSet]:
        """What an array needs of each parameter, given the same of the operands."""
        instruction = array.instruction
        if instruction.opcode == "parameter":
            return {array: self._start(array)}
        reached: dict[ArrayRef, MapSet] = {}
        for edge in self.reads(array, folds=True):
            operand = ArrayRef(instruction.operands[edge.operand], edge.operand_path)
            for parameter, later in known[operand].items():
                if parameter not in reached:
                    reached[parameter] = self.edges.maps(array, parameter)
                unknown = later.unknown if edge.unknown is None else edge.unknown
                reached[parameter].add_composed(edge.maps, later.maps, unknown)
        return reached

    def _start(self, array: ArrayRef) -> MapSet:
        """Each element to itself."""
        itself = self.edges.maps(array, array)
        itself.extend(self.edges.identity(array))
        return itself

    # ------------------------------------------------------------ called computations

    def read_summary(self, computation: Computation, path: Path) -> dict[ArrayRef, MapSet]:
        """From the leaf at `path` of the root to every leaf of a parameter that it reads."""
        return self._summary(computation, path, backward=True)

    def write_summary(self, computation: Computation, path: Path) -> dict[ArrayRef, MapSet]:
        """From every leaf of a parameter to the leaf at `path` of the root that needs it."""
        return self._summary(computation, path, backward=False)

    def _summary(
        self, computation: Computation, path: Path, *, backward: bool
    ) -> dict[ArrayRef, MapSet]:
        def summarised() -> dict[ArrayRef, MapSet]:
            root = ArrayRef(computation.root, path)
            reached = self.backward(root) if backward else self.forward(root)
            return {a: maps for a, maps in reached.items() if a.instruction.opcode == "parameter"}

        return computation.module.remembered((self, computation, path, backward), summarised)

    def prepare(self, instructions: Iterable[Instruction], *, backward: bool) -> None:
        """Summarise what `instructions` call, the innermost first.

        Callees come before callers in `Module.computations`, so that nesting of any depth needs no
        recursion.
        """
        called = callees(instructions)
        if self.edges.base is not self.edges:
            Walk(self.edges.base).prepare(instructions, backward=backward)
        for computation in called:
            if self.edges.crosses(computation):
                for path, _ in leaves(computation.root.shape):
                    for direction in self.edges.directions(backward):
                        self._summary(computation, path, backward=direction)


def callees(instructions: Iterable[Instruction]) -> list[Computation]:
    """The computations that instructions call, directly or not, callees before callers."""
    pending = _called(instructions)
    wanted: dict[Computation, None] = {}
    while pending:
        computation = pending.pop()
        if computation not in wanted:
            wanted[computation] = None
            pending.extend(_called_in(computation))
    if len(wanted) < 2:
        return list(wanted)
    position = _positions(next(iter(wanted)).module)
    return sorted(wanted, key=lambda computation: position[computation.name])


def _positions(module: Module) -> dict[str, int]:
    """Where each computation stands in its module."""
    return module.remembered(
        _positions, lambda: {name: k for k, name in enumerate(module.computations)}
    )


def _called_in(computation: Computation) -> list[Computation]:
    return computation.module.remembered(
        (_called_in, computation), lambda: _called(computation.instructions)
    )


def _called(instructions: Iterable[Instruction]) -> list[Computation]:
    """The computations that structured ops among `instructions` call."""
    calls = [i for i in instructions if isinstance(i.op, StructuredOp)]
    return [called for i in calls for called in i.called_computations]


def _up_from(last: Instruction, within: Collection[Instruction] | None) -> Iterable[Instruction]:
    """The instructions of a computation in reverse, from `last`: users before operands."""
    if within is None:
        return reversed(last.computation.instructions[: last.index + 1])
    inside = [i for i in dict.fromkeys(within) if i.index <= last.index]
    return sorted(inside, key=lambda instruction: -instruction.index)


def needed_by(roots: Iterable[Instruction]) -> list[Instruction]:
    """The instructions of a computation that `roots` need, themselves included, in text order.

    >>> import hlo
    >>> entry = hlo.parse('''ENTRY e {
    ...   p = f32[2] parameter(0)
    ...   unused = f32[2] negate(p)
    ...   ROOT r = f32[2] reverse(p), dimensions={0}
    ... }''').entry
    >>> [instruction.name for instruction in needed_by([entry.root])]
    ['p', 'r']
    """
    needed = dict.fromkeys(roots)
    pending = list(needed)
    while pending:
        for operand in pending.pop().operands:
            if operand not in needed:
                needed[operand] = None
                pending.append(operand)
    return sorted(needed, key=lambda instruction: instruction.index)

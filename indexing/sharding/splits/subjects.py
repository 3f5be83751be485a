"""Subjects: an instruction with its operands, or a computation with its parameters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from hlo.modules.module import Computation, Instruction
from hlo.shapes.shape import Shape
from indexing.dataflow.queries import output_to_input, to_parameters
from indexing.maps.answers import Answer, Unknown
from indexing.maps.arrays import ArrayRef, Path, array_leaves
from indexing.maps.indexing_map import IndexingMap
from indexing.ops.collective_bases import Collective
from indexing.ops.custom_call import CustomCall
from indexing.ops.devices import DeviceId
from indexing.ops.random_numbers import Rng, RngGetAndUpdateState
from indexing.ops.transfers import EndpointOp


@dataclass(frozen=True, slots=True)
class SubjectArray:
    """An array that a subject reads or returns.

    Attributes:
        position: the number of the operand or parameter; of a result, 0.
        number: the number of the array among the leaves of that operand or of the result.
        path: the leaf.
        shape: the shape.
    """

    position: int
    number: int
    path: Path
    shape: Shape

    @property
    def key(self) -> tuple[int, Path]:
        """The operand or parameter, and the leaf."""
        return self.position, self.path


@dataclass(frozen=True, slots=True)
class InputMaps:
    """The maps from one result to one input.

    Attributes:
        maps: the maps.
        unknown: why there may be other maps, or None.
    """

    maps: tuple[IndexingMap, ...]
    unknown: Unknown | None


@dataclass(frozen=True, slots=True, eq=False)
class Subject:
    """An instruction with its operands, or the root of a computation with its parameters.

    Attributes:
        root: the instruction that computes the results.
        computation: the computation, or None for an instruction.
        inputs: the arrays of the operands or parameters, tuples flattened.
        results: the arrays of the result.

    >>> import hlo
    >>> text = "ENTRY e { p = (f32[2], s32[3]) parameter(0)  ROOT r = (f32[2], s32[3]) copy(p) }"
    >>> [str(each.shape) for each in Subject.of(hlo.parse(text).entry.root).inputs]
    ['f32[2]', 's32[3]']
    """

    root: Instruction
    computation: Computation | None
    inputs: tuple[SubjectArray, ...]
    results: tuple[SubjectArray, ...]
    _answers: dict[tuple[int, bool], Answer] = field(default_factory=dict, init=False)

    @classmethod
    def of(cls, given: Instruction | Computation) -> Subject:
        """Return the subject for an instruction or computation."""
        if isinstance(given, Computation):
            return cls.inside(given.root)
        return cls._between(given, None, given.operands)

    @classmethod
    def inside(cls, instruction: Instruction) -> Subject:
        """Return the subject from the parameters of a computation to one of its instructions."""
        computation = instruction.computation
        return cls._between(instruction, computation, computation.parameters)

    @classmethod
    def _between(
        cls, root: Instruction, computation: Computation | None, sources: Sequence[Instruction]
    ) -> Subject:
        inputs = [
            SubjectArray(position, *leaf)
            for position, source in enumerate(sources)
            for leaf in array_leaves(source.shape)
        ]
        results = [SubjectArray(0, *leaf) for leaf in array_leaves(root.shape)]
        return cls(root, computation, tuple(inputs), tuple(results))

    @property
    def sources(self) -> tuple[Instruction, ...]:
        """The operands, or the parameters of the computation."""
        return tuple(self.computation.parameters if self.computation else self.root.operands)

    def accesses(self, result: int, source: int, *, exact: bool = False) -> InputMaps:
        """Return the maps from one of `results` to one of `inputs`, by number.

        Args:
            exact: return disjoint exact pieces instead of over-approximations.
        """
        answer = self._answer(self.results[result].number, exact)
        array = self.inputs[source]
        paths, maps = answer.paths[array.position], answer.maps[array.position]
        chosen = [m for m, path in zip(maps, paths, strict=True) if path == array.path]
        return InputMaps(tuple(chosen), answer.unknown[array.position])

    def _answer(self, output_id: int, exact: bool) -> Answer:
        key = output_id, exact
        if key not in self._answers:
            query = to_parameters if self.computation else output_to_input
            self._answers[key] = query(self.root, output_id, exact=exact)
        return self._answers[key]

    def is_free(self, array: object) -> bool:
        """Return True if a source of runtime variables is an input, so that it has any values."""
        if not isinstance(array, ArrayRef) or array.calls:
            return False
        return array.instruction in self.sources and array.instruction.opcode != "constant"

    def obstacle(self) -> Unknown | None:
        """Return why devices cannot execute the subject independently, or None."""
        for instruction in self.executed_instructions():
            if reason := _obstacle(instruction.op):
                return Unknown(f"{instruction.opcode} `{instruction.name}` {reason}", instruction)
        return None

    def executed_instructions(self) -> Iterator[Instruction]:
        """Yield the root, or the computation's instructions, and those of called computations."""
        waiting: list[Computation] = [*([self.computation] if self.computation else [])]
        if not self.computation:
            yield self.root
            waiting += self.root.called_computations
        seen = set[Computation]()
        while waiting:
            computation = waiting.pop()
            if computation not in seen:
                seen.add(computation)
                for inner in computation.instructions:
                    yield inner
                    waiting += inner.called_computations


def _obstacle(op: object) -> str:
    """Return why devices may have other values of an instruction than one device has."""
    match op:
        case None:
            return "is not a registered op"
        case Collective() | DeviceId() | EndpointOp():
            return "depends on the device"
        case Rng() | RngGetAndUpdateState():
            return "draws other values on each device"
        case CustomCall(custom_call_target=target):
            return f"has no rule for the target {target!r}"
    return ""

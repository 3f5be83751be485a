"""Ops that answer leaf by leaf: how a leaf of the result depends on the leaves of the operands.

Those that call computations (call, fusion, while, conditional, async, scan) are given summaries of
them: from each leaf of a root to the parameters, or from the parameters to that leaf.  Those whose
values come from other devices or from the host answer in the same way, and have no kernel.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, TypeAlias

from hlo.modules.module import Computation, Instruction
from hlo.shapes.shape import AnyShape, Shape
from indexing.maps.answers import Path
from indexing.maps.arrays import ArrayRef
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.map_set import MapSet
from indexing.maps.runtime_variable import RuntimeVariable
from indexing.ops.access_edge import AccessEdge
from indexing.ops.base import every_element
from indexing.ops.element import ElementOp

Found: TypeAlias = Mapping[ArrayRef, MapSet]


@dataclass(frozen=True, slots=True)
class Summaries:
    """What is known of computations.

    Attributes:
        of: for a leaf of a computation's root, the maps between it and every leaf of a parameter.
        backward: maps lead from the result to what it needs, not the other way.
        forwarded_from: the array that another one is, passed on whole through tuples and calls.
    """

    of: Callable[[Computation, Path], Found]
    backward: bool
    forwarded_from: Callable[[ArrayRef], ArrayRef]

    def everything(self, result: AnyShape, operand: AnyShape) -> tuple[IndexingMap, ...]:
        """Each element of one array may need each element of the other."""
        ends = (result, operand) if self.backward else (operand, result)
        match ends:
            case Shape() as start, Shape() as end:
                return (every_element(start, end).with_grade("may"),)
        return ()


class StructuredOp(ElementOp):
    """An op on values that may be tuples, whose maps depend on more than shapes."""

    __slots__ = ()
    takes_arrays: ClassVar[bool] = False

    @abstractmethod
    def edges(
        self, instruction: Instruction, output: Path, summaries: Summaries
    ) -> Iterator[AccessEdge]:
        """How the leaf at `output` of the result depends on the leaves of each operand.

        The maps of the steps have the direction of those in `summaries`.
        """


class InlineOp(StructuredOp):
    """An op that runs the one computation it calls on its operands, and gives its result."""

    __slots__ = ()
    runs_called: ClassVar[bool] = True

    def infer_shape(self, *operands: AnyShape) -> AnyShape:
        """Never asked: the shape is that of the called computation's root (`hlo.modules.bind`)."""
        raise TypeError(f"the shape of {self.opcode} is that of the computation it calls")

    def edges(
        self, instruction: Instruction, output: Path, summaries: Summaries
    ) -> Iterator[AccessEdge]:
        called = instruction.called_computations[0]
        operands = range(len(instruction.operands))
        return through(instruction, operands, called, summaries.of(called, output), output)


def through(
    instruction: Instruction,
    operands: range,
    called: Computation,
    found: Found,
    output: Path,
) -> Iterator[AccessEdge]:
    """The steps that a summary of `called` says, whose parameters are these `operands`."""
    numbers = dict(zip(called.parameters, operands, strict=True))
    for (parameter, path, _), maps in found.items():
        placed = tuple([in_caller(instruction, m, numbers) for m in maps.maps])
        yield AccessEdge(numbers[parameter], path, output, placed, maps.unknown)


def in_caller(
    instruction: Instruction, found: IndexingMap, numbers: Mapping[Instruction, int]
) -> IndexingMap:
    """A map of a called computation as the caller sees it: its operands are the parameters.

    `numbers` says which operand each parameter is.
    """
    if not found.runtime:
        return found
    runtime = [_seen_from(rt, instruction, numbers) for rt in found.runtime if not rt.is_fixed]
    return replace(found, runtime=tuple(runtime))


def _seen_from(
    rt: RuntimeVariable, call: Instruction, numbers: Mapping[Instruction, int]
) -> RuntimeVariable:
    """A runtime variable whose source is an operand, or a value that this call computes."""
    array = rt.array
    if not isinstance(array, ArrayRef):
        return rt
    if not array.calls and array.instruction in numbers:
        return replace(rt, array=ArrayRef(call.operands[numbers[array.instruction]]))
    return replace(rt, array=array._replace(calls=(call, *array.calls)))

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

from hlo.module import Computation, Instruction
from hlo.op import Op
from hlo.shape import AnyShape, Shape
from indexing.access import Path
from indexing.map import IndexingMap, RuntimeVariable
from indexing.op import every_element
from indexing.steps import Maps, Node, Step

Found: TypeAlias = Mapping[Node, Maps]


@dataclass(frozen=True, slots=True)
class Summaries:
    """What is known of computations.

    Attributes:
        of: for a leaf of a computation's root, the maps between it and every leaf of a parameter.
        backward: maps lead from the result to what it needs, not the other way.
    """

    of: Callable[[Computation, Path], Found]
    backward: bool

    def everything(self, result: AnyShape, operand: AnyShape) -> tuple[IndexingMap, ...]:
        """Each element of one array may need each element of the other."""
        ends = (result, operand) if self.backward else (operand, result)
        match ends:
            case Shape() as start, Shape() as end:
                return (every_element(start, end).with_grade("may"),)
        return ()


class LeafwiseOp(Op):
    """An op on values that may be tuples, whose maps depend on more than shapes."""

    __slots__ = ()
    takes_arrays: ClassVar[bool] = False

    @abstractmethod
    def steps(self, instruction: Instruction, output: Path, summaries: Summaries) -> Iterator[Step]:
        """How the leaf at `output` of the result depends on the leaves of each operand.

        The maps of the steps have the direction of those in `summaries`.
        """


class InlineOp(LeafwiseOp):
    """An op that runs the one computation it calls on its operands, and gives its result."""

    __slots__ = ()
    runs_called: ClassVar[bool] = True
    takes_partial: ClassVar[bool] = True

    def infer_shape(self, *operands: AnyShape) -> AnyShape:
        """Never asked: the shape is that of the called computation's root (`hlo.bind`)."""
        raise TypeError(f"the shape of {self.opcode} is that of the computation it calls")

    def steps(self, instruction: Instruction, output: Path, summaries: Summaries) -> Iterator[Step]:
        called = instruction.called_computations[0]
        operands = range(len(instruction.operands))
        return through(instruction, operands, called, summaries.of(called, output), output)


def through(
    instruction: Instruction,
    operands: range,
    called: Computation,
    found: Found,
    output: Path,
) -> Iterator[Step]:
    """The steps that a summary of `called` says, whose parameters are these `operands`."""
    numbers = dict(zip(called.parameters, operands, strict=True))
    for (parameter, path), maps in found.items():
        placed = tuple([as_seen_from(instruction, m, numbers) for m in maps.maps])
        yield Step(numbers[parameter], path, output, placed, maps.unknown)


def as_seen_from(
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
    if not rt.calls and isinstance(rt.source, Instruction) and rt.source in numbers:
        return replace(rt, source=call.operands[numbers[rt.source]])
    return replace(rt, calls=(call, *rt.calls))

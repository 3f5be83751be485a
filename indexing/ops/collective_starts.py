"""Starts and dones of asynchronous collectives: all-gather, collective-permute, all-reduce.

Source: XLA ``docs/async_ops.md`` and ``docs/operation_semantics.md``, "AllGather",
"CollectivePermute".
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import ClassVar, Final

from hlo.modules.module import Instruction
from hlo.ops.attributes import int_list
from hlo.ops.op import HOLDS, Fault, attribute, constraint, declared, op
from hlo.ops.protocols import InstructionLike
from hlo.shapes.shape import AnyShape, Shape, TupleShape, leaf_shape, leaves
from indexing.devices.exchange import ANY_ELEMENT, Exchange
from indexing.maps.answers import Path
from indexing.maps.arrays import ArrayRef
from indexing.maps.indexing_map import IndexingMap
from indexing.ops.access_edge import AccessEdge, identity
from indexing.ops.collective_bases import (
    Collective,
    GlobalCollective,
    OwnAttributes,
    PermutingCollective,
    as_result,
    every_element_edges,
    exchanged_edge,
)
from indexing.ops.collective_parts import (
    part_count,
    part_to_whole,
    parts_fault,
    whole_to_part,
)
from indexing.ops.collectives import AllReduce
from indexing.ops.ring_shares import send_to_others
from indexing.ops.structure import Done, ForwardingOp
from indexing.ops.structured_ops import Summaries


def forwarded_fault(shape: TupleShape, operands: tuple[AnyShape, ...]) -> Fault:
    """The fault of a result whose element 0 does not have the shapes of the operands."""
    forwarded = shape.elements[0]
    if forwarded.compatible(as_result(operands)) or forwarded.compatible(TupleShape(operands)):
        return HOLDS
    return Fault(f"the operands are {TupleShape(operands)}, element 0 is {forwarded}")


class CollectiveStart(Collective):
    """The start of an asynchronous collective; its result is ``(operands, results, ..)``."""

    __slots__ = ()
    takes_arrays: ClassVar[bool] = False
    shape: TupleShape

    @constraint("C1", "the result must be a tuple (operands, results, ..)")
    def has_results(self, *operands: AnyShape) -> Fault:
        if isinstance(self.shape, TupleShape) and len(self.shape.elements) >= 2:
            return HOLDS
        return Fault(f"the result is {self.shape}")

    @property
    @abstractmethod
    def started_exchange(self) -> Exchange:
        """The movement from operands to results, as in the synchronous collective."""

    separates_arrays: ClassVar[bool] = True

    def of_one_array(
        self, instruction: Instruction, output: Path
    ) -> tuple[str, OwnAttributes, int] | None:
        is_known = output[0] == 1 and self._has_one_to_one_results(instruction)
        return Collective.of_one_array(self, instruction, output[1:]) if is_known else None

    def exchange(self, instruction: Instruction, output: Path, operand: int) -> Exchange | None:
        if not self._has_one_to_one_results(instruction):
            return ANY_ELEMENT
        return self.started_exchange if output[0] else None

    def infer_shape(self, *operands: AnyShape) -> AnyShape:
        return self.shape

    def shared_leaf(self, path: Path) -> tuple[int, Path] | None:
        number = path[1] if len(path) > 1 else 0
        return (number, ()) if path[0] == 0 else None

    def sized_edges(
        self, instruction: Instruction, output: Path, summaries: Summaries
    ) -> Iterator[AccessEdge]:
        if output[0] > 1:
            return
        if not self._has_one_to_one_results(instruction):
            yield from every_element_edges(instruction, output, summaries)
            return
        number = output[1] if len(output) > 1 else 0
        operand, out = instruction.operands[number].shape, leaf_shape(instruction.shape, output)
        if output[0] == 0:
            yield AccessEdge(number, (), output, identity(ArrayRef(instruction, output)))
        elif isinstance(out, Shape) and isinstance(operand, Shape) and out.size and operand.size:
            index_map = self.index_map(out, operand, summaries.backward)
            yield exchanged_edge(instruction, number, output, index_map)

    def _has_one_to_one_results(self, instruction: Instruction) -> bool:
        """Return True if there is one result for each operand; False in the in-place form."""
        operands = tuple([operand.shape for operand in instruction.operands])
        results = self.shape.elements[1]
        is_forwarding = forwarded_fault(self.shape, operands) is HOLDS
        return is_forwarding and len(leaves(results)) == len(operands)


@op(
    "all-gather-start",
    samples=[
        "(f32[2,3], f32[2,9]) all-gather-start(f32[2,3] p), replica_groups={{0,1,2}}, "
        "dimensions={1}",
        "((f32[2], s32[3]), (f32[4], s32[6])) all-gather-start(f32[2] p, s32[3] q), dimensions={0}",
    ],
)
class AllGatherStart(CollectiveStart, GlobalCollective):
    """Start an all-gather."""

    starts: ClassVar[str] = "all-gather"
    written: ClassVar[tuple[int, ...] | None] = (1,)
    takes_arrays: ClassVar[bool] = True
    share_sent = staticmethod(send_to_others)
    shape: TupleShape = declared(any_shape=True)
    dimensions: tuple[int, ...] = attribute(int_list)

    @constraint("C2", "element 0 of the result must have the shapes of the operands")
    def forwards_operands(self, *operands: Shape) -> Fault:
        return forwarded_fault(self.shape, operands)

    @constraint("C3", "results must be multiples of the operands along the gathered dimension")
    def has_parts(self, *operands: Shape) -> Fault:
        return parts_fault(self.shape.elements[1], operands, self.dimensions, gathers=True)

    @constraint("C4", "a result must have one part for each device of a group")
    def has_part_per_device(self, *operands: Shape) -> Fault:
        count = part_count(self.shape.elements[1], operands, self.dimensions[0], gathers=True)
        return self.count_fault(count, "the number of parts") if count else HOLDS

    @property
    def started_exchange(self) -> Exchange:
        return Exchange(dimension=self.dimensions[0], splits_result=True)

    def index_map(self, out: Shape, operand: Shape, backward: bool) -> IndexingMap:
        along = self.dimensions[0]
        return (
            whole_to_part(out, operand, along) if backward else part_to_whole(operand, out, along)
        )


@op("all-gather-done", samples=["f32[2,9] all-gather-done((f32[2,3], f32[2,9]) p)"])
class AllGatherDone(Done):
    """Wait for an all-gather and return its result."""


@op(
    "collective-permute-start",
    samples=[
        "(f32[2,3], f32[2,3], u32[], u32[]) collective-permute-start(f32[2,3] p), "
        "source_target_pairs={{0,1},{1,0}}"
    ],
)
class CollectivePermuteStart(CollectiveStart, PermutingCollective):
    """Start a collective-permute."""

    starts: ClassVar[str] = "collective-permute"
    written: ClassVar[tuple[int, ...] | None] = (1,)
    shape: TupleShape = declared(any_shape=True)

    @constraint("C2", "results must have the shapes of the operands, unless slices are sent")
    def permutes_operands(self, *operands: AnyShape) -> Fault:
        results = self.shape.elements[1]
        if self.is_in_place:
            return HOLDS
        if results.compatible(as_result(operands)):
            return forwarded_fault(self.shape, operands)
        return Fault(f"the operands are {TupleShape(operands)}, the results {results}")

    @property
    def started_exchange(self) -> Exchange:
        return Exchange()


@op(
    "collective-permute-done",
    samples=["f32[2,3] collective-permute-done((f32[2,3], f32[2,3], u32[], u32[]) p)"],
)
class CollectivePermuteDone(Done):
    """Wait for a collective-permute and return its result."""


_BUNDLE: Final = "an all-reduce-start whose result is (operands, result, ..) is not analysed"


@op(
    "all-reduce-start",
    samples=["f32[2,3] all-reduce-start(f32[2,3] p), replica_groups={{0,1}}, to_apply=add"],
)
class AllReduceStart(AllReduce):
    """Start an all-reduce; its result is that of the all-reduce."""

    starts: ClassVar[str] = "all-reduce"

    @classmethod
    def why_unsupported(cls, instruction: InstructionLike) -> str:
        shapes = [operand.declared_shape for operand in instruction.operands]
        operands = tuple([shape for shape in shapes if shape is not None])
        own = instruction.declared_shape
        if own is None or not operands or len(operands) < len(shapes):
            return ""
        result = as_result(operands)
        match own:
            case TupleShape((forwarded, started, *_)) if not own.compatible(result):
                is_bundle = started.compatible(result) and (
                    forwarded.compatible(result) or forwarded.compatible(TupleShape(operands))
                )
                return _BUNDLE if is_bundle else ""
            case _:
                return ""


@op("all-reduce-done", samples=["f32[2,3] all-reduce-done(f32[2,3] p)"])
class AllReduceDone(ForwardingOp):
    """Wait for an all-reduce and return its result."""

    has_local_form: ClassVar[bool] = False

    @classmethod
    def why_unsupported(cls, instruction: InstructionLike) -> str:
        own = instruction.declared_shape
        match [operand.declared_shape for operand in instruction.operands]:
            case [TupleShape((_, started, *_)) as whole] if own and not own.compatible(whole):
                return _BUNDLE if started.compatible(own) else ""
            case _:
                return ""

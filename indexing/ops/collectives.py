"""Collectives: the result on one device depends on operands on other devices of its group.

Source: XLA ``docs/operation_semantics.md``, "AllGather", "AllReduce", "AllToAll",
"CollectiveBroadcast", "CollectivePermute", "RaggedAllToAll" and "ReduceScatter".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from hlo.modules.module import Instruction
from hlo.ops.attributes import boolean, computation, int_list
from hlo.ops.op import HOLDS, Fault, attribute, constraint, declared, op
from hlo.ops.protocols import InstructionLike
from hlo.ops.unify import PartialShape, Unranked, may_divide, same_sizes
from hlo.shapes.shape import AnyShape, Shape, TupleShape, leaf_shape, leaves
from indexing.devices.exchange import ANY_ELEMENT, Exchange
from indexing.maps.answers import Path
from indexing.maps.indexing_map import IndexingMap, dims, ranges
from indexing.ops.access_edge import AccessEdge
from indexing.ops.collective_bases import (
    Collective,
    GlobalCollective,
    GroupedCollective,
    OwnAttributes,
    PermutingCollective,
    ReducingCollective,
    as_result,
    every_element_edges,
    exchanged_edge,
)
from indexing.ops.collective_parts import (
    part_count,
    part_to_whole,
    parts_fault,
    whole_to_part,
    with_index,
)
from indexing.ops.ring_shares import (
    reduce_and_gather,
    send_operand,
    send_other_parts,
    send_to_others,
)
from indexing.ops.structured_ops import Summaries


def _inferred_results(
    shape: AnyShape, operands: tuple[AnyShape, ...], dimensions: tuple[int, ...]
) -> AnyShape:
    """The results, refined by the sizes of the operands in all dimensions but `dimensions`."""
    refined = []
    for (_, out), operand in zip(leaves(shape), operands, strict=True):
        others = [k for k in range(len(getattr(out, "dims", ()))) if k not in dimensions]
        refined.append(same_sizes([out, operand], *[[(0, k), (1, k)] for k in others])[0])
    results = tuple([out for out in refined if not isinstance(out, Unranked)])
    return TupleShape(results) if isinstance(shape, TupleShape) else results[0]


@op(
    "all-reduce",
    samples=[
        "f32[2,3] all-reduce(f32[2,3] p), replica_groups={{0,1}}, to_apply=add",
        "(f32[2], f32[3]) all-reduce(f32[2] p, f32[3] q), replica_groups={}, to_apply=add",
    ],
)
class AllReduce(ReducingCollective):
    """``out[i]`` is the reduction of ``operand[i]`` over the devices of the group."""

    separates_arrays: ClassVar[bool] = True
    takes_ragged_groups: ClassVar[bool] = True
    share_sent = staticmethod(reduce_and_gather)
    to_apply: str = attribute(computation)

    def infer_shape(self, *operands: AnyShape) -> AnyShape:
        return as_result(operands)

    def index_map(self, out: Shape, operand: Shape, backward: bool) -> IndexingMap:
        return IndexingMap.identity(out)


def _why_rooted(instruction: InstructionLike) -> str:
    """Return why a collective is not analysed; empty if its root device is fixed."""
    is_chosen = instruction.text_of("has_dynamic_root") == "true"
    return "its root is chosen at run time" if is_chosen else ""


@op(
    "collective-reduce",
    samples=["f32[2,3] collective-reduce(f32[2,3] p), replica_groups={{0,1}}, to_apply=add"],
)
class CollectiveReduce(AllReduce):
    """The reduction of an all-reduce, on one device of the group only."""

    separates_arrays: ClassVar[bool] = False
    share_sent = staticmethod(send_operand)
    has_dynamic_root: bool = attribute(boolean, default=False)

    @classmethod
    def why_unsupported(cls, instruction: InstructionLike) -> str:
        return _why_rooted(instruction)

    def infer_shape(self, *operands: AnyShape) -> AnyShape:
        return as_result(operands[:-1] if self.has_dynamic_root else operands)

    def exchange(self, instruction: Instruction, output: Path, operand: int) -> Exchange:
        return Exchange(grade="may")

    def index_map(self, out: Shape, operand: Shape, backward: bool) -> IndexingMap:
        return Collective.index_map(self, out, operand, backward)


@op(
    "all-gather",
    samples=[
        "f32[2,9] all-gather(f32[2,3] p), replica_groups={{0,1,2}}, dimensions={1}",
        "(f32[4,3], f32[10]) all-gather(f32[2,3] p, f32[5] q), dimensions={0}",
    ],
)
class AllGather(GlobalCollective):
    """``out[.., i, ..] = operand[.., i mod n, ..]`` of the device at position ``i floordiv n``.

    n is the size of the operand along the gathered dimension.
    """

    separates_arrays: ClassVar[bool] = True
    share_sent = staticmethod(send_to_others)
    shape: AnyShape = declared(any_shape=True)
    dimensions: tuple[int, ...] = attribute(int_list)

    @constraint("C1", "results must be multiples of the operands along the gathered dimension")
    def has_parts(self, *operands: Shape) -> Fault:
        return parts_fault(self.shape, operands, self.dimensions, gathers=True)

    @constraint("C2", "a result must have one part for each device of a group")
    def has_part_per_device(self, *operands: Shape) -> Fault:
        count = part_count(self.shape, operands, self.dimensions[0], gathers=True)
        return self.count_fault(count, "the number of parts") if count else HOLDS

    def exchange(self, instruction: Instruction, output: Path, operand: int) -> Exchange:
        return Exchange(dimension=self.dimensions[0], splits_result=True)

    def infer_shape(self, *operands: AnyShape) -> AnyShape:
        return _inferred_results(self.shape, operands, self.dimensions)

    def index_map(self, out: Shape, operand: Shape, backward: bool) -> IndexingMap:
        along = self.dimensions[0]
        return (
            whole_to_part(out, operand, along) if backward else part_to_whole(operand, out, along)
        )


@op(
    "reduce-scatter",
    samples=[
        "f32[2,3] reduce-scatter(f32[2,9] p), replica_groups={{0,1,2}}, dimensions={1}, "
        "to_apply=add"
    ],
)
class ReduceScatter(ReducingCollective):
    """The part of the reduction over the group that belongs to the device's position."""

    separates_arrays: ClassVar[bool] = True
    share_sent = staticmethod(send_other_parts)
    shape: AnyShape = declared(any_shape=True)
    dimensions: tuple[int, ...] = attribute(int_list)
    to_apply: str = attribute(computation)

    @constraint("C1", "operands must be multiples of the results along the scattered dimension")
    def has_parts(self, *operands: Shape) -> Fault:
        return parts_fault(self.shape, operands, self.dimensions, gathers=False)

    @constraint("C2", "an operand must have one part for each device of a group")
    def has_part_per_device(self, *operands: Shape) -> Fault:
        count = part_count(self.shape, operands, self.dimensions[0], gathers=False)
        return self.count_fault(count, "the number of parts") if count else HOLDS

    def exchange(self, instruction: Instruction, output: Path, operand: int) -> Exchange:
        return Exchange(dimension=self.dimensions[0], splits_operand=True)

    def infer_shape(self, *operands: AnyShape) -> AnyShape:
        return _inferred_results(self.shape, operands, self.dimensions)

    def index_map(self, out: Shape, operand: Shape, backward: bool) -> IndexingMap:
        along = self.dimensions[0]
        if backward:
            return part_to_whole(out, operand, along, "may")
        return whole_to_part(operand, out, along, "may")


@op(
    "all-to-all",
    samples=[
        "f32[2,9] all-to-all(f32[2,9] p), replica_groups={{0,1,2}}, dimensions={1}",
        "(f32[2], f32[2]) all-to-all(f32[2] p, f32[2] q), replica_groups={{0,1}}",
    ],
)
class AllToAll(GroupedCollective):
    """Each device sends one part of its operand to each device of the group.

    With `dimensions`, the operand is split along the only dimension into one part for each device.
    Without, there is one operand for each device, and result k comes from the device at position k.
    """

    share_sent = staticmethod(send_other_parts)
    dimensions: tuple[int, ...] = attribute(int_list, default=())
    constrain_layout: bool = attribute(boolean, default=False, in_value=False)

    @constraint("C1", "dimensions must be empty or one dimension of the operand")
    def is_split(self, *operands: Shape) -> Fault:
        if len(self.dimensions) > 1:
            return Fault(
                f"expected at most one dimension, got {len(self.dimensions)}", "dimensions"
            )
        if all(0 <= k < operands[0].rank for k in self.dimensions):
            return HOLDS
        return Fault(f"the operand has rank {operands[0].rank}", "dimensions")

    @constraint("C2", "all operands must have the same shape")
    def is_uniform(self, *operands: Shape) -> Fault:
        for number, operand in enumerate(operands):
            if not operand.compatible(operands[0]):
                shapes = [s.with_layout(None) for s in (operand, operands[0])]
                return Fault(f"operand {number} is {shapes[0]}, operand 0 is {shapes[1]}", number)
        return HOLDS

    @constraint("C3", "without dimensions, there must be one operand for each device of a group")
    def has_operand_per_device(self, *operands: Shape) -> Fault:
        count = len(operands)
        return HOLDS if self.dimensions else self.count_fault(count, "the number of operands")

    @constraint("C4", "the only operand must have equal parts along dimensions, one for a device")
    def has_equal_parts(self, *operands: Shape) -> Fault:
        sizes = [operands[0].dims[k] for k in self.dimensions if len(operands) == 1]
        if all(may_divide(self.group_size, size) for size in sizes):
            return HOLDS
        return Fault(f"the size is {sizes[0]}, a group has {self.group_size} devices", "dimensions")

    def exchange(self, instruction: Instruction, output: Path, operand: int) -> Exchange:
        count = len(instruction.operands)
        if not self.dimensions:
            return Exchange(source=output[0], target=operand, group_size=count)
        if count > 1:
            return ANY_ELEMENT
        return Exchange(dimension=self.dimensions[0], splits_result=True, splits_operand=True)

    def infer_shape(self, *operands: AnyShape) -> AnyShape:
        return operands[0] if self.dimensions else TupleShape(operands)

    def index_map(self, out: Shape, operand: Shape, backward: bool) -> IndexingMap:
        d = dims(out)
        if not self.dimensions:
            return IndexingMap.of(d, d, grade="may")
        along = self.dimensions[0]
        s = ranges(out.dims[along])
        return IndexingMap.of(d, with_index(d, along, s[0]), ranges=s, grade="may")

    def sized_edges(
        self, instruction: Instruction, output: Path, summaries: Summaries
    ) -> Iterator[AccessEdge]:
        out = leaf_shape(instruction.shape, output)
        if isinstance(out, Shape) and out.size:
            index_map = self.index_map(out, out, summaries.backward)
            for number in range(len(instruction.operands)):
                yield exchanged_edge(instruction, number, output, index_map)


@op(
    "collective-broadcast",
    samples=["f32[2,3] collective-broadcast(f32[2,3] p), replica_groups={{1,0}}"],
)
class CollectiveBroadcast(GroupedCollective):
    """``out[i] = operand[i]`` of the first device of the group; zeros on devices in no group."""

    share_sent = staticmethod(send_operand)
    fills_with_zeros: ClassVar[bool] = True
    takes_ragged_groups: ClassVar[bool] = True
    has_dynamic_root: bool = attribute(boolean, default=False)

    @classmethod
    def why_unsupported(cls, instruction: InstructionLike) -> str:
        return _why_rooted(instruction)

    def exchange(self, instruction: Instruction, output: Path, operand: int) -> Exchange:
        return Exchange(source=0)

    def infer_shape(self, *operands: AnyShape) -> AnyShape:
        return as_result(operands[:-1] if self.has_dynamic_root else operands)


@op(
    "collective-permute",
    samples=[
        "f32[2,3] collective-permute(f32[2,3] p), source_target_pairs={{0,1},{1,0}}",
        "(f32[2], f32[3]) collective-permute(f32[2] p, f32[3] q), source_target_pairs={{0,1}}",
    ],
)
class CollectivePermute(PermutingCollective):
    """``out[i] = operand[i]`` of the source device; zeros on a device without a source.

    In the in-place form, the operands are (input, output, input start, output start), and the maps
    over-approximate: any element may be needed.
    """

    separates_arrays: ClassVar[bool] = True
    takes_arrays: ClassVar[bool] = False
    shape: AnyShape = declared(any_shape=True)

    def of_one_array(
        self, instruction: Instruction, output: Path
    ) -> tuple[str, OwnAttributes, int] | None:
        is_in_place = not has_one_to_one_results(instruction)
        return None if is_in_place else PermutingCollective.of_one_array(self, instruction, output)

    def exchange(self, instruction: Instruction, output: Path, operand: int) -> Exchange:
        return Exchange() if has_one_to_one_results(instruction) else ANY_ELEMENT

    def infer_shape(self, *operands: AnyShape) -> AnyShape:
        return self.shape if self.is_in_place else as_result(operands)

    def sized_edges(
        self, instruction: Instruction, output: Path, summaries: Summaries
    ) -> Iterator[AccessEdge]:
        if has_one_to_one_results(instruction):
            yield from Collective.sized_edges(self, instruction, output, summaries)
        else:
            yield from every_element_edges(instruction, output, summaries)


def has_one_to_one_results(instruction: Instruction) -> bool:
    """Return True if the result has the shapes of the operands, so that operand k is result k."""
    operands = tuple([operand.shape for operand in instruction.operands])
    return instruction.shape.compatible(as_result(operands))


@op(
    "ragged-all-to-all",
    samples=[
        "f32[7] ragged-all-to-all(f32[5] p, f32[7] q, s32[2] a, s32[2] b, s32[2] c, s32[2] d), "
        "replica_groups={{0,1}}"
    ],
)
class RaggedAllToAll(GroupedCollective):
    """Slices of operand 0 on all devices, written into operand 1 at runtime offsets.

    The other operands are input offsets, send sizes, output offsets and receive sizes. The maps
    over-approximate: any element may be needed.
    """

    takes_arrays: ClassVar[bool] = False
    min_operands: ClassVar[int] = 6
    max_operands: ClassVar[int | None] = 6

    def exchange(self, instruction: Instruction, output: Path, operand: int) -> Exchange:
        return Exchange(any_element=True)

    def infer_shape(self, *operands: AnyShape) -> AnyShape:
        return operands[1]

    def infer_unranked(self, *operands: PartialShape) -> PartialShape:
        return operands[1]

    def sized_edges(
        self, instruction: Instruction, output: Path, summaries: Summaries
    ) -> Iterator[AccessEdge]:
        yield from every_element_edges(instruction, output, summaries)

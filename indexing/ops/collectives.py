"""Collectives: what a device gives depends on what other devices of its group hold.

Source: XLA ``docs/operation_semantics.md``, "AllGather", "AllReduce", "AllToAll",
"CollectiveBroadcast", "CollectivePermute", "RaggedAllToAll" and "ReduceScatter".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from hlo.modules.module import Instruction
from hlo.ops.attributes import boolean, computation, int_list
from hlo.ops.op import HOLDS, Fault, attribute, constraint, declared, op
from hlo.ops.unify import PartialShape, Unranked, may_be, may_divide, same_sizes
from hlo.shapes.shape import AnyShape, Shape, TupleShape, leaves
from indexing.devices.exchange import ANY_ELEMENT, Exchange
from indexing.maps.answers import Path
from indexing.maps.indexing_map import IndexingMap, dims, ranges
from indexing.ops.access_edge import AccessEdge
from indexing.ops.collective_bases import (
    Collective,
    Global,
    Grouped,
    Permuting,
    Reducing,
    every_part,
    everything_edges,
    modulo,
    replaced_at,
    result_of,
)
from indexing.ops.structure import Barrier
from indexing.ops.structured_ops import Summaries


def _parts_fault(
    shape: AnyShape, operands: tuple[Shape, ...], dimensions: tuple[int, ...], gathers: bool
) -> Fault:
    """The fault of results that are not a whole number of parts along the one dimension."""
    if len(dimensions) != 1:
        return Fault(f"{len(dimensions)} dimensions are given, not one", "dimensions")
    results = [leaf for _, leaf in leaves(shape)]
    if len(results) != len(operands):
        return Fault(f"{len(operands)} operands have {len(results)} results")
    along = dimensions[0]
    for number, (out, operand) in enumerate(zip(results, operands, strict=True)):
        if not isinstance(out, Shape) or not 0 <= along < operand.rank or out.rank != operand.rank:
            return Fault(f"operand {number} has no such dimension", "dimensions")
        whole, part = (out, operand) if gathers else (operand, out)
        pairs = list(zip(part.dims, whole.dims, strict=True))
        others = all(may_be(*pair) for k, pair in enumerate(pairs) if k != along)
        if not others or not may_divide(*pairs[along]):
            return Fault(f"{operand.with_layout(None)} becomes {out.with_layout(None)}", number)
    return HOLDS


def _like_parts(
    shape: AnyShape, operands: tuple[AnyShape, ...], dimensions: tuple[int, ...]
) -> AnyShape:
    """The results with what the operands tell of their sizes, but along the one dimension."""
    found = []
    for (_, out), operand in zip(leaves(shape), operands, strict=True):
        others = [k for k in range(len(getattr(out, "dims", ()))) if k not in dimensions]
        found.append(same_sizes([out, operand], *[[(0, k), (1, k)] for k in others])[0])
    results = tuple([out for out in found if not isinstance(out, Unranked)])
    return TupleShape(results) if isinstance(shape, TupleShape) else results[0]


@op(
    "all-reduce",
    samples=[
        "f32[2,3] all-reduce(f32[2,3] p), replica_groups={{0,1}}, to_apply=add",
        "(f32[2], f32[3]) all-reduce(f32[2] p, f32[3] q), replica_groups={}, to_apply=add",
    ],
)
class AllReduce(Reducing):
    """``out[i]``: the elements i of all devices of the group, reduced."""

    to_apply: str = attribute(computation)

    def infer_shape(self, *operands: AnyShape) -> AnyShape:
        return result_of(operands)

    def index_map(self, out: Shape, operand: Shape, backward: bool) -> IndexingMap:
        return IndexingMap.identity(out)


@op(
    "all-reduce-start",
    samples=["f32[2,3] all-reduce-start(f32[2,3] p), replica_groups={{0,1}}, to_apply=add"],
)
class AllReduceStart(AllReduce):
    """Starts an all-reduce."""


@op(
    "collective-reduce",
    samples=["f32[2,3] collective-reduce(f32[2,3] p), replica_groups={{0,1}}, to_apply=add"],
)
class CollectiveReduce(AllReduce):
    """``out[i]`` as of an all-reduce, but on one device of the group only."""

    def exchange(self, instruction: Instruction, output: Path, operand: int) -> Exchange:
        return Exchange(grade="may")

    def index_map(self, out: Shape, operand: Shape, backward: bool) -> IndexingMap:
        return Collective.index_map(self, out, operand, backward)


@op("all-reduce-done", samples=["f32[2,3] all-reduce-done(f32[2,3] p)"])
class AllReduceDone(Barrier):
    """The result of an all-reduce that was started."""


@op(
    "all-gather",
    samples=[
        "f32[2,9] all-gather(f32[2,3] p), replica_groups={{0,1,2}}, dimensions={1}",
        "(f32[4,3], f32[10]) all-gather(f32[2,3] p, f32[5] q), dimensions={0}",
    ],
)
class AllGather(Global):
    """``out[.., i, ..] = operand[.., i mod n, ..]`` of the device at place ``i floordiv n``."""

    shape: AnyShape = declared(any_shape=True)
    dimensions: tuple[int, ...] = attribute(int_list)

    @constraint("C1", "results are the operands several times over along the one dimension")
    def has_parts(self, *operands: Shape) -> Fault:
        return _parts_fault(self.shape, operands, self.dimensions, gathers=True)

    def exchange(self, instruction: Instruction, output: Path, operand: int) -> Exchange:
        return Exchange(dimension=self.dimensions[0], splits_result=True)

    def infer_shape(self, *operands: AnyShape) -> AnyShape:
        return _like_parts(self.shape, operands, self.dimensions)

    def index_map(self, out: Shape, operand: Shape, backward: bool) -> IndexingMap:
        along = self.dimensions[0]
        return modulo(out, operand, along) if backward else every_part(operand, out, along)


@op(
    "reduce-scatter",
    samples=[
        "f32[2,3] reduce-scatter(f32[2,9] p), replica_groups={{0,1,2}}, dimensions={1}, "
        "to_apply=add"
    ],
)
class ReduceScatter(Reducing):
    """The part of a reduction over all devices that belongs to this device's place."""

    shape: AnyShape = declared(any_shape=True)
    dimensions: tuple[int, ...] = attribute(int_list)
    to_apply: str = attribute(computation)

    @constraint("C1", "operands are the results several times over along the one dimension")
    def has_parts(self, *operands: Shape) -> Fault:
        return _parts_fault(self.shape, operands, self.dimensions, gathers=False)

    def exchange(self, instruction: Instruction, output: Path, operand: int) -> Exchange:
        return Exchange(dimension=self.dimensions[0], splits_operand=True)

    def infer_shape(self, *operands: AnyShape) -> AnyShape:
        return _like_parts(self.shape, operands, self.dimensions)

    def index_map(self, out: Shape, operand: Shape, backward: bool) -> IndexingMap:
        along = self.dimensions[0]
        if backward:
            return every_part(out, operand, along, "may")
        return modulo(operand, out, along, "may")


@op(
    "all-to-all",
    samples=[
        "f32[2,9] all-to-all(f32[2,9] p), replica_groups={{0,1,2}}, dimensions={1}",
        "(f32[2], f32[2]) all-to-all(f32[2] p, f32[2] q), replica_groups={{0,1}}",
    ],
)
class AllToAll(Grouped):
    """Each device gives a part of its operand to each other one.

    Along `dimensions` an array is cut into one part for each device; without, there is an operand
    for each device, and result k comes from the device at place k.
    """

    dimensions: tuple[int, ...] = attribute(int_list, default=())
    constrain_layout: bool = attribute(boolean, default=False)

    @constraint("C1", "dimensions has at most one, which is the operand's")
    def is_cut(self, *operands: Shape) -> Fault:
        if all(0 <= k < operands[0].rank for k in self.dimensions) and len(self.dimensions) <= 1:
            return HOLDS
        return Fault(f"the operand has {operands[0].rank} dimensions", "dimensions")

    @constraint("C2", "all operands have the same shape")
    def is_uniform(self, *operands: Shape) -> Fault:
        for number, operand in enumerate(operands):
            if not operand.compatible(operands[0]):
                shapes = [s.with_layout(None) for s in (operand, operands[0])]
                return Fault(f"operand {number} is {shapes[0]}, operand 0 is {shapes[1]}", number)
        return HOLDS

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
        return IndexingMap.of(d, replaced_at(d, along, s[0]), ranges=s, grade="may")

    def sized_edges(
        self, instruction: Instruction, output: Path, summaries: Summaries
    ) -> Iterator[AccessEdge]:
        out = dict(leaves(instruction.shape))[output]
        if isinstance(out, Shape) and out.size:
            found = self.index_map(out, out, summaries.backward)
            for number in range(len(instruction.operands)):
                yield AccessEdge(number, (), output, (found,))


@op(
    "collective-broadcast",
    samples=["f32[2,3] collective-broadcast(f32[2,3] p), replica_groups={{1,0}}"],
)
class CollectiveBroadcast(Grouped):
    """``out[i] = operand[i]`` of the first device of the group; zeros on devices of no group."""

    gives_zeros: ClassVar[bool] = True

    def exchange(self, instruction: Instruction, output: Path, operand: int) -> Exchange:
        return Exchange(source=0)

    def infer_shape(self, *operands: AnyShape) -> AnyShape:
        return result_of(operands)


@op(
    "collective-permute",
    samples=[
        "f32[2,3] collective-permute(f32[2,3] p), source_target_pairs={{0,1},{1,0}}",
        "(f32[2], f32[3]) collective-permute(f32[2] p, f32[3] q), source_target_pairs={{0,1}}",
    ],
)
class CollectivePermute(Permuting):
    """``out[i] = operand[i]`` of the device that sends to this one; zeros where none does.

    In the form that writes in place, operands are (inputs, outputs, starts of both): there any
    element may be needed.
    """

    takes_arrays: ClassVar[bool] = False
    shape: AnyShape = declared(any_shape=True)

    def exchange(self, instruction: Instruction, output: Path, operand: int) -> Exchange:
        return Exchange() if is_whole(instruction) else ANY_ELEMENT

    def infer_shape(self, *operands: AnyShape) -> AnyShape:
        return self.shape

    def sized_edges(
        self, instruction: Instruction, output: Path, summaries: Summaries
    ) -> Iterator[AccessEdge]:
        if is_whole(instruction):
            yield from Collective.sized_edges(self, instruction, output, summaries)
        else:
            yield from everything_edges(instruction, output, summaries)


def is_whole(instruction: Instruction) -> bool:
    """The result is what the operands are: each goes as a whole into the result of its number."""
    operands = tuple([operand.shape for operand in instruction.operands])
    return instruction.shape.compatible(result_of(operands))


@op(
    "ragged-all-to-all",
    samples=[
        "f32[7] ragged-all-to-all(f32[5] p, f32[7] q, s32[2] a, s32[2] b, s32[2] c, s32[2] d), "
        "replica_groups={{0,1}}"
    ],
)
class RaggedAllToAll(Grouped):
    """Rows of the first operand, as many as sizes say, written into the second one elsewhere."""

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
        yield from everything_edges(instruction, output, summaries)

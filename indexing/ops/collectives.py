"""Collectives: what a device gives depends on what other devices of its group hold.

The maps here relate indices, not devices: an element of the result on one device needs elements at
these indices on some device of its group.  Where the device's place in the group decides which
index it is, the map has all of them and the grade "may".

Source: XLA ``docs/operation_semantics.md``, "AllGather", "AllReduce", "AllToAll",
"CollectiveBroadcast", "CollectivePermute", "RaggedAllToAll" and "ReduceScatter".
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import ClassVar

from hlo.attributes import boolean, computation, int_list, integer, raw
from hlo.module import Instruction
from hlo.op import HOLDS, Fault, attribute, constraint, declared, op
from hlo.shape import AnyShape, Shape, TupleShape, leaves
from hlo.unify import Known, Unranked, may_be, may_divide, same_sizes
from indexing.access import Path
from indexing.leafwise import LeafwiseOp, Summaries
from indexing.map import Grade, IndexingMap, dims, ranges
from indexing.ops.structure import Barrier, Done
from indexing.steps import Step, identity
from simplifier.linear import Affine


def modulo(start: Shape, end: Shape, along: int, grade: Grade = "exact") -> IndexingMap:
    """The index within one device's part of dimension `along`.

    >>> print(modulo(Shape("f32", (6,)), Shape("f32", (2,)), 0))
    (d0) -> (d0 mod 2), domain: d0 in [0, 5]
    """
    d = dims(start)
    return IndexingMap.of(d, _at(d, along, d[along] % end.dims[along]), grade=grade)


def every_part(start: Shape, end: Shape, along: int, grade: Grade = "exact") -> IndexingMap:
    """The same index in the part of each device along dimension `along`.

    >>> print(every_part(Shape("f32", (2,)), Shape("f32", (6,)), 0))
    (d0)[s0] -> (d0 + s0 * 2), domain: d0 in [0, 1], s0 in [0, 2]
    """
    d, size = dims(start), start.dims[along]
    s = ranges(end.dims[along] // size)
    return IndexingMap.of(d, _at(d, along, d[along] + s[0] * size), ranges=s, grade=grade)


def _at(index: tuple[Affine, ...], along: int, value: Affine) -> list[Affine]:
    return [value if k == along else at for k, at in enumerate(index)]


class Collective(LeafwiseOp):
    """An op on all devices of a group; operand k goes into result k, if there are several.

    A kernel needs several devices, so there is none.
    """

    __slots__ = ()
    least: ClassVar[int] = 1
    takes_arrays: ClassVar[bool] = True
    takes_partial: ClassVar[bool] = True

    @abstractmethod
    def index_map(self, out: Shape, operand: Shape, backward: bool) -> IndexingMap:
        """From the result's indices to the operand's, or, if not `backward`, the other way."""

    def steps(self, instruction: Instruction, output: Path, summaries: Summaries) -> Iterator[Step]:
        number = output[0] if output else 0
        out = dict(leaves(instruction.shape))[output]
        operand = instruction.operands[number].shape
        if isinstance(out, Shape) and isinstance(operand, Shape) and out.size:
            found = self.index_map(out, operand, summaries.backward)
            yield Step(number, (), output, (found,))


def everything_steps(
    instruction: Instruction, output: Path, summaries: Summaries
) -> Iterator[Step]:
    """An element of the result may need every element of every operand."""
    out = dict(leaves(instruction.shape))[output]
    for number, operand in enumerate(instruction.operands):
        for path, leaf in leaves(operand.shape):
            yield Step(number, path, output, summaries.everything(out, leaf))


def _result(operands: tuple[AnyShape, ...]) -> AnyShape:
    return operands[0] if len(operands) == 1 else TupleShape(operands)


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
class AllReduce(Collective):
    """``out[i]``: the elements i of all devices of the group, reduced."""

    to_apply: str = attribute(computation)
    replica_groups: str = attribute(raw, default="{}")
    channel_id: int = attribute(integer, default=0)
    use_global_device_ids: bool = attribute(boolean, default=False)
    constrain_layout: bool = attribute(boolean, default=False)

    def infer_shape(self, *operands: AnyShape) -> AnyShape:
        return _result(operands)

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

    def index_map(self, out: Shape, operand: Shape, backward: bool) -> IndexingMap:
        return IndexingMap.identity(out).with_grade("may")


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
class AllGather(Collective):
    """``out[.., i, ..] = operand[.., i mod n, ..]`` of the device at place ``i floordiv n``."""

    shape: AnyShape = declared(any_shape=True)
    dimensions: tuple[int, ...] = attribute(int_list)
    replica_groups: str = attribute(raw, default="{}")
    channel_id: int = attribute(integer, default=0)
    use_global_device_ids: bool = attribute(boolean, default=False)
    constrain_layout: bool = attribute(boolean, default=False)

    @constraint("C1", "results are the operands several times over along the one dimension")
    def has_parts(self, *operands: Shape) -> Fault:
        return _parts_fault(self.shape, operands, self.dimensions, gathers=True)

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
class ReduceScatter(Collective):
    """The part of a reduction over all devices that belongs to this device's place."""

    shape: AnyShape = declared(any_shape=True)
    dimensions: tuple[int, ...] = attribute(int_list)
    to_apply: str = attribute(computation)
    replica_groups: str = attribute(raw, default="{}")
    channel_id: int = attribute(integer, default=0)
    use_global_device_ids: bool = attribute(boolean, default=False)
    constrain_layout: bool = attribute(boolean, default=False)

    @constraint("C1", "operands are the results several times over along the one dimension")
    def has_parts(self, *operands: Shape) -> Fault:
        return _parts_fault(self.shape, operands, self.dimensions, gathers=False)

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
class AllToAll(Collective):
    """Each device gives a part of its operand to each other one.

    Along `dimensions` an array is cut into one part for each device; without, there is an operand
    for each device, and result k comes from the device at place k.
    """

    dimensions: tuple[int, ...] = attribute(int_list, default=())
    replica_groups: str = attribute(raw, default="{}")
    channel_id: int = attribute(integer, default=0)
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

    def infer_shape(self, *operands: AnyShape) -> AnyShape:
        return operands[0] if self.dimensions else TupleShape(operands)

    def index_map(self, out: Shape, operand: Shape, backward: bool) -> IndexingMap:
        d = dims(out)
        if not self.dimensions:
            return IndexingMap.of(d, d, grade="may")
        along = self.dimensions[0]
        s = ranges(out.dims[along])
        return IndexingMap.of(d, _at(d, along, s[0]), ranges=s, grade="may")

    def steps(self, instruction: Instruction, output: Path, summaries: Summaries) -> Iterator[Step]:
        out = dict(leaves(instruction.shape))[output]
        if isinstance(out, Shape) and out.size:
            found = self.index_map(out, out, summaries.backward)
            for number in range(len(instruction.operands)):
                yield Step(number, (), output, (found,))


@op(
    "collective-broadcast",
    samples=["f32[2,3] collective-broadcast(f32[2,3] p), replica_groups={{1,0}}"],
)
class CollectiveBroadcast(Collective):
    """``out[i] = operand[i]`` of the first device of the group; zeros on devices of no group."""

    replica_groups: str = attribute(raw, default="{}")
    channel_id: int = attribute(integer, default=0)

    def infer_shape(self, *operands: AnyShape) -> AnyShape:
        return _result(operands)

    def index_map(self, out: Shape, operand: Shape, backward: bool) -> IndexingMap:
        return IndexingMap.identity(out).with_grade("may")


@op(
    "collective-permute",
    samples=[
        "f32[2,3] collective-permute(f32[2,3] p), source_target_pairs={{0,1},{1,0}}",
        "(f32[2], f32[3]) collective-permute(f32[2] p, f32[3] q), source_target_pairs={{0,1}}",
    ],
)
class CollectivePermute(Collective):
    """``out[i] = operand[i]`` of the device that sends to this one; zeros where none does.

    In the form that writes in place, operands are (inputs, outputs, starts of both): there any
    element may be needed.
    """

    takes_arrays: ClassVar[bool] = False
    shape: AnyShape = declared(any_shape=True)
    source_target_pairs: str = attribute(raw)
    slice_sizes: str = attribute(raw, default="{}")
    channel_id: int = attribute(integer, default=0)

    def infer_shape(self, *operands: AnyShape) -> AnyShape:
        return self.shape

    def index_map(self, out: Shape, operand: Shape, backward: bool) -> IndexingMap:
        return IndexingMap.identity(out).with_grade("may")

    def steps(self, instruction: Instruction, output: Path, summaries: Summaries) -> Iterator[Step]:
        operands = tuple([operand.shape for operand in instruction.operands])
        if instruction.shape.compatible(_result(operands)):
            yield from Collective.steps(self, instruction, output, summaries)
        else:
            yield from everything_steps(instruction, output, summaries)


@op(
    "ragged-all-to-all",
    samples=[
        "f32[7] ragged-all-to-all(f32[5] p, f32[7] q, s32[2] a, s32[2] b, s32[2] c, s32[2] d), "
        "replica_groups={{0,1}}"
    ],
)
class RaggedAllToAll(LeafwiseOp):
    """Rows of the first operand, as many as sizes say, written into the second one elsewhere."""

    least: ClassVar[int] = 6
    most: ClassVar[int | None] = 6
    takes_partial: ClassVar[bool] = True
    replica_groups: str = attribute(raw, default="{}")
    channel_id: int = attribute(integer, default=0)

    def infer_shape(self, *operands: AnyShape) -> AnyShape:
        return operands[1]

    def infer_unranked(self, *operands: Known) -> Known:
        return operands[1]

    def steps(self, instruction: Instruction, output: Path, summaries: Summaries) -> Iterator[Step]:
        yield from everything_steps(instruction, output, summaries)


# ---------------------------------------------------------------- begun and done


class Begun(LeafwiseOp):
    """A collective that was started: ``(operands, results, ..)``."""

    __slots__ = ()
    takes_arrays: ClassVar[bool] = False
    takes_partial: ClassVar[bool] = True
    least: ClassVar[int] = 1
    shape: TupleShape

    @constraint("C1", "the result is a tuple (operands, results, ..)")
    def has_results(self, *operands: AnyShape) -> Fault:
        if isinstance(self.shape, TupleShape) and len(self.shape.elements) >= 2:
            return HOLDS
        return Fault(f"the result is {self.shape}")

    @abstractmethod
    def index_map(self, out: Shape, operand: Shape, backward: bool) -> IndexingMap:
        """As of the collective that is started."""

    def infer_shape(self, *operands: AnyShape) -> AnyShape:
        return self.shape

    def steps(self, instruction: Instruction, output: Path, summaries: Summaries) -> Iterator[Step]:
        begun, results = self.shape.elements[0], self.shape.elements[1]
        operands = _result(tuple([operand.shape for operand in instruction.operands]))
        if output[0] > 1:
            return
        if not begun.compatible(operands) or len(leaves(results)) != len(instruction.operands):
            yield from everything_steps(instruction, output, summaries)
            return
        number = output[1] if len(output) > 1 else 0
        operand, out = instruction.operands[number].shape, dict(leaves(instruction.shape))[output]
        if output[0] == 0:
            yield Step(number, (), output, identity((instruction, output)))
        elif isinstance(out, Shape) and isinstance(operand, Shape) and out.size:
            yield Step(number, (), output, (self.index_map(out, operand, summaries.backward),))


@op(
    "all-gather-start",
    samples=[
        "(f32[2,3], f32[2,9]) all-gather-start(f32[2,3] p), replica_groups={{0,1,2}}, "
        "dimensions={1}",
        "((f32[2], s32[3]), (f32[4], s32[6])) all-gather-start(f32[2] p, s32[3] q), dimensions={0}",
    ],
)
class AllGatherStart(Begun):
    """Starts an all-gather."""

    shape: TupleShape = declared(any_shape=True)
    dimensions: tuple[int, ...] = attribute(int_list)
    replica_groups: str = attribute(raw, default="{}")
    channel_id: int = attribute(integer, default=0)
    use_global_device_ids: bool = attribute(boolean, default=False)
    constrain_layout: bool = attribute(boolean, default=False)

    def index_map(self, out: Shape, operand: Shape, backward: bool) -> IndexingMap:
        along = self.dimensions[0]
        return modulo(out, operand, along) if backward else every_part(operand, out, along)


@op("all-gather-done", samples=["f32[2,9] all-gather-done((f32[2,3], f32[2,9]) p)"])
class AllGatherDone(Done):
    """The result of an all-gather that was started."""


@op(
    "collective-permute-start",
    samples=[
        "(f32[2,3], f32[2,3], u32[], u32[]) collective-permute-start(f32[2,3] p), "
        "source_target_pairs={{0,1},{1,0}}"
    ],
)
class CollectivePermuteStart(Begun):
    """Starts a collective-permute."""

    shape: TupleShape = declared(any_shape=True)
    source_target_pairs: str = attribute(raw)
    slice_sizes: str = attribute(raw, default="{}")
    channel_id: int = attribute(integer, default=0)

    def index_map(self, out: Shape, operand: Shape, backward: bool) -> IndexingMap:
        return IndexingMap.identity(out).with_grade("may")


@op(
    "collective-permute-done",
    samples=["f32[2,3] collective-permute-done((f32[2,3], f32[2,3], u32[], u32[]) p)"],
)
class CollectivePermuteDone(Done):
    """The result of a collective-permute that was started."""

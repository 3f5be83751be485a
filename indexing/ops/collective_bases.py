"""Bases of collectives: what their groups are, and who takes part, in terms of their attributes.

The maps of `Collective.steps` relate indices, not devices: an element of the result on one device
needs elements at these indices on some device of its group.  Where the device's place in the group
decides which index it is, the map has all of them and the grade "may".

Which device it is, and which of its elements, is known once the devices are counted: an op says
with `exchange` and `participants` what moves between which devices, and `indexing.devices` answers.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from hlo.modules.module import Instruction
from hlo.ops.attributes import boolean, enum, integer, raw
from hlo.ops.op import attribute
from hlo.shapes.shape import UNBOUNDED, AnyShape, Shape, TupleShape, leaves
from indexing.devices.devices import MODES, Devices, GroupsError, Mode, group_mode
from indexing.devices.exchange import Exchange, Participants
from indexing.devices.groups import (
    EMPTY_GROUPS,
    ReplicaGroups,
    replica_groups,
    source_target_pairs,
)
from indexing.maps.answers import Path, Unknown
from indexing.maps.indexing_map import Grade, IndexingMap, dims, ranges
from indexing.ops.access_edge import AccessEdge
from indexing.ops.element import ElementRule, OpaqueRule
from indexing.ops.structured_ops import StructuredOp, Summaries
from simplifier.linear import Affine


def modulo(start: Shape, end: Shape, along: int, grade: Grade = "exact") -> IndexingMap:
    """The index within one device's part of dimension `along`.

    >>> print(modulo(Shape("f32", (6,)), Shape("f32", (2,)), 0))
    (d0) -> (d0 mod 2), domain: d0 in [0, 5]
    """
    d = dims(start)
    return IndexingMap.of(d, replaced_at(d, along, d[along] % end.dims[along]), grade=grade)


def every_part(start: Shape, end: Shape, along: int, grade: Grade = "exact") -> IndexingMap:
    """The same index in the part of each device along dimension `along`.

    >>> print(every_part(Shape("f32", (2,)), Shape("f32", (6,)), 0))
    (d0)[s0] -> (d0 + s0 * 2), domain: d0 in [0, 1], s0 in [0, 2]
    """
    d, size = dims(start), start.dims[along]
    s = ranges(end.dims[along] // size)
    return IndexingMap.of(d, replaced_at(d, along, d[along] + s[0] * size), ranges=s, grade=grade)


def replaced_at(index: tuple[Affine, ...], along: int, value: Affine) -> list[Affine]:
    """An index with another value along one dimension."""
    return [value if k == along else at for k, at in enumerate(index)]


class Collective(StructuredOp):
    """An op on all devices of a group; operand k goes into result k, if there are several.

    A kernel needs several devices, so there is none.
    """

    __slots__ = ()
    rule: ClassVar[ElementRule] = OpaqueRule("its values come from other devices")
    has_effect: ClassVar[bool] = True
    min_operands: ClassVar[int] = 1
    takes_arrays: ClassVar[bool] = True
    gives_zeros: ClassVar[bool] = False  # where a device receives nothing; else that is undefined

    def exchange(self, instruction: Instruction, output: Path, operand: int) -> Exchange | None:
        """What comes of an operand into the leaf at `output`; None if it stays on its device."""
        return Exchange()

    @abstractmethod
    def participants(self, devices: Devices) -> Participants:
        """Which devices take part, and in which groups.

        Raises:
            GroupsError: the groups do not fit the devices.
        """

    def index_map(self, out: Shape, operand: Shape, backward: bool) -> IndexingMap:
        """From the result's indices to the operand's, or, if not `backward`, the other way."""
        return IndexingMap.identity(out).with_grade("may")

    def edges(
        self, instruction: Instruction, output: Path, summaries: Summaries
    ) -> Iterator[AccessEdge]:
        shapes = (instruction.shape, *[operand.shape for operand in instruction.operands])
        for _, leaf in leaves(TupleShape(shapes)):
            if isinstance(leaf, Shape) and UNBOUNDED in leaf.dims:
                name = f"{instruction.opcode} `{instruction.name}`"
                why = Unknown(f"{name}: {leaf} has a dimension of unknown size", instruction)
                every = range(len(instruction.operands))
                yield from [AccessEdge(number, (), output, (), why) for number in every]
                return
        yield from self.sized_edges(instruction, output, summaries)

    def sized_edges(
        self, instruction: Instruction, output: Path, summaries: Summaries
    ) -> Iterator[AccessEdge]:
        """`steps` where the sizes of all dimensions are known."""
        number = output[0] if output else 0
        out = dict(leaves(instruction.shape))[output]
        operand = instruction.operands[number].shape
        if isinstance(out, Shape) and isinstance(operand, Shape) and out.size:
            found = self.index_map(out, operand, summaries.backward)
            yield AccessEdge(number, (), output, (found,))


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouped(Collective):
    """A collective among the devices of each group."""

    replica_groups: ReplicaGroups = attribute(  # noqa: RUF009 - a field
        replica_groups, default=EMPTY_GROUPS
    )
    channel_id: int | None = attribute(integer, default=None)

    def participants(self, devices: Devices) -> Participants:
        return Participants.of(devices.groups(self.replica_groups, self.group_mode()))

    def group_mode(self) -> Mode:
        """What the numbers in the groups are.

        Raises:
            GroupsError: the attributes contradict each other.
        """
        return group_mode(self.channel_id is not None, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Global(Grouped):
    """A collective whose groups may name devices, instead of replicas."""

    use_global_device_ids: bool = attribute(boolean, default=False)
    constrain_layout: bool = attribute(boolean, default=False)

    def group_mode(self) -> Mode:
        return group_mode(self.channel_id is not None, self.use_global_device_ids)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reducing(Global):
    """A collective that reduces, whose text may say the mode itself; XLA reads that since 2026."""

    mode: str = attribute(enum(*MODES), default="")

    def group_mode(self) -> Mode:
        if not self.mode:
            return Global.group_mode(self)
        if self.use_global_device_ids and self.mode != "flattened_id":
            raise GroupsError(f"mode={self.mode} contradicts use_global_device_ids=true")
        return MODES[self.mode]


@dataclass(frozen=True, slots=True, kw_only=True)
class Permuting(Collective):
    """A collective in which each device sends to one other, and receives from one other."""

    gives_zeros: ClassVar[bool] = True
    source_target_pairs: tuple[tuple[int, int], ...] = attribute(source_target_pairs)
    slice_sizes: str = attribute(raw, default="{}")
    channel_id: int | None = attribute(integer, default=None)

    def participants(self, devices: Devices) -> Participants:
        mode = group_mode(self.channel_id is not None, None)
        return Participants(devices.pairs(self.source_target_pairs, mode))


def everything_edges(
    instruction: Instruction, output: Path, summaries: Summaries
) -> Iterator[AccessEdge]:
    """An element of the result may need every element of every operand."""
    out = dict(leaves(instruction.shape))[output]
    for number, operand in enumerate(instruction.operands):
        for path, leaf in leaves(operand.shape):
            yield AccessEdge(number, path, output, summaries.everything(out, leaf))


def result_of(operands: tuple[AnyShape, ...]) -> AnyShape:
    """One operand, or all of them as a tuple."""
    return operands[0] if len(operands) == 1 else TupleShape(operands)

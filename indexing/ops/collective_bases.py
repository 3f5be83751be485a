"""Bases of collectives: their groups and participants, from their attributes.

The maps of `Collective.edges` relate indices, not devices: an element of the result on one device
needs elements at these indices on some device of its group. If the index depends on the device's
position in the group, the map has the indices of all positions and the grade "may".

Maps between devices need the number of devices. An op describes with `exchange` and `participants`
the elements that move between devices; `indexing.devices` makes maps from these two.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Final, TypeAlias

from hlo.modules.module import Instruction, Module
from hlo.ops.attributes import boolean, enum, integer, raw
from hlo.ops.op import HOLDS, Fault, Signature, attribute, constraint, signature
from hlo.shapes.shape import AnyShape, Shape, TupleShape, leaf_shape, leaves, unbounded_leaf
from indexing.devices.devices import MODES, Devices, GroupMode, GroupsError, group_mode
from indexing.devices.exchange import Exchange, Participants
from indexing.devices.groups import (
    EMPTY_GROUPS,
    GroupList,
    IotaGroups,
    ReplicaGroups,
    replica_groups,
    source_target_pairs,
)
from indexing.maps.answers import Path, Unknown
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.reasons import Reason
from indexing.ops.access_edge import AccessEdge
from indexing.ops.element import ElementRule, OpaqueRule, Work, bounded_count, no_work
from indexing.ops.ring_shares import send_operand
from indexing.ops.structured_ops import StructuredOp, Summaries

_GROUPS: Final = frozenset(
    ["replica_groups", "mode", "use_global_device_ids", "source_target_pairs"]
)
"""Attributes that, with the channel and the number of devices, denote the groups."""

IGNORED: Final = "the applied computation may ignore the operands of some devices"
SENT: Final = "the elements that are sent depend on runtime values"


OwnAttributes: TypeAlias = tuple[tuple[str, Hashable], ...]


class Collective(StructuredOp):
    """An op on all devices of a group; operand k contributes to result k of a tuple.

    A collective has no kernel, because a kernel runs on one device.

    Class attributes:
        fills_with_zeros: the result is zero on a device that receives nothing; otherwise it is
            undefined there.
        separates_arrays: result k is the result of this collective of operand k alone.
        starts: the opcode of the collective that the op starts; "" if it starts none.
    """

    __slots__ = ()
    has_local_form: ClassVar[bool] = False
    rule: ClassVar[ElementRule] = OpaqueRule("values are received from other devices")
    work = no_work
    has_effect: ClassVar[bool] = True
    min_operands: ClassVar[int] = 1
    takes_arrays: ClassVar[bool] = True
    fills_with_zeros: ClassVar[bool] = False
    separates_arrays: ClassVar[bool] = False
    starts: ClassVar[str] = ""

    def of_one_array(
        self, instruction: Instruction, output: Path
    ) -> tuple[str, OwnAttributes, int] | None:
        """Opcode, attributes and operand of the collective of one array that a leaf is, if any."""
        if not self.separates_arrays:
            return None
        own = tuple(sorted(self.value_attributes(instruction).items()))
        return self.starts or self.opcode, own, output[0] if output else 0

    def exchange(self, instruction: Instruction, output: Path, operand: int) -> Exchange | None:
        """The movement from an operand to the leaf at `output`; None if nothing leaves a device."""
        return Exchange()

    @staticmethod
    def share_sent(devices: int) -> Fraction | None:
        """The bytes that a device sends at most, in terms of its operands'; None if unknown."""
        return None

    @abstractmethod
    def participants(self, devices: Devices) -> Participants:
        """Return the participating devices by group.

        Raises:
            GroupsError: the groups do not fit the devices.
        """

    def value_attributes(self, instruction: Any) -> dict[str, Hashable]:
        """Return the devices of each group in place of the attributes that denote them."""
        values = StructuredOp.value_attributes(self, instruction)
        try:
            pairs = self.participants(Devices.of(instruction.module)).pairs
        except GroupsError:
            return values | {"has_channel": getattr(self, "channel_id", None) is not None}
        own = {name: value for name, value in values.items() if name not in _GROUPS}
        return own | {"pairs": tuple(sorted(pairs))}

    def index_map(self, out: Shape, operand: Shape, backward: bool) -> IndexingMap:
        """The map from result to operand indices; in the opposite direction if not `backward`."""
        return IndexingMap.identity(out).with_grade("may")

    def edges(
        self, instruction: Instruction, output: Path, summaries: Summaries
    ) -> Iterator[AccessEdge]:
        leaf = _unbounded_leaf(instruction)
        if leaf is None:
            yield from self.sized_edges(instruction, output, summaries)
            return
        name = f"{instruction.opcode} `{instruction.name}`"
        unknown = Unknown(f"{name}: {leaf} has a dimension of unknown size", instruction)
        for number in range(len(instruction.operands)):
            yield AccessEdge(number, (), output, (), unknown)

    def sized_edges(
        self, instruction: Instruction, output: Path, summaries: Summaries
    ) -> Iterator[AccessEdge]:
        """The edges, if the sizes of all dimensions are known."""
        number = output[0] if output else 0
        out = leaf_shape(instruction.shape, output)
        operand = instruction.operands[number].shape
        if isinstance(out, Shape) and isinstance(operand, Shape) and out.size and operand.size:
            index_map = self.index_map(out, operand, summaries.backward)
            yield exchanged_edge(instruction, number, output, index_map)


def _unbounded_leaf(instruction: Instruction) -> Shape | None:
    """Return the first array of a collective with a dimension of unknown size, or None."""
    return instruction.module.memoised(
        (_unbounded_leaf, instruction),
        lambda: unbounded_leaf(*[value.shape for value in (instruction, *instruction.operands)]),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupedCollective(Collective):
    """A collective among the devices of each group in `replica_groups`.

    Class attributes:
        takes_ragged_groups: the groups may have different sizes.

    Source of the constraints: XLA ``xla/service/hlo_verifier.cc``, ``CheckReplicaGroups``.
    """

    takes_ragged_groups: ClassVar[bool] = False
    replica_groups: ReplicaGroups = attribute(  # noqa: RUF009 - a field
        replica_groups, default=EMPTY_GROUPS
    )
    channel_id: int | None = attribute(integer, default=None, in_value=False)

    @constraint("C11", "groups must be disjoint, and of one size if arrays are split")
    def has_valid_groups(self, *operands: AnyShape) -> Fault:
        # other forms than lists are partitions into equal groups
        groups = self.replica_groups.lists() if isinstance(self.replica_groups, GroupList) else ()
        seen: set[int] = set()
        for device in (device for group in groups for device in group):
            if device in seen:
                return Fault(f"{device} appears twice", "replica_groups")
            seen.add(device)
        sizes = sorted(set(map(len, groups)))
        if self.takes_ragged_groups or len(sizes) < 2:
            return HOLDS
        return Fault(f"the sizes are {', '.join(map(str, sizes))}", "replica_groups")

    @property
    def group_size(self) -> int:
        """The size of a group, in replicas, partitions or devices; 1 if no groups are given."""
        groups = self.replica_groups
        if isinstance(groups, IotaGroups):
            return groups.dims[-1]
        return max(map(len, groups.lists()), default=1)

    def count_fault(self, count: int, counted: str) -> Fault:
        """The fault of `count` parts or operands if the size of the groups requires others."""
        size = self.group_size
        if size <= 1 or count == size or (count % size == 0 and self._has_all_partitions()):
            return HOLDS
        return Fault(f"the groups have {size} devices, but {counted} is {count}", "replica_groups")

    def _has_all_partitions(self) -> bool:
        """True if groups list replicas and contain all their partitions, which are not known."""
        try:
            return self.group_mode() == "cross replica and partition"
        except GroupsError:  # the queries with devices give the reason
            return True

    def participants(self, devices: Devices) -> Participants:
        return Participants.of(devices.groups(self.replica_groups, self.group_mode()))

    def group_mode(self) -> GroupMode:
        """The meaning of the numbers in the groups: replicas, partitions or devices.

        Raises:
            GroupsError: the attributes contradict each other.
        """
        return group_mode(self.channel_id is not None, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class GlobalCollective(GroupedCollective):
    """A collective whose groups may list global device ids instead of replicas."""

    use_global_device_ids: bool = attribute(boolean, default=False)
    constrain_layout: bool = attribute(boolean, default=False, in_value=False)

    def group_mode(self) -> GroupMode:
        return group_mode(self.channel_id is not None, self.use_global_device_ids)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReducingCollective(GlobalCollective):
    """A collective with a reduction; `mode` sets the group mode explicitly (XLA since 2026)."""

    accumulates: ClassVar[bool] = True
    mode: str = attribute(enum(*MODES), default="")

    @signature("to_apply")
    def reduces(self, *operands: Shape) -> Signature:
        return Signature.reducer(totals=operands[:1], values=operands[:1])

    def work(
        self, out: AnyShape, operands: tuple[AnyShape, ...], applied: tuple[Work, ...]
    ) -> Work | Unknown:
        """One application of the computation for each element, as for two devices."""
        sizes = [leaf.size for _, leaf in leaves(out) if isinstance(leaf, Shape)]
        return applied[0].times(sum(sizes))

    def applications(self, out: AnyShape, operands: tuple[AnyShape, ...]) -> int:
        return bounded_count(out)

    def group_mode(self) -> GroupMode:
        if not self.mode:
            return GlobalCollective.group_mode(self)
        if self.use_global_device_ids and self.mode != "flattened_id":
            raise GroupsError(f"mode={self.mode} contradicts use_global_device_ids=true")
        return MODES[self.mode]

    def needs_every_device(self, instruction: Instruction, summaries: Summaries) -> bool:
        """Return True if the result certainly depends on the operands of all devices.

        The order of the reduction is undefined.  A computation that ignores one of its two
        parameters gives the operand of an unknown device.
        """
        (called,) = instruction.called_computations
        if len(called.parameters) != 2 or not isinstance(called.root.shape, Shape):
            return False
        return summaries.parameters_read(called, 0) == {0: "exact", 1: "exact"}

    def sized_edges(
        self, instruction: Instruction, output: Path, summaries: Summaries
    ) -> Iterator[AccessEdge]:
        is_certain = self.needs_every_device(instruction, summaries)
        for edge in GlobalCollective.sized_edges(self, instruction, output, summaries):
            if not is_certain:
                edge = edge.over_approximate(Reason(IGNORED, instruction))
            yield edge


@dataclass(frozen=True, slots=True, kw_only=True)
class PermutingCollective(Collective):
    """A collective in which each device sends to at most one device, and receives from at most one.

    Source: XLA ``docs/operation_semantics.md``, "CollectivePermute".
    """

    fills_with_zeros: ClassVar[bool] = True
    share_sent = staticmethod(send_operand)
    source_target_pairs: tuple[tuple[int, int], ...] = attribute(source_target_pairs)
    slice_sizes: str = attribute(raw, default="{}")
    channel_id: int | None = attribute(integer, default=None, in_value=False)

    @constraint("C11", "a device may send once and receive once, unless slices are sent")
    def pairs_devices_once(self, *operands: AnyShape) -> Fault:
        for side, name in enumerate(("source", "target")):
            times = Counter([pair[side] for pair in self.source_target_pairs])
            twice = [device for device, n in times.items() if n > 1]
            if twice and not self.is_in_place:
                return Fault(f"{name} {twice[0]} appears twice", "source_target_pairs")
        return HOLDS

    @constraint("C12", "the operands must be arrays, unless slices are sent")
    def permutes_arrays(self, *operands: AnyShape) -> Fault:
        for number, operand in enumerate(operands):
            if not self.is_in_place and not isinstance(operand, Shape):
                return Fault(f"operand {number} is {operand}", number)
        return HOLDS

    @property
    def is_in_place(self) -> bool:
        """True if slices are sent: operands are (input, output, input start, output start)."""
        return self.slice_sizes != "{}"

    def participants(self, devices: Devices) -> Participants:
        mode = group_mode(self.channel_id is not None, None)
        return Participants(devices.pairs(self.source_target_pairs, mode))

    def reaches_every_device(self, module: Module) -> bool:
        """Return True if each device of a module receives, so that none fills in zeros."""
        try:
            devices = Devices.of(module)
            pairs = self.participants(devices).pairs
        except GroupsError:
            return False
        targets = {device for target, _ in pairs for device in target}
        return devices.count > 1 and len(targets) == devices.count


def exchanged_edge(
    instruction: Instruction, operand: int, output: Path, index_map: IndexingMap
) -> AccessEdge:
    """Return the edge of a collective on one device, whose map is `index_map`."""
    reasons: tuple[Reason, ...] = ()
    op = instruction.op
    if isinstance(op, PermutingCollective) and op.reaches_every_device(instruction.module):
        index_map = index_map.with_grade("exact")
    if index_map.grade == "may":
        reasons = (Reason("the elements that a device receives depend on the device", instruction),)
    return AccessEdge(operand, (), output, (index_map,), None, reasons)


def every_element_edges(
    instruction: Instruction, output: Path, summaries: Summaries
) -> Iterator[AccessEdge]:
    """Edges of grade "may" from an array of the result to every element of every operand."""
    out = leaf_shape(instruction.shape, output)
    reason = Reason(SENT, instruction)
    for number, operand in enumerate(instruction.operands):
        for path, leaf in leaves(operand.shape):
            maps = summaries.everything(out, leaf)
            yield AccessEdge(number, path, output, maps, None, (reason,))


def as_result(operands: tuple[AnyShape, ...]) -> AnyShape:
    """The shape of the only operand, or the tuple of all operand shapes."""
    return operands[0] if len(operands) == 1 else TupleShape(operands)

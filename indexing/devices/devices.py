"""`Devices`: the devices that run a module, and the device groups of its collectives.

A module runs on ``num_replicas × num_partitions`` devices.  Device ``r · num_partitions + p`` runs
partition p of replica r.  The first dimension of a map between devices is ``device``.

The attributes ``channel_id`` and ``use_global_device_ids`` define the meaning of the IDs in
``replica_groups``:

| channel | global | mode | the IDs are | devices of a group |
|---|---|---|---|---|
| no  | no  | cross replica               | replicas   | these replicas, once for each partition |
| yes | no such attribute | cross partition | partitions | these partitions, once for each replica |
| yes | no  | cross replica and partition | replicas   | all partitions of these replicas        |
| yes | yes | flattened id                | devices    | these devices                           |

Source: XLA ``xla/service/collective_ops_utils.h``, ``CollectiveOpGroupMode`` and
``GetParticipatingDevicesGroups``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from hlo.arguments import checked, checked_constructor
from hlo.modules.module import Module
from hlo.modules.shardings import declared_partitions
from hlo.shardings.mesh import MAX_DEVICES
from hlo.text.names import counted_noun
from hlo.text.source import HloError
from indexing.devices.groups import EMPTY_GROUPS, DeviceGroup, ReplicaGroups
from indexing.maps.indexing_map import DEVICE, Extents, IndexingMap, dims
from indexing.maps.runtime_variable import RuntimeVariable
from simplifier.atoms import Variable
from simplifier.linear import Affine

GroupMode: TypeAlias = Literal[
    "cross replica", "cross partition", "cross replica and partition", "flattened id"
]

MODES: Final[Mapping[str, GroupMode]] = {
    "cross_replica": "cross replica",
    "cross_partition": "cross partition",
    "cross_replica_and_partition": "cross replica and partition",
    "flattened_id": "flattened id",
}
"""The modes by their names in HLO text."""


class GroupsError(ValueError):
    """Replica groups or source-target pairs that are not valid for the devices."""


@checked_constructor
@dataclass(frozen=True, slots=True)
class Devices:
    """The devices that run a module: `num_replicas` times `num_partitions`.

    Args:
        num_replicas: number of replicas, at least 1.
        num_partitions: number of partitions of each replica, at least 1.
    Raises:
        ValueError: a count is less than 1, or their product exceeds `MAX_DEVICES`.
    Source: XLA ``xla/service/collective_ops_utils.h``, ``CollectiveOpGroupMode``.

    >>> devices = Devices(num_partitions=4)
    >>> print(devices.lift(IndexingMap.over((6,), lambda d: [5 - d[0]])))
    (device, d0) -> (device, -d0 + 5), domain: device in [0, 3], d0 in [0, 5]
    """

    num_replicas: int = 1
    num_partitions: int = 1

    def __post_init__(self) -> None:
        if min(self.num_replicas, self.num_partitions) < 1 or self.count > MAX_DEVICES:
            raise ValueError(
                f"{self}: expected at least one replica, at least one partition and at most "
                f"{MAX_DEVICES} devices"
            )

    @classmethod
    @checked
    def of(
        cls, module: Module, num_replicas: int | None = None, num_partitions: int | None = None
    ) -> Devices:
        """Return the devices that run a module.

        The module header gives a count that is None; without header attribute, the number of
        partitions is that of Shardy's mesh if the module has manual regions, and a count is 1
        otherwise.

        Args:
            module: the module.
            num_replicas: overrides ``replica_count`` of the header.
            num_partitions: overrides ``num_partitions`` of the header.
        Raises:
            ValueError: a count is less than 1, or their product exceeds `MAX_DEVICES`.
            HloError: the same, and the header gives one of the counts.

        >>> from hlo import parse
        >>> Devices.of(parse("HloModule m, num_partitions=8 ENTRY e { p = f32[] parameter(0) }"))
        Devices(num_replicas=1, num_partitions=8)
        """
        given = {"replica_count": num_replicas, "num_partitions": num_partitions}
        counts = [module.header(k, 1) if count is None else count for k, count in given.items()]
        if num_partitions is None and "num_partitions" not in module.attributes:
            counts[1] = declared_partitions(module)
        try:
            return cls(*counts)
        except ValueError as error:
            texts = [module.attributes.get(k) for k, count in given.items() if count is None]
            span = next((text.span for text in texts if text is not None), None)
            if span is None:
                raise
            raise HloError(str(error), span, "attribute") from error

    @property
    def count(self) -> int:
        """Number of devices.

        >>> Devices(num_replicas=2, num_partitions=3).count
        6
        """
        return self.num_replicas * self.num_partitions

    @property
    def variable(self) -> Variable:
        """The dimension ``device``, with bounds ``[0, count - 1]``.

        >>> device = Devices(num_replicas=2, num_partitions=3).variable
        >>> device.name, device.lower, device.upper
        ('device', 0, 5)
        """
        return Variable(DEVICE, 0, self.count - 1)

    def __str__(self) -> str:
        replicas = counted_noun(self.num_replicas, "replica")
        return f"{replicas} of {counted_noun(self.num_partitions, 'partition')}"

    # ------------------------------------------------------------ maps

    @checked
    def dims(self, extents: Extents) -> tuple[Variable, ...]:
        """Dimensions ``device, d0, d1, …`` of an array with these extents on each device.

        >>> [f"{v.name} <= {v.upper}" for v in Devices(num_partitions=4).dims((6, 2))]
        ['device <= 3', 'd0 <= 5', 'd1 <= 1']
        """
        return (self.variable, *dims(extents))

    @checked
    def identity(self, extents: Extents) -> IndexingMap:
        """Return the map of each element of an array on each device to itself.

        >>> print(Devices(num_partitions=4).identity((6,)))
        (device, d0) -> (device, d0), domain: device in [0, 3], d0 in [0, 5]
        """
        variables = self.dims(extents)
        return IndexingMap.of(variables, variables)

    @checked
    def lift(self, indexing_map: IndexingMap) -> IndexingMap:
        """Return `indexing_map` with ``device`` as the first dimension and the first result.

        The source of a runtime variable is read on the same device: ``device`` also becomes the
        first coordinate of its element.
        """
        device = self.variable.as_expr()
        return IndexingMap.of(
            (self.variable, *indexing_map.dims),
            (device, *indexing_map.results),
            ranges=indexing_map.ranges,
            runtime=[_read_on(rt, self.variable) for rt in indexing_map.runtime],
            constraints=indexing_map.constraints,
            grade=indexing_map.grade,
        )

    @checked
    def replica_id(self, device: Affine) -> Affine:
        """Replica ID of a device.

        >>> devices = Devices(num_replicas=2, num_partitions=3)
        >>> [devices.replica_id(device) for device in range(6)]
        [0, 0, 0, 1, 1, 1]
        """
        return device // self.num_partitions

    @checked
    def partition_id(self, device: Affine) -> Affine:
        """Partition ID of a device.

        >>> devices = Devices(num_replicas=2, num_partitions=3)
        >>> [devices.partition_id(device) for device in range(6)]
        [0, 1, 2, 0, 1, 2]
        >>> devices.partition_id(devices.variable.as_expr())
        Expr('device mod 3')
        """
        return device % self.num_partitions

    # ------------------------------------------------------------ groups

    @checked
    def groups(self, groups: ReplicaGroups, mode: GroupMode) -> tuple[DeviceGroup, ...]:
        """Return the device groups that `groups` denote in `mode`, in the order of the IDs.

        Empty `groups` denote one group of all replicas or partitions.

        >>> from indexing.devices.groups import GroupList
        >>> Devices(num_replicas=4, num_partitions=2).groups(GroupList(((0, 2),)), "cross replica")
        ((0, 4), (1, 5))

        Raises:
            GroupsError: an ID is out of range or appears twice, or `groups` are empty in mode
                "flattened id".
        Source: XLA ``xla/service/collective_ops_utils.h``, ``GetParticipatingDevicesGroups``.
        """
        if groups == EMPTY_GROUPS and mode == "flattened id":
            raise GroupsError("use_global_device_ids=true requires non-empty replica_groups")
        given = groups.lists() or (tuple(range(self._id_limit(mode)[0])),)
        self._check([number for group in given for number in group], mode)
        replicas, partitions = range(self.num_replicas), range(self.num_partitions)
        match mode:
            case "cross replica":
                return tuple([self._devices(g, [p]) for g in given for p in partitions])
            case "cross partition":
                return tuple([self._devices([r], g) for g in given for r in replicas])
            case "cross replica and partition":
                return tuple([self._devices(g, partitions) for g in given])
            case "flattened id":
                return given

    @checked
    def pairs(
        self, pairs: Iterable[tuple[int, int]], mode: GroupMode
    ) -> tuple[tuple[DeviceGroup, DeviceGroup], ...]:
        """Return ``(target,), (source,)`` for each pair of devices that `pairs` denote in `mode`.

        Args:
            pairs: ``(source, target)`` IDs: partitions in mode "cross partition", else replicas.
            mode: the meaning of the IDs.

        >>> Devices(num_replicas=2, num_partitions=2).pairs([(0, 1)], "cross replica")
        (((2,), (0,)), ((3,), (1,)))

        Raises:
            GroupsError: an ID is out of range, or a target appears twice.
        """
        given = list(pairs)
        self._check([target for _, target in given], mode)
        for source, _ in given:
            self._check([source], mode)
        device_pairs: list[tuple[DeviceGroup, DeviceGroup]] = []
        for source, target in given:
            if mode == "cross partition":
                both = [
                    (self._devices([r], [target]), self._devices([r], [source]))
                    for r in range(self.num_replicas)
                ]
            else:
                both = [
                    (self._devices([target], [p]), self._devices([source], [p]))
                    for p in range(self.num_partitions)
                ]
            device_pairs += both
        return tuple(device_pairs)

    def _check(self, numbers: Sequence[int], mode: GroupMode) -> None:
        """Raise `GroupsError` unless all IDs are in range and different."""
        limit, kind = self._id_limit(mode)
        if max(numbers, default=0) >= limit:
            count = "num_partitions" if mode == "cross partition" else "num_replicas"
            header = "replica_count" if count == "num_replicas" else count
            raise GroupsError(
                f"{kind} {max(numbers)} does not exist in {self}: set {header} in the module "
                f"header or pass {count}"
            )
        if len(set(numbers)) < len(numbers):
            repeated = next(number for number, n in Counter(numbers).items() if n > 1)
            raise GroupsError(f"{kind} {repeated} appears twice")

    def _id_limit(self, mode: GroupMode) -> tuple[int, str]:
        """Number of valid IDs in this mode, and the kind of the IDs."""
        match mode:
            case "cross partition":
                return self.num_partitions, "partition"
            case "flattened id":
                return self.count, "device"
            case _:
                return self.num_replicas, "replica"

    def _devices(self, replicas: Iterable[int], partitions: Sequence[int]) -> DeviceGroup:
        return tuple([r * self.num_partitions + p for r in replicas for p in partitions])


def group_mode(has_channel: bool, use_global_device_ids: bool | None) -> GroupMode:
    """Return the mode of a collective's groups.

    Args:
        has_channel: the instruction has a ``channel_id``.
        use_global_device_ids: the attribute; None if the op has no such attribute.
    Raises:
        GroupsError: ``use_global_device_ids`` without a channel.
    Source: XLA ``xla/service/collective_ops_utils.h``, ``GetCollectiveOpGroupMode``.
    """
    if not has_channel:
        if use_global_device_ids:
            raise GroupsError("use_global_device_ids=true requires channel_id")
        return "cross replica"
    if use_global_device_ids is None:
        return "cross partition"
    return "flattened id" if use_global_device_ids else "cross replica and partition"


def _read_on(rt: RuntimeVariable, device: Variable) -> RuntimeVariable:
    return replace(rt, index=(*rt.iterations, device.as_expr(), *rt.element))

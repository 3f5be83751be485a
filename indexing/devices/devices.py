"""`Devices`: how many run a module, and which of them form the groups of a collective.

A module runs on ``num_replicas × num_partitions`` devices; device ``r · num_partitions + p`` runs
replica r of partition p.  Maps have them as the first dimension, ``device``.

What the numbers in ``replica_groups`` are depends on ``channel_id`` and ``use_global_device_ids``:

| channel | global | mode | the numbers are | a group of the module |
|---|---|---|---|---|
| no  | no  | cross replica               | replicas   | these replicas, once for each partition |
| yes | not an attribute | cross partition | partitions | these partitions, once for each replica |
| yes | no  | cross replica and partition | replicas   | all partitions of these replicas        |
| yes | yes | flattened id                | devices    | these devices                           |

Source: XLA ``xla/service/collective_ops_utils.h``, ``CollectiveOpGroupMode`` and
``GetParticipatingDevicesGroups``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from hlo.modules.module import Module
from indexing.devices.groups import EMPTY_GROUPS, MAX_DEVICES, DeviceGroup, ReplicaGroups
from indexing.maps.indexing_map import Extents, IndexingMap, dims
from indexing.maps.runtime_variable import RuntimeVariable
from simplifier.atoms import Variable
from simplifier.linear import Affine

Mode: TypeAlias = Literal[
    "cross replica", "cross partition", "cross replica and partition", "flattened id"
]

MODES: Final[Mapping[str, Mode]] = {
    "cross_replica": "cross replica",
    "cross_partition": "cross partition",
    "cross_replica_and_partition": "cross replica and partition",
    "flattened_id": "flattened id",
}
"""The modes by their names in text."""

NAME: Final = "device"
"""What the dimension of devices is called."""


class GroupsError(ValueError):
    """Groups that do not fit the devices; the message says why, and what to write instead."""


@dataclass(frozen=True, slots=True)
class Devices:
    """The devices that run a module.

    >>> devices = Devices(num_partitions=4)
    >>> print(devices.lift(IndexingMap.over((6,), lambda d: [5 - d[0]])))
    (device, d0) -> (device, -d0 + 5), domain: device in [0, 3], d0 in [0, 5]

    Raises:
        ValueError: there is no device, or there are more than `MAX_DEVICES`.
    """

    num_replicas: int = 1
    num_partitions: int = 1

    def __post_init__(self) -> None:
        least = min(self.num_replicas, self.num_partitions)
        if least < 1 or self.count > MAX_DEVICES:
            raise ValueError(
                f"{self}: expected at least one of each, and at most {MAX_DEVICES} devices"
            )

    @classmethod
    def of(
        cls, module: Module, num_replicas: int | None = None, num_partitions: int | None = None
    ) -> Devices:
        """Those that the module's header counts, one where it says nothing; or as many as given.

        >>> from hlo import parse
        >>> Devices.of(parse("HloModule m, num_partitions=8 ENTRY e { p = f32[] parameter(0) }"))
        Devices(num_replicas=1, num_partitions=8)
        """
        return cls(
            module.header("replica_count", 1) if num_replicas is None else num_replicas,
            module.header("num_partitions", 1) if num_partitions is None else num_partitions,
        )

    @property
    def count(self) -> int:
        """How many there are."""
        return self.num_replicas * self.num_partitions

    @property
    def variable(self) -> Variable:
        """The dimension ``device``."""
        return Variable(NAME, 0, self.count - 1)

    def __str__(self) -> str:
        replicas = _counted(self.num_replicas, "replica")
        return f"{replicas} of {_counted(self.num_partitions, 'partition')}"

    # ------------------------------------------------------------ maps

    def dims(self, extents: Extents) -> tuple[Variable, ...]:
        """``device, d0, d1, …``."""
        return (self.variable, *dims(extents))

    def identity(self, extents: Extents) -> IndexingMap:
        """Each element on each device to itself."""
        variables = self.dims(extents)
        return IndexingMap.of(variables, variables)

    def lift(self, found: IndexingMap) -> IndexingMap:
        """A map between elements as one between elements of the same device.

        A runtime variable is read there too: the first coordinate of its index is the device.
        """
        device = self.variable.as_expr()
        return IndexingMap.of(
            (self.variable, *found.dims),
            (device, *found.results),
            ranges=found.ranges,
            runtime=[_read_on(rt, self.variable) for rt in found.runtime],
            constraints=found.constraints,
            grade=found.grade,
        )

    def replica_id(self, device: Affine) -> Affine:
        """The replica that a device runs."""
        return device // self.num_partitions

    def partition_id(self, device: Affine) -> Affine:
        """The partition that a device runs."""
        return device % self.num_partitions

    # ------------------------------------------------------------ groups

    def groups(self, groups: ReplicaGroups, mode: Mode) -> tuple[DeviceGroup, ...]:
        """The groups of devices that `groups` means, each in order of place.

        >>> from indexing.devices.groups import GroupList
        >>> Devices(num_replicas=4, num_partitions=2).groups(GroupList(((0, 2),)), "cross replica")
        ((0, 4), (1, 5))

        Raises:
            GroupsError: they name a device that there is not, or one twice.
        """
        if groups == EMPTY_GROUPS and mode == "flattened id":
            raise GroupsError(
                "groups that name devices by use_global_device_ids=true cannot be left out"
            )
        said = groups.lists() or (tuple(range(self._numbered(mode)[0])),)
        self._check([number for group in said for number in group], mode)
        replicas, partitions = range(self.num_replicas), range(self.num_partitions)
        match mode:
            case "cross replica":
                return tuple([self._devices(g, [p]) for g in said for p in partitions])
            case "cross partition":
                return tuple([self._devices([r], g) for g in said for r in replicas])
            case "cross replica and partition":
                return tuple([self._devices(g, partitions) for g in said])
            case "flattened id":
                return said

    def pairs(
        self, pairs: Iterable[tuple[int, int]], mode: Mode
    ) -> tuple[tuple[DeviceGroup, DeviceGroup], ...]:
        """``(target,), (source,)`` for each pair of devices that `pairs` means.

        >>> Devices(num_replicas=2, num_partitions=2).pairs([(0, 1)], "cross replica")
        (((2,), (0,)), ((3,), (1,)))

        Raises:
            GroupsError: they name a device that there is not, or one as a target twice.
        """
        given = list(pairs)
        self._check([target for _, target in given], mode)
        for source, _ in given:
            self._check([source], mode)
        found: list[tuple[DeviceGroup, DeviceGroup]] = []
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
            found += both
        return tuple(found)

    def _check(self, numbers: Sequence[int], mode: Mode) -> None:
        """Each number is that of a device, and there once."""
        limit, what = self._numbered(mode)
        if max(numbers, default=0) >= limit:
            count = "num_partitions" if mode == "cross partition" else "num_replicas"
            raise GroupsError(
                f"it names {what} {max(numbers)}, but the module runs as {self}: give the numbers "
                f"in the header of the module, or as {count}"
            )
        if len(set(numbers)) < len(numbers):
            twice = next(number for number in numbers if numbers.count(number) > 1)
            raise GroupsError(f"it names {what} {twice} twice")

    def _numbered(self, mode: Mode) -> tuple[int, str]:
        """How many numbers groups may have, and what they count."""
        match mode:
            case "cross partition":
                return self.num_partitions, "partition"
            case "flattened id":
                return self.count, "device"
            case _:
                return self.num_replicas, "replica"

    def _devices(self, replicas: Iterable[int], partitions: Sequence[int]) -> DeviceGroup:
        return tuple([r * self.num_partitions + p for r in replicas for p in partitions])


def has_device(found: IndexingMap) -> bool:
    """The map leads from devices, all of them or some."""
    return bool(found.dims) and found.dims[0].name == NAME


def group_mode(has_channel: bool, use_global_device_ids: bool | None) -> Mode:
    """What the numbers in groups are; None where the op has no ``use_global_device_ids``.

    Raises:
        GroupsError: ``use_global_device_ids`` without a channel.
    """
    if not has_channel:
        if use_global_device_ids:
            raise GroupsError("use_global_device_ids=true needs a channel_id")
        return "cross replica"
    if use_global_device_ids is None:
        return "cross partition"
    return "flattened id" if use_global_device_ids else "cross replica and partition"


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _read_on(rt: RuntimeVariable, device: Variable) -> RuntimeVariable:
    return replace(rt, index=(device.as_expr(), *rt.index))

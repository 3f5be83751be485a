"""Bytes that the collectives of a program send, as rings execute them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from hlo.arguments import checked
from hlo.modules.module import Instruction, Module
from hlo.shapes.shape import Shape, leaves, unbounded_leaf
from hlo.shardings.mesh import Axis, Mesh
from indexing.devices.devices import Devices
from indexing.devices.groups import DeviceGroup
from indexing.memory.executions import Executions, executions
from indexing.ops.collective_bases import SENT, Collective, GroupedCollective
from indexing.sharding.partition.moves import bytes_sent
from simplifier.unknown import Unknown


@dataclass(frozen=True, slots=True)
class CollectiveCost:
    """The axes and the bytes of one collective of a program.

    Attributes:
        instruction: the collective.
        kind: its opcode, without ``-start``.
        group_size: the number of devices of a group.
        axes: the mesh axes along which a group extends; empty if the groups follow no axes.
        bytes_sent: the bytes that one execution sends, on the device that sends most; `Unknown`
            where runtime values decide, as in a ragged-all-to-all.
        executions: the number of executions; loops multiply it by their trip counts.
    """

    instruction: Instruction
    kind: str
    group_size: int
    axes: tuple[Axis, ...]
    bytes_sent: int | Unknown
    executions: Executions

    @property
    def total_bytes(self) -> int | Unknown:
        """Bytes sent in all executions; in as many as are certain, if the number is unknown."""
        if isinstance(self.bytes_sent, Unknown):
            return self.bytes_sent
        count = self.executions.number
        return self.bytes_sent * (max(self.executions.lower, 1) if count is None else count)


@checked
def collective_costs(module: Module, mesh: Mesh | None = None) -> tuple[CollectiveCost, ...]:
    """Return the costs of the collectives that a program executes, in text order.

    Args:
        module: a program for the devices of its header.
        mesh: the mesh whose axes the device groups follow.
    Raises:
        GroupsError: a device group does not fit the devices.

    >>> import hlo
    >>> module = hlo.parse('''HloModule m, num_partitions=4
    ... add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
    ... ENTRY e { p = f32[10,6] parameter(0)  ROOT s = f32[10,6] all-reduce(p), channel_id=1,
    ...   replica_groups={{0,1,2,3}}, use_global_device_ids=true, to_apply=add }''')
    >>> [(cost.kind, cost.bytes_sent) for cost in collective_costs(module)]
    [('all-reduce', 360)]
    """
    devices = Devices.of(module)
    counts = executions(module)
    return tuple(
        [
            _collective_cost(instruction, devices, mesh, counts[computation])
            for computation in module.computations.values()
            if computation in counts
            for instruction in computation.instructions
            if isinstance(instruction.op, Collective)
        ]
    )


def _collective_cost(
    instruction: Instruction, devices: Devices, mesh: Mesh | None, count: Executions
) -> CollectiveCost:
    op = instruction.op
    assert isinstance(op, Collective)
    if isinstance(op, GroupedCollective):
        groups = devices.groups(op.replica_groups, op.group_mode())
    else:  # from one device to one device
        pairs = [target + source for target, source in op.participants(devices).pairs]
        groups = tuple([pair for pair in pairs if len(set(pair)) > 1])
    size = max(map(len, groups), default=1)
    kind = instruction.opcode.removesuffix("-start")
    axes = () if mesh is None else group_axes(mesh, groups)
    sent = _bytes_sent(op, instruction, size) if size > 1 else 0
    return CollectiveCost(instruction, kind, size, axes, sent, count)


def _bytes_sent(op: Collective, instruction: Instruction, size: int) -> int | Unknown:
    name = f"{instruction.opcode} `{instruction.name}`"
    exchanges = [op.exchange(instruction, path, 0) for path, _ in leaves(instruction.shape)]
    if any(exchange is not None and exchange.any_element for exchange in exchanges):
        return Unknown(f"{name}: {SENT}", instruction)
    arrays = [leaf for operand in instruction.operands for _, leaf in leaves(operand.shape)]
    if unbounded := unbounded_leaf(*arrays):
        return Unknown(f"{name}: {unbounded} has a dimension of unknown size", instruction)
    if op.share_sent(size) is None:
        return Unknown(
            f"{name}: the op does not declare which share of its operands it sends", instruction
        )
    held = sum([leaf.bytes for leaf in arrays if isinstance(leaf, Shape)])
    return bytes_sent(instruction.opcode, size, held)


def group_axes(mesh: Mesh, groups: Sequence[DeviceGroup]) -> tuple[Axis, ...]:
    """Return the axes along which devices of a group differ; () if a group is no whole product.

    For groups of two devices that exchange values, every axis on which they differ is returned.

    >>> group_axes(Mesh.of({"x": 2, "y": 4}), [(0, 4), (1, 5), (2, 6), (3, 7)])
    (Axis(name='x', pre_size=1, size=None),)
    """
    coordinates = {name: mesh.numbers_by_device([Axis(name)]) for name in mesh.sizes}
    devices = set(mesh.devices)
    if any(device not in devices for group in groups for device in group):
        return ()
    names: dict[str, None] = {}
    for group in groups:
        differing = [
            name for name, along in coordinates.items() if len({along[d] for d in group}) > 1
        ]
        is_product = len(group) == prod(mesh.sizes[name] for name in differing)
        if not (is_product or len(group) == 2):
            return ()
        names.update(dict.fromkeys(differing))
    return tuple([Axis(name) for name in mesh.sizes if name in names])

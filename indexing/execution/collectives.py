"""Collectives among simulated devices.

Source: XLA ``docs/operation_semantics.md``, "AllGather" and the other collectives; for the meaning
of ``replica_groups``, ``xla/service/collective_ops_utils.h``, ``CollectiveOpGroupMode``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np

from hlo.modules.module import Instruction
from hlo.shapes.shape import Shape, TupleShape, leaves
from indexing.devices.groups import replica_groups, source_target_pairs
from indexing.execution.devices import Device
from indexing.execution.interpreter import functions_of, handles
from indexing.execution.machine import Machine
from indexing.execution.mesh import has_regions, mesh_of
from indexing.execution.rendezvous import Aborted, Meeting
from indexing.execution.values import Array, Value, assemble, failure, flattened
from indexing.ops.collective_bases import GlobalCollective
from indexing.ops.reductions import narrow, reduce_axes, reduce_rows, ufunc_of, widen


@dataclass(frozen=True, slots=True)
class CollectiveGroup:
    """The devices of one replica group, in order, and the position of this device in the group."""

    members: tuple[int, ...]
    position: int


def group_of(machine: Machine, instruction: Instruction) -> CollectiveGroup:
    """Return the group of the machine's device.

    Raises:
        ExecutionError: the device is in no group, or a group has devices that are not simulated.
    """
    text = instruction.attributes.get("replica_groups")
    lists = replica_groups.parse(text.text).lists() if text else ()
    every_device = _device_numbers(machine, instruction, None)
    groups = [_device_numbers(machine, instruction, group) for group in lists] or [every_device]
    number = machine.device.number
    for group in groups:
        if number in group:
            return CollectiveGroup(tuple(group), group.index(number))
    raise failure(instruction, f"device {number} is in no group of {instruction.opcode}")


def _device_numbers(
    machine: Machine, instruction: Instruction, ids: Sequence[int] | None
) -> list[int]:
    """Return the device numbers of a replica group; None is the group of all devices."""
    device, attributes = machine.device, instruction.attributes
    has_channel = "channel_id" in attributes
    takes_global = isinstance(instruction.op, GlobalCollective)
    replicas, partitions = range(device.replicas), range(device.partitions)
    if _is_global(instruction):
        numbers = list(range(len(replicas) * len(partitions)) if ids is None else ids)
    elif not has_channel:
        numbers = [k * len(partitions) + device.partition for k in _ids(ids, replicas)]
    elif takes_global:
        numbers = [k * len(partitions) + p for k in _ids(ids, replicas) for p in partitions]
    else:
        numbers = [device.replica * len(partitions) + p for p in _ids(ids, partitions)]
    count = len(replicas) * len(partitions)
    if numbers and max(numbers) >= count:
        noun = "device is" if count == 1 else "devices are"
        message = f"{instruction.opcode} needs device {max(numbers)}, but {count} {noun} simulated"
        raise failure(instruction, message, "", _device_count_help(machine.device, instruction))
    return numbers


def _device_count_help(device: Device, instruction: Instruction) -> str:
    """Return the number of devices that the module needs, or how to declare it."""
    module = instruction.module
    mesh = mesh_of(module) if has_regions(module) else None
    if mesh is not None:
        count = len(mesh.devices)
        return (
            "" if device.partitions == count else f"omit --replicas: the mesh has {count} devices"
        )
    partitions = int(module.header("num_partitions", 1))
    numbered = [(_numbers_replicas(i), 1 + _largest_id(i)) for i in module.instructions]
    numbers_partitions = not (_is_global(instruction) or _numbers_replicas(instruction))
    if numbers_partitions and 1 + _largest_id(instruction) > partitions:
        count = max(needed for is_replica, needed in numbered if not is_replica)
        return f"its groups number partitions: set num_partitions={count} in the module header"
    declared = int(module.header("replica_count", 1)) * partitions
    needed = max([declared, *[n * partitions if k else n for k, n in numbered]])
    return f"simulate {needed} devices: --replicas {needed}"


def _is_global(instruction: Instruction) -> bool:
    """Return True if the groups of an instruction number all devices."""
    flag = instruction.attributes.get("use_global_device_ids")
    return flag is not None and flag.text == "true"


def _numbers_replicas(instruction: Instruction) -> bool:
    """Return True if the groups of an instruction number replicas."""
    takes_global = isinstance(instruction.op, GlobalCollective)
    has_channel = "channel_id" in instruction.attributes
    return not _is_global(instruction) and (takes_global or not has_channel)


def _largest_id(instruction: Instruction) -> int:
    """Return the largest number in the replica groups and device pairs of an instruction."""
    groups = instruction.attributes.get("replica_groups")
    pairs = instruction.attributes.get("source_target_pairs")
    lists = [*(replica_groups.parse(groups.text).lists() if groups else ())]
    lists += source_target_pairs.parse(pairs.text) if pairs else []
    return max((number for each in lists for number in each), default=0)


def _ids(ids: Sequence[int] | None, every: range) -> Sequence[int]:
    return every if ids is None else ids


def exchange(
    machine: Machine, instruction: Instruction, members: Sequence[int], value: Value
) -> Any:
    """Exchange values among the members of a group; return the value of each, by device number.

    Raises:
        ExecutionError: a member never reaches the collective.
    """
    return meeting_of(machine, instruction, members, value).values


def meeting_of(
    machine: Machine, instruction: Instruction, members: Sequence[int], value: Value
) -> Meeting:
    """Return the meeting of a group, as `exchange` does."""
    device = machine.device
    if device.rendezvous is None or list(members) == [device.number]:
        alone = Meeting((), Lock())
        alone.values[device.number] = value
        return alone
    topic = instruction, tuple(members), machine.count(instruction)
    try:
        return device.rendezvous.exchange(topic, device.number, members, value)
    except Aborted as aborted:
        raise failure(instruction, f"{instruction.opcode} deadlocks: {aborted}") from aborted


def _rows(machine: Machine, instruction: Instruction, operands: Sequence[Value]) -> Any:
    """Return the group, and the operands of each of its devices, in order."""
    group, meeting = _meeting(machine, instruction, operands)
    return group, _rows_of(group, meeting)


def _meeting(
    machine: Machine, instruction: Instruction, operands: Sequence[Value]
) -> tuple[CollectiveGroup, Meeting]:
    """Return the group of the machine's device, and its meeting."""
    group = group_of(machine, instruction)
    return group, meeting_of(machine, instruction, group.members, tuple(operands))


def _rows_of(group: CollectiveGroup, meeting: Meeting) -> list[Any]:
    return [meeting.values[number] for number in group.members]


def _sums(
    machine: Machine, instruction: Instruction, group: CollectiveGroup, meeting: Meeting
) -> list[Array]:
    """Return the sums of each operand over a group, which its first device computes."""

    def compute() -> list[Array]:
        columns = zip(*_rows_of(group, meeting), strict=True)
        return [_reduce_columns(machine, instruction, column) for column in columns]

    return meeting.once(compute)


def _part(array: Array, group: CollectiveGroup, axis: int) -> Array:
    """Return this device's part of an array that is divided among its group.

    Raises:
        ValueError: the size is not a multiple of the number of devices.
    """
    size, rest = divmod(array.shape[axis], len(group.members))
    if rest:
        raise ValueError(f"{array.shape[axis]} elements for {len(group.members)} devices")
    start = group.position * size
    return array[(slice(None),) * axis + (slice(start, start + size),)]


def _results(instruction: Instruction, arrays: Sequence[Array]) -> Value:
    is_tuple = isinstance(instruction.shape, TupleShape)
    return tuple(arrays) if is_tuple else arrays[0]


# ---------------------------------------------------------------- reductions


def _reduce_columns(machine: Machine, instruction: Instruction, columns: Sequence[Array]) -> Array:
    """Reduce the arrays of all devices elementwise."""
    to_apply = functions_of(machine, instruction)["to_apply"]
    rows, ufunc = np.stack(columns), ufunc_of(to_apply)
    if ufunc is not None and len(rows) > 1:
        return (
            reduce_axes(ufunc, rows[0], rows[1:], (0,))
            if rows.ndim == 1
            else _sum_rows(ufunc, rows)
        )
    return reduce_rows(to_apply, [rows[0]], [rows[1:]])[0]


def _sum_rows(ufunc: np.ufunc, rows: Array) -> Array:
    wide = widen(rows)
    return narrow(np.asarray(ufunc.reduce(wide, 0, dtype=wide.dtype)), rows.dtype)


@handles("all-reduce", "all-reduce-start")
def _all_reduce(machine: Machine, instruction: Instruction, operands: Sequence[Value]) -> Value:
    sums = _sums(machine, instruction, *_meeting(machine, instruction, operands))
    return _results(instruction, [np.array(each) for each in sums])


@handles("reduce-scatter")
def _reduce_scatter(machine: Machine, instruction: Instruction, operands: Sequence[Value]) -> Value:
    op: Any = instruction.op
    group, meeting = _meeting(machine, instruction, operands)
    rows, sums = _rows_of(group, meeting), _sums(machine, instruction, group, meeting)
    parts = [np.array(_part(array, group, op.dimensions[0])) for array in sums]
    declared = [leaf for _, leaf in leaves(instruction.shape) if isinstance(leaf, Shape)]
    _check_sizes(instruction, rows[0][-1].shape, parts[-1].shape, declared[-1].dims, len(rows))
    return _results(instruction, parts)


# ---------------------------------------------------------------- data movement


def _gather_rows(
    machine: Machine, instruction: Instruction, operands: Sequence[Value]
) -> list[Array]:
    op: Any = instruction.op
    group, meeting = _meeting(machine, instruction, operands)
    rows = _rows_of(group, meeting)

    def compute() -> list[Array]:
        return [np.concatenate(column, op.dimensions[0]) for column in zip(*rows, strict=True)]

    arrays = [np.array(each) for each in meeting.once(compute)]
    declared = [leaf for _, leaf in leaves(instruction.shape) if isinstance(leaf, Shape)]
    _check_sizes(instruction, rows[0][-1].shape, arrays[-1].shape, declared[-1].dims, len(rows))
    return arrays


def _check_sizes(
    instruction: Instruction,
    operand: tuple[int, ...],
    actual: tuple[int, ...],
    declared: tuple[int, ...],
    count: int,
) -> None:
    """Check the sizes of a result against its declared shape; they depend on the group's size."""
    if actual != declared:
        message = (
            f"{instruction.opcode} among {count} devices: declared sizes {list(declared)}, "
            f"computed {list(actual)}"
        )
        raise failure(
            instruction,
            message,
            f"expected {list(declared)}",
            _group_size_help(instruction, operand, declared),
        )


def _group_size_help(
    instruction: Instruction, operand: tuple[int, ...], declared: tuple[int, ...]
) -> str:
    """Return the group size for which the sizes of a result are as declared, if there is one."""
    different = [sorted(pair) for pair in zip(operand, declared, strict=True) if len({*pair}) == 2]
    if len(different) != 1 or not different[0][0] or different[0][1] % different[0][0]:
        return ""
    return f"{list(declared)} needs {_groups_of(instruction, different[0][1] // different[0][0])}"


def _groups_of(instruction: Instruction, count: int) -> str:
    """Return how to get groups of `count` devices: by `--replicas` if the text gives no groups."""
    groups = instruction.attributes.get("replica_groups")
    if groups is None or not replica_groups.parse(groups.text).lists():
        return f"groups of {count} devices: see --replicas"
    return f"replica groups of {count} devices"


@handles("all-gather")
def _all_gather(machine: Machine, instruction: Instruction, operands: Sequence[Value]) -> Value:
    return _results(instruction, _gather_rows(machine, instruction, operands))


@handles("all-gather-start")
def _all_gather_start(
    machine: Machine, instruction: Instruction, operands: Sequence[Value]
) -> Value:
    return _start_result(instruction, operands, _gather_rows(machine, instruction, operands))


@handles("all-to-all")
def _all_to_all(machine: Machine, instruction: Instruction, operands: Sequence[Value]) -> Value:
    op: Any = instruction.op
    group, rows = _rows(machine, instruction, operands)
    if not op.dimensions:
        _check_operand_per_device(instruction, len(rows))
        return tuple([row[group.position] for row in rows])
    axis = op.dimensions[0]
    parts = [_part(row[0], group, axis) for row in rows]
    return np.concatenate(parts, axis)


def _check_operand_per_device(instruction: Instruction, devices: int) -> None:
    """Check that an all-to-all of tuples has an operand for each device of its group."""
    operands = len(instruction.operands)
    if operands != devices:
        noun = "device" if devices == 1 else "devices"
        message = f"all-to-all among {devices} {noun} has {operands} operands"
        help_text = f"it needs {_groups_of(instruction, operands)}"
        raise failure(instruction, message, "expected one operand for each device", help_text)


@handles("collective-broadcast")
def _broadcast(machine: Machine, instruction: Instruction, operands: Sequence[Value]) -> Value:
    _, rows = _rows(machine, instruction, operands)
    return _results(instruction, rows[0])


def _permute_operands(
    machine: Machine, instruction: Instruction, operands: Sequence[Value]
) -> list[Array]:
    """Return the operands of the device that sends to this one; zeros if none does."""
    op: Any = instruction.op
    if op.is_in_place:
        message = f"in-place {instruction.opcode} is not simulated"
        raise failure(instruction, message, "slice_sizes is given")
    pairs = source_target_pairs.parse(instruction.attributes["source_target_pairs"].text)
    linked = [_device_numbers(machine, instruction, pair) for pair in pairs]
    number = machine.device.number
    members = sorted({k for pair in linked for k in pair})
    if number not in members:
        return [np.zeros_like(operand) for operand in operands]
    by_device = exchange(machine, instruction, members, tuple(operands))
    sources = [source for source, target in linked if target == number]
    return list(by_device[sources[0]]) if sources else [np.zeros_like(o) for o in operands]


@handles("collective-permute")
def _permute(machine: Machine, instruction: Instruction, operands: Sequence[Value]) -> Value:
    return _results(instruction, _permute_operands(machine, instruction, operands))


@handles("collective-permute-start")
def _permute_start(machine: Machine, instruction: Instruction, operands: Sequence[Value]) -> Value:
    return _start_result(instruction, operands, _permute_operands(machine, instruction, operands))


def _start_result(
    instruction: Instruction, operands: Sequence[Value], results: Sequence[Array]
) -> Value:
    """Return ``(operands, results, contexts..)``; several operands or results form a tuple."""
    shape = instruction.shape
    contexts = [np.zeros((), np.uint32)] * (len(leaves(shape)) - 2 * len(results))
    return assemble(shape, iter([*flattened(tuple(operands)), *results, *contexts]))


@handles("ragged-all-to-all")
def _ragged_all_to_all(
    machine: Machine, instruction: Instruction, operands: Sequence[Value]
) -> Value:
    """Copy rows to the offsets that the senders give; later senders overwrite earlier ones.

    Operands: the input, the initial output, and four vectors with an entry for each update: the
    offset in the input, the row count, the receiver's offset, and the row count to receive.
    """
    group, rows = _rows(machine, instruction, operands)
    out = np.array(operands[1])
    for sent, _, starts, counts, targets, _ in rows:
        each = len(starts) // len(rows)
        for k in range(group.position * each, (group.position + 1) * each):
            begin, count, target = int(starts[k]), int(counts[k]), int(targets[k])
            out[target : target + count] = sent[begin : begin + count]
    return out

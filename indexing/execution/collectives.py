"""Collectives among simulated devices: what each brings, and what each takes home.

Source: XLA ``docs/operation_semantics.md``, "AllGather" and the like; for whom the numbers in
``replica_groups`` mean, ``xla/service/collective_ops_utils.h``, ``CollectiveOpGroupMode``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hlo.modules.module import Instruction
from hlo.shapes.shape import Shape, TupleShape, leaves
from indexing.devices.groups import replica_groups, source_target_pairs
from indexing.execution.interpreter import functions_of, runs
from indexing.execution.machine import Machine
from indexing.execution.rendezvous import Aborted
from indexing.execution.values import Array, Value, assembled, failure, flattened
from indexing.ops.folding import folded, narrowed, reduced, ufunc_of, widened


@dataclass(frozen=True, slots=True)
class CollectiveGroup:
    """The devices that take part, in order; `position` is where this one stands among them."""

    members: tuple[int, ...]
    position: int


def group_of(machine: Machine, instruction: Instruction) -> CollectiveGroup:
    """The group of the machine's device.

    Raises:
        ExecutionError: the device is in no group, or a group has devices that are not simulated.
    """
    text = instruction.attributes.get("replica_groups")
    lists = replica_groups.parse(text.text).lists() if text else ()
    everybody = _numbered(machine, instruction, None)
    groups = [_numbered(machine, instruction, group) for group in lists] or [everybody]
    number = machine.device.number
    for group in groups:
        if number in group:
            return CollectiveGroup(tuple(group), group.index(number))
    raise failure(instruction, f"device {number} is in no group of {instruction.opcode}")


def _numbered(machine: Machine, instruction: Instruction, ids: Sequence[int] | None) -> list[int]:
    """The devices that the numbers of a group mean; None means everybody."""
    device, given = machine.device, instruction.attributes
    has_channel = "channel_id" in given
    is_global = "use_global_device_ids" in given and given["use_global_device_ids"].text == "true"
    takes_global = instruction.opcode.startswith(("all-reduce", "all-gather", "reduce-scatter"))
    replicas, partitions = range(device.replicas), range(device.partitions)
    if is_global:
        found = list(range(len(replicas) * len(partitions)) if ids is None else ids)
    elif not has_channel:
        found = [k * len(partitions) + device.partition for k in _ids(ids, replicas)]
    elif takes_global:
        found = [k * len(partitions) + p for k in _ids(ids, replicas) for p in partitions]
    else:
        found = [device.replica * len(partitions) + p for p in _ids(ids, partitions)]
    count = len(replicas) * len(partitions)
    if found and max(found) >= count:
        message = f"{instruction.opcode} needs device {max(found)}, but {count} are simulated"
        help = f"simulate more: replicas={max(found) + 1} (--replicas {max(found) + 1})"  # noqa: A001 - `failure`'s word
        raise failure(instruction, message, "", help)
    return found


def _ids(ids: Sequence[int] | None, every: range) -> Sequence[int]:
    return every if ids is None else ids


def met(machine: Machine, instruction: Instruction, members: Sequence[int], value: Value) -> Any:
    """What the members bring, by their numbers."""
    device = machine.device
    if device.rendezvous is None or list(members) == [device.number]:
        return {device.number: value}
    topic = instruction, tuple(members), machine.count(instruction)
    try:
        return device.rendezvous.exchange(topic, device.number, members, value)
    except Aborted as aborted:
        raise failure(instruction, f"{instruction.opcode} waits for ever: {aborted}") from aborted


def _rows(machine: Machine, instruction: Instruction, operands: Sequence[Value]) -> Any:
    """The group, and what each of its devices has as its operands, in order."""
    group = group_of(machine, instruction)
    found = met(machine, instruction, group.members, tuple(operands))
    return group, [found[number] for number in group.members]


def _results(instruction: Instruction, arrays: Sequence[Array]) -> Value:
    is_tuple = isinstance(instruction.shape, TupleShape)
    return tuple(arrays) if is_tuple else arrays[0]


# ---------------------------------------------------------------- reductions


def _reduced(machine: Machine, instruction: Instruction, columns: Sequence[Array]) -> Array:
    """The arrays of all devices, reduced element by element."""
    to_apply = functions_of(machine, instruction)["to_apply"]
    rows, ufunc = np.stack(columns), ufunc_of(to_apply)
    if ufunc is not None and len(rows) > 1:
        return reduced(ufunc, rows[0], rows[1:], (0,)) if rows.ndim == 1 else _summed(ufunc, rows)
    return folded(to_apply, [rows[0]], [rows[1:]])[0]


def _summed(ufunc: np.ufunc, rows: Array) -> Array:
    wide = widened(rows)
    return narrowed(np.asarray(ufunc.reduce(wide, 0, dtype=wide.dtype)), rows.dtype)


@runs("all-reduce", "all-reduce-start")
def _all_reduce(machine: Machine, instruction: Instruction, operands: Sequence[Value]) -> Value:
    _, rows = _rows(machine, instruction, operands)
    found = [_reduced(machine, instruction, column) for column in zip(*rows, strict=True)]
    return _results(instruction, found)


@runs("reduce-scatter")
def _reduce_scatter(machine: Machine, instruction: Instruction, operands: Sequence[Value]) -> Value:
    op: Any = instruction.op
    group, rows = _rows(machine, instruction, operands)
    found = [_reduced(machine, instruction, column) for column in zip(*rows, strict=True)]
    parts = [np.split(array, len(rows), op.dimensions[0])[group.position] for array in found]
    wanted = [leaf for _, leaf in leaves(instruction.shape) if isinstance(leaf, Shape)]
    _check_parts(instruction, parts[-1].shape, wanted[-1].dims, len(rows))
    return _results(instruction, parts)


# ---------------------------------------------------------------- moving


def _gathered(machine: Machine, instruction: Instruction, operands: Sequence[Value]) -> list[Array]:
    op: Any = instruction.op
    _, rows = _rows(machine, instruction, operands)
    columns = zip(*rows, strict=True)
    found = [np.concatenate(column, op.dimensions[0]) for column in columns]
    wanted = [leaf for _, leaf in leaves(instruction.shape) if isinstance(leaf, Shape)]
    _check_parts(instruction, found[-1].shape, wanted[-1].dims, len(rows))
    return found


def _check_parts(
    instruction: Instruction, found: tuple[int, ...], wanted: tuple[int, ...], count: int
) -> None:
    """Refuse a result of another size than the text says: it is for another number of devices."""
    if found != wanted:
        message = f"{instruction.opcode} among {count} devices gives sizes {list(found)}"
        help = f"simulate as many devices as give {list(wanted)}"  # noqa: A001 - `failure`'s word
        raise failure(instruction, message, f"is to be {list(wanted)}", help)


@runs("all-gather")
def _all_gather(machine: Machine, instruction: Instruction, operands: Sequence[Value]) -> Value:
    return _results(instruction, _gathered(machine, instruction, operands))


@runs("all-gather-start")
def _all_gather_start(
    machine: Machine, instruction: Instruction, operands: Sequence[Value]
) -> Value:
    return _begun(instruction, operands, _gathered(machine, instruction, operands))


@runs("all-to-all")
def _all_to_all(machine: Machine, instruction: Instruction, operands: Sequence[Value]) -> Value:
    op: Any = instruction.op
    group, rows = _rows(machine, instruction, operands)
    if not op.dimensions:
        return tuple([row[group.position] for row in rows])
    axis = op.dimensions[0]
    parts = [np.split(row[0], len(rows), axis)[group.position] for row in rows]
    return np.concatenate(parts, axis)


@runs("collective-broadcast")
def _broadcast(machine: Machine, instruction: Instruction, operands: Sequence[Value]) -> Value:
    _, rows = _rows(machine, instruction, operands)
    return _results(instruction, rows[0])


def _permuted(machine: Machine, instruction: Instruction, operands: Sequence[Value]) -> list[Array]:
    """What the device that sends to this one has; zeros where none does."""
    if len(leaves(instruction.shape)) < len(operands):
        message = f"{instruction.opcode} that writes in place is not simulated"
        raise failure(instruction, message, "has more operands than results")
    pairs = source_target_pairs.parse(instruction.attributes["source_target_pairs"].text)
    linked = [_linked(machine, instruction, pair) for pair in pairs]
    number = machine.device.number
    members = sorted({k for pair in linked for k in pair})
    if number not in members:
        return [np.zeros_like(operand) for operand in operands]
    found = met(machine, instruction, members, tuple(operands))
    sources = [source for source, target in linked if target == number]
    return list(found[sources[0]]) if sources else [np.zeros_like(o) for o in operands]


def _linked(machine: Machine, instruction: Instruction, pair: tuple[int, int]) -> list[int]:
    return _numbered(machine, instruction, pair)


@runs("collective-permute")
def _permute(machine: Machine, instruction: Instruction, operands: Sequence[Value]) -> Value:
    return _results(instruction, _permuted(machine, instruction, operands))


@runs("collective-permute-start")
def _permute_start(machine: Machine, instruction: Instruction, operands: Sequence[Value]) -> Value:
    return _begun(instruction, operands, _permuted(machine, instruction, operands))


def _begun(instruction: Instruction, operands: Sequence[Value], results: Sequence[Array]) -> Value:
    """``(operands, results, contexts..)``, with tuples only where there are several."""
    shape = instruction.shape
    contexts = [np.zeros((), np.uint32)] * (len(leaves(shape)) - 2 * len(results))
    return assembled(shape, iter([*flattened(tuple(operands)), *results, *contexts]))


@runs("ragged-all-to-all")
def _ragged(machine: Machine, instruction: Instruction, operands: Sequence[Value]) -> Value:
    """Rows go where the senders say; later senders overwrite earlier ones.

    Operands are the input, the output to begin with, and for each update the offset in the input,
    the number of rows, the offset in the receiver's output, and the number of rows to receive.
    """
    group, rows = _rows(machine, instruction, operands)
    out = np.array(operands[1])
    for sent, _, starts, counts, targets, _ in rows:
        each = len(starts) // len(rows)
        for k in range(group.position * each, (group.position + 1) * each):
            begin, count, target = int(starts[k]), int(counts[k]), int(targets[k])
            out[target : target + count] = sent[begin : begin + count]
    return out

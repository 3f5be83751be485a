"""Manual regions, which each device executes on its shard of the arrays (JAX's ``shard_map``).

Outside of a region arrays are global.  One custom call takes the device's shard, another one
assembles the shards of all devices.  Attributes name the mesh axes that shard each dimension.

Source: Shardy ``docs/sharding_representation.md``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hlo.modules.module import Instruction
from hlo.modules.shardings import border_shardings
from hlo.shapes.shape import Shape, leaves
from hlo.shardings.sharding import Sharding
from indexing.execution.collectives import exchange
from indexing.execution.machine import Machine
from indexing.execution.targets import target
from indexing.execution.values import Array, Value, assemble, failure
from indexing.ops.custom_call import FULL_TO_SHARD, SHARD_TO_FULL, TO_GLOBAL, TO_LOCAL


@target(TO_LOCAL)
def _to_local(machine: Machine, instruction: Instruction, operands: Sequence[Value]) -> Value:
    shardings = border_shardings(instruction, "xla.sdy.in_shardings")
    shards = [
        operand[_shard(sharding, machine.device.number, operand.shape)]
        for operand, sharding in zip(operands, shardings, strict=True)
    ]
    return assemble(instruction.shape, iter(shards))


@target(TO_GLOBAL)
def _to_global(machine: Machine, instruction: Instruction, operands: Sequence[Value]) -> Value:
    shardings = border_shardings(instruction, "xla.sdy.out_shardings")
    count = max(len(sharding.mesh.devices) for sharding in shardings)
    by_device = exchange(machine, instruction, range(count), tuple(operands))
    results: list[Array] = []
    shapes = [leaf for _, leaf in leaves(instruction.shape) if isinstance(leaf, Shape)]
    for number, (shape, sharding) in enumerate(zip(shapes, shardings, strict=True)):
        result = np.empty(shape.dims, operands[number].dtype)
        for device in sharding.mesh.devices:
            result[_shard(sharding, device, shape.dims)] = by_device[device][number]
        results.append(result)
    return assemble(instruction.shape, iter(results))


@target(FULL_TO_SHARD)
def _full_to_shard(machine: Machine, instruction: Instruction, operands: Sequence[Value]) -> Value:
    sharding = _stated_sharding(instruction, instruction.operands[0])
    return operands[0][_shard(sharding, machine.device.number, operands[0].shape)]


@target(SHARD_TO_FULL)
def _shard_to_full(machine: Machine, instruction: Instruction, operands: Sequence[Value]) -> Value:
    sharding, shape = _stated_sharding(instruction, instruction), instruction.shape
    assert isinstance(shape, Shape)
    count = machine.device.replicas * machine.device.partitions
    by_device = exchange(machine, instruction, range(count), operands[0])
    result = np.empty(shape.dims, operands[0].dtype)
    for device in range(count):
        result[_shard(sharding, device, shape.dims)] = by_device[device]
    return result


def _stated_sharding(call: Instruction, array: Instruction) -> Sharding:
    """Return the sharding with which an array crosses the border of a manual region."""
    sharding = array.sharding
    local = call.shape if array is not call else call.operands[0].shape
    assert isinstance(local, Shape)
    if isinstance(sharding, Sharding) and isinstance(array.shape, Shape) and not sharding.manual:
        parts = [size * sharding.shards(k) for k, size in enumerate(local.dims)]
        if tuple(parts) == array.shape.dims:
            return sharding
    raise failure(call, f"the sharding of `{array.name}` does not give shards of {local}")


def _shard(sharding: Sharding, device: int, sizes: Sequence[int]) -> tuple[slice, ...]:
    """Return the slices of a device's shard of an array."""
    slices = []
    for k, size in enumerate(sizes):
        number, length = sharding.number(device, k), size // sharding.shards(k)
        slices.append(slice(number * length, (number + 1) * length))
    return tuple(slices)

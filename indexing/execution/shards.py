"""Manual regions, which each device executes on its shard of the arrays (JAX's ``shard_map``).

Outside of a region arrays are global.  One custom call takes the device's shard, another one
assembles the shards of all devices.  Attributes name the mesh axes that shard each dimension:

>>> sharding_of('#sdy.sharding_per_value<[<@mesh, [{"x", "y"}, {}]>]>')
[[['x', 'y'], []]]

Source: Shardy ``docs/sharding_representation.md``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from hlo.modules.module import Instruction
from hlo.shapes.shape import Shape, leaves
from hlo.shardings.mesh import Mesh
from indexing.execution.collectives import exchanged
from indexing.execution.machine import Machine
from indexing.execution.mesh import AXIS, TO_GLOBAL, TO_LOCAL, mesh_of
from indexing.execution.targets import target
from indexing.execution.values import Array, Value, assembled, failure

DimSharding: TypeAlias = list[str]
"""The mesh axes that shard one dimension, major to minor."""

_VALUE = re.compile(r"<@\w+, \[([^<>]*?)\](?:, [^<>]*)?>")
_DIMENSION = re.compile(r"\{([^{}]*)\}")


def sharding_of(text: str) -> list[list[DimSharding]]:
    """Parse the shardings of values in a custom call's attribute."""
    return [
        [[name for name, _ in AXIS.findall(axes)] for axes in _DIMENSION.findall(value)]
        for value in _VALUE.findall(text.replace('\\"', '"'))
    ]


def _shardings(instruction: Instruction, key: str) -> tuple[Mesh, list[list[DimSharding]]]:
    text = instruction.attributes["frontend_attributes"].text
    mesh = mesh_of(instruction.module)
    if mesh is None or ":(" in text:
        message = "unsupported sharding of a manual region"
        raise failure(instruction, message, "no mesh" if mesh is None else "sub-axis")
    manual = re.search(r"manual_axes<?\{([^}]*)\}", text.replace("#sdy<", ""))
    local = {name for name, _ in AXIS.findall(manual[1].replace('\\"', '"'))} if manual else set()
    rest = text[text.index(key) :]
    values = sharding_of(rest[: rest.index(']>"')] + "]>")
    return mesh, [[[a for a in axes if a in local] for axes in dims] for dims in values]


@target(TO_LOCAL)
def _to_local(machine: Machine, instruction: Instruction, operands: Sequence[Value]) -> Value:
    mesh, shardings = _shardings(instruction, "in_shardings")
    coordinates = mesh.coordinates(machine.device.number)
    shards = [
        operand[_shard(mesh, sharding, coordinates, operand.shape)]
        for operand, sharding in zip(operands, shardings, strict=True)
    ]
    return assembled(instruction.shape, iter(shards))


@target(TO_GLOBAL)
def _to_global(machine: Machine, instruction: Instruction, operands: Sequence[Value]) -> Value:
    mesh, shardings = _shardings(instruction, "out_shardings")
    by_device = exchanged(machine, instruction, range(len(mesh.devices)), tuple(operands))
    results: list[Array] = []
    shapes = [leaf for _, leaf in leaves(instruction.shape) if isinstance(leaf, Shape)]
    for number, (shape, sharding) in enumerate(zip(shapes, shardings, strict=True)):
        result = np.empty(shape.dims, operands[number].dtype)
        for device in mesh.devices:
            shard = _shard(mesh, sharding, mesh.coordinates(device), shape.dims)
            result[shard] = by_device[device][number]
        results.append(result)
    return assembled(instruction.shape, iter(results))


def _shard(
    mesh: Mesh, sharding: list[DimSharding], coordinates: dict[str, int], sizes: Sequence[int]
) -> tuple[Any, ...]:
    """Return the slices of a device's shard of an array."""
    slices = []
    for axes, size in zip(sharding, sizes, strict=True):
        number, count = 0, 1
        for axis in axes:
            number, count = number * mesh.sizes[axis] + coordinates[axis], count * mesh.sizes[axis]
        slices.append(slice(number * (size // count), (number + 1) * (size // count)))
    return tuple(slices)

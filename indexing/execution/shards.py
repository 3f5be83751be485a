"""Regions of a program that every device runs on its own part of the arrays (JAX's shard_map).

Outside of such regions arrays are whole. A custom call takes a device's part of them, another one
puts the parts of all devices together again; attributes say which axes of a mesh cut which
dimension:

>>> sharding_of('#sdy.sharding_per_value<[<@mesh, [{"x", "y"}, {}]>]>')
[[['x', 'y'], []]]

Source: Shardy ``docs/sharding_representation.md``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, TypeAlias

import numpy as np

from hlo.modules.module import Instruction, Module
from hlo.shapes.shape import Shape, leaves
from indexing.execution.collectives import met
from indexing.execution.machine import Machine
from indexing.execution.targets import target
from indexing.execution.values import Array, Value, assembled, failure

Sharding: TypeAlias = list[list[str]]
"""For each dimension the axes that cut it, major to minor."""

_MESH = re.compile(r'#sdy\.mesh<\[((?:"\w+"=\d+(?:, )?)*)\](?:, device_ids=\[([\d, ]*)\])?>')
_AXIS = re.compile(r'"(\w+)"(?:=(\d+))?')
_VALUE = re.compile(r"<@\w+, \[([^<>]*?)\](?:, [^<>]*)?>")
_DIMENSION = re.compile(r"\{([^{}]*)\}")


@dataclass(frozen=True, slots=True)
class Mesh:
    """Axes with their sizes; devices are numbered along the last one first."""

    axes: dict[str, int]
    devices: tuple[int, ...]

    def place(self, device: int) -> dict[str, int]:
        """Where a device stands along each axis."""
        found = np.unravel_index(self.devices.index(device), tuple(self.axes.values()))
        return dict(zip(self.axes, map(int, found), strict=True))


def mesh_of(module: Module) -> Mesh | None:
    """The mesh that a module's header declares; None if there is none with several devices."""
    text = module.attributes.get("frontend_attributes")
    for axes, ids in _MESH.findall(text.text.replace('\\"', '"') if text else ""):
        sizes = {name: int(size) for name, size in _AXIS.findall(axes)}
        if sizes:
            devices = [int(k) for k in ids.split(",")] if ids else range(prod(sizes.values()))
            return Mesh(sizes, tuple(devices))
    return None


def has_regions(module: Module) -> bool:
    """Says that devices run parts of it on their own part of the arrays."""
    return any(
        instruction.attributes["custom_call_target"].text.strip('"') == _TO_LOCAL
        for instruction in module.instructions
        if instruction.opcode == "custom-call"
    )


def sharding_of(text: str) -> list[Sharding]:
    """The shardings of values, as a custom call has them in its text."""
    return [
        [[name for name, _ in _AXIS.findall(axes)] for axes in _DIMENSION.findall(value)]
        for value in _VALUE.findall(text.replace('\\"', '"'))
    ]


_TO_LOCAL = "xla.sdy.GlobalToLocalShape"
_TO_GLOBAL = "xla.sdy.LocalToGlobalShape"


def _shardings(instruction: Instruction, key: str) -> tuple[Mesh, list[Sharding]]:
    text = instruction.attributes["frontend_attributes"].text
    mesh = mesh_of(instruction.module)
    if mesh is None or ":(" in text:
        message = "the sharding of a region is not understood"
        raise failure(instruction, message, "no mesh" if mesh is None else "part of an axis")
    manual = re.search(r"manual_axes<?\{([^}]*)\}", text.replace("#sdy<", ""))
    local = {name for name, _ in _AXIS.findall(manual[1].replace('\\"', '"'))} if manual else set()
    found = text[text.index(key) :]
    values = sharding_of(found[: found.index(']>"')] + "]>")
    return mesh, [[[a for a in axes if a in local] for axes in dims] for dims in values]


@target(_TO_LOCAL)
def _to_local(machine: Machine, instruction: Instruction, operands: Sequence[Value]) -> Value:
    mesh, shardings = _shardings(instruction, "in_shardings")
    place = mesh.place(machine.device.number)
    parts = [
        operand[_part(mesh, sharding, place, operand.shape)]
        for operand, sharding in zip(operands, shardings, strict=True)
    ]
    return assembled(instruction.shape, iter(parts))


@target(_TO_GLOBAL)
def _to_global(machine: Machine, instruction: Instruction, operands: Sequence[Value]) -> Value:
    mesh, shardings = _shardings(instruction, "out_shardings")
    found = met(machine, instruction, range(len(mesh.devices)), tuple(operands))
    wholes: list[Array] = []
    shapes = [leaf for _, leaf in leaves(instruction.shape) if isinstance(leaf, Shape)]
    for number, (shape, sharding) in enumerate(zip(shapes, shardings, strict=True)):
        whole = np.empty(shape.dims, operands[number].dtype)
        for device in mesh.devices:
            part = _part(mesh, sharding, mesh.place(device), shape.dims)
            whole[part] = found[device][number]
        wholes.append(whole)
    return assembled(instruction.shape, iter(wholes))


def _part(
    mesh: Mesh, sharding: Sharding, place: dict[str, int], sizes: Sequence[int]
) -> tuple[Any, ...]:
    """Where a device's part of an array is."""
    slices = []
    for axes, size in zip(sharding, sizes, strict=True):
        number, count = 0, 1
        for axis in axes:
            number, count = number * mesh.axes[axis] + place[axis], count * mesh.axes[axis]
        slices.append(slice(number * (size // count), (number + 1) * (size // count)))
    return tuple(slices)

"""Execution in shared memory: the oracle of arrays that a buffer assignment places over each other.

Each instruction of a straight program is executed by itself, with operands that are read from its
memory.  One that overwrites bytes of its own operands computes one element after another, and
writes it before the next; all others write their whole result.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

import hlo
from hlo import Instruction, Module, Shape
from hlo.shapes.shape import dtype
from indexing.execution import run

Array: TypeAlias = NDArray[Any]


class Place(NamedTuple):
    """The allocation of an array, and its first byte there."""

    allocation: int
    first: int


class Arena:
    """The memory of the arrays of a module."""

    def __init__(self, module: Module, places: Mapping[str, Place]) -> None:
        self.places = places
        self.memory: dict[int, Array] = {}
        for each in module.entry.instructions:
            place, end = places[each.name], places[each.name].first + shape_of(each).bytes
            size = max(end, self.memory.get(place.allocation, np.zeros(0)).size)
            self.memory[place.allocation] = np.zeros(size, np.uint8)

    def bytes_of(self, each: Instruction) -> Array:
        """Return a view of the bytes of an array."""
        place = self.places[each.name]
        return self.memory[place.allocation][place.first : place.first + shape_of(each).bytes]

    def read(self, each: Instruction) -> Array:
        """Return a copy of an array."""
        return order_array(
            self.bytes_of(each).copy().view(dtype(shape_of(each).element_type)), shape_of(each)
        )

    def write(self, each: Instruction, array: Array, index: tuple[int, ...] | None = None) -> None:
        """Write an array, or one element of it."""
        if index is not None:
            kept = self.read(each)
            kept[index] = array[index]
            array = kept
        order = shape_of(each).layout_or_default.major_to_minor
        self.bytes_of(each)[:] = np.ascontiguousarray(array.transpose(order)).view(np.uint8).ravel()

    def overlap(self, each: Instruction, other: Instruction) -> bool:
        """Return True if two arrays have some of the same bytes."""
        own, theirs = self.places[each.name], self.places[other.name]
        return (
            own.allocation == theirs.allocation
            and own.first < theirs.first + shape_of(other).bytes
            and theirs.first < own.first + shape_of(each).bytes
        )


def shape_of(each: Instruction) -> Shape:
    """Return the shape of an array."""
    assert isinstance(each.shape, Shape)
    return each.shape


def order_array(flat: Array, shape: Shape) -> Array:
    """Return the array whose elements are in memory in the order of its layout."""
    order = shape.layout_or_default.major_to_minor
    array = flat.reshape([shape.dims[d] for d in order])
    return array.transpose(np.argsort(order)) if order else array


def alone(module: Module, each: Instruction) -> Module:
    """Return a module that executes one instruction, with its operands as parameters."""
    others = str(module)[: str(module).index("ENTRY")]
    names = dict.fromkeys(operand.name for operand in each.operands)
    given = {operand.name: operand.shape for operand in each.operands}
    lines = [f"  {name} = {given[name]} parameter({n})" for n, name in enumerate(names)]
    return hlo.parse(f"{others}\nENTRY e {{\n" + "\n".join([*lines, f"  ROOT {each}"]) + "\n}")


def compute(module: Module, operands: Mapping[str, Array]) -> Array:
    """Return the result of a module with one instruction."""
    inputs = [operands[parameter.name] for parameter in module.entry.parameters]
    (result,) = run(module, inputs)
    return np.asarray(result)


def is_right(
    module: Module, places: Mapping[str, Place], inputs: Sequence[Array], reverse: bool
) -> bool:
    """Return True if each array is right when it is written, and arguments and result at the end.

    Args:
        reverse: compute elements in place from the last to the first.
    """
    arena, right = Arena(module, places), dict[str, Array]()
    for parameter, given in zip(module.entry.parameters, inputs, strict=True):
        arena.write(parameter, given)
        right[parameter.name] = given
    is_fine = True
    for each in module.entry.instructions:
        if each.opcode == "parameter":
            continue
        single = alone(module, each)
        right[each.name] = compute(single, right)
        points: Iterable[tuple[int, ...] | None] = [None]
        if any(arena.overlap(each, operand) for operand in each.operands):
            points = list(np.ndindex(shape_of(each).dims))[:: -1 if reverse else 1]
        for point in points:
            operands = {operand.name: arena.read(operand) for operand in each.operands}
            arena.write(each, compute(single, operands), point)
        is_fine &= np.array_equal(arena.read(each), right[each.name])
    kept = [*module.entry.parameters, module.entry.root]
    return is_fine and all(np.array_equal(arena.read(k), right[k.name]) for k in kept)

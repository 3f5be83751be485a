"""The image of one element under a map, with the values of runtime variables from arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any, Final

from hlo.modules.module import Instruction
from hlo.shapes.shape import Shape
from indexing.codegen.differences import ElementIndex
from indexing.codegen.graph import Array
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.mask_values import mask_values
from indexing.maps.runtime_variable import RuntimeVariable
from indexing.ops.numerics import is_integer, limits
from simplifier.atoms import point_count

MAX_LISTED: Final = 1 << 12
"""Limit on the values of range variables that are enumerated."""

MAX_AIMED: Final = 2
"""Limit on the mask values of a map that are chosen together."""

Operands = Sequence[Sequence[Array]]
"""For each operand of an instruction, the arrays of its leaves."""


def images(
    instruction: Instruction, operands: Operands, indexing_map: IndexingMap, at: ElementIndex
) -> set[ElementIndex] | None:
    """Enumerate the elements that a map relates to one element; None if that is infeasible.

    Args:
        instruction: the instruction of the map.
        operands: the values of its operands.
        at: the element at which the map starts.
    """
    ranges = indexing_map.ranges
    if point_count(ranges) > MAX_LISTED:
        return None
    related: set[ElementIndex] = set()
    for inside in product(*[range(v.lower, v.upper + 1) for v in ranges]):
        values = _runtime_values(instruction, operands, indexing_map, (*at, *inside))
        if values is None:
            return None
        results = indexing_map.evaluate(at, inside, values)
        if results is not None:
            related.add(results)
    return related


def image(
    instruction: Instruction,
    operands: Operands,
    indexing_map: IndexingMap,
    at: ElementIndex,
    inside: Sequence[int],
) -> ElementIndex | None:
    """Return the element that a map relates to values of its dimensions and range variables.

    None outside of the domain, and if a runtime variable is not an operand's element.
    """
    values = _runtime_values(instruction, operands, indexing_map, (*at, *inside))
    return None if values is None else indexing_map.evaluate(at, inside, values)


def _runtime_values(
    instruction: Instruction, operands: Operands, m: IndexingMap, values: Sequence[int]
) -> list[int] | None:
    """Return the values of the runtime variables of a map; None if one is not known."""
    point = dict(zip((*m.dims, *m.ranges), values, strict=True))
    runtime = []
    for rt in m.runtime:
        value = _runtime_value(instruction, operands, rt, point)
        if value is None:
            return None
        runtime.append(value)
    return runtime


def _runtime_value(
    instruction: Instruction, operands: Operands, rt: RuntimeVariable, point: Mapping[Any, int]
) -> int | None:
    """Return the value of a runtime variable, or None if it is not an operand's element."""
    source = _source(instruction, operands, rt, point)
    if source is None:
        return None
    array, index = source
    value = int(array[index])
    return value if rt.clamp is None else min(max(value, rt.clamp[0]), rt.clamp[1])


def _source(
    instruction: Instruction, operands: Operands, rt: RuntimeVariable, point: Mapping[Any, int]
) -> tuple[Array, ElementIndex] | None:
    """Return the operand and the index whose element is the value; None if there is none."""
    if rt.calls or rt.source not in instruction.operands:
        return None
    number = instruction.operands.index(rt.source)
    if len(operands[number]) != 1 or not isinstance(instruction.operands[number].shape, Shape):
        return None
    if any(v not in point for e in rt.index for v in e.variables()):
        return None
    return operands[number][0], tuple([e.value(dict(point)) for e in rt.index])


def aim(
    instruction: Instruction,
    operands: Operands,
    m: IndexingMap,
    at: ElementIndex,
    inside: Sequence[int],
    values: Sequence[int],
) -> bool:
    """Set mask values in the operands so that a map reads a point; return True if that is done.

    Args:
        at, inside: values of the dimensions and of the range variables of the map.
        values: integers to try, besides those near the point.
    """
    point = dict(zip((*m.dims, *m.ranges), (*at, *inside), strict=True))
    sources = [_source(instruction, operands, rt, point) for rt in m.runtime]
    if len(mask_values(m)) < len(m.runtime) or len(sources) > MAX_AIMED:
        return False
    near = [n + step for n in (*at, *inside) for step in (0, -1, 1)]
    chosen = dict.fromkeys([*near, *values])
    for given in product(chosen, repeat=len(sources)):
        if m.evaluate(at, tuple(inside), list(given)) is not None:
            return _set_elements(sources, given)
    return False


def _set_elements(
    sources: Sequence[tuple[Array, ElementIndex] | None], values: Sequence[int]
) -> bool:
    for source, value in zip(sources, values, strict=True):
        if source is None:
            return False
        array, index = source
        least, largest = limits(array.dtype) if is_integer(array) else (0, 0)
        if not least <= value <= largest:
            return False
        array[index] = value
    return all(int(each[0][each[1]]) == v for each, v in zip(sources, values, strict=True) if each)

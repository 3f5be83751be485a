"""Start indices that follow from the number of the device, as formulas of it.

A partitioned program computes on each device which part is its own: a table is looked up at
``partition-id``, or the number is multiplied.  Such a value is computed for every device with the
ops' kernels, which keeps wrap-around, rounding and clamps what they are; then the row of values is
recognised as a formula (`indexing.devices.strided_groups`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np

from hlo.modules.bind import check_instruction
from hlo.modules.module import Instruction
from hlo.shapes.shape import Shape
from hlo.text.source import HloError
from indexing.devices.devices import Devices
from indexing.devices.strided_groups import strided_columns
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.runtime_variable import RuntimeVariable
from indexing.ops.base import MappedOp
from indexing.ops.devices import DeviceId
from indexing.ops.element import ConstantRule, CopyRule, ElementwiseRule, IotaRule, element_of
from indexing.ops.integer_rules import MAX_CASES, range_of
from simplifier.constraints import Constraint
from simplifier.linear import Expr
from simplifier.substitute import Substitution

MAX_ELEMENTS: Final = 1 << 12
"""Larger arrays are no tables of start indices, and are not computed for every device."""
MAX_COMPUTED: Final = 1 << 10
"""Nor is anything for more devices than that."""


def folded(found: IndexingMap, devices: Devices) -> tuple[IndexingMap, ...]:
    """A map of `devices` without the runtime variables that the device decides, in pieces.

    >>> import hlo, indexing
    >>> root = hlo.parse('''HloModule m, num_partitions=4
    ... ENTRY e {
    ...   p = f32[8] parameter(0)
    ...   t = s32[4] constant({6, 4, 2, 0})
    ...   i = u32[] partition-id()
    ...   s = s32[1] dynamic-slice(t, i), dynamic_slice_sizes={1}
    ...   o = s32[] reshape(s)
    ...   ROOT r = f32[2] dynamic-slice(p, o), dynamic_slice_sizes={2}
    ... }''').entry.root
    >>> (read,) = indexing.device_maps(root).maps[0]
    >>> print(*folded(read, Devices.of(root.module)))
    (device, d0) -> (device, d0 - device * 2 + 6), domain: device in [0, 3], d0 in [0, 1]
    """
    pieces = [found]
    for rt in found.runtime:
        pieces = [new for piece in pieces for new in _folded_one(piece, rt, devices)]
    return tuple(pieces)


def _folded_one(found: IndexingMap, rt: RuntimeVariable, devices: Devices) -> Iterator[IndexingMap]:
    """`found` with the values of one runtime variable, if it is still there and they are known."""
    values = _values(rt, devices) if rt in found.runtime else None
    parts = strided_columns([values]) if values else []
    if not 0 < len(parts) <= MAX_CASES:
        yield found
        return
    device = found.dims[0]
    rest = [other for other in found.runtime if other is not rt]
    for part in parts:
        value: Expr = part.device(0, device)
        swap = Substitution({rt.variable: value})
        bounds = Constraint(device.as_expr(), part.first, part.first + part.width - 1)
        results, constraints = found.substituted({rt.variable: value})
        every = (*constraints, bounds, Constraint(value, *rt.variable.bounds))
        if not any(c.is_false for c in every):
            yield replace(
                found,
                results=tuple(results),
                runtime=tuple([replace(o, index=tuple(map(swap, o.index))) for o in rest]),
                constraints=tuple([c for c in every if not c.is_true]),
            )


def _values(rt: RuntimeVariable, devices: Devices) -> tuple[int, ...] | None:
    """The value on each device, clamped; None if it does not follow from the device alone.

    The element that it is must be the same on all devices, and read on the device itself.
    """
    if not isinstance(rt.source, Instruction) or devices.count > MAX_COMPUTED or not rt.index:
        return None
    where, *index = rt.index
    if where != devices.variable.as_expr() or not all(expr.is_constant for expr in index):
        return None
    needed = _needed(rt.source)
    if needed is None:
        return None
    at = tuple([expr.constant for expr in index])
    try:
        found = [int(_computed(needed, devices, number)[at]) for number in range(devices.count)]
    except HloError:  # a constant that is elided, {...}
        return None
    if rt.clamp:
        low, high = rt.clamp
        found = [min(max(value, low), high) for value in found]
    return tuple(found)


def _needed(source: Instruction) -> list[Instruction] | None:
    """What the value of `source` is computed from, operands first; None if not from ids alone."""
    found: dict[Instruction, None] = {}
    pending = [source]
    while pending:
        instruction = pending.pop()
        if instruction in found:
            continue
        if not _is_computable(instruction):
            return None
        found[instruction] = None
        pending.extend(instruction.operands)
    return sorted(found, key=lambda instruction: instruction.index)


def _is_computable(instruction: Instruction) -> bool:
    """A small array of integers that a kernel computes exactly, element by element."""
    op, shape = instruction.op, instruction.shape
    if not isinstance(op, MappedOp) or check_instruction(instruction):
        return False
    if not isinstance(shape, Shape) or range_of(shape.element_type) is None:
        return False
    match element_of(instruction):
        case CopyRule(has_padding=True) | ElementwiseRule(applied=True):
            return False
        case ConstantRule() | IotaRule() | CopyRule() | ElementwiseRule():
            return shape.size <= MAX_ELEMENTS
    return isinstance(op, DeviceId)


def _computed(needed: list[Instruction], devices: Devices, number: int) -> Any:
    """The value of the last of `needed` on the device `number`."""
    values: dict[Instruction, Any] = {}
    for instruction in needed:
        values[instruction] = _value(instruction, values, devices, number)
    return values[needed[-1]]


def _value(
    instruction: Instruction, values: Mapping[Instruction, Any], devices: Devices, number: int
) -> Any:
    op = instruction.op
    if isinstance(op, DeviceId):
        return np.asarray(op.of_device(devices, number), np.uint32)
    operands = [values[operand] for operand in instruction.operands]
    assert isinstance(op, MappedOp), "no other op is computable"
    with np.errstate(all="ignore"):
        return op.compute(operands, [o.shape for o in instruction.operands])

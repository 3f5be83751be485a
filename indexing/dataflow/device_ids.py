"""Constant folding of start indices that depend only on the device, to formulas of the device.

A partitioned program computes the start of its own shard on each device: it looks up a table at
``partition-id``, or multiplies the number.  Such a value is computed for every device with the
kernels of the ops, so wrap-around, rounding and clamping are exact.  The row of values is then
recognised as a formula (`indexing.devices.strided_groups`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np

from hlo.modules.module import Instruction
from hlo.shapes.shape import Shape
from hlo.text.source import HloError
from indexing.dataflow.constants import is_integral
from indexing.dataflow.soundness import fault_of
from indexing.devices.devices import Devices
from indexing.devices.strided_groups import strided_columns
from indexing.maps.arrays import ArrayRef, Path
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.runtime_variable import RuntimeVariable
from indexing.ops.base import MappedOp
from indexing.ops.devices import DeviceId
from indexing.ops.element import (
    ConstantRule,
    CopyRule,
    ElementOp,
    ElementwiseRule,
    IotaRule,
    element_of,
)
from indexing.ops.integer_rules import MAX_CASES
from simplifier.constraints import Constraint
from simplifier.linear import Expr
from simplifier.substitute import Substitution

MAX_ELEMENTS: Final = 1 << 12
"""Limit on the elements of an array; larger arrays are not computed for every device."""
MAX_DEVICES: Final = 1 << 10
"""Limit on the number of devices; beyond it, nothing is computed for every device."""


def fold_devices(indexing_map: IndexingMap, devices: Devices) -> tuple[IndexingMap, ...]:
    """Return a map without the runtime variables that the device determines, in disjoint pieces.

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
    >>> print(*fold_devices(read, Devices.of(root.module)))
    (device, d0) -> (device, d0 - device * 2 + 6), domain: device in [0, 3], d0 in [0, 1]
    """
    pieces = [indexing_map]
    for rt in indexing_map.runtime:
        pieces = [new for piece in pieces for new in _fold_one(piece, rt, devices)]
    return tuple(pieces)


def _fold_one(piece: IndexingMap, rt: RuntimeVariable, devices: Devices) -> Iterator[IndexingMap]:
    """Yield `piece` with one runtime variable replaced by its value on each range of devices.

    Yield `piece` unchanged if the variable has been eliminated or its values are not known.
    """
    values = _values(rt, devices) if rt in piece.runtime else None
    groups = strided_columns([values]) if values else []
    if not 0 < len(groups) <= MAX_CASES:
        yield piece
        return
    device = piece.dims[0]
    rest = [other for other in piece.runtime if other is not rt]
    for group in groups:
        value: Expr = group.device(0, device)
        swap = Substitution({rt.variable: value})
        bounds = Constraint(device.as_expr(), group.first, group.first + group.width - 1)
        results, constraints = piece.substituted({rt.variable: value})
        every = (*constraints, bounds, Constraint(value, *rt.variable.bounds))
        if not any(c.is_false for c in every):
            yield replace(
                piece,
                results=tuple(results),
                runtime=tuple([replace(o, index=tuple(map(swap, o.index))) for o in rest]),
                constraints=tuple([c for c in every if not c.is_true]),
            )


def _values(rt: RuntimeVariable, devices: Devices) -> tuple[int, ...] | None:
    """Return the clamped value on each device, or None if it depends on more than the device.

    Every device must read the same element, and from itself.
    """
    if not isinstance(rt.source, Instruction) or devices.count > MAX_DEVICES or not rt.element:
        return None
    source_device, *index = rt.element
    if source_device != devices.variable.as_expr() or not all(expr.is_constant for expr in index):
        return None
    needed = _needed_instructions(rt.source)
    if needed is None:
        return None
    at = tuple([expr.constant for expr in index])
    try:
        values = [
            int(_compute_value(needed, devices, number)[at]) for number in range(devices.count)
        ]
    except HloError:  # an elided constant, {...}
        return None
    if rt.clamp:
        low, high = rt.clamp
        values = [min(max(value, low), high) for value in values]
    return tuple(values)


def _needed_instructions(source: Instruction) -> list[Instruction] | None:
    """Return the instructions that compute `source`, operands first; None if not computable."""
    needed: dict[Instruction, None] = {}
    pending = [_forwarded_instruction(source)]
    while pending:
        instruction = pending.pop()
        if instruction is None or not _is_computable(instruction):
            return None
        if instruction not in needed:
            needed[instruction] = None
            pending.extend(map(_forwarded_instruction, instruction.operands))
    return sorted(needed, key=lambda instruction: instruction.index)


def _forwarded_instruction(instruction: Instruction) -> Instruction | None:
    """Return the instruction whose only array an array is, such as an asynchronous copy's operand.

    None if the array is a leaf of a tuple that is not known.
    """
    path: Path = ()
    while isinstance(instruction.op, ElementOp):
        leaf = instruction.op.forwarded_leaf(path)
        if leaf is None:
            break
        number, path = leaf
        instruction = instruction.operands[number]
    return instruction if path == () else None


def _is_computable(instruction: Instruction) -> bool:
    """Return True for a small array of integers that a kernel computes exactly per element."""
    op, shape = instruction.op, instruction.shape
    if not isinstance(op, MappedOp) or fault_of(instruction):
        return False
    if not isinstance(shape, Shape) or not is_integral(ArrayRef(instruction)):
        return False
    match element_of(instruction):
        case CopyRule(has_padding=True) | ElementwiseRule(uses_computation=True):
            return False
        case ConstantRule() | IotaRule() | CopyRule() | ElementwiseRule():
            return shape.size <= MAX_ELEMENTS
    return isinstance(op, DeviceId)


def _compute_value(needed: list[Instruction], devices: Devices, number: int) -> Any:
    """Return the value of the last of `needed` on device `number`."""
    values: dict[Instruction | None, Any] = {}
    for instruction in needed:
        values[instruction] = _value(instruction, values, devices, number)
    return values[needed[-1]]


def _value(
    instruction: Instruction,
    values: Mapping[Instruction | None, Any],
    devices: Devices,
    number: int,
) -> Any:
    op = instruction.op
    if isinstance(op, DeviceId):
        return np.asarray(op.of_device(devices, number), np.uint32)
    operands = [values[_forwarded_instruction(operand)] for operand in instruction.operands]
    assert isinstance(op, MappedOp), "_is_computable accepts only mapped ops"
    with np.errstate(all="ignore"):
        return op.compute(operands, [o.shape for o in instruction.operands])

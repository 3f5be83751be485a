"""Dynamic dimensions: arrays have their run-time sizes.

A value of shape ``f32[<=4]`` is an array of at most 4 elements; results of a program are padded
with zeros.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from hlo.modules.module import Instruction
from hlo.shapes.shape import AnyShape, Shape, TupleShape
from indexing.execution.interpreter import handles
from indexing.execution.machine import Machine
from indexing.execution.values import Value, failure


def padded_to_shape(value: Value, shape: AnyShape) -> Value:
    """Pad each array with zeros to the upper bounds of its shape.

    >>> padded_to_shape(np.float32([1, 2]), Shape("f32", (3,), dynamic=(True,)))
    array([1., 2., 0.], dtype=float32)
    """
    match shape:
        case TupleShape(elements):
            return tuple(
                [padded_to_shape(v, element) for v, element in zip(value, elements, strict=True)]
            )
        case Shape() if value.shape != shape.dims:
            out = np.zeros(shape.dims, value.dtype)
            out[tuple([slice(0, n) for n in value.shape])] = value
            return out
    return value


@handles("set-dimension-size")
def _set_size(machine: Machine, instruction: Instruction, operands: Sequence[Value]) -> Value:
    array, size = operands[0], int(operands[1])
    shape, op = instruction.shape, instruction.op
    assert isinstance(shape, Shape)
    (axis,) = op.dimensions  # type: ignore[union-attr] # of set-dimension-size
    if not 0 <= size <= shape.dims[axis]:
        message = f"size {size} of dimension {axis} of {shape} is out of range"
        raise failure(instruction, message, f"expected a size in [0, {shape.dims[axis]}]")
    flags = shape.dynamic if shape.is_dynamic else (False,) * shape.rank
    sizes = list(array.shape)
    if flags[axis]:  # otherwise the elements beyond the size are undefined, and kept here
        sizes[axis] = size
    kept = array[tuple([slice(0, n) for n in sizes])]
    padded = [n if flag else m for n, m, flag in zip(sizes, shape.dims, flags, strict=True)]
    out = np.zeros(padded, array.dtype)
    out[tuple([slice(0, n) for n in kept.shape])] = kept
    return out


@handles("dynamic-reshape")
def _dynamic_reshape(
    machine: Machine, instruction: Instruction, operands: Sequence[Value]
) -> Value:
    shape = instruction.shape
    assert isinstance(shape, Shape)
    flags = shape.dynamic or (False,) * shape.rank
    sizes = [
        min(max(int(n), 0), m) if flag else m
        for n, m, flag in zip(operands[1:], shape.dims, flags, strict=True)
    ]
    flat = operands[0].reshape(-1)
    is_padded = getattr(instruction.operands[0].shape, "is_dynamic", False)
    if flat.size < prod(sizes) or (flat.size > prod(sizes) and not is_padded):
        message = f"cannot reshape {flat.size} elements to {sizes}: {prod(sizes)} elements"
        names = " and ".join([f"`{size.name}`" for size in instruction.operands[1:]])
        help_text = f"the product of the sizes, {names}, must be the number of elements"
        raise failure(instruction, message, "the number of elements differs", help_text)
    return flat[: prod(sizes)].reshape(sizes)


@handles("broadcast")
def _broadcast(machine: Machine, instruction: Instruction, operands: Sequence[Value]) -> Value:
    op: Any = instruction.op
    operand = operands[0]
    if not getattr(instruction.shape, "is_dynamic", False):
        return op.kernel(operand)
    sizes, expanded = list(op.shape.dims), [1] * op.shape.rank
    for k, dimension in enumerate(op.dimensions):
        sizes[dimension] = expanded[dimension] = operand.shape[k]
    order = sorted(range(operand.ndim), key=lambda k: op.dimensions[k])
    return np.broadcast_to(operand.transpose(order).reshape(expanded), sizes)


@handles("reshape")
def _reshape(machine: Machine, instruction: Instruction, operands: Sequence[Value]) -> Value:
    op: Any = instruction.op
    shape, array = instruction.shape, operands[0]
    if not isinstance(shape, Shape) or not shape.is_dynamic or array.size == shape.size:
        return op.kernel(array)
    if op.dimensions is not None:
        array = array.transpose(op.dimensions)
    if sum(shape.dynamic) > 1:
        raise failure(instruction, "reshape to several dynamic dimensions: sizes are ambiguous")
    sizes = [-1 if d else n for n, d in zip(shape.dims, shape.dynamic, strict=True)]
    return array.reshape(sizes)

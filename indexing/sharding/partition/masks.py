"""Masks: values of padding, and values that count on one device only."""

from __future__ import annotations

from hlo.shapes.shape import Shape
from indexing.sharding.partition.moves import Axes
from indexing.sharding.partition.split_instruction import SplitInstruction
from indexing.sharding.partition.writer import LocalBody, LocalValue


def mask_padding(
    body: LocalBody, split: SplitInstruction, array: int, dim: int, reduction: str
) -> LocalValue:
    """Return an operand with the padding of one dimension neutral in a reduction."""
    value, axes = split.operands[array], split.needed[array].dims[dim]
    size, dims = split.operand_shape(array).dims[dim], split.operands[array].array.dims
    if size == dims[dim] * sharding_count(body, axes):
        return value
    places = body.scalar_op(
        "add", body.iota(dims, dim), body.broadcast(body.number(axes, dims[dim]), dims)
    )
    inside = compare(body, places, "LT", body.broadcast(body.index(size), dims))
    neutral = body.neutral(reduction, value.array.element_type)
    return body.add("select", value.shape, (inside, value, body.broadcast(neutral, dims)))


def on_first_device(
    body: LocalBody, value: LocalValue, axes: Axes, other: LocalValue
) -> LocalValue:
    """Return a value on the first device along axes, and a scalar on the others."""
    if value == other:
        return value
    is_first = compare(body, body.number(axes), "EQ", body.index(0))
    fill = body.broadcast(other, value.array.dims)
    return body.add("select", value.shape, (is_first, value, fill))


def compare(body: LocalBody, left: LocalValue, direction: str, right: LocalValue) -> LocalValue:
    """Return the comparison of two arrays."""
    shape = Shape("pred", left.array.dims)
    return body.add("compare", shape, (left, right), f"direction={direction}")


def sharding_count(body: LocalBody, axes: Axes) -> int:
    """Return the number of shards along axes."""
    count = 1
    for axis in axes:
        count *= body.mesh.size_of(axis)
    return count

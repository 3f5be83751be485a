"""The local instruction of an instruction whose factors are split.

It has the opcode of the global one, the shapes of shards, and attributes adapted to them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod
from typing import Final, TypeAlias

from hlo.shapes.shape import Shape
from hlo.shardings.mesh import Axis
from indexing.ops.convolution import Convolution
from indexing.ops.dynamic import DynamicSlice
from indexing.ops.gather import Gather
from indexing.ops.iota import Iota
from indexing.sharding.partition import runtime_indices, windows
from indexing.sharding.partition.masks import mask_padding, on_first_device
from indexing.sharding.partition.split_instruction import SplitInstruction, add_local
from indexing.sharding.partition.writer import LocalBody, LocalValue
from indexing.sharding.rules.combiners import COMBINERS


def local_results(body: LocalBody, split: SplitInstruction) -> list[LocalValue]:
    """Add the local instruction and return the arrays of its result."""
    return _HANDLERS.get(split.instruction.opcode, add_local)(body, split)


def _iota(body: LocalBody, split: SplitInstruction) -> list[LocalValue]:
    op = split.instruction.op
    assert isinstance(op, Iota)
    (value,) = add_local(body, split)
    axes = split.results[0].dims[op.iota_dimension]
    if not axes:
        return [value]
    shape = value.array
    offset = body.number(axes, shape.dims[op.iota_dimension])
    scalar = body.add("convert", Shape(shape.element_type, ()), (offset,))
    return [body.scalar_op("add", value, body.broadcast(scalar, shape.dims))]


def _reduce(body: LocalBody, split: SplitInstruction) -> list[LocalValue]:
    """Reduce shards: padding is neutral, and the initial value counts on one device.

    The initial value is combined with the result: XLA takes that of a reduce for neutral.
    """
    reduced = list(split.reduced)
    if not reduced:
        return add_local(body, split)
    kind = split.rule.factors[reduced[0][0]].reduction
    neutral = body.neutral(kind, split.operands[0].array.element_type)
    for number, _ in reduced:
        for array, dim in split.rule.dims_of(number, split.rule.operands):
            split.operands[array] = mask_padding(body, split, array, dim, kind)
    init, split.operands[1] = split.operands[1], neutral
    (value,) = add_local(body, split)
    if init == neutral:
        return [value]
    first = on_first_device(body, init, tuple(a for _, axes in reduced for a in axes), neutral)
    opcode = COMBINERS[kind].opcode
    return [body.scalar_op(opcode, value, body.broadcast(first, value.array.dims))]


def _random(body: LocalBody, split: SplitInstruction) -> list[LocalValue]:
    """Generate numbers on the first device only: generators of devices may have other states."""
    axes = tuple(Axis(name) for name in body.mesh.sizes)
    (value,) = add_local(body, split)
    zero = body.zero(value.array.element_type)
    split.results = [replace(split.results[0], partial=tuple((axis, "sum") for axis in axes))]
    return [on_first_device(body, value, axes, zero)]


def _sum_of_products(body: LocalBody, split: SplitInstruction) -> list[LocalValue]:
    """Contract shards: padding is 0."""
    for number, _ in split.reduced:
        for array, dim in split.rule.dims_of(number, split.rule.operands):
            split.operands[array] = mask_padding(body, split, array, dim, "sum")
    return add_local(body, split)


def _convolution(body: LocalBody, split: SplitInstruction) -> list[LocalValue]:
    op = split.instruction.op
    assert isinstance(op, Convolution)
    changed = {}
    batch, features = op.dim_labels.order("lhs")[:2]
    for name, dim in (("feature_group_count", features), ("batch_group_count", batch)):
        count = getattr(op, name)
        numbers = split.rule.operands[0][dim]
        if count > 1 and numbers and split.axes[numbers[0]]:  # groups are the major factor
            mesh = split.needed[0].mesh
            changed[name] = str(count // prod(map(mesh.size_of, split.axes[numbers[0]])))
    for number, _ in split.reduced:
        for array, dim in split.rule.dims_of(number, split.rule.operands):
            split.operands[array] = mask_padding(body, split, array, dim, "sum")
    changed |= windows.convolution_windows(body, split)
    return add_local(body, split, **changed)


def _gather(body: LocalBody, split: SplitInstruction) -> list[LocalValue]:
    op = split.instruction.op
    assert isinstance(op, Gather)
    sizes = list(op.slice_sizes)
    shape = split.operand_shape(0)
    for dim, axes in enumerate(split.needed[0].dims):
        if axes and sizes[dim] == shape.dims[dim] and not split.is_reduced(0, dim):
            sizes[dim] = split.operands[0].array.dims[dim]
    changed = {"slice_sizes": runtime_indices.size_list(sizes)}
    return runtime_indices.gather(body, split, lambda: add_local(body, split, **changed))


def _dynamic_slice(body: LocalBody, split: SplitInstruction) -> list[LocalValue]:
    op = split.instruction.op
    assert isinstance(op, DynamicSlice)
    sizes = list(op.dynamic_slice_sizes)
    for dim, axes in enumerate(split.needed[0].dims):
        if axes and not split.is_reduced(0, dim):
            sizes[dim] = split.operands[0].array.dims[dim]
    changed = {"dynamic_slice_sizes": runtime_indices.size_list(sizes)}
    return runtime_indices.dynamic_slice(body, split, lambda: add_local(body, split, **changed))


Handler: TypeAlias = Callable[[LocalBody, SplitInstruction], list[LocalValue]]

_HANDLERS: Final[dict[str, Handler]] = {
    "iota": _iota,
    "rng": _random,
    "rng-get-and-update-state": _random,
    "slice": windows.slice_of_shards,
    "pad": windows.pad,
    "reverse": windows.reverse,
    "reduce-window": windows.reduce_window,
    "reduce": _reduce,
    "dot": _sum_of_products,
    "convolution": _convolution,
    "gather": _gather,
    "dynamic-slice": _dynamic_slice,
    "dynamic-update-slice": runtime_indices.dynamic_update_slice,
    "scatter": runtime_indices.scatter,
}

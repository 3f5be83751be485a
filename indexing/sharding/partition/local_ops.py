"""The local instruction of an instruction whose factors are split.

It has the opcode of the global one, the shapes of shards, and attributes adapted to them.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Final, TypeAlias

from hlo.shapes.shape import Shape
from indexing.ops.convolution import Convolution
from indexing.ops.dynamic import DynamicSlice
from indexing.ops.gather import Gather
from indexing.ops.iota import Iota
from indexing.sharding.partition import indexed
from indexing.sharding.partition.masks import masked, on_first_device
from indexing.sharding.partition.split_instruction import SplitInstruction, add_local
from indexing.sharding.partition.writer import LocalBody, LocalValue


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


def _slice(body: LocalBody, split: SplitInstruction) -> list[LocalValue]:
    (operand,), (sharding,) = split.operands, split.needed
    cuts = split.instruction.op.slice  # type: ignore[union-attr]
    ranges = [
        f"[0:{size}]" if axes else str(cut)
        for cut, size, axes in zip(cuts, operand.array.dims, sharding.dims, strict=True)
    ]
    return add_local(body, split, slice=f"{{{', '.join(ranges)}}}")


def _reduce(body: LocalBody, split: SplitInstruction) -> list[LocalValue]:
    """Reduce shards: the initial value counts on one device, padding is neutral."""
    for number, axes in split.reduced:
        kind = split.rule.factors[number].reduction
        element_type = split.operands[0].array.element_type
        neutral = body.neutral(kind, element_type)
        for array, dim in split.rule.dims_of(number, split.rule.operands):
            split.operands[array] = masked(body, split, array, dim, kind)
        for array in split.rule.inits:
            split.operands[array] = on_first_device(body, split.operands[array], axes, neutral)
    return add_local(body, split)


def _sum_of_products(body: LocalBody, split: SplitInstruction) -> list[LocalValue]:
    """Contract shards: padding is 0."""
    for number, _ in split.reduced:
        for array, dim in split.rule.dims_of(number, split.rule.operands):
            split.operands[array] = masked(body, split, array, dim, "sum")
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
            split.operands[array] = masked(body, split, array, dim, "sum")
    return add_local(body, split, **changed)


def _gather(body: LocalBody, split: SplitInstruction) -> list[LocalValue]:
    op = split.instruction.op
    assert isinstance(op, Gather)
    sizes = list(op.slice_sizes)
    shape = split.operand_shape(0)
    for dim, axes in enumerate(split.needed[0].dims):
        if axes and sizes[dim] == shape.dims[dim] and not split.is_reduced(0, dim):
            sizes[dim] = split.operands[0].array.dims[dim]
    changed = {"slice_sizes": indexed.listed(sizes)}
    return indexed.gather(body, split, lambda: add_local(body, split, **changed))


def _dynamic_slice(body: LocalBody, split: SplitInstruction) -> list[LocalValue]:
    op = split.instruction.op
    assert isinstance(op, DynamicSlice)
    sizes = list(op.dynamic_slice_sizes)
    for dim, axes in enumerate(split.needed[0].dims):
        if axes and not split.is_reduced(0, dim):
            sizes[dim] = split.operands[0].array.dims[dim]
    changed = {"dynamic_slice_sizes": indexed.listed(sizes)}
    return indexed.dynamic_slice(body, split, lambda: add_local(body, split, **changed))


Handler: TypeAlias = Callable[[LocalBody, SplitInstruction], list[LocalValue]]

_HANDLERS: Final[dict[str, Handler]] = {
    "iota": _iota,
    "slice": _slice,
    "reduce": _reduce,
    "dot": _sum_of_products,
    "convolution": _convolution,
    "gather": _gather,
    "dynamic-slice": _dynamic_slice,
    "dynamic-update-slice": indexed.dynamic_update_slice,
    "scatter": indexed.scatter,
}

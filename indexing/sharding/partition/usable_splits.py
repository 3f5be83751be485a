"""The splits of an instruction's factors that its local instruction can execute.

An assignment may split any factor. Where the local instruction cannot work on such shards, the
factor stays whole: the operands are gathered, and the result is sliced.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import TypeAlias

from hlo.modules.module import Instruction
from hlo.ops.attributes import Padding, SliceDimension, WindowDimension
from hlo.shapes.shape import Shape
from hlo.shardings.mesh import Axis, Mesh
from indexing.maps.arrays import array_leaves
from indexing.ops.convolution import Convolution
from indexing.ops.element import declarations_of
from indexing.ops.gather import Gather
from indexing.ops.pad import Pad
from indexing.ops.ragged_dot import RaggedDot
from indexing.ops.reduce_window import ReduceWindow
from indexing.ops.scatter import Scatter
from indexing.ops.select_and_scatter import SelectAndScatter
from indexing.ops.slicing import Slice
from indexing.ops.structure import ForwardingOp
from indexing.sharding.partition.moves import Axes
from indexing.sharding.partition.windows import halo_of
from indexing.sharding.rules.combiners import COMBINERS
from indexing.sharding.rules.sharding_rules import ShardingRule


def _can_split(instruction: Instruction, rule: ShardingRule, number: int, count: int) -> bool:
    """Return True if the local instruction can work on `count` shards along a factor."""
    declared = declarations_of(instruction)
    if issubclass(declared, ForwardingOp) or instruction.opcode == "constant" or count == 1:
        return True
    shapes = [shape for each in (*instruction.operands, instruction)
              for _, _, shape in array_leaves(each.shape)]  # fmt: skip
    is_filled = all(shape.size for shape in shapes)
    return declared.is_splittable and is_filled and _is_executable(instruction, rule, number, count)


def usable_axes(
    instruction: Instruction, rule: ShardingRule, factor_axes: Sequence[Axes], mesh: Mesh
) -> tuple[Axes, ...]:
    """Return for each factor the axes along which the local instruction may be split."""
    used: set[Axis] = set()
    usable: list[Axes] = []
    for number, axes in enumerate(factor_axes):
        split = tuple(axis for axis in axes if mesh.size_of(axis) > 1)
        count = prod([mesh.size_of(axis) for axis in split])
        if used & set(split) or not (split and _can_split(instruction, rule, number, count)):
            split = ()
        used |= set(split)
        usable.append(split)
    while (broken := _not_contiguous(rule, usable, mesh)) is not None:
        usable[broken] = ()
    return tuple(usable)


def _not_contiguous(rule: ShardingRule, axes: Sequence[Axes], mesh: Mesh) -> int | None:
    """Return a factor whose split makes shards that are no intervals, or of different sizes."""
    for dims in (*rule.operands, *rule.results):
        for numbers in dims:
            is_whole = False  # a more major factor is not split completely
            for number in numbers if len(numbers) > 1 else ():
                count, size = 1, rule.factors[number].size
                for axis in axes[number]:
                    count *= mesh.size_of(axis)
                if count > 1 and (is_whole or size % count):
                    return number
                is_whole |= count < size
    return None


def _is_executable(instruction: Instruction, rule: ShardingRule, number: int, count: int) -> bool:
    factor, declared = rule.factors[number], declarations_of(instruction)
    operand_dims = list(rule.dims_of(number, rule.operands))
    result_dims = list(rule.dims_of(number, rule.results))
    match factor.kind:
        case "need_replication":
            return False
        case "permutation":
            return halo_of(instruction, rule, number, count) is not None
        case "reduction":
            needed = "masked" if factor.is_masked else "partial"
            is_known = declared.reduces_shards == needed and factor.reduction in COMBINERS
            is_single = isinstance(instruction.shape, Shape)
            is_known = is_known and _is_contracted(instruction, operand_dims)
            return is_known and is_single and not result_dims
    if not result_dims or not (operand_dims or declared.creates_dimensions):
        return False
    if isinstance(instruction.op, Convolution) and _crosses_groups(instruction.op, rule, number):
        return False
    return _works_on_shards(instruction, operand_dims, result_dims)


Dims: TypeAlias = Sequence[tuple[int, int]]
"""Dimensions of several arrays: the number of the array, and of its dimension."""


def _works_on_shards(instruction: Instruction, operand_dims: Dims, result_dims: Dims) -> bool:
    """Return True if the op treats all positions along a factor's dimensions alike."""
    match instruction.op:
        case Pad() as op:
            return all(op.padding[dim] == Padding() for _, dim in result_dims)
        case ReduceWindow() | SelectAndScatter() as op:
            return all(not op.window or is_tiling(op.window[dim]) for _, dim in result_dims)
        case Convolution() as op:
            spatial = dict(zip(op.dim_labels.order("out")[2:], op.window, strict=True))
            return all(dim not in spatial or is_tiling(spatial[dim]) for _, dim in result_dims)
        case Slice() as op:
            sizes = _dims(instruction, 0)
            return all(op.slice[dim] == SliceDimension(0, sizes[dim]) for _, dim in operand_dims)
        case RaggedDot() as op:
            return _is_unragged(instruction, op, operand_dims)
        case Gather() as op:
            return _is_read_whole(instruction, op, operand_dims)
        case Scatter() as op:
            return _is_written(instruction, op, operand_dims)
    return True


def _crosses_groups(op: Convolution, rule: ShardingRule, number: int) -> bool:
    """Return True for a factor that has the output features of several groups.

    Each group is a position of a factor of the input features, unless windows read padding only.
    """
    groups = max(op.feature_group_count, op.batch_group_count)
    is_alone = [number] == list(rule.results[0][op.dim_labels.order("out")[1]])
    return groups > 1 and is_alone and not any(number in dims for dims in rule.operands[0])


def _dims(instruction: Instruction, operand: int) -> tuple[int, ...]:
    shape = instruction.operands[operand].shape
    assert isinstance(shape, Shape)
    return shape.dims


def _is_unragged(instruction: Instruction, op: RaggedDot, operand_dims: Dims) -> bool:
    """Return True if the rows of the groups are not split; each batch may have its own sizes."""
    is_ragged = any(array == 0 and dim in op.lhs_ragged_dims for array, dim in operand_dims)
    return len(_dims(instruction, 2)) == 1 and not is_ragged


def _is_read_whole(instruction: Instruction, op: Gather, operand_dims: Dims) -> bool:
    """Return True if slices fill the operand's dimensions, or are numbered like its shards."""
    sizes = _dims(instruction, 0)
    return all(
        array or dim in op.operand_batching_dims or op.slice_sizes[dim] == sizes[dim]
        for array, dim in operand_dims
    )


def _is_written(instruction: Instruction, op: Scatter, operand_dims: Dims) -> bool:
    """Return True if updates are split like the operand, or write single positions of it."""
    count = (len(instruction.operands) - 1) // 2
    is_updated = any(array > count for array, _ in operand_dims)
    written = [dim for array, dim in operand_dims if array < count]
    return is_updated or all(dim in op.inserted_window_dims for dim in written)


def _is_contracted(instruction: Instruction, operand_dims: Dims) -> bool:
    """Return True unless a convolution's window itself is split."""
    if not isinstance(instruction.op, Convolution):
        return True
    labels = instruction.op.dim_labels
    features = {(0, labels.order("lhs")[1]), (1, labels.order("rhs")[0])}
    return set(operand_dims) <= features


def is_tiling(window: WindowDimension) -> bool:
    """Return True if windows are adjacent: shards of windows cover shards of the array."""
    return replace(window, is_reversed=False) == WindowDimension(window.size, window.size)

"""Local instructions with runtime indices into a dimension that is split.

A gather from a shard returns 0 for elements of other shards; the sum over the devices is the
result.  A scatter or an update into a shard drops the updates of other shards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from hlo.shapes.shape import ELEMENT_TYPES, Shape
from hlo.shardings.mesh import Axis
from indexing.ops.gather import Gather
from indexing.ops.scatter import Scatter
from indexing.sharding.partition.masks import compare, mask_padding, on_first_device
from indexing.sharding.partition.split_instruction import SplitInstruction, add_local
from indexing.sharding.partition.writer import LocalBody, LocalValue


def size_list(sizes: Iterable[int]) -> str:
    """Return sizes as the text of an attribute."""
    return f"{{{','.join(map(str, sizes))}}}"


# ---------------------------------------------------------------- reads


def gather(
    body: LocalBody, split: SplitInstruction, emit: Callable[[], list[LocalValue]]
) -> list[LocalValue]:
    """Add a gather; `emit` adds the instruction for the operands of `split`."""
    op = split.instruction.op
    assert isinstance(op, Gather)
    masks, is_first = [], []
    for number, axes in split.reduced:
        for _, dim in split.rule.dims_of(number, split.rule.operands):
            if dim not in op.start_index_map:  # element 0 of the dimension, which device 0 has
                is_first.append(axes)
                continue
            component = op.start_index_map.index(dim)
            indices, mask = _shift_indices(body, split, dim, component, op.index_vector_dim, axes)
            split.operands[1] = indices
            masks.append(mask)
    (value,) = emit()
    kept = [k for k in range(value.array.rank) if k not in op.offset_dims]
    for mask in masks:
        value = _only(body, value, mask, kept)
    for axes in is_first:
        value = on_first_device(body, value, axes, body.zero(value.array.element_type))
    return [value]


def dynamic_slice(
    body: LocalBody, split: SplitInstruction, emit: Callable[[], list[LocalValue]]
) -> list[LocalValue]:
    """Add a dynamic-slice of one element along split dimensions."""
    masks = []
    if any(split.reduced):
        split.operands[1:] = _scalars(body, split.operands[1:])
    for number, axes in split.reduced:
        for _, dim in split.rule.dims_of(number, split.rule.operands):
            size, local = split.operand_shape(0).dims[dim], split.operands[0].array.dims[dim]
            start = _clamp_indices(body, split.operands[1 + dim], size - 1)
            start = _minus(body, start, body.number(axes, local))
            split.operands[1 + dim] = start
            masks.append(_is_inside(body, start, local))
    (value,) = emit()
    for mask in masks:
        value = _only(body, value, mask, [])
    return [value]


def _only(body: LocalBody, value: LocalValue, mask: LocalValue, dims: list[int]) -> LocalValue:
    """Return an array with 0 where a mask of some of its dimensions is false."""
    shape = value.array
    if not shape.rank:
        return body.add("select", shape, (mask, value, body.zero(shape.element_type)))
    where = Shape("pred", shape.dims)
    broadcast = body.add("broadcast", where, (mask,), f"dimensions={size_list(dims)}")
    zero = body.broadcast(body.zero(shape.element_type), shape.dims)
    return body.add("select", shape, (broadcast, value, zero))


def _shift_indices(
    body: LocalBody,
    split: SplitInstruction,
    dim: int,
    component: int,
    vector_dim: int,
    axes: tuple[Axis, ...],
) -> tuple[LocalValue, LocalValue]:
    """Return index vectors into the shard of operand 0, and where they are inside.

    Args:
        dim: the dimension of operand 0 that is split.
        component: the component of the index vector for `dim`.
        vector_dim: the dimension of the index vectors.
    """
    size, local = split.operand_shape(0).dims[dim], split.operands[0].array.dims[dim]
    indices = _wide(body, split.operands[1])
    dims = indices.array.dims
    shifted = _minus(body, _clamp_indices(body, indices, size - 1), body.number(axes, local))
    if vector_dim == len(dims):  # one component
        return shifted, _is_inside(body, shifted, local)
    places = body.iota(dims, vector_dim)
    is_component = compare(body, places, "EQ", body.broadcast(body.index(component), dims))
    merged = body.add("select", indices.shape, (is_component, shifted, indices))
    column = body.cut(shifted, vector_dim, component, component + 1)
    rest = [size for k, size in enumerate(dims) if k != vector_dim]
    return merged, _is_inside(body, body.reshape(column, rest), local)


# ---------------------------------------------------------------- writes


def scatter(body: LocalBody, split: SplitInstruction) -> list[LocalValue]:
    """Add a scatter: indices count from the shard; updates that are split give partial results."""
    op = split.instruction.op
    assert isinstance(op, Scatter)
    count = (len(split.operands) - 1) // 2
    for dim, axes in enumerate(split.needed[0].dims):
        if axes and dim in op.scatter_dims_to_operand_dims and dim in op.inserted_window_dims:
            component = op.scatter_dims_to_operand_dims.index(dim)
            split.operands[count] = _moved_indices(body, split, count, dim, component)
    for number, axes in split.reduced:
        kind = split.rule.factors[number].reduction
        neutral = body.neutral(kind, split.operands[0].array.element_type)
        for array, dim in split.rule.dims_of(number, split.rule.operands):
            if array > count:
                split.operands[array] = mask_padding(body, split, array, dim, kind)
        split.operands[0] = on_first_device(body, split.operands[0], axes, neutral)
    return add_local(body, split)


def _moved_indices(
    body: LocalBody, split: SplitInstruction, array: int, dim: int, component: int
) -> LocalValue:
    """Return index vectors into the shard; those of elements of other shards are out of bounds."""
    op = split.instruction.op
    assert isinstance(op, Scatter)
    axes, local = split.needed[0].dims[dim], split.operands[0].array.dims[dim]
    indices = _wide(body, split.operands[1])
    dims = indices.array.dims
    shifted = _minus(body, indices, body.number(axes, local))
    if op.index_vector_dim == len(dims):
        return shifted
    places = body.iota(dims, op.index_vector_dim)
    is_component = compare(body, places, "EQ", body.broadcast(body.index(component), dims))
    return body.add("select", indices.shape, (is_component, shifted, indices))


def dynamic_update_slice(body: LocalBody, split: SplitInstruction) -> list[LocalValue]:
    """Add an update: a shard between two margins receives the part of the update that it holds."""
    operand, update, *starts = split.operands
    if any(split.needed[0].dims):
        starts = _scalars(body, starts)
    margins = []
    for dim, axes in enumerate(split.needed[0].dims):
        size, width = split.operand_shape(0).dims[dim], update.array.dims[dim]
        if not axes or split.needed[1].dims[dim]:
            continue
        local = operand.array.dims[dim]
        start = _clamp_indices(body, starts[dim], size - width)
        start = _minus(body, start, body.number(axes, local))
        kind = start.array.element_type
        shift = body.constant(Shape(kind, ()), str(width))
        starts[dim] = body.scalar_op("add", start, shift)
        operand = body.pad(operand, dim, width, width)
        margins.append((dim, width, local))
    value = body.add("dynamic-update-slice", operand.shape, (operand, update, *starts),
                     split.attributes(), name=split.instruction.name)  # fmt: skip
    for dim, width, local in margins:
        value = body.cut(value, dim, width, width + local)
    return [value]


# ---------------------------------------------------------------- indices


def _scalars(body: LocalBody, starts: Sequence[LocalValue]) -> list[LocalValue]:
    """Return start indices as scalars of at least 32 bits; they may be one vector."""
    if len(starts) != 1 or not starts[0].array.rank:
        return [_wide(body, start) for start in starts]
    (vector,) = starts
    count = vector.array.dims[0]
    return [_wide(body, body.reshape(body.cut(vector, 0, k, k + 1), ())) for k in range(count)]


def _wide(body: LocalBody, indices: LocalValue) -> LocalValue:
    """Return indices in a signed type of at least 32 bits, or an unsigned one of that width."""
    kind = ELEMENT_TYPES[indices.array.element_type]
    if kind.bits >= 32:
        return indices
    return body.add("convert", Shape("s32", indices.array.dims), (indices,))


def _clamp_indices(body: LocalBody, indices: LocalValue, last: int) -> LocalValue:
    """Return indices clamped to the bounds that gather and dynamic-slice clamp them to."""
    indices = _wide(body, indices)
    shape = indices.array
    low, high = (body.constant(Shape(shape.element_type, ()), str(n)) for n in (0, max(last, 0)))
    return body.add("clamp", shape, (low, indices, high))


def _minus(body: LocalBody, indices: LocalValue, offset: LocalValue) -> LocalValue:
    """Return indices minus a scalar; unsigned ones wrap around to numbers out of bounds."""
    shape = indices.array
    if shape.element_type != "s32":
        offset = body.add("convert", Shape(shape.element_type, ()), (offset,))
    return body.scalar_op("subtract", indices, body.broadcast(offset, shape.dims))


def _is_inside(body: LocalBody, indices: LocalValue, size: int) -> LocalValue:
    shape = indices.array
    scalar = Shape(shape.element_type, ())
    low, high = (body.broadcast(body.constant(scalar, str(n)), shape.dims) for n in (0, size))
    is_low, is_high = compare(body, indices, "GE", low), compare(body, indices, "LT", high)
    return body.scalar_op("and", is_low, is_high)

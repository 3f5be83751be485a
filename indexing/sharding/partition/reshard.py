"""Changes of the sharding of an array: the instructions of `moves`.

Elements of a shard beyond the end of the array are padding, of any value. Along a dimension that
no axis splits there is none.
"""

from __future__ import annotations

from collections import deque

from hlo.shapes.shape import Shape
from hlo.shardings.mesh import Axis, Mesh
from hlo.shardings.sharding import Sharding
from indexing.sharding.partition.moves import ShardingMove, cheapest_moves, same_axes
from indexing.sharding.partition.writer import LocalBody, LocalValue

Pair = tuple[int, int]


def reshard(
    body: LocalBody, value: LocalValue, shape: Shape, source: Sharding, target: Sharding
) -> LocalValue:
    """Return an array in another sharding.

    Args:
        body: the computation to which instructions are added.
        value: the shard on one device.
        shape: the global shape.
        source, target: the sharding of `value`, and that of the result.
    Raises:
        ValueError: the target is partial along axes along which the source is not.
    """
    if same_axes(source, target):
        return value
    if not shape.size:  # any value will do
        fill = body.zero(shape.element_type)
        return body.broadcast(fill, target.local_dims(shape.dims))
    for move in cheapest_moves(shape.with_layout(None), source, target):
        value = _make_move(body, value, shape.dims, move)
    return value


def _make_move(
    body: LocalBody, value: LocalValue, dims: tuple[int, ...], move: ShardingMove
) -> LocalValue:
    mesh, dim = body.mesh, move.dim
    size = move.target.local_dims(dims)[dim] if dims else 1
    groups = mesh.groups(move.axes)
    count = len(groups[0])
    common = f"replica_groups={_groups(groups)}"
    axes, sent = move.axes, move.bytes_sent
    match move.kind:
        case "slice":
            value = body.pad(value, dim, 0, count * size - value.array.dims[dim])
            return body.window(value, dim, body.number(axes, size), size)
        case "all-gather":
            gathered = _with_dim(value.array, dim, value.array.dims[dim] * count)
            rest = f"{common}, dimensions={{{dim}}}, use_global_device_ids=true"
            value = body.collective("all-gather", value, gathered, rest,
                                    axes=axes, groups=groups, sent=sent)  # fmt: skip
            return body.cut(value, dim, 0, size)
        case "all-reduce":
            reducer = body.program.reducer(move.reduction, value.array.element_type)
            rest = f"{common}, use_global_device_ids=true, to_apply={reducer}"
            return body.collective("all-reduce", value, value.array, rest,
                                   axes=axes, groups=groups, sent=sent)  # fmt: skip
        case "reduce-scatter":
            value = body.pad(value, dim, 0, count * size - value.array.dims[dim])
            reducer = body.program.reducer(move.reduction, value.array.element_type)
            rest = f"dimensions={{{dim}}}, use_global_device_ids=true, to_apply={reducer}"
            scattered = _with_dim(value.array, dim, size)
            return body.collective("reduce-scatter", value, scattered, f"{common}, {rest}",
                                   axes=axes, groups=groups, sent=sent)  # fmt: skip
        case "all-to-all":
            return _exchange_axes(body, value, dims, move)
        case "collective-permute":
            return permute_values(body, value, _permutation(mesh, move), sent)


def _exchange_axes(
    body: LocalBody, value: LocalValue, dims: tuple[int, ...], move: ShardingMove
) -> LocalValue:
    """Move axes from dimension `dim` to `split_dim`: split one, exchange, concatenate the other."""
    groups, local = body.mesh.groups(move.axes), move.target.local_dims(dims)
    count, dim, split = len(groups[0]), move.dim, move.split_dim
    value = body.pad(value, split, 0, count * local[split] - value.array.dims[split])
    rest = f"replica_groups={_groups(groups)}, dimensions={{{split}}}"
    value = body.collective("all-to-all", value, value.array, rest,
                            axes=move.axes, groups=groups, sent=move.bytes_sent)  # fmt: skip
    kind, sizes = value.array.element_type, value.array.dims
    parts = (*sizes[:split], count, local[split], *sizes[split + 1 :])
    value = body.reshape(value, parts)
    rank, joined = len(parts), dim + (dim > split)  # the position of `dim` among the parts
    order = [k for k in range(rank) if k != split]
    order.insert(order.index(joined), split)
    shape = Shape(kind, tuple(parts[k] for k in order))
    value = body.add("transpose", shape, (value,), f"dimensions={{{','.join(map(str, order))}}}")
    merged = [count * n if k == dim else n for k, n in enumerate(sizes)]
    merged[split] = local[split]
    return body.cut(body.reshape(value, merged), dim, 0, local[dim])


def permute_values(
    body: LocalBody,
    value: LocalValue,
    pairs: tuple[Pair, ...],
    sent: int,
    axes: tuple[Axis, ...] = (),
) -> LocalValue:
    """Return the values of other devices, given by pairs of source and target; otherwise zero."""
    text = ",".join(f"{{{source},{target}}}" for source, target in pairs)
    return body.collective("collective-permute", value, value.array,
                           f"source_target_pairs={{{text}}}",
                           axes=axes, groups=pairs, sent=sent)  # fmt: skip


def _permutation(mesh: Mesh, move: ShardingMove) -> tuple[Pair, ...]:
    """Return for each device one that holds its shard of the target, each source once.

    A device that holds its own shard keeps it.
    """
    held, wanted = _shards_held(mesh, move.source), _shards_held(mesh, move.target)
    others: dict[tuple[int, ...], deque[int]] = {shard: deque() for shard in held.values()}
    for device, shard in held.items():
        if shard != wanted[device]:
            others[shard].append(device)
    sources = {
        device: device if shard == held[device] else others[shard].popleft()
        for device, shard in wanted.items()
    }
    return tuple((sources[device], device) for device in sorted(sources))


def _shards_held(mesh: Mesh, sharding: Sharding) -> dict[int, tuple[int, ...]]:
    """Return the numbers of the shard and of the partial value that each device holds."""
    axes = [*sharding.dims, *[(axis,) for axis, _ in sharding.partial]]
    columns = [mesh.numbers(each).tolist() for each in axes]
    rows = zip(*columns, strict=True) if columns else [()] * len(mesh.devices)
    return dict(zip(mesh.devices, rows, strict=True))


def _groups(groups: tuple[tuple[int, ...], ...]) -> str:
    lists = [f"{{{','.join(map(str, group))}}}" for group in groups]
    return f"{{{','.join(lists)}}}"


def _with_dim(shape: Shape, dim: int, size: int) -> Shape:
    sizes = tuple(size if k == dim else n for k, n in enumerate(shape.dims))
    return Shape(shape.element_type, sizes)

"""Shards of arrays: from global arrays to the arrays of each device, and back."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from hlo.shardings.mesh import Axis as Axis
from hlo.shardings.mesh import Mesh as Mesh
from hlo.shardings.sharding import Sharding

if TYPE_CHECKING:
    from numpy.typing import NDArray


def split(array: NDArray[Any], sharding: Sharding, padding: Any = 0) -> list[NDArray[Any]]:
    """Return the shard of each device, by device number.

    All shards have the same sizes. Elements beyond the end of the array have the value `padding`.

    Raises:
        ValueError: the sharding is partial, or of another rank.

    >>> rows = Sharding(Mesh.of({"x": 2}), ((Axis("x"),),))
    >>> [shard.tolist() for shard in split(np.arange(5), rows)]
    [[0, 1, 2], [3, 4, 0]]
    """
    local = _local_dims(sharding, array.shape)
    shards = []
    for device in range(sharding.mesh.size):
        place = _place(sharding, device, array.shape)
        shard = np.full(local, padding, array.dtype)
        inside = array[place]
        shard[tuple(slice(0, size) for size in inside.shape)] = inside
        shards.append(shard)
    return shards


def assemble(
    shards: Sequence[NDArray[Any]], sharding: Sharding, dims: Sequence[int]
) -> NDArray[Any]:
    """Return the global array of these shards, by device number.

    Args:
        dims: the sizes of the global array.
    Raises:
        ValueError: the sharding is partial, or a shard has other sizes, or devices that hold the
            same elements have different values.

    >>> rows = Sharding(Mesh.of({"x": 2}), ((Axis("x"),),))
    >>> assemble([np.array([0, 1, 2]), np.array([3, 4, 0])], rows, (5,)).tolist()
    [0, 1, 2, 3, 4]
    """
    local = _local_dims(sharding, dims)
    whole = np.zeros(tuple(dims), shards[0].dtype)
    is_set = np.zeros(tuple(dims), bool)
    for device, shard in enumerate(shards):
        if shard.shape != local:
            raise ValueError(f"the shard of device {device} has sizes {shard.shape}, not {local}")
        place = _place(sharding, device, dims)
        inside = shard[tuple(slice(0, size) for size in whole[place].shape)]
        before = whole[place]
        is_equal = np.array_equal(before, inside, equal_nan=inside.dtype.kind in "fc")
        if is_set[place].all() and prod(before.shape) and not is_equal:
            raise ValueError(f"device {device} holds other values than the devices before it")
        whole[place] = inside
        is_set[place] = True
    return whole


def _local_dims(sharding: Sharding, dims: Sequence[int]) -> tuple[int, ...]:
    if sharding.partial:
        raise ValueError(f"an array has no shards by the partial sharding {sharding}")
    if len(sharding.dims) != len(dims):
        raise ValueError(f"{sharding} has {len(sharding.dims)} dimensions, not {len(dims)}")
    return sharding.local_dims(dims)


def _place(sharding: Sharding, device: int, dims: Sequence[int]) -> tuple[slice, ...]:
    """Return the part of an array that a device holds."""
    local = sharding.local_dims(dims)
    starts = [sharding.number(device, k) * size for k, size in enumerate(local)]
    return tuple(
        slice(min(start, size), min(start + step, size))
        for start, step, size in zip(starts, local, dims, strict=True)
    )

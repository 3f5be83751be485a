"""Shards of arrays: what each device holds, with padding, and the array that shards make up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hlo.shardings.mesh import Mesh as Mesh
from hlo.shardings.sharding import Sharding


def shard_of(array: NDArray[Any], sharding: Sharding, device: int, fill: Any = 0) -> NDArray[Any]:
    """Return the shard of an array on a device, padded with `fill`.

    >>> from hlo.shardings.short_notation import parse_spec
    >>> sharding = parse_spec("x", Mesh.of({"x": 2}))
    >>> shard_of(np.arange(3), sharding, 1, fill=-1)
    array([ 2, -1])
    """
    shard = np.full(sharding.local_dims(array.shape), fill, array.dtype)
    inside = array[place_of(sharding, array.shape, device)]
    shard[tuple([slice(0, size) for size in inside.shape])] = inside
    return shard


def assembled_array(
    shards: Sequence[NDArray[Any]], sharding: Sharding, dims: Sequence[int]
) -> NDArray[Any]:
    """Return the array whose shards the devices hold, in the order of their numbers.

    Raises:
        ValueError: devices that hold the same elements differ.

    >>> from hlo.shardings.short_notation import parse_spec
    >>> sharding = parse_spec("x", Mesh.of({"x": 2}))
    >>> assembled_array([np.array([1, 2]), np.array([3, -1])], sharding, (3,))
    array([1, 2, 3])
    """
    result = np.zeros(tuple(dims), shards[0].dtype)
    held: dict[tuple[int, ...], NDArray[Any]] = {}
    for device, shard in enumerate(shards):
        place = place_of(sharding, dims, device)
        inside = shard[tuple([slice(0, size) for size in result[place].shape])]
        before = held.setdefault(tuple([part.start for part in place]), inside)
        if not np.array_equal(before, inside, equal_nan=inside.dtype.kind in "fc"):
            raise ValueError(f"device {device} holds other values of {sharding} than others")
        result[place] = inside
    return result


def place_of(sharding: Sharding, dims: Sequence[int], device: int) -> tuple[slice, ...]:
    """Return the elements that a device holds, without padding."""
    return place_of_shard(
        sharding, dims, [sharding.number(device, dim) for dim in range(len(dims))]
    )


def place_of_shard(
    sharding: Sharding, dims: Sequence[int], numbers: Sequence[int]
) -> tuple[slice, ...]:
    """Return the elements of a shard, given by its number along each dimension."""
    local = sharding.local_dims(dims)
    starts = [number * size for number, size in zip(numbers, local, strict=True)]
    return tuple(
        [
            slice(min(start, size), min(start + part, size))
            for start, part, size in zip(starts, local, dims, strict=True)
        ]
    )

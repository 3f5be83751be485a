"""Tile assignments: devices in the order of the tiles of an array, without names of axes.

A permuted iota becomes a mesh whose axes are its dimensions, split where tiles need it:

>>> mesh, axes = axes_of_tiles((2, 1, 4), (8,), (0,))
>>> print(mesh), [" ".join(map(str, each)) for each in axes]
axis_0=2,axis_1=4
(None, ['axis_0', '', 'axis_1'])

Source: XLA ``xla/hlo/ir/tile_assignment.h``.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import prod

import numpy as np
from numpy.typing import NDArray

from hlo.shardings.mesh import Axis, Mesh


def iota_devices(reshape: Sequence[int], transpose: Sequence[int]) -> tuple[int, ...]:
    """Return the devices of a permuted iota.

    >>> iota_devices((2, 3), (1, 0))
    (0, 3, 1, 4, 2, 5)
    """
    iota = np.arange(prod(reshape)).reshape(reshape).transpose(transpose)
    return tuple(map(int, iota.reshape(-1)))


def iota_form(devices: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Return the fewest dimensions of an iota, and their permutation, that give these devices.

    >>> iota_form((0, 3, 1, 4, 2, 5)), iota_form((0, 2, 1))
    (((2, 3), (1, 0)), None)
    """
    digits: list[tuple[int, int]] = []  # size and stride, minor to major
    rest = np.asarray(devices)
    while len(rest) > 1:
        size, stride = _run(rest)
        rows = rest.reshape(-1, size)
        if stride <= 0 or size < 2 or (rows != rows[:, :1] + np.arange(size) * stride).any():
            return None
        digits.append((size, stride))
        rest = rows[:, 0]
    by_stride = sorted(range(len(digits)), key=lambda k: -digits[k][1])
    reshape = tuple(digits[k][0] for k in by_stride)
    strides = [digits[k][1] for k in by_stride]
    if rest[0] != 0 or strides != [prod(reshape[k + 1 :]) for k in range(len(reshape))]:
        return None
    transpose = tuple(by_stride.index(k) for k in reversed(range(len(digits))))
    return reshape or (1,), transpose or (0,)


def _run(devices: NDArray[np.int64]) -> tuple[int, int]:
    """Return the length and the step of the arithmetic progression at the head.

    The length divides the number of devices.
    """
    step = int(devices[1] - devices[0])
    breaks = np.flatnonzero(np.diff(devices) != step)
    length = int(breaks[0]) + 1 if len(breaks) else len(devices)
    while len(devices) % length:
        length -= 1
    return length, step


def axes_of_tiles(
    tiles: Sequence[int], reshape: Sequence[int], transpose: Sequence[int]
) -> tuple[Mesh, tuple[tuple[Axis, ...], ...]]:
    """Return a mesh in which whole axes enumerate the tiles, and the axes of each dimension.

    The axes are the dimensions of the iota, split where a tile begins inside of one; the devices
    are in ascending order. If tiles and dimensions do not divide each other, the axes are the
    dimensions of the tiles, with the devices in their order.
    """
    sizes = [reshape[k] for k in transpose]
    parts = common_parts(sizes, tiles)
    if parts is None:
        return axes_of_devices(tiles, iota_devices(reshape, transpose))
    major_to_minor = sorted(range(len(parts)), key=lambda n: transpose[parts[n][1]])
    names = {n: f"axis_{k}" for k, n in enumerate(major_to_minor)}
    mesh = Mesh.of({names[n]: parts[n][0] for n in major_to_minor})
    axes: list[list[Axis]] = [[] for _ in tiles]
    for n, (_, _, dimension) in enumerate(parts):
        axes[dimension].append(Axis(names[n]))
    return mesh, tuple(map(tuple, axes))


def axes_of_devices(
    tiles: Sequence[int], devices: Sequence[int]
) -> tuple[Mesh, tuple[tuple[Axis, ...], ...]]:
    """Return the mesh whose axes are the dimensions of the tiles, with the devices in their order.

    >>> mesh, axes = axes_of_devices((3, 1), (0, 2, 1))
    >>> mesh.axes, mesh.devices, axes
    ((('axis_0', 3),), (0, 2, 1), ((Axis(name='axis_0', pre_size=1, size=None),), ()))
    """
    split = [k for k, size in enumerate(tiles) if size > 1]
    names = {k: f"axis_{n}" for n, k in enumerate(split)}
    mesh = Mesh.of({names[k]: tiles[k] for k in split}, devices)
    return mesh, tuple((Axis(names[k]),) if k in names else () for k in range(len(tiles)))


def common_parts(first: Sequence[int], second: Sequence[int]) -> list[tuple[int, int, int]] | None:
    """Split two lists of factors of one number into common factors.

    Returns:
        the size of each common factor, and the positions of the factors in both lists that it is a
        part of, major to minor; None if the lists have no common factors.

    >>> common_parts([8], [2, 1, 4]), common_parts([2, 3], [3, 2])
    ([(2, 0, 0), (4, 0, 2)], None)
    """
    ends_first, ends_second = _ends(first), _ends(second)
    cuts = sorted({*ends_first, *ends_second, 1})
    parts: list[tuple[int, int, int]] = []
    for low, high in pairwise(cuts):
        if high % low:
            return None
        parts.append((high // low, _position(ends_first, high), _position(ends_second, high)))
    return parts


def _ends(factors: Sequence[int]) -> list[int]:
    return [prod(factors[: k + 1]) for k in range(len(factors))]


def _position(ends: Sequence[int], cut: int) -> int:
    return next(k for k, end in enumerate(ends) if end >= cut)

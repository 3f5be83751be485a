"""Device meshes: devices in rows and columns along named axes.

Source: Shardy ``docs/sharding_representation.md``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod

import numpy as np

from hlo.arguments import checked_constructor


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis of a mesh, or a part of one.

    An axis of size s is a number in mixed radix: the part with `pre_size` p and `size` n is the
    digit ``coordinate floordiv (s / p / n) mod n``.

    Attributes:
        name: the name of the axis.
        pre_size: product of the sizes of the parts that are more major.
        size: size of the part; None for the whole axis.

    >>> print(Axis("x"), Axis("x", 2, 4))
    x x:(2)4
    """

    name: str
    pre_size: int = 1
    size: int | None = None

    def __str__(self) -> str:
        return self.name if self.size is None else f"{self.name}:({self.pre_size}){self.size}"


@checked_constructor
@dataclass(frozen=True, slots=True)
class Mesh:
    """Devices along named axes.

    Attributes:
        axes: name and size of each axis, major to minor.
        devices: device numbers in row-major order of the axes.

    >>> mesh = Mesh.of({"x": 2, "y": 4})
    >>> mesh.size, mesh.coordinates(5)
    (8, {'x': 1, 'y': 1})
    """

    axes: tuple[tuple[str, int], ...]
    devices: tuple[int, ...]

    @classmethod
    def of(cls, axes: Mapping[str, int], devices: Iterable[int] | None = None) -> Mesh:
        """Return the mesh with these axes; devices are numbered from 0 by default.

        >>> Mesh.of({"x": 2}).devices
        (0, 1)
        """
        numbers = range(prod(axes.values())) if devices is None else devices
        return cls(tuple(axes.items()), tuple(numbers))

    @property
    def sizes(self) -> dict[str, int]:
        """The size of each axis by name."""
        return dict(self.axes)

    @property
    def size(self) -> int:
        """Number of devices."""
        return prod(size for _, size in self.axes)

    def size_of(self, axis: Axis) -> int:
        """Return the size of an axis or of its part."""
        return self.sizes[axis.name] if axis.size is None else axis.size

    def coordinates(self, device: int) -> dict[str, int]:
        """Return the coordinate of a device along each axis."""
        index = np.unravel_index(self.devices.index(device), [size for _, size in self.axes])
        return dict(zip(self.sizes, map(int, index), strict=True))

    def coordinate(self, device: int, axis: Axis) -> int:
        """Return the coordinate of a device along an axis or its part.

        >>> Mesh.of({"x": 8}).coordinate(5, Axis("x", 2, 2))
        0
        """
        whole = self.sizes[axis.name]
        minor = whole // axis.pre_size // self.size_of(axis)
        return self.coordinates(device)[axis.name] // minor % self.size_of(axis)

    def number(self, device: int, axes: Iterable[Axis]) -> int:
        """Return the number of a device along several axes, major to minor.

        >>> Mesh.of({"x": 2, "y": 4}).number(6, [Axis("y"), Axis("x")])
        5
        """
        number = 0
        for axis in axes:
            number = number * self.size_of(axis) + self.coordinate(device, axis)
        return number

    def groups(self, axes: Iterable[Axis]) -> tuple[tuple[int, ...], ...]:
        """Return the groups of devices that differ only along `axes`, each in the axes' order.

        >>> Mesh.of({"x": 2, "y": 2}).groups([Axis("x")])
        ((0, 2), (1, 3))
        """
        chosen = tuple(axes)
        groups: dict[tuple[tuple[str, int], ...], dict[int, int]] = {}
        for device in self.devices:
            rest = dict(self.coordinates(device))
            for axis in chosen:
                whole = self.sizes[axis.name]
                minor = whole // axis.pre_size // self.size_of(axis)
                rest[axis.name] -= self.coordinate(device, axis) * minor
            group = groups.setdefault(tuple(rest.items()), {})
            group[self.number(device, chosen)] = device
        return tuple(tuple(group[k] for k in sorted(group)) for group in groups.values())

"""Device meshes: devices in rows and columns along named axes.

Source: Shardy ``docs/sharding_representation.md``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from math import prod
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hlo.arguments import checked, checked_constructor
from hlo.shapes.mixed_radix import number_of
from hlo.text.cursor import Cursor
from hlo.text.lexer import NAME
from hlo.text.names import nearest
from hlo.text.source import Source

MAX_DEVICES: Final = 1 << 20
"""Limit on the number of devices of a mesh: they are listed."""

_NAME: Final = re.compile(NAME, re.ASCII)


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
        return f"{self.name}{self.part_text}"

    @property
    def part_text(self) -> str:
        """The text of a part after the name, ``:(pre_size)size``; empty for a whole axis."""
        return "" if self.size is None else f":({self.pre_size}){self.size}"


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

    def __post_init__(self) -> None:
        if fault := mesh_fault(self.axes, self.devices):
            raise ValueError(f"Mesh: {fault}")

    @classmethod
    @checked
    def parse(cls, text: str) -> Mesh:
        """Parse axes as the command takes them.

        >>> Mesh.parse("x=4,y=2").axes
        (('x', 4), ('y', 2))

        Raises:
            HloError: the text has another form, or names an axis twice.
        """
        span = Source(text, "<mesh>").span(0, len(text))
        cursor = Cursor(span, "a mesh must have the form x=4,y=2")
        axes: dict[str, int] = {}
        while not axes or cursor.accepts(","):
            name = cursor.need(_NAME, "the name of an axis")
            if name[0] in axes:
                raise cursor.fault(
                    f"axis `{name[0]}` is named twice", span.source.span(*name.span())
                )
            cursor.expect("=")
            axes[name[0]] = positive(cursor, "the size of an axis")
        if not cursor.at_end:
            raise cursor.fault("expected `,` or the end")
        if fault := mesh_fault(tuple(axes.items()), None):
            raise cursor.fault(fault, span)
        return cls.of(axes)

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
        """The size of each axis by name.

        >>> Mesh.of({"x": 2, "y": 4}).sizes
        {'x': 2, 'y': 4}
        """
        return dict(self.axes)

    @property
    def size(self) -> int:
        """Number of devices."""
        return prod(size for _, size in self.axes)

    @property
    def is_maximal(self) -> bool:
        """True for a single device without axes, which holds arrays whole.

        >>> Mesh((), (3,)).is_maximal, Mesh.of({"x": 1}).is_maximal
        (True, False)
        """
        return not self.axes and len(self.devices) == 1

    def __str__(self) -> str:
        return ",".join(f"{name}={size}" for name, size in self.axes)

    def size_of(self, axis: Axis) -> int:
        """Return the size of an axis or of its part.

        >>> mesh = Mesh.of({"x": 8})
        >>> mesh.size_of(Axis("x")), mesh.size_of(Axis("x", 2, 4))
        (8, 4)
        """
        return self.sizes[axis.name] if axis.size is None else axis.size

    def coordinates(self, device: int) -> dict[str, int]:
        """Return the coordinate of a device along each axis.

        >>> Mesh.of({"x": 2, "y": 2}, [3, 1, 2, 0]).coordinates(2)  # rows (3, 1) and (2, 0)
        {'x': 1, 'y': 0}
        """
        is_in_order = self.devices[device : device + 1] == (device,)
        place = device if is_in_order else self.devices.index(device)
        index = np.unravel_index(place, [size for _, size in self.axes])
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
        chosen = tuple(axes)
        digits = [self.coordinate(device, axis) for axis in chosen]
        number: int = number_of(digits, map(self.size_of, chosen))
        return number

    def groups(self, axes: Iterable[Axis]) -> tuple[tuple[int, ...], ...]:
        """Return the groups of devices that differ only along `axes`, each in the axes' order.

        >>> Mesh.of({"x": 2, "y": 2}).groups([Axis("x")])
        ((0, 2), (1, 3))
        """
        chosen = tuple(axes)
        own = [self.split(axis) for axis in chosen]
        rest = [
            part
            for part in self.parts(chosen)
            if not any(
                part.name == axis.name and begin <= part.pre_size < end
                for axis, (begin, end) in zip(chosen, own, strict=True)
            )
        ]
        order = np.lexsort((self.numbers(chosen), self.numbers(rest)))
        width = prod(self.size_of(axis) for axis in chosen)
        rows = np.array(self.devices)[order].reshape(-1, width)
        return tuple(tuple(row) for row in rows.tolist())

    def numbers(self, axes: Iterable[Axis]) -> NDArray[np.int64]:
        """Return the number of each device along several axes, in the order of `devices`.

        >>> Mesh.of({"x": 2, "y": 2}).numbers([Axis("y"), Axis("x")])
        array([0, 2, 1, 3])
        """
        sizes = [size for _, size in self.axes]
        indices = np.indices(sizes, dtype=np.int64).reshape(len(sizes), -1)
        coordinates = dict(zip(self.sizes, indices, strict=True))
        number = np.zeros(len(self.devices), np.int64)
        for axis in axes:
            size = self.size_of(axis)
            minor = self.sizes[axis.name] // axis.pre_size // size
            number = number * size + coordinates[axis.name] // minor % size
        return number

    def numbers_by_device(self, axes: Iterable[Axis]) -> dict[int, int]:
        """Return the number of each device along several axes, by device.

        One pass over the mesh, for callers that need the number of every device.

        >>> Mesh.of({"x": 2}, [5, 3]).numbers_by_device([Axis("x")])
        {5: 0, 3: 1}
        """
        return dict(zip(self.devices, self.numbers(axes).tolist(), strict=True))

    def parts(self, axes: Iterable[Axis]) -> tuple[Axis, ...]:
        """Return the axes of the mesh, each split where one of `axes` begins or ends.

        >>> print(*Mesh.of({"x": 8, "y": 2}).parts([Axis("x", 2, 2)]))
        x:(1)2 x:(2)2 x:(4)2 y
        """
        chosen = tuple(axes)
        parts: list[Axis] = []
        for name, size in self.axes:
            inner = [axis for axis in chosen if axis.name == name and axis.size is not None]
            cuts = {1, size, *[a.pre_size * k for a in inner for k in (1, a.size or 1)]}
            ends = sorted(cuts)
            if len(ends) <= 2:
                parts.append(Axis(name))
            else:
                parts += [Axis(name, low, high // low) for low, high in pairwise(ends)]
        return tuple(parts)

    def split(self, axis: Axis) -> tuple[int, int]:
        """Return where an axis begins and ends, as products of the sizes of more major parts.

        >>> Mesh.of({"x": 8}).split(Axis("x", 2, 2)), Mesh.of({"x": 8}).split(Axis("x"))
        ((2, 4), (1, 8))
        """
        return axis.pre_size, axis.pre_size * self.size_of(axis)


def positive(cursor: Cursor, wanted: str) -> int:
    """Read a positive integer; `wanted` names it in the error."""
    start = cursor.position
    value = cursor.integer()
    if value < 1:
        span = cursor.source.span(start, cursor.position)
        raise cursor.fault(f"{wanted} must be positive, not {value}", span)
    return value


def mesh_fault(axes: Sequence[tuple[str, int]], devices: Sequence[int] | None) -> str:
    """Return why axes and devices are not a mesh; empty if they are one.

    >>> mesh_fault([("x", 2)], [0])
    '1 device for a mesh of 2: x=2'
    """
    names = [name for name, _ in axes]
    size = prod(size for _, size in axes)
    if repeated := _first_repeated(names):
        return f"axis `{repeated}` is named twice"
    if small := [f"{name}={size}" for name, size in axes if size < 1]:
        return f"the size of an axis must be positive, not {small[0]}"
    if size > MAX_DEVICES:
        return f"{size} devices, at most {MAX_DEVICES} are supported"
    if devices is None or not (axes or devices):  # without axes and devices: any devices
        return ""
    return _devices_fault(axes, size, devices)


_LARGEST: Final = 2**63 - 1  # XLA stores the number of a device in 64 bits


def _devices_fault(axes: Sequence[tuple[str, int]], size: int, devices: Sequence[int]) -> str:
    if len(devices) != size:
        noun = "device" if len(devices) == 1 else "devices"
        listed = ",".join(f"{name}={size}" for name, size in axes)
        return f"{len(devices)} {noun} for a mesh of {size}" + (f": {listed}" if axes else "")
    if repeated := _first_repeated(devices):
        return f"device {repeated} is named twice"
    if min(devices) < 0:
        return f"the number of a device must not be negative, not {min(devices)}"
    if max(devices) > _LARGEST:
        return f"the number of a device must be at most {_LARGEST}, not {max(devices)}"
    return ""


def _first_repeated(items: Sequence[str] | Sequence[int]) -> str:
    """Return the first item that occurs twice, as text; empty if there is none."""
    return next((str(item) for item, count in Counter(items).items() if count > 1), "")


def axis_fault(mesh: Mesh, axis: Axis) -> tuple[str, str]:
    """Return why a mesh has no such axis, and the repair; empty if it has one.

    Source: XLA ``xla/hlo/ir/mesh_and_axis.cc``, ``AxisRef::Validate``.

    >>> axis_fault(Mesh.of({"batch": 6}), Axis("bath"))
    ('the mesh has no axis `bath`: its axes are batch=6', 'did you mean `batch`?')
    >>> axis_fault(Mesh.of({"x": 6}), Axis("x", 2, 2))[0]
    'the sub-axis x:(2)2 does not divide x=6: 6 is not a multiple of 4'
    """
    if axis.name not in mesh.sizes:
        listed = str(mesh) or "none"
        hint = nearest(axis.name, mesh.sizes)
        return f"the mesh has no axis `{axis.name}`: its axes are {listed}", hint
    if axis.size is None:
        return "", ""
    whole = mesh.sizes[axis.name]
    if axis.pre_size < 1 or axis.size < 1:
        return f"the sizes of the sub-axis {axis} must be positive", ""
    _, end = mesh.split(axis)
    if whole % end:
        reason = f"{whole} is not a multiple of {end}"
        return f"the sub-axis {axis} does not divide {axis.name}={whole}: {reason}", ""
    if axis.size == whole:
        return f"{axis} is the whole axis {axis.name}={whole}", f"write {axis.name}"
    return "", ""


def overlap_fault(mesh: Mesh, axes: Sequence[Axis]) -> tuple[int, int, str] | None:
    """Return the first two of `axes` that share devices' coordinates, and the reason; or None.

    Source: XLA ``xla/hlo/ir/mesh_and_axis.cc``, ``AxisRef::CanCoexistWithoutOverlap``.

    >>> overlap_fault(Mesh.of({"x": 8}), [Axis("x", 1, 4), Axis("x", 2, 2)])
    (0, 1, 'the sub-axes x:(1)4 and x:(2)2 overlap')
    >>> overlap_fault(Mesh.of({"x": 8}), [Axis("x", 1, 2), Axis("x", 2, 2)])
    """
    for (first, a), (second, b) in combinations(enumerate(axes), 2):
        if a.name != b.name:
            continue
        if a == b:
            return first, second, f"axis {a} is used twice"
        (_, end), (begin, _) = sorted([mesh.split(a), mesh.split(b)])
        if end > begin:
            return first, second, f"the sub-axes {a} and {b} overlap"
        if begin % end:
            return first, second, f"the sub-axes {a} and {b} do not divide each other"
    return None

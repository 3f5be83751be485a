"""Groups of devices as HLO text says them, in any of three forms, and pairs of devices.

* a list, ``{{0,1},{2,3}}``; ``{}`` is one group of everybody;
* a permuted iota, ``[2,4]<=[4,2]T(1,0)``: 2 groups of 4, from the numbers 0 to 7 as a 4 × 2 array,
  transposed;
* axes of a mesh, ``mesh['x'=2,'y'=4] {'y'}``: the devices that differ in nothing but the axis ``y``
  make a group. ``'y':(2)2`` is a part of an axis of size 2, with 2 parts before it.

The order within a group counts: it is the devices' place in what is gathered or scattered.

>>> replica_groups.parse("[4,2]<=[2,4]T(1,0)").lists()
((0, 4), (1, 5), (2, 6), (3, 7))
>>> replica_groups.parse("mesh['x'=2,'y'=4] {'x'}").lists()
((0, 4), (1, 5), (2, 6), (3, 7))

Source: XLA ``xla/hlo/ir/replica_group.h`` and ``xla/hlo/ir/mesh_and_axis.h``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import prod
from typing import Final, TypeAlias

import numpy as np

from hlo.ops.attributes import Cursor, Kind, at_least, list_of

DeviceGroup: TypeAlias = tuple[int, ...]

MAX_DEVICES: Final = 1 << 20
"""More devices than that are refused: their groups are written out."""


@dataclass(frozen=True, slots=True)
class GroupList:
    """``{{0,1},{2,3}}``."""

    groups: tuple[DeviceGroup, ...] = ()

    def lists(self) -> tuple[DeviceGroup, ...]:
        """The groups; none where one group of everybody is meant."""
        return self.groups

    def __str__(self) -> str:
        return f"{{{','.join(f'{{{_listed(group)}}}' for group in self.groups)}}}"


@dataclass(frozen=True, slots=True)
class IotaGroups:
    """``[dims]<=[reshape]T(transpose)``: a permuted iota, its groups in rows.

    Attributes:
        dims: number of groups, and their size.
        reshape: the sizes of the array that the iota fills.
        transpose: the order in which its dimensions are read; empty for the order they have.
    """

    dims: tuple[int, ...]
    reshape: tuple[int, ...]
    transpose: tuple[int, ...] = ()

    def lists(self) -> tuple[DeviceGroup, ...]:
        """The groups."""
        iota = np.arange(prod(self.reshape)).reshape(self.reshape)
        order = self.transpose or tuple(range(len(self.reshape)))
        return _rows(iota.transpose(order).reshape(self.dims))

    def __str__(self) -> str:
        order = f"T({_listed(self.transpose)})" if self.transpose else ""
        return f"[{_listed(self.dims)}]<=[{_listed(self.reshape)}]{order}"


@dataclass(frozen=True, slots=True)
class AxisRef:
    """An axis of a mesh, or a part of it: ``'x'`` or ``'x':(before)size``."""

    name: str
    before: int = 1
    size: int = 0

    @property
    def is_part(self) -> bool:
        """It is not the whole axis."""
        return self.size > 0

    def __str__(self) -> str:
        return f"'{self.name}'" + (f":({self.before}){self.size}" if self.is_part else "")


@dataclass(frozen=True, slots=True)
class MeshGroups:
    """``mesh['x'=2,'y'=4] {'y'}``: groups of the devices that differ in nothing but `grouped`.

    Attributes:
        axes: names and sizes.
        grouped: the axes along which a group lies, major to minor.
        device_ids: the devices in the order of the mesh; empty for 0, 1, ..
    """

    axes: tuple[tuple[str, int], ...]
    grouped: tuple[AxisRef, ...]
    device_ids: tuple[int, ...] = ()

    def lists(self) -> tuple[DeviceGroup, ...]:
        """The groups."""
        sizes, place = self._split()
        inner = [place[ref.name, ref.before] for ref in self.grouped]
        outer = [k for k in range(len(sizes)) if k not in inner]
        ids = np.array(self.device_ids or range(prod(sizes))).reshape(sizes)
        width = prod(sizes[k] for k in inner)
        return _rows(ids.transpose([*outer, *inner]).reshape(-1, width))

    def _split(self) -> tuple[list[int], dict[tuple[str, int], int]]:
        """Sizes of the axes cut into their parts, and which of these begins where on an axis."""
        sizes: list[int] = []
        place: dict[tuple[str, int], int] = {}
        for name, size in self.axes:
            parts = [ref for ref in self.grouped if ref.name == name and ref.is_part]
            cuts = sorted({1, size, *[ref.before * k for ref in parts for k in (1, ref.size)]})
            for low, high in zip(cuts, [*cuts[1:], size], strict=True):
                if low < size or len(cuts) == 1:
                    place[name, low] = len(sizes)
                    sizes.append(high // low)
        return sizes, place

    def __str__(self) -> str:
        axes = ",".join(f"'{name}'={size}" for name, size in self.axes)
        ids = f", device_ids=({_listed(self.device_ids)})" if self.device_ids else ""
        return f"mesh[{axes}]{ids} {{{','.join(map(str, self.grouped))}}}"


ReplicaGroups: TypeAlias = GroupList | IotaGroups | MeshGroups

EMPTY_GROUPS: Final = GroupList()


def _listed(numbers: tuple[int, ...]) -> str:
    return ",".join(map(str, numbers))


def _rows(array: np.ndarray[tuple[int, ...], np.dtype[np.int_]]) -> tuple[DeviceGroup, ...]:
    return tuple(map(tuple, array.tolist()))


# ---------------------------------------------------------------- text

_AXIS: Final = re.compile(r"'([^']*)'|(\d+)", re.ASCII)
_MESH: Final = re.compile(r"mesh\b")


def _device(cursor: Cursor) -> int:
    start = cursor.position
    number = cursor.integer()
    if number < 0:
        raise cursor.fault("no device has this number", cursor.source.span(start, cursor.position))
    return number


def _size(cursor: Cursor) -> int:
    start = cursor.position
    size = cursor.integer()
    if not 0 < size <= MAX_DEVICES:
        label = f"expected a size from 1 to {MAX_DEVICES}"
        raise cursor.fault(label, cursor.source.span(start, cursor.position))
    return size


_DEVICE: Final = Kind("a device", "0", _device, str)
_GROUP: Final = at_least(list_of(_DEVICE, "a group of devices", "{0,1}"), 1)
_GROUPS: Final = list_of(_GROUP, "a list of groups", "{{0,1},{2,3}}")


def _numbers(cursor: Cursor, opening: str, closing: str, is_size: bool) -> tuple[int, ...]:
    cursor.expect(opening)
    found: list[int] = []
    while not cursor.accepts(closing):
        if found:
            cursor.expect(",")
        found.append(_size(cursor) if is_size else _device(cursor))
    return tuple(found)


def _iota(cursor: Cursor) -> IotaGroups:
    start = cursor.position
    dims = _numbers(cursor, "[", "]", is_size=True)
    if len(dims) != 2:
        label = "expected the number of groups and their size"
        raise cursor.fault(label, cursor.source.span(start, cursor.position))
    cursor.expect("<=")
    start = cursor.position
    reshape = _numbers(cursor, "[", "]", is_size=True)
    if prod(reshape) != prod(dims):
        label = f"these are {prod(reshape)} devices, the groups have {prod(dims)}"
        raise cursor.fault(label, cursor.source.span(start, cursor.position))
    if prod(dims) > MAX_DEVICES:
        label = f"more than {MAX_DEVICES} devices"
        raise cursor.fault(label, cursor.source.span(start, cursor.position))
    if not cursor.accepts("T"):
        return IotaGroups(dims, reshape)
    start = cursor.position
    transpose = _numbers(cursor, "(", ")", is_size=False)
    if sorted(transpose) != list(range(len(reshape))):
        label = f"no permutation of {len(reshape)} dimensions"
        raise cursor.fault(label, cursor.source.span(start, cursor.position))
    return IotaGroups(dims, reshape, transpose)


def _mesh(cursor: Cursor) -> MeshGroups:
    axes: list[tuple[str, int]] = []
    cursor.expect("[")
    while not cursor.accepts("]"):
        if axes:
            cursor.expect(",")
        start = cursor.position
        name = cursor.need(_AXIS, "the name of an axis in single quotes")[1]
        if name is None or name in dict(axes):
            label = "expected a new name in single quotes"
            raise cursor.fault(label, cursor.source.span(start, cursor.position))
        cursor.expect("=")
        axes.append((name, _size(cursor)))
        if prod(size for _, size in axes) > MAX_DEVICES:
            raise cursor.fault(f"more than {MAX_DEVICES} devices")
    ids: tuple[int, ...] = ()
    if cursor.accepts(","):
        cursor.expect("device_ids")
        cursor.expect("=")
        start = cursor.position
        ids = _numbers(cursor, "(", ")", is_size=False)
        count = prod(size for _, size in axes)
        if sorted(ids) != list(range(count)):
            label = f"no permutation of the numbers of {count} devices"
            raise cursor.fault(label, cursor.source.span(start, cursor.position))
    return MeshGroups(tuple(axes), _grouped(cursor, axes), ids)


def _grouped(cursor: Cursor, axes: list[tuple[str, int]]) -> tuple[AxisRef, ...]:
    """The axes in braces: whole ones or parts, none of which overlap."""
    found: list[AxisRef] = []
    cursor.expect("{")
    while not cursor.accepts("}"):
        if found:
            cursor.expect(",")
        start = cursor.position
        ref = _axis_ref(cursor, axes)
        if reason := _overlap(ref, found, dict(axes)[ref.name]):
            raise cursor.fault(reason, cursor.source.span(start, cursor.position))
        found.append(ref)
    if not found:
        raise cursor.fault("expected an axis of the mesh")
    return tuple(found)


def _axis_ref(cursor: Cursor, axes: list[tuple[str, int]]) -> AxisRef:
    names = [name for name, _ in axes]
    start = cursor.position
    word = cursor.need(_AXIS, "the name of an axis in single quotes")
    name = word[1]
    if name is None:
        number = int(word[2])
        name = names[number] if number < len(names) else word[2]
    if name not in names:
        label = f"the axes are {', '.join(names)}"
        raise cursor.fault(label, cursor.source.span(start, cursor.position))
    if not cursor.accepts(":"):
        return AxisRef(name)
    cursor.expect("(")
    before = _size(cursor)
    cursor.expect(")")
    size = _size(cursor)
    if size == 1 or dict(axes)[name] % (before * size) or size == dict(axes)[name]:
        label = f"no part of an axis of size {dict(axes)[name]}"
        raise cursor.fault(label, cursor.source.span(start, cursor.position))
    return AxisRef(name, before, size)


def _overlap(ref: AxisRef, others: list[AxisRef], size: int) -> str:
    """Why a reference does not go with the others; empty if it does."""
    for other in others:
        if other.name != ref.name:
            continue
        low, high = sorted([_reach(ref, size), _reach(other, size)])
        if low[1] > high[0]:
            return f"it overlaps {other}"
        if high[0] % low[1]:
            return f"it and {other} are no parts of one axis"
    return ""


def _reach(ref: AxisRef, size: int) -> tuple[int, int]:
    return (ref.before, ref.before * ref.size) if ref.is_part else (1, size)


def _read(cursor: Cursor) -> ReplicaGroups:
    if cursor.take(_MESH):
        return _mesh(cursor)
    if cursor.accepts("["):
        cursor.position -= 1
        return _iota(cursor)
    return GroupList(_GROUPS.read(cursor))


def _pair(cursor: Cursor) -> tuple[int, int]:
    cursor.expect("{")
    source = _device(cursor)
    cursor.expect(",")
    target = _device(cursor)
    cursor.expect("}")
    return source, target


replica_groups: Final[Kind[ReplicaGroups]] = Kind("groups of devices", "{{0,1},{2,3}}", _read, str)
source_target_pairs: Final = list_of(
    Kind("a pair {source,target}", "{0,1}", _pair, lambda pair: f"{{{pair[0]},{pair[1]}}}"),
    "a list of pairs {source,target}",
    "{{0,1},{1,2}}",
)

"""Replica groups in the three forms of HLO text, and source-target pairs.

* a list, ``{{0,1},{2,3}}``; ``{}`` is one group of all devices;
* a permuted iota, ``[2,4]<=[4,2]T(1,0)``: 2 groups of 4, from the numbers 0 to 7 as a 4 × 2 array,
  transposed;
* axes of a mesh, ``mesh['x'=2,'y'=4] {'y'}``: the devices of a group differ only on axis ``y``.
  ``'y':(2)2`` is a sub-axis of size 2, with a pre-size of 2.

The order within a group is significant: it is the order of the parts that are gathered or
scattered.

>>> replica_groups.parse("[4,2]<=[2,4]T(1,0)").lists()
((0, 4), (1, 5), (2, 6), (3, 7))
>>> replica_groups.parse("mesh['x'=2,'y'=4] {'x'}").lists()
((0, 4), (1, 5), (2, 6), (3, 7))
>>> replica_groups.parse("mesh['x'=4,'y'=2], device_ids=([2,4]T(1,0)) {'x'}").lists()
((0, 1, 2, 3), (4, 5, 6, 7))

Source: XLA ``xla/hlo/ir/replica_group.h`` and ``xla/hlo/ir/mesh_and_axis.h``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import prod
from typing import Final, TypeAlias

import numpy as np

from hlo.ops.attributes import Kind, at_least, list_of
from hlo.text.cursor import Cursor

DeviceGroup: TypeAlias = tuple[int, ...]

MAX_DEVICES: Final = 1 << 20
"""Limit on the number of devices: groups are expanded to lists of devices."""


@dataclass(frozen=True, slots=True)
class GroupList:
    """``{{0,1},{2,3}}``."""

    groups: tuple[DeviceGroup, ...] = ()

    def lists(self) -> tuple[DeviceGroup, ...]:
        """The groups; empty for one group of all devices."""
        return self.groups

    def __str__(self) -> str:
        return f"{{{','.join(f'{{{_listed(group)}}}' for group in self.groups)}}}"


@dataclass(frozen=True, slots=True)
class IotaGroups:
    """``[dims]<=[reshape]T(transpose)``: the rows of a reshaped and transposed iota.

    Attributes:
        dims: the number of groups, and the number of devices of each group.
        reshape: the shape of the iota before the transposition.
        transpose: the permutation of its dimensions; empty for the identity.
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
    """An axis of a mesh, or a sub-axis: ``'x'`` or ``'x':(pre_size)size``."""

    name: str
    pre_size: int = 1
    size: int = 0

    @property
    def is_sub_axis(self) -> bool:
        """True for a sub-axis, False for a full axis."""
        return self.size > 0

    def __str__(self) -> str:
        return f"'{self.name}'" + (f":({self.pre_size}){self.size}" if self.is_sub_axis else "")


@dataclass(frozen=True, slots=True)
class MeshGroups:
    """``mesh['x'=2,'y'=4] {'y'}``: the devices of a group differ only on the axes `grouped`.

    Attributes:
        axes: the names and sizes of the mesh axes.
        grouped: the axes along which a group extends, major to minor.
        device_ids: the devices in row-major order of the mesh; empty for 0, 1, ..
    """

    axes: tuple[tuple[str, int], ...]
    grouped: tuple[AxisRef, ...]
    device_ids: tuple[int, ...] = ()

    def lists(self) -> tuple[DeviceGroup, ...]:
        """The groups."""
        sizes, dimension = self._split()
        inner = [dimension[ref.name, ref.pre_size] for ref in self.grouped]
        outer = [k for k in range(len(sizes)) if k not in inner]
        ids = np.array(self.device_ids or range(prod(sizes))).reshape(sizes)
        width = prod(sizes[k] for k in inner)
        return _rows(ids.transpose([*outer, *inner]).reshape(-1, width))

    def _split(self) -> tuple[list[int], dict[tuple[str, int], int]]:
        """Sizes of the mesh with its axes split into sub-axes, and the dimension of each.

        The key of a dimension is the name of the axis and the pre-size of the sub-axis.
        """
        sizes: list[int] = []
        dimension: dict[tuple[str, int], int] = {}
        for name, size in self.axes:
            parts = [ref for ref in self.grouped if ref.name == name and ref.is_sub_axis]
            cuts = sorted({1, size, *[ref.pre_size * k for ref in parts for k in (1, ref.size)]})
            for low, high in zip(cuts, [*cuts[1:], size], strict=True):
                if low < size or len(cuts) == 1:
                    dimension[name, low] = len(sizes)
                    sizes.append(high // low)
        return sizes, dimension

    def __str__(self) -> str:
        axes = ",".join(f"'{name}'={size}" for name, size in self.axes)
        ids = f", device_ids=({_listed(self.device_ids)})" if self.device_ids else ""
        return f"mesh[{axes}]{ids} {{{','.join(map(str, self.grouped))}}}"


ReplicaGroups: TypeAlias = GroupList | IotaGroups | MeshGroups

EMPTY_GROUPS: Final = GroupList()
"""``{}``: one group of all devices."""


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
        label = "a device ID must not be negative"
        raise cursor.fault(label, cursor.source.span(start, cursor.position))
    return number


def _size(cursor: Cursor) -> int:
    start = cursor.position
    size = cursor.integer()
    if not 0 < size <= MAX_DEVICES:
        label = f"expected a size from 1 to {MAX_DEVICES}"
        raise cursor.fault(label, cursor.source.span(start, cursor.position))
    return size


_DEVICE: Final = Kind("a device ID", "0", _device, str)
_GROUP: Final = at_least(list_of(_DEVICE, "a group of devices", "{0,1}"), 1)
_GROUPS: Final = list_of(_GROUP, "a list of groups", "{{0,1},{2,3}}")


def _numbers(cursor: Cursor, opening: str, closing: str, is_size: bool) -> tuple[int, ...]:
    cursor.expect(opening)
    numbers: list[int] = []
    while not cursor.accepts(closing):
        if numbers:
            cursor.expect(",")
        numbers.append(_size(cursor) if is_size else _device(cursor))
    return tuple(numbers)


def _iota(cursor: Cursor) -> IotaGroups:
    start = cursor.position
    dims = _numbers(cursor, "[", "]", is_size=True)
    if len(dims) != 2:
        label = "expected [number of groups,devices per group]"
        raise cursor.fault(label, cursor.source.span(start, cursor.position))
    cursor.expect("<=")
    start = cursor.position
    reshape = _numbers(cursor, "[", "]", is_size=True)
    if prod(reshape) != prod(dims):
        ours, theirs = (",".join(map(str, numbers)) for numbers in (dims, reshape))
        label = f"[{ours}] has {prod(dims)} elements, but <=[{theirs}] has {prod(reshape)}"
        raise cursor.fault(label, cursor.source.span(start, cursor.position))
    if prod(dims) > MAX_DEVICES:
        label = f"more than {MAX_DEVICES} devices"
        raise cursor.fault(label, cursor.source.span(start, cursor.position))
    if not cursor.accepts("T"):
        return IotaGroups(dims, reshape)
    start = cursor.position
    transpose = _numbers(cursor, "(", ")", is_size=False)
    if sorted(transpose) != list(range(len(reshape))):
        label = f"expected a permutation of {len(reshape)} dimensions"
        raise cursor.fault(label, cursor.source.span(start, cursor.position))
    return IotaGroups(dims, reshape, transpose)


def _mesh(cursor: Cursor) -> MeshGroups:
    axes: list[tuple[str, int]] = []
    cursor.expect("[")
    while not cursor.accepts("]"):
        if axes:
            cursor.expect(",")
        start = cursor.position
        name = cursor.need(_AXIS, "an axis name in single quotes")[1]
        if name is None or name in dict(axes):
            label = "expected an unused axis name in single quotes"
            raise cursor.fault(label, cursor.source.span(start, cursor.position))
        cursor.expect("=")
        axes.append((name, _size(cursor)))
        if prod(size for _, size in axes) > MAX_DEVICES:
            raise cursor.fault(f"more than {MAX_DEVICES} devices")
    ids: tuple[int, ...] = ()
    if cursor.accepts(","):
        cursor.expect("device_ids")
        cursor.expect("=")
        ids = _device_ids(cursor, prod(size for _, size in axes))
    return MeshGroups(tuple(axes), _grouped(cursor, axes), ids)


def _device_ids(cursor: Cursor, count: int) -> tuple[int, ...]:
    """Parse the devices of a mesh: ``(1,0)``, or ``([2,4]T(1,0))``, a transposed iota."""
    start = cursor.position
    cursor.expect("(")
    if not cursor.accepts("["):
        cursor.position = start
        ids = _numbers(cursor, "(", ")", is_size=False)
    else:
        cursor.position -= 1
        sizes = _numbers(cursor, "[", "]", is_size=True)
        order = tuple(range(len(sizes)))
        if cursor.accepts("T"):
            order = _numbers(cursor, "(", ")", is_size=False)
        cursor.expect(")")
        is_valid = prod(sizes) == count and sorted(order) == list(range(len(sizes)))
        iota = np.arange(count if is_valid else 0).reshape(sizes if is_valid else (0,))
        ids = tuple(iota.transpose(order if is_valid else (0,)).reshape(-1).tolist())
    if sorted(ids) != list(range(count)):
        label = f"expected a permutation of the device IDs 0 to {count - 1}"
        raise cursor.fault(label, cursor.source.span(start, cursor.position))
    return ids


def _grouped(cursor: Cursor, axes: list[tuple[str, int]]) -> tuple[AxisRef, ...]:
    """Parse axes in braces: full axes or sub-axes that do not overlap."""
    refs: list[AxisRef] = []
    cursor.expect("{")
    while not cursor.accepts("}"):
        if refs:
            cursor.expect(",")
        start = cursor.position
        ref = _axis_ref(cursor, axes)
        if reason := _overlap(ref, refs, dict(axes)[ref.name]):
            raise cursor.fault(reason, cursor.source.span(start, cursor.position))
        refs.append(ref)
    if not refs:
        raise cursor.fault("expected an axis of the mesh")
    return tuple(refs)


def _axis_ref(cursor: Cursor, axes: list[tuple[str, int]]) -> AxisRef:
    names = [name for name, _ in axes]
    start = cursor.position
    word = cursor.need(_AXIS, "an axis name in single quotes")
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
    pre_size = _size(cursor)
    cursor.expect(")")
    size = _size(cursor)
    if size == 1 or dict(axes)[name] % (pre_size * size) or size == dict(axes)[name]:
        label = f"not a sub-axis of an axis of size {dict(axes)[name]}"
        raise cursor.fault(label, cursor.source.span(start, cursor.position))
    return AxisRef(name, pre_size, size)


def _overlap(ref: AxisRef, others: list[AxisRef], size: int) -> str:
    """Reason why a reference conflicts with `others`; empty if it does not."""
    for other in others:
        if other.name != ref.name:
            continue
        low, high = sorted([_extent(ref, size), _extent(other, size)])
        if low[1] > high[0]:
            return f"overlaps {other}"
        if high[0] % low[1]:
            return f"{ref} and {other} cannot be sub-axes of one axis"
    return ""


def _extent(ref: AxisRef, size: int) -> tuple[int, int]:
    return (ref.pre_size, ref.pre_size * ref.size) if ref.is_sub_axis else (1, size)


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


replica_groups: Final[Kind[ReplicaGroups]] = Kind(
    "groups of devices",
    "{{0,1},{2,3}}",
    _read,
    str,
    form="of the form {{0,1},{2,3}} or [2,4]<=[8]",
)
source_target_pairs: Final = list_of(
    Kind("a pair {source,target}", "{0,1}", _pair, lambda pair: f"{{{pair[0]},{pair[1]}}}"),
    "a list of pairs {source,target}",
    "{{0,1},{1,2}}",
)

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
from hlo.shardings.mesh import MAX_DEVICES, Axis, Mesh
from hlo.shardings.printing import mesh_text
from hlo.shardings.reading import AxisReader, read_named_mesh
from hlo.text.cursor import Cursor

DeviceGroup: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class GroupList:
    """``{{0,1},{2,3}}``."""

    groups: tuple[DeviceGroup, ...] = ()

    def lists(self) -> tuple[DeviceGroup, ...]:
        """The groups; empty for one group of all devices."""
        return self.groups

    def __str__(self) -> str:
        return f"{{{','.join(f'{{{_number_list(group)}}}' for group in self.groups)}}}"


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
        order = f"T({_number_list(self.transpose)})" if self.transpose else ""
        return f"[{_number_list(self.dims)}]<=[{_number_list(self.reshape)}]{order}"


@dataclass(frozen=True, slots=True)
class MeshGroups:
    """``mesh['x'=2,'y'=4] {'y'}``: the devices of a group differ only on the axes `grouped`.

    Attributes:
        mesh: the mesh.
        grouped: the axes along which a group extends, major to minor.
    """

    mesh: Mesh
    grouped: tuple[Axis, ...]

    def lists(self) -> tuple[DeviceGroup, ...]:
        """The groups."""
        return self.mesh.groups(self.grouped)

    def __str__(self) -> str:
        axes = ",".join(f"'{axis.name}'{axis.part_text}" for axis in self.grouped)
        return f"{mesh_text(self.mesh)} {{{axes}}}"


ReplicaGroups: TypeAlias = GroupList | IotaGroups | MeshGroups

EMPTY_GROUPS: Final = GroupList()
"""``{}``: one group of all devices."""


def _number_list(numbers: tuple[int, ...]) -> str:
    return ",".join(map(str, numbers))


def _rows(array: np.ndarray[tuple[int, ...], np.dtype[np.int_]]) -> tuple[DeviceGroup, ...]:
    return tuple(map(tuple, array.tolist()))


# ---------------------------------------------------------------- text

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
    cursor.expect("[")
    mesh, _ = read_named_mesh(cursor)
    grouped = AxisReader(cursor, mesh).braces()
    if not grouped:
        cursor.position -= 1
        raise cursor.fault("expected an axis of the mesh")
    return MeshGroups(mesh, grouped)


def _read_groups(cursor: Cursor) -> ReplicaGroups:
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
    _read_groups,
    str,
    form="of the form {{0,1},{2,3}} or [2,4]<=[8]",
)
source_target_pairs: Final = list_of(
    Kind("a pair {source,target}", "{0,1}", _pair, lambda pair: f"{{{pair[0]},{pair[1]}}}"),
    "a list of pairs {source,target}",
    "{{0,1},{1,2}}",
)

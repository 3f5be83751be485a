"""Reading of the parts that all notations of shardings share: names, axes, and checks of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Final, TypeVar

from hlo.shardings.mesh import Axis, Mesh, axis_fault, mesh_fault, overlap_fault, positive
from hlo.shardings.sharding import Sharding
from hlo.shardings.tiles import iota_devices, iota_form
from hlo.text.cursor import Cursor
from hlo.text.source import Source, Span

T = TypeVar("T")

OWNER: Final = "invalid sharding"
"""The message of errors."""

# quotes have backslashes where the text is in a string
_QUOTED: Final = re.compile(r"""\\*"([^"\\]++)\\*"|\\*'([^'\\]++)\\*'""")
_PART: Final = re.compile(r":\(")
_NUMBER: Final = re.compile(r"\d{1,9}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Context:
    """The facts that texts of shardings refer to.

    Attributes:
        meshes: the meshes by name.
        devices: the number of devices, for texts that do not state it, such as ``{replicated}``.
        ranks: the rank of each array that the text distributes, None for one without dimensions;
            None if the arrays are not known.
    """

    meshes: Mapping[str, Mesh] = field(default_factory=dict)
    devices: int = 1
    ranks: Sequence[int | None] | None = None

    @property
    def mesh(self) -> Mesh:
        """The mesh of a text that names none."""
        return Mesh.of({"axis_0": self.devices})


def cursor_over(text: str | Span) -> Cursor:
    """Return a cursor over a text or over a part of a file."""
    span = text if isinstance(text, Span) else Source(text, "<sharding>").span(0, len(text))
    return Cursor(span, OWNER)


def read_list(cursor: Cursor, close: str, read: Callable[[], T]) -> list[T]:
    """Read items, separated by commas, up to the closing bracket."""
    items: list[T] = []
    while not cursor.accepts(close):
        if items and not cursor.accepts(","):
            raise cursor.fault(f"expected `,` or `{close}`")
        items.append(read())
    return items


def read_quoted(cursor: Cursor) -> tuple[str, Span]:
    """Read a quoted name."""
    match = cursor.need(_QUOTED, "the name of an axis in quotes")
    return match[1] or match[2], cursor.source.span(*match.span())


def read_sizes(cursor: Cursor) -> dict[str, int]:
    """Read the axes of a mesh after the opening bracket: names with sizes."""
    axes: dict[str, int] = {}

    def read_axis() -> None:
        name, span = read_quoted(cursor)
        if name in axes:
            raise cursor.fault(f"axis `{name}` is named twice", span)
        cursor.expect("=")
        axes[name] = positive(cursor, "the size of an axis")

    read_list(cursor, "]", read_axis)
    return axes


def read_named_mesh(cursor: Cursor) -> tuple[Mesh, bool]:
    """Read a mesh of HLO after ``mesh[``.

    Returns:
        the mesh, and whether the text lists its devices although they are a permuted iota.
    """
    start = cursor.position
    axes = read_sizes(cursor)
    comma = cursor.position
    if not (cursor.accepts(",") and cursor.accepts("device_ids=")):
        cursor.position = comma
        return checked_mesh(cursor, start, axes, None), False
    start = cursor.position
    cursor.expect("(")
    if not cursor.accepts("["):
        listed_devices = read_list(cursor, ")", cursor.integer)
        mesh = checked_mesh(cursor, start, axes, listed_devices)
        return mesh, iota_form(listed_devices) is not None
    reshape = read_list(cursor, "]", lambda: positive(cursor, "a dimension"))
    transpose = read_permutation(cursor, len(reshape))
    cursor.expect(")")
    span = cursor.source.span(start, cursor.position)
    if prod(reshape) != prod(axes.values()):
        label = f"{prod(reshape)} devices for a mesh of {prod(axes.values())}"
        raise cursor.fault(label, span)
    checked_mesh(cursor, start, axes, None)
    return checked_mesh(cursor, start, axes, iota_devices(reshape, transpose)), False


def read_permutation(cursor: Cursor, rank: int) -> tuple[int, ...]:
    """Read ``T(...)`` of an iota; the identity if it is missing."""
    if not cursor.accepts("T"):
        return tuple(range(rank))
    start = cursor.position
    cursor.expect("(")
    order = tuple(read_list(cursor, ")", cursor.integer))
    if sorted(order) != list(range(rank)):
        span = cursor.source.span(start, cursor.position)
        raise cursor.fault(f"expected a permutation of {rank} dimensions", span)
    return order


def checked_mesh(
    cursor: Cursor, start: int, axes: Mapping[str, int], devices: Sequence[int] | None
) -> Mesh:
    """Return a mesh, or raise the error for the text from `start` on."""
    fault = mesh_fault(tuple(axes.items()), devices)
    if not fault and axes and devices and sorted(devices) != list(range(len(devices))):
        fault = f"expected a permutation of the device IDs 0 to {len(devices) - 1}"
    if fault:
        raise cursor.fault(fault, cursor.source.span(start, cursor.position))
    if not axes and devices is None:
        return Mesh((), ())
    return Mesh.of(axes, devices)


class AxisReader:
    """Reads the axes of one sharding, and checks that they are in the mesh and do not overlap."""

    def __init__(self, cursor: Cursor, mesh: Mesh) -> None:
        self.cursor, self.mesh = cursor, mesh
        self.axes: list[Axis] = []
        self.spans: list[Span] = []

    def read(self) -> Axis:
        """Read an axis or a part of one: ``"x"`` or ``"x":(pre_size)size``."""
        name, span = self._axis_name()
        axis = Axis(name)
        if self.cursor.take(_PART):
            pre_size = self.cursor.integer()
            self.cursor.expect(")")
            axis = Axis(name, pre_size, self.cursor.integer())
            span = self.cursor.source.span(span.start, self.cursor.position)
        fault, repair = axis_fault(self.mesh, axis)
        if axis.size == 1:
            fault = f"the size of the sub-axis {axis} must be at least 2"
        if fault:
            raise self.cursor.fault(fault, span, help=repair)
        self.axes.append(axis)
        self.spans.append(span)
        if overlap := overlap_fault(self.mesh, self.axes):
            raise self.cursor.fault(overlap[2], span)
        return axis

    def _axis_name(self) -> tuple[str, Span]:
        """Read a quoted name, or the number of an axis."""
        number = self.cursor.take(_NUMBER)
        if number is None:
            return read_quoted(self.cursor)
        names = list(self.mesh.sizes)
        name = names[int(number[0])] if int(number[0]) < len(names) else number[0]
        return name, self.cursor.source.span(*number.span())

    def braces(self) -> tuple[Axis, ...]:
        """Read a list of axes in braces."""
        self.cursor.expect("{")
        return tuple(read_list(self.cursor, "}", self.read))

    def dimension(self) -> tuple[tuple[Axis, ...], bool]:
        """Read the axes of a dimension, and whether a ``?`` leaves it open."""
        self.cursor.expect("{")
        axes: list[Axis] = []
        while not self.cursor.accepts("}"):
            if axes and not self.cursor.accepts(","):
                raise self.cursor.fault("expected `,` or `}`")
            if self.cursor.accepts("?"):
                self.cursor.expect("}")
                return tuple(axes), True
            axes.append(self.read())
        return tuple(axes), False


def check_rank(cursor: Cursor, span: Span, sharding: Sharding, rank: int | None) -> None:
    """Raise an error if an array of this rank cannot be distributed so."""
    split = len(sharding.dims)
    if rank is None or split == rank or (sharding.mesh.is_maximal and not split):
        return
    noun = "dimension" if split == 1 else "dimensions"
    raise cursor.fault(f"{split} {noun} for an array of rank {rank}", span)

"""Shardings and meshes in Shardy's notation, also inside of strings, where quotes are escaped.

>>> meshes = parse_meshes('{mesh = #sdy.mesh<["x"=2, "y"=4]>}')
>>> print(meshes["mesh"])
x=2,y=4

Source: Shardy ``shardy/dialect/sdy/ir/attrs.td`` and ``printers.cc``.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from hlo.shardings.mesh import Axis, Mesh
from hlo.shardings.reading import (
    AxisReader,
    Context,
    check_rank,
    checked_mesh,
    cursor_over,
    read_list,
    read_quoted,
    read_sizes,
)
from hlo.shardings.sharding import Hints, Sharding
from hlo.text.cursor import Cursor
from hlo.text.names import nearest
from hlo.text.source import Span

_NAME: Final = re.compile(r"[A-Za-z_][\w.$\-]*+", re.ASCII)
_REDUCTION: Final = re.compile(r"(?>max|min|sum)?+(?=\{)")
_PRIORITY: Final = re.compile(r"p(?=\d)", re.ASCII)


def parse_meshes(text: str | Span) -> dict[str, Mesh]:
    """Parse the meshes of a module: names with ``#sdy.mesh<...>``, in braces."""
    cursor = cursor_over(text)
    cursor.owner = "invalid meshes"
    meshes: dict[str, Mesh] = {}
    cursor.take(re.compile(r'\\*"'))  # the text may be in a string

    def read_mesh() -> None:
        name = cursor.need(_NAME, "the name of a mesh")[0]
        cursor.expect("=")
        cursor.expect("#sdy.mesh")
        meshes[name] = _read_mesh(cursor)

    cursor.expect("{")
    read_list(cursor, "}", read_mesh)
    return meshes


def _read_mesh(cursor: Cursor) -> Mesh:
    """Read ``<["x"=2], device_ids=[1, 0]>``."""
    start = cursor.position
    cursor.expect("<")
    cursor.expect("[")
    axes = read_sizes(cursor)
    devices: list[int] | None = None
    if cursor.accepts(","):
        cursor.expect("device_ids")
        cursor.expect("=")
        cursor.expect("[")
        devices = read_list(cursor, "]", cursor.integer)
    cursor.expect(">")
    return checked_mesh(cursor, start, axes, devices)


def read_sharding(cursor: Cursor, context: Context) -> Sharding | tuple[Sharding, ...]:
    """Read ``sdy.sharding<...>`` or ``sdy.sharding_per_value<[<...>, <...>]>``."""
    if cursor.accepts("sdy.sharding_per_value"):
        cursor.expect("<")
        cursor.expect("[")
        shardings: list[Sharding] = []
        read_list(
            cursor, "]", lambda: shardings.append(_read_sharding(cursor, context, len(shardings)))
        )
        cursor.expect(">")
        return tuple(shardings)
    cursor.expect("sdy.sharding")
    return _read_sharding(cursor, context, 0)


def read_manual_axes(cursor: Cursor) -> tuple[Axis, ...]:
    """Read ``#sdy<manual_axes{"x", "y"}>``: whole axes, without their mesh.

    >>> read_manual_axes(cursor_over('#sdy<manual_axes{"x", "y"}>'))[1].name
    'y'
    """
    cursor.expect("#sdy")
    is_attribute = cursor.accepts("<")
    cursor.accepts(".")
    cursor.expect("manual_axes")
    is_attribute = cursor.accepts("<") or is_attribute
    cursor.expect("{")
    names = read_list(cursor, "}", lambda: read_quoted(cursor)[0])
    if is_attribute:
        cursor.expect(">")
    return tuple([Axis(name) for name in names])


def _read_sharding(cursor: Cursor, context: Context, number: int) -> Sharding:
    """Read one sharding in angle brackets, that of array `number`."""
    start = cursor.position
    cursor.expect("<")
    if cursor.accepts("mesh"):
        mesh, hints = _read_mesh(cursor), Hints()
    else:
        mesh, hints = _named_mesh(cursor, context)
    axes = AxisReader(cursor, mesh)
    cursor.expect(",")
    cursor.expect("[")
    dims: list[tuple[Axis, ...]] = []
    open_dims: list[int] = []
    priorities: list[tuple[int, int]] = []

    def read_dimension() -> None:
        each, is_open = axes.dimension()
        if is_open:
            open_dims.append(len(dims))
        if cursor.take(_PRIORITY):
            priorities.append((len(dims), cursor.integer()))
        dims.append(each)

    read_list(cursor, "]", read_dimension)
    replicated: tuple[Axis, ...] = ()
    partial: tuple[tuple[Axis, str], ...] = ()
    while not cursor.accepts(">"):
        cursor.expect(",")
        if cursor.accepts("replicated="):
            replicated = axes.braces()
        elif cursor.accepts("unreduced="):
            reduction = cursor.take(_REDUCTION)
            kind = (reduction[0] if reduction else "") or "sum"
            partial = tuple([(axis, kind) for axis in axes.braces()])
        else:
            raise cursor.fault("expected `replicated=` or `unreduced=`")
    hints = replace(
        hints, open_dims=tuple(open_dims), priorities=tuple(priorities), replicated=replicated
    )
    sharding = Sharding(mesh, tuple(dims), partial, hints=hints)
    if context.ranks is not None and number < len(context.ranks):
        span = cursor.source.span(start, cursor.position)
        check_rank(cursor, span, sharding, context.ranks[number])
    return sharding


def _named_mesh(cursor: Cursor, context: Context) -> tuple[Mesh, Hints]:
    cursor.expect("@")
    name = cursor.need(_NAME, "the name of a mesh")
    mesh = context.meshes.get(name[0])
    if mesh is None:
        span = cursor.source.span(*name.span())
        repair = nearest(name[0], context.meshes)
        raise cursor.fault(f"no mesh is named `{name[0]}`", span, help=repair)
    return mesh, Hints(mesh_name=name[0])

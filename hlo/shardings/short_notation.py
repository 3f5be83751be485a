"""The short notation of shardings, for command lines and for Python.

>>> mesh = Mesh.parse("x=4,y=2")
>>> print(parse_spec("(x,y),_", mesh), parse_spec((None, "x"), mesh), parse_spec("x:(1)2,_", mesh))
[(x,y), _] [_, x] [x:(1)2, _]
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, TypeAlias

from hlo.arguments import brief, checked
from hlo.shardings.mesh import Axis, Mesh, axis_fault, overlap_fault
from hlo.shardings.sharding import Sharding
from hlo.text.cursor import Cursor
from hlo.text.lexer import NAME
from hlo.text.source import Source

Spec: TypeAlias = str | Sequence[str | Axis | Sequence[str | Axis] | None]
"""The axes of each dimension: a text such as ``(x,y),_``, or a sequence as `PartitionSpec` is."""

_NAME: Final = re.compile(rf"(?!_(?![\w.\-])){NAME}", re.ASCII)
_PART: Final = re.compile(r":\(")
_WHOLE_PART: Final = re.compile(r"(.+):\((\d{1,9})\)(\d{1,9})", re.ASCII)


@checked
def parse_spec(spec: Spec, mesh: Mesh, rank: int | None = None) -> Sharding:
    """Return the sharding that a short text or a sequence of axes describes.

    Args:
        spec: for each dimension the axis that splits it, several axes in parentheses, major to
            minor, or ``_``; in Python a name, a sequence of names, or None. JAX's `PartitionSpec`
            is such a sequence.
        mesh: the mesh.
        rank: the rank of the array; dimensions that `spec` leaves out are not split.

    Raises:
        HloError: a text has another form, or does not fit the mesh.
        ValueError: a sequence does not fit the mesh.

    >>> print(parse_spec("_,(y,x)", Mesh.parse("x=4,y=2"), rank=3))
    [_, (y,x), _]
    """
    dims = _parse_dims(spec, mesh, rank) if isinstance(spec, str) else _dims_of_spec(spec, mesh)
    if rank is not None:
        if len(dims) > rank:
            raise ValueError(f"parse_spec: {len(dims)} dimensions for an array of rank {rank}")
        dims = (*dims, *((),) * (rank - len(dims)))
    return Sharding(mesh, dims)


def _parse_dims(text: str, mesh: Mesh, rank: int | None) -> tuple[tuple[Axis, ...], ...]:
    span = Source(text, "<spec>").span(0, len(text))
    cursor = Cursor(span, "a spec must have the form x,_ or (x,y),_")
    dims: list[tuple[Axis, ...]] = []
    axes: list[Axis] = []
    bare = text.strip()
    if bare in ("", "[]"):
        return ()
    has_brackets = cursor.accepts("[")
    while not dims or cursor.accepts(","):
        start = cursor.position
        if cursor.accepts("("):
            each = [_read_axis(cursor, mesh, axes)]
            while cursor.accepts(","):
                each.append(_read_axis(cursor, mesh, axes))
            cursor.expect(")")
            dims.append(tuple(each))
        else:
            is_unsplit = cursor.take(_UNSPLIT)
            dims.append(() if is_unsplit else (_read_axis(cursor, mesh, axes),))
        if rank is not None and len(dims) > rank:
            where = cursor.source.span(start, cursor.position)
            raise cursor.fault(f"the array has rank {rank}", where)
    if has_brackets:
        cursor.expect("]")
    if not cursor.at_end:
        raise cursor.fault("expected `,` or the end")
    return tuple(dims)


_UNSPLIT: Final = re.compile(r"_(?![\w.\-])", re.ASCII)


def _read_axis(cursor: Cursor, mesh: Mesh, used: list[Axis]) -> Axis:
    name = cursor.need(_NAME, "an axis of the mesh, or _")
    axis = Axis(name[0])
    if cursor.take(_PART):
        pre_size = cursor.integer()
        cursor.expect(")")
        axis = Axis(axis.name, pre_size, cursor.integer())
    span = cursor.source.span(name.start(), cursor.position)
    fault, repair = axis_fault(mesh, axis)
    if fault:
        raise cursor.fault(fault, span, help=repair)
    used.append(axis)
    if overlap := overlap_fault(mesh, used):
        raise cursor.fault(overlap[2], span)
    return axis


def _axis(text: str) -> Axis:
    """Return the axis of a text; a part of an axis if the text has the form of one."""
    part = _WHOLE_PART.fullmatch(text)
    return Axis(part[1], int(part[2]), int(part[3])) if part else Axis(text)


def _dims_of_spec(spec: Sequence[object], mesh: Mesh) -> tuple[tuple[Axis, ...], ...]:
    dims: list[tuple[Axis, ...]] = []
    for each in spec:
        items = () if each is None else (each,) if isinstance(each, str | Axis) else each
        if not isinstance(items, Sequence):
            raise ValueError(f"parse_spec: expected the name of an axis or None, not {brief(each)}")
        axes = tuple([item if isinstance(item, Axis) else _axis(str(item)) for item in items])
        for axis in axes:
            fault, repair = axis_fault(mesh, axis)
            if fault:
                raise ValueError(f"parse_spec: {fault}{f'; {repair}' if repair else ''}")
        dims.append(axes)
    return tuple(dims)

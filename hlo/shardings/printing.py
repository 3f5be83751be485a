"""Printing of shardings, in the form that XLA and Shardy print.

Source: XLA ``xla/hlo/ir/hlo_sharding.cc``, ``Print``, and ``named_sharding.cc``, ``ToString``;
Shardy ``shardy/dialect/sdy/ir/printers.cc``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod

import numpy as np

from hlo.shardings.mesh import Axis, Mesh
from hlo.shardings.sharding import Sharding, Version
from hlo.shardings.tiles import iota_form


def hlo_text(shardings: Sharding | Sequence[Sharding], version: Version | None = None) -> str:
    """Return HLO's text of a sharding, or of those of a tuple.

    >>> hlo_text([Sharding(Mesh.of({"x": 2}), ())] * 2)
    '{{replicated}, {replicated}}'

    Raises:
        ValueError: the notation cannot express the sharding.
    """
    if isinstance(shardings, Sharding):
        chosen = version or shardings.hints.version or 2
        return _named_text(shardings) if chosen == 3 else _tile_text(shardings, chosen)
    texts = [hlo_text(each, version) for each in shardings]
    marked = [f"/*index={k}*/{t}" if k and k % 5 == 0 else t for k, t in enumerate(texts)]
    return f"{{{', '.join(marked)}}}"


def shardy_text(shardings: Sharding | Sequence[Sharding], mesh: str = "") -> str:
    """Return Shardy's text of a sharding, or of those of several values.

    >>> shardy_text([Sharding(Mesh.of({"x": 2}), ((Axis("x"),),))])
    '#sdy.sharding_per_value<[<mesh<["x"=2]>, [{"x"}]>]>'

    Raises:
        ValueError: Shardy cannot express the sharding.
    """
    if isinstance(shardings, Sharding):
        return f"#sdy.sharding{_shardy_body(shardings, mesh)}"
    return f"#sdy.sharding_per_value<[{', '.join(_shardy_body(s, mesh) for s in shardings)}]>"


def shardy_mesh_text(mesh: Mesh) -> str:
    """Return Shardy's text of a mesh, without ``#sdy.mesh``.

    >>> shardy_mesh_text(Mesh.of({"x": 2}, [1, 0]))
    '<["x"=2], device_ids=[1, 0]>'
    """
    axes = ", ".join(f'"{name}"={size}' for name, size in mesh.axes)
    is_iota = mesh.devices == tuple(range(len(mesh.devices))) and not mesh.is_maximal
    devices = "" if is_iota else f", device_ids=[{', '.join(map(str, mesh.devices))}]"
    return f"<[{axes}]{devices}>"


# ---------------------------------------------------------------- axes of a mesh


def _named_text(sharding: Sharding) -> str:
    mesh, hints = sharding.mesh, sharding.hints
    items = [mesh_text(mesh, hints.lists_devices)]
    if whole := _whole_word(sharding):
        items.append(whole)
    elif not mesh.is_maximal:
        dims = ", ".join(_dimension(sharding, k, "'") for k in range(len(sharding.dims)))
        items += [f"[{dims}]", *_axis_lists(sharding, "'")]
        if sharding.manual:
            manual = _axis_list(mesh, _order_axes(mesh, sharding.manual), "'")
            items.append(f"manual={{{manual}}}")
    if hints.metadata:
        items.append(f"metadata={hints.metadata}")
    return f"{{{', '.join(items)}}}"


def _whole_word(sharding: Sharding) -> str:
    """Return the word that stands for all axes of a sharding without dimensions; may be empty."""
    mesh, hints = sharding.mesh, sharding.hints
    partial = [axis for axis, _ in sharding.partial]
    if mesh.is_maximal or (sharding.dims and not hints.any_rank):
        return ""
    if sharding.manual:
        return "manual" if _size(mesh, sharding.manual) == mesh.size else ""
    if partial:
        is_whole = _size(mesh, partial) == mesh.size and _reduction(sharding) == "sum"
        return "unreduced" if is_whole else ""
    return "" if hints.replicated else "replicated"


def _size(mesh: Mesh, axes: Iterable[Axis]) -> int:
    return prod(mesh.size_of(axis) for axis in axes)


def mesh_text(mesh: Mesh, lists_devices: bool = False) -> str:
    """Return HLO's text of a mesh.

    >>> mesh_text(Mesh.of({"x": 2, "y": 2}, [0, 2, 1, 3]))
    "mesh['x'=2,'y'=2], device_ids=([2,2]T(1,0))"
    """
    if mesh.is_maximal:
        return f"maximal_mesh[device_id={mesh.devices[0]}]"
    axes = ",".join(f"'{name}'={size}" for name, size in mesh.axes)
    if mesh.devices == tuple(range(len(mesh.devices))):
        return f"mesh[{axes}]"
    form = None if lists_devices else iota_form(mesh.devices)
    devices = ",".join(map(str, mesh.devices)) if form is None else _iota_text(*form)
    return f"mesh[{axes}], device_ids=({devices})"


def _iota_text(reshape: Sequence[int], transpose: Sequence[int]) -> str:
    order = f"T({','.join(map(str, transpose))})" if len(transpose) > 1 else ""
    return f"[{','.join(map(str, reshape))}]{order}"


def _dimension(sharding: Sharding, k: int, quote: str) -> str:
    axes = _axis_list(sharding.mesh, sharding.dims[k], quote)
    is_open = k in sharding.hints.open_dims
    return f"{{{', '.join([axes] * bool(axes) + ['?'] * is_open)}}}"


def _axis_lists(sharding: Sharding, quote: str) -> list[str]:
    """Return the texts of the replicated and of the partial axes."""
    mesh, items = sharding.mesh, []
    if sharding.hints.replicated:
        replicated = _order_axes(mesh, sharding.hints.replicated)
        items.append(f"replicated={{{_axis_list(mesh, replicated, quote)}}}")
    if sharding.partial:
        kind = _reduction(sharding)
        partial = _order_axes(mesh, [axis for axis, _ in sharding.partial])
        shown = "" if kind == "sum" else kind
        items.append(f"unreduced={shown}{{{_axis_list(mesh, partial, quote)}}}")
    return items


def _reduction(sharding: Sharding) -> str:
    """Return the reduction of partial values, or raise an error if no notation has it."""
    kinds = sorted({kind for _, kind in sharding.partial})
    if len(kinds) > 1 or not {*kinds} <= {"sum", "max", "min"}:
        raise ValueError(f"no notation has partial values that {' and '.join(kinds)} combine")
    return kinds[0] if kinds else "sum"


def _order_axes(mesh: Mesh, axes: Iterable[Axis]) -> list[Axis]:
    """Return axes in the order of the mesh."""
    names = list(mesh.sizes)
    return sorted(axes, key=lambda axis: (names.index(axis.name), axis.pre_size))


def _axis_list(mesh: Mesh, axes: Iterable[Axis], quote: str) -> str:
    """Return the texts of axes, with adjacent parts of one axis merged."""
    merged: list[Axis] = []
    for axis in axes:
        last = merged[-1] if merged else None
        if last and last.name == axis.name and mesh.split(last)[1] == axis.pre_size:
            size = mesh.size_of(last) * mesh.size_of(axis)
            merged[-1] = Axis(axis.name, last.pre_size, size)
            if size == mesh.sizes[axis.name]:
                merged[-1] = Axis(axis.name)
        else:
            merged.append(axis)
    return ", ".join(f"{quote}{axis.name}{quote}{axis.part_text}" for axis in merged)


def _shardy_body(sharding: Sharding, mesh: str) -> str:
    if sharding.manual:
        raise ValueError("a sharding of Shardy has no manual axes: its manual computations have")
    name = mesh or sharding.hints.mesh_name
    where = f"@{name}" if name else f"mesh{shardy_mesh_text(sharding.mesh)}"
    priorities = dict(sharding.hints.priorities)
    count = 0 if sharding.mesh.is_maximal else len(sharding.dims)
    dims = [
        _dimension(sharding, k, '"') + (f"p{priorities[k]}" if k in priorities else "")
        for k in range(count)
    ]
    items = [where, f"[{', '.join(dims)}]", *_axis_lists(sharding, '"')]
    return f"<{', '.join(items)}>"


# ---------------------------------------------------------------- tiles


def _tile_text(sharding: Sharding, version: Version) -> str:
    hints = sharding.hints
    if _reduction(sharding) != "sum":
        raise ValueError("versions 1 and 2 of HLO have no partial values other than sums")
    items = [_undivided_word(sharding) or _tiles(sharding, version)]
    items += [hints.group] * bool(hints.group)
    items += [f"metadata={hints.metadata}"] * bool(hints.metadata)
    return f"{{{' '.join(items)}}}"


def _tiles(sharding: Sharding, version: Version) -> str:
    """Return the devices of the tiles, and the kinds of additional dimensions."""
    mesh = sharding.mesh
    parts = mesh.parts(sharding.axes())
    dims = [_parts_of(mesh, parts, axes) for axes in sharding.dims]
    groups = _groups(sharding, parts)
    counts = {kind: _size(mesh, each) for kind, each in groups.items()}
    order = [parts.index(part) for each in [*dims, *groups.values()] for part in each]
    devices = np.array(mesh.devices).reshape([mesh.size_of(part) for part in parts])
    rows = devices.transpose(order).reshape(-1, counts["replicated"])
    listed = tuple(map(int, np.sort(rows, axis=1).reshape(-1)))
    kinds = [kind for kind, count in counts.items() if count > 1]
    last = f" last_tile_dims={{{', '.join(kinds)}}}" if kinds else ""
    last = " last_tile_dim_replicate" if kinds == ["replicated"] else last
    tiles = [_size(mesh, each) for each in dims] + [counts[kind] for kind in kinds]
    form = iota_form(listed) if version == 2 else None
    text = ",".join(map(str, listed)) if form is None else f"<={_iota_text(*form)}"
    return f"devices=[{','.join(map(str, tiles))}]{text}{last}"


def _groups(sharding: Sharding, parts: Sequence[Axis]) -> dict[str, list[Axis]]:
    """Return the parts of the mesh that do not split dimensions, in the order of HLO."""
    mesh = sharding.mesh
    manual = _parts_of(mesh, parts, sharding.manual)
    partial = _parts_of(mesh, parts, [axis for axis, _ in sharding.partial])
    split = [part for axes in sharding.dims for part in _parts_of(mesh, parts, axes)]
    replicated = [part for part in parts if part not in {*manual, *partial, *split}]
    return {"manual": manual, "unreduced": partial, "replicated": replicated}


def _undivided_word(sharding: Sharding) -> str:
    """Return the word for a sharding that does not split dimensions, or the empty text."""
    mesh = sharding.mesh
    if sharding.hints.is_unknown:
        return "unknown"
    if mesh.is_maximal:
        return f"maximal device={mesh.devices[0]}"
    partial = [axis for axis, _ in sharding.partial]
    if sharding.manual and _size(mesh, sharding.manual) == mesh.size:
        return "manual"
    if partial and _size(mesh, partial) == mesh.size:
        return "unreduced"
    used = [*sharding.manual, *partial, *[axis for axes in sharding.dims for axis in axes]]
    return "replicated" if _size(mesh, used) == 1 else ""


def _parts_of(mesh: Mesh, parts: Sequence[Axis], axes: Iterable[Axis]) -> list[Axis]:
    """Return the parts of axes."""
    return [
        part
        for axis in axes
        for part in parts
        if part.name == axis.name and mesh.split(axis)[0] <= part.pre_size < mesh.split(axis)[1]
    ]

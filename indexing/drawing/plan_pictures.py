"""Pictures of plans: the devices that hold each part of parameters and results, and collectives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, product
from math import prod
from typing import Any, Final

from hlo.modules.module import Instruction
from hlo.shapes.shape import Shape, leaves
from hlo.shardings.sharding import Sharding
from indexing.drawing.drawing import Backend, as_drawing
from indexing.drawing.figures import (
    BarChart,
    BarPart,
    CellGrid,
    DrawnBar,
    DrawnCell,
    DrawnPanel,
    Figure,
    class_shade,
)
from indexing.drawing.region_pictures import shape_text
from indexing.drawing.style import Theme
from indexing.drawing.traffic_pictures import bytes_text
from indexing.maps.arrays import leaf_name
from indexing.sharding.planning.array_shards import place_of_shard
from indexing.sharding.planning.plan import Plan

MAX_ARRAYS: Final = 12
"""Number of parameters, and of results, of a picture."""
MAX_SHARDS: Final = 32
"""Number of shards along a dimension that are drawn."""
MAX_SLICES: Final = 4
MAX_BARS: Final = 12
_MAX_LISTED: Final = 4


def plot_plan(plan: Plan, backend: Backend, theme: Theme) -> Any:
    """Return a picture of a plan; see `Plan.plot`."""
    return as_drawing(plan_figure(plan), backend, theme)


def plan_figure(plan: Plan) -> Figure:
    """Return the devices of each part of parameters and results, and the bytes of collectives."""
    entry = plan.program.entry
    notes: list[str] = []
    panels: list[DrawnPanel] = []
    for role, instructions, shardings in (
        ("parameter", entry.parameters, plan.parameters),
        ("result", [entry.root], plan.results),
    ):
        arrays = list(_arrays(instructions, shardings))
        for name, shape, sharding in arrays[:MAX_ARRAYS]:
            panels += _array_panels(f"{role} {name}", name, shape, sharding)
        if len(arrays) > MAX_ARRAYS:
            notes.append(f"{len(arrays) - MAX_ARRAYS:,} more {role}s are not drawn")
    if plan.collectives:
        panels.append(_collectives(plan))
    else:
        notes.append("no collectives: devices exchange nothing")
    notes.insert(0, "texts of parts: the devices that hold them")
    held, sent = bytes_text(plan.peak_bytes), bytes_text(plan.bytes_sent)
    notes.append(f"a device holds {held} at most, and sends {sent}")
    return Figure(f"plan of {entry.name} on {plan.mesh}", tuple(panels), tuple(notes))


def _arrays(
    instructions: Sequence[Instruction], shardings: Sequence[Sharding]
) -> Iterator[tuple[str, Shape, Sharding]]:
    """Yield name, shape and sharding of each array of parameters or results."""
    every = [
        (leaf_name(instruction.name, path), shape)
        for instruction in instructions
        for path, shape in leaves(instruction.shape)
    ]
    for (name, shape), sharding in zip(every, shardings, strict=True):
        if isinstance(shape, Shape):
            yield name, shape, sharding


def _array_panels(title: str, name: str, shape: Shape, sharding: Sharding) -> Iterator[CellGrid]:
    """Yield a grid of shards for each slice along further split dimensions."""
    split = [k for k in range(shape.rank) if sharding.shards(k) > 1]
    plane = (split[0], split[1]) if len(split) > 1 else (-1, *split, -1)[:2]
    others = split[2:]
    owners = _owners(shape, sharding)
    counts = [_shown_shards(sharding, k) for k in plane]
    slices = list(islice(product(*[range(sharding.shards(k)) for k in others]), MAX_SLICES))
    notes = tuple(_array_notes(sharding, plane, others, len(slices)))
    for number, at in enumerate(slices):
        cells = []
        for row, column in product(*map(range, counts)):
            shard = dict(zip((*others, *plane), (*at, row, column), strict=True))
            key = tuple([shard.get(k, 0) for k in range(shape.rank)])
            place = place_of_shard(sharding, shape.dims, key)
            cells.append(_shard_cell(row, column, place, sharding.mesh.size, owners[key]))
        first = f"{title}  {shape_text(shape)} {sharding}"
        yield CellGrid(
            first if number == 0 else f"{name}, shard {at}",
            name,
            counts[0],
            counts[1],
            tuple(cells),
            "class",
            row_labels=_starts(shape, sharding, plane[0]),
            column_labels=_starts(shape, sharding, plane[1]),
            axes=(_axis_name(plane[0]), _axis_name(plane[1])),
            notes=notes if number == len(slices) - 1 else (),
        )


def _shown_shards(sharding: Sharding, dim: int) -> int:
    """Return the number of shards that are drawn; 1 for a dimension below 0, which is none."""
    return min(sharding.shards(dim), MAX_SHARDS) if dim >= 0 else 1


def _array_notes(
    sharding: Sharding, plane: Sequence[int], others: Sequence[int], slices: int
) -> Iterator[str]:
    """Yield the partial values of an array, and what is left out."""
    for axis, kind in sharding.partial:
        yield f"partial values: {kind} along {axis}"
    for k in plane:
        if k >= 0 and sharding.shards(k) > MAX_SHARDS:
            yield f"cut to the first {MAX_SHARDS} of {sharding.shards(k):,} shards of d{k}"
    total = prod(sharding.shards(k) for k in others)
    if total > slices:
        yield f"{slices} of {total:,} slices of the other split dimensions"


def _axis_name(dim: int) -> str:
    return f"d{dim}" if dim >= 0 else ""


def _owners(shape: Shape, sharding: Sharding) -> dict[tuple[int, ...], list[int]]:
    """Return the devices by the numbers of their shards."""
    owners: dict[tuple[int, ...], list[int]] = {}
    columns = [sharding.mesh.numbers_by_device(sharding.dims[k]) for k in range(shape.rank)]
    for device in sorted(sharding.mesh.devices):
        owners.setdefault(tuple([column[device] for column in columns]), []).append(device)
    return owners


def _shard_cell(
    row: int, column: int, place: tuple[slice, ...], mesh_size: int, devices: Sequence[int]
) -> DrawnCell:
    index = ",".join(f"{part.start}:{part.stop}" for part in place)
    value = " ".join(map(str, devices))
    if len(devices) == mesh_size and len(devices) > 1:
        label = f"all {len(devices)} devices"
    else:
        label = ",".join(map(str, devices[:_MAX_LISTED]))
        label += f" +{len(devices) - _MAX_LISTED}" if len(devices) > _MAX_LISTED else ""
    noun = "device" if len(devices) == 1 else "devices"
    title = f"[{index}]: {noun} {', '.join(map(str, devices))}"
    return DrawnCell(row, column, index, value, class_shade(devices[0]), label, title)


def _starts(shape: Shape, sharding: Sharding, dim: int) -> tuple[str, ...]:
    """Return the first index of each shard along a dimension."""
    if dim < 0:
        return ()
    part, size = sharding.local_dims(shape.dims)[dim], shape.dims[dim]
    return tuple([str(min(k * part, size)) for k in range(_shown_shards(sharding, dim))])


def _collectives(plan: Plan) -> BarChart:
    """The bytes that a device sends, by collective."""
    ranked = sorted(plan.collectives, key=lambda each: -each.total_bytes)
    kinds = list(dict.fromkeys(each.kind for each in ranked))
    bars = []
    for each in ranked[:MAX_BARS]:
        axes = ",".join(map(str, each.axes))
        place = f"{each.loop}/{each.instruction}" if each.loop else each.instruction
        title = f"{each.kind} along {axes} for {place}: {each.total_bytes:,} bytes; {each.reason}"
        part = BarPart(each.total_bytes, class_shade(kinds.index(each.kind)), title)
        bars.append(DrawnBar(f"{place} {each.kind}", (part,), bytes_text(each.total_bytes)))
    notes = ["bytes that a device sends, in all executions"]
    if any(each.executions.number is None for each in ranked):
        notes.append("where the number of executions is not known: in those that are certain")
    if len(ranked) > MAX_BARS:
        notes.append(f"the {MAX_BARS} largest of {len(ranked):,}")
    legend = tuple([(class_shade(k), kind) for k, kind in enumerate(kinds)])
    return BarChart("collectives", "collectives", tuple(bars), legend, tuple(notes))

"""Pictures of schedules: the block and thread that computes each element of an array."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any, Final

import numpy as np

from hlo.arguments import checked
from hlo.shapes.shape import Shape
from indexing.devices.gpus import Gpu, gpu
from indexing.drawing.drawing import Backend, as_drawing
from indexing.drawing.figures import Figure, class_shade
from indexing.drawing.layout_pictures import index_grids
from indexing.drawing.style import Theme
from indexing.maps.indexing_map import Extents, IndexingMap
from indexing.memory.warps.thread_loads import THREAD_DIMS, thread_counts
from simplifier.atoms import point_count

MAX_POINTS: Final = 1 << 18
"""Limit on the points of a schedule: threads, blocks and loop iterations."""


@checked
def plot_threads(
    schedule: IndexingMap,
    shape: Extents,
    device: str | Gpu = "A100",
    backend: Backend = "svg",
    theme: Theme = "auto",
) -> Any:
    """Return a picture of the threads that compute the elements of an array.

    Texts are numbers of threads in their block.  Colours are warps, or blocks if there are several.
    The value of a cell is its block, thread and loop iterations.

    Args:
        schedule: the map from threads ``th_x``, …, blocks and loops to elements of the array, such
            as `indexing.thread_map`.
        shape: the shape or the sizes of the array.
        device: the GPU, for the size of a warp.
        backend, theme: as in `Answer.plot`.
    Returns:
        A `Drawing`.
    Raises:
        ImportError: matplotlib is not installed.
        ValueError: the schedule has no thread dimensions, runtime variables, more than 262,144
            points, or another number of results than the array has dimensions; an unknown GPU.

    >>> from indexing.devices.grid import thread_map
    >>> plot_threads(thread_map((8, 8), threads=32), (8, 8))
    <drawing of 'threads of [8, 8]: 32 in each of 2 blocks'>
    """
    sizes = shape.dims if isinstance(shape, Shape) else tuple(shape)
    return as_drawing(threads_figure([schedule], sizes, gpu(device)), backend, theme)


def threads_figure(
    schedules: Sequence[IndexingMap], sizes: Sequence[int], model: Gpu, name: str = ""
) -> Figure:
    """Return the threads that compute the elements of an array by several maps.

    Args:
        schedules: at least one map, all over the same threads and blocks.
        name: the name of the array.
    Raises:
        ValueError: as `plot_threads`.
    """
    sizes = tuple(sizes)
    counts = thread_counts(schedules[0])
    owners: dict[tuple[int, ...], tuple[int, int, str]] = {}
    for schedule in schedules:
        if len(schedule.results) != len(sizes):
            raise ValueError(f"the schedule has {len(schedule.results)} results for sizes {sizes}")
        owners = {**_owners(schedule, counts), **owners}
    blocks = point_count([v for v in schedules[0].dims if v.name not in THREAD_DIMS])

    def value_and_shade(index: tuple[int, ...]) -> tuple[int | str, int, str]:
        own = owners.get(index)
        if own is None:
            return "no thread", 0, ""
        block, thread, text = own
        colour = block if blocks > 1 else thread // model.threads_per_warp
        return text, class_shade(colour), str(thread)

    colours = "blocks" if blocks > 1 else f"warps of {model.threads_per_warp} threads"
    notes = ["texts: threads in their block", f"colours: {colours}"]
    grids = index_grids("elements", "elements", sizes, value_and_shade, notes, None, "class")
    title = f"threads of {name}{list(sizes)}: {prod(counts)} in "
    title += f"each of {blocks:,} blocks" if blocks > 1 else "one block"
    return Figure(title, tuple(grids))


def _owners(
    schedule: IndexingMap, counts: tuple[int, ...]
) -> Mapping[tuple[int, ...], tuple[int, int, str]]:
    """Return block, thread and text of the point that computes each element, the first of several.

    Raises:
        ValueError: there are runtime variables, or too many points.
    """
    names = [v.name for v in (*schedule.dims, *schedule.ranges)]
    owners: dict[tuple[int, ...], tuple[int, int, str]] = {}
    for element, place in _points(schedule):
        named = dict(zip(names, place, strict=True))
        x, y, z = (named.pop(name, 0) for name in THREAD_DIMS)
        thread = x + counts[0] * (y + counts[1] * z)
        block = 0
        for v in schedule.dims[::-1]:
            if v.name in named:
                block = block * v.size + named[v.name] - v.lower
        rest = [f"{name} {value}" for name, value in named.items() if value]
        owners.setdefault(element, (block, thread, ", ".join([f"thread {thread}", *rest])))
    return owners


def _points(schedule: IndexingMap) -> Iterator[tuple[tuple[int, ...], list[int]]]:
    """Yield the element of each point of a schedule, and the values of its variables."""
    if schedule.runtime:
        raise ValueError(f"the schedule has the runtime variable {schedule.runtime[0].name}")
    variables = (*schedule.dims, *schedule.ranges)
    points = point_count(variables)
    if points > MAX_POINTS:
        raise ValueError(f"the schedule has {points:,} points, more than {MAX_POINTS:,}")
    grid = np.meshgrid(*[np.arange(v.lower, v.upper + 1) for v in variables], indexing="ij")
    rank = len(schedule.dims)
    loops: dict[str, Any] = {v.name: x for v, x in zip(schedule.ranges, grid[rank:], strict=True)}
    results = schedule(*grid[:rank], **loops)
    assert results is not None, "arrays give arrays"
    masks = [np.ma.getmaskarray(column) for column in results]
    inside = ~masks[0] if masks else np.ones(grid[0].shape, bool)
    columns = [np.ma.getdata(column)[inside].tolist() for column in results]
    places = np.stack([axis[inside] for axis in grid], axis=1).tolist()
    elements = zip(*columns, strict=True) if columns else [()] * len(places)
    yield from zip(elements, places, strict=True)

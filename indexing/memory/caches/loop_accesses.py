"""The elements that the blocks of a tiling with loops load in each step, as accesses of a cache.

A block and a step of its loops are one tile of a larger grid, which has a dimension for each axis.
A block holds what it has loaded until the step changes, so an access has only the steps that load.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hlo.shapes.shape import Shape, leaves
from indexing.maps.arrays import ArrayRef, array_name
from indexing.maps.regions.boxes import Box
from indexing.memory.caches.accesses import (
    MAX_TILES,
    CacheBudgetError,
    Rows,
    TiledAccess,
    minor_dim,
    own_tiles,
    rows_of_boxes,
    without_repetitions,
)
from indexing.memory.caches.orders import BlockOrder
from indexing.memory.caches.trace import Touching
from indexing.tiling.loops.axes import Axes
from indexing.tiling.loops.loop_tiling import LoopTiling
from indexing.tiling.loops.step_loads import StepLoads, step_loads
from indexing.tiling.loops.step_sets import PointUnion, ProductUnion, StepSets
from indexing.tiling.sets.distinct_rows import number_rows
from simplifier.unknown import Unknown


@dataclass(frozen=True, eq=False)
class LoopAccesses:
    """The accesses of the blocks of a tiling with loops: loads in steps, then stores of the result.

    Attributes:
        tiling: the tiling.
        listed: the loads of each array, then the stores; the axes are the dimensions of the grid.
        loads: the steps of each load.
    """

    tiling: LoopTiling
    listed: tuple[TiledAccess, ...]
    loads: tuple[StepLoads, ...]

    def touching(self, order: BlockOrder, wave: int) -> Touching:
        """Return the blocks of accesses in the order in which waves of blocks touch them.

        The blocks of a wave run in lockstep: all of them load what they need in one step, in their
        order, before the next step begins; they store their results after the last step.
        """
        axes = self.tiling.axes
        columns: list[tuple[NDArray[Any], ...]] = []
        block = np.unravel_index(order.numbers, order.grid)
        depth = max([len(own.steps) for own in self.loads], default=0)
        for k, own in enumerate(self.loads):
            counts = [axes[axis].count for axis in own.along]
            steps = np.indices(counts, np.int64).reshape(len(counts), 1, prod(counts))
            index = dict.fromkeys(axes, np.zeros((1, 1), np.int64))
            index |= {axis: block[axis][:, None] for axis in range(len(order.grid))}
            index |= dict(zip(own.along, steps, strict=True))
            shape = (len(order.numbers), steps.shape[-1])
            changed = own.sets.changes(own.along)
            is_load = changed.values[tuple([index[axis] for axis in changed.axes])]
            place, step = np.nonzero(np.broadcast_to(is_load, shape))
            number = np.broadcast_to(self._block(self.listed[k], axes, index), shape)
            along = dict(zip(own.along, steps[:, 0], strict=True))
            nested = [along[axis][step] if axis in along else 0 * step for axis in own.steps]
            nested += [0 * step] * (depth - len(nested))
            phase = np.full(len(place), own.phase)
            access = np.full(len(place), k)
            columns.append((place // wave, phase, *nested, place, access, number[place, step]))
        place = np.arange(len(order.numbers))
        result = self.listed[-1]
        last = np.full(len(place), 1 + max([own.phase for own in self.loads], default=0))
        access = np.full(len(place), len(self.loads))
        none = [0 * place] * depth
        stored = result.block_of[order.numbers]
        columns.append((place // wave, last, *none, place, access, stored))
        joined = [np.concatenate(column) for column in zip(*columns, strict=True)]
        sequence = np.lexsort(joined[-2::-1])
        return Touching(*[joined[k][sequence] for k in (-3, -2, -1)])

    @staticmethod
    def _block(access: TiledAccess, axes: Axes, index: dict[int, NDArray[Any]]) -> NDArray[Any]:
        number: NDArray[Any] = np.zeros((1, 1), np.int64)
        for axis in access.dims:
            number = number * axes[axis].count + index[axis]
        return np.asarray(access.block_of[number])


def loop_accesses(tiling: LoopTiling) -> LoopAccesses | Unknown:
    """Return the accesses of a tiling with loops.

    Returns:
        The accesses; `Unknown` if elements are over-approximated or depend on runtime values, an
        array is read in several phases, or a budget is exceeded.
    Raises:
        ValueError: blocks share loops by `split_k`.
    """
    if tiling.split_k > 1:
        raise ValueError(f"split_k={tiling.split_k}: expected blocks that share no loop")
    model = tiling.model
    loads = step_loads(tiling.loop_phases, tiling.axes, model.tables)
    if isinstance(loads, Unknown):
        return loads
    obstacle = _obstacle(tiling, loads)
    if obstacle is not None:
        return obstacle
    try:
        accesses = [_access(tiling, own) for own in loads]
        array = ArrayRef(model.instruction, leaves(model.instruction.shape)[model.output_id][0])
        stored = own_tiles(array, "write", tiling.shape, tiling.grid, tiling.sizes)
    except CacheBudgetError as error:
        return Unknown(str(error), tiling.instruction)
    return LoopAccesses(tiling, (*accesses, stored), loads)


def _obstacle(tiling: LoopTiling, loads: Sequence[StepLoads]) -> Unknown | None:
    """Return the reason why the elements of some step are not known, or their order."""
    for read in [read for nest in tiling.model.nests for read in nest.reads]:
        name = array_name(read.array)
        if read.needed.runtime:
            names = ", ".join(sorted({rt.name for rt in read.needed.runtime}))
            reason = f"the elements of `{name}` that a step needs depend on runtime values: {names}"
            return Unknown(reason, read.array.instruction)
        if read.read.grade == "may":
            reason = f"the elements of `{name}` that a step needs are over-approximated"
            return Unknown(reason, read.array.instruction)
    for own in loads:
        if not set(own.along) <= set(own.steps):
            name = array_name(own.array)
            reason = f"`{name}` is read in one of several loops that are nested in one"
            return Unknown(f"{reason}: their order is not modelled", own.array.instruction)
    return None


def _access(tiling: LoopTiling, own: StepLoads) -> TiledAccess:
    """Return the blocks of the loads of one array."""
    axes, sets = tiling.axes, own.sets
    if (tiles := prod(sets.shape)) > MAX_TILES:
        name = array_name(own.array)
        raise CacheBudgetError(f"budget: {tiles} tiles of `{name}` in steps, more than {MAX_TILES}")
    shape = own.array.shape
    assert isinstance(shape, Shape)
    rows, set_at, shifts = _boxes(sets, shape) or _list_elements(tiling, own, shape)
    grid = tuple([axes[axis].count for axis in range(len(axes))])
    return without_repetitions(own.array, "read", grid, sets.axes, rows, set_at, shifts)


def _boxes(
    sets: StepSets, shape: Shape
) -> tuple[Sequence[Rows], NDArray[Any], NDArray[Any]] | None:
    """Return the different boxes, that of each tile, and its translation; None for other sets."""
    if not isinstance(sets, ProductUnion) or len(sets.products) != 1:
        return None
    (sides,) = sets.products
    counts = [np.broadcast_to(side.count.along(sets.axes), sets.shape) for side in sides]
    is_open = np.logical_and.reduce([count > 0 for count in counts], initial=True)
    own = sides[: shape.rank]
    lows = [np.broadcast_to(side.bounds_along(sets.axes)[0], sets.shape) for side in own]
    sizes = [np.where(is_open, count, 0).reshape(-1) for count in counts[: shape.rank]]
    opened = np.broadcast_to(is_open, sets.shape).astype(np.int64).reshape(-1)
    set_at, table = number_rows([opened, *sizes])
    zero, strides = (0,) * shape.rank, tuple([side.stride for side in own])
    every, minor = tuple(range(shape.rank)), minor_dim(shape)
    boxes = [
        [Box(zero, tuple(extents), strides)] if is_used else []
        for is_used, *extents in table.tolist()
    ]
    rows = [rows_of_boxes(each, every, minor) for each in boxes]
    starts = [np.where(opened > 0, low.reshape(-1), 0) for low in lows]
    shifts = np.stack(starts, axis=1) if starts else np.zeros((len(opened), 0), np.int64)
    return rows, set_at, shifts


def _list_elements(
    tiling: LoopTiling, own: StepLoads, shape: Shape
) -> tuple[Sequence[Rows], NDArray[Any], NDArray[Any]]:
    """Return the elements of each tile as a list."""
    sets = own.sets
    if not isinstance(sets, PointUnion):
        listed = tiling.model.table(own.array).listed(own.reads.reads, tiling.axes)
        if isinstance(listed, Unknown):
            raise CacheBudgetError(listed.reason)
        sets = listed
    tiles = prod(sets.shape)
    rows = []
    for elements in sets.elements_by_tile():
        places = np.stack(np.unravel_index(elements, shape.dims or (1,)), axis=1)
        starts = places[:, : shape.rank].astype(np.int64)
        rows.append(Rows(starts, np.ones(len(starts), np.int64)))
    return rows, np.arange(tiles), np.zeros((tiles, shape.rank), np.int64)

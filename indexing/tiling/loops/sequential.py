"""One core that runs the blocks one after another, as a TPU does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from indexing.maps.arrays import ArrayRef
from indexing.tiling.loops.axes import Axes, count_points
from indexing.tiling.loops.block_figures import bytes_of
from indexing.tiling.loops.phases import LoopPhase
from indexing.tiling.loops.set_tables import MAX_GRID, SetTable
from indexing.tiling.loops.step_loads import step_loads
from simplifier.unknown import Unknown


def sequential_loads(
    phases: Sequence[LoopPhase],
    axes: Axes,
    order: Sequence[int],
    tables: Mapping[ArrayRef, SetTable],
) -> int | Unknown:
    """Return the bytes that one core loads: a tile equal to that of the step before stays.

    Args:
        phases, axes, tables: as for `measure`.
        order: the axes of the blocks, the outermost first; the loops of a phase run inside of them.
    """

    loads = step_loads(phases, axes, tables)
    if isinstance(loads, Unknown):
        return loads
    total = 0
    for each in loads:
        along = [axis for axis in (*order, *each.reads.loops) if axes[axis].count > 1]
        while along and along[-1] not in each.sets.axes:
            del along[-1]
        if count_points(axes, along) > MAX_GRID:
            return Unknown(f"budget: more than {MAX_GRID:,} steps of the grid")
        total += bytes_of(each.array, each.sets.loaded(along))
    return total

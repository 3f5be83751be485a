"""One core that runs the blocks one after another, as a TPU does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from indexing.maps.arrays import ArrayRef
from indexing.tiling.loops.axes import Axes, count_points
from indexing.tiling.loops.block_figures import bytes_of
from indexing.tiling.loops.phases import LoopPhase
from indexing.tiling.loops.set_tables import MAX_GRID, SetTable
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
    total = 0
    read: set[ArrayRef] = set()
    for phase in phases:
        for each in phase.arrays:
            if each.array in read:
                return Unknown(
                    f"`{each.array.instruction.name}` is read in several phases: which elements "
                    "stay between them is not modelled"
                )
            sets = tables[each.array].union(each.reads, axes)
            if isinstance(sets, Unknown):
                return sets
            along = [axis for axis in (*order, *each.loops) if axes[axis].count > 1]
            while along and along[-1] not in sets.axes:
                del along[-1]
            if count_points(axes, along) > MAX_GRID:
                return Unknown(f"budget: more than {MAX_GRID:,} steps of the grid")
            total += bytes_of(each.array, sets.loaded(along))
        read |= {each.array for each in phase.arrays}
    return total

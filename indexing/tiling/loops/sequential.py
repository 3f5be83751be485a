"""One core that runs the blocks one after another, as a TPU does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from indexing.maps.arrays import ArrayRef
from indexing.tiling.loops.axes import Axes, count_points
from indexing.tiling.loops.block_figures import bytes_read_in_one_phase
from indexing.tiling.loops.phases import LoopPhase, PhaseReads
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

    def loads(each: PhaseReads) -> int | Unknown:
        sets = tables[each.array].union(each.reads, axes)
        if isinstance(sets, Unknown):
            return sets
        along = [axis for axis in (*order, *each.loops) if axes[axis].count > 1]
        while along and along[-1] not in sets.axes:
            del along[-1]
        if count_points(axes, along) > MAX_GRID:
            return Unknown(f"budget: more than {MAX_GRID:,} steps of the grid")
        return sets.loaded(along)

    return bytes_read_in_one_phase(phases, loads)

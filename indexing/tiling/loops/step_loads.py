"""Step loads: what each block loads of an array, and in which of its steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from indexing.maps.arrays import ArrayRef
from indexing.tiling.loops.axes import Axes
from indexing.tiling.loops.phases import LoopPhase, PhaseReads
from indexing.tiling.loops.set_tables import SetTable
from indexing.tiling.loops.step_sets import StepSets
from simplifier.unknown import Unknown


class StepLoads(NamedTuple):
    """The elements of one array that blocks load in the steps of a phase.

    A step whose elements are those of the step before loads nothing.

    Attributes:
        reads: the accesses.
        phase: the number of the phase.
        steps: the axes of all loops of the phase, the outermost first.
        along: the first ones of them, up to the innermost on which the elements depend.
        sets: the elements of each block and step.
    """

    reads: PhaseReads
    phase: int
    steps: tuple[int, ...]
    along: tuple[int, ...]
    sets: StepSets

    @property
    def array(self) -> ArrayRef:
        """The array."""
        return self.reads.array


def phase_loads(
    each: PhaseReads, phase: LoopPhase, number: int, axes: Axes, table: SetTable
) -> StepLoads | Unknown:
    """Return the loads of one array in a phase."""
    sets = table.union(each.reads, axes)
    if isinstance(sets, Unknown):
        return sets
    changing = [k for k in each.loops if axes[k].count > 1 and k in sets.axes]
    last = max([each.loops.index(axis) for axis in changing], default=-1)
    along = tuple([k for k in each.loops[: last + 1] if axes[k].count > 1])
    return StepLoads(each, number, phase.all_loops, along, sets)


def step_loads(
    phases: Sequence[LoopPhase], axes: Axes, tables: Mapping[ArrayRef, SetTable]
) -> tuple[StepLoads, ...] | Unknown:
    """Return the loads of all arrays, each of which is read in one phase."""
    loads: list[StepLoads] = []
    for number, phase in enumerate(phases):
        for each in phase.arrays:
            if any(known.array == each.array and known.phase < number for known in loads):
                return Unknown(
                    f"`{each.array.instruction.name}` is read in several phases: which elements "
                    "stay between them is not modelled"
                )
            own = phase_loads(each, phase, number, axes, tables[each.array])
            if isinstance(own, Unknown):
                return own
            loads.append(own)
    return tuple(loads)

"""Phases: nests that walk in step, in the order in which a block runs them.

Independent nests of equal extents and steps share a phase: an array that both read is loaded once.
A nest that needs another's finished result is in a later phase, unless the result can be rescaled
while it changes (`rescaling`).  The last phase is the epilogue.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from indexing.maps.arrays import ArrayRef
from indexing.tiling.loops.axes import Axes
from indexing.tiling.loops.nests import BlockNest, LoopAxes, axes_of, waits_for
from indexing.tiling.loops.set_tables import PlacedRead, place_read

Online: TypeAlias = Callable[[BlockNest, BlockNest], bool]


class PhaseReads(NamedTuple):
    """The reads of one array in a phase, within the same loops.

    Attributes:
        array: the array.
        reads: its maps.
        loops: the axes of the loops around them, the outermost first.
    """

    array: ArrayRef
    reads: tuple[PlacedRead, ...]
    loops: LoopAxes


class LoopPhase(NamedTuple):
    """Loops that run through before the next phase begins.

    Attributes:
        loops: the axes of the loops that all nests have, the outermost first.
        nests: the nests.
        renamed: for the loops of further nests, the axis of the first one that walks in step.
        arrays: what is read.
    """

    loops: LoopAxes
    nests: tuple[BlockNest, ...]
    renamed: dict[int, int]
    arrays: tuple[PhaseReads, ...]

    @property
    def all_loops(self) -> LoopAxes:
        """The loops, and the deepest ones that are nested in them."""
        return max([self.loops, *[each.loops for each in self.arrays]], key=len)

    def steps(self, axes: Axes) -> int:
        """The number of steps of all loops together, nested ones included."""
        number = 1
        for axis in self.all_loops:
            number *= axes[axis].count
        return number

    @property
    def has_loops(self) -> bool:
        """True if the phase is no epilogue."""
        return any(nest.key is not None for nest in self.nests) or bool(self.loops)


def phases_of(
    nests: Sequence[BlockNest], axes: Axes, serial: frozenset[int], online: Online
) -> tuple[LoopPhase, ...]:
    """Return the phases of a block.

    Args:
        nests: the nests, each after those that it needs.
        axes: the axes by number.
        serial: the parallel axes that a block walks serially.
        online: True if the second nest can rescale its result while that of the first changes.
    """
    groups: list[tuple[LoopAxes, list[BlockNest]]] = []
    place: dict[int, int] = {}
    for nest in nests:
        loops = (*_serial_loops(nest, serial), *nest.loops)
        sizes = [axes[axis] for axis in loops]
        earliest = 0
        for other in waits_for(nest):
            apart = 0 if online(other, nest) else 1
            earliest = max(earliest, place[id(other)] + apart)
        for number, (known, members) in enumerate(groups):
            is_equal = [axes[axis] for axis in known] == sizes
            if (
                number >= earliest
                and is_equal
                and nest.key is not None
                and members[0].key is not None
            ):
                members.append(nest)
                break
        else:
            number = len(groups)
            groups.append((loops, [nest]))
        place[id(nest)] = number
    return tuple([_phase(loops, members, serial) for loops, members in groups])


def _serial_loops(nest: BlockNest, serial: frozenset[int]) -> LoopAxes:
    """Return the serial axes on which the result of a nest, or an epilogue, depends."""
    if nest.key is None:
        return tuple(sorted(serial))
    return tuple(sorted(serial & axes_of(nest.key.map)))


def _phase(loops: LoopAxes, members: Sequence[BlockNest], serial: frozenset[int]) -> LoopPhase:
    renamed: dict[int, int] = {}
    tables: dict[tuple[ArrayRef, LoopAxes], dict[PlacedRead, None]] = {}
    for nest in members:
        before = _serial_loops(nest, serial)
        own = dict(zip((*before, *nest.loops), loops, strict=True))
        renamed |= {axis: first for axis, first in own.items() if axis != first}
        for each in nest.reads:
            around = tuple([own.get(axis, axis) for axis in (*before, *each.loops)])
            if nest.key is None:
                around = loops
            table = tables.setdefault((each.array, around), {})
            table[place_read(each.read, own)] = None
    return LoopPhase(loops, tuple(members), renamed, _join_reads(tables))


def _join_reads(
    tables: dict[tuple[ArrayRef, LoopAxes], dict[PlacedRead, None]],
) -> tuple[PhaseReads, ...]:
    """Return the reads of each array; reads within some of the loops of others are with these."""
    listed: list[PhaseReads] = []
    for (array, loops), reads in sorted(tables.items(), key=lambda each: -len(each[0][1])):
        for number, known in enumerate(listed):
            if known.array == array and known.loops[: len(loops)] == loops:
                united = tuple(dict.fromkeys((*known.reads, *reads)))
                listed[number] = known._replace(reads=united)
                break
        else:
            listed.append(PhaseReads(array, tuple(reads), loops))
    return tuple(listed)

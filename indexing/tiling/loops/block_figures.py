"""Figures of a tiling with loops: traffic, residency and steps, from the phases of a block.

`measure` counts sets of elements.  A step whose elements of an array are those of the step before
loads nothing.  Elements that are the same in all steps of a phase stay until the last phase that
reads the array; later phases have them without loads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Final, NamedTuple

import numpy as np

from hlo.text.names import counted_noun
from indexing.maps.arrays import ArrayRef
from indexing.maps.indexing_map import Grade
from indexing.tiling.loops.axes import Axes, IntArray, OverAxes, count_points, joint_axes
from indexing.tiling.loops.phases import LoopPhase, PhaseReads
from indexing.tiling.loops.set_tables import PlacedRead, SetTable
from indexing.tiling.loops.step_sets import StepSets
from indexing.tiling.search.limits import padded_size
from simplifier.unknown import Unknown

MAX_JOINT: Final = 1 << 21
"""Limit on the blocks and steps at which the tiles of all arrays are added."""
MAX_STAGES: Final = 3
"""Number of stages of a pipeline with as many steps or more, unless another one is chosen."""


class HeldTile(NamedTuple):
    """The elements of one array that a block holds in a phase.

    Attributes:
        array: the array.
        kind: "staying" for a tile that does not change in the phase; "changing" for one that does;
            "single" for one of an epilogue, which is loaded once and not staged.
        bytes: the most bytes of a block and step.
        padded_bytes: bytes of the box with each size rounded up to a power of two.
        extents: the sizes of the box.
        is_box: True if the elements of each block and step are a box.
    """

    array: ArrayRef
    kind: str
    bytes: int
    padded_bytes: int
    extents: tuple[int, ...]
    is_box: bool

    def __repr__(self) -> str:
        return f"<tile of {self.array.instruction.name!r}: {self.kind}, {self.bytes:,} bytes>"


@dataclass(frozen=True)
class PhaseFigures:
    """Figures of one phase.

    Attributes:
        steps: the number of steps.
        tiles: what a block holds.
        resident: the most bytes of operand tiles in one step.
    """

    steps: int
    tiles: tuple[HeldTile, ...]
    resident: int

    def __repr__(self) -> str:
        return f"<phase of {counted_noun(self.steps, 'step')}: {self.resident:,} bytes resident>"

    @property
    def padded_resident(self) -> int:
        """`resident` with padded sizes."""
        return sum([tile.padded_bytes for tile in self.tiles])

    @property
    def default_stages(self) -> int:
        """The number of stages: as many as steps, at most `MAX_STAGES`."""
        return min(MAX_STAGES, self.steps)

    def shared_bytes(self, stages: int | None = None, padded: bool = True) -> int:
        """Return the bytes of staying tiles, and of changing ones in each stage."""
        count = self.default_stages if stages is None else max(1, min(stages, self.steps))
        total = 0
        for tile in self.tiles:
            own = tile.padded_bytes if padded else tile.bytes
            total += own * (count if tile.kind == "changing" else 1)
        return total


@dataclass(frozen=True)
class BlockFigures:
    """Figures of all blocks.

    Attributes:
        blocks: the number of blocks.
        loaded: bytes that all blocks load.
        phases: figures by phase.
        grade: "may" if a figure may be larger than the number of elements that are needed.
    """

    blocks: int
    loaded: int
    phases: tuple[PhaseFigures, ...]
    grade: Grade

    @property
    def resident(self) -> int:
        """The most bytes of operand tiles in one step of a phase."""
        return max([phase.resident for phase in self.phases], default=0)

    @property
    def padded_resident(self) -> int:
        """`resident` with padded sizes."""
        return max([phase.padded_resident for phase in self.phases], default=0)


def bytes_of(array: ArrayRef, elements: int) -> int:
    """Return the bytes of elements of an array."""
    shape = array.array_shape
    assert shape is not None
    return -(-elements * shape.element_bits // 8)


@dataclass
class _Held:
    """The elements that a block holds after some phases."""

    reads: tuple[PlacedRead, ...] = ()
    last: int = -1


@dataclass
class _Measure:
    """One measurement: see `measure`."""

    phases: Sequence[LoopPhase]
    axes: Axes
    blocks: frozenset[int]
    tables: Mapping[ArrayRef, SetTable]
    splits: int
    held: dict[ArrayRef, _Held] = field(default_factory=dict)
    loaded: int = 0
    grade: Grade = "exact"

    def run(self) -> BlockFigures | Unknown:
        for number, phase in enumerate(self.phases):
            for each in phase.arrays:
                self.held.setdefault(each.array, _Held()).last = number
                is_exact = all(read.read.grade == "exact" for read in each.reads)
                self.grade = self.grade if is_exact else "may"
        figures = []
        for number, phase in enumerate(self.phases):
            own = self._phase(number, phase)
            if isinstance(own, Unknown):
                return own
            figures.append(own)
        blocks = count_points(self.axes, self.blocks) * self.splits
        return BlockFigures(blocks, self.loaded, tuple(figures), self.grade)

    def _phase(self, number: int, phase: LoopPhase) -> PhaseFigures | Unknown:
        tiles: list[HeldTile] = []
        sizes: list[tuple[ArrayRef, StepSets]] = []
        constant: list[PhaseReads] = []
        for each in phase.arrays:
            own = self._read(number, phase, each)
            if isinstance(own, Unknown):
                return own
            tile, sets = own
            tiles.append(tile)
            sizes.append((each.array, sets))
            if tile.kind != "changing":
                constant.append(each)
        inside = {each.array for each in phase.arrays}
        for array, held in self.held.items():
            if array not in inside and held.reads and held.last > number:
                kept = self.tables[array].union(held.reads, self.axes)
                if isinstance(kept, Unknown):
                    return kept
                sizes.append((array, kept))
                tiles.append(self._tile(array, "staying", kept, kept))
        for each in constant:
            known = self.held[each.array]
            known.reads = tuple(dict.fromkeys((*known.reads, *each.reads)))
        steps = phase.steps(self.axes) // (self.splits if number == 0 else 1)
        return PhaseFigures(max(1, steps), tuple(tiles), self._largest(sizes))

    def _read(
        self, number: int, phase: LoopPhase, each: PhaseReads
    ) -> tuple[HeldTile, StepSets] | Unknown:
        """Add the loads of an array; return its tile, and the elements of each block and step."""
        sets = self.tables[each.array].union(each.reads, self.axes)
        if isinstance(sets, Unknown):
            return sets
        held = self.held[each.array]
        both = self._with_held(each, sets)
        if isinstance(both, Unknown):
            return both
        changing = [k for k in each.loops if self.axes[k].count > 1 and k in sets.axes]
        loaded = self._loaded_elements(each, sets, both, changing)
        if isinstance(loaded, Unknown):
            return loaded
        is_repeated = number == 0 and self.splits > 1 and not changing
        self.loaded += bytes_of(each.array, loaded * (self.splits if is_repeated else 1))
        if changing and held.last > number and self._may_stay(sets, changing):
            self.grade = "may"
        kind = "changing" if changing else "staying" if phase.has_loops else "single"
        return self._tile(each.array, kind, sets, both), both

    def _with_held(self, each: PhaseReads, sets: StepSets) -> StepSets | Unknown:
        """Return the elements of a step, with those that a block holds."""
        held = self.held[each.array].reads
        if not held:
            return sets
        united = tuple(dict.fromkeys((*held, *each.reads)))
        return self.tables[each.array].union(united, self.axes)

    def _loaded_elements(
        self, each: PhaseReads, sets: StepSets, both: StepSets, changing: Sequence[int]
    ) -> int | Unknown:
        """Return the elements that all blocks load of an array in a phase."""
        along: tuple[int, ...] = ()
        if changing:
            last = max(each.loops.index(axis) for axis in changing)
            along = tuple([k for k in each.loops[: last + 1] if self.axes[k].count > 1])
        if not self.held[each.array].reads:
            unused = self.blocks.difference(sets.axes)
            return sets.loaded(along) * count_points(self.axes, unused)
        held = self.tables[each.array].union(self.held[each.array].reads, self.axes)
        if isinstance(held, Unknown):
            return held
        parts = [both.count(), held.count()]
        changed = sets.changes(along) if along else OverAxes((), np.array(1))
        joint = joint_axes([changed.axes, *[part.axes for part in parts]])
        fresh = (parts[0].along(joint) - parts[1].along(joint)) * changed.along(joint)
        shape = [self.axes[axis].count for axis in joint]
        unused = self.blocks.difference(joint)
        total = int(np.broadcast_to(fresh, shape).sum())
        return total * count_points(self.axes, unused)

    @staticmethod
    def _tile(array: ArrayRef, kind: str, sets: StepSets, both: StepSets) -> HeldTile:
        """Return what a block holds: the elements of a step, and of earlier phases."""
        largest, own = both.largest(), sets.largest()
        padded = prod([padded_size(size) for size in sets.extents])
        if largest > own:  # beside what stays of earlier phases
            padded += padded_size(largest - own)
        counts = bytes_of(array, largest), bytes_of(array, padded)
        return HeldTile(array, kind, *counts, sets.extents, sets.are_boxes)

    def _may_stay(self, sets: StepSets, changing: Sequence[int]) -> bool:
        """Return True if the elements of some block are the same in all steps."""
        blocks = [axis for axis in sets.axes if axis not in changing]
        same = sets.same((*blocks, *changing), len(blocks))
        return bool(np.any(np.all(same, axis=-1)))

    def _largest(self, sizes: Sequence[tuple[ArrayRef, StepSets]]) -> int:
        """Return the most bytes of one block and step."""
        maxima = sum([bytes_of(array, each.largest()) for array, each in sizes])
        if len(sizes) < 2 or any(
            all(each.is_largest_at(position) for _, each in sizes) for position in (0, 1)
        ):
            return maxima
        joint = joint_axes([each.axes for _, each in sizes])
        shape = [self.axes[axis].count for axis in joint]
        if prod(shape) > MAX_JOINT:
            self.grade = "may"
            return maxima
        total: IntArray = np.zeros(shape, np.int64)
        for array, each in sizes:
            element = array.array_shape
            assert element is not None
            total = total + -(-each.count().along(joint) * element.element_bits // 8)
        return int(total.max(initial=0))


def measure(
    phases: Sequence[LoopPhase],
    axes: Axes,
    blocks: frozenset[int],
    tables: Mapping[ArrayRef, SetTable],
    splits: int = 1,
) -> BlockFigures | Unknown:
    """Return the figures of all blocks.

    Args:
        phases: the phases of a block.
        axes: the axes by number.
        blocks: the axes of the grid of blocks.
        tables: the sets of each array.
        splits: the number of blocks that share the loops of the first phase.
    """
    return _Measure(phases, axes, blocks, tables, splits).run()

"""Parts of tilings with loops: a loop, and what a block reads of an array in each step."""

from __future__ import annotations

from dataclasses import dataclass

from indexing.maps.arrays import ArrayRef
from indexing.tiling.computations.tile_boxes import TileBox
from simplifier.unknown import Unknown


@dataclass(frozen=True, slots=True)
class TilingLoop:
    """A loop of a block.

    Attributes:
        name: the name, such as ``k``; see `indexing.tiling.loops.loop_names`.
        size: the number of elements.
        step: the elements of one step.
        instructions: the names of the instructions that reduce or contract the dimension.
    """

    name: str
    size: int
    step: int
    instructions: tuple[str, ...]

    @property
    def steps(self) -> int:
        """The number of steps."""
        return -(-self.size // self.step)


@dataclass(frozen=True, slots=True)
class LoopRead:
    """The elements of an array that a block reads in each step of a phase.

    Attributes:
        array: the array.
        phase: the number of the phase.
        box: the elements, by the index ``tid_k`` of the tile or step in each dimension of the tile
            space; or the reason why they are no box.
    """

    array: ArrayRef
    phase: int
    box: TileBox | Unknown

    def __repr__(self) -> str:
        return f"<read of {self.array.instruction.name!r} in phase {self.phase}: {self.box}>"

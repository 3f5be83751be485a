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

    >>> import hlo, indexing
    >>> dot = hlo.parse('''ENTRY e {
    ...   p = f32[64,32] parameter(0)
    ...   q = f32[32,64] parameter(1)
    ...   ROOT dot = f32[64,64] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    ... }''').entry.root
    >>> (loop,) = indexing.tile(dot, (32, 64), loop_sizes={"k": 8}).loops
    >>> loop.name, loop.size, loop.step, loop.steps, loop.instructions
    ('k', 32, 8, 4, ('dot',))
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

    >>> import hlo, indexing
    >>> dot = hlo.parse('''ENTRY e {
    ...   p = f32[64,32] parameter(0)
    ...   q = f32[32,64] parameter(1)
    ...   ROOT dot = f32[64,64] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    ... }''').entry.root
    >>> for read in indexing.tile(dot, (32, 64), loop_sizes={"k": 8}).operands:
    ...     print(read.array.instruction.name, [str(side.size) for side in read.box.sides])
    p ['32', '8']
    q ['8', '64']
    """

    array: ArrayRef
    phase: int
    box: TileBox | Unknown

    def __repr__(self) -> str:
        return f"<read of {self.array.instruction.name!r} in phase {self.phase}: {self.box}>"

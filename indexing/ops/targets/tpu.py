"""Custom calls of XLA:TPU whose reads are known.

XLA:TPU computes on 32 bits.  It splits types of 64 bits into parts before, and combines them after.
"""

from __future__ import annotations

from hlo.modules.module import Instruction
from hlo.ops.op import custom_call
from hlo.shapes.shape import Shape
from indexing.maps.answers import Path
from indexing.maps.indexing_map import IndexingMap
from indexing.ops.targets.known_reads import KnownReads


class Elementwise(KnownReads):
    """A call whose elements need the elements of the operands at their own index."""

    __slots__ = ()

    def maps(
        self, instruction: Instruction, output: Path, operand: int
    ) -> tuple[IndexingMap, ...] | None:
        shape, other = instruction.shape, instruction.operands[operand].shape
        if isinstance(shape, Shape) and isinstance(other, Shape) and shape.dims == other.dims:
            return (IndexingMap.identity(shape.dims),)
        return None


@custom_call(
    "X64SplitLow", samples=['u32[2,3] custom-call(u64[2,3] p), custom_call_target="X64SplitLow"']
)
class X64SplitLow(Elementwise):
    """The lower part of each element of 64 bits."""


@custom_call(
    "X64SplitHigh", samples=['u32[2,3] custom-call(u64[2,3] p), custom_call_target="X64SplitHigh"']
)
class X64SplitHigh(Elementwise):
    """The higher part of each element of 64 bits."""


@custom_call(
    "X64Combine",
    samples=['c64[2,3] custom-call(f32[2,3] p, f32[2,3] q), custom_call_target="X64Combine"'],
)
class X64Combine(Elementwise):
    """The elements of 64 bits that consist of two parts."""

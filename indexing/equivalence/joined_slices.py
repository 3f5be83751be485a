"""Slices that are joined in memory: is each where the whole array needs it?

XLA:TPU copies large arrays to VMEM in slices, at once.  The call that joins them writes nothing.
"""

from __future__ import annotations

from typing import Final

from hlo.modules.module import Instruction
from hlo.shapes.shape import Shape
from indexing.equivalence.in_place import Hazard, decide
from indexing.equivalence.verdicts import Proved, Undecided, Verdict
from indexing.equivalence.written_places import OverwrittenElement, Written, first_violation
from indexing.maps.arrays import Path
from indexing.maps.indexing_map import IndexingMap
from indexing.ops.element import declarations_of
from indexing.ops.slicing import Slice
from simplifier.constraints import Constraint

JOINED: Final = "the slice is at its place in the result, and nothing is written"


def decide_written(instruction: Instruction, number: int, path: Path, written: Written) -> Verdict:
    """Decide whether an instruction may write a result over an operand, or joins it in place.

    Args:
        number, path: the operand, and the leaf of the result.
        written: where both are in memory.
    """
    if declarations_of(instruction).joins_operands:
        return _decide_slice(instruction, number, written)
    return decide(instruction, number, path, written)


def _decide_slice(joining: Instruction, number: int, written: Written) -> Verdict:
    """Decide whether the elements of an operand are at their places in the result."""
    operand, whole = joining.operands[number], joining.shape
    cut = _slice_behind(operand)
    if cut is None or not isinstance(whole, Shape):
        return Undecided(f"which slice `{operand.name}` is is not known", joining)
    moved = f"`{joining.name}` takes `{operand.name}` from another place without a copy"
    inside = 0 <= -written.offset <= written.result.physical_bytes - written.operand.physical_bytes
    if not inside:
        return Hazard(0, (), moved, "values", reader=joining)
    reads = IndexingMap.over(
        whole, lambda d: [index - each.start for index, each in zip(d, cut.slice, strict=True)]
    )
    within = [
        Constraint(index.as_expr(), each.start, each.limit - 1)
        for index, each in zip(reads.dims, cut.slice, strict=True)
    ]
    element = first_violation([reads.with_constraints(within)], written)
    if isinstance(element, OverwrittenElement):
        return Hazard(0, element.point, moved, "values", reader=element.point)
    return Proved("values", note=JOINED) if element is None else element


def _slice_behind(instruction: Instruction) -> Slice | None:
    """Return the slice of an asynchronous copy, without strides; None for other instructions."""
    while len(instruction.operands) == 1 and not isinstance(instruction.operands[0].shape, Shape):
        instruction = instruction.operands[0]
    called = instruction.called_computations
    op = called[0].root.op if len(called) == 1 else instruction.op
    return op if isinstance(op, Slice) and all(each.stride == 1 for each in op.slice) else None

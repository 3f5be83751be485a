"""Instructions that only move the elements of an array, and the maps of what they move."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, TypeAlias

from hlo.modules.module import Instruction
from hlo.shapes.shape import Shape
from indexing.dataflow.queries import output_to_input
from indexing.maps.arrays import ArrayRef, Path, array_at
from indexing.maps.indexing_map import IndexingMap
from indexing.ops.base import MappedOp
from indexing.ops.element import CopyRule, declarations_of, element_of
from indexing.ops.structure import Copy
from indexing.ops.structured_ops import InlineOp
from indexing.ops.transfers import CopyStart

CopyKind: TypeAlias = Literal["layout", "space", "value", "movement"]


def source_of_move(each: Instruction) -> tuple[ArrayRef, Shape, Shape] | None:
    """Return the source of an instruction that only moves elements, its shape, and the result's."""
    if isinstance(each.op, Copy | CopyStart) or _is_movement(each):
        source = ArrayRef(each.operands[0])
        result = array_at(each.shape, copied_path(each))
        if isinstance(source.shape, Shape) and result is not None:
            return source, source.shape, result
    return None


def copied_path(each: Instruction) -> Path:
    """Return the leaf with the elements that an instruction has moved."""
    return (0,) if isinstance(each.op, CopyStart) else ()


def kind_of_copy(each: Instruction, shape: Shape, result: Shape) -> CopyKind:
    """Return what an instruction that only moves elements changes."""
    if not isinstance(each.op, Copy | CopyStart):
        return "movement"
    there, here = shape.layout_or_default, result.layout_or_default
    if replace(there, memory_space=0) != replace(here, memory_space=0):
        return "layout"
    return "value" if there == here else "space"


def changes_layout(each: Instruction) -> bool:
    """Return True for a copy that changes the layout or the places of elements in the array."""
    movement = source_of_move(each)
    return movement is not None and kind_of_copy(each, *movement[1:]) in ("layout", "movement")


def stays_in_memory(each: Instruction) -> bool:
    """Return True for a copy that changes more than the memory space."""
    movement = source_of_move(each)
    return movement is not None and kind_of_copy(each, *movement[1:]) != "space"


def copied_operand(each: Instruction) -> tuple[Instruction, IndexingMap] | None:
    """Return the only operand of which an instruction copies elements, with the map of its reads.

    Scalars, such as the start of a slice, are left out.
    """
    if not isinstance(each.op, InlineOp | MappedOp) or not isinstance(each.shape, Shape):
        return None
    if not (_copies_only(each) if isinstance(each.op, InlineOp) else _copies(each)):
        return None
    answer = output_to_input(each)
    reads = [
        (operand, read)
        for operand, maps in zip(each.operands, answer.maps, strict=True)
        for read in maps
        if isinstance(operand.shape, Shape) and operand.shape.size > 1
    ]
    is_known = all(reason is None for reason in answer.unknown)
    return reads[0] if len(reads) == 1 and is_known else None


def _is_movement(each: Instruction) -> bool:
    """Return True for a fusion that moves the elements of one operand, and may pad them."""
    if not isinstance(each.op, InlineOp) or not isinstance(each.shape, Shape):
        return False
    arrays = [operand for operand in each.operands if operand.shape.size > 1]  # type: ignore[union-attr]
    return _copies_only(each) and len(arrays) == 1 == len(each.operands)


def _copies_only(each: Instruction) -> bool:
    """Return True for a fusion in which each instruction copies elements."""
    inner = each.called_computations[0].instructions
    moving = [i for i in inner if not declarations_of(i).is_given]
    return bool(moving) and all(map(_copies, moving))


def _copies(each: Instruction) -> bool:
    rule = element_of(each)
    return isinstance(rule, CopyRule) and rule.function is None

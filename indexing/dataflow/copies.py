"""Copies: the arrays and operands whose values an instruction forwards unchanged."""

from __future__ import annotations

from typing import Final

from hlo.modules.module import Instruction
from indexing.maps.answers import Unknown
from indexing.maps.arrays import ArrayRef, Path
from indexing.maps.indexing_map import IndexingMap
from indexing.ops.base import MappedOp, RoutingOp
from indexing.ops.control import While, callees
from indexing.ops.element import CopyRule, ElementRule
from indexing.ops.structured_ops import InlineOp, StructuredOp

MAX_TRACED: Final = 1 << 12
"""Limit on the arrays in calls through which a value is traced: computations that call others
twice, which call others twice, have exponentially many."""


def origin_of_copy(array: ArrayRef) -> ArrayRef:
    """Return the array that `array` is identical to, through tuples, copies and calls.

    >>> import hlo, indexing
    >>> root = hlo.parse('''ENTRY e {
    ...   p = (f32[2], s32[]) parameter(0)
    ...   x = f32[2] get-tuple-element(p), index=0
    ...   y = f32[2] copy(x)
    ...   ROOT t = (f32[2]) tuple(y)
    ... }''').entry.root
    >>> origin_of_copy(ArrayRef(root, (0,)))
    ArrayRef(instruction=<parameter 'p' of 'e'>, path=(0,), calls=())
    """
    steps = 0
    while steps < MAX_TRACED and (forwarded := source_of(array)) is not None:
        array = forwarded
        steps += bool(array.calls)
    return array


def source_of(array: ArrayRef) -> ArrayRef | None:
    """Return the array that the instruction of `array` forwards unchanged, or None.

    >>> import hlo, indexing
    >>> text = "ENTRY e { p = (f32[2], s32[]) parameter(0)  ROOT x = s32[] get-tuple-element(p), "
    >>> source_of(ArrayRef(hlo.parse(text + "index=1 }").entry.root))
    ArrayRef(instruction=<parameter 'p' of 'e'>, path=(1,), calls=())
    """
    instruction, path, calls = array
    op = instruction.op
    if isinstance(op, RoutingOp):
        number, inside = op.route(path)
        return ArrayRef(instruction.operands[number], inside, calls)
    if isinstance(op, InlineOp):
        return ArrayRef(instruction.called_computations[0].root, path, (*calls, instruction))
    if instruction.opcode == "parameter" and calls:
        call = calls[-1]
        if isinstance(call, Instruction) and isinstance(call.op, StructuredOp):
            argument = call.op.argument(call, instruction)
            return None if argument is None else ArrayRef(argument, path, calls[:-1])
    return None


def origin_outside(array: ArrayRef) -> ArrayRef:
    """Return the array that `array` is identical to, also outside of loops that carry it unchanged.

    The loops are those of its call stack.
    """
    while True:
        array = origin_of_copy(array)
        if array.instruction.opcode != "parameter" or not array.calls:
            return array
        call = array.calls[-1]
        if not isinstance(call.op, While) or not _is_carried_unchanged(call, array.path):
            return array
        array = ArrayRef(call.operands[0], array.path, array.calls[:-1])


def _is_carried_unchanged(loop: Instruction, path: Path) -> bool:
    """Return True if the body of a loop forwards a leaf of its parameter."""
    _, body = callees(loop, "condition", "body")
    return origin_of_copy(ArrayRef(body.root, path)) == ArrayRef(body.parameters[0], path)


def copied_operands(
    instruction: Instruction, rule: ElementRule
) -> list[tuple[Instruction, IndexingMap]]:
    """Return the copied operands with their maps; none if a map is not a function."""
    op = instruction.op
    if not isinstance(op, MappedOp) or not isinstance(rule, CopyRule) or rule.function:
        return []
    maps = op.reads(instruction.shape, tuple([o.shape for o in instruction.operands]))
    copies = []
    for number in rule.operands:
        reads = maps[number]
        if isinstance(reads, Unknown) or not all(map(is_function, reads)):
            return []
        copies += [(instruction.operands[number], read) for read in reads]
    return copies


def is_function(read: IndexingMap) -> bool:
    """Return True for an exact map to one element each."""
    return not read.ranges and not read.runtime and read.grade == "exact"

"""Reads of scalars under a mask that the mask reads anyway: an index that counts from the end."""

from __future__ import annotations

from typing import Final

from hlo.modules.module import Instruction
from hlo.shapes.shape import Shape
from indexing.ops.base import MappedOp
from indexing.ops.element import DecidedRead

MAX_VISITED: Final = 32
"""Limit on the instructions that are compared; beyond it, the read counts as another one."""


def repeats_decider(instruction: Instruction, read: DecidedRead) -> bool:
    """Return True if a scalar operand is a function of scalars that its decider reads everywhere.

    Then no condition on the operand leaves out an element.

    >>> import hlo, indexing
    >>> root = hlo.parse('''ENTRY e {
    ...   i = s32[] parameter(0)
    ...   z = s32[] constant(0)
    ...   n = s32[] constant(8)
    ...   p = pred[] compare(i, z), direction=LT
    ...   a = s32[] add(i, n)
    ...   ROOT r = s32[] select(p, a, i)
    ... }''').entry.root
    >>> [repeats_decider(root, read) for read in root.op.decided_reads(root.shape)]
    [True, True]
    """
    known = _sources(instruction.operands[read.decider], is_decided=True)
    if not known:
        return False
    read_too = _sources(instruction.operands[read.operand], is_decided=False)
    return read_too is not None and read_too <= known


def _sources(instruction: Instruction, *, is_decided: bool) -> set[Instruction] | None:
    """Return the scalars that are not computed from others by a function of elements.

    None if an array is no scalar, or if there are too many.

    Args:
        is_decided: also None if masks decide what is read.
    """
    sources, seen, pending = set[Instruction](), {instruction}, [instruction]
    while pending:
        each = pending.pop()
        op, shape = each.op, each.shape
        if not isinstance(shape, Shape) or shape.dims or len(seen) > MAX_VISITED:
            return None
        if not isinstance(op, MappedOp) or not each.operands or each.called_computations:
            if each.opcode != "constant":
                sources.add(each)
            continue
        if is_decided and op.decided_reads(shape):
            return None
        for operand in each.operands:
            if operand not in seen:
                seen.add(operand)
                pending.append(operand)
    return sources

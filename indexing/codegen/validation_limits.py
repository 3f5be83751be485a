"""Limits of validation: what is executed, and what is skipped with a reason."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Final

from hlo.modules.module import Instruction
from hlo.shapes.shape import Shape
from hlo.text.source import HloError
from indexing.execution.operations import inline_operations, operations_of
from indexing.execution.values import check_representable
from indexing.execution.work import check_work
from indexing.maps.arrays import array_leaves
from indexing.ops.base import MappedOp
from indexing.ops.element import declarations_of
from indexing.ops.structured_ops import InlineOp

MAX_EXECUTED: Final = 20_000
"""Limit on the instructions that calls execute: the perturbation test repeats them."""

MAX_OPERATIONS: Final = 10_000_000_000
"""Limit on the element operations of an instruction, and on those of its perturbations."""

MAX_POKED: Final = 1 << 16
"""Limit on the elements of operands and results in the perturbation test."""

POKES: Final = 6
"""Number of elements of each operand that are perturbed, one at a time."""


def result_leaves(instruction: Instruction) -> Iterator[tuple[int, Shape]]:
    """Yield the number and the shape of each array of the result that has a value."""
    declared = declarations_of(instruction)
    for number, path, leaf in array_leaves(instruction.shape):
        if declared.is_value(instruction, path):
            yield number, leaf


def array_shapes(instruction: Instruction) -> Iterator[Shape]:
    """Yield the array shapes of results, operands, and instructions inside a fusion."""
    yield from [leaf for _, leaf in result_leaves(instruction)]
    shapes = [operand.shape for operand in instruction.operands]
    if isinstance(instruction.op, InlineOp):
        shapes += [inner.shape for inner in instruction.called_computations[0]]
    for shape in shapes:
        for _, _, leaf in array_leaves(shape):
            yield leaf


def why_not_executed(instruction: Instruction, max_elements: int) -> str:
    """Return the reason why an instruction is not executed; empty if it is.

    Args:
        instruction: the instruction.
        max_elements: limit on the elements of an array.
    """
    if not isinstance(instruction.op, MappedOp | InlineOp):
        reason = f"{instruction.opcode} has no kernel"
        if instruction.called_computations:
            reason += "; instructions of called computations are checked separately"
        return reason
    size = max([prod(s.dims) for s in array_shapes(instruction)], default=0)
    if size > max_elements:
        return f"an array has {size} elements, more than {max_elements}"
    try:
        for each in (*instruction.operands, instruction):
            check_representable(each)
        for called in instruction.called_computations:
            check_work(called, MAX_EXECUTED)
    except HloError as error:
        return error.message
    operations = element_operations(instruction)
    if operations > MAX_OPERATIONS:
        return f"it takes {operations} element operations, more than {MAX_OPERATIONS}"
    return ""


def why_not_poked(instruction: Instruction, elements: int, arrays: int) -> str:
    """Return the reason why the operands of an instruction are not perturbed; empty if they are.

    Args:
        instruction: the instruction.
        elements: the number of elements of operands and results.
        arrays: the number of arrays of the operands.
    """
    if elements > MAX_POKED:
        return f"operands and results have {elements} elements, more than {MAX_POKED}"
    operations = element_operations(instruction) * POKES * arrays
    if operations > MAX_OPERATIONS:
        return f"perturbations take {operations} element operations, more than {MAX_OPERATIONS}"
    return ""


def element_operations(instruction: Instruction) -> int:
    """Return the element operations of one execution at least."""
    if isinstance(instruction.op, InlineOp):
        return sum(map(inline_operations, instruction.called_computations))
    return operations_of(instruction)

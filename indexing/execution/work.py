"""The number of instructions that an execution takes, as far as called computations determine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from hlo.modules.calls import callees_of
from hlo.modules.module import Computation, Instruction
from hlo.modules.recursion import bottom_up
from indexing.execution.interpreter import plan
from indexing.execution.pointwise import is_pointwise
from indexing.execution.values import ExecutionError
from indexing.ops.base import MappedOp
from indexing.ops.control import AsyncStart
from indexing.ops.element import ElementOp
from indexing.ops.structured_ops import InlineOp, StructuredOp, single_ufunc

MAX_INSTRUCTIONS: Final = 10**8
"""Limit on executed instructions outside of loops: beyond it, they would run for minutes."""


def executed_instructions(computation: Computation) -> int:
    """Return the number of instructions that an execution takes at least.

    Calls count as the instructions that they execute.  A computation that an op applies counts once
    if it accepts whole arrays, otherwise once for each element.  A loop counts as its condition,
    a conditional as its shortest branch.  Windows and updates are assumed to be within bounds.

    >>> import hlo, indexing.ops
    >>> module = hlo.parse('''
    ... f { x = f32[] parameter(0)  n = f32[] negate(x)  ROOT s = f32[] sine(n) }
    ... ENTRY e { p = f32[] parameter(0)  a = f32[] call(p), to_apply=f
    ...   ROOT r = f32[] map(a), dimensions={}, to_apply=f }''')
    >>> executed_instructions(module.entry)
    6
    """
    return bottom_up(
        computation, executed_instructions, _executed_instructions, _called_computations
    )


def _executed_instructions(computation: Computation) -> int:
    return sum([1 + _inner_instructions(step.instruction) for step in plan(computation)])


def _called_computations(computation: Computation) -> Iterator[Computation]:
    for step in plan(computation):
        if isinstance(step.instruction.op, StructuredOp | MappedOp):
            yield from step.instruction.called_computations


def _inner_instructions(instruction: Instruction) -> int:
    """Return the number of instructions that one execution of an instruction takes besides it."""
    called = instruction.called_computations
    if not called:
        return 0
    if isinstance(instruction.op, InlineOp | AsyncStart):
        return sum(map(executed_instructions, called))
    if instruction.opcode == "while":
        return sum(map(executed_instructions, callees_of(instruction)["condition"]))
    if instruction.opcode == "conditional":
        return min(map(executed_instructions, called))
    if not isinstance(instruction.op, ElementOp):
        return 0
    operands = tuple([operand.shape for operand in instruction.operands])
    count = instruction.op.applications(instruction.shape, operands)
    return sum([_applied_instructions(c, count) for c in called])


def _applied_instructions(computation: Computation, count: int) -> int:
    """Return the number of instructions that applying a computation to `count` elements takes."""
    if single_ufunc(computation) is not None:
        return 0
    if is_pointwise(computation):
        count = min(count, 1)
    return count * executed_instructions(computation)


def check_work(computation: Computation, limit: int = MAX_INSTRUCTIONS, devices: int = 1) -> None:
    """Check that called computations do not execute too many instructions.

    Computations that call others twice, which call others twice, have exponentially many.

    Args:
        limit: the maximum number of instructions.
        devices: the number of devices that execute them.
    Raises:
        ExecutionError: there are more.
    """
    count = executed_instructions(computation) * devices
    if count > limit:
        message = f"calls execute {count} instructions, more than {limit}"
        label = f"`{computation.name}` calls computations that call others several times"
        if devices > 1:
            message = f"{devices} devices execute {count} instructions, more than {limit}"
            label = f"`{computation.name}` executes {count // devices} on each device"
        raise ExecutionError(message, computation.root.span, "execution", label)

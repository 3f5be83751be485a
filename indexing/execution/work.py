"""The number of instructions that an execution takes, as far as called computations determine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from hlo.modules.calls import called_by
from hlo.modules.module import Computation, Instruction
from hlo.modules.recursion import bottom_up
from hlo.shapes.shape import Shape, leaves, unbounded_leaf
from indexing.execution.interpreter import plan
from indexing.execution.pointwise import is_pointwise
from indexing.execution.values import ExecutionError
from indexing.ops.base import MappedOp
from indexing.ops.control import AsyncStart
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
    return bottom_up(computation, executed_instructions, _executed_instructions, _called)


def _executed_instructions(computation: Computation) -> int:
    return sum([1 + _inner_instructions(step.instruction) for step in plan(computation)])


def _called(computation: Computation) -> Iterator[Computation]:
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
        return sum(map(executed_instructions, called_by(instruction)["condition"]))
    if instruction.opcode == "conditional":
        return min(map(executed_instructions, called))
    if instruction.opcode not in APPLIED_TO:
        return 0
    count = APPLIED_TO[instruction.opcode](instruction)
    return sum([_applied_instructions(c, count) for c in called])


def _applied_instructions(computation: Computation, count: int) -> int:
    """Return the number of instructions that applying a computation to `count` elements takes."""
    if single_ufunc(computation) is not None:
        return 0
    if is_pointwise(computation):
        count = min(count, 1)
    return count * executed_instructions(computation)


def _size(instruction: Instruction) -> int:
    """Return the number of elements of the first array of a value; 0 if it is unknown."""
    for _, shape in leaves(instruction.shape):
        if isinstance(shape, Shape):
            return shape.size if unbounded_leaf(shape) is None else 0
    return 0


def _sorted_elements(instruction: Instruction) -> int:
    """Return the number of elements that a sort compares: none along a dimension of size 1."""
    shape, axis = instruction.operands[0].shape, getattr(instruction.op, "dimensions", (0,))[0]
    return _size(instruction) if isinstance(shape, Shape) and shape.dims[axis] > 1 else 0


def _steps(instruction: Instruction) -> int:
    """Return 1 if a scan has any steps: it is a loop."""
    return min(_size(instruction.operands[0]), 1)


APPLIED_TO: Final[dict[str, Callable[[Instruction], int]]] = {
    "map": _size,
    "reduce": lambda instruction: _size(instruction.operands[0]),
    "reduce-window": _size,
    "scatter": lambda instruction: _size(instruction.operands[-1]),
    "select-and-scatter": lambda instruction: _size(instruction.operands[1]),
    "sort": _sorted_elements,
    "scan": _steps,
    "all-reduce": _size,
    "all-reduce-start": _size,
    "reduce-scatter": _size,
    "collective-reduce": _size,
}
"""The number of elements to which an instruction applies its computation, by opcode."""


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

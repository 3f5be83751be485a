"""The number of instructions that an execution takes, as far as calls determine it."""

from __future__ import annotations

from typing import Final

from hlo.modules.module import Computation
from indexing.dataflow.walk import callees
from indexing.execution.interpreter import plan
from indexing.execution.values import ExecutionError
from indexing.ops.control import AsyncStart
from indexing.ops.structured_ops import InlineOp

MAX_INSTRUCTIONS: Final = 10**8
"""Limit on executed instructions outside of loops: beyond it, they would run for minutes."""


def executed_instructions(computation: Computation) -> int:
    """Return the number of instructions that an execution takes at least.

    Calls count as the instructions that they execute; loops and conditionals count as one.

    >>> import hlo, indexing.ops
    >>> module = hlo.parse('''
    ... f { x = f32[2] parameter(0)  n = f32[2] negate(x)  ROOT s = f32[2] sine(n) }
    ... ENTRY e { p = f32[2] parameter(0)  a = f32[2] call(p), to_apply=f
    ...   ROOT r = f32[2] call(a), to_apply=f }''')
    >>> executed_instructions(module.entry)
    6
    """
    counts: dict[Computation, int] = {}
    for each in (*callees(computation.instructions), computation):
        counts[each] = 0
        for step in plan(each):
            inner = step.instruction
            called = (
                inner.called_computations if isinstance(inner.op, InlineOp | AsyncStart) else ()
            )
            counts[each] += 1 + sum([counts[c] for c in called])
    return counts[computation]


def check_work(computation: Computation) -> None:
    """Check that calls do not execute more than `MAX_INSTRUCTIONS` instructions.

    Computations that call others twice, which call others twice, have exponentially many.

    Raises:
        ExecutionError: they do.
    """
    count = executed_instructions(computation)
    if count > MAX_INSTRUCTIONS:
        message = f"calls execute {count} instructions, more than {MAX_INSTRUCTIONS}"
        label = f"`{computation.name}` calls computations that call others several times"
        raise ExecutionError(message, computation.root.span, "execution", label)

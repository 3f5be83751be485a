"""Control flow: parameters, constants, loops, conditionals, scans, and asynchronous calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hlo.modules.calls import callees_of
from hlo.modules.module import Instruction
from hlo.modules.recursion import Recursive
from hlo.shapes.shape import TupleShape
from indexing.execution.interpreter import execute_recursively, functions_of, handles
from indexing.execution.machine import Machine
from indexing.execution.values import Value, assemble, failure


@handles("parameter")
def _parameter(machine: Machine, instruction: Instruction, operands: Sequence[Value]) -> Value:
    raise AssertionError("parameters are assigned before the first step")


@handles("constant")
def _constant(machine: Machine, instruction: Instruction, operands: Sequence[Value]) -> Value:
    return machine.constant(instruction)


@handles("while")
def _while(
    machine: Machine, instruction: Instruction, operands: Sequence[Value]
) -> Recursive[Value]:
    called = callees_of(instruction)
    (condition,), (body,) = called["condition"], called["body"]
    value, iterations = operands[0], 0
    limit = machine.options.max_iterations
    while (yield execute_recursively(machine, condition, [value])):
        iterations += 1
        if iterations > limit:
            noun = "iteration" if limit == 1 else "iterations"
            message = f"the loop does not terminate within {limit} {noun}"
            help = "raise the limit with --max-iterations"  # noqa: A001 - `failure`'s word
            raise failure(instruction, message, "the condition is still true", help)
        machine.meter.add(instruction, body, condition)
        value = yield execute_recursively(machine, body, [value])
    return value


@handles("conditional")
def _conditional(
    machine: Machine, instruction: Instruction, operands: Sequence[Value]
) -> Recursive[Value]:
    """An index out of range selects the last branch.

    Source: XLA ``docs/operation_semantics.md``, "Conditional".
    """
    called = callees_of(instruction)
    if "branch_computations" in called:
        branches = called["branch_computations"]
        index = int(operands[0])
        index = index if 0 <= index < len(branches) else len(branches) - 1
    else:
        branches = (*called["true_computation"], *called["false_computation"])
        index = 0 if operands[0] else 1
    machine.meter.add(instruction, branches[index])
    return (yield execute_recursively(machine, branches[index], [operands[1 + index]]))


@handles("scan")
def _scan(machine: Machine, instruction: Instruction, operands: Sequence[Value]) -> Value:
    op: Any = instruction.op
    if reason := op.mismatch(instruction):
        raise failure(instruction, f"scan cannot be executed: {reason}")
    return op.kernel(*operands, **functions_of(machine, instruction))


@handles("async-start")
def _async_start(
    machine: Machine, instruction: Instruction, operands: Sequence[Value]
) -> Recursive[Value]:
    """Execute the computation at once; return ``((operands), result, context)``."""
    value = yield execute_recursively(machine, instruction.called_computations[0], operands)
    shape = instruction.shape
    assert isinstance(shape, TupleShape)
    rest = [assemble(element, iter([np.zeros((), np.uint32)])) for element in shape.elements[2:]]
    return tuple(operands), value, *rest

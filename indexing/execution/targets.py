"""Custom calls: a registry of handlers by target.

``Environment(targets=..)`` adds targets and overrides registered ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from hlo.modules.module import Instruction
from hlo.ops.op import OPS
from hlo.shapes.shape import Shape, dtype, leaves
from indexing.execution.interpreter import Handler, handles, op_handler
from indexing.execution.machine import Machine
from indexing.execution.values import Value, checked_value, failure
from indexing.ops.base import MappedOp, RoutingOp
from indexing.ops.custom_call import target_of

TARGET_HANDLERS: Final[dict[str, Handler]] = {}


def target(*names: str) -> Callable[[Handler], Handler]:
    """Register a handler for custom calls of these targets; a decorator."""

    def mark(handler: Handler) -> Handler:
        TARGET_HANDLERS.update(dict.fromkeys(names, handler))
        return handler

    return mark


@handles("custom-call")
def _custom_call(machine: Machine, instruction: Instruction, operands: Sequence[Value]) -> Value:
    name = target_of(instruction)
    function = machine.environment.targets.get(name)
    if function is not None:
        return checked_value(instruction, instruction.shape, function(*operands))
    if name in TARGET_HANDLERS:
        return TARGET_HANDLERS[name](machine, instruction, operands)
    if isinstance(instruction.op, MappedOp | RoutingOp):
        return op_handler(instruction)(machine, instruction, operands)
    message = f'no handler for custom-call target "{name}"'
    help = f'from Python: run(.., environment=Environment(targets={{"{name}": function}}))'  # noqa: A001
    raise failure(instruction, message, "unknown target", help)


@target("TopK")
def _top_k(machine: Machine, instruction: Instruction, operands: Sequence[Value]) -> Value:
    """Return the largest k elements of the last dimension and their indices; k is the result's."""
    shape = leaves(instruction.shape)[0][1]
    assert isinstance(shape, Shape)
    top_k: Any = OPS["topk"]
    return top_k(k=shape.dims[-1], largest=True).kernel(operands[0])


@target("AllocateBuffer")
def _allocate_buffer(
    machine: Machine, instruction: Instruction, operands: Sequence[Value]
) -> Value:
    """Return zeros: the call returns memory that nothing has written.

    Source: modules of XLA:TPU (libtpu 0.0.42), where loops that write each element start with it.
    """
    shape = instruction.shape
    assert isinstance(shape, Shape)
    return np.zeros(shape.dims, dtype(shape.element_type))

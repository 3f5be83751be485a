"""Custom calls by their targets: functions that compute what the code of that name computes.

A caller may give more of them, or other ones, in ``Environment(targets=..)``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from hlo.modules.module import Instruction
from hlo.ops.op import OPS
from hlo.shapes.shape import Shape, leaves
from indexing.execution.interpreter import Handler, op_handler, runs
from indexing.execution.machine import Machine
from indexing.execution.values import Value, failure, fitted
from indexing.ops.base import MappedOp, RoutingOp

TARGETS: Final[dict[str, Handler]] = {}


def target(*names: str) -> Callable[[Handler], Handler]:
    """Marks a handler as what computes custom calls of these targets."""

    def mark(handler: Handler) -> Handler:
        TARGETS.update(dict.fromkeys(names, handler))
        return handler

    return mark


def name_of(instruction: Instruction) -> str:
    """The target of a custom call."""
    return instruction.attributes["custom_call_target"].text.strip('"')


def setting(instruction: Instruction, name: str, default: Any = None) -> Any:
    """An entry of a custom call's ``backend_config``: an integer, a letter or a truth value.

    Letters are written as numbers: ``uplo = 76 : ui8`` is ``L``.
    """
    text = instruction.attributes.get("backend_config")
    found = re.search(rf'"?\b{name}\b"?\s*[=:]\s*"?(-?\w+)', text.text if text else "")
    if found is None:
        return default
    word = found[1]
    if word in ("true", "false"):
        return word == "true"
    return int(word) if word.lstrip("-").isdigit() else word


@runs("custom-call")
def _custom_call(machine: Machine, instruction: Instruction, operands: Sequence[Value]) -> Value:
    name = name_of(instruction)
    given = machine.environment.targets.get(name)
    if given is not None:
        return fitted(instruction, instruction.shape, given(*operands))
    if name in TARGETS:
        return TARGETS[name](machine, instruction, operands)
    if isinstance(instruction.op, MappedOp | RoutingOp):
        return op_handler(instruction)(machine, instruction, operands)
    message = f'nobody knows what the custom call target "{name}" computes'
    help = f'give a function: Environment(targets={{"{name}": ..}})'  # noqa: A001 - `failure`'s word
    raise failure(instruction, message, "unknown target", help)


@target("xla.sdy.FuncResultSharding", "xla.sdy.PropagationBarrier")
def _same(machine: Machine, instruction: Instruction, operands: Sequence[Value]) -> Value:
    return operands[0]


@target("TopK")
def _top_k(machine: Machine, instruction: Instruction, operands: Sequence[Value]) -> Value:
    """The largest elements of the last dimension and their places, as many as the results have."""
    shape = leaves(instruction.shape)[0][1]
    assert isinstance(shape, Shape)
    top_k: Any = OPS["topk"]
    return top_k(k=shape.dims[-1], largest=True).kernel(operands[0])

"""Ops that meet the world outside: queues that the caller gives, and tokens."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np

from hlo.modules.module import Instruction
from hlo.shapes.shape import TupleShape
from indexing.execution.interpreter import runs
from indexing.execution.machine import Machine
from indexing.execution.values import TOKEN_VALUE, Value, failure, fitted


@runs("after-all", "send-done")
def _token(machine: Machine, instruction: Instruction, operands: Sequence[Value]) -> Value:
    return TOKEN_VALUE


@runs("infeed")
def _infeed(machine: Machine, instruction: Instruction, operands: Sequence[Value]) -> Value:
    return _taken(instruction, machine.environment.waiting, "infeed"), TOKEN_VALUE


@runs("outfeed")
def _outfeed(machine: Machine, instruction: Instruction, operands: Sequence[Value]) -> Value:
    machine.environment.outfeed.append(operands[0])
    return TOKEN_VALUE


@runs("send")
def _send(machine: Machine, instruction: Instruction, operands: Sequence[Value]) -> Value:
    world, channel = machine.environment, _channel(instruction)
    world.sent.setdefault(channel, []).append(operands[0])
    if channel not in world.received:
        world.arriving.setdefault(channel, deque()).append(operands[0])
    return operands[0], np.zeros((), np.uint32), TOKEN_VALUE


@runs("recv")
def _recv(machine: Machine, instruction: Instruction, operands: Sequence[Value]) -> Value:
    channel = _channel(instruction)
    queue = machine.environment.arriving.get(channel, deque())
    value = _taken(instruction, queue, f"received[{channel}]")
    return value, np.zeros((), np.uint32), TOKEN_VALUE


def _channel(instruction: Instruction) -> int:
    op: Any = instruction.op
    return op.channel_id or 0


def _taken(instruction: Instruction, queue: deque[Value], name: str) -> Value:
    """The next value of a queue, which has to have the shape of the instruction's data."""
    shape = instruction.shape
    assert isinstance(shape, TupleShape)
    if not queue:
        message = f"there is nothing left for {instruction.opcode} `{instruction.name}`"
        help = f"put {shape.elements[0]} into Environment({name.split('[')[0]}=..)"  # noqa: A001
        raise failure(instruction, message, f"the queue {name} is empty", help)
    return fitted(instruction, shape.elements[0], queue.popleft())

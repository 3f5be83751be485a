"""Ops that communicate with the host: infeed, outfeed, send, recv, and tokens."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np

from hlo.modules.module import Instruction
from hlo.shapes.shape import TupleShape
from indexing.execution.interpreter import handles
from indexing.execution.machine import Machine
from indexing.execution.values import TOKEN_VALUE, Value, checked_value, failure


@handles("after-all", "send-done")
def _token(machine: Machine, instruction: Instruction, operands: Sequence[Value]) -> Value:
    return TOKEN_VALUE


@handles("infeed")
def _infeed(machine: Machine, instruction: Instruction, operands: Sequence[Value]) -> Value:
    return _dequeue(instruction, machine.environment.infeed_queue, "infeed"), TOKEN_VALUE


@handles("outfeed")
def _outfeed(machine: Machine, instruction: Instruction, operands: Sequence[Value]) -> Value:
    machine.environment.outfeed.append(operands[0])
    return TOKEN_VALUE


@handles("send")
def _send(machine: Machine, instruction: Instruction, operands: Sequence[Value]) -> Value:
    environment, channel = machine.environment, _channel(instruction)
    environment.sent.setdefault(channel, []).append(operands[0])
    if channel not in environment.received:
        environment.recv_queues.setdefault(channel, deque()).append(operands[0])
    return operands[0], np.zeros((), np.uint32), TOKEN_VALUE


@handles("recv")
def _recv(machine: Machine, instruction: Instruction, operands: Sequence[Value]) -> Value:
    channel = _channel(instruction)
    queue = machine.environment.recv_queues.get(channel, deque())
    value = _dequeue(instruction, queue, f"received[{channel}]")
    return value, np.zeros((), np.uint32), TOKEN_VALUE


def _channel(instruction: Instruction) -> int:
    op: Any = instruction.op
    return op.channel_id or 0


def _dequeue(instruction: Instruction, queue: deque[Value], name: str) -> Value:
    """Remove and return the next value of a queue; check its shape."""
    shape = instruction.shape
    assert isinstance(shape, TupleShape)
    if not queue:
        message = f"no value left for {instruction.opcode} `{instruction.name}`"
        queue_name = name.split("[")[0]
        help = f"from Python: pass {shape.elements[0]} in Environment({queue_name}=..)"  # noqa: A001
        raise failure(instruction, message, f"queue {name} is empty", help)
    return checked_value(instruction, shape.elements[0], queue.popleft())

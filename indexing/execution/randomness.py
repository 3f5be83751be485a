"""Random-number ops, deterministic for a seed, and the numbers of the device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hlo.modules.module import Instruction
from indexing.execution.interpreter import handles
from indexing.execution.machine import Machine
from indexing.execution.values import Value


@handles("rng")
def _rng(machine: Machine, instruction: Instruction, operands: Sequence[Value]) -> Value:
    op: Any = instruction.op
    return op.draw(machine.random, *operands)


@handles("rng-get-and-update-state")
def _next_state(machine: Machine, instruction: Instruction, operands: Sequence[Value]) -> Value:
    """Return the 128-bit state, low word first, and advance it."""
    op: Any = instruction.op
    words = machine.state % 2**64, (machine.state >> 64) % 2**64
    machine.state += op.delta
    return np.array(words, np.uint64)


@handles("partition-id")
def _partition(machine: Machine, instruction: Instruction, operands: Sequence[Value]) -> Value:
    return np.asarray(machine.device.partition, np.uint32)


@handles("replica-id")
def _replica(machine: Machine, instruction: Instruction, operands: Sequence[Value]) -> Value:
    return np.asarray(machine.device.replica, np.uint32)

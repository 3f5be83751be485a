"""State of one device during execution: options, queues, random numbers, constants."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from hlo.modules.module import Instruction
from hlo.shapes.literal import read_literal
from hlo.shapes.shape import leaves
from hlo.text.source import HloError
from indexing.execution.devices import SINGLE_DEVICE, Device
from indexing.execution.operations import MAX_OPERATIONS, Meter
from indexing.execution.values import (
    Array,
    Value,
    assemble,
    checked_value,
    failure,
    flattened,
    random_array,
)

MAX_LOOP_ITERATIONS = 1_000_000
"""Default limit on the iterations of a ``while``."""

_STATE = 0x7012395  # initial random state: XLA ``xla/service/cpu/ir_emitter.cc``


@dataclass(slots=True)
class Environment:
    """Host queues and custom calls of a program.

    `run` takes elements from the queues, and appends to `outfeed` and `sent`.

    Attributes:
        infeed: values for the infeeds, in order: arrays, or tuples of values.
        outfeed: values written by the outfeeds, in order.
        received: for each channel, values for its recvs, in order. A channel without an entry
            receives what the program itself sent.
        sent: for each channel, the values that the program sent, in order.
        targets: for each custom-call target, a function from operands to the result.

    >>> import hlo
    >>> from indexing.execution import run
    >>> module = hlo.parse('''
    ... ENTRY e {
    ...   p = s32[2] parameter(0)
    ...   ROOT c = s32[2] custom-call(p), custom_call_target="twice"
    ... }''')
    >>> run(module, [np.int32([1, 2])], environment=Environment(targets={"twice": lambda x: x * 2}))
    (array([2, 4], dtype=int32),)
    """

    infeed: Iterable[Value] = ()
    outfeed: list[Value] = field(default_factory=list)
    received: Mapping[int, Iterable[Value]] = field(default_factory=dict)
    sent: dict[int, list[Value]] = field(default_factory=dict)
    targets: Mapping[str, Callable[..., Value]] = field(default_factory=dict)
    infeed_queue: deque[Value] = field(init=False, repr=False)
    recv_queues: dict[int, deque[Value]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.infeed_queue = deque(self.infeed)
        self.recv_queues = {channel: deque(values) for channel, values in self.received.items()}


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Limits and choices of one execution.

    Attributes:
        seed: seed of all random numbers.
        max_iterations: limit on the iterations of each ``while``.
        elided: ``random`` initialises elided constants (``{...}``) with random values; ``error``
            rejects them.
        constants: values of elided constants, by instruction name.
        max_operations: limit on the element operations of all devices.
    """

    seed: int = 0
    max_iterations: int = MAX_LOOP_ITERATIONS
    elided: str = "error"
    constants: Mapping[str, Array] = field(default_factory=dict)
    max_operations: int = MAX_OPERATIONS


class Machine:
    """A device that executes a program, and its state.

    Attributes:
        functions: for each instruction, the computations that it calls, as functions by attribute
            name; a cache of the interpreter.
        meter: the element operations of loops and branches so far.
    """

    def __init__(
        self,
        options: RunOptions | None = None,
        environment: Environment | None = None,
        device: Device = SINGLE_DEVICE,
    ) -> None:
        self.options = options or RunOptions()
        self.environment = environment or Environment()
        self.device = device
        count = device.replicas * device.partitions
        self.meter = Meter(self.options.max_operations, count)
        self.random = np.random.default_rng([self.options.seed, device.number])
        self.state = _STATE + (self.options.seed << 64)
        self.functions: dict[Instruction, dict[str, Callable[..., Any]]] = {}
        self._constants: dict[Instruction, Value] = {}
        self._counts: Counter[Instruction] = Counter()

    def count(self, instruction: Instruction) -> int:
        """Count an execution of `instruction`; return the number of earlier ones."""
        self._counts[instruction] += 1
        return self._counts[instruction] - 1

    def constant(self, instruction: Instruction) -> Value:
        """Return the value of a constant instruction.

        Raises:
            ExecutionError: the constant is elided and has no value in the options.
        """
        if instruction not in self._constants:
            self._constants[instruction] = self._read_constant(instruction)
        return self._constants[instruction]

    def _read_constant(self, instruction: Instruction) -> Value:
        try:
            return instruction.module.memoised(
                (_constant, instruction), partial(_constant, instruction)
            )
        except HloError as error:
            if error.code != "elided":
                raise
        return self._elided_constant(instruction)

    def _elided_constant(self, instruction: Instruction) -> Value:
        given = self.options.constants.get(instruction.name)
        if given is not None:
            return checked_value(instruction, instruction.shape, given)
        if self.options.elided != "random":
            message = f"the values of constant `{instruction.name}` are elided"
            help = "pass them with --inputs, or use --elided random"  # noqa: A001 - as above
            raise failure(instruction, message, "elided", help)
        random: Any = np.random.default_rng([self.options.seed, *instruction.name.encode()])
        arrays = [random_array(leaf, random) for _, leaf in leaves(instruction.shape)]  # type: ignore[arg-type] # literals are arrays
        return assemble(instruction.shape, iter(arrays))


def _constant(instruction: Instruction) -> Value:
    """Read the value of a constant; all runs share its arrays."""
    assert instruction.literal is not None
    value = read_literal(instruction.literal.span, instruction.shape)
    for array in flattened(value):
        array.setflags(write=False)
    return value

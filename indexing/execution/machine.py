"""What a program runs on: one device with its queues, random numbers and limits."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hlo.modules.module import Instruction
from hlo.shapes.literal import read_literal
from hlo.shapes.shape import leaves
from hlo.text.source import HloError
from indexing.execution.devices import ALONE, Device
from indexing.execution.values import (
    Array,
    Value,
    assembled,
    failure,
    fitted,
    flattened,
    random_array,
)

MAX_TRIPS = 1_000_000
_STATE = 0x7012395  # XLA ``xla/service/cpu/ir_emitter.cc``: where the random state begins


@dataclass(slots=True)
class Environment:
    """The world outside of a program.

    Attributes:
        infeed: what the infeeds get, in order: arrays, or tuples of values.
        outfeed: what the outfeeds gave.
        received: for each channel, what its recvs get in order; a channel that is not here gets
            what the program itself sent on it.
        sent: for each channel, what was sent.
        targets: functions for targets of custom calls: operands in, value out.
    """

    infeed: Iterable[Value] = ()
    outfeed: list[Value] = field(default_factory=list)
    received: Mapping[int, Iterable[Value]] = field(default_factory=dict)
    sent: dict[int, list[Value]] = field(default_factory=dict)
    targets: Mapping[str, Callable[..., Value]] = field(default_factory=dict)
    waiting: deque[Value] = field(init=False)
    arriving: dict[int, deque[Value]] = field(init=False)

    def __post_init__(self) -> None:
        self.waiting = deque(self.infeed)
        self.arriving = {channel: deque(values) for channel, values in self.received.items()}


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How a program is run.

    Attributes:
        seed: of its random numbers.
        max_trips: how often a loop may run its body.
        elided: ``random`` gives constants that are not in the text random values.
        constants: values of such constants, by the names of their instructions.
    """

    seed: int = 0
    max_trips: int = MAX_TRIPS
    elided: str = "error"
    constants: Mapping[str, Array] = field(default_factory=dict)


class Machine:
    """A device that runs a program, and its state.

    Attributes:
        functions: the computations that instructions call, as the interpreter made them.
    """

    def __init__(
        self,
        options: RunOptions | None = None,
        environment: Environment | None = None,
        device: Device = ALONE,
    ) -> None:
        self.options = options or RunOptions()
        self.environment = environment or Environment()
        self.device = device
        self.random = np.random.default_rng([self.options.seed, device.number])
        self.state = _STATE + (self.options.seed << 64)
        self.functions: dict[Instruction, dict[str, Callable[..., Any]]] = {}
        self._constants: dict[Instruction, Value] = {}
        self._counts: Counter[Instruction] = Counter()

    def count(self, instruction: Instruction) -> int:
        """How often an instruction has been counted before."""
        self._counts[instruction] += 1
        return self._counts[instruction] - 1

    def constant(self, instruction: Instruction) -> Value:
        """The value of a constant."""
        if instruction not in self._constants:
            self._constants[instruction] = self._read(instruction)
        return self._constants[instruction]

    def _read(self, instruction: Instruction) -> Value:
        assert instruction.literal is not None
        memo, key = instruction.module.memo, ("constant", instruction)
        try:
            if key not in memo:
                memo[key] = read_literal(instruction.literal.span, instruction.shape)
                for array in flattened(memo[key]):
                    array.setflags(write=False)  # every run has the same one
            return memo[key]
        except HloError as error:
            if error.code != "elided":
                raise
        return self._elided(instruction)

    def _elided(self, instruction: Instruction) -> Value:
        given = self.options.constants.get(instruction.name)
        if given is not None:
            return fitted(instruction, instruction.shape, given)
        if self.options.elided != "random":
            message = f"the values of the constant `{instruction.name}` are not in the text"
            help = "give them with --inputs, or take --elided random"  # noqa: A001 - as above
            raise failure(instruction, message, "elided", help)
        random: Any = np.random.default_rng([self.options.seed, *instruction.name.encode()])
        arrays = [random_array(leaf, random) for _, leaf in leaves(instruction.shape)]  # type: ignore[arg-type] # literals are arrays
        return assembled(instruction.shape, iter(arrays))

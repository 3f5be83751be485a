"""One device at work: computations are evaluated instruction by instruction, on the ops' kernels.

A computation is planned once: for each instruction, who computes it, which values it takes, and
which are not needed after it. What an op's class cannot say alone (loops, queues, the other
devices) is in the modules that declare handlers with `runs`; all else is what kernels give.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, TypeVar

import numpy as np

from hlo.modules.calls import called_by
from hlo.modules.module import Computation, Instruction
from hlo.shapes.shape import ELEMENT_TYPES, Shape, dtype, leaves
from hlo.text.source import HloError
from indexing.execution.comparators import SortKey, sort_key
from indexing.execution.effects import needed
from indexing.execution.machine import Machine
from indexing.execution.pointwise import (
    is_pointwise,
    picks_second,
    pointwise,
    single_ufunc,
    value_of,
)
from indexing.execution.values import (
    Array,
    ExecutionError,
    Value,
    assembled,
    failure,
    fits,
    flattened,
)
from indexing.ops.base import MappedOp, RoutingOp
from indexing.ops.structured_ops import InlineOp

Handler: TypeAlias = "Callable[[Machine, Instruction, Sequence[Value]], Value]"
H = TypeVar("H", bound=Handler)

HANDLERS: Final[dict[str, Handler]] = {}
"""By opcode, who computes instructions that need more than their operands."""


def runs(*opcodes: str) -> Callable[[H], H]:
    """Marks a function ``(machine, instruction, operands) -> value`` as what computes these ops."""

    def mark(handler: H) -> H:
        HANDLERS.update(dict.fromkeys(opcodes, handler))
        return handler

    return mark


# ---------------------------------------------------------------- plans


@dataclass(frozen=True, slots=True)
class PlanStep:
    """One instruction: who computes it, from which values, and which are over afterwards."""

    instruction: Instruction
    handler: Handler
    operands: tuple[int, ...]
    dead: tuple[int, ...]


def plan(computation: Computation) -> tuple[PlanStep, ...]:
    """The steps of a computation without those that nothing needs."""
    return computation.module.remembered((plan, computation), lambda: _planned(computation))


def _planned(computation: Computation) -> tuple[PlanStep, ...]:
    instructions = needed(computation)
    last: dict[int, int] = {}
    for instruction in instructions:
        last.update({operand.index: instruction.index for operand in instruction.operands})
    last[computation.root.index] = -1
    over: dict[int, list[int]] = {}
    for index, user in last.items():
        over.setdefault(user, []).append(index)
    return tuple(
        [
            PlanStep(
                instruction,
                handler_of(instruction),
                tuple([operand.index for operand in instruction.operands]),
                tuple(over.get(instruction.index, ())),
            )
            for instruction in instructions
        ]
    )


def handler_of(instruction: Instruction) -> Handler:
    """Who computes an instruction."""
    return HANDLERS.get(instruction.opcode) or op_handler(instruction)


def op_handler(instruction: Instruction) -> Handler:
    """Who computes an instruction by its op alone."""
    match instruction.op:
        case MappedOp():
            return _run_mapped
        case RoutingOp():
            return _run_routing
        case InlineOp():
            return _run_inline
        case _:
            return _run_nothing


def _run_mapped(machine: Machine, instruction: Instruction, operands: Sequence[Value]) -> Value:
    op = instruction.op
    assert isinstance(op, MappedOp)
    shapes = [operand.shape for operand in instruction.operands]
    return op.compute(operands, shapes, **functions_of(machine, instruction))


def _run_routing(machine: Machine, instruction: Instruction, operands: Sequence[Value]) -> Value:
    op = instruction.op
    assert isinstance(op, RoutingOp)
    return op.kernel(*operands)


def _run_inline(machine: Machine, instruction: Instruction, operands: Sequence[Value]) -> Value:
    return result(machine, instruction.called_computations[0], operands)


def _run_nothing(machine: Machine, instruction: Instruction, operands: Sequence[Value]) -> Value:
    if instruction.op is None:
        message = f"nobody knows how to compute {instruction.opcode}"
        raise failure(instruction, message, "unknown opcode", help="declare the op with a kernel")
    message = f"{instruction.opcode} has no value that can be computed here"
    raise failure(instruction, message, "has no meaning on one machine")


# ---------------------------------------------------------------- evaluation


def computed(machine: Machine, step: PlanStep, values: Sequence[Value]) -> Value:
    """The value of a step's instruction.

    Raises:
        HloError: it has none, with the instruction's place.
    """
    instruction = step.instruction
    try:
        value = step.handler(machine, instruction, [values[index] for index in step.operands])
    except HloError:
        raise
    except MemoryError as error:
        message = f"there is not enough memory for `{instruction.name}`: {error}"
        raise ExecutionError(message, instruction.span, "memory") from error
    except (TypeError, ValueError) as error:
        raise failure(instruction, f"{instruction.opcode} cannot be run: {error}") from error
    if isinstance(value, tuple):
        return value
    shape = instruction.shape
    if isinstance(shape, Shape):
        value, kind = np.asarray(value), dtype(shape.element_type)
        if value.dtype != kind and ELEMENT_TYPES[shape.element_type].kind == "floating":
            value = value.astype(kind)  # XLA lets floating types be mixed
        if not fits(value, shape) or value.dtype != kind:
            raise AssertionError(
                f"{instruction.opcode} `{instruction.name}` is {shape}, "
                f"its kernel gives {value.dtype}{list(value.shape)}"
            )
    return value


def result(
    machine: Machine,
    computation: Computation,
    arguments: Sequence[Value],
    steps: Sequence[PlanStep] | None = None,
) -> Value:
    """The value of the root; other values are forgotten as soon as nobody needs them.

    Args:
        steps: those of `plan`, possibly with other handlers.
    """
    values: list[Value] = [None] * len(computation.instructions)
    for parameter, argument in zip(computation.parameters, arguments, strict=True):
        values[parameter.index] = argument
    for step in plan(computation) if steps is None else steps:
        values[step.instruction.index] = computed(machine, step, values)
        for index in step.dead:
            values[index] = None
    return values[computation.root.index]


def every_value(
    machine: Machine, computation: Computation, arguments: Sequence[Value]
) -> dict[Instruction, Value]:
    """The value of every instruction."""
    values: list[Value] = [None] * len(computation.instructions)
    for parameter, argument in zip(computation.parameters, arguments, strict=True):
        values[parameter.index] = argument
    for instruction in computation.instructions:
        if instruction.opcode != "parameter":
            operands = tuple([operand.index for operand in instruction.operands])
            step = PlanStep(instruction, handler_of(instruction), operands, ())
            values[instruction.index] = computed(machine, step, values)
    return {instruction: values[instruction.index] for instruction in computation.instructions}


# ---------------------------------------------------------------- called computations


class Function:
    """A computation as the function of arrays that kernels call.

    It takes scalars, or arrays instead: then it is applied element by element, all at once where
    the computation consists of elementwise ops.

    Attributes:
        ufunc: the NumPy function that it is, if it is just one; kernels may be quicker with it.
        picks_second: it gives its second argument as it is.
        sort_key: the key that it compares, if it is a comparator that compares keys.
    """

    def __init__(self, machine: Machine, computation: Computation) -> None:
        self.machine = machine
        self.computation = computation
        self.ufunc = single_ufunc(computation)
        self.picks_second = picks_second(computation)
        self._is_pointwise = is_pointwise(computation)
        self.sort_key = self._sort_key() if self._is_pointwise else None
        self._shapes = [getattr(p.shape, "dims", None) for p in computation.parameters]

    def _sort_key(self) -> SortKey | None:
        return sort_key(self.computation, lambda i, given: value_of(self.machine, i, given))

    def __call__(self, *arguments: Value) -> Value:
        if [getattr(argument, "shape", None) for argument in arguments] == self._shapes:
            return result(self.machine, self.computation, arguments)
        if self._is_pointwise:
            return pointwise(self.machine, self.computation, arguments)
        return element_by_element(self.machine, self.computation, arguments)


def element_by_element(
    machine: Machine, computation: Computation, arguments: Sequence[Array]
) -> Value:
    """What any computation of scalars makes of the elements of arrays, one after the other."""
    arrays = np.broadcast_arrays(*arguments)
    found = [
        flattened(result(machine, computation, [np.asarray(array[i]) for array in arrays]))
        for i in np.ndindex(*arrays[0].shape)
    ]
    shapes = [leaf for _, leaf in leaves(computation.root.shape) if isinstance(leaf, Shape)]
    results = [np.empty(arrays[0].shape, dtype(shape.element_type)) for shape in shapes]
    for array, column in zip(results, zip(*found, strict=True), strict=False):
        array[...] = np.stack(column).reshape(array.shape)
    return assembled(computation.root.shape, iter(results))


def functions_of(machine: Machine, instruction: Instruction) -> dict[str, Callable[..., Any]]:
    """The computations that an instruction calls as functions, by the names of its attributes."""
    if not instruction.called_computations:
        return {}
    if instruction not in machine.functions:
        machine.functions[instruction] = {
            name: Function(machine, computations[0])
            for name, computations in called_by(instruction).items()
            if len(computations) == 1
        }
    return machine.functions[instruction]

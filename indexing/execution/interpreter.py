"""Interpreter of one device: executes computations instruction by instruction.

A computation is planned once: each step has a handler, its operands, and the values that are dead
after it.  Most handlers call the kernel of the op.  Ops with state or control flow (loops, queues,
collectives) have handlers of their own, registered with `handles`.  Handlers that execute other
computations are generators (`hlo.modules.recursion`): nested calls need no Python calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from types import GeneratorType
from typing import Any, Final, TypeAlias, TypeVar

import numpy as np

from hlo.modules.bind import why_unsupported
from hlo.modules.calls import callees_of
from hlo.modules.module import Computation, Instruction
from hlo.modules.recursion import Recursive, run_recursive
from hlo.shapes.shape import ELEMENT_TYPES, AnyShape, Shape, dtype, leaves
from indexing.dataflow.soundness import require_sound, require_sound_parameters
from indexing.execution.comparators import SortKey, sort_key
from indexing.execution.effects import needed_instructions
from indexing.execution.machine import Machine
from indexing.execution.pointwise import (
    is_pointwise,
    pointwise,
    returns_second,
    value_of,
)
from indexing.execution.values import (
    Array,
    ExecutionError,
    Value,
    assemble,
    failure,
    fits,
    flattened,
)
from indexing.ops.base import MappedOp, RoutingOp
from indexing.ops.structured_ops import MAX_APPLIED_DEPTH, InlineOp, applied_depth, single_ufunc

Handler: TypeAlias = "Callable[[Machine, Instruction, Sequence[Value]], Value | Recursive[Value]]"
H = TypeVar("H", bound=Handler)

HANDLERS: Final[dict[str, Handler]] = {}
"""Handlers by opcode, of ops that need more than their operands."""


def handles(*opcodes: str) -> Callable[[H], H]:
    """Register a handler ``(machine, instruction, operands) -> value`` for opcodes; a decorator."""

    def mark(handler: H) -> H:
        HANDLERS.update(dict.fromkeys(opcodes, handler))
        return handler

    return mark


# ---------------------------------------------------------------- plans


@dataclass(frozen=True, slots=True)
class PlanStep:
    """One instruction of a plan.

    Attributes:
        instruction: the instruction.
        handler: computes its value.
        operands: indices of the operands in the computation.
        dead: indices of the values whose last use is this step.
    """

    instruction: Instruction
    handler: Handler
    operands: tuple[int, ...]
    dead: tuple[int, ...]


def plan(computation: Computation) -> tuple[PlanStep, ...]:
    """Return the steps of a computation, without dead code.

    Raises:
        HloError: one of the instructions is invalid.
    """
    return computation.memoised(plan, lambda: _plan_steps(computation))


def _plan_steps(computation: Computation) -> tuple[PlanStep, ...]:
    require_sound_parameters(computation)
    instructions = needed_instructions(computation)
    require_sound(instructions)
    last: dict[int, int] = {}
    for instruction in instructions:
        last.update({operand.index: instruction.index for operand in instruction.operands})
    last[computation.root.index] = -1
    dead: dict[int, list[int]] = {}
    for index, user in last.items():
        dead.setdefault(user, []).append(index)
    return tuple(
        [
            PlanStep(
                instruction,
                handler_of(instruction),
                tuple([operand.index for operand in instruction.operands]),
                tuple(dead.get(instruction.index, ())),
            )
            for instruction in instructions
        ]
    )


def handler_of(instruction: Instruction) -> Handler:
    """Return the handler of an instruction."""
    if why_unsupported(instruction):
        return _fail
    return HANDLERS.get(instruction.opcode) or op_handler(instruction)


def op_handler(instruction: Instruction) -> Handler:
    """Return the handler that evaluates an instruction by its op class."""
    match instruction.op:
        case MappedOp():
            return _run_mapped
        case RoutingOp():
            return _run_routing
        case InlineOp():
            return _run_inline
        case _:
            return _fail


def _run_mapped(machine: Machine, instruction: Instruction, operands: Sequence[Value]) -> Value:
    op = instruction.op
    assert isinstance(op, MappedOp)
    shapes = [operand.shape for operand in instruction.operands]
    value = op.compute(operands, shapes, **functions_of(machine, instruction))
    if type(value) is not tuple:
        return value
    declared = [leaf for _, leaf in leaves(instruction.shape)]
    return tuple(map(_in_type, value, declared))


def _run_routing(machine: Machine, instruction: Instruction, operands: Sequence[Value]) -> Value:
    op = instruction.op
    assert isinstance(op, RoutingOp)
    return op.kernel(*operands)


def _run_inline(
    machine: Machine, instruction: Instruction, operands: Sequence[Value]
) -> Recursive[Value]:
    return (yield execute_recursively(machine, instruction.called_computations[0], operands))


def _fail(machine: Machine, instruction: Instruction, operands: Sequence[Value]) -> Value:
    if instruction.op is None:
        message = why_unsupported(instruction) or f"unknown opcode `{instruction.opcode}`"
        help = "from Python: declare an op with a kernel (docs/adding_an_op.md)"  # noqa: A001 - `failure`'s word
        raise failure(instruction, message, "cannot be executed", help)
    raise failure(instruction, f"{instruction.opcode} has no kernel", "cannot be executed")


# ---------------------------------------------------------------- evaluation


def execute_step(machine: Machine, step: PlanStep, values: Sequence[Value]) -> Value:
    """Execute one step; return the value of its instruction.

    Raises:
        HloError: the instruction cannot be executed; the error has its location.
    """
    by_index = dict(enumerate(values))
    run_recursive(_executed_steps(machine, [step], by_index))
    return by_index[step.instruction.index]


def _executed_steps(
    machine: Machine, steps: Iterable[PlanStep], values: list[Value] | dict[int, Value]
) -> Recursive[None]:
    """Execute steps; add their values to `values`, and free dead ones."""
    for step in steps:
        instruction = step.instruction
        try:
            value = step.handler(machine, instruction, [values[k] for k in step.operands])
            if isinstance(value, GeneratorType):
                value = yield from value
        except MemoryError as error:
            message = f"out of memory for `{instruction.name}`: {error}"
            raise ExecutionError(message, instruction.span, "memory") from error
        except (TypeError, ValueError, OverflowError) as error:
            message = f"{instruction.opcode} cannot be executed: {error}"
            raise failure(instruction, message) from error
        values[instruction.index] = (
            value if type(value) is tuple else _check_value(instruction, value)
        )
        for index in step.dead:
            values[index] = None


def _in_type(value: Value, shape: AnyShape) -> Array:
    """Return an array in its declared precision: XLA accepts mixed floating-point types."""
    array = np.asarray(value)
    assert isinstance(shape, Shape)
    kind = dtype(shape.element_type)
    if array.dtype != kind and ELEMENT_TYPES[shape.element_type].kind == "floating":
        return array.astype(kind)
    return array


def _check_value(instruction: Instruction, value: Value) -> Value:
    """Return the value of an instruction in its declared type; check its shape."""
    shape = instruction.shape
    if not isinstance(shape, Shape):
        return value
    value = _in_type(value, shape)
    if not fits(value, shape) or value.dtype != dtype(shape.element_type):
        raise AssertionError(
            f"{instruction.opcode} `{instruction.name}`: declared {shape}, "
            f"but the kernel returns {value.dtype}{list(value.shape)}"
        )
    return value


def execute(
    machine: Machine,
    computation: Computation,
    arguments: Sequence[Value],
    steps: Sequence[PlanStep] | None = None,
) -> Value:
    """Execute a computation and return the value of its root; free dead values.

    Args:
        steps: the steps of `plan`, possibly with other handlers.
    """
    return run_recursive(execute_recursively(machine, computation, arguments, steps))


def execute_recursively(
    machine: Machine,
    computation: Computation,
    arguments: Sequence[Value],
    steps: Sequence[PlanStep] | None = None,
) -> Recursive[Value]:
    """Execute a computation within a generator: ``value = yield executed(..)``; see `execute`."""
    values: list[Value] = [None] * len(computation.instructions)
    for parameter, argument in zip(computation.parameters, arguments, strict=True):
        values[parameter.index] = argument
    yield from _executed_steps(machine, plan(computation) if steps is None else steps, values)
    return values[computation.root.index]


def every_value(
    machine: Machine, computation: Computation, arguments: Sequence[Value]
) -> dict[Instruction, Value]:
    """Execute a computation and return the value of every instruction."""
    require_sound_parameters(computation)
    require_sound(computation.instructions)
    values: list[Value] = [None] * len(computation.instructions)
    for parameter, argument in zip(computation.parameters, arguments, strict=True):
        values[parameter.index] = argument
    for instruction in computation.instructions:
        if instruction.opcode != "parameter":
            operands = tuple([operand.index for operand in instruction.operands])
            step = PlanStep(instruction, handler_of(instruction), operands, ())
            values[instruction.index] = execute_step(machine, step, values)
    return {instruction: values[instruction.index] for instruction in computation.instructions}


# ---------------------------------------------------------------- called computations


class Function:
    """A called computation as the Python function that kernels call.

    The computation is of scalars.  The function also takes arrays and applies the computation
    elementwise: vectorised if all ops are elementwise, otherwise in a loop.

    Attributes:
        ufunc: the equivalent NumPy ufunc, if any; a fast path for kernels.
        returns_second: the function returns its second argument.
        sort_key: the key that a comparator compares, if it has this form.
    """

    def __init__(self, machine: Machine, computation: Computation) -> None:
        self.machine = machine
        self.computation = computation
        self.ufunc = single_ufunc(computation)
        self.returns_second = returns_second(computation)
        self._is_pointwise = is_pointwise(computation)
        self.sort_key = self._sort_key() if self._is_pointwise else None
        self._shapes = [getattr(p.shape, "dims", None) for p in computation.parameters]
        self._is_deep = applied_depth(computation) >= MAX_APPLIED_DEPTH
        if self._is_deep and not self._is_pointwise:  # kernels would call each other too deep
            message = f"computations below `{computation.name}` apply each other"
            raise failure(computation.root, f"{message} more than {MAX_APPLIED_DEPTH} deep")

    def _sort_key(self) -> SortKey | None:
        return sort_key(self.computation, lambda i, given: value_of(self.machine, i, given))

    def __call__(self, *arguments: Value) -> Value:
        has_own_shapes = [getattr(a, "shape", None) for a in arguments] == self._shapes
        if self._is_pointwise and (self._is_deep or not has_own_shapes):
            return pointwise(self.machine, self.computation, arguments)
        if has_own_shapes:
            return execute(self.machine, self.computation, arguments)
        return element_by_element(self.machine, self.computation, arguments)


def element_by_element(
    machine: Machine, computation: Computation, arguments: Sequence[Array]
) -> Value:
    """Apply a computation of scalars to arrays, one element at a time."""
    arrays = np.broadcast_arrays(*arguments)
    rows = [
        flattened(execute(machine, computation, [np.asarray(array[i]) for array in arrays]))
        for i in np.ndindex(*arrays[0].shape)
    ]
    shapes = [leaf for _, leaf in leaves(computation.root.shape) if isinstance(leaf, Shape)]
    results = [np.empty(arrays[0].shape, dtype(shape.element_type)) for shape in shapes]
    for array, column in zip(results, zip(*rows, strict=True), strict=False):
        array[...] = np.stack(column).reshape(array.shape)
    return assemble(computation.root.shape, iter(results))


def functions_of(machine: Machine, instruction: Instruction) -> dict[str, Callable[..., Any]]:
    """Return the computations that an instruction calls, as functions by attribute name."""
    if not instruction.called_computations:
        return {}
    if instruction not in machine.functions:
        machine.functions[instruction] = {
            name: Function(machine, computations[0])
            for name, computations in callees_of(instruction).items()
            if len(computations) == 1
        }
    return machine.functions[instruction]

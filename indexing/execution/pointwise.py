"""Vectorised application of scalar computations to arrays.

A computation is *pointwise* if each instruction is an elementwise op on scalars or forwards
scalars.  Its kernels then accept arrays as well as scalars.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hlo.modules.module import Computation, Instruction
from hlo.modules.recursion import Recursive, bottom_up, run_recursive
from hlo.shapes.shape import Shape, leaves
from indexing.dataflow.needed import dependencies_of
from indexing.execution.effects import needed_instructions
from indexing.execution.machine import Machine
from indexing.execution.values import Array, Value, assemble, flattened
from indexing.ops.base import MappedOp, RoutingOp
from indexing.ops.element import ConstantRule, CopyRule, ElementwiseRule, element_of
from indexing.ops.structured_ops import InlineOp


def is_pointwise(computation: Computation) -> bool:
    """Return True if the kernels of a computation also accept arrays."""
    return bottom_up(computation, is_pointwise, lambda c: all(map(_is_pointwise, c.instructions)))


def _is_pointwise(instruction: Instruction) -> bool:
    if any(not isinstance(s, Shape) or s.rank for _, s in leaves(instruction.shape)):
        return False
    if not all(map(is_pointwise, instruction.called_computations)):
        return False
    if instruction.opcode == "parameter" or isinstance(instruction.op, RoutingOp | InlineOp):
        return True
    match element_of(instruction):
        case ConstantRule() | ElementwiseRule():
            return True
        case CopyRule(operands=(_,), parts=1, joins_parts=False):
            return True
        case _:
            return False


def returns_second(computation: Computation) -> bool:
    """Return True if the computation returns the second of its two parameters."""
    return len(computation.parameters) == 2 and computation.root is computation.parameters[1]


def pointwise(machine: Machine, computation: Computation, arguments: Sequence[Value]) -> Value:
    """Apply a pointwise computation to arrays that broadcast against each other."""
    value = run_recursive(_apply_computation(machine, computation, arguments))
    sizes = np.broadcast_shapes(*[array.shape for array in flattened(tuple(arguments))])
    rest = iter([np.broadcast_to(array, sizes) for array in flattened(value)])
    return assemble(computation.root.shape, rest)


def value_of(machine: Machine, wanted: Instruction, arguments: dict[int, Array]) -> Array:
    """Return the value of one instruction of a pointwise computation.

    Args:
        wanted: the instruction.
        arguments: the parameters that it needs, by number; others may be absent.
    """
    values: dict[Instruction, Value] = {
        parameter: arguments[number]
        for number, parameter in enumerate(wanted.computation.parameters)
        if number in arguments
    }
    for instruction in dependencies_of([wanted]):
        if instruction not in values:
            operands = [values[operand] for operand in instruction.operands]
            values[instruction] = run_recursive(_value(machine, instruction, operands))
    return np.asarray(values[wanted])


def _apply_computation(
    machine: Machine, computation: Computation, arguments: Sequence[Value]
) -> Recursive[Value]:
    values: list[Value] = [None] * len(computation.instructions)
    for parameter, argument in zip(computation.parameters, arguments, strict=True):
        values[parameter.index] = argument
    for instruction in needed_instructions(computation):
        operands = [values[operand.index] for operand in instruction.operands]
        values[instruction.index] = yield _value(machine, instruction, operands)
    return values[computation.root.index]


def _value(machine: Machine, instruction: Instruction, operands: list[Value]) -> Recursive[Value]:
    op = instruction.op
    if instruction.called_computations:
        return (yield _apply_computation(machine, instruction.called_computations[0], operands))
    if isinstance(op, RoutingOp):
        return op.kernel(*operands)
    match element_of(instruction):
        case ConstantRule():
            return machine.constant(instruction)
        case CopyRule(operands=(number,), function=function):
            return function.call(operands[number]) if function else operands[number]
    assert isinstance(op, MappedOp)
    return op.kernel(*operands)

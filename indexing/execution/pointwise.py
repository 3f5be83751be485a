"""Computations of scalars applied to arrays: element by element, but all elements at once.

A computation is *pointwise* if each of its instructions is an elementwise op on scalars, or passes
scalars on. Its kernels then take arrays as well as scalars.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from hlo.modules.module import Computation, Instruction
from hlo.shapes.shape import Shape, leaves
from indexing.execution.interpreter import plan
from indexing.execution.values import Array, Value, assembled, flattened
from indexing.ops.base import MappedOp, RoutingOp
from indexing.ops.bitcast import Bitcast
from indexing.ops.elementwise import BinaryElementwise, UnaryElementwise
from indexing.ops.selection import TernaryElementwise
from indexing.ops.structured_ops import InlineOp

if TYPE_CHECKING:
    from indexing.execution.machine import Machine

_SAME: Final = frozenset({"broadcast", "reshape", "transpose"})  # of a scalar
_BITCASTS: Final = ("bitcast", "bitcast-convert")
_UFUNCS: Final[dict[str, Any]] = {
    "add": np.add,
    "and": np.bitwise_and,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "multiply": np.multiply,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


def is_pointwise(computation: Computation) -> bool:
    """Says that it can be applied to arrays as it is applied to scalars."""
    return computation.module.remembered(
        (is_pointwise, computation), lambda: all(map(_is_pointwise, computation.instructions))
    )


def _is_pointwise(instruction: Instruction) -> bool:
    if any(not isinstance(s, Shape) or s.rank for _, s in leaves(instruction.shape)):
        return False
    if instruction.opcode in ("parameter", "constant", "map"):
        return all(map(is_pointwise, instruction.called_computations))
    if instruction.opcode in _SAME:
        return _keeps_type(instruction)
    if instruction.opcode in _BITCASTS and not _keeps_bits(instruction):
        return False
    match instruction.op:
        case (
            Bitcast()
            | UnaryElementwise()
            | BinaryElementwise()
            | TernaryElementwise()
            | RoutingOp()
        ):
            return True
        case InlineOp():
            return all(map(is_pointwise, instruction.called_computations))
        case _:
            return False


def _keeps_type(instruction: Instruction) -> bool:
    shapes = [instruction.shape, *[operand.shape for operand in instruction.operands]]
    return len({getattr(shape, "element_type", "") for shape in shapes}) == 1


def _keeps_bits(instruction: Instruction) -> bool:
    kinds = [_dtype(shape) for shape in (instruction.shape, instruction.operands[0].shape)]
    return kinds[0].itemsize == kinds[1].itemsize


def picks_second(computation: Computation) -> bool:
    """Says that it gives its second parameter, of two."""
    return len(computation.parameters) == 2 and computation.root is computation.parameters[1]


def single_ufunc(computation: Computation) -> Any:
    """The NumPy function of two scalars that a computation is; None if it is not just one.

    >>> import hlo
    >>> text = "f { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(b, a) }"
    >>> single_ufunc(hlo.parse("HloModule m " + text.replace("f {", "ENTRY f {")).entry)
    <ufunc 'add'>
    """
    root = computation.root
    while root.opcode in ("call", "fusion") and root.operands == root.computation.parameters:
        root = root.called_computations[0].root
    parameters = root.computation.parameters
    if root.opcode not in _UFUNCS or len(parameters) != 2 or set(root.operands) != set(parameters):
        return None
    return _UFUNCS[root.opcode]


def pointwise(machine: Machine, computation: Computation, arguments: Sequence[Value]) -> Value:
    """What a pointwise computation makes of arrays that can be broadcast against each other."""
    value = _applied(machine, computation, arguments)
    sizes = np.broadcast_shapes(*[array.shape for array in flattened(tuple(arguments))])
    rest = iter([np.broadcast_to(array, sizes) for array in flattened(value)])
    return assembled(computation.root.shape, rest)


def value_of(machine: Machine, wanted: Instruction, arguments: dict[int, Array]) -> Array:
    """The value of an instruction in a pointwise computation, whatever else needs parameters that
    are not given."""
    values: dict[Instruction, Value] = {
        parameter: arguments[number]
        for number, parameter in enumerate(wanted.computation.parameters)
        if number in arguments
    }
    for instruction in wanted.computation.instructions[: wanted.index + 1]:
        if instruction not in values and all(o in values for o in instruction.operands):
            if instruction.opcode != "parameter":
                operands = [values[operand] for operand in instruction.operands]
                values[instruction] = _value(machine, instruction, operands)
    return np.asarray(values[wanted])


def _applied(machine: Machine, computation: Computation, arguments: Sequence[Value]) -> Value:
    values: list[Value] = [None] * len(computation.instructions)
    for parameter, argument in zip(computation.parameters, arguments, strict=True):
        values[parameter.index] = argument
    for step in plan(computation):
        operands = [values[index] for index in step.operands]
        values[step.instruction.index] = _value(machine, step.instruction, operands)
    return values[computation.root.index]


def _value(machine: Machine, instruction: Instruction, operands: list[Value]) -> Value:
    if instruction.opcode == "constant":
        return machine.constant(instruction)
    if instruction.opcode in _SAME:
        return operands[0]
    if instruction.opcode == "bitcast":
        return operands[0].view(_dtype(instruction.shape))
    if instruction.called_computations:
        return _applied(machine, instruction.called_computations[0], operands)
    op = instruction.op
    assert isinstance(op, MappedOp | RoutingOp)
    return op.kernel(*operands)


def element_by_element(
    machine: Machine, computation: Computation, arguments: Sequence[Array]
) -> Value:
    """What any computation of scalars makes of the elements of arrays, one after the other."""
    arrays = np.broadcast_arrays(*arguments)
    found = [
        flattened(machine.call(computation, [np.asarray(array[i]) for array in arrays]))
        for i in np.ndindex(*arrays[0].shape)
    ]
    shapes = [leaf for _, leaf in leaves(computation.root.shape)]
    results = [np.empty(arrays[0].shape, _dtype(shape)) for shape in shapes]
    for array, column in zip(results, zip(*found, strict=True), strict=False):
        array[...] = np.stack(column).reshape(array.shape)
    return assembled(computation.root.shape, iter(results))


def _dtype(shape: Any) -> np.dtype[Any]:
    from hlo.shapes.shape import dtype

    return dtype(shape.element_type)

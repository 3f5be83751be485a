"""Values across fusions: the arguments of computations, and arrays that are computed alike.

Compilers divide a computation over several fusions, and compute cheap values in each of them again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from hlo.modules.module import Computation, Instruction, Module
from indexing.dataflow.constants import is_integral, literal
from indexing.dataflow.copies import source_of
from indexing.dataflow.evaluation import Evaluation, evaluate_array
from indexing.maps.arrays import ArrayRef
from indexing.ops.element import ConstantRule, OpaqueRule, element_of
from indexing.ops.structured_ops import StructuredOp

MAX_COMPARED: Final = 100
"""Limit on the pairs of arrays that one comparison visits."""


def value_source(array: ArrayRef) -> ArrayRef | None:
    """Return the array that has the same value, also that of the only caller of a computation."""
    return source_of(array) or argument_of(array)


def argument_of(array: ArrayRef) -> ArrayRef | None:
    """Return the operand that is the value of a parameter in the only call of its computation."""
    parameter = array.instruction
    if parameter.opcode != "parameter" or array.calls or parameter.computation.is_entry:
        return None
    calls = calls_of(parameter.computation)
    if len(calls) != 1 or not isinstance(op := calls[0].op, StructuredOp):
        return None
    argument = op.argument(calls[0], parameter)
    return None if argument is None else ArrayRef(argument, array.path)


def evaluated_in_calls(array: ArrayRef, calls: int) -> np.ndarray[Any, Any] | None:
    """Return the elements of an array that depends on constants only, also on those of callers.

    Args:
        calls: the number of calls around the computation, innermost first, whose arguments count:
            each must be the only call of its computation.

    >>> import hlo, indexing
    >>> module = hlo.parse('''
    ... f { p = s32[] parameter(0)  ROOT r = s32[] negate(p) }
    ... ENTRY e { c = s32[] constant(3)  ROOT r = s32[] fusion(c), kind=kLoop, calls=f }''')
    >>> inside = ArrayRef(module.computations["f"].root)
    >>> print(evaluated_in_calls(inside, 0), evaluated_in_calls(inside, 1))
    None -3
    """
    known = evaluate_array(array)
    if known is not None or not calls or array.calls:
        return known
    computation = array.instruction.computation
    given = computation.memoised(
        (evaluated_in_calls, calls), lambda: Evaluation(_arguments(computation, calls))
    )
    value: np.ndarray[Any, Any] | None = given.value(array)
    return value


def _arguments(computation: Computation, calls: int) -> dict[ArrayRef, np.ndarray[Any, Any]]:
    """Return the known values of the integer parameters of a computation."""
    values = {}
    for parameter in map(ArrayRef, computation.parameters):
        argument = argument_of(parameter) if is_integral(parameter) else None
        value = None if argument is None else evaluated_in_calls(argument, calls - 1)
        if value is not None:
            values[parameter] = value
    return values


def calls_of(computation: Computation) -> Sequence[Instruction]:
    """Return the instructions that call a computation; `depends_on_calls` is True from then on."""
    _asked_for_calls(computation.module).add(computation)
    return calls_in(computation.module).get(computation, ())


def depends_on_calls(computation: Computation) -> bool:
    """Return True if what is known of a computation may follow from the instructions that call it.

    >>> import hlo, indexing
    >>> module = hlo.parse('''
    ... f { p = s32[] parameter(0)  ROOT r = s32[] negate(p) }
    ... ENTRY e { c = s32[] constant(3)  ROOT r = s32[] fusion(c), kind=kLoop, calls=f }''')
    >>> callee = module.computations["f"]
    >>> depends_on_calls(callee)
    False
    >>> argument_of(ArrayRef(callee["p"])).instruction.name
    'c'
    >>> depends_on_calls(callee)
    True
    """
    return computation in _asked_for_calls(computation.module)


def _asked_for_calls(module: Module) -> set[Computation]:
    asked: set[Computation] = module.memo.setdefault(calls_of, set())
    return asked


def calls_in(module: Module) -> dict[Computation, list[Instruction]]:
    """Return the instructions that call each computation."""

    def find_calls() -> dict[Computation, list[Instruction]]:
        calls: dict[Computation, list[Instruction]] = {}
        for instruction in module.instructions:
            for called in instruction.called_computations:
                calls.setdefault(called, []).append(instruction)
        return calls

    return module.memoised(calls_in, find_calls)


def are_alike(one: ArrayRef, other: ArrayRef) -> bool:
    """Return True if two arrays are computed by the same ops from the same arrays.

    >>> import hlo, indexing
    >>> entry = hlo.parse('''ENTRY e {
    ...   p = f32[2] parameter(0)
    ...   a = f32[2] negate(p)
    ...   b = f32[2] negate(p)
    ...   ROOT t = (f32[2], f32[2]) tuple(a, b)
    ... }''').entry
    >>> are_alike(ArrayRef(entry["a"]), ArrayRef(entry["b"]))
    True
    """
    pending, seen = [(one, other)], set[tuple[ArrayRef, ArrayRef]]()
    while pending and len(seen) <= MAX_COMPARED:
        pair = pending.pop()
        while any(sources := [value_source(each) for each in pair]):
            pair = sources[0] or pair[0], sources[1] or pair[1]
        if pair in seen or pair[0] == pair[1]:
            continue
        seen.add(pair)
        if not _have_equal_ops(*pair):
            return False
        pending += zip(*[_operands(each) for each in pair], strict=True)
    return not pending


def _have_equal_ops(one: ArrayRef, other: ArrayRef) -> bool:
    """Return True if equal operands give equal elements."""
    first, second = one.instruction, other.instruction
    rule = element_of(first)
    if isinstance(rule, OpaqueRule) or first.called_computations or one.path:
        return False
    if (first.op, first.shape) != (second.op, second.shape):
        return False
    if not isinstance(rule, ConstantRule):
        return True
    table, other_table = literal(one), literal(other)
    if table is None or other_table is None:
        return False
    return np.array_equal(table, other_table)


def _operands(array: ArrayRef) -> list[ArrayRef]:
    return [ArrayRef(operand, (), array.calls) for operand in array.instruction.operands]

"""Calls whose arguments decide what is read: constants that a computation gets from its caller.

A compiler places a mask, the start of an update, or the indices of a scatter in another fusion
than what they decide.
"""

from __future__ import annotations

from typing import Final

from hlo.modules.module import Computation, Instruction
from hlo.modules.recursion import bottom_up
from hlo.shapes.shape import Shape
from indexing.dataflow.alike import evaluated_in_calls
from indexing.dataflow.constants import is_integral
from indexing.dataflow.evaluation import evaluate_array
from indexing.dataflow.masks import decides
from indexing.dataflow.scatter_batches import states_batch
from indexing.maps.arrays import ArrayRef
from indexing.ops.base import MappedOp
from indexing.ops.control import Conditional
from indexing.ops.dynamic import DynamicUpdateSlice
from indexing.ops.scatter import Scatter
from indexing.ops.structured_ops import InlineOp

MAX_CALLS: Final = 8
"""Limit on the calls around a computation whose arguments are known."""


def arguments_decide(call: Instruction, calls: int) -> bool:
    """Return True for a call of a scatter, an update or a mask with known integers as arguments.

    Args:
        calls: the number of calls around the computation whose arguments count, see
            `indexing.dataflow.alike.evaluated_in_calls`.

    >>> import hlo, indexing
    >>> module = hlo.parse('''
    ... f { x = s32[2] parameter(0)  m = s32[2] parameter(1)  ROOT r = s32[2] multiply(x, m) }
    ... ENTRY e { x = s32[2] parameter(0)  m = s32[2] constant({0, 1})
    ...   ROOT r = s32[2] fusion(x, m), kind=kLoop, calls=f }''')
    >>> arguments_decide(module.entry.root, 0)
    True
    """
    if calls == MAX_CALLS or not isinstance(call.op, InlineOp):
        return False
    if not any(map(_may_depend_on_arguments, call.called_computations)):
        return False  # before anything is evaluated
    decides: bool = call.module.memoised(
        (arguments_decide, call, calls), lambda: _arguments_decide(call, calls)
    )
    return decides


def makes_decisions(call: Instruction) -> bool:
    """Return True for a call of a mask or a conditional, also in a computation that it calls."""
    return isinstance(call.op, InlineOp) and any(map(_decides_inside, call.called_computations))


def _decides_inside(computation: Computation) -> bool:
    return bottom_up(
        computation,
        _decides_inside,
        lambda c: any(
            isinstance(each.op, Conditional) or decides(each) or makes_decisions(each)
            for each in c.instructions
        ),
    )


def _may_depend_on_arguments(computation: Computation) -> bool:
    """Return True for a computation with a scatter, an update or a mask, also if it calls one."""
    return bottom_up(
        computation,
        _may_depend_on_arguments,
        lambda c: any(
            isinstance(each.op, DynamicUpdateSlice | Scatter)
            or decides(each)
            or any(map(_may_depend_on_arguments, each.called_computations))
            for each in c.instructions
        ),
    )


def _arguments_decide(call: Instruction, calls: int) -> bool:
    inner = call.called_computations[0].instructions
    if any(states_batch(each, calls + 1) for each in inner):
        return True
    arguments = [array for array in map(ArrayRef, call.operands) if is_integral(array)]
    return any(evaluated_in_calls(array, calls) is not None for array in arguments) and any(
        isinstance(each.op, Scatter)
        or _has_known_start(each, calls + 1)
        or _is_masked(each, calls + 1)
        or arguments_decide(each, calls + 1)
        for each in inner
    )


def _has_known_start(instruction: Instruction, calls: int) -> bool:
    """Return True for an update with a start that only the arguments decide."""
    if not isinstance(instruction.op, DynamicUpdateSlice):
        return False
    starts = map(ArrayRef, instruction.operands[2:])
    return any(
        evaluate_array(start) is None and evaluated_in_calls(start, calls) is not None
        for start in starts
    )


def _is_masked(instruction: Instruction, calls: int) -> bool:
    """Return True if arguments are known that decide which operands are read."""
    op, shape = instruction.op, instruction.shape
    if not isinstance(op, MappedOp) or not isinstance(shape, Shape):
        return False
    deciders = [ArrayRef(instruction.operands[r.decider]) for r in op.decided_reads(shape)]
    return any(
        is_integral(each)
        and not _is_predicate_argument(each)
        and evaluate_array(each) is None
        and evaluated_in_calls(each, calls) is not None
        for each in deciders
    )


def _is_predicate_argument(array: ArrayRef) -> bool:
    """Return True for a predicate that is an argument: it is a mask value, whose formula is known.

    A formula of the caller has fewer pieces than its values.
    """
    shape = array.array_shape
    is_argument = array.instruction.opcode == "parameter"
    return is_argument and shape is not None and shape.element_type == "pred"

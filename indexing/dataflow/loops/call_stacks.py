"""The call stack of a computation that the module calls in one place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from hlo.modules.module import Computation, Instruction, Module
from indexing.dataflow.soundness import fault_of
from indexing.ops.control import While
from indexing.ops.structured_ops import InlineOp

Calls: TypeAlias = tuple[Instruction, ...]

MAX_CALLS: Final = 32
"""Limit on the calls and loops through which a computation is reached."""


def only_calls(computation: Computation) -> Calls:
    """Return the calls and loops through which a computation is reached, outermost first.

    The stack starts at the entry computation, or at the first computation that has several callers
    or is called by another op, or after `MAX_CALLS` calls: there, the values of the parameters are
    not known.

    >>> import hlo, indexing.ops
    >>> module = hlo.parse('''
    ... g { p = s32[] parameter(0) ROOT n = s32[] negate(p) }
    ... f { p = s32[] parameter(0) ROOT n = s32[] call(p), to_apply=g }
    ... ENTRY e { p = s32[] parameter(0) ROOT n = s32[] call(p), to_apply=f }''')
    >>> only_calls(module.computations["g"])
    (<call 'n' of 'e'>, <call 'n' of 'f'>)
    """
    callers = _callers(computation.module)
    calls: list[Instruction] = []
    while not computation.is_entry and len(calls) < MAX_CALLS:
        call = callers.get(computation)
        if call is None or not isinstance(call.op, InlineOp | While) or fault_of(call):
            break
        calls.append(call)
        computation = call.computation
    return tuple(reversed(calls))


def _callers(module: Module) -> Mapping[Computation, Instruction | None]:
    """Return the instruction that calls each computation; None for several."""
    return module.memoised(_callers, lambda: _find_callers(module))


def _find_callers(module: Module) -> Mapping[Computation, Instruction | None]:
    callers: dict[Computation, Instruction | None] = {}
    for instruction in module.instructions:
        for called in instruction.called_computations:
            callers[called] = None if called in callers else instruction
    return callers

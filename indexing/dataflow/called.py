"""The computations that instructions call, in the order in which they are summarised."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import TypeAlias

from hlo.modules.module import Computation, Instruction
from hlo.modules.recursion import positions
from indexing.dataflow.needed import needed_by_root
from indexing.ops.base import MappedOp
from indexing.ops.control import While
from indexing.ops.control import callees as called_by
from indexing.ops.structured_ops import StructuredOp

Callee: TypeAlias = tuple[Computation, Instruction | None]
"""A computation, and the loop whose body it is; None for any other call."""


def callees(instructions: Iterable[Instruction]) -> list[Computation]:
    """Return the computations that instructions call, transitively, callees before callers."""
    called = to_summarise(instructions, in_loops=True)
    return list(dict.fromkeys([computation for computation, _ in called]))


def to_summarise(
    instructions: Iterable[Instruction], known: Collection[Callee] = (), *, in_loops: bool
) -> list[Callee]:
    """Return the computations that instructions call, transitively, callees before callers.

    Args:
        known: callees that are left out, with what these call.
        in_loops: also those that loops call, and inside of these.

    >>> import hlo, indexing.ops
    >>> module = hlo.parse('''
    ... more { p = pred[] parameter(0) ROOT r = pred[] copy(p) }
    ... f { p = pred[] parameter(0) ROOT r = pred[] copy(p) }
    ... next { p = pred[] parameter(0) ROOT r = pred[] call(p), to_apply=f }
    ... ENTRY e { p = pred[] parameter(0)
    ...   ROOT w = pred[] while(p), condition=more, body=next }''')
    >>> for computation, loop in to_summarise(module.entry, in_loops=True):
    ...     print(computation.name, loop and loop.name)
    more None
    f None
    next w
    >>> to_summarise(module.entry, in_loops=False)
    []
    """
    pending = list(_callees_of(instructions, in_loops))
    reached: dict[Callee, None] = {}
    while pending:
        callee = pending.pop()
        if callee not in reached and callee not in known:
            reached[callee] = None
            pending.extend(_callees_in(callee[0], in_loops))
    if len(reached) < 2:
        return list(reached)
    position = positions(next(iter(reached))[0].module)
    return sorted(reached, key=lambda callee: position[callee[0].name])


def _callees_in(computation: Computation, in_loops: bool) -> Collection[Callee]:
    def list_called() -> tuple[Callee, ...]:
        return tuple(_callees_of(needed_by_root(computation), in_loops))

    return computation.memoised((_callees_in, in_loops), list_called)


def _callees_of(instructions: Iterable[Instruction], in_loops: bool) -> Iterator[Callee]:
    """Yield the computations that `instructions` call whose ops are registered."""
    for instruction in instructions:
        if not instruction.called_computations:
            continue
        if isinstance(instruction.op, While):
            if in_loops:
                condition, body = called_by(instruction, "condition", "body")
                yield condition, None
                yield body, instruction
        elif isinstance(instruction.op, StructuredOp | MappedOp):
            for computation in instruction.called_computations:
                yield computation, None

"""Execution counts: the bounds of the number of executions of each computation of a program.

Calls add up; the body of a loop multiplies by its trip count, the condition by one more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from hlo.modules.find import CALLING
from hlo.modules.module import Computation, Instruction, Module
from hlo.text.source import HloError
from indexing.dataflow.loops.counted import loop_facts
from indexing.dataflow.soundness import fault_of
from indexing.maps.answers import Unknown
from indexing.ops.control import While, callees


class Executions(NamedTuple):
    """Inclusive bounds of a number of executions; `upper` is None without a bound."""

    lower: int
    upper: int | None

    @property
    def number(self) -> int | None:
        """The number of executions if the program determines it, else None."""
        return self.lower if self.lower == self.upper else None

    @property
    def clause(self) -> str:
        """The executions to which numbers about one execution apply; empty for a single one."""
        if self.upper is None:
            return "in each execution"
        return "" if self.number == 1 else f"in each of {self} executions"

    def __str__(self) -> str:
        if self.number is not None:
            return f"{self.number:,}"
        if self.upper is None:
            return f"at least {self.lower:,}"
        return f"{self.lower:,} to {self.upper:,}"

    def times(self, inner: Executions) -> Executions:
        """Return the executions of what each of these executes `inner` times."""
        if self.upper is None or inner.upper is None:
            return Executions(self.lower * inner.lower, None)
        return Executions(self.lower * inner.lower, self.upper * inner.upper)

    def plus(self, other: Executions) -> Executions:
        """Return the sum of two numbers of executions."""
        if self.upper is None or other.upper is None:
            return Executions(self.lower + other.lower, None)
        return Executions(self.lower + other.lower, self.upper + other.upper)


def executions(module: Module) -> Mapping[Computation, Executions]:
    """Return the executions of ENTRY and of the computations that it calls, by any stack of calls.

    Loops, calls and branches of conditionals are counted, the computations that an instruction
    applies to elements are not.  An invalid loop has any number of iterations.

    >>> import hlo, indexing.ops
    >>> module = hlo.parse('''
    ... less { s = (s32[]) parameter(0)  i = s32[] get-tuple-element(s), index=0
    ...   n = s32[] constant(10)  ROOT r = pred[] compare(i, n), direction=LT }
    ... next { s = (s32[]) parameter(0)  i = s32[] get-tuple-element(s), index=0
    ...   two = s32[] constant(2)  j = s32[] add(i, two)  ROOT t = (s32[]) tuple(j) }
    ... ENTRY e { zero = s32[] constant(0)  a = (s32[]) tuple(zero)
    ...   ROOT w = (s32[]) while(a), condition=less, body=next }''')
    >>> [(computation.name, str(count)) for computation, count in executions(module).items()]
    [('e', '1'), ('next', '5'), ('less', '6')]
    """
    return executions_from(module.entry)


def executions_from(start: Computation) -> Mapping[Computation, Executions]:
    """Return the executions of a computation and of those that one execution of it executes."""
    return start.module.memoised((executions_from, start), lambda: _executions(start))


def executions_by(instruction: Instruction) -> Mapping[Computation, Executions]:
    """Return the executions of the computations that one execution of a loop or call executes."""
    counts: dict[Computation, Executions] = {}
    for called, outer in _calls(instruction):
        for computation, inner in executions_from(called).items():
            before = counts.get(computation, Executions(0, 0))
            counts[computation] = before.plus(outer.times(inner))
    return counts


def _executions(start: Computation) -> Mapping[Computation, Executions]:
    counts = {start: Executions(1, 1)}
    for computation in _callers_first(start):
        own = counts[computation]
        for instruction in computation:
            for called, inner in _calls(instruction):
                before = counts.get(called, Executions(0, 0))
                counts[called] = before.plus(own.times(inner))
    return counts


def _calls(instruction: Instruction) -> Iterator[tuple[Computation, Executions]]:
    """Yield the computations that an instruction executes, and how often."""
    if instruction.opcode not in CALLING:
        return
    if isinstance(instruction.op, While) and not fault_of(instruction):
        times = _iterations(instruction)
        condition, body = callees(instruction, "condition", "body")
        yield body, times
        yield condition, times.plus(Executions(1, 1))
    else:
        is_call = len(instruction.called_computations) == 1
        for called in instruction.called_computations:
            yield called, Executions(int(is_call), 1)


def _iterations(loop: Instruction) -> Executions:
    try:
        count = loop_facts(loop).trip_count
    except HloError:  # of an instruction in the loop
        return Executions(0, None)
    if isinstance(count, Unknown):
        return Executions(0, None)
    return Executions(count.lower, count.upper)


def _callers_first(start: Computation) -> list[Computation]:
    """Return a computation and those that it executes, each after all of its callers."""
    order: list[Computation] = []
    seen: set[Computation] = set()
    waiting = [(start, False)]
    while waiting:
        computation, is_done = waiting.pop()
        if is_done:
            order.append(computation)
        elif computation not in seen:
            seen.add(computation)
            waiting.append((computation, True))
            waiting.extend((called, False) for i in computation for called, _ in _calls(i))
    return order[::-1]

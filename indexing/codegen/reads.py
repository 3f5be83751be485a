"""PendingReads: the elements that each stage reads of each array, hash-consed.

A read of an array whose form is not decided yet is a demand.  `PendingReads` gives the arrays from the
last one of the program to the first, so that all reads of an array exist when it is decided.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator

from indexing.codegen.graph import BufferRead, Index, Runtime
from indexing.codegen.program_arrays import ProgramArray
from indexing.maps.answers import Unknown
from indexing.maps.indexing_map import dims
from simplifier.atoms import Variable
from simplifier.linear import Expr


class NoLoopNest(Exception):
    """Ends the construction of a nest: an instruction has no loop-nest form."""

    def __init__(self, unknown: Unknown) -> None:
        super().__init__(unknown.reason)
        self.unknown = unknown


class PendingReads:
    """For each array, its reads and the stages that they are in; iteration gives the last first."""

    def __init__(self) -> None:
        self.reads: dict[ProgramArray, dict[BufferRead, Scope]] = {}
        self._waiting: list[tuple[int, ProgramArray]] = []

    def add(self, array: ProgramArray, read: BufferRead, scope: Scope) -> None:
        """`scope` needs an element of `array`."""
        if array not in self.reads:
            self.reads[array] = {}
            heapq.heappush(self._waiting, (-array.number, array))
        self.reads[array][read] = scope

    def __iter__(self) -> Iterator[ProgramArray]:
        while self._waiting:
            yield heapq.heappop(self._waiting)[1]


class Scope:
    """The loops of one stage, and the elements that are read in them.

    Attributes:
        array: the array that the stage fills; a stage reads only arrays with smaller numbers.
        dims: the loop over each of its dimensions.
        is_windowed: elements are read again and again.
        runtime: the runtime variables of the stage.
    """

    def __init__(self, pending: PendingReads, array: ProgramArray) -> None:
        self.array, self.dims = array, dims(array.shape)
        self.is_windowed = False
        self.runtime: dict[object, Runtime] = {}
        self._pending = pending
        self._reads: dict[tuple[ProgramArray, Index], BufferRead] = {}

    def read(self, array: ProgramArray, index: Iterable[Expr]) -> BufferRead:
        """The element of an array at an index over the loops."""
        key = array, tuple(index)
        if key not in self._reads:
            self._reads[key] = read = BufferRead(array, key[1], self.mentioned(key[1]))
            self._pending.add(array, read, self)
        return self._reads[key]

    def mentioned(self, exprs: Iterable[Expr]) -> tuple[Runtime, ...]:
        """The runtime variables that expressions depend on."""
        if not self.runtime:
            return ()
        variables = {v for expr in exprs for v in expr.variables()}
        return tuple([rt for rt in self.runtime.values() if rt.variable in variables])

    def variable(self, source: ProgramArray, index: Index, clamp: tuple[int, int]) -> Variable:
        """The runtime variable whose value is the element of `source`, clamped."""
        key = source, index, clamp
        if key not in self.runtime:
            variable = Variable(f"rt{len(self.runtime)}", *clamp)
            self.runtime[key] = Runtime(variable, self.read(source, index), clamp)
        return self.runtime[key].variable

"""Reads of arrays that are not yet staged, hash-consed per stage.

`PendingReads` visits the arrays in reverse program order.  When an array is visited, all of its
reads exist, and staging can decide whether the array gets a buffer.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator

from indexing.codegen.graph import BufferRead, Index, Runtime
from indexing.codegen.program_arrays import ProgramArray
from indexing.maps.indexing_map import dims
from simplifier.atoms import Variable
from simplifier.linear import Expr


class PendingReads:
    """The reads of each array, with the stage of each; iterates in reverse program order."""

    def __init__(self) -> None:
        self.reads: dict[ProgramArray, dict[BufferRead, Scope]] = {}
        self._waiting: list[tuple[int, ProgramArray]] = []

    def add(self, array: ProgramArray, read: BufferRead, scope: Scope) -> None:
        """Record that the stage `scope` reads an element of `array`."""
        if array not in self.reads:
            self.reads[array] = {}
            heapq.heappush(self._waiting, (-array.number, array))
        self.reads[array][read] = scope

    def __iter__(self) -> Iterator[ProgramArray]:
        while self._waiting:
            yield heapq.heappop(self._waiting)[1]


class Scope:
    """The loops of one stage, and the elements that the stage reads.

    Attributes:
        array: the array that the stage fills; the stage reads only arrays with smaller numbers.
        dims: the loop over each dimension of `array`.
        is_windowed: several iterations read the same elements.
        runtime: the runtime variables of the stage.
    """

    def __init__(self, pending: PendingReads, array: ProgramArray) -> None:
        self.array, self.dims = array, dims(array.shape)
        self.is_windowed = False
        self.runtime: dict[object, Runtime] = {}
        self._pending = pending
        self._reads: dict[tuple[ProgramArray, Index], BufferRead] = {}

    def read(self, array: ProgramArray, index: Iterable[Expr]) -> BufferRead:
        """Return the read of `array` at an index over the loops; equal reads are one object."""
        key = array, tuple(index)
        if key not in self._reads:
            self._reads[key] = read = BufferRead(array, key[1], self.runtime_variables_in(key[1]))
            self._pending.add(array, read, self)
        return self._reads[key]

    def runtime_variables_in(self, exprs: Iterable[Expr]) -> tuple[Runtime, ...]:
        """Return the runtime variables that occur in the expressions."""
        if not self.runtime:
            return ()
        variables = {v for expr in exprs for v in expr.variables()}
        return tuple([rt for rt in self.runtime.values() if rt.variable in variables])

    def variable(self, source: ProgramArray, index: Index, clamp: tuple[int, int]) -> Variable:
        """Return the runtime variable whose value is an element of `source`, clamped."""
        key = source, index, clamp
        if key not in self.runtime:
            variable = Variable(f"rt{len(self.runtime)}", *clamp)
            self.runtime[key] = Runtime(variable, self.read(source, index), clamp)
        return self.runtime[key].variable

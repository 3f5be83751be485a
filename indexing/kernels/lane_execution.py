"""Execution of a kernel on NumPy: all threads of all blocks at once, op by op.

An op is executed for all lanes that reach it before the next op is.  Barriers number the intervals
of a block; memory keeps which thread accessed an element in which interval, so that a race is found
whatever the order of threads is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias, TypeVar

import numpy as np

from indexing.kernels.ir import MlirFunction, MlirModule, MlirOp, MlirRegion, MlirValue
from indexing.kernels.lane_memory import (
    Array,
    IterationsDepend,
    LaneMemory,
    Lanes,
    LaneValue,
    NotExecuted,
)
from indexing.kernels.lane_ops import checked_index, scalar_op
from indexing.kernels.op_types import type_fault
from simplifier.atoms import Variable
from simplifier.linear import Expr

MAX_ELEMENTS: Final = 1 << 26
"""Limit on the values of lanes that executions of a kernel compute."""
MAX_OPS: Final = 1 << 16
"""Limit on the ops that they execute."""


@dataclass(slots=True)
class LaneBudget:
    """The work that executions of a kernel may still do."""

    elements: int = MAX_ELEMENTS
    ops: int = MAX_OPS

    def use(self, ops: int, elements: int) -> None:
        """Count ops and values.

        Raises:
            NotExecuted: a limit is exceeded.
        """
        self.ops, self.elements = self.ops - ops, self.elements - elements
        if self.ops < 0 or self.elements < 0:
            raise NotExecuted("budget: the executions of the kernel")


_Result = TypeVar("_Result")
LaneHeld: TypeAlias = LaneValue | LaneMemory


@dataclass(eq=False)
class LaneScope:
    """The values of a region, over those around it.

    Attributes:
        taken: the places of the region's lanes among those around it; None if they are the same.
    """

    outer: LaneScope | None
    taken: Array | None = None
    values: dict[MlirValue, LaneHeld] = field(default_factory=dict)

    def __getitem__(self, name: MlirValue) -> LaneHeld:
        if name not in self.values:
            if self.outer is None:
                raise NotExecuted(f"%{name.name} is not defined")
            held = self.outer[name]
            if isinstance(held, LaneValue) and self.taken is not None:
                held = held.rows(self.taken)
            self.values[name] = held
        return self.values[name]


LaneHandler: TypeAlias = Callable[["LaneExecution", MlirOp, LaneScope], Sequence[LaneHeld]]


class LaneExecution:
    """One execution.

    Attributes:
        module, width: the kernel and the width of its indices.
        grid, threads: the numbers of blocks and of threads in each dimension.
        is_wide: True if iterations of loops that carry only memory are executed at once.
        lanes: the lanes that execute.
        intervals: the number of barriers that each block has passed.
    """

    def __init__(
        self, module: MlirModule, width: int, grid: Sequence[int], threads: Sequence[int],
        handlers: Mapping[str, LaneHandler], is_wide: bool, budget: LaneBudget,
    ) -> None:  # fmt: skip
        self.module, self.width, self.is_wide, self.budget = module, width, is_wide, budget
        self.grid, self.handlers = tuple(grid), handlers
        self.set_threads(threads)
        blocks = math.prod(self.grid)
        self.intervals = np.zeros(blocks, np.int64)
        block, thread = np.divmod(np.arange(blocks * self.block_size), max(self.block_size, 1))
        self.lanes = Lanes(block, thread, np.zeros(len(block), np.int64))
        self.loops = 0

    def set_threads(self, threads: Sequence[int]) -> None:
        """Set the number of threads of a block in each dimension."""
        self.threads, self.block_size = tuple(threads), math.prod(threads)

    @property
    def interval(self) -> Array:
        """The interval between barriers of each lane."""
        return self.intervals[self.lanes.block]

    # ------------------------------------------------------------ regions

    def run(self, function: MlirFunction, arguments: Sequence[LaneHeld]) -> list[LaneHeld]:
        """Execute a function on the current lanes; return its results."""
        if function.body is None:
            raise NotExecuted(f"@{function.name} has no body")
        scope = LaneScope(None, None, dict(zip(function.arguments, arguments, strict=True)))
        return self.region(function.body, scope)

    def region(self, region: MlirRegion, scope: LaneScope) -> list[LaneHeld]:
        """Execute the ops of a region; return the operands of its terminator."""
        if len(region.blocks) != 1:
            raise NotExecuted("a region of several blocks")
        *ops, last = region.block.ops
        for op in ops:
            self.op(op, scope)
        return [scope[v] for v in last.operands]

    def within(
        self, lanes: Lanes, region: MlirRegion, outer: LaneScope, taken: Array | None,
        arguments: dict[MlirValue, LaneHeld],
    ) -> list[LaneHeld]:  # fmt: skip
        """Execute a region on other lanes, at these places among the current ones."""
        scope = LaneScope(outer, taken, arguments)
        return self.on(lanes, lambda: self.region(region, scope))

    def on(self, lanes: Lanes, action: Callable[[], _Result]) -> _Result:
        """Return the result of an action while other lanes execute."""
        before, self.lanes = self.lanes, lanes
        try:
            return action()
        finally:
            self.lanes = before

    def op(self, op: MlirOp, scope: LaneScope) -> None:
        """Execute an op."""
        handler = self.handlers.get(op.name)
        fault = type_fault(self.module, op, any_memory=True)
        if fault:
            raise NotExecuted(f"`{op.name}` in line {op.span.line}: {fault}")
        if handler is not None:
            results = handler(self, op, scope)
        elif not op.is_known or op.regions or len(op.results) != 1:
            raise NotExecuted(f"`{op.name}`")
        else:
            values = [self.value(scope[v]) for v in op.operands]
            results = [scalar_op(op, values, self.width, self.lanes)]
        for name, held in zip(op.results, results, strict=True):
            scope.values[name] = held
        sizes = [held.data.size for held in results if isinstance(held, LaneValue)]
        self.budget.use(1, sum(sizes))

    # ------------------------------------------------------------ values

    def value(self, held: LaneHeld) -> LaneValue:
        """Return a value that is no memory."""
        if isinstance(held, LaneMemory):
            raise NotExecuted("memory where a value is expected")
        return held

    def memory(self, held: LaneHeld) -> LaneMemory:
        """Return the memory that a tensor is."""
        if isinstance(held, LaneValue):
            raise NotExecuted("a value where memory is expected")
        return held

    def known(self, held: LaneHeld, what: str) -> Array:
        """Return a value that must be defined.

        Raises:
            KernelFault: it is not.
        """
        value = self.value(held)
        if value.defined is not None and not value.defined.all():
            missing = np.broadcast_to(~value.mask(), (len(self.lanes), *value.data.shape[1:]))
            lane = int(np.argmax(missing.reshape(len(self.lanes), -1).any(axis=1)))
            raise self.lanes.fault(f"{what} is undefined", lane)
        return value.data

    def indices(self, values: Sequence[MlirValue], scope: LaneScope) -> list[Array]:
        """Return indices, which must be defined."""
        return [self.known(scope[v], "an index") for v in values]

    def spread(self, array: Array) -> Array:
        """Return an array with a row for each lane."""
        return np.broadcast_to(array, (len(self.lanes), *array.shape[1:]))

    # ------------------------------------------------------------ maps

    def expression(self, expr: Expr, point: Mapping[Variable, Array], op: MlirOp) -> Array:
        """Return the value of an expression, which must fit in the width of an index.

        Parts of it are not checked: the text may compute it from other ones.
        """
        value = np.asarray(expr.value(point))
        return checked_index(np.atleast_1d(value), self.width, self.lanes, op)


def execute_twice(
    execution: Callable[[bool], tuple[LaneMemory, ...]],
) -> tuple[LaneMemory, ...]:
    """Return the results with iterations at once, or one after another if they depend."""
    try:
        return execution(True)
    except IterationsDepend:
        return execution(False)

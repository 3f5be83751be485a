"""Execution of the body of a Mosaic kernel at a step of the grid: its loads and stores.

The body is executed once on symbolic program ids.  Loops are entered once, with unknown variables;
an op that is not known loads and may store all memrefs that it gets.  So every load and every store
is recorded, and a store that certainly precedes a load is known as such.

Source: jaxlib ``mosaic/dialect/tpu/tpu_ops.td``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from indexing.kernels.ir import MlirModule, MlirOp, MlirRegion, MlirValue
from indexing.kernels.mosaic.live_ops import live_ops
from indexing.kernels.mosaic.views import LOCAL, Box, MemoryView
from indexing.ops.integer_rules import Cases
from indexing.pallas.index_arithmetic import join_cases
from simplifier.constraints import Constraint
from simplifier.linear import Expr
from simplifier.unknown import Unknown

MAX_OPS: Final = 100_000
"""Limit on the ops of a body that are executed, called functions included."""
MAX_ACCESSES: Final = 4096
"""Limit on the loads and stores of a body."""

Held: TypeAlias = "Cases | MemoryView | Unknown"
Values: TypeAlias = dict[MlirValue, Held]
ReadScalar: TypeAlias = "Callable[[int, tuple[Expr, ...]], Cases | Unknown]"

NO_VALUE: Final = Unknown("it is not an integer of the grid")


@dataclass(frozen=True, slots=True)
class CertainStore:
    """A store that has been executed wherever its conditions hold."""

    box: Box
    conditions: tuple[Constraint, ...]


@dataclass(frozen=True, slots=True)
class BodyAccess:
    """A load or a store of the body.

    Attributes:
        buffer: the number of the argument of the body, or `HIDDEN`.
        box: the part of it, or a larger one.
        is_store: True for a store.
        conditions: conditions on the grid without which it does not happen.
        before: of a load, the stores to the buffer that have been executed before it in the step.
    """

    buffer: int
    box: Box
    is_store: bool
    conditions: tuple[Constraint, ...]
    before: tuple[CertainStore, ...] = ()


@dataclass(frozen=True, slots=True)
class StartedCopy:
    """A DMA to a part of a buffer, with the conditions under which it was started."""

    target: MemoryView
    conditions: tuple[Constraint, ...]
    is_certain: bool


class NotReadError(Exception):
    """The body has an op by which values flow in a way that is not followed."""


@dataclass(slots=True)
class BodyExecution:
    """The execution of a body; `accesses` has its loads and stores in order.

    Attributes:
        handlers: the functions that execute ops, by the name of the op (`body_ops`).
        other: the function that executes all other ops.
        conditions: those under which the current op is executed.
        is_certain: True if it is executed wherever they hold.
        stores: the stores to each buffer that have been executed.
        read_scalar: the value of an element of a buffer, where loads have one.
        copies: the DMAs that were started with each semaphore.
    """

    module: MlirModule
    handlers: Mapping[str, Handler]
    other: Handler
    accesses: list[BodyAccess] = field(default_factory=list)
    stores: dict[int, tuple[CertainStore, ...]] = field(default_factory=dict)
    read_scalar: ReadScalar | None = None
    copies: dict[MlirValue, list[StartedCopy]] = field(default_factory=dict)
    conditions: tuple[Constraint, ...] = ()
    is_certain: bool = True
    _ops: int = 0

    def function(self, name: str, arguments: Sequence[Held]) -> list[Held]:
        """Execute a function; return its results.

        Raises:
            NotReadError: values flow in a way that is not followed.
        """
        function = self.module.functions.get(name)
        if function is None or function.body is None or len(function.arguments) != len(arguments):
            raise NotReadError(f"the body calls @{name}, which the module lacks")
        values: Values = dict(zip(function.arguments, arguments, strict=True))
        return self.region(function.body, values)

    def region(self, region: MlirRegion, values: Values) -> list[Held]:
        """Execute the ops of a region; return the operands of its terminator."""
        if len(region.blocks) != 1:
            raise NotReadError("the body has a region of several blocks")
        for argument in region.block.arguments:
            if argument not in values:
                values[argument] = _argument(argument)
        live = live_ops(region)
        for op in region.block.ops:
            self._ops += 1
            if self._ops > MAX_OPS or len(self.accesses) > MAX_ACCESSES:
                raise NotReadError(f"budget: the body has more than {MAX_OPS} ops")
            if op in live:
                results = self.handlers.get(op.name, self.other)(self, op, values)
                values.update(zip(op.results, results, strict=True))
        last = region.block.ops[-1] if region.block.ops else None
        return [values[v] for v in last.operands] if last is not None else []

    # ------------------------------------------------------------ memory

    def load(self, view: MemoryView) -> None:
        """Record a load."""
        if view.buffer != LOCAL:
            before = self.stores.get(view.buffer, ())
            self.accesses.append(BodyAccess(view.buffer, view.box, False, self.conditions, before))

    def store(self, view: MemoryView, *, is_certain: bool = False) -> None:
        """Record a store; a certain one replaces all elements of the view."""
        if view.buffer == LOCAL:
            return
        self.accesses.append(BodyAccess(view.buffer, view.box, True, self.conditions))
        if is_certain and view.fills and self.is_certain:
            stored = CertainStore(view.box, self.conditions)
            self.stores[view.buffer] = (*self.stores.get(view.buffer, ()), stored)

    # ------------------------------------------------------------ control flow

    def branch(
        self, region: MlirRegion, values: Values, conditions: Sequence[Constraint]
    ) -> list[Held]:
        """Execute a region where conditions hold too."""
        outer = self.conditions
        self.conditions = tuple(dict.fromkeys((*outer, *conditions)))
        results = self.region(region, dict(values))
        self.conditions = outer
        return results

    def perhaps(self, regions: Sequence[MlirRegion], values: Values) -> None:
        """Execute regions that may be executed any number of times; none of their stores is
        certain after them."""
        outer, stores = self.is_certain, dict(self.stores)
        for region in regions:
            self.is_certain = outer
            self.region(region, dict(values))
        self.is_certain, self.stores = outer, stores


def index_of(held: Held) -> Expr | Unknown:
    """Return a value as one expression."""
    if isinstance(held, MemoryView):
        return NO_VALUE
    return held if isinstance(held, Unknown) else join_cases(held)


def _argument(argument: MlirValue) -> Held:
    """The value of an argument that a loop gives."""
    if argument.type.kind == "memref":
        raise NotReadError("a loop of the body carries a memref")
    return NO_VALUE


Handler: TypeAlias = Callable[[BodyExecution, MlirOp, Values], list[Held]]

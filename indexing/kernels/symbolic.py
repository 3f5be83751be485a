"""Symbolic execution of a kernel: what each of its points reads and writes, as formulas.

A point is a thread of a block, and one iteration of each loop around an access.  Tensors are
buffers: an insert changes the buffer, and every tensor that an op returns is one that it got.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from indexing.equivalence.values.laws.algebra import FormulaAlgebra
from indexing.equivalence.values.terms.terms import Formula
from indexing.kernels.accesses import ControlPlace, KernelAccess, KernelBuffer, Promise
from indexing.kernels.accumulation import (
    Accumulated,
    AccumulatedPart,
    combined_symbols,
    combining_opcode,
)
from indexing.kernels.domains import (
    Guards,
    NotHandled,
    magnitude,
    numerators,
    partial_sums,
    terms_of,
)
from indexing.kernels.ir import MlirFunction, MlirModule, MlirOp, MlirRegion, MlirType, MlirValue
from indexing.kernels.map_domains import MapDomains
from indexing.kernels.op_types import type_fault
from indexing.kernels.scalars import Scalars, type_name
from indexing.kernels.tile_values import Element, Tile
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.linear import Expr, as_expr

MAX_OPS: Final = 20_000
"""Limit on the ops that are executed."""


Held: TypeAlias = Expr | Formula | Accumulated | KernelBuffer | Tile
ReadShared: TypeAlias = Callable[["Execution", KernelBuffer, tuple[Expr, ...]], Formula]
ReadArgument: TypeAlias = Callable[[KernelBuffer, tuple[Expr, ...]], Formula]


@dataclass(slots=True)
class Execution:
    """An execution of a kernel's entry over symbolic points.

    Attributes:
        launched_threads, launched_blocks: the sizes of the launch, if they are known.
        threads, blocks: the variables of the thread and the block, by dimension.
        accesses: reads and writes, in order.
        promises: conditions that are to be proved.
        premises: conditions on which the execution relies, in words.
        exchanges: the number of barriers and shuffles so far.
        loop_results: the results of the map of each `xla.loop`.
        carrying, exchanging: the variables of loops that carry values, and that shuffle values.
    """

    module: MlirModule
    algebra: FormulaAlgebra
    read_argument: ReadArgument
    read_shared: ReadShared
    width: int
    handlers: Mapping[str, Any]
    merge: Callable[..., Held]
    of_index: Callable[..., Held | None]
    launched_threads: tuple[int, ...] = ()
    launched_blocks: tuple[int, ...] = ()
    scalars: Scalars = field(init=False)
    domains: MapDomains = field(init=False)
    threads: dict[str, Variable] = field(default_factory=dict)
    blocks: dict[str, Variable] = field(default_factory=dict)
    accesses: list[KernelAccess] = field(default_factory=list)
    promises: list[Promise] = field(default_factory=list)
    premises: dict[str, None] = field(default_factory=dict)
    place: ControlPlace = field(default_factory=ControlPlace)
    interval: int = 0
    exchanges: int = 0
    _ops: int = 0
    _loops: int = 0
    _tiles: int = 0
    _conditions: dict[Formula, Guards] = field(default_factory=dict)
    carried: set[Formula] = field(default_factory=set)
    loop_results: list[tuple[Expr, ...]] = field(default_factory=list)
    carrying: set[Variable] = field(default_factory=set)
    exchanging: set[Variable] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.scalars = Scalars(self.algebra)
        self.domains = MapDomains(self.module, self.width)
        self._conditions[self.scalars.true] = ()

    # ------------------------------------------------------------ functions

    def run(self, function: MlirFunction, arguments: Sequence[Held]) -> list[Held]:
        """Execute a function; return its results."""
        values: dict[MlirValue, Held] = dict(zip(function.arguments, arguments, strict=True))
        given = zip(function.arguments, function.argument_attributes, arguments, strict=True)
        for _, attributes, value in given:
            if "xla.range" in attributes and isinstance(value, Expr) and function.ops:
                low, high = attributes["xla.range"]
                condition = Constraint(value, low, high)
                self.promise(condition, function.ops[0], f"`xla.range` of @{function.name}")
        if function.body is None or len(function.body.blocks) != 1:
            raise NotHandled(f"@{function.name} has several blocks")
        return self.block(function.body, values)

    def block(self, region: MlirRegion, values: dict[MlirValue, Held]) -> list[Held]:
        """Execute the ops of a region; return the operands of its terminator."""
        if len(region.blocks) != 1:
            raise NotHandled("a region of several blocks")
        *ops, last = region.block.ops
        for op in ops:
            self.execute(op, values)
        if last.name not in _TERMINATORS:
            raise NotHandled(f"`{last.name}` at the end of a region")
        return [values[v] for v in last.operands]

    def promise(self, condition: Constraint, op: MlirOp, what: str) -> None:
        """Add a condition that is to be proved, unless interval bounds prove it."""
        if not condition.is_true:
            place = self.place
            self.promises.append(Promise(
                condition, place.guards, op, what, place.is_certain, self.exchanges,
                place.variables, len(self.accesses),
            ))  # fmt: skip

    @contextmanager
    def restricted(
        self, guards: Guards | None, variables: Sequence[Variable] = ()
    ) -> Iterator[None]:
        """Execute what follows at the points of guards; None for conditions on values."""
        outer = self.place
        self.place = ControlPlace(
            tuple(dict.fromkeys((*outer.guards, *(guards or ())))),
            (*outer.variables, *variables),
            outer.is_certain and guards is not None,
        )
        try:
            yield
        finally:
            self.place = outer

    def execute(self, op: MlirOp, values: dict[MlirValue, Held]) -> None:
        """Execute an op, and add its results to the values."""
        self._ops += 1
        if self._ops > MAX_OPS:
            raise NotHandled(f"budget: more than {MAX_OPS} ops are executed")
        fault = type_fault(self.module, op)
        if fault:
            raise NotHandled(f"`{op.name}` in line {op.span.line}: {fault}")
        handler = self.handlers.get(op.name)
        results: Sequence[Held]
        if handler is not None:
            results = handler(self, op, values)
        elif op.results and op.results[0].type.kind in ("tensor", "vector"):
            results = self.handlers["elementwise"](self, op, values)
        elif not op.is_known or op.regions or len(op.results) != 1:
            raise NotHandled(f"`{op.name}` has no rule")
        elif op.results and op.result.type.element == "index" and not op.result.type.is_shaped:
            results = self.handlers["index"](self, op, values)
        else:
            results = [self.scalar_op(op, [values[v] for v in op.operands])]
        for result, value in zip(op.results, results, strict=True):
            if isinstance(value, Expr):
                self.check_width(terms_of(value), op)
            values[result] = value

    def point(self, of: Literal["th", "bl"], dimension: str, count: int) -> Expr:
        """Return the position of the thread or the block in a dimension, which is launched so.

        Raises:
            NotHandled: there is no point, so that nothing is written; or the text states another
                number of points elsewhere.
        """
        if count < 1:
            raise NotHandled(f"a launch of {count} {'threads' if of == 'th' else 'blocks'}")
        table = self.threads if of == "th" else self.blocks
        variable = Variable(f"{of}_{dimension}", 0, count - 1)
        if table.setdefault(dimension, variable) is not variable:
            raise NotHandled(f"several ranges of {of}_{dimension}")
        return variable.as_expr() if count > 1 else as_expr(0)

    def check_width(self, terms: Sequence[Expr], op: MlirOp) -> None:
        """Promise that a sum, its partial sums and what is divided in it fit in an index."""
        limit = 1 << self.width - 1
        if sum(map(magnitude, terms)) < limit:
            return
        value = sum(terms, start=as_expr(0))
        inner = [n for term in terms for n in numerators(term)]
        for part in (value, *partial_sums(terms, self.place.guards), *inner):
            condition = Constraint(part, -limit, limit - 1)
            self.promise(condition, op, f"an index of {self.width} bits")

    # ------------------------------------------------------------ scalars

    def formula(self, held: Held) -> Formula:
        """Return a value as a formula."""
        if isinstance(held, Accumulated):
            if held.init in self.carried:
                raise NotHandled("a value that a loop carries is used within the loop")
            return held.formula(self.algebra)
        if isinstance(held, Formula):
            return held
        raise NotHandled("a tensor or an index where a value is expected")

    def scalar_op(self, op: MlirOp, operands: Sequence[Held]) -> Held:
        """Return the value of a scalar op, or of an element of an op on tiles."""
        if op.operands and op.operands[0].type.element == "index":
            value = self.of_index(self, op, operands)
            if value is not None:
                return value
        if op.name == "arith.constant":
            return self.scalars.constant(op)
        combined = self.combine(op, operands)
        if combined is not None:
            return combined
        if op.name == "arith.select":
            return self.merge(self, self.formula(operands[0]), *operands[1:])
        terms = [self.formula(held) for held in operands]
        if any(t in self.carried for t in terms):
            raise NotHandled(f"a loop carries a value through `{op.name}`")
        return self._function(op, terms)

    def _function(self, op: MlirOp, terms: Sequence[Formula]) -> Formula:
        if op.name == "arith.andi" and all(t in self._conditions for t in terms):
            both = dict.fromkeys([c for t in terms for c in self._conditions[t]])
            return self.condition(tuple(both))
        for term in terms:
            self.conditions_of(term)
        return self.scalars.function(op, terms)

    def is_carried(self, held: Held) -> bool:
        """Return True for a value that a loop which is executed carries."""
        return (held.init if isinstance(held, Accumulated) else held) in self.carried

    def combine(self, op: MlirOp, operands: Sequence[Held]) -> Held | None:
        """Return what a loop accumulates, if an op combines a carried value with another one."""
        first = self._accumulating(operands)
        others = [x for x in operands if x is not first]
        if first is None or len(operands) != 2 or len(others) != 1:
            return None
        opcode = self._combiner(op)
        if opcode is None:
            return None
        if isinstance(first, Accumulated) and first.opcode != opcode and not self.is_carried(first):
            return None
        return Accumulated.start(first, opcode).with_part(AccumulatedPart(self.formula(others[0])))

    def _accumulating(self, operands: Sequence[Held]) -> Accumulated | Formula | None:
        """Return the only operand that a loop carries, or else that a loop accumulated."""
        carried = [x for x in operands if self.is_carried(x)]
        sums = carried or [x for x in operands if isinstance(x, Accumulated)]
        return sums[0] if len(sums) == 1 and isinstance(sums[0], Element) else None

    def _combiner(self, op: MlirOp) -> str | None:
        """Return the opcode by which an op combines two values in any order; None for others."""
        try:
            x, y = combined_symbols(self.algebra, type_name(op.result.type))
            return combining_opcode(self.scalars.function(op, [x, y]), (x, y))
        except NotHandled:
            return None

    def condition(self, guards: Guards) -> Formula:
        """Return the predicate that all conditions hold."""
        scalars, guards = self.scalars, self.domains.within(guards, self.place.guards)
        guards = tuple([c for c in guards if not c.is_true])
        if any(c.is_false for c in guards):
            return scalars.false
        term = self.algebra.where(guards, scalars.true, scalars.false)
        if term is not scalars.false:
            self._conditions.setdefault(term, guards)
        return term

    # ------------------------------------------------------------ memory

    def read(self, op: MlirOp, buffer: Held, index: tuple[Expr, ...]) -> Formula:
        """Return an element of a buffer, and record the read; of a tile, its value."""
        if isinstance(buffer, Tile):
            return self.formula(buffer.at(index))
        if not isinstance(buffer, KernelBuffer):
            raise NotHandled("an element of a tensor that is not a buffer")
        index = self._in_bounds(op, buffer, index, "read")
        self._record(op, buffer, index, None)
        if buffer.is_shared:
            return self.read_shared(self, buffer, index)
        return self.read_argument(buffer, index)

    def write(
        self, op: MlirOp, buffer: Held, index: tuple[Expr, ...], value: Held,
        current: Formula | None = None,
    ) -> None:  # fmt: skip
        """Record the write of an element; of a function of its `current` value, if one is given."""
        if not isinstance(buffer, KernelBuffer):
            raise NotHandled("an element of a tensor that is not a buffer")
        index = self._in_bounds(op, buffer, index, "written")
        term = self.formula(value)
        if term in self.carried:
            raise NotHandled("a value that a loop carries is stored within the loop")
        self._record(op, buffer, index, term, current)

    def _in_bounds(
        self, op: MlirOp, buffer: KernelBuffer, index: tuple[Expr, ...], what: str
    ) -> tuple[Expr, ...]:
        if len(index) != buffer.type.rank:
            raise NotHandled(f"{len(index)} indices of a tensor of rank {buffer.type.rank}")
        inside: list[Expr] = []
        for expr, size in zip(index, buffer.type.dims, strict=True):
            self.promise(Constraint(expr, 0, size - 1), op, f"element {what} in bounds")
            inside.append(expr if size > 1 else as_expr(0))
        return tuple(inside)

    def _record(
        self, op: MlirOp, buffer: KernelBuffer, index: tuple[Expr, ...], value: Formula | None,
        current: Formula | None = None,
    ) -> None:  # fmt: skip
        place = self.place
        self.accesses.append(KernelAccess(
            buffer, index, place.variables, place.guards, op, value, len(self.accesses),
            self.interval, place.is_certain, current,
        ))  # fmt: skip

    def indices(self, values: Mapping[MlirValue, Held], group: Sequence[MlirValue]) -> tuple[
        Expr, ...
    ]:  # fmt: skip
        """Return the indices of a group of operands."""
        operands = [values[v] for v in group]
        exprs = [held for held in operands if isinstance(held, Expr)]
        if len(exprs) != len(operands):
            raise NotHandled("an index that is not an expression")
        return tuple(exprs)

    def conditions_of(self, term: Held) -> Guards | None:
        """Return the conditions on the point that a predicate is, if it is one.

        Raises:
            NotHandled: one of them is on an index that is computed outside of a map's domain.
        """
        guards = self._conditions.get(term) if isinstance(term, Formula) else None
        self.domains.require(guards or ())
        return guards

    def new_variable(self, size: int) -> Variable:
        """Return a new variable of a loop."""
        self._loops += 1
        return Variable(f"i{self._loops - 1}", 0, size - 1)

    def record_tile(
        self, op: MlirOp, buffer: KernelBuffer, index: tuple[Expr, ...],
        variables: Sequence[Variable], guards: Guards, value: Formula | None,
    ) -> None:  # fmt: skip
        """Record the access of a tile: one element for each value of the variables."""
        with self.restricted(guards, [v for v in variables if v.upper]):
            self._record(op, buffer, index, value)

    def new_tile(self, held: MlirType) -> KernelBuffer:
        """Return a new tile in shared memory."""
        self._tiles += 1
        return KernelBuffer(-self._tiles, held, ("tile", self._tiles))


_TERMINATORS: Final = frozenset(["return", "func.return", "scf.yield", "xla.yield", "xtile.return"])

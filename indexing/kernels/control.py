"""Ops of control flow and of memory, executed on symbolic points."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from indexing.equivalence.values.terms.terms import Formula
from indexing.kernels.accesses import KernelBuffer
from indexing.kernels.accumulation import Accumulated, AccumulatedPart
from indexing.kernels.domains import Guards, NotHandled, implies
from indexing.kernels.guarded_ops import recognise
from indexing.kernels.index_ops import index_op, substitute_map
from indexing.kernels.ir import MlirOp, MlirRegion, MlirValue
from indexing.kernels.scalars import type_name
from indexing.kernels.symbolic import Execution, Held
from indexing.kernels.tile_values import Element, Tile
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.linear import Expr, as_expr

Values: TypeAlias = dict[MlirValue, Held]
Handler: TypeAlias = Callable[[Execution, MlirOp, Values], Sequence[Held]]


# ---------------------------------------------------------------- points


def _identity_of_point(execution: Execution, op: MlirOp, values: Values) -> Sequence[Held]:
    """Return the position of the thread or the block, whose range is a fact of the launch."""
    of_thread = op.name == "gpu.thread_id"
    dimension = op.attributes["dimension"]
    if "xla.range" not in op.attributes:
        raise NotHandled(f"`{op.name}` without `xla.range`")
    low, high = op.attributes["xla.range"]
    sizes = execution.launched_threads if of_thread else execution.launched_blocks
    place = "xyz".index(dimension)
    if place < len(sizes):
        stated, high = high, sizes[place] - 1
        launched = Constraint(as_expr(high), low, stated)
        execution.promise(launched, op, f"{LAUNCH} of {high + 1} in {dimension}")
    if low:
        raise NotHandled(f"a range of `{op.name} {dimension}` that does not begin at 0")
    return [execution.point("th" if of_thread else "bl", dimension, high + 1)]


def _forall(execution: Execution, op: MlirOp, values: Values) -> Sequence[Held]:
    """Execute the body for each thread of the block."""
    if execution.place.guards or execution.place.variables or execution.threads:
        raise NotHandled("`scf.forall` within control flow")
    block, inner = op.regions[0].block, dict(values)
    for dimension, size, value in zip(
        "xyz", op.attributes["sizes"], block.groups["induction"], strict=False
    ):
        if not isinstance(size, int):
            raise NotHandled("`scf.forall` of a size that is not constant")
        inner[value] = execution.point("th", dimension, size)
    inits = [values[v] for v in op.group("inits")]
    inner.update(zip(block.groups["carried"], inits, strict=True))
    *ops, last = block.ops
    if last.name != "scf.forall.in_parallel":
        raise NotHandled(f"`{last.name}` at the end of `scf.forall`")
    for each in ops:
        execution.execute(each, inner)
    for insertion in last.regions[0].block.ops:
        _expect_whole(insertion, inner)
    return inits


def _expect_whole(op: MlirOp, values: Values) -> None:
    """Check that an insertion of a slice is that of a whole buffer into itself."""
    if op.name != "tensor.parallel_insert_slice":
        raise NotHandled(f"`{op.name}` at the end of `scf.forall`")
    value, target = values[op.operand("value")], values[op.operand("target")]
    dims = op.operand("target").type.dims
    whole = (0,) * len(dims), tuple(dims), (1,) * len(dims)
    given = tuple(op.attributes[name] for name in ("offsets", "sizes", "strides"))
    if value is not target or given != whole:
        raise NotHandled("an insertion of a slice that moves elements")


# ---------------------------------------------------------------- loops


def _xla_loop(execution: Execution, op: MlirOp, values: Values) -> Sequence[Held]:
    block, indexing_map = op.regions[0].block, op.attributes["map"]
    if any(v.lower > v.upper for v in (*indexing_map.dims, *indexing_map.ranges)):
        raise NotHandled("a loop over no points")
    variables = [
        Variable(execution.new_variable(1).name, v.lower, v.upper) for v in indexing_map.ranges
    ]
    points = [v.as_expr() if v.lower < v.upper else as_expr(v.lower) for v in variables]
    dims = execution.indices(values, op.group("dims"))
    results, conditions = substitute_map(execution, op, dims, points)
    execution.loop_results.append(tuple(results))
    inner = dict(values)
    inner.update(zip(block.groups["symbols"], points, strict=True))
    inner.update(zip(block.groups["results"], results, strict=True))
    own = [v for v in variables if v.lower < v.upper]
    return _iterate(execution, op, inner, own, tuple(conditions))


def _for(execution: Execution, op: MlirOp, values: Values) -> Sequence[Held]:
    block = op.regions[0].block
    bounds = [values[op.operand(role)] for role in ("lower", "upper", "step")]
    known = [bound for bound in bounds if isinstance(bound, Expr) and bound.is_constant]
    if len(known) < len(bounds):
        raise NotHandled("`scf.for` with bounds that are not constant")
    lower, upper, step = known
    if step.constant <= 0:
        raise NotHandled("`scf.for` with a step that is not positive")
    count = len(range(lower.constant, upper.constant, step.constant))
    if not count:
        return [values[v] for v in op.group("inits")]
    variable = execution.new_variable(count)
    point = lower + variable.as_expr() * step.constant if count > 1 else lower
    inner = dict(values)
    inner[block.groups["induction"][0]] = point
    return _iterate(execution, op, inner, [variable] if count > 1 else [], ())


def _iterate(
    execution: Execution, op: MlirOp, inner: Values, variables: Sequence[Variable], guards: Guards
) -> Sequence[Held]:
    """Execute the body of a loop at one symbolic iteration; return the values after the loop."""
    inits = [inner[v] for v in op.group("inits")]
    starts = [_carried_symbol(execution, init) for init in inits]
    inner.update(zip(op.regions[0].block.groups["carried"], starts, strict=True))
    if any(not isinstance(start, KernelBuffer) for start in starts):
        execution.carrying.update(variables)
    barriers = execution.interval
    with execution.restricted(guards, variables):
        results = execution.block(op.regions[0], inner)
    if execution.interval != barriers:
        raise NotHandled("a barrier in a loop")
    after = zip(results, starts, inits, strict=True)
    return [_after_loop(execution, *each, variables, guards) for each in after]


def _carried_symbol(execution: Execution, init: Held) -> Held:
    """Return what stands for a carried value at the start of an iteration."""
    if isinstance(init, KernelBuffer):
        return init
    if isinstance(init, Expr):
        raise NotHandled("a loop that carries an index")
    table = execution.algebra.table
    if isinstance(init, Tile):
        return _carried_tile(execution, init)
    kind = init.type if isinstance(init, Formula) else init.init.type
    symbol = table.array("symbol", ("carried", len(execution.carried), ()), kind, ())
    term = table.read(symbol, ())
    execution.carried.add(term)
    return term


def _carried_tile(execution: Execution, init: Tile) -> Tile:
    """Return a tile of carried values; each element is a symbol of its own."""
    table, kind = execution.algebra.table, type_name(init.type)
    head = "carried tile", len(execution.carried), ()
    symbol = table.array("symbol", head, kind, init.dims)
    execution.carried.add(table.read(symbol, [as_expr(0)] * len(init.dims)))

    def at(index: tuple[Expr, ...]) -> Formula:
        term = table.read(symbol, index)
        execution.carried.add(term)
        return term

    return Tile(init.type, at)


def _tile_after_loop(
    execution: Execution,
    result: Tile,
    start: Tile,
    init: Tile,
    variables: Sequence[Variable],
    guards: Guards,
) -> Tile:
    def at(index: tuple[Expr, ...]) -> Element:
        elements = result.at(index), start.at(index), init.at(index)
        value = _after_loop(execution, *elements, variables, guards)
        assert isinstance(value, Element)
        return value

    return Tile(init.type, at)


def _after_loop(
    execution: Execution,
    result: Held,
    start: Held,
    init: Held,
    variables: Sequence[Variable],
    guards: Guards,
) -> Held:
    if result is start:
        return init
    if isinstance(result, Tile) and isinstance(start, Tile) and isinstance(init, Tile):
        return _tile_after_loop(execution, result, start, init, variables, guards)
    if not isinstance(result, Accumulated) or result.init is not start:
        raise NotHandled("a loop that carries a value other than by a combiner")
    assert isinstance(init, Element)
    parts = [part.over(variables, guards) for part in result.parts]
    init = _of_bytes(execution, init, result.opcode, parts)
    return Accumulated.start(init, result.opcode).with_part(*parts)


def _of_bytes(
    execution: Execution, init: Element, opcode: str, parts: Sequence[AccumulatedPart]
) -> Element:
    """Return the initial value as a predicate, if bytes of predicates are combined with it."""
    is_bitwise = opcode in ("and", "or") and all(part.value.type == "pred" for part in parts)
    if isinstance(init, Formula) and is_bitwise and init.type != "pred":
        return execution.scalars.of_type(init, "pred")
    return init


# ---------------------------------------------------------------- branches


def _if(execution: Execution, op: MlirOp, values: Values) -> Sequence[Held]:
    condition = execution.formula(values[op.operand("condition")])
    if condition.type != "pred":
        raise NotHandled(f"a branch by {condition.type}")
    guards = execution.conditions_of(condition)
    if condition is execution.scalars.false:
        return _branch(execution, op.regions[1], values, ()) if op.regions[1:] else ()
    taken = _branch(execution, op.regions[0], values, guards)
    if len(op.regions) < 2:
        return taken
    other = _branch(execution, op.regions[1], values, _complement(guards))
    pairs = zip(taken, other, strict=True)
    return [merge(execution, condition, one, two) for one, two in pairs]


def _branch(
    execution: Execution, region: MlirRegion, values: Values, guards: Guards | None
) -> Sequence[Held]:
    barriers = execution.interval
    with execution.restricted(guards):
        results = execution.block(region, dict(values))
    if execution.interval != barriers:
        raise NotHandled("a barrier in a branch")
    return results


def _complement(guards: Guards | None) -> Guards | None:
    """Return the conditions of the other branch, if they are a conjunction."""
    if guards is None or len(guards) != 1:
        return None
    (guard,) = guards
    low, high = guard.expr.bounds
    if guard.lower <= low:
        return (Constraint(guard.expr, guard.upper + 1, high),)
    if guard.upper >= high:
        return (Constraint(guard.expr, low, guard.lower - 1),)
    return None


def merge(execution: Execution, condition: Formula, one: Held, other: Held) -> Held:
    """Return the value after a branch: `one` if the condition holds, else `other`."""
    if one is other or (isinstance(one, Expr) and one == other):
        return one
    if isinstance(one, Tile) and isinstance(other, Tile) and one.dims == other.dims:
        return _merged_tile(execution, condition, one, other)
    guards = execution.conditions_of(condition)
    if isinstance(one, KernelBuffer | Expr | Tile) or isinstance(other, KernelBuffer | Expr | Tile):
        raise NotHandled("a branch between buffers or indices")
    if execution.is_carried(one) or execution.is_carried(other):
        for base, more, over in ((other, one, guards), (one, other, _complement(guards))):
            grown = _grow_value(base, more, over)
            if grown is not None:
                return grown
        raise NotHandled("a branch between carried values")
    first, second = execution.formula(one), execution.formula(other)
    first, second = execution.scalars.alike([first, second])
    if guards is not None:
        return execution.algebra.where(guards, first, second)
    selected = execution.algebra.apply("select", (), first.type, [condition, first, second])
    return recognise(execution.algebra, selected)


def _merged_tile(execution: Execution, condition: Formula, one: Tile, other: Tile) -> Tile:
    def at(index: tuple[Expr, ...]) -> Element:
        element = merge(execution, condition, one.at(index), other.at(index))
        assert isinstance(element, Element)
        return element

    return Tile(one.type, at)


def _grow_value(base: Held, more: Held, guards: Guards | None) -> Accumulated | None:
    """Return a value that is `more` under guards, else `base`, which `more` continues."""
    if not isinstance(more, Accumulated) or guards is None:
        return None
    known = base.parts if isinstance(base, Accumulated) else ()
    first = base.init if isinstance(base, Accumulated) else base
    if more.init is not first or more.parts[: len(known)] != known:
        return None
    added = [part.over((), guards) for part in more.parts[len(known) :]]
    return Accumulated(more.opcode, more.init, (*known, *added))


# ---------------------------------------------------------------- calls


def _call(execution: Execution, op: MlirOp, values: Values) -> Sequence[Held]:
    name = op.attributes["callee"]
    function = execution.module.functions.get(name)
    if function is None:
        raise NotHandled(f"a call of @{name}, which the module does not define")
    return execution.run(function, [values[v] for v in op.group("arguments")])


def _apply_indexing(execution: Execution, op: MlirOp, values: Values) -> Sequence[Held]:
    dims = execution.indices(values, op.group("dims"))
    symbols = execution.indices(values, op.group("symbols"))
    results, conditions = substitute_map(execution, op, dims, symbols)
    if conditions and execution.domains.only_compared(op):
        guards = execution.place.guards
        unproved = tuple([c for c in conditions if not implies(guards, c)])
        if unproved:
            return [execution.domains.outside(expr, unproved, op) for expr in results]
        return results
    for condition in conditions:
        execution.promise(condition, op, "the domain of `xla.apply_indexing`")
    return results


LAUNCH: Final = "`xla.range` at a launch"

HANDLERS: Final[dict[str, Handler]] = {
    "index": index_op,
    "gpu.thread_id": _identity_of_point,
    "gpu.block_id": _identity_of_point,
    "xla.workgroup_id": _identity_of_point,
    "scf.forall": _forall,
    "xla.loop": _xla_loop,
    "scf.for": _for,
    "scf.if": _if,
    "xla.pure_call": _call,
    "func.call": _call,
    "xla.apply_indexing": _apply_indexing,
}

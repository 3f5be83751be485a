"""Control flow of kernels that are executed on NumPy: points, loops, branches and calls."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from hlo.shapes.element_type import dtype
from indexing.kernels.ir import MlirOp, MlirValue
from indexing.kernels.lane_execution import (
    LaneExecution,
    LaneHandler,
    LaneHeld,
    LaneScope,
)
from indexing.kernels.lane_memory import Array, LaneMemory, Lanes, LaneValue, NotExecuted
from indexing.kernels.lane_ops import checked_index, element_type
from simplifier.atoms import Variable

# ---------------------------------------------------------------- points and loops


def _point(self: LaneExecution, op: MlirOp, scope: LaneScope) -> Sequence[LaneHeld]:
    of_thread = op.name == "gpu.thread_id"
    sizes, number = (self.threads, self.lanes.thread) if of_thread else (
        self.grid, self.lanes.block)  # fmt: skip
    at = "xyz".index(op.attributes["dimension"])
    sizes = (*sizes, 1, 1, 1)[:3]
    position = number // math.prod(sizes[:at]) % sizes[at]
    low, high = op.attributes.get("xla.range", (0, sizes[at] - 1))
    outside = (position < low) | (position > high)
    if outside.any():
        what = f"a launch of {sizes[at]} in {op.attributes['dimension']} leaves the `xla.range`"
        raise self.lanes.fault(f"{what} of `{op.name}`, line {op.span.line}",
                               int(np.argmax(outside)))  # fmt: skip
    return [LaneValue(position)]


def _forall(self: LaneExecution, op: MlirOp, scope: LaneScope) -> Sequence[LaneHeld]:
    sizes = [size for size in op.attributes["sizes"] if isinstance(size, int)]
    if len(sizes) < len(op.attributes["sizes"]) or self.block_size != 1:
        raise NotExecuted("`scf.forall` of other sizes than the threads of a block")
    self.set_threads(sizes)
    taken, thread = np.divmod(np.arange(len(self.lanes) * self.block_size), self.block_size)
    groups, rest = op.regions[0].block.groups, thread
    given: dict[MlirValue, LaneHeld] = {}
    for name, size in zip(groups["induction"], sizes, strict=True):
        given[name], rest = LaneValue(rest % size), rest // size
    inits = [scope[v] for v in op.group("inits")]
    given |= dict(zip(groups["carried"], inits, strict=True))
    lanes = Lanes(self.lanes.block[taken], thread, np.zeros(len(thread), np.int64))
    self.within(lanes, op.regions[0], scope, taken, given)
    return inits


def _in_parallel(self: LaneExecution, op: MlirOp, scope: LaneScope) -> Sequence[LaneHeld]:
    for each in op.regions[0].block.ops:
        value, target = scope[each.operand("value")], scope[each.operand("target")]
        if each.name != "tensor.parallel_insert_slice" or value is not target:
            raise NotExecuted("an insertion of a slice that moves elements")
    return []


def _carry_lanes(old: LaneHeld, taken: Array, new: LaneHeld, count: int) -> LaneHeld:
    """Return a carried value after some lanes have a new one; memory stays the same."""
    if isinstance(old, LaneValue) and isinstance(new, LaneValue):
        return old.updated(taken, new, count)
    if old is not new:
        raise NotExecuted("another buffer than the one that is carried")
    return old


def _xla_loop(self: LaneExecution, op: MlirOp, scope: LaneScope) -> Sequence[LaneHeld]:
    stated, written = op.attributes["map"], op.attributes["written_map"]
    given = dict(zip(written.dims, self.indices(op.group("dims"), scope), strict=True))
    sizes = [max(v.upper - v.lower + 1, 0) for v in stated.ranges]
    total, count = math.prod(sizes), len(self.lanes)
    carried = [scope[v] for v in op.group("inits")]
    wide = self.is_wide and not self.lanes.loop and not _exchanges(op) and all(
        isinstance(held, LaneMemory) for held in carried)  # fmt: skip
    self.budget.use(1 if wide else total, total * count)
    for step in [np.arange(total)] if wide else np.arange(total)[:, None]:
        number, lane = (a.ravel() for a in np.meshgrid(step, np.arange(count), indexing="ij"))
        point = {v: self.spread(array)[lane] for v, array in given.items()}
        point |= _iteration(op, number)
        (kept,) = np.nonzero(_inside(self, op, point, self.lanes.some(lane)))
        if not len(kept):
            continue
        lane, point = lane[kept], {v: array[kept] for v, array in point.items()}
        lanes = self.lanes.some(lane)
        if wide:
            self.loops += 1
            lanes = Lanes(lanes.block, lanes.thread, number[kept], self.loops)
        carried = _iterate(self, op, scope, lanes, lane, point, carried)
    return carried


def _iteration(op: MlirOp, number: Array) -> dict[Variable, Array]:
    """Return the values of the variables of a loop at the iterations of these numbers."""
    stated, written = op.attributes["map"], op.attributes["written_map"]
    values: dict[Variable, Array] = {}
    for own, v in zip(reversed(written.ranges), reversed(stated.ranges), strict=True):
        size = v.upper - v.lower + 1
        values[own], number = number % size + v.lower, number // size
    return values


def _iterate(
    self: LaneExecution, op: MlirOp, scope: LaneScope, lanes: Lanes, lane: Array,
    point: Mapping[Variable, Array], carried: Sequence[LaneHeld],
) -> list[LaneHeld]:  # fmt: skip
    """Execute the body of a loop on lanes at one or several iterations."""
    written, groups = op.attributes["written_map"], op.regions[0].block.groups
    results = self.on(lanes, lambda: [self.expression(e, point, op) for e in written.results])
    inner: dict[MlirValue, LaneHeld] = {}
    for name, v in zip(groups["symbols"], written.ranges, strict=True):
        inner[name] = LaneValue(point[v])
    for name, array in zip(groups["results"], results, strict=True):
        inner[name] = LaneValue(array)
    for name, held in zip(groups["carried"], carried, strict=True):
        inner[name] = held.rows(lane) if isinstance(held, LaneValue) else held
    new = self.within(lanes, op.regions[0], scope, lane, inner)
    pairs = zip(carried, new, strict=True)
    return [_carry_lanes(old, lane, one, len(self.lanes)) for old, one in pairs]


def _inside(
    self: LaneExecution, op: MlirOp, point: Mapping[Variable, Array], lanes: Lanes
) -> Array:
    """Return which lanes are in the domain of the map of a loop."""
    stated, written = op.attributes["map"], op.attributes["written_map"]
    inside = np.ones(len(lanes), bool)
    for v, own in zip(stated.dims, written.dims, strict=True):
        inside &= (point[own] >= v.lower) & (point[own] <= v.upper)
    exprs = [c.expr for c in written.constraints]
    values = self.on(lanes, lambda: [self.expression(expr, point, op) for expr in exprs])
    for c, value in zip(written.constraints, values, strict=True):
        inside &= (value >= c.lower) & (value <= c.upper)
    return inside


def _exchanges(op: MlirOp) -> bool:
    """Return True if threads exchange values within an op."""
    pending = [op]
    while pending:
        each = pending.pop()
        if each.name in ("xla_gpu.sync_threads", "xla_gpu.shuffle_reduce"):
            return True
        pending += [inner for region in each.regions for b in region.blocks for inner in b.ops]
    return False


def _for(self: LaneExecution, op: MlirOp, scope: LaneScope) -> Sequence[LaneHeld]:
    groups, count = op.regions[0].block.groups, len(self.lanes)
    low, high, step = (self.spread(self.known(scope[op.operand(role)], "a bound of a loop"))
                       for role in ("lower", "upper", "step"))  # fmt: skip
    if (step <= 0).any():
        raise self.lanes.fault("the step of a loop is not positive", int(np.argmax(step <= 0)))
    carried, at = [scope[v] for v in op.group("inits")], low
    while (at < high).any():
        (taken,) = np.nonzero(at < high)
        inner: dict[MlirValue, LaneHeld] = {groups["induction"][0]: LaneValue(at[taken])}
        for name, held in zip(groups["carried"], carried, strict=True):
            inner[name] = held.rows(taken) if isinstance(held, LaneValue) else held
        new = self.within(self.lanes.some(taken), op.regions[0], scope, taken, inner)
        pairs = zip(carried, new, strict=True)
        carried = [_carry_lanes(old, taken, one, count) for old, one in pairs]
        at = checked_index(at + step, self.width, self.lanes, op)
        self.budget.use(1, 0)
    return carried


def _if(self: LaneExecution, op: MlirOp, scope: LaneScope) -> Sequence[LaneHeld]:
    count = len(self.lanes)
    chosen = self.spread(self.known(scope[op.operand("condition")], "a condition"))
    if chosen.dtype != np.bool_:
        raise NotExecuted("a condition that is not an `i1`")
    results: list[LaneHeld] = []
    for region, where in zip(op.regions, (chosen, ~chosen), strict=False):
        (taken,) = np.nonzero(where)
        if not len(taken):
            continue
        new = self.within(self.lanes.some(taken), region, scope, taken, {})
        if not results:
            results = [_spread(held, taken, count) for held in new]
        else:
            pairs = zip(results, new, strict=True)
            results = [_carry_lanes(old, taken, one, count) for old, one in pairs]
    return results


def _spread(held: LaneHeld, taken: Array, count: int) -> LaneHeld:
    """Return a value of some lanes as one of all, undefined for the others."""
    if isinstance(held, LaneMemory) or len(taken) == count:
        return held
    data = np.zeros((count, *held.data.shape[1:]), held.data.dtype)
    return LaneValue(data, np.zeros(data.shape, bool)).updated(taken, held, count)


def _call(self: LaneExecution, op: MlirOp, scope: LaneScope) -> Sequence[LaneHeld]:
    function = self.module.functions.get(op.attributes["callee"])
    if function is None:
        raise NotExecuted(f"a call of @{op.attributes['callee']}")
    return self.run(function, [scope[v] for v in op.group("arguments")])


def _apply_indexing(self: LaneExecution, op: MlirOp, scope: LaneScope) -> Sequence[LaneHeld]:
    written = op.attributes["written_map"]
    values = self.indices((*op.group("dims"), *op.group("symbols")), scope)
    point = dict(zip((*written.dims, *written.ranges), values, strict=True))
    return [LaneValue(self.expression(e, point, op)) for e in written.results]


def _constant(self: LaneExecution, op: MlirOp, scope: LaneScope) -> Sequence[LaneHeld]:
    """Return a constant, one row for all lanes."""
    held = op.result.type
    dims = held.dims if held.is_shaped else ()
    kind = dtype(element_type(held.element))
    value = op.attributes["value"]
    if not isinstance(value, np.ndarray | np.generic):
        raise NotExecuted(f"a constant of type {held}")
    return [LaneValue(np.broadcast_to(np.asarray(value), dims).astype(kind)[None])]


CONTROL: Final[dict[str, LaneHandler]] = {
    "gpu.thread_id": _point, "gpu.block_id": _point, "xla.workgroup_id": _point,
    "scf.forall": _forall, "scf.forall.in_parallel": _in_parallel, "xla.loop": _xla_loop,
    "scf.for": _for, "scf.if": _if, "xla.pure_call": _call, "func.call": _call, "call": _call,
    "xla.apply_indexing": _apply_indexing, "arith.constant": _constant,
}  # fmt: skip

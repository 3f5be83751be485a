"""Memory, barriers, shuffles, vectors and tiles of kernels that are executed on NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from hlo.shapes.element_type import dtype
from indexing.equivalence.values.terms.functions import evaluate, function_of
from indexing.kernels.ir import MlirOp
from indexing.kernels.lane_execution import LaneExecution, LaneHandler, LaneHeld, LaneScope
from indexing.kernels.lane_memory import Array, LaneMemory, LaneValue, NotExecuted, all_defined
from indexing.kernels.lane_ops import element_type
from indexing.kernels.lanes import WARP

ACCESS_WORK: Final = 16
"""The work of an access whose threads are kept, in values of other ops."""
DOT_WORK: Final = 8
"""The products of a dot that are the work of one value of other ops."""

# ---------------------------------------------------------------- elements


def _extract(self: LaneExecution, op: MlirOp, scope: LaneScope) -> Sequence[LaneHeld]:
    source, index = scope[op.operand("source")], self.indices(op.group("indices"), scope)
    if isinstance(source, LaneValue):
        return [element_at(self, source, index)]
    return [read_at(self, source, index)]


def read_at(self: LaneExecution, memory: LaneMemory, index: Sequence[Array]) -> LaneValue:
    """Return an element of memory for each lane, and keep that the lanes read it."""
    self.budget.use(0, ACCESS_WORK * len(self.lanes) * memory.is_tracked)
    return memory.read(memory.place(index, self.lanes, "read"), self.lanes, self.interval)


def write_at(
    self: LaneExecution, memory: LaneMemory, index: Sequence[Array], value: LaneValue
) -> None:  # fmt: skip
    """Write an element of memory for each lane."""
    self.budget.use(0, ACCESS_WORK * len(self.lanes))
    place = memory.place(index, self.lanes, "written")
    memory.write(place, value, self.lanes, self.interval)


def element_at(self: LaneExecution, value: LaneValue, index: Sequence[Array]) -> LaneValue:
    """Return elements of values, by one index for each of their dimensions."""
    return value.moved(lambda array: array[spot_of(self, array, index)])


def spot_of(self: LaneExecution, array: Array, index: Sequence[Array]) -> tuple[Array, ...]:
    """Return the row and the place of an element of each lane's values."""
    if len(index) > array.ndim - 1:
        raise NotExecuted(f"{len(index)} indices of a value of rank {array.ndim - 1}")
    count = max([len(array), *[len(i) for i in index]])
    for each, size in zip(index, array.shape[1:], strict=False):
        outside = np.broadcast_to((each < 0) | (each >= size), len(self.lanes))
        if outside.any():
            raise self.lanes.fault("an element of a vector out of bounds", int(np.argmax(outside)))
    rows = np.arange(count) if len(array) > 1 else np.zeros(count, np.int64)
    return rows, *[np.broadcast_to(i, count) for i in index]


def _insert(self: LaneExecution, op: MlirOp, scope: LaneScope) -> Sequence[LaneHeld]:
    target = self.memory(scope[op.operand("target")])
    value = self.value(scope[op.operand("value")])
    write_at(self, target, self.indices(op.group("indices"), scope), value)
    return [target]


def _where(self: LaneExecution, op: MlirOp, scope: LaneScope) -> tuple[Array, LaneScope]:
    """Return the lanes at which the condition of an op holds, and the scope of its operands."""
    condition = self.known(scope[op.operand("condition")], "a condition")
    (taken,) = np.nonzero(self.spread(condition))
    return taken, LaneScope(scope, taken)


def _predicated_insert(self: LaneExecution, op: MlirOp, scope: LaneScope) -> Sequence[LaneHeld]:
    taken, inner = _where(self, op, scope)
    if len(taken):
        self.on(self.lanes.some(taken), lambda: _insert(self, op, inner))
    return [scope[op.operand("target")]]


def _predicated_extract(self: LaneExecution, op: MlirOp, scope: LaneScope) -> Sequence[LaneHeld]:
    taken, inner = _where(self, op, scope)
    otherwise = self.value(scope[op.operand("otherwise")])
    if not len(taken):
        return [otherwise]
    (value,) = self.on(self.lanes.some(taken), lambda: _extract(self, op, inner))
    return [otherwise.updated(taken, self.value(value), len(self.lanes))]


def _atomic(self: LaneExecution, op: MlirOp, scope: LaneScope) -> Sequence[LaneHeld]:
    memory = self.memory(scope[op.operand("target")])
    index = [self.spread(i) for i in self.indices(op.group("indices"), scope)]
    place = memory.place(index, self.lanes, "updated")
    rest, (current,) = np.arange(len(self.lanes)), op.regions[0].block.arguments
    while len(rest):  # one lane for each element at a time
        key = place[0][rest] * memory.data.shape[1] + place[1][rest]
        taken = rest[np.unique(key, return_index=True)[1]]
        at, lanes = tuple([p[taken] for p in place]), self.lanes.some(taken)
        now = LaneValue(memory.data[at], memory.defined[at])
        (new,) = self.within(lanes, op.regions[0], scope, taken, {current: now})
        value = self.value(new).full(len(taken))
        interval = self.intervals[lanes.block]
        memory.store((at[0], at[1]), value.data, value.mask(), lanes, interval)
        rest = np.setdiff1d(rest, taken, assume_unique=True)
    return [memory]


# ---------------------------------------------------------------- threads


def _allocate(self: LaneExecution, op: MlirOp, scope: LaneScope) -> Sequence[LaneHeld]:
    dims, kind = op.result.type.dims, dtype(element_type(op.result.type.element))
    data = np.zeros((len(self.intervals), math.prod(dims)), kind)
    name = f"the tile of line {op.span.line}"
    return [LaneMemory(name, dims, data, np.zeros(data.shape, bool), is_shared=True)]


def _synchronise(self: LaneExecution, op: MlirOp, scope: LaneScope) -> Sequence[LaneHeld]:
    counts = np.bincount(self.lanes.block, minlength=len(self.intervals))
    missing = (counts != 0) & (counts != self.block_size)
    if missing.any():
        block = int(np.argmax(missing))
        lane = int(np.argmax(self.lanes.block == block))
        raise self.lanes.fault("a barrier that not all threads of a block reach", lane)
    self.intervals[counts != 0] += 1
    return [scope[v] for v in op.operands]


def _shuffle_reduce(self: LaneExecution, op: MlirOp, scope: LaneScope) -> Sequence[LaneHeld]:
    function = self.module.functions.get(op.attributes["combiner"])
    if function is None:
        raise NotExecuted(f"the combiner @{op.attributes['combiner']}")
    count, lane = len(self.lanes), self.lanes.thread % WARP
    values = [self.value(scope[v]).full(count) for v in op.group("values")]
    place = np.full((len(self.intervals), self.block_size + WARP), -1)
    place[self.lanes.block, self.lanes.thread] = np.arange(count)
    distance = op.attributes["max_distance"]
    while distance:
        partner = place[
            self.lanes.block, self.lanes.thread + np.where(lane + distance < WARP, distance, 0)
        ]
        others: list[LaneHeld] = []
        for value in values:
            known = value.mask()[partner] & (partner >= 0)
            others.append(LaneValue(value.data[partner], known))
        results = self.run(function, [*values, *others])
        values = [self.value(held).full(count) for held in results]
        distance //= 2
    return values


# ---------------------------------------------------------------- tiles


def _tile_places(
    self: LaneExecution, op: MlirOp, memory: LaneMemory, scope: LaneScope
) -> tuple[Array, Array]:
    """Return the positions in memory of the elements of a tile, and which are in bounds."""
    sizes, strides = op.attributes["sizes"], op.attributes["strides"]
    offsets = self.indices(op.group("indices"), scope)
    if not len(offsets) == len(sizes) == len(strides) == len(memory.dims):
        raise NotExecuted("a tile of another rank than its memory")
    at, inside = np.zeros((1,) * (len(sizes) + 1), np.int64), np.ones(1, bool)
    for k, (offset, size, stride) in enumerate(zip(offsets, sizes, strides, strict=True)):
        shape = [1] * (len(sizes) + 1)
        shape[k + 1] = size
        steps = (np.arange(size) * stride).reshape(shape)
        index = offset.reshape(len(offset), *[1] * len(sizes)) + steps
        inside = inside & (index >= 0) & (index < memory.dims[k])
        at = at * memory.dims[k] + np.clip(index, 0, memory.dims[k] - 1)
    full = len(self.lanes), *sizes
    return np.broadcast_to(at, full), np.broadcast_to(inside, full)


def _tile_extract(self: LaneExecution, op: MlirOp, scope: LaneScope) -> Sequence[LaneHeld]:
    memory = self.memory(scope[op.operand("source")])
    at, inside = _tile_places(self, op, memory, scope)
    known = memory.defined[0][at] & inside
    shape = len(at), *op.result.type.dims
    data = memory.data[0][at].reshape(shape)
    return [LaneValue(data, None if known.all() else known.reshape(shape))]


def _tile_insert(self: LaneExecution, op: MlirOp, scope: LaneScope) -> Sequence[LaneHeld]:
    memory, value = self.memory(scope[op.operand("target")]), scope[op.operand("value")]
    at, inside = _tile_places(self, op, memory, scope)
    full = self.value(value).full(len(at))
    lane = np.nonzero(inside)[0]
    known = full.mask().reshape(at.shape)[inside]
    lanes = self.lanes.some(lane)
    place = np.zeros(len(lane), np.int64), at[inside]
    stored = LaneValue(full.data.reshape(at.shape)[inside], None if known.all() else known)
    memory.write(place, stored, lanes, self.intervals[lanes.block])
    return []


def _mask(self: LaneExecution, op: MlirOp, scope: LaneScope) -> Sequence[LaneHeld]:
    value, other = (self.value(scope[op.operand(role)]) for role in ("value", "masked"))
    inside = np.ones((1,), bool)
    for k, bound in enumerate(op.attributes["bounds"]):
        shape = [1] * value.data.ndim
        shape[k + 1] = value.data.shape[k + 1]
        inside = inside & (np.arange(shape[k + 1]) < bound).reshape(shape)
    fill = other.moved(lambda a: a.reshape(len(a), *[1] * (value.data.ndim - 1)))
    data = np.where(inside, value.data, fill.data)
    if all_defined(value, fill) is None:
        return [LaneValue(data)]
    return [LaneValue(data, np.where(inside, value.mask(), fill.mask()))]


def _move_handler(function: Callable[[MlirOp, Array], Array]) -> LaneHandler:
    """Return the handler of an op that moves the elements of a tile."""

    def handler(self: LaneExecution, op: MlirOp, scope: LaneScope) -> Sequence[LaneHeld]:
        value = self.value(scope[op.operand("value")])
        return [value.moved(lambda array: function(op, array))]

    return handler


def _broadcast_in_dim(op: MlirOp, array: Array) -> Array:
    dims = op.result.type.dims
    shape = [len(array), *[1] * len(dims)]
    for k, dimension in enumerate(op.attributes["dims"]):
        shape[dimension + 1] = array.shape[k + 1]
    return np.broadcast_to(array.reshape(shape), (len(array), *dims))


def _iota(self: LaneExecution, op: MlirOp, scope: LaneScope) -> Sequence[LaneHeld]:
    dims, dimension = op.result.type.dims, op.attributes["dim"]
    shape = [1] * (len(dims) + 1)
    shape[dimension + 1] = dims[dimension]
    data = np.arange(dims[dimension]).reshape(shape)
    kind = dtype(element_type(op.result.type.element))
    return [LaneValue(np.broadcast_to(data, (1, *dims)).astype(kind))]


_DIRECTIONS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "EQ": np.equal, "NE": np.not_equal, "LT": np.less, "LE": np.less_equal, "GT": np.greater,
    "GE": np.greater_equal,
}  # fmt: skip


def _compare(self: LaneExecution, op: MlirOp, scope: LaneScope) -> Sequence[LaneHeld]:
    one, other = (self.value(scope[op.operand(role)]) for role in ("lhs", "rhs"))
    data = np.asarray(_DIRECTIONS[op.attributes["direction"]](one.data, other.data))
    return [LaneValue(data, all_defined(one, other))]


def _reduce(self: LaneExecution, op: MlirOp, scope: LaneScope) -> Sequence[LaneHeld]:
    opcode = op.attributes["applies"].removeprefix("stablehlo.")
    if len(op.group("values")) != 1:
        raise NotExecuted("a reduction of several tiles")
    value, init = (self.value(scope[op.operand(role)]) for role in ("values", "inits"))
    kind = element_type(op.result.type.element)
    wide = "f32" if kind in ("bf16", "f16") else kind
    function = function_of(opcode, (), wide)
    if function is None:
        raise NotExecuted(f"a reduction by `{opcode}`")
    axes = sorted([d + 1 for d in op.attributes["dimensions"]])

    def inner(array: Array) -> Array:
        return np.moveaxis(array, axes, range(len(axes))).reshape(
            -1, *[s for k, s in enumerate(array.shape) if k not in axes]
        )

    total = init.data.reshape(len(init.data), *[1] * len(op.result.type.dims)).astype(dtype(wide))
    for part in inner(value.data.astype(dtype(wide))):
        total = np.asarray(evaluate(function, [total, part], wide))
    known = None if value.defined is None else np.asarray(inner(value.mask()).all(axis=0))
    return [LaneValue(total.astype(dtype(kind)), known)]


def _dot(self: LaneExecution, op: MlirOp, scope: LaneScope) -> Sequence[LaneHeld]:
    left, right = (self.value(scope[op.operand(role)]) for role in ("lhs", "rhs"))
    batch = op.attributes.get("batching_dims") or ((), ())
    contracted = op.attributes["contracting_dims"]
    letters = "abcdefghijklmnopqrstuvwxy"
    names = [list(letters[: left.data.ndim - 1]), list(letters[-right.data.ndim + 1 :])]
    for pairs in (batch, contracted):
        for one, other in zip(*pairs, strict=True):
            names[1][other] = names[0][one]
    kept = [names[0][k] for k in batch[0]]
    summed = {names[0][k] for k in contracted[0]}
    free = [n for n in (*names[0], *names[1]) if n not in summed and n not in kept]
    rule = f"z{''.join(names[0])},z{''.join(names[1])}->z{''.join([*kept, *free])}"
    sizes = dict(zip(names[0], left.data.shape[1:], strict=True))
    sizes |= dict(zip(names[1], right.data.shape[1:], strict=True))
    count = max(len(left.data), len(right.data))
    kind = dtype(element_type(op.result.type.element))

    def product(one: Array, other: Array) -> Array:
        wide = [np.broadcast_to(a, (count, *a.shape[1:])) for a in (one, other)]
        with np.errstate(all="ignore"):
            return np.asarray(np.einsum(rule, *wide, optimize=True))

    self.budget.use(0, count * math.prod(sizes.values()) // DOT_WORK)
    data = product(left.data.astype(np.float32), right.data.astype(np.float32)).astype(kind)
    if left.defined is None and right.defined is None:
        return [LaneValue(data)]
    holes = [(~value.mask()).astype(np.float32) for value in (left, right)]
    ones = [np.ones_like(hole) for hole in holes]
    return [LaneValue(data, (product(holes[0], ones[1]) + product(ones[0], holes[1])) == 0)]


ACCESS: Final[dict[str, LaneHandler]] = {
    "tensor.extract": _extract, "tensor.insert": _insert, "xla.atomic_rmw": _atomic,
    "xla.predicated_insert": _predicated_insert, "xla.predicated_extract": _predicated_extract,
    "xla_gpu.allocate_shared": _allocate, "xla_gpu.sync_threads": _synchronise,
    "xla_gpu.shuffle_reduce": _shuffle_reduce, "xla_gpu.pdl_wait": lambda *_: [],
    "xtile.extract": _tile_extract, "xtile.insert": _tile_insert, "xtile.mask": _mask,
    "stablehlo.transpose": _move_handler(
        lambda op, a: a.transpose(0, *[d + 1 for d in op.attributes["dims"]])),
    "stablehlo.reshape": _move_handler(lambda op, a: a.reshape(len(a), *op.result.type.dims)),
    "stablehlo.broadcast_in_dim": _move_handler(_broadcast_in_dim), "stablehlo.iota": _iota,
    "stablehlo.compare": _compare, "stablehlo.reduce": _reduce, "stablehlo.dot_general": _dot,
}  # fmt: skip

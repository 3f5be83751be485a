"""Vectors of lanes, and loads and stores of adjacent elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from hlo.shapes.element_type import dtype
from hlo.shapes.mixed_radix import number_of
from indexing.kernels.ir import MlirOp
from indexing.kernels.lane_access import element_at, read_at, spot_of, write_at
from indexing.kernels.lane_execution import LaneExecution, LaneHandler, LaneHeld, LaneScope
from indexing.kernels.lane_memory import Array, LaneMemory, LaneValue, NotExecuted, all_defined
from indexing.kernels.lane_ops import element_type


def _transfer_read(self: LaneExecution, op: MlirOp, scope: LaneScope) -> Sequence[LaneHeld]:
    source = self.memory(scope[op.operand("source")])
    index = self.indices(op.group("indices"), scope)
    if op.attributes.get("in_bounds") not in ((True,), None) or len(op.result.type.dims) != 1:
        raise NotExecuted("a vector that may be out of bounds")
    _align(self, source, index, op.result.type.dims[0])
    parts = [read_at(self, source, [*index[:-1], index[-1] + k])
             for k in range(op.result.type.dims[0])]  # fmt: skip
    data = np.stack([part.data for part in parts], axis=1)
    if all_defined(*parts) is None:
        return [LaneValue(data)]
    return [LaneValue(data, np.stack([part.mask() for part in parts], axis=1))]


def _transfer_write(self: LaneExecution, op: MlirOp, scope: LaneScope) -> Sequence[LaneHeld]:
    target, value = self.memory(scope[op.operand("target")]), self.value(scope[op.operand("value")])
    index = self.indices(op.group("indices"), scope)
    if op.attributes.get("in_bounds") not in ((True,), None) or value.data.ndim != 2:
        raise NotExecuted("a vector that may be out of bounds")
    _align(self, target, index, value.data.shape[1])
    for k in range(value.data.shape[1]):
        element = value.moved(lambda array, k=k: array[:, k])
        write_at(self, target, [*index[:-1], index[-1] + k], element)
    return [target]


def _align(self: LaneExecution, memory: LaneMemory, index: Sequence[Array], size: int) -> None:
    """Check that vectors begin at multiples of their size.

    Raises:
        KernelFault: one does not.
    """
    at = self.spread(np.asarray(number_of(index, memory.dims)))
    apart = at % size != 0
    if apart.any():
        lane = int(np.argmax(apart))
        element = [self.spread(i)[lane] for i in index]
        what = f"a vector of {size} elements of {memory.name} is not aligned"
        raise self.lanes.fault(what, lane, element)


def _position(self: LaneExecution, op: MlirOp, scope: LaneScope) -> list[Array]:
    return [np.array([p]) if isinstance(p, int) else self.known(scope[p], "a position")
            for p in op.attributes["position"]]  # fmt: skip


def _vector_extract(self: LaneExecution, op: MlirOp, scope: LaneScope) -> Sequence[LaneHeld]:
    source = self.value(scope[op.operand("source")])
    return [element_at(self, source, _position(self, op, scope))]


def _vector_insert(self: LaneExecution, op: MlirOp, scope: LaneScope) -> Sequence[LaneHeld]:
    value = self.value(scope[op.operand("value")])
    target = self.value(scope[op.operand("target")]).full(len(self.lanes))
    spot = spot_of(self, target.data, [self.spread(p) for p in _position(self, op, scope)])
    target.data[spot] = value.data
    if target.defined is None and value.defined is None:
        return [target]
    known = target.mask().copy()
    known[spot] = value.mask()
    return [LaneValue(target.data, known)]


def _vector_broadcast(self: LaneExecution, op: MlirOp, scope: LaneScope) -> Sequence[LaneHeld]:
    value, dims = self.value(scope[op.operand("value")]), op.result.type.dims

    def wide(array: Array) -> Array:
        inner = array.reshape(len(array), *[1] * (len(dims) + 1 - array.ndim), *array.shape[1:])
        return np.broadcast_to(inner, (len(array), *dims))

    return [value.moved(wide)]


def _from_elements(self: LaneExecution, op: MlirOp, scope: LaneScope) -> Sequence[LaneHeld]:
    if len(op.operands) != 1:
        raise NotExecuted(f"`{op.name}` of several elements")
    dims = op.result.type.dims
    return [self.value(scope[op.operands[0]]).moved(lambda a: a.reshape(len(a), *dims))]


def _poison(self: LaneExecution, op: MlirOp, scope: LaneScope) -> Sequence[LaneHeld]:
    held = op.result.type
    data = np.zeros((1, *(held.dims if held.is_shaped else ())), dtype(element_type(held.element)))
    return [LaneValue(data, np.zeros(data.shape, bool))]


VECTORS: Final[dict[str, LaneHandler]] = {
    "tensor.from_elements": _from_elements,
    "ub.poison": _poison,
    "vector.broadcast": _vector_broadcast,
    "vector.extract": _vector_extract,
    "vector.insert": _vector_insert,
    "vector.transfer_read": _transfer_read,
    "vector.transfer_write": _transfer_write,
}

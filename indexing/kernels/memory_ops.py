"""Ops that access memory, executed on symbolic points; barriers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from indexing.equivalence.values.terms.terms import Formula
from indexing.kernels.control import Handler, Values, merge
from indexing.kernels.domains import NotHandled
from indexing.kernels.ir import MlirOp
from indexing.kernels.scalars import type_name
from indexing.kernels.symbolic import Execution, Held


def _extract(execution: Execution, op: MlirOp, values: Values) -> Sequence[Held]:
    index = execution.indices(values, op.group("indices"))
    return [execution.read(op, values[op.operand("source")], index)]


def _insert(execution: Execution, op: MlirOp, values: Values) -> Sequence[Held]:
    target = values[op.operand("target")]
    index = execution.indices(values, op.group("indices"))
    execution.write(op, target, index, values[op.operand("value")])
    return [target]


def _atomic(execution: Execution, op: MlirOp, values: Values) -> Sequence[Held]:
    """Replace an element by a function of it, which no other access comes between."""
    target, block = values[op.operand("target")], op.regions[0].block
    kind = type_name(op.operand("target").type)
    symbol = execution.algebra.table.array("symbol", ("current", 0, ()), kind, ())
    current = execution.algebra.table.read(symbol, ())
    reads = len(execution.accesses)
    (value,) = execution.block(op.regions[0], {**values, block.arguments[0]: current})
    if len(execution.accesses) > reads:
        raise NotHandled("an atomic op that accesses other memory")
    index = execution.indices(values, op.group("indices"))
    execution.write(op, target, index, value, current)
    return [target]


def _where(
    execution: Execution, condition: Formula, handler: Handler, op: MlirOp, values: Values
) -> Sequence[Held]:
    """Execute an op at the points where a condition holds."""
    with execution.restricted(execution.conditions_of(condition)):
        return handler(execution, op, values)


def _predicated_insert(execution: Execution, op: MlirOp, values: Values) -> Sequence[Held]:
    condition = execution.formula(values[op.operand("condition")])
    return _where(execution, condition, _insert, op, values)


def _predicated_extract(execution: Execution, op: MlirOp, values: Values) -> Sequence[Held]:
    condition = execution.formula(values[op.operand("condition")])
    (value,) = _where(execution, condition, _extract, op, values)
    return [merge(execution, condition, value, values[op.operand("otherwise")])]


def _allocate(execution: Execution, op: MlirOp, values: Values) -> Sequence[Held]:
    return [execution.new_tile(op.result.type)]


def _synchronise(execution: Execution, op: MlirOp, values: Values) -> Sequence[Held]:
    place = execution.place
    if place.guards or place.variables or not place.is_certain:
        raise NotHandled("a barrier under a condition")
    execution.interval += 1
    execution.exchanges += 1
    return [values[v] for v in op.operands]


MEMORY_HANDLERS: Final[Mapping[str, Handler]] = {
    "tensor.extract": _extract,
    "tensor.insert": _insert,
    "xla.predicated_insert": _predicated_insert,
    "xla.predicated_extract": _predicated_extract,
    "xla.atomic_rmw": _atomic,
    "xla_gpu.allocate_shared": _allocate,
    "xla_gpu.sync_threads": _synchronise,
}

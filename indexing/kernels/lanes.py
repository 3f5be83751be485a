"""Reductions over the lanes of a warp: `xla_gpu.shuffle_reduce`.

``shuffle_reduce(v) to D`` combines the values of 2 D neighbouring lanes.  The first lane of each
group has the result; the others have values that depend on the hardware, and are undefined here.
Each lane has combined its values with the initial value of the reduction, which must be neutral.

Source: XLA ``xla/backends/gpu/codegen/emitters/ir/xla_gpu_ops.td``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from indexing.equivalence.values.folds.neutral_elements import is_neutral, neutral_value
from indexing.equivalence.values.terms.terms import Formula
from indexing.kernels.accumulation import (
    Accumulated,
    AccumulatedPart,
    combined_symbols,
    combining_opcode,
)
from indexing.kernels.control import Handler, Values
from indexing.kernels.domains import NotHandled
from indexing.kernels.ir import MlirOp
from indexing.kernels.scalars import type_name
from indexing.kernels.symbolic import Execution, Held
from simplifier.atoms import Variable
from simplifier.constraints import Constraint

WARP: Final = 32
ANY_ORDER: Final = "a reduction combines its values in any order"


def _shuffle_reduce(execution: Execution, op: MlirOp, values: Values) -> Sequence[Held]:
    if len(op.operands) != 1:
        raise NotHandled("a reduction of several values over lanes")
    group = 2 * op.attributes["max_distance"]
    thread = _thread(execution, group)
    place = execution.place
    uniform = {*place.variables, *execution.blocks.values()}
    own = [c for c in place.guards if not uniform.issuperset(c.expr.variables())]
    if own or not place.is_certain:  # loops have the same iterations for all threads
        raise NotHandled("a reduction over lanes under a condition on the thread")
    opcode = _opcode(execution, op.attributes["combiner"])
    held = values[op.operands[0]]
    lane = execution.new_variable(group)
    first = thread.as_expr() // group * group
    swap = execution.algebra.rewriting({thread: first + lane.as_expr()})
    total = _total(execution, held, opcode)
    parts = [
        AccumulatedPart(
            swap(part.value),
            (lane, *part.ranges),
            tuple([c.with_expr(swap.expr(c.expr)) for c in part.guards]),
        )
        for part in total.parts
    ]
    execution.premises[ANY_ORDER] = None
    execution.exchanges += 1
    execution.exchanging.update(place.variables)
    value = Accumulated(opcode, total.init, tuple(parts)).formula(execution.algebra)
    has_result = Constraint(thread.as_expr() - first, 0, 0)
    undefined = execution.algebra.undefined(value.type)
    return [execution.algebra.where((has_result,), value, undefined)]


def _thread(execution: Execution, group: int) -> Variable:
    """Return the only variable of the thread, of which `group` neighbours are in one warp."""
    threads = [v for v in execution.threads.values() if v.upper]
    if len(threads) != 1 or threads[0].name != "th_x" or group > WARP or group & (group - 1):
        raise NotHandled("lanes of threads in several dimensions")
    if (threads[0].upper + 1) % group:
        raise NotHandled("a reduction over lanes beyond the last thread")
    return threads[0]


def _opcode(execution: Execution, name: str) -> str:
    """Return the op of a combiner, which applies it to its two arguments."""
    function = execution.module.functions.get(name)
    if function is None or len(function.result_types) != 1:
        raise NotHandled(f"the combiner @{name}")
    symbols = combined_symbols(execution.algebra, type_name(function.result_types[0]))
    (term,) = execution.run(function, symbols)
    opcode = combining_opcode(term, symbols) if isinstance(term, Formula) else None
    if opcode is None:
        raise NotHandled(f"the combiner @{name}")
    return opcode


def _total(execution: Execution, held: Held, opcode: str) -> Accumulated:
    """Return what a lane has as a neutral value that is combined with others."""
    algebra = execution.algebra
    if isinstance(held, Accumulated) and held.opcode == opcode:
        if not is_neutral(opcode, held.init):
            raise NotHandled("an initial value that is not neutral is combined once for each lane")
        return held
    value = execution.formula(held)
    neutral = neutral_value(algebra, opcode, value.type)
    if neutral is None:
        raise NotHandled(f"`{opcode}` of {value.type} without a neutral value")
    return Accumulated(opcode, neutral, (AccumulatedPart(value),))


def _wait(execution: Execution, op: MlirOp, values: Values) -> Sequence[Held]:
    """Wait for the kernel before this one: no element may be accessed before that."""
    if execution.accesses:
        raise NotHandled("memory is accessed before the kernel waits for its predecessor")
    return []


LANE_HANDLERS: Final[Mapping[str, Handler]] = {
    "xla_gpu.shuffle_reduce": _shuffle_reduce,
    "xla_gpu.pdl_wait": _wait,
}

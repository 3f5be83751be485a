"""Ops of the bodies of Mosaic kernels: what each of them loads, stores and returns.

An op without a handler loads and may store all memory that it gets, and its regions may be executed
any number of times.

Source: jaxlib ``mosaic/dialect/tpu/tpu_ops.td``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from indexing.kernels.ir import MlirModule, MlirOp, MlirValue
from indexing.kernels.mosaic.body import (
    NO_VALUE,
    BodyExecution,
    Handler,
    Held,
    NotReadError,
    ReadScalar,
    StartedCopy,
    Values,
    index_of,
)
from indexing.kernels.mosaic.index_values import integer_value
from indexing.kernels.mosaic.views import HIDDEN, LOCAL, MemoryView
from indexing.ops.integer_rules import Cases, selection
from indexing.pallas.index_arithmetic import combine_cases

MAX_BRANCHES: Final = 4
"""Limit on the cases in which a branch is executed, each with conditions of its own."""


def new_execution(module: MlirModule, read_scalar: ReadScalar | None = None) -> BodyExecution:
    """Return an execution of the functions of a module.

    Args:
        read_scalar: the value of an element of a buffer, if loads of scalars have one.
    """
    return BodyExecution(module, _HANDLERS, _other, read_scalar=read_scalar)


def _views(op: MlirOp, values: Mapping[MlirValue, Held]) -> list[MemoryView]:
    """Return the buffers of an op's operands, without semaphores."""
    views = [values[v] for v in op.operands if v.type.kind == "memref"]
    kept = [v for v in op.operands if v.type.kind == "memref"]
    pairs = zip(kept, views, strict=True)
    return [view for v, view in pairs if isinstance(view, MemoryView) and not is_semaphore(v)]


def is_semaphore(value: MlirValue) -> bool:
    """Return True for a memref of semaphores."""
    return "semaphore" in value.type.text


def _memory(op: MlirOp, values: Mapping[MlirValue, Held], first: int) -> tuple[int, MemoryView]:
    """Return the number of an op's memref operand, and its view."""
    number = next((k for k, v in enumerate(op.operands) if v.type.kind == "memref"), None)
    view = None if number is None else values[op.operands[number]]
    if number is None or number < first or not isinstance(view, MemoryView):
        raise NotReadError(f"`{op.name}` has no memref")
    return number, view


def _accessed_view(
    op: MlirOp, values: Mapping[MlirValue, Held], sizes: Sequence[int]
) -> MemoryView:
    """Return the part that a load or store of a vector of these sizes has."""
    number, view = _memory(op, values, 0)
    held = op.operands[number].type
    indices = op.operands[number + 1 : number + 1 + held.rank]
    return view.access(held, [index_of(values[v]) for v in indices], sizes)


# ---------------------------------------------------------------- handlers


def _load(execution: BodyExecution, op: MlirOp, values: Values) -> list[Held]:
    if any(stride != 1 for stride in op.attributes.get("strides") or ()):
        return _load_any(execution, op, values)
    view = _accessed_view(op, values, op.result.type.dims)
    execution.load(view)
    if execution.read_scalar is None or not view.fills or view.box is None or op.result.type.dims:
        return [NO_VALUE]
    return [execution.read_scalar(view.buffer, tuple([first for first, _ in view.box]))]


def _load_any(execution: BodyExecution, op: MlirOp, values: Values) -> list[Held]:
    """Record a load of any elements of the memrefs."""
    for view in _views(op, values):
        execution.load(view)
    return [NO_VALUE] * len(op.results)


def _store(execution: BodyExecution, op: MlirOp, values: Values) -> list[Held]:
    view = _accessed_view(op, values, op.operands[0].type.dims)
    segments, strides = op.attributes.get("operandSegmentSizes", ()), op.attributes.get("strides")
    is_masked = bool(segments) and len(segments) > 3 and bool(segments[3])
    is_plain = not is_masked and all(stride == 1 for stride in strides or ())
    if op.attributes.get("add"):
        execution.load(view)
        is_plain = False
    execution.store(view, is_certain=is_plain)
    return []


def _slice(execution: BodyExecution, op: MlirOp, values: Values) -> list[Held]:
    _, view = _memory(op, values, 0)
    held = op.operands[0].type
    starts = [index_of(values[v]) for v in op.operands[1 : 1 + held.rank]]
    return [view.part(starts, op.result.type.dims)]


def _copy(execution: BodyExecution, op: MlirOp, values: Values) -> list[Held]:
    """Record a DMA: its operands are a source, a target, semaphores, and a device."""
    segments = op.attributes.get("operandSegmentSizes", ())
    if len(segments) < 4 or any(segments[4:]):
        raise NotReadError("the kernel copies memory of another device or core")
    views = _views(op, values)
    if len(views) != 2:
        raise NotReadError(f"`{op.name}` has {len(views)} memrefs")
    source, target = views
    execution.load(source)
    execution.store(target)
    semaphore = op.operands[sum(segments[:3])]
    started = StartedCopy(target, execution.conditions, execution.is_certain)
    execution.copies[semaphore] = [*execution.copies.get(semaphore, []), started]
    return []


def _wait(execution: BodyExecution, op: MlirOp, values: Values) -> list[Held]:
    """Record a certain store if the step itself has started the only DMA of a new semaphore.

    Other semaphores may count DMAs that earlier steps have started.
    """
    semaphore = op.operands[0]
    counter, started = values[semaphore], execution.copies.get(semaphore, [])
    if isinstance(counter, MemoryView) and counter.buffer == LOCAL and len(started) == 1:
        expected = StartedCopy(started[0].target, execution.conditions, execution.is_certain)
        if expected == started[0] and expected.target in _views(op, values):
            execution.store(expected.target, is_certain=True)
    return []


def _signal(execution: BodyExecution, op: MlirOp, values: Values) -> list[Held]:
    segments = op.attributes.get("operandSegmentSizes", ())
    if any(segments[2:]):
        raise NotReadError("the kernel signals another device or core")
    return []


def _core(execution: BodyExecution, op: MlirOp, values: Values) -> list[Held]:
    raise NotReadError("the kernel depends on the core that runs a step")


def _nothing(execution: BodyExecution, op: MlirOp, values: Values) -> list[Held]:
    return [NO_VALUE] * len(op.results)


def _allocate(execution: BodyExecution, op: MlirOp, values: Values) -> list[Held]:
    return [MemoryView(LOCAL, None)] * len(op.results)


def _seed(execution: BodyExecution, op: MlirOp, values: Values) -> list[Held]:
    execution.store(MemoryView(HIDDEN, (), True, True), is_certain=True)
    return []


def _draw(execution: BodyExecution, op: MlirOp, values: Values) -> list[Held]:
    execution.load(MemoryView(HIDDEN, ()))
    execution.store(MemoryView(HIDDEN, ()))
    return [NO_VALUE]


def _call(execution: BodyExecution, op: MlirOp, values: Values) -> list[Held]:
    arguments = [values[v] for v in op.operands]
    return execution.function(str(op.attributes["callee"]), arguments)


def _if(execution: BodyExecution, op: MlirOp, values: Values) -> list[Held]:
    """Execute both regions, each where its condition holds; select among their results."""
    cases = values[op.operands[0]]
    regions = dict(zip((1, 0), [each for each in op.regions if each.blocks], strict=False))
    sides: dict[int, list[Held]] = {}
    if isinstance(cases, list) and _is_decided(cases):
        for value, conditions in cases:
            if value.constant in regions and not any(c.is_false for c in conditions):
                region = regions[value.constant]
                sides[value.constant] = execution.branch(region, values, conditions)
    else:
        outer, execution.is_certain = execution.is_certain, False
        sides = {side: execution.region(each, dict(values)) for side, each in regions.items()}
        execution.is_certain = outer
    if not op.results:
        return []
    if len(sides) == 1:
        return next(iter(sides.values()))
    return [_select(cases, *each) for each in zip(sides[1], sides[0], strict=True)]


def _select(condition: Held, first: Held, second: Held) -> Held:
    if isinstance(condition, list) and isinstance(first, list) and isinstance(second, list):
        return combine_cases(selection, [condition, first, second])
    return NO_VALUE


def _is_decided(cases: Cases) -> bool:
    """True if the grid decides about a predicate, in few cases."""
    return len(cases) <= MAX_BRANCHES and all(value.is_constant for value, _ in cases)


def _loop(execution: BodyExecution, op: MlirOp, values: Values) -> list[Held]:
    execution.perhaps(op.regions, values)
    return [NO_VALUE] * len(op.results)


def _once(execution: BodyExecution, op: MlirOp, values: Values) -> list[Held]:
    for region in op.regions:
        execution.region(region, values)
    return [NO_VALUE] * len(op.results)


def _other(execution: BodyExecution, op: MlirOp, values: Values) -> list[Held]:
    """Execute an op without a handler: it loads and may store what it gets."""
    views = _views(op, values)
    if any(v.type.kind == "memref" for v in op.results):
        return _view_of(execution, op, values, views)
    for view in views:
        execution.load(view)
        execution.store(view)
    if op.regions:
        outer, execution.is_certain = execution.is_certain, False
        execution.perhaps(op.regions, values)
        execution.is_certain = outer
    elif not views and bool(op.results) == any(map(is_semaphore, op.operands)):
        execution.load(_STATE)  # an op without results has another effect, or counters are read
        execution.store(_STATE)
    return [integer_value(op, [values[v] for v in op.operands])] * len(op.results)


def _view_of(
    execution: BodyExecution, op: MlirOp, values: Values, views: Sequence[MemoryView]
) -> list[Held]:
    if all(is_semaphore(v) for v in op.results) and not op.operands:
        for semaphore in op.results:
            execution.copies.pop(semaphore, None)
        return [MemoryView(LOCAL, None)] * len(op.results)
    if all(is_semaphore(v) for v in op.results):
        return [MemoryView(HIDDEN, None)] * len(op.results)
    if len(views) != 1 or len(op.results) != 1:
        raise NotReadError(f"`{op.name}` returns a memref")
    (before,) = [v for v in op.operands if v.type.kind == "memref" and not is_semaphore(v)]
    return [views[0].reshaped(before.type, op.result.type)]


_STATE: Final = MemoryView(HIDDEN, None)

_HANDLERS: Final[Mapping[str, Handler]] = {
    **dict.fromkeys(["vector.load", "memref.load", "tpu.vector_load"], _load),
    **dict.fromkeys(
        ["tpu.load", "tpu.strided_load", "tpu.shuffled_load", "tpu.vector_load_idx",
         "vector.transfer_read", "vector.maskedload", "vector.gather"],
        _load_any,
    ),
    **dict.fromkeys(["vector.store", "memref.store", "tpu.vector_store"], _store),
    **dict.fromkeys(
        ["func.return", "scf.yield", "scf.condition", "tpu.yield", "tpu.log",
         "tpu.trace_start", "tpu.trace_stop", "cf.assert",
         "tpu.barrier", "tpu.delay"],
        _nothing,
    ),
    **dict.fromkeys(["memref.alloca", "memref.alloc"], _allocate),
    "tpu.memref_slice": _slice,
    "tpu.enqueue_dma": _copy,
    **dict.fromkeys(["tpu.wait_dma", "tpu.wait_dma2"], _wait),
    "tpu.sem_signal": _signal,
    **dict.fromkeys(["tpu.core_id", "tpu.subcore_id"], _core),
    "tpu.prng_set_seed_32": _seed,
    "tpu.prng_random_bits": _draw,
    "func.call": _call,
    "scf.if": _if,
    **dict.fromkeys(["scf.for", "scf.while"], _loop),
    "tpu.region": _once,
}  # fmt: skip
"""The ops of bodies with an effect that is known."""

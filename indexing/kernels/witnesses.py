"""A point at which a kernel is at fault, found by executing it on operands drawn at random.

A kernel differs from its instruction if an access is at fault, an element is never written, or an
element has another value by more than what rounding and the order of sums explain.  For the latter,
the instruction is executed a second time on operands that differ a little: elements whose values
this changes are compared with a tolerance that is larger by as much.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from hlo.modules.module import Computation, Instruction
from hlo.shapes.element_type import ELEMENT_TYPES, dtype
from hlo.shapes.shape import Shape, leaves
from hlo.text.source import HloError
from indexing.equivalence.values.terms.functions import MANTISSA
from indexing.execution import ExecutionError, run
from indexing.kernels.domains import NotHandled
from indexing.kernels.drawn_operands import SPECIAL, WAYS, draw_operands, perturb_operands
from indexing.kernels.ir import MlirModule
from indexing.kernels.lane_access import ACCESS
from indexing.kernels.lane_control import CONTROL
from indexing.kernels.lane_execution import LaneBudget, LaneExecution, LaneHeld, execute_twice
from indexing.kernels.lane_memory import Array, KernelFault, LaneMemory, LaneValue, NotExecuted
from indexing.kernels.lane_vectors import VECTORS
from indexing.kernels.run import Launch, index_width, tile_count
from indexing.kernels.verdicts import KernelDiffers

DRAWS: Final = 2 * WAYS
MAX_SIZE: Final = 1 << 21
"""Limit on the elements of each operand and output, and on the lanes of an execution."""
MAX_TOTAL: Final = 1 << 23
"""Limit on the elements of operands and outputs in all draws; at least two draws are tried."""

_COMBINING: Final = frozenset(
    ["xla_gpu.shuffle_reduce", "xla.atomic_rmw", "stablehlo.reduce", "stablehlo.dot_general"]
)

Sizes = tuple[tuple[int, ...], tuple[int, ...]]


def executed_fault(
    module: MlirModule, fusion: Instruction, launch: Launch | None, *, draws: int = DRAWS,
    is_strict: bool = False,
) -> KernelDiffers | None:  # fmt: skip
    """Return a fault of a kernel that executions show; None if they show none or are not possible.

    Args:
        launch: the launch; by default, the one that the text states.
        draws: the draws of operands, fewer for large arrays.
        is_strict: also report values that differ because other conversions to narrow floats round.
    """
    shapes = [operand.shape for operand in fusion.operands]
    inputs = [shape for shape in shapes if isinstance(shape, Shape)]
    outputs = [shape for _, shape in leaves(fusion.shape) if isinstance(shape, Shape)]
    sizes = [math.prod(shape.dims) for shape in (*inputs, *outputs)]
    if len(inputs) < len(shapes) or not fusion.called_computations or max(sizes) > MAX_SIZE:
        return None
    trial = _Trial(module, fusion.called_computations[0], tuple(inputs), tuple(outputs), launch,
                   is_strict)  # fmt: skip
    draws = min(draws, max(2, MAX_TOTAL // max(sum(sizes), 1)))
    try:
        return next((fault for fault in trial.faults(draws) if fault is not None), None)
    except (NotExecuted, NotHandled, ExecutionError, HloError):
        return None


@dataclass(frozen=True, slots=True)
class _Trial:
    """A kernel and its instruction, to be executed on the same operands.

    Attributes:
        is_strict: True if values must agree to the precision of the output, whatever is rounded to
            a narrower type on the way.
    """

    module: MlirModule
    computation: Computation
    inputs: tuple[Shape, ...]
    outputs: tuple[Shape, ...]
    launch: Launch | None
    is_strict: bool = False
    budget: LaneBudget = field(default_factory=LaneBudget)

    @property
    def is_reordered(self) -> bool:
        """True if a reduction of several values depends on its order where they are NaN."""
        return any(len(called.parameters) > 2 for i in self.computation
                   for called in i.called_computations)  # fmt: skip

    @property
    def has_distinct_indices(self) -> bool:
        """True if the result is defined only for indices that differ."""
        return any(getattr(i.op, "unique_indices", False) for i in self.computation)

    @property
    def is_elementwise(self) -> bool:
        """True if no value is combined over iterations, lanes or elements, in any order."""
        ops = list(self.module.walk())
        carried = [v for op in ops for v in op.group("inits")]
        return not any(op.name in _COMBINING for op in ops) and not any(
            called for i in self.computation for called in i.called_computations
        ) and all(v.type.kind in ("tensor", "memref") for v in carried)  # fmt: skip

    def precision(self, output: int) -> float:
        """The relative error of an output: of the narrowest float that may be rounded otherwise."""
        shapes = [self.outputs[output]]
        if not self.is_elementwise and not self.is_strict:
            shapes += [i.shape for i in self.computation if isinstance(i.shape, Shape)]
        bits = [MANTISSA.get(s.element_type, 3) for s in shapes
                if ELEMENT_TYPES[s.element_type].kind == "floating"]  # fmt: skip
        return float(2.0 ** -min([24, *bits]))

    @property
    def may_overflow(self) -> bool:
        """True if a partial result may overflow in one order and not in another one."""
        if self.is_elementwise:
            return False
        products = [called for i in self.computation for called in i.called_computations
                    if called.root.opcode == "multiply"]  # fmt: skip
        shapes = [i.shape for i in self.computation if isinstance(i.shape, Shape)]
        return bool(products) or any(shape.element_type == "f16" for shape in shapes)

    def tolerance(self, output: int) -> float:
        """The relative difference of an output's elements that rounding and order explain."""
        return 2.0**-14 + (4 if self.is_elementwise else 64) * self.precision(output)

    def faults(self, draws: int) -> Iterator[KernelDiffers | None]:
        """Yield what is found on each draw of operands."""
        for seed in range(draws):
            if seed % WAYS != SPECIAL or not self.is_reordered:
                yield self.fault(seed)

    def fault(self, seed: int) -> KernelDiffers | None:
        """Return a fault on operands of a seed."""
        operands = draw_operands(self.inputs, seed, self.has_distinct_indices)
        sizes: list[Sizes] = []
        try:
            memories = execute_twice(lambda wide: self._execute(operands, wide, sizes))
        except KernelFault as fault:
            return _differs(fault.what, sizes[-1], fault.block, fault.thread, fault.element)
        for number, memory in enumerate(memories):
            if not memory.defined.all():
                return self._undefined_element(number, memory, sizes[-1])
        wanted, moved = self._expected_results(operands)
        for number, (memory, one, other) in enumerate(zip(memories, wanted, moved, strict=True)):
            ours = _logical(memory, self.outputs[number])
            apart = _apart(ours, one, other, self.tolerance(number), self.may_overflow)
            if apart is not None:
                return self._other_value(number, memory, apart, (ours, one), sizes[-1])
        return None

    def _expected_results(
        self, operands: Sequence[Array]
    ) -> tuple[Sequence[Array], Sequence[Array]]:
        """Return the results of the instruction, and those for operands that differ a little."""
        with np.errstate(all="ignore"):
            results = run(self.computation, list(operands))
            if all(array.dtype.kind in "iub" for array in operands):
                return results, results
            change = 4 * min([self.precision(k) for k in range(len(self.outputs))])
            return results, run(self.computation, perturb_operands(operands, change))

    # ------------------------------------------------------------ execution

    def _execute(
        self, operands: Sequence[Array], is_wide: bool, sizes: list[Sizes]
    ) -> tuple[LaneMemory, ...]:
        entry = self.module.entry
        if entry is None:
            raise NotExecuted("a module that marks no entry")
        grid, threads = self._sizes()
        if math.prod(grid) * math.prod(threads) > MAX_SIZE:
            raise NotExecuted("budget: the number of threads")
        execution = LaneExecution(
            self.module,
            index_width(self.module),
            grid,
            threads,
            {**CONTROL, **ACCESS, **VECTORS},
            is_wide,
            self.budget,
        )
        sizes.append((grid, execution.threads))
        arguments = self._arguments(execution, operands)
        try:
            results = execution.run(entry, arguments)
        finally:
            sizes.append((grid, execution.threads))
        if entry.op_name == "xtile.entry_func":
            results = arguments[len(operands) : len(operands) + len(self.outputs)]
        memories = tuple([held for held in results if isinstance(held, LaneMemory)])
        if len(memories) != len(self.outputs):
            raise NotExecuted(f"{len(memories)} results for {len(self.outputs)} outputs")
        return memories

    def _sizes(self) -> Sizes:
        """Return the numbers of blocks and threads: of the launch, else as the text states."""
        entry = self.module.entry
        assert entry is not None
        if entry.op_name == "xtile.entry_func":
            return (tile_count(entry, self.launch),), (1,)
        has_threads = any(op.name == "scf.forall" for op in entry.ops)
        if self.launch is not None:
            return self.launch.grid, (1,) if has_threads else self.launch.threads
        stated = {"bl": [1, 1, 1], "th": [1, 1, 1]}
        for op in self.module.walk():
            if op.name in ("xla.workgroup_id", "gpu.block_id", "gpu.thread_id"):
                at = "xyz".index(op.attributes["dimension"])
                which = stated["th" if op.name == "gpu.thread_id" else "bl"]
                which[at] = max(which[at], _last(op.attributes) + 1)
        positions = [a for v, a in zip(entry.arguments, entry.argument_attributes, strict=True)
                     if v.type.element == "index"]  # fmt: skip
        for at, attributes in enumerate(positions[:3]):
            stated["bl"][at] = _last(attributes) + 1
        return tuple(stated["bl"]), tuple(stated["th"])

    def _arguments(self, execution: LaneExecution, operands: Sequence[Array]) -> list[LaneHeld]:
        entry = self.module.entry
        assert entry is not None
        memories: dict[object, LaneMemory] = {}
        written = {a.get("xla.slice_index") for a in entry.argument_attributes
                   if "xla.invariant" not in a}  # fmt: skip
        arguments: list[LaneHeld] = []
        strides, number = 1, 0
        for value, attributes in zip(entry.arguments, entry.argument_attributes, strict=True):
            if value.type.element == "index" and not value.type.is_shaped:
                size = (*execution.grid, 1, 1, 1)[number]
                position = execution.lanes.block // strides % size
                arguments.append(LaneValue(position))
                strides, number = strides * size, number + 1
                continue
            at = len(arguments)
            key = attributes.get("xla.slice_index", ("argument", at))
            shape = (*self.inputs, *self.outputs)[at]
            data = operands[at] if at < len(operands) else None
            if key in memories and data is not None:
                raise NotExecuted("two operands in one memory")
            if key not in memories:
                is_tracked = attributes.get("xla.slice_index") in written
                memories[key] = _memory(f"%{value.name}", value.type.dims, shape, data, is_tracked)
            elif memories[key].dims != value.type.dims:
                raise NotExecuted("one memory of two shapes")
            arguments.append(memories[key])
        return arguments

    # ------------------------------------------------------------ faults

    def _undefined_element(self, number: int, memory: LaneMemory, sizes: Sizes) -> KernelDiffers:
        at = int(np.argmin(memory.defined[0]))
        what = "an undefined value is written"
        return _at_writer(what, number, memory, at, self.outputs[number], sizes,
                          "an element is never written")  # fmt: skip

    def _other_value(
        self, number: int, memory: LaneMemory, element: tuple[int, ...],
        values: tuple[Array, Array], sizes: Sizes,
    ) -> KernelDiffers:  # fmt: skip
        shape = self.outputs[number]
        places = np.arange(memory.data.size).reshape(memory.dims)
        at = int(_unflatten(places, memory.dims, shape)[element])
        ours, theirs = (array[element] for array in values)
        what = f"{ours} is written, the instruction's value is {theirs}"
        return _at_writer(what, number, memory, at, shape, sizes, f"{ours} is left, the "
                          f"instruction's value is {theirs}")  # fmt: skip


def _last(attributes: Mapping[str, Any]) -> int:
    """Return the last position of a block or a thread that a text states."""
    if "xla.range" not in attributes:
        raise NotExecuted("a position of a block or a thread without `xla.range`")
    return int(attributes["xla.range"][1])


def _at_writer(
    what: str, number: int, memory: LaneMemory, at: int, shape: Shape, sizes: Sizes,
    if_not_written: str,
) -> KernelDiffers:  # fmt: skip
    """Return a fault of an element of an output, at the thread that writes it last."""
    places = np.arange(memory.data.size).reshape(memory.dims)
    (element,) = np.argwhere(_unflatten(places, memory.dims, shape) == at)
    index = tuple([int(i) for i in element])
    if not memory.is_tracked or int(memory.writers.thread[0, at]) < 0:
        return KernelDiffers(if_not_written, element=index, output=number)
    block, thread = int(memory.writers.block[0, at]), int(memory.writers.thread[0, at])
    return _differs(what, sizes, block, thread, index, number)


def _differs(
    what: str, sizes: Sizes, block: int, thread: int, element: tuple[int, ...] | None,
    output: int | None = None,
) -> KernelDiffers:  # fmt: skip
    points = [
        tuple(_name_positions(prefix, number, size))
        for prefix, number, size in (("bl_", block, sizes[0]), ("th_", thread, sizes[1]))
    ]
    return KernelDiffers(what, points[0], points[1], (), element, output)


def _name_positions(prefix: str, number: int, sizes: Sequence[int]) -> Iterator[tuple[str, int]]:
    """Yield the position of a number in each dimension of more than one, or of the first."""
    for name, size in zip("xyz", sizes, strict=False):
        if size > 1 or name == "x":
            yield f"{prefix}{name}", number % size
        number //= size


def _memory(
    name: str, dims: tuple[int, ...], shape: Shape, data: Array | None, is_tracked: bool
) -> LaneMemory:
    kind = "s8" if shape.element_type == "pred" else shape.element_type
    if kind[0] == "u":
        kind = f"s{kind[1:]}"
    size = math.prod(dims)
    if data is None:
        return LaneMemory(name, dims, np.zeros((1, size), dtype(kind)), np.zeros((1, size), bool),
                          is_tracked=is_tracked)  # fmt: skip
    if data.shape != dims:
        if dims != (data.size,):
            raise NotExecuted(f"an operand of {shape} as a tensor of sizes {list(dims)}")
        order = shape.layout_or_default.minor_to_major
        data = data.transpose(tuple(reversed(order)))
    flat = np.ascontiguousarray(data).reshape(1, size)
    flat = flat.astype(dtype(kind)) if shape.element_type == "pred" else flat.view(dtype(kind))
    return LaneMemory(name, dims, flat.copy(), np.ones((1, size), bool), is_tracked=is_tracked)


def _logical(memory: LaneMemory, shape: Shape) -> Array:
    """Return the array that memory holds, by its indices."""
    return _unflatten(memory.data[0].reshape(memory.dims), memory.dims, shape)


def _unflatten(array: Array, dims: tuple[int, ...], shape: Shape) -> Array:
    if dims == tuple(shape.dims):
        return array
    order = tuple(reversed(shape.layout_or_default.minor_to_major))
    stored = array.reshape([shape.dims[k] for k in order])
    return stored.transpose(tuple(np.argsort(order)))


def _apart(
    ours: Array, theirs: Array, moved: Array, relative: float, may_overflow: bool
) -> tuple[int, ...] | None:
    """Return an element at which values differ by more than rounding explains."""
    if theirs.dtype == np.bool_:
        ours, theirs, moved = (np.asarray(a != 0) for a in (ours, theirs, moved))
    elif theirs.dtype.kind in "iu":
        ours = ours.view(theirs.dtype)
    if theirs.dtype.kind in "iub":
        different = (ours != theirs) & (moved == theirs)
    else:
        kind = complex if theirs.dtype.kind == "c" else np.float64
        x, y, z = (a.astype(kind) for a in (ours, theirs, moved))
        with np.errstate(all="ignore"):
            finite = np.isfinite(x) & np.isfinite(y) & np.isfinite(z)
            scale = np.max(np.abs(y[np.isfinite(y)]), initial=1e-30)
            tolerance = relative * (np.abs(y) + scale / 8) + 16 * np.abs(y - z)
            different = finite & (np.abs(x - y) > tolerance)
            other = ~finite & ~_same(x, y) & _same(y, z)
        different = different if may_overflow else different | other
    if not different.any():
        return None
    return tuple([int(i) for i in np.argwhere(different)[0]])


def _same(one: Array, other: Array) -> Array:
    return np.asarray((one == other) | ((one != one) & (other != other)))

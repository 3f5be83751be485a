"""Execution of entry computations as loop nests.

First choice: one nest per result, from the parameters.  If a result has no nest, each instruction
or fusion becomes a nest, and the interpreter executes those without one; `Nests.remarks` gives the
reasons.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np

from hlo.modules.effects import has_effect, has_effects
from hlo.modules.module import Computation, Instruction, Module
from hlo.shapes.shape import Shape
from indexing.codegen.build import loop_nest
from indexing.codegen.graph import Array
from indexing.codegen.nest import LoopNest
from indexing.codegen.stages import all_loops
from indexing.execution.interpreter import Handler, PlanStep, execute, plan
from indexing.execution.machine import Machine, RunOptions
from indexing.execution.memory import check_bytes, check_memory
from indexing.execution.mesh import has_regions
from indexing.execution.operations import check_operations
from indexing.execution.sizes import padded_to_shape
from indexing.execution.values import (
    ExecutionError,
    Value,
    assemble,
    bytes_of,
    check_representable,
    checked_inputs,
    failure,
    flattened,
)
from indexing.execution.work import check_work
from indexing.maps.answers import Unknown
from indexing.maps.arrays import array_leaves
from indexing.ops.base import MappedOp, RoutingOp
from indexing.ops.structured_ops import InlineOp
from indexing.tiling.sets.tile_grid import TileGrid

MAX_RESULTS: Final = 16
"""Limit on the results of an entry that runs as one nest per result: the nests of several results
recompute what they share."""

MAX_PAIRS: Final = 1 << 12
"""Limit on pairs of a result and an operand of an instruction that runs as one nest per result:
each nest takes all operands."""

MAX_ITERATIONS: Final = 10**8
"""Limit on the iterations of Python loops: beyond it, they would run for minutes."""


@dataclass(frozen=True, slots=True)
class Nests:
    """An entry computation as executable loop nests.

    Attributes:
        module: the program.
        tile: tile sizes for results of that rank, other results are not tiled; None executes
            Python loops.
        by_result: a nest for each result of the entry; None if a result has no nest.
        steps: the plan of the entry, if `by_result` is None.
        remarks: the reason why `by_result` is None, and what the interpreter executes.
    """

    module: Module
    tile: tuple[int, ...] | None
    by_result: tuple[LoopNest, ...] | None
    steps: tuple[PlanStep, ...]
    remarks: tuple[str, ...]

    def check_memory(self, memory: int | None = None) -> None:
        """Check that the estimated memory is available.

        Raises:
            ExecutionError: the estimate exceeds `memory` bytes, or the available memory if None.
        """
        entry = self.module.entry
        if self.by_result is None or self.tile is None:
            check_memory(entry, memory)
            return
        arrays = sum(bytes_of(i.shape) for i in (*entry.parameters, entry.root))
        tiles = [nest.vectorized().tile_bytes(_sizes(nest, self.tile)) for nest in self.by_result]
        check_bytes(arrays + max(tiles, default=0), memory, entry.root)

    def check_operations(self, limit: int) -> None:
        """Check that the entry takes at most `limit` element operations.

        Raises:
            ExecutionError: it takes more.
        """
        check_operations(self.module.entry, limit)

    def run(self, inputs: Sequence[Array], options: RunOptions | None = None) -> tuple[Array, ...]:
        """Execute the entry; return its results, tuples flattened in order.

        Args:
            inputs: one array per leaf of `indexing.execution.parameter_leaves`.
            options: options of the interpreter, for instructions without a nest.
        Raises:
            ExecutionError: the inputs do not match the parameters, an instruction cannot be
                executed, or a loop has more iterations than the options allow.
        """
        entry = self.module.entry
        arguments = checked_inputs(entry, inputs)
        if self.by_result is not None:
            _check_loops(self.by_result, (options or RunOptions()).max_iterations)
            arrays = flattened(tuple(arguments))
            check_representable(entry.root)
            return tuple([np.array(_by_nest(nest, arrays, self.tile)) for nest in self.by_result])
        machine = Machine(options)
        value = execute(machine, entry, arguments, self.steps)
        return tuple(
            [np.array(array) for array in flattened(padded_to_shape(value, entry.root.shape))]
        )


def nests_of(module: Module, tile: tuple[int, ...] | None = None) -> Nests:
    """Return the entry of `module` as loop nests.

    Args:
        module: the program, for one device.
        tile: tile sizes of the NumPy programs, one for each dimension of a result; None executes
            Python loops.
    Raises:
        ExecutionError: no result has the rank of `tile`, the program has manual regions for several
            devices, its Python loops exceed `MAX_ITERATIONS` iterations, or its calls execute too
            many instructions.

    >>> import hlo, numpy
    >>> module = hlo.parse('''
    ... ENTRY e { p = s32[2,3] parameter(0)  ROOT t = s32[3,2] transpose(p), dimensions={1,0} }''')
    >>> nests_of(module, tile=(2, 2)).run([numpy.int32([[1, 2, 3], [4, 5, 6]])])[0].tolist()
    [[1, 4], [2, 5], [3, 6]]
    """
    entry = module.entry
    if has_regions(module):
        message = "loop nests run on one device, but this program has manual regions of a mesh"
        raise ExecutionError(message, entry.span, "execution")
    if tile is not None:
        _check_tile(module, tile)
    by_result = _entry_nests(module)
    if not isinstance(by_result, str):
        _check_iterations(by_result, tile, entry.root)
        return Nests(module, tile, by_result, (), ())
    check_work(entry)
    remarks = [f"the entry is executed instruction by instruction: {by_result}"]
    steps = []
    for step in plan(entry):
        nests = _instruction_nests(step.instruction)
        if isinstance(nests, str):
            remarks.append(f"`{step.instruction.name}` {_executor_of(step.instruction)}: {nests}")
        elif nests:
            _check_iterations(nests, tile, step.instruction)
            handler: Handler = partial(_run_nests, nests, tile)
            step = replace(step, handler=handler)
        steps.append(step)
    return Nests(module, tile, None, tuple(steps), tuple(remarks))


# ---------------------------------------------------------------- selection of nests


def _entry_nests(module: Module) -> tuple[LoopNest, ...] | str:
    """Return a nest for each result of the entry, or the reason why there is none."""
    entry = module.entry
    if has_effects(entry):
        name = next(filter(has_effect, entry.instructions)).name
        return f"`{name}` has side effects"
    count = len(_shapes(entry.root))
    if count > MAX_RESULTS:
        return f"it has {count} results, more than {MAX_RESULTS}"
    if any(map(_is_dynamic, module.instructions)):
        return "a shape is dynamic"
    nests = _nests_of(entry, entry.root)
    if isinstance(nests, str):
        return nests
    loops = [loop for nest in nests for loop in all_loops(nest.stages)]
    if not all(loop.count.expr.is_constant for loop in loops):
        return "its inputs decide the number of iterations of a loop"
    if loops and count > 1:
        return f"each of its {count} results would execute its loops again"
    return nests


def _instruction_nests(instruction: Instruction) -> tuple[LoopNest, ...] | str:
    """Return the nests of one instruction, or the reason why there is none.

    Constants and ops that only route values need no nest: ().
    """
    if instruction.opcode == "constant" or isinstance(instruction.op, RoutingOp):
        return ()
    if not isinstance(instruction.op, MappedOp | InlineOp):
        return f"{instruction.opcode} has no per-element rule"
    called = instruction.called_computations if isinstance(instruction.op, InlineOp) else ()
    inside = [inner for computation in called for inner in computation]
    if any(map(_is_dynamic, [instruction, *instruction.operands, *inside])):
        return "a shape is dynamic"
    results, operands = _shapes(instruction), [s for o in instruction.operands for s in _shapes(o)]
    if len(results) * len(operands) > MAX_PAIRS:
        counts = f"{len(results)} results and {len(operands)} operands"
        return f"it has {counts}, more than {MAX_PAIRS} pairs"
    return _nests_of(instruction, instruction)


def _executor_of(instruction: Instruction) -> str:
    """Return what executes an instruction without a nest: its kernel, if it has one."""
    has_kernel = isinstance(instruction.op, MappedOp | InlineOp)
    return "falls back to its kernel" if has_kernel else "is executed by the interpreter"


def _nests_of(target: Instruction | Computation, result: Instruction) -> tuple[LoopNest, ...] | str:
    """Return a nest for each array of a result, or the reason why there is none."""
    nests = []
    for number, _, _ in array_leaves(result.shape):
        nest = loop_nest(target, number)
        if isinstance(nest, Unknown):
            return nest.reason
        nests.append(nest)
    return tuple(nests)


def _shapes(instruction: Instruction) -> list[Shape]:
    return [shape for _, _, shape in array_leaves(instruction.shape)]


def _is_dynamic(instruction: Instruction) -> bool:
    return any(shape.is_dynamic for shape in _shapes(instruction))


def _check_tile(module: Module, tile: tuple[int, ...]) -> None:
    """Check that a result has the rank of the tile."""
    root = module.entry.root
    ranks = {shape.rank for shape in _shapes(root)}
    if len(tile) in ranks:
        return
    numbers = " or ".join(map(str, sorted(ranks))) or "no"
    sizes = ",".join(map(str, tile)) or "[]"
    message = f"tile {sizes} has rank {len(tile)}, but results have rank {numbers}"
    shapes = [str(shape.with_layout(None)) for shape in _shapes(root)]
    listed = ", ".join([*shapes[:4], *(["..."] if len(shapes) > 4 else [])])
    help = "pass one size for each dimension of a result"  # noqa: A001 - the word of `HloError`
    raise ExecutionError(message, root.span, "inputs", f"returns {listed or 'no array'}", help=help)


def _check_iterations(
    nests: Sequence[LoopNest], tile: tuple[int, ...] | None, instruction: Instruction
) -> None:
    """Reject Python loops that would run for minutes."""
    iterations = sum(nest.iterations for nest in nests)
    if tile is None and iterations > MAX_ITERATIONS:
        message = f"`{instruction.name}`: {iterations} loop iterations, more than {MAX_ITERATIONS}"
        help = "run NumPy programs with --tile"  # noqa: A001 - the word of `HloError`
        raise ExecutionError(message, instruction.span, "execution", help=help)


def _check_loops(nests: Sequence[LoopNest], limit: int) -> None:
    """Reject counted loops of more than `limit` iterations."""
    for loop in [loop for nest in nests for loop in all_loops(nest.stages)]:
        count = loop.variable.upper + 1
        if count > limit:
            message = f"the loop has {count} iterations, more than {limit}"
            help = "raise the limit with --max-iterations"  # noqa: A001 - the word of `HloError`
            raise failure(loop.instruction, message, "", help)


# ---------------------------------------------------------------- execution


def _run_nests(
    nests: tuple[LoopNest, ...],
    tile: tuple[int, ...] | None,
    machine: Machine,
    instruction: Instruction,
    operands: Sequence[Value],
) -> Value:
    """Execute an instruction through its nests; a `Handler` once the first two are bound."""
    arrays = flattened(tuple(operands))
    results = [_by_nest(nest, arrays, tile) for nest in nests]
    return assemble(instruction.shape, iter(results))


def _by_nest(nest: LoopNest, arrays: Sequence[Array], tile: tuple[int, ...] | None) -> Array:
    if tile is None:
        return nest.run(*arrays)
    return nest.vectorized().run(*arrays, tile=_sizes(nest, tile))


def _sizes(nest: LoopNest, tile: tuple[int, ...]) -> tuple[int, ...]:
    """Return `tile` if it has the rank of the result, otherwise the full sizes."""
    dims = nest.output.dims
    return tile if len(tile) == len(dims) else TileGrid.whole(dims).sizes

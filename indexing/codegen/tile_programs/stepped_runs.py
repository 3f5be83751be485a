"""Execution of entry computations tile by tile and step by step, compared with a whole execution.

First choice: the tiles of each result, from the parameters.  If a result has no program of this
form, instructions and fusions are tiled one by one, and the interpreter executes the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

import numpy as np

from hlo.modules.module import Instruction, Module
from indexing.codegen.tile_programs.lowering import tile_program
from indexing.codegen.tile_programs.program import NotEmitted, TileProgram
from indexing.codegen.tile_programs.stepwise import Array, run_stepwise
from indexing.execution.interpreter import Handler, PlanStep, execute, plan
from indexing.execution.machine import Machine, RunOptions
from indexing.execution.sizes import padded_to_shape
from indexing.execution.values import (
    ExecutionError,
    Value,
    assemble,
    checked_inputs,
    failure,
    flattened,
    parameter_leaves,
)
from indexing.maps.arrays import ArrayRef, array_leaves
from indexing.ops.base import MappedOp, RoutingOp
from indexing.ops.structured_ops import InlineOp
from indexing.tiling.loops.loop_model import loop_model
from indexing.tiling.loops.loop_names import named_loops
from indexing.tiling.loops.looped import tiling_of_model
from indexing.tiling.sets.tiled_answers import Target
from simplifier.unknown import Unknown

MAX_STEPS: Final = 200_000
"""Limit on the steps of all blocks of one tiling: beyond it, Python would run for minutes."""

TOLERANCES: Final = {"bf16": 2.0**-6, "f16": 2.0**-8, "f32": 2.0**-14, "f64": 2.0**-40}
"""Differences that an order of summation may cause, relative to the largest element."""


@dataclass(slots=True)
class SteppedEntry:
    """An entry computation as tilings with loops.

    Attributes:
        module: the program.
        by_result: the program of each result of the entry; None if a result has none.
        steps: the plan of the entry, if `by_result` is None.
        remarks: the reason why `by_result` is None, and what the interpreter executes.
        differences: of each result, the largest difference from a whole execution, relative to its
            largest element; filled by `run`.
    """

    module: Module
    by_result: tuple[TileProgram, ...] | None
    steps: tuple[PlanStep, ...]
    remarks: tuple[str, ...]
    differences: list[float] = field(default_factory=list)

    def run(self, inputs: Sequence[Array], options: RunOptions | None = None) -> tuple[Array, ...]:
        """Execute the entry; return its results, tuples flattened in order.

        Args:
            inputs: one array per leaf of `indexing.execution.parameter_leaves`.
            options: options of the interpreter.
        Raises:
            ExecutionError: the inputs do not match the parameters, an instruction cannot be
                executed, or a result differs from that of a whole execution.
        """
        entry = self.module.entry
        arguments = checked_inputs(entry, inputs)
        whole = execute(Machine(options), entry, arguments, plan(entry))
        expected = flattened(padded_to_shape(whole, entry.root.shape))
        if self.by_result is None:
            value = execute(Machine(options), entry, arguments, self.steps)
            results = flattened(padded_to_shape(value, entry.root.shape))
        else:
            leaves = parameter_leaves(entry)
            refs = [ArrayRef(leaf.parameter, tuple(leaf.path)) for leaf in leaves]
            given = dict(zip(refs, flattened(tuple(arguments)), strict=True))
            results = tuple([_run(program, given) for program in self.by_result])
        self.differences = []
        shapes = [shape for _, _, shape in array_leaves(entry.root.shape)]
        for k, (result, wanted) in enumerate(zip(results, expected, strict=True)):
            difference = relative_difference(result, wanted)
            self.differences.append(difference)
            if difference > TOLERANCES.get(shapes[k].element_type, 0.0):
                message = (
                    f"result {k} computed tile by tile differs from a whole execution by "
                    f"{difference:.2g} of its largest element"
                )
                raise failure(entry.root, message, "")
        return tuple([np.array(result) for result in results])


def relative_difference(result: Array, wanted: Array) -> float:
    """Return the largest difference relative to the largest finite element; inf for other NaN.

    >>> relative_difference(np.float32([1, 2]), np.float32([1, 4]))
    0.5
    """
    a, b = [np.asarray(each) for each in (result, wanted)]
    wide = np.complex128 if b.dtype.kind == "c" else np.float64
    a, b = a.astype(wide), b.astype(wide)
    if not np.array_equal(np.isfinite(a), np.isfinite(b)):
        return float("inf")
    if not np.array_equal(a[~np.isfinite(a)], b[~np.isfinite(b)], equal_nan=True):
        return float("inf")
    a, b = a[np.isfinite(a)], b[np.isfinite(b)]
    largest = float(np.max(np.abs(b), initial=0))
    error = float(np.max(np.abs(a - b), initial=0))
    return error / largest if largest else error


def stepped_entry(
    module: Module, tile: Sequence[int], loop_sizes: Mapping[str, int]
) -> SteppedEntry:
    """Return the entry of a module, tiled with loops.

    Args:
        module: the program, for one device.
        tile: the sizes of a tile; results of another rank are not tiled.
        loop_sizes: the step of each loop by its name; see `indexing.tile`.
    Raises:
        ExecutionError: no result has the rank of `tile`, no loop has a name of `loop_sizes`, or
            there are more than `MAX_STEPS` steps.

    >>> import hlo
    >>> module = hlo.parse('''ENTRY e {
    ...   a = f32[6,5] parameter(0)
    ...   b = f32[5,4] parameter(1)
    ...   ROOT d = f32[6,4] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    ... }''')
    >>> entry = stepped_entry(module, (4, 4), {"k": 2})
    >>> (result,) = entry.run([np.ones((6, 5), np.float32), np.ones((5, 4), np.float32)])
    >>> float(result.min()), entry.differences
    (5.0, [0.0])
    """
    entry, names = module.entry, _NamedSteps(tile, loop_sizes)
    by_result = _results(entry.root, names)
    if not isinstance(by_result, str):
        names.check(entry.root)
        return SteppedEntry(module, by_result, (), ())
    remarks = [f"the entry is tiled instruction by instruction: {by_result}"]
    steps: list[PlanStep] = []
    tiled = others = 0
    for step in plan(entry):
        instruction = step.instruction
        if isinstance(instruction.op, MappedOp | InlineOp) and not isinstance(
            instruction.op, RoutingOp
        ):
            program = _program(instruction, names, "operands", 0)
            if isinstance(program, TileProgram):
                tiled += 1
                handler: Handler = partial(_run_instruction, program)
                step = replace(step, handler=handler)
            elif _has_rank(instruction, len(names.tile)):
                remarks.append(f"`{instruction.name}` is executed whole: {program}")
            else:
                others += 1
        steps.append(step)
    if others:
        are = "instruction of another rank is" if others == 1 else "instructions of other ranks are"
        remarks.append(f"{others} {are} executed whole")
    if not tiled:
        message = f"nothing is tiled by {list(tile)}: {by_result}"
        raise ExecutionError(message, entry.root.span, "execution", "")
    names.check(entry.root)
    return SteppedEntry(module, None, tuple(steps), tuple(remarks))


def _has_rank(instruction: Instruction, rank: int) -> bool:
    return any(shape.rank == rank for _, _, shape in array_leaves(instruction.shape))


class _NamedSteps:
    """The sizes of tiles and steps, and the names of loops that have been found."""

    def __init__(self, tile: Sequence[int], loop_sizes: Mapping[str, int]) -> None:
        self.tile, self.loop_sizes = tuple(tile), dict(loop_sizes)
        self.used: set[str] = set()
        self.known: dict[str, None] = {}

    def check(self, root: Instruction) -> None:
        """Reject names that no loop has."""
        unused = [name for name in self.loop_sizes if name not in self.used]
        if unused:
            listed = "; ".join(self.known) or "none"
            message = f"no loop `{unused[0]}` in what is tiled: the loops are {listed}"
            raise ExecutionError(message, root.span, "execution", "")


def _results(root: Instruction, names: _NamedSteps) -> tuple[TileProgram, ...] | str:
    """Return the program of each result, or the reason why one has none."""
    programs: list[TileProgram] = []
    for number, _, _ in array_leaves(root.shape):
        program = _program(root, names, "parameters", number)
        if isinstance(program, str):
            return program
        programs.append(program)
    return tuple(programs)


def _program(
    instruction: Instruction, names: _NamedSteps, to: Target, output_id: int
) -> TileProgram | str:
    """Return the program of an output, or the reason why it has none."""
    arrays = {number: shape for number, _, shape in array_leaves(instruction.shape)}
    if to == "operands" and len(arrays) != 1:
        return f"it has {len(arrays)} results"
    shape = arrays[output_id]
    if shape.rank != len(names.tile):
        return f"its result has rank {shape.rank}, the tile has rank {len(names.tile)}"
    if shape.is_dynamic:
        return "its shape is dynamic"
    model = loop_model(instruction, to, output_id, masks=False)
    if isinstance(model, Unknown):
        return model.reason
    known = named_loops(model)
    names.known |= dict.fromkeys(map(str, known))
    own = {loop.name for loop in known} | {f"d{k}" for k in range(len(names.tile))}
    chosen = {name: step for name, step in names.loop_sizes.items() if name in own}
    try:
        tiling = tiling_of_model(model, names.tile, chosen, online=True, split_k=1)
        program = tile_program(tiling)
    except (NotEmitted, ValueError) as error:
        return str(error)
    steps = tiling.blocks * tiling.steps
    if steps > MAX_STEPS:
        message = f"{tiling.blocks:,} blocks have {steps:,} steps, more than {MAX_STEPS:,}"
        raise failure(instruction, message, "", "write larger tiles or steps")
    names.used |= set(chosen)
    return program


def _run(program: TileProgram, given: Mapping[ArrayRef, Array]) -> Array:
    return run_stepwise(program, {array: given[array] for array in program.arrays})


def _run_instruction(
    program: TileProgram, machine: Machine, instruction: Instruction, operands: Sequence[Value]
) -> Value:
    """Execute an instruction tile by tile; a `Handler` once the first argument is bound."""
    given: dict[ArrayRef, Any] = {}
    for operand, value in zip(instruction.operands, operands, strict=True):
        paths = [path for _, path, _ in array_leaves(operand.shape)]
        for path, array in zip(paths, flattened(value), strict=True):
            given[ArrayRef(operand, path)] = array
    return assemble(instruction.shape, iter([_run(program, given)]))

"""Entry computations that run as loop nests: the whole as one nest, or one instruction at a time.

The whole is tried first: each result straight from the parameters.  If that is no nest, the
instructions of the entry run in order, each (a fusion as one) as a nest; the interpreter runs those
that have none, and `Nests.remarks` give the reasons.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np

from hlo.modules.module import Computation, Instruction, Module
from hlo.shapes.shape import Shape, leaves
from indexing.codegen.build import loop_nest
from indexing.codegen.graph import Array
from indexing.codegen.nest import LoopNest
from indexing.execution.effects import has_effects
from indexing.execution.interpreter import Handler, PlanStep, plan, result
from indexing.execution.machine import Machine, RunOptions
from indexing.execution.memory import check_bytes, check_room
from indexing.execution.shards import has_regions
from indexing.execution.sizes import filled
from indexing.execution.values import (
    ExecutionError,
    Value,
    assembled,
    bytes_of,
    checked_inputs,
    flattened,
)
from indexing.maps.answers import Unknown
from indexing.ops.base import MappedOp, RoutingOp
from indexing.ops.structured_ops import InlineOp

MAX_RESULTS: Final = 16
"""Entries with more results run one instruction at a time: each result is a nest of its own, which
computes again what others compute too."""

MAX_ITERATIONS: Final = 10**8
"""Limit on the iterations of Python loops: beyond it, they would run for minutes."""


@dataclass(frozen=True, slots=True)
class Nests:
    """An entry computation as nests that are ready to run.

    Attributes:
        module: the program.
        tile: sizes of the boxes in which results of that rank are computed, others whole; None
            runs the loops of Python.
        whole: a nest for each result of the entry; None where one of them is no nest.
        steps: the instructions of the entry, where `whole` is None.
        remarks: why the whole is no nest, and what the interpreter runs.
    """

    module: Module
    tile: tuple[int, ...] | None
    whole: tuple[LoopNest, ...] | None
    steps: tuple[PlanStep, ...]
    remarks: tuple[str, ...]

    def check_room(self, memory: int | None = None) -> None:
        """Refuse what does not fit, by an estimate.

        Raises:
            ExecutionError: more is needed than `memory` bytes, or than what is available.
        """
        entry = self.module.entry
        if self.whole is None or self.tile is None:
            check_room(entry, memory)
            return
        arrays = sum(bytes_of(i.shape) for i in (*entry.parameters, entry.root))
        held = [nest.vectorized().held_bytes(_sizes(nest, self.tile)) for nest in self.whole]
        check_bytes(arrays + max(held, default=0), memory, entry.root)

    def run(self, inputs: Sequence[Array], options: RunOptions | None = None) -> tuple[Array, ...]:
        """The results for these inputs, tuples taken apart in order.

        Raises:
            HloError: something cannot be computed, or not from these inputs.
        """
        entry = self.module.entry
        arguments = checked_inputs(entry, inputs)
        if self.whole is not None:
            given = flattened(tuple(arguments))
            return tuple([np.array(_by_nest(nest, given, self.tile)) for nest in self.whole])
        machine = Machine(options)
        value = result(machine, entry, arguments, self.steps)
        return tuple([np.array(array) for array in flattened(filled(value, entry.root.shape))])


def nests_of(module: Module, tile: tuple[int, ...] | None = None) -> Nests:
    """The entry of `module` as loop nests, which run tile by tile or, without `tile`, as loops.

    Raises:
        ExecutionError: no result has as many dimensions as `tile` has sizes; the program is for
            several devices; or its loops take more than `MAX_ITERATIONS` iterations.

    >>> import hlo, numpy
    >>> module = hlo.parse('''
    ... ENTRY e { p = s32[2,3] parameter(0)  ROOT t = s32[3,2] transpose(p), dimensions={1,0} }''')
    >>> nests_of(module, tile=(2, 2)).run([numpy.int32([[1, 2, 3], [4, 5, 6]])])[0].tolist()
    [[1, 4], [2, 5], [3, 6]]
    """
    entry = module.entry
    if has_regions(module):
        message = "loop nests are for one device, but this program runs on those of a mesh"
        raise ExecutionError(message, entry.span, "execution")
    if tile is not None:
        _check_tile(module, tile)
    whole = _whole(module)
    if not isinstance(whole, str):
        _check_iterations(whole, tile, entry.root)
        return Nests(module, tile, whole, (), ())
    remarks = [f"the entry as a whole is no loop nest: {whole}"]
    steps = []
    for step in plan(entry):
        nests = _nests(step.instruction)
        if isinstance(nests, str):
            remarks.append(f"the interpreter runs `{step.instruction.name}`: {nests}")
        elif nests:
            _check_iterations(nests, tile, step.instruction)
            handler: Handler = partial(_run_nests, nests, tile)
            step = replace(step, handler=handler)
        steps.append(step)
    return Nests(module, tile, None, tuple(steps), tuple(remarks))


# ---------------------------------------------------------------- which nests


def _whole(module: Module) -> tuple[LoopNest, ...] | str:
    """A nest for each result of the entry; or why there are none."""
    entry = module.entry
    if has_effects(entry):
        return "something happens in it that is in no result"
    count = len(_shapes(entry.root))
    if count > MAX_RESULTS:
        return f"it has {count} results, more than {MAX_RESULTS}"
    if any(map(_is_dynamic, module.instructions)):
        return "the shape is dynamic"
    return _nests_of(entry, count)


def _nests(instruction: Instruction) -> tuple[LoopNest, ...] | str:
    """The nests of one instruction: none for what computes nothing; or why there are none."""
    if instruction.opcode == "constant" or isinstance(instruction.op, RoutingOp):
        return ()
    if not isinstance(instruction.op, MappedOp | InlineOp):
        return f"{instruction.opcode} is more than a formula of its operands"
    called = instruction.called_computations if isinstance(instruction.op, InlineOp) else ()
    inside = [inner for computation in called for inner in computation]
    if any(map(_is_dynamic, [instruction, *instruction.operands, *inside])):
        return "the shape is dynamic"
    return _nests_of(instruction, len(_shapes(instruction)))


def _nests_of(target: Instruction | Computation, count: int) -> tuple[LoopNest, ...] | str:
    """A nest for each of `count` results; or why there are none."""
    nests = []
    for number in range(count):
        nest = loop_nest(target, number)
        if isinstance(nest, Unknown):
            return nest.reason
        nests.append(nest)
    return tuple(nests)


def _shapes(instruction: Instruction) -> list[Shape]:
    return [leaf for _, leaf in leaves(instruction.shape) if isinstance(leaf, Shape)]


def _is_dynamic(instruction: Instruction) -> bool:
    return any(shape.is_dynamic for shape in _shapes(instruction))


def _check_tile(module: Module, tile: tuple[int, ...]) -> None:
    """One of the results can be cut into such boxes."""
    root = module.entry.root
    ranks = {shape.rank for shape in _shapes(root)}
    if len(tile) in ranks:
        return
    numbers = " or ".join(map(str, sorted(ranks))) or "no"
    sizes = ",".join(map(str, tile))
    message = f"the tile {sizes} is of rank {len(tile)}, but results are of rank {numbers}"
    listed = ", ".join(str(shape.with_layout(None)) for shape in _shapes(root)[:4])
    help = "give one size for each dimension of a result"  # noqa: A001 - the word of `HloError`
    raise ExecutionError(message, root.span, "inputs", f"gives {listed or 'no array'}", help=help)


def _check_iterations(
    nests: Sequence[LoopNest], tile: tuple[int, ...] | None, instruction: Instruction
) -> None:
    """Reject Python loops that would run for minutes."""
    turns = sum(nest.iterations for nest in nests)
    if tile is None and turns > MAX_ITERATIONS:
        message = (
            f"the loops for `{instruction.name}` take {turns} turns, more than {MAX_ITERATIONS}"
        )
        help = "run it as NumPy programs, with --tile"  # noqa: A001 - the word of `HloError`
        raise ExecutionError(message, instruction.span, "execution", help=help)


# ---------------------------------------------------------------- at work


def _run_nests(
    nests: tuple[LoopNest, ...],
    tile: tuple[int, ...] | None,
    machine: Machine,
    instruction: Instruction,
    operands: Sequence[Value],
) -> Value:
    """The handler of an instruction that is nests."""
    given = flattened(tuple(operands))
    found = [_by_nest(nest, given, tile) for nest in nests]
    return assembled(instruction.shape, iter(found))


def _by_nest(nest: LoopNest, given: Sequence[Array], tile: tuple[int, ...] | None) -> Array:
    if tile is None:
        return nest.run(*given)
    return nest.vectorized().run(*given, tile=_sizes(nest, tile))


def _sizes(nest: LoopNest, tile: tuple[int, ...]) -> tuple[int, ...]:
    """The box of a nest's result: `tile`, or everything if that has another rank."""
    dims = nest.output.dims
    return tile if len(tile) == len(dims) else tuple([max(n, 1) for n in dims])

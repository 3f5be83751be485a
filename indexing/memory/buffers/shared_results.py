"""Results that are written into the memory of an operand, by the module or by XLA's assignment."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple, TypeAlias

from hlo.modules.module import Instruction, Module
from hlo.shapes.shape import Shape, leaves
from indexing.maps.arrays import ArrayRef, Path, array_at
from indexing.memory.buffers.assignment import BufferAssignment
from indexing.memory.movement.writes import inner_update, is_view, updates_of, viewed_array
from indexing.ops.element import declarations_of

_ALIAS: Final = re.compile(r"\{([\d,\s]*)\}:\s*\((\d+),\s*\{([\d,\s]*)\}")


Places: TypeAlias = "dict[tuple[str, Path], tuple[int, int]]"
"""The allocation of an array, by instruction and leaf, and the offset in it."""


class SharedResult(NamedTuple):
    """A result in the memory of an operand.

    Attributes:
        instruction: the instruction that writes the result.
        operand: the number of the operand.
        path: the leaf of the result.
        why: what places it there.
    """

    instruction: Instruction
    operand: int
    path: Path
    why: str


def shared_results(
    module: Module, assignment: BufferAssignment | None = None
) -> list[SharedResult]:
    """Return the results of a module that are written into the memory of operands.

    They are updates in place, results that attributes or the header of the module alias with
    operands, and the pairs that XLA's buffer assignment gives the same memory.

    >>> import hlo
    >>> module = hlo.parse('''ENTRY e { x = f32[9] parameter(0)  i = s32[] parameter(1)
    ...   p = f32[9] negate(x)  u = f32[2] slice(x), slice={[0:2]}
    ...   ROOT r = f32[9] dynamic-update-slice(p, u, i) }''')
    >>> for each in shared_results(module):
    ...     print(each.instruction.name, each.operand, each.why)
    r 0 it updates the operand in place
    """
    results: dict[tuple[Instruction, int, Path], SharedResult] = {}
    places: Places = {} if assignment is None else places_of(assignment)
    for sharing in _donated_results(module):
        results.setdefault(sharing[:3], sharing)
    for each in _executed_instructions(module):
        for sharing in (*declared_shares(each), *assigned_shares(each, places)):
            results.setdefault(sharing[:3], sharing)
    return [each for each in results.values() if not _is_apart(each, places)]


def _is_apart(sharing: SharedResult, places: Places) -> bool:
    """Return True if an assignment gives a result other memory than its operand."""
    source = viewed_array(ArrayRef(sharing.instruction.operands[sharing.operand]))
    result = places.get((sharing.instruction.name, sharing.path))
    operand = places.get((source.instruction.name, source.path))
    return None not in (result, operand) and result != operand


def _donated_results(module: Module) -> Iterator[SharedResult]:
    """Yield results of a scheduled module in the memory of the parameters that they are made of.

    Before a module is scheduled, XLA may still add copies.
    """
    if not module.header("is_scheduled", False):
        return
    for alias in module.header("input_output_alias", ()):
        given = ArrayRef(module.entry.parameters[alias.parameter], alias.index)
        result = viewed_array(ArrayRef(module.entry.root, alias.output))
        for number, operand in enumerate(result.instruction.operands):
            is_given = isinstance(operand.shape, Shape) and viewed_array(ArrayRef(operand)) == given
            if is_given and result != given:
                yield SharedResult(
                    result.instruction, number, result.path, "input_output_alias of the module"
                )


def _executed_instructions(module: Module) -> Iterator[Instruction]:
    """Yield the instructions that write memory: not those inside of fusions."""
    inner = {
        called
        for each in module.instructions
        if each.called_computations and not _is_sequential(each)
        for called in each.called_computations
    }
    for computation in module.computations.values():
        if computation not in inner:
            yield from [each for each in computation.instructions if not is_view(each)]


def _is_sequential(instruction: Instruction) -> bool:
    """Return True if the instructions of called computations are executed one after another."""
    return instruction.opcode == "call" or declarations_of(instruction).is_control_flow


def declared_shares(each: Instruction) -> Iterator[SharedResult]:
    """Yield the results of an instruction that it writes into the memory of operands itself."""
    for update in updates_of(each):
        if update.is_in_place and not update.base.path:
            yield SharedResult(
                each, update.operand, update.output, "it updates the operand in place"
            )
    if each.computation.module.header("is_scheduled", False):
        yield from _updated_in_place(each)
    text = getattr(each.op, "output_to_operand_aliasing", "")
    for output, operand, inside in _ALIAS.findall(text):
        if not inside.strip():
            path = tuple([int(number) for number in output.split(",") if number.strip()])
            yield SharedResult(each, int(operand), path, "output_to_operand_aliasing")


def _updated_in_place(each: Instruction) -> Iterator[SharedResult]:
    """Yield the updates of slices and the scatters for which a scheduled module has no copy left.

    Source: XLA ``xla/hlo/analysis/hlo_dataflow_analysis.cc``, ``IsInPlaceOperation``.
    """
    for path, _ in leaves(each.shape):
        update = inner_update(each, path)
        if update is not None and (update.instruction is each or update.is_only_read):
            yield SharedResult(each, update.operand, path, "XLA updates the operand in place")


def places_of(assignment: BufferAssignment) -> Places:
    """Return the place of each array that takes memory."""
    return {
        (value.name, value.path): (allocation.number, value.offset)
        for allocation in assignment.allocations
        for value in allocation.values
        if isinstance(value.shape, Shape) and value.size
    }


def assigned_shares(each: Instruction, places: Places) -> Iterator[SharedResult]:
    """Yield the results of an instruction whose place is that of an operand."""
    for path, _ in leaves(each.shape):
        place = places.get((each.name, path))
        if place is None or array_at(each.shape, path) is None:
            continue
        for number, operand in enumerate(each.operands):
            if isinstance(operand.shape, Shape):
                source = viewed_array(ArrayRef(operand))
                if places.get((source.instruction.name, source.path)) == place:
                    yield SharedResult(each, number, path, "XLA's buffer assignment")

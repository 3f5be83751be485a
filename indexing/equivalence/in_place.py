"""Updates in place: may an instruction write its result into the memory of an operand?

A loop computes the elements of the result one by one, in any order or in parallel.  It may write
over an operand if the computation of an element reads, of this operand, at most the place that
the element is written to.  An update of a slice, or a scatter, writes only the elements of its
updates; the others stay in memory as they are.

Source: XLA ``xla/hlo/analysis/hlo_dataflow_analysis.cc``, ``CanShareOperandBufferWithUser``, which
decides it by the opcodes in a fusion: openxla/xla#49176 has a fusion for which that is wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from hlo.arguments import checked
from hlo.modules.module import Instruction
from hlo.shapes.shape import Shape, leaves
from indexing.dataflow.needed import dependencies_of
from indexing.dataflow.queries import output_to_input, to_parameters
from indexing.dataflow.runtime import fold_runtime
from indexing.equivalence.verdicts import Differs, ElementIndex, Proved, Undecided
from indexing.equivalence.written_places import OverwrittenElement, Written, first_violation
from indexing.maps.arrays import ArrayRef, Path, array_at, array_name
from indexing.maps.indexing_map import IndexingMap
from indexing.memory.buffers.shared_results import declared_shares
from indexing.memory.movement.writes import inner_array, inner_update, reads_of, viewed_array
from indexing.ops.dynamic import DynamicUpdateSlice
from indexing.ops.element import OpaqueRule, element_of
from indexing.ops.structured_ops import InlineOp

SAFE: Final = "each element reads only the place that it is written to"
DECLARED: Final = "the call declares it, and is trusted"
KEPT: Final = "the updates do not read the operand, and all else stays in memory"


@dataclass(frozen=True, slots=True)
class Safe(Proved):
    """A proof that a result may be written over an operand; `note` is the reason."""

    def __str__(self) -> str:
        return f"safe in place: {self.note}"


@dataclass(frozen=True, slots=True)
class Hazard(Differs):
    """An element of an operand that is read after another element was written to its place.

    Attributes:
        reader: the element of the result whose computation reads it, or the instruction that reads
            the operand later.
        writer: the element of the result that is written to its place.
        operand_element: its index in the operand.

    >>> import hlo, indexing
    >>> text = "ENTRY e { p = f32[5] parameter(0)  ROOT r = f32[5] reverse(p), dimensions={0} }"
    >>> hazard = indexing.in_place(hlo.parse(text).entry.root, 0)
    >>> hazard.reader, hazard.writer, hazard.operand_element
    ((3,), (1,), (1,))
    """

    reader: ElementIndex | Instruction = ()
    writer: ElementIndex | None = None
    operand_element: ElementIndex | None = None

    def __str__(self) -> str:
        return f"not safe in place: {self.reason}"


@checked
def in_place(
    instruction: Instruction, operand: int | str = 0, output: Path | None = None
) -> Proved | Differs | Undecided:
    """Decide whether an instruction may write a result into the memory of an operand.

    Args:
        operand: the number or the name of the operand.
        output: the leaf of the result; by default, the first of the operand's size in memory.

    Returns:
        `Proved` if it is safe, with the reason as `note`; a `Hazard`, which is a `Differs`, with an
        element that is read after its place was written; `Undecided` with the reason.
    Raises:
        ValueError: no operand has this name, or no leaf of the result has the operand's size.
        IndexError: no operand has this number.

    >>> import hlo, indexing
    >>> module = hlo.parse('''
    ... shifted { p = f32[9] parameter(0)  z = f32[] constant(0)
    ...   s = f32[9] pad(p, z), padding=1_-1  ROOT a = f32[9] add(p, s) }
    ... doubled { p = f32[9] parameter(0)  ROOT a = f32[9] add(p, p) }
    ... ENTRY e { p = f32[9] parameter(0)
    ...   a = f32[9] fusion(p), kind=kLoop, calls=doubled
    ...   ROOT b = f32[9] fusion(a), kind=kLoop, calls=shifted }''')
    >>> print(indexing.in_place(module.entry["a"]))
    safe in place: each element reads only the place that it is written to
    >>> print(indexing.in_place(module.entry.root))
    not safe in place: element [1] of `b` reads [0] of `a`, where element [0] is written
    """
    number = _number(instruction, operand)
    array = ArrayRef(instruction.operands[number])
    shape = array.shape
    if not isinstance(shape, Shape):
        return Undecided(f"`{instruction.operands[number].name}` is {shape}, not an array")
    path = _leaf(instruction, shape) if output is None else output
    result = array_at(instruction.shape, path)
    if result is None or result.physical_bytes != shape.physical_bytes:
        raise ValueError(f"no array of `{instruction.name}` has the size of {shape}")
    verdict = decide(instruction, number, path, Written(result, shape))
    if verdict and (later := _later_reader(array, instruction)) is not None:
        name = array_name(array)
        reason = f"`{later.name}` reads `{name}` after `{instruction.name}` wrote to its memory"
        return Hazard(0, (), reason, "values", reader=later)
    return verdict


def _number(instruction: Instruction, operand: int | str) -> int:
    names = [each.name for each in instruction.operands]
    if isinstance(operand, int):
        if not 0 <= operand < len(names):
            raise IndexError(f"`{instruction.name}` has {len(names)} operands, not {operand + 1}")
        return operand
    if operand not in names:
        raise ValueError(f"`{instruction.name}` has no operand `{operand}`: {', '.join(names)}")
    return names.index(operand)


def _leaf(instruction: Instruction, shape: Shape) -> Path:
    """Return the first leaf of the result with the size of a shape."""
    for path, leaf in leaves(instruction.shape):
        if isinstance(leaf, Shape) and leaf.physical_bytes == shape.physical_bytes:
            return path
    raise ValueError(f"no array of `{instruction.name}` has the size of {shape}")


def _later_reader(array: ArrayRef, instruction: Instruction) -> Instruction | None:
    """Return an instruction that reads an array after another, in the order of the text."""
    source = viewed_array(array)
    order = list(instruction.computation.instructions)
    after = set(order[order.index(instruction) + 1 :])
    reads = [each for each in reads_of(source) if each[0] in after]
    return next((reader for reader, number in reads if _needs(reader, number)), None)


def _needs(reader: Instruction, number: int) -> bool:
    """Return False if no result of an instruction depends on an operand."""
    arrays = [isinstance(leaf, Shape) for _, leaf in leaves(reader.shape)]
    if not isinstance(reader.operands[number].shape, Shape) or not all(arrays) or not arrays:
        return True
    answers = [output_to_input(reader, output) for output in range(len(arrays))]
    return any(each.maps[number] or each.unknown[number] is not None for each in answers)


def decide(
    instruction: Instruction, number: int, path: Path, written: Written
) -> Proved | Differs | Undecided:
    """Decide whether an instruction may write a result over what it reads of an operand.

    Args:
        number, path: the operand, and the leaf of the result.
        written: where both are in memory.
    """
    update = inner_update(instruction, path)
    if update is not None and update.operand == number:
        if not written.is_same_place:
            return Undecided(f"`{update.instruction.name}` updates it at another place")
        return _decide_update(instruction, number, path, update.instruction)
    if instruction.called_computations and not isinstance(instruction.op, InlineOp):
        return Undecided(f"`{instruction.name}` calls computations", instruction)
    if isinstance(element_of(inner_array(instruction, path).instruction), OpaqueRule):
        own = instruction, number, path
        declared = any(each[:3] == own for each in declared_shares(instruction))
        if declared and written.is_same_place:
            return Safe("values", note=DECLARED)
        return Undecided(f"`{instruction.opcode}` is no loop over elements", instruction)
    return _decide_loop(instruction, number, path, written)


def _decide_loop(
    instruction: Instruction, number: int, path: Path, written: Written
) -> Proved | Differs | Undecided:
    """Decide on a loop over the elements of its results."""
    verdict: Proved | Differs | Undecided = Safe("values", note=SAFE)
    for output, (each, leaf) in enumerate(leaves(instruction.shape)):
        if not isinstance(leaf, Shape):
            continue
        answer = output_to_input(instruction, output)
        maps = answer.maps[number]
        if (unknown := answer.unknown[number]) is not None:
            return Undecided(str(unknown), instruction)
        if each != path and maps and leaf.dims != written.result.dims:
            return Undecided(f"result {array_name(ArrayRef(instruction, each))} reads it, too")
        violation = first_violation(maps, written)
        if isinstance(violation, Undecided):
            verdict = violation
        elif violation is not None:
            return _hazard(instruction, number, output, violation)
    return verdict


# ---------------------------------------------------------------- updates


def _decide_update(
    instruction: Instruction, number: int, path: Path, update: Instruction
) -> Proved | Differs | Undecided:
    """Decide on an update that writes only the elements of its update."""
    base = ArrayRef(instruction.operands[number])
    if update is not instruction:
        base = ArrayRef(instruction.called_computations[0].parameters[number])
    for output, (each, _) in enumerate(leaves(instruction.shape)):
        if each != path and output_to_input(instruction, output).maps[number]:
            other = array_name(ArrayRef(instruction, each))
            return Undecided(f"result {other} reads it, too", instruction)
    others = [
        k for k in range(1, len(update.operands)) if _reads_base(instruction, update, k, base)
    ]
    if not others:
        return Safe("values", note=KEPT)
    if not isinstance(update.op, DynamicUpdateSlice) or others != [1]:
        return Undecided(f"what decides the places of updates reads `{base.instruction.name}`")
    return _decide_window(instruction, number, update, base)


def _decide_window(
    instruction: Instruction, number: int, update: Instruction, base: ArrayRef
) -> Proved | Differs | Undecided:
    """Decide on a dynamic-update-slice whose update reads its base."""
    source, shape, is_whole = update.operands[1], update.shape, update is instruction
    if is_whole and not _is_same_array(source, base.instruction):
        return Undecided(f"`{source.name}` is a view of `{base.instruction.name}`", instruction)
    assert isinstance(shape, Shape)
    violation = first_violation(_written_reads(update, base, is_whole), Written(shape, shape))
    if violation is None:
        return Safe("values", note=SAFE)
    if isinstance(violation, Undecided):
        return violation
    return _hazard(instruction, number, 0, violation)


def _reads_base(instruction: Instruction, update: Instruction, number: int, base: ArrayRef) -> bool:
    """Return True if an operand of an update may be computed from its base while it is written.

    In a fusion, it is, if it needs the base.  What an instruction of its own computes is complete
    before the update: the update reads the base only if the operand is an array in its memory.
    """
    operand = update.operands[number]
    if update is not instruction:
        return base.instruction in dependencies_of([operand])
    return viewed_array(ArrayRef(operand)) == viewed_array(base)


def _is_same_array(source: Instruction, base: Instruction) -> bool:
    """Return True if an array in the memory of a base has each element at the same place."""
    here, there = source.shape, base.shape
    assert isinstance(here, Shape)
    assert isinstance(there, Shape)
    same_sizes = here.dims == there.dims and here.element_bits == there.element_bits
    return same_sizes and here.layout_or_default == there.layout_or_default


def _written_reads(update: Instruction, base: ArrayRef, is_whole: bool) -> Iterator[IndexingMap]:
    """Yield the maps from the elements that an update writes to those of the base that it reads.

    Args:
        is_whole: what is written is the base itself.
    """
    source = update.operands[1]
    reads: Iterable[IndexingMap]
    if is_whole or base.instruction is source:
        assert isinstance(source.shape, Shape)
        reads = (IndexingMap.identity(source.shape),)
    else:
        numbers = list(update.computation.parameters)
        reads = to_parameters(source, 0).maps[numbers.index(base.instruction)]
    for first in output_to_input(update, 0).maps[1]:
        for place in fold_runtime(first):
            for read in reads:
                yield from fold_runtime(place.then(read))


# ---------------------------------------------------------------- loops


def _hazard(
    instruction: Instruction, number: int, output: int, violation: OverwrittenElement
) -> Differs | Undecided:
    """Return the verdict on a point that reads an element at the place of another."""
    name = instruction.operands[number].name
    point, element, writer = violation.point, violation.element, violation.writer
    written = "padding" if writer is None else f"element {list(writer)} is written"
    read = f"element {list(point)} of `{instruction.name}` reads {list(element)} of `{name}`"
    reason = f"{read}, where {written}"
    kind = getattr(instruction.op, "kind", "kLoop")
    if kind != "kLoop":
        return Undecided(f"a fusion of {kind} may read it before it is written: {reason}")
    return Hazard(
        output,
        point,
        reason,
        "values",
        reader=point,
        writer=writer,
        operand_element=element,
    )

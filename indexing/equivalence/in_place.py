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
from hlo.modules.module import Instruction, Module
from hlo.shapes.shape import Shape, leaves
from hlo.shapes.tiling import index_at
from hlo.text.source import HloError
from indexing.dataflow.needed import needed_by
from indexing.dataflow.queries import output_to_input, to_parameters
from indexing.dataflow.runtime import fold_runtime
from indexing.equivalence.verdicts import Differs, ElementIndex, Proved, Undecided
from indexing.maps.arrays import ArrayRef, Path, array_at, array_name
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.layouts import physical_map
from indexing.memory.buffers.assignment import BufferAssignment
from indexing.memory.buffers.shared_results import SharedResult, declared_shares, shared_results
from indexing.memory.movement.writes import inner_array, reads_of, viewed_array
from indexing.ops.dynamic import DynamicUpdateSlice
from indexing.ops.element import OpaqueRule, element_of
from indexing.ops.scatter import Scatter
from indexing.ops.structured_ops import InlineOp
from simplifier import exact
from simplifier.constraints import Constraint
from simplifier.exact import unions
from simplifier.unknown import Unknown

SAFE: Final = "each element of the result reads only the place that it is written to"
MAX_VALUES: Final = 256
"""Limit on the values of a runtime variable that are tried one by one."""
DECLARED: Final = "the call declares that it writes over the operand, and is trusted"
KEPT: Final = "the updates do not read the operand, and what they do not write stays in memory"


@dataclass(frozen=True, slots=True)
class Hazard(Differs):
    """An element of an operand that is read after another element was written to its place.

    Attributes:
        reader: the element of the result whose computation reads it, or the instruction that reads
            the operand later.
        writer: the element of the result that is written to its place.
        operand_element: its index in the operand.
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
        `Proved` if it is safe; a `Hazard`, which is a `Differs`, with an element that is read after
        its place was written; `Undecided` with the reason.
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
    >>> bool(indexing.in_place(module.entry["a"]))
    True
    >>> print(indexing.in_place(module.entry.root))
    not safe in place: element [8] of `b` reads [7] of `a`, where element [7] is written
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
    verdict = _decide(instruction, number, path, result, shape)
    if verdict and (later := _later_reader(array, instruction)) is not None:
        name = array_name(array)
        reason = f"`{later.name}` reads `{name}` after `{instruction.name}` wrote to its memory"
        return Hazard(0, (), reason, "values", reader=later)
    return verdict


@dataclass(frozen=True, slots=True)
class SharedMemory:
    """Verdicts on the results of a module that are in the memory of operands.

    Attributes:
        errors: the results that are not safe.
        undecided: the others that are not proved safe, as text.
        safe: the number of results that are safe.
    """

    errors: tuple[HloError, ...]
    undecided: tuple[str, ...]
    safe: int


def check_in_place(module: Module, assignment: BufferAssignment | None = None) -> SharedMemory:
    """Decide on the results of a module that are written into the memory of operands."""
    errors, undecided, safe = [], [], 0
    for sharing in shared_results(module, assignment):
        each = sharing.instruction
        verdict = _shared(sharing)
        name = f"`{each.name}` in the memory of `{each.operands[sharing.operand].name}`"
        if isinstance(verdict, Proved):
            safe += 1
        elif isinstance(verdict, Differs):
            notes = [f"{name}: {sharing.why}"]
            errors.append(HloError(verdict.reason, each.span, "in-place", notes=notes))
        else:
            undecided.append(f"{name}: {verdict}")
    return SharedMemory(tuple(errors), tuple(undecided), safe)


def _shared(sharing: SharedResult) -> Proved | Differs | Undecided:
    """Decide on a result in the memory of an operand."""
    each = sharing.instruction
    result = array_at(each.shape, sharing.path)
    operand = each.operands[sharing.operand].shape
    if (
        result is not None
        and isinstance(operand, Shape)
        and result.physical_bytes != operand.physical_bytes
    ):
        sizes = f"{result.physical_bytes:,} and {operand.physical_bytes:,} bytes"
        return Undecided(f"one begins where the other does, and they have {sizes}", each)
    return in_place(each, sharing.operand, sharing.path)


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
    return next((reader for reader, _ in reads_of(source) if reader in after), None)


def _decide(
    instruction: Instruction, number: int, path: Path, result: Shape, shape: Shape
) -> Proved | Differs | Undecided:
    update = _update(instruction, number, path)
    if update is not None:
        return _decide_update(instruction, number, path, update)
    if instruction.called_computations and not isinstance(instruction.op, InlineOp):
        return Undecided(f"`{instruction.name}` calls computations", instruction)
    if isinstance(element_of(inner_array(instruction, path).instruction), OpaqueRule):
        own = instruction, number, path
        if any(each[:3] == own for each in declared_shares(instruction)):
            return Proved("values", note=DECLARED)
        return Undecided(f"`{instruction.opcode}` is no loop over elements", instruction)
    verdict: Proved | Differs | Undecided = Proved("values", note=SAFE)
    for output, (each, leaf) in enumerate(leaves(instruction.shape)):
        if not isinstance(leaf, Shape):
            continue
        maps = output_to_input(instruction, output).maps[number]
        if each != path and maps and leaf.dims != result.dims:
            return Undecided(f"result {array_name(ArrayRef(instruction, each))} reads it, too")
        violation = _first_violation(maps, result, shape)
        if isinstance(violation, Undecided):
            verdict = violation
        elif violation is not None:
            return _hazard(instruction, number, output, violation)
    return verdict


def _update(instruction: Instruction, number: int, path: Path) -> Instruction | None:
    """Return the update of a slice, or the scatter, whose base is an operand."""
    inner = inner_array(instruction, path).instruction
    if not isinstance(inner.op, DynamicUpdateSlice | Scatter):
        return None
    if inner is instruction:
        return inner if number == 0 else None
    base = viewed_array(ArrayRef(inner.operands[0]))
    parameters = list(instruction.called_computations[0].parameters)
    return inner if base.instruction is parameters[number] else None


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
        k for k, each in enumerate(update.operands) if k and base.instruction in needed_by([each])
    ]
    if not others:
        return Proved("values", note=KEPT)
    if not isinstance(update.op, DynamicUpdateSlice) or others != [1]:
        return Undecided(f"what decides the places of updates reads `{base.instruction.name}`")
    shape = update.shape
    assert isinstance(shape, Shape)
    violation = _first_violation(_written_reads(update, base), shape, shape)
    if violation is None:
        return Proved("values", note=SAFE)
    if isinstance(violation, Undecided):
        return violation
    return _hazard(instruction, number, 0, violation)


def _written_reads(update: Instruction, base: ArrayRef) -> Iterator[IndexingMap]:
    """Yield the maps from the elements that an update writes to those of the base that it reads."""
    source = update.operands[1]
    reads: Iterable[IndexingMap]
    if base.instruction is source:
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
    instruction: Instruction, number: int, output: int, violation: _Violation
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


@dataclass(frozen=True, slots=True)
class _Violation:
    """A point that reads an element at the place of another."""

    point: tuple[int, ...]
    element: ElementIndex
    writer: ElementIndex | None


def _first_violation(
    maps: Iterable[IndexingMap], result: Shape, shape: Shape
) -> _Violation | Undecided | None:
    """Return a point that reads an element at another place than its own; None without any."""
    undecided: Undecided | None = None
    here, there = physical_map(result), physical_map(shape)
    for m in maps:
        point = _violation(m, here, there)
        if point is None:
            continue
        if isinstance(point, Unknown):
            undecided = Undecided(str(point))
            continue
        place = point[len(m.dims) + len(m.runtime)]
        if m.grade == "may" or (m.runtime and not _is_violated_always(m, here, there)):
            why = "is over-approximated" if m.grade == "may" else "depends on values"
            undecided = Undecided(f"which elements are read {why}: {m}")
            continue
        element = index_at(place, shape.dims, shape.layout_or_default)
        writer = index_at(place, result.dims, result.layout_or_default)
        if element is not None:
            return _Violation(point[: len(m.dims)], element, writer)
    return undecided


def _is_violated_always(m: IndexingMap, here: IndexingMap, there: IndexingMap) -> bool:
    """Return True if each value of the only runtime variable has such a point."""
    if len(m.runtime) > 1:
        return False
    variable = m.runtime[0].variable
    low, high = variable.bounds
    if high - low >= MAX_VALUES:
        return False
    for value in range(low, high + 1):
        fixed = m.with_constraints([Constraint(variable.as_expr(), value, value)])
        point = _violation(fixed, here, there)
        if point is None or isinstance(point, Unknown):
            return False
    return True


def _violation(
    m: IndexingMap, here: IndexingMap, there: IndexingMap
) -> tuple[int, ...] | Unknown | None:
    """Return dims, runtime values and the place of a read that is not the place of the dims."""
    placed = m.then(there)
    inputs = (*placed.dims, *[rt.variable for rt in placed.runtime])
    hidden = tuple(v for v in placed.variables if v not in inputs)
    reads = exact.Relation(inputs, hidden, placed.results, placed.constraints)
    own = dict(zip(here.dims, [d.as_expr() for d in placed.dims], strict=True))
    results, _ = here.substituted(own)
    writes = exact.Relation(inputs, (), tuple(results), ())
    violation = unions.only_first([reads], [writes])
    return violation if violation is None or isinstance(violation, Unknown) else tuple(violation)

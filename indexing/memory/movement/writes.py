"""Writes: the instructions that move bytes, and the bytes that they write."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

from hlo.modules.module import Computation, Instruction
from hlo.shapes.shape import Shape, leaves, unbounded_leaf
from indexing.dataflow.copies import source_of
from indexing.dataflow.scalars import scalar_value
from indexing.dataflow.soundness import fault_of
from indexing.maps.arrays import ArrayRef, Path
from indexing.memory.movement.amounts import Amount
from indexing.memory.movement.part_padding import ArrayPart, padding_of_part
from indexing.ops.control import While, callees
from indexing.ops.dynamic import DynamicUpdateSlice
from indexing.ops.element import declarations_of
from indexing.ops.scatter import Scatter
from indexing.ops.structured_ops import InlineOp
from simplifier.interval import Interval
from simplifier.unknown import Unknown


def moves_bytes(instruction: Instruction) -> bool:
    """Return True if an instruction reads or writes arrays in memory.

    A `while`, `call` or `conditional` moves what the instructions of its computations move.
    """
    declared = declarations_of(instruction)
    return declared.moves_bytes and not declared.is_view


def is_view(instruction: Instruction) -> bool:
    """Return True if the result shares the memory of operands: a bitcast, tuple or the like."""
    return declarations_of(instruction).is_view


@dataclass(frozen=True, slots=True)
class Update:
    """A dynamic-update-slice that determines an output of an instruction.

    Attributes:
        instruction: the dynamic-update-slice.
        output: the path of the output.
        operand: the number of the operand that holds the base.
        base: the array that is updated.
        is_in_place: the update may be written into the memory of the base.
    """

    instruction: Instruction
    output: Path
    operand: int
    base: ArrayRef
    is_in_place: bool

    @property
    def shape(self) -> Shape:
        """The shape of the update, in the memory of the base."""
        base, update = self.instruction.shape, self.instruction.operands[1].shape
        assert isinstance(base, Shape)
        assert isinstance(update, Shape)
        return replace(update, layout=base.layout)

    @property
    def elements(self) -> int:
        """The number of elements of the update."""
        return self.shape.size

    @property
    def padding(self) -> Amount:
        """The bytes of padding in the tiles of the base's layout that hold the update."""
        base, sizes = self.instruction.shape, self.shape.dims
        assert isinstance(base, Shape)
        padding = base.physical_bytes - base.bytes
        if not padding or not self.elements:
            return Amount(0)
        starts = [
            _start(self.instruction, k, length - size)
            for k, (length, size) in enumerate(zip(base.dims, sizes, strict=True))
        ]
        known = padding_of_part(ArrayPart.window(sizes, starts), base)
        return Amount(padding, "may") if known is None else known


class WrittenArray(NamedTuple):
    """An array of a result, or the part of it that is written.

    Attributes:
        shape: the shape of the array; of the update if only an update is written.
        padding: the bytes of padding in the tiles of the layout that hold what is written.
    """

    shape: Shape
    padding: Amount


Writes: TypeAlias = "tuple[WrittenArray, ...] | Unknown"


def _start(update: Instruction, dimension: int, last: int) -> Interval:
    """Return bounds of the start of an update along a dimension, which is clamped to `last`."""
    starts = update.operands[2:]
    value = scalar_value(ArrayRef(starts[dimension])) if dimension < len(starts) else None
    if value is None:  # also if one operand holds all starts
        return 0, last
    start = min(max(value, 0), last)
    return start, start


def writes_of(instruction: Instruction, updates: tuple[Update, ...]) -> Writes:
    """Return the arrays that an instruction writes."""
    if leaf := unbounded_leaf(instruction.shape):
        return Unknown(
            f"{instruction.opcode} `{instruction.name}`: {leaf} has a dimension of unknown size",
            instruction,
        )
    declared = declarations_of(instruction)
    written = declared.written
    in_place = {update.output: update for update in updates if update.is_in_place}
    arrays = []
    for path, leaf_shape in leaves(instruction.shape):
        is_written = written is None or path[:1] in [(number,) for number in written]
        is_written = is_written and declared.is_value(instruction, path)
        if is_written and isinstance(leaf_shape, Shape):
            part = in_place.get(path)
            if part is None:
                padding = Amount(leaf_shape.physical_bytes - leaf_shape.bytes)
                arrays.append(WrittenArray(leaf_shape, padding))
            else:
                arrays.append(WrittenArray(part.shape, part.padding))
    return tuple(arrays)


def dense_bytes(writes: Writes) -> int | Unknown:
    """Return the bytes of the elements of arrays that are written, without padding."""
    return writes if isinstance(writes, Unknown) else sum(each.shape.bytes for each in writes)


def updates_of(instruction: Instruction) -> tuple[Update, ...]:
    """Return the dynamic-update-slices that determine outputs of an instruction.

    The base of an update in a fusion must be an operand that is read as the base only.
    """
    updates: list[Update] = []
    for path, _ in leaves(instruction.shape):
        update = _update(instruction, path)
        if update is not None:
            is_first = all(update.base != other.base for other in updates)
            updates.append(replace(update, is_in_place=update.is_in_place and is_first))
    return tuple(updates)


def _update(instruction: Instruction, output: Path) -> Update | None:
    inner = inner_update(instruction, output)
    if inner is None or not inner.is_slice or unbounded_leaf(inner.instruction.shape):
        return None
    base = inner.base
    if inner.instruction is not instruction:
        if not inner.is_only_read:
            return None
        base = ArrayRef(instruction.operands[inner.operand], base.path)
    return Update(inner.instruction, output, inner.operand, base, _is_reusable(base, instruction))


class InnerUpdate(NamedTuple):
    """The update of a slice, or the scatter, that computes an array of a result.

    Attributes:
        instruction: the update; for a fusion, inside of it.
        operand: the number of the operand, of the fusion or of the update itself, with its base.
        base: the array that is updated, in the computation of the update.
    """

    instruction: Instruction
    operand: int
    base: ArrayRef

    @property
    def is_slice(self) -> bool:
        """True for the update of a slice, False for a scatter."""
        return isinstance(self.instruction.op, DynamicUpdateSlice)

    @property
    def is_only_read(self) -> bool:
        """True if only the update reads the base in its computation, as the base."""
        return reads_of(viewed_array(self.base)) == [(self.instruction, 0)]


def inner_update(instruction: Instruction, output: Path) -> InnerUpdate | None:
    """Return the update whose base is an operand; None if another instruction computes the array.

    An array of a scatter of several arrays is no update of the first one.

    >>> import hlo
    >>> module = hlo.parse('''
    ... f { p = f32[2] parameter(0)  q = f32[9] parameter(1)  i = s32[] parameter(2)
    ...   ROOT u = f32[9] dynamic-update-slice(q, p, i) }
    ... ENTRY e { p = f32[2] parameter(0)  q = f32[9] parameter(1)  i = s32[] parameter(2)
    ...   ROOT r = f32[9] fusion(p, q, i), kind=kLoop, calls=f }''')
    >>> update = inner_update(module.entry.root, ())
    >>> update.instruction.name, update.operand
    ('u', 1)
    """
    inner = inner_array(instruction, output)
    update = inner.instruction
    if inner.path or not isinstance(update.op, DynamicUpdateSlice | Scatter):
        return None
    base = ArrayRef(update.operands[0])
    if update is instruction:
        return InnerUpdate(update, 0, base)
    base = viewed_array(base)
    parameters = list(instruction.called_computations[0].parameters)
    if base.instruction not in parameters:
        return None
    return InnerUpdate(update, parameters.index(base.instruction), base)


def _is_reusable(array: ArrayRef, reader: Instruction) -> bool:
    """Return True if the memory of an array may hold the result of its only reader."""
    source = viewed_array(array)
    holder = source.instruction
    arrays = [ArrayRef(o, path) for o in reader.operands for path, _ in leaves(o.shape)]
    is_read_once = [viewed_array(each) for each in arrays].count(source) == 1
    if readers(source) != {reader} or not is_read_once or holder.opcode == "constant":
        return False
    if holder.opcode != "parameter":
        return True
    if holder.computation.is_entry:
        number = holder.computation.parameters.index(holder)
        aliases = holder.computation.module.header("input_output_alias", ())
        return any((a.parameter, a.index) == (number, source.path) for a in aliases)
    return _is_loop_body(holder.computation)


def _is_loop_body(computation: Computation) -> bool:
    """Return True if a computation is only the body of loops: it owns the memory of its state."""

    def uses() -> dict[Computation, set[bool]]:
        is_body: dict[Computation, set[bool]] = {}
        for instruction in computation.module.instructions:
            is_loop = isinstance(instruction.op, While) and not fault_of(instruction)
            bodies = callees(instruction, "body") if is_loop else ()
            for called in instruction.called_computations:
                is_body.setdefault(called, set()).add(called in bodies)
        return is_body

    by_computation = computation.module.memoised((_is_loop_body, "uses"), uses)
    return by_computation.get(computation) == {True}


def inner_array(instruction: Instruction, output: Path) -> ArrayRef:
    """Return the array that computes a leaf of a result, inside of a fusion."""
    if not isinstance(instruction.op, InlineOp):
        return ArrayRef(instruction, output)
    return viewed_array(ArrayRef(instruction.called_computations[0].root, output))


def viewed_array(array: ArrayRef) -> ArrayRef:
    """Return the array whose memory an array shares within its computation."""
    while True:
        instruction = array.instruction
        if instruction.opcode == "bitcast":
            array = ArrayRef(instruction.operands[0])
        elif is_view(instruction):
            forwarded = source_of(array)
            assert forwarded is not None
            array = forwarded
        else:
            return array


def readers(source: ArrayRef) -> set[Instruction]:
    """Return the instructions that read an array or return it from the computation."""
    return {reader for reader, _ in reads_of(source)}


def reads_of(source: ArrayRef) -> list[tuple[Instruction, int]]:
    """Return the reads of an array: each reader with the number of the operand, in text order.

    An instruction that reads an array as several operands has several reads of it.
    """
    computation = source.instruction.computation

    def by_array() -> dict[ArrayRef, list[tuple[Instruction, int]]]:
        reads: dict[ArrayRef, list[tuple[Instruction, int]]] = {}
        for reader, number, array in _reads(computation):
            reads.setdefault(viewed_array(array), []).append((reader, number))
        return reads

    every = computation.memoised(reads_of, by_array)
    return every.get(source, [])


def _reads(computation: Computation) -> Iterator[tuple[Instruction, int, ArrayRef]]:
    for instruction in computation.instructions:
        is_read = instruction.is_root or not is_view(instruction)
        for number, operand in enumerate(instruction.operands) if is_read else ():
            for path, _ in leaves(operand.shape):
                yield instruction, number, ArrayRef(operand, path)

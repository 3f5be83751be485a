"""Copies: which two demands conflict, what a copy costs, and whether the program needs it.

A copy changes the layout or the memory space of an array, or keeps a value that is overwritten.
The array has its layout from what writes it, and gets another because of what reads the copy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Final

from hlo.arguments import checked
from hlo.modules.module import Instruction, Module
from hlo.shapes.layout import Layout
from hlo.shapes.shape import Shape, leaves
from indexing.maps.arrays import ArrayRef, array_name
from indexing.memory.buffers.layout_demands import layout_demand
from indexing.memory.buffers.layout_proposals import (
    End,
    EntryCopies,
    LayoutProposal,
    is_computed_by_elements,
)
from indexing.memory.buffers.moved_elements import (
    CopyKind,
    copied_operand,
    copied_path,
    kind_of_copy,
    source_of_move,
)
from indexing.memory.buffers.shared_results import declared_shares
from indexing.memory.buffers.values import Lives, Value, lives_of
from indexing.memory.executions import executions
from indexing.memory.movement.writes import is_view, reads_of, updates_of, viewed_array
from indexing.memory.spaces import is_for_tpu, space_name, space_of
from indexing.ops.base import MappedOp
from indexing.ops.control import While
from indexing.ops.element import CopyRule, OpaqueRule, declarations_of, element_of
from indexing.ops.scatter import Scatter
from indexing.ops.structured_ops import InlineOp
from simplifier.unknown import Unknown

FREE: Final = "a loop that reads any layout"
FREE_WRITER: Final = "a loop that can write this layout"


@dataclass(frozen=True, slots=True)
class ArrayCopy:
    """An instruction that only moves the elements of an array.

    Attributes:
        instruction: the copy, or a fusion of copies, transposes, pads and the like.
        kind: what it changes: the layout, the memory space, nothing but the place of the value, or
            the places of elements in the array (`movement`).
        source: the array that is copied.
        bytes: the bytes in memory that one execution reads and writes, with padding.
        executions: the number of executions; the least, if it is not known.
        written_by: what gives the source its layout and space.
        read_by: what wants the other layout or space.
        needed: False if the copy can go, True if it cannot, None if that is not known.
        why: the reason.
        proposal: the layouts in which the copy is superfluous, or why there are none.

    >>> import hlo, indexing
    >>> text = "ENTRY e { p = f32[64,32]{1,0} parameter(0)  ROOT c = f32[64,32]{0,1} copy(p) }"
    >>> (copy,) = indexing.copies(hlo.parse(text))
    >>> copy.kind, copy.bytes, copy.moved, copy.needed  # 8,192 bytes read, 8,192 written, once
    ('layout', 16384, 16384, True)
    """

    instruction: Instruction
    kind: CopyKind
    source: ArrayRef
    bytes: int
    executions: int
    written_by: str
    read_by: str
    needed: bool | None
    why: str
    proposal: LayoutProposal | Unknown

    @property
    def moved(self) -> int:
        """The bytes of all executions; the least, if their number is not known."""
        return self.bytes * self.executions

    def __str__(self) -> str:
        ends = f"{self.written_by} -> {self.read_by}"
        need = "unknown" if self.needed is None else "needed" if self.needed else "not needed"
        moved = f"{self.instruction.name}: {self.kind}, {self.bytes:,} bytes"
        return f"{moved}: {ends}; {need}: {self.why}"


@checked
def copies(module: Module) -> tuple[ArrayCopy, ...]:
    """Return the copies of a module outside of fusions, those that move the most bytes first.

    Returns:
        The copies; none if calls are nested too deep, or called too often.
    Raises:
        HloError: an instruction is invalid.

    >>> import hlo
    >>> [copy.kind for copy in copies(hlo.load("examples/targets/attention.tpu_v5e.hlo"))]
    ['layout', 'layout', 'space', 'space']
    """
    lives = lives_of(module)
    if isinstance(lives, Unknown):
        return ()
    memory, entry, counts = _Memory(lives), EntryCopies(module), executions(module)
    answers = [
        _explain_copy(each, movement, memory, entry, counts[each.computation].lower)
        for each in dict.fromkeys(lives.steps)
        if (movement := source_of_move(each)) is not None
    ]
    order = {each: number for number, each in enumerate(module.instructions)}
    answers.sort(key=lambda copy: (-copy.moved, order[copy.instruction]))
    return _without_conflicts(answers)


def _without_conflicts(answers: Sequence[ArrayCopy]) -> tuple[ArrayCopy, ...]:
    """Return copies with one layout for each argument and result: that which spares most bytes."""
    chosen: dict[End, tuple[Layout, ArrayCopy]] = {}
    for copy in sorted(answers, key=lambda copy: -copy.moved):
        if isinstance(copy.proposal, LayoutProposal) and not copy.proposal.is_inside:
            for change in copy.proposal.changes:
                chosen.setdefault(change.end, (change.layout, copy))
    return tuple([_settle(copy, chosen) for copy in answers])


def _settle(copy: ArrayCopy, chosen: Mapping[End, tuple[Layout, ArrayCopy]]) -> ArrayCopy:
    """Return a copy without its proposal if another copy needs another layout."""
    for change in copy.proposal.changes if isinstance(copy.proposal, LayoutProposal) else ():
        layout, other = chosen.get(change.end, (change.layout, copy))
        if layout != change.layout:
            reason = f"{change}; but {layout} spares the larger copy `{other.instruction.name}`"
            return replace(copy, proposal=Unknown(reason, copy.instruction))
    return copy


def _explain_copy(
    each: Instruction,
    movement: tuple[ArrayRef, Shape, Shape],
    memory: _Memory,
    entry: EntryCopies,
    count: int,
) -> ArrayCopy:
    source, shape, result = movement
    kind = kind_of_copy(each, shape, result)
    readers = _readers(each)
    needed: bool | None = None
    proposal = entry.proposal(each)
    if isinstance(proposal, LayoutProposal):
        proposal = _unless_overwritten(each, proposal, memory)
    if kind == "value":
        needed, why = _is_overwritten(each, viewed_array(source), memory)
    elif kind == "space":
        why = _reason_of_place(each, readers, shape, result)
    else:
        needed, why = _is_wanted(readers, ArrayRef(each, copied_path(each)))
        is_one_map = kind == "layout" or copied_operand(each) is not None
        is_written_free = needed is not False and is_one_map
        is_written_free = is_written_free and _writes_any_layout(viewed_array(source), each)
        if is_written_free:
            needed, why = False, f"{_writer_text(viewed_array(source))} is {FREE_WRITER}"
        if needed is False and isinstance(proposal, Unknown):
            inside = entry.writes(each) if is_written_free else entry.reads(each, readers)
            proposal = inside if isinstance(inside, LayoutProposal) else proposal
    return ArrayCopy(
        each,
        kind,
        viewed_array(source),
        shape.physical_bytes + result.physical_bytes,
        count,
        _writer_text(viewed_array(source)),
        ", ".join([_reader_text(reader) for reader in readers]) or "nothing",
        needed,
        why,
        proposal,
    )


def _readers(each: Instruction) -> list[Instruction]:
    """Return the instructions that read a copy, and the root if it is returned."""
    array = ArrayRef(each, copied_path(each))
    return [*_readers_of(array), *([each] if each.is_root else [])]


def _readers_of(array: ArrayRef) -> list[Instruction]:
    return list(dict.fromkeys([reader for reader, _ in reads_of(array)]))


# ---------------------------------------------------------------- demands


def _writer_text(source: ArrayRef) -> str:
    writer = source.instruction
    if writer.opcode == "parameter":
        place = "ENTRY" if writer.computation.is_entry else f"`{writer.computation.name}`"
        return f"parameter `{array_name(source)}` of {place}"
    return f"{writer.opcode} `{array_name(source)}`"


def _reader_text(reader: Instruction) -> str:
    if _is_result(reader):
        place = "ENTRY" if reader.computation.is_entry else f"`{reader.computation.name}`"
        return f"the result of {place}"
    return f"{reader.opcode} `{reader.name}`"


def _is_wanted(readers: list[Instruction], copied: ArrayRef) -> tuple[bool | None, str]:
    """Return whether a reader wants the layout of a copy, with the reason."""
    for reader in readers:
        if _is_result(reader):
            return True, f"{_reader_text(reader)} has this layout"
    for reader in readers:
        is_tiled = is_for_tpu(reader.computation.module)
        if is_tiled or not _reads_any_layout(reader):
            return None, _demand_text(copied, reader, is_tiled)
    return False, f"each reader is {FREE}"


def _reason_of_place(
    each: Instruction, readers: Sequence[Instruction], shape: Shape, result: Shape
) -> str:
    """Return what places a copy in another memory than its source."""
    module = each.computation.module
    there, here = [space_name(space_of(own), module) for own in (shape, result)]
    for reader in readers:
        if _is_result(reader):
            return f"{_reader_text(reader)} is in {here}; XLA places the source in {there}"
    return f"XLA places it in {here}"


def _is_result(reader: Instruction) -> bool:
    """Return True for a root that returns what it reads."""
    return reader.is_root and (is_view(reader) or source_of_move(reader) is not None)


def _demand_text(copied: ArrayRef, reader: Instruction, is_tiled: bool) -> str:
    """Return what may want the layout of a copy, behind copies and elementwise operations."""
    demand = layout_demand(copied)
    works = " works on tiles, and" if is_tiled else ""
    if demand is None:
        return f"{_reader_text(reader)}{works} may want this layout"
    if demand.is_result:
        place = "ENTRY" if demand.instruction.computation.is_entry else "the computation"
        return f"the result of {place}, which {_reader_text(reader)} computes, has this layout"
    return f"{demand}{works} may want this layout"


def _reads_any_layout(reader: Instruction) -> bool:
    """Return True for a loop over elements, whose reads are computed from indices."""
    if isinstance(reader.op, InlineOp):
        return getattr(reader.op, "kind", "") == "kLoop" and is_computed_by_elements(reader)
    return isinstance(element_of(reader), CopyRule)


def _writes_any_layout(source: ArrayRef, copy: Instruction) -> bool:
    """Return True if only a copy reads what a loop over elements writes into new memory."""
    writer = source.instruction
    is_loop = isinstance(writer.op, InlineOp) and getattr(writer.op, "kind", "") == "kLoop"
    if not is_loop or source.path or is_for_tpu(writer.computation.module):
        return False
    is_new = not updates_of(writer) and not tuple(declared_shares(writer))
    return is_new and _reads_any_layout(writer) and _readers_of(source) == [copy]


# ---------------------------------------------------------------- values that are overwritten


class _Memory:
    """The values of a module by array and by buffer."""

    def __init__(self, lives: Lives) -> None:
        self.by_array: dict[ArrayRef, list[Value]] = {}
        self.by_buffer: dict[Value, list[Value]] = {}
        self.arguments = set(lives.arguments)
        self.results = {value.buffer for value in lives.results}
        for value in lives.values:
            self.by_array.setdefault(value.array, []).append(value)
            self.by_buffer.setdefault(value.buffer, []).append(value)

    def is_given(self, value: Value) -> bool:
        """Return True for an argument, which no result replaces, or a constant."""
        if value in self.arguments:
            return value.buffer not in self.results
        writer = value.array.instruction
        return declarations_of(writer).is_given and writer.opcode != "parameter"


def _is_overwritten(
    each: Instruction, source: ArrayRef, memory: _Memory
) -> tuple[bool | None, str]:
    """Return whether the source and the copy must be two buffers, with the reason."""
    path = copied_path(each)
    mine = memory.by_array.get(ArrayRef(each, path), [])
    theirs = memory.by_array.get(source, [])
    if len(mine) != 1 or len(theirs) != 1:
        return None, "it is executed in several places"
    copied, original = mine[0], theirs[0]
    if copied.buffer is original.buffer:
        return False, f"it is in the memory of `{array_name(source)}` already"
    if memory.is_given(original):
        is_written = len(memory.by_buffer[copied.buffer]) > 1 or copied.buffer in memory.results
        if is_written:
            name = array_name(source)
            return True, f"`{name}` is an argument or a constant: nothing may be written over it"
    if copied.buffer in memory.results and original.buffer in memory.results:
        return True, "both are results"
    clash = _clash(copied, original, memory)
    if clash is not None:
        return clash
    if any(_may_write(reader) for reader in [*_readers(each), *_readers_of(source)]):
        return None, "a reader may write into the memory of its operand"
    return False, "neither is written while the other is read"


def _clash(copied: Value, original: Value, memory: _Memory) -> tuple[bool | None, str] | None:
    """Return whether values would overwrite others in one buffer; None if none does."""
    pairs = product(memory.by_buffer[copied.buffer], memory.by_buffer[original.buffer])
    overlaps = [
        sorted(pair, key=lambda each: each.first)
        for pair in pairs
        if pair != (copied, original) and _overlap(*pair)
    ]
    if not overlaps:
        return None
    first, second = min(overlaps, key=lambda pair: pair[1].first - pair[0].last)
    later, read = array_name(second.array), array_name(first.array)
    if second.first == first.last:
        return None, f"`{later}` would be written into the memory of `{read}`, which it reads"
    return True, f"`{later}` would be written into its memory while `{read}` is still read"


def _overlap(value: Value, other: Value) -> bool:
    return value.first <= other.last and other.first <= value.last


def _unless_overwritten(
    each: Instruction, proposal: LayoutProposal, memory: _Memory
) -> LayoutProposal | Unknown:
    """Return a proposal, or why the copy of an argument is needed in any layout."""
    if any(change.place != "argument" for change in proposal.changes):
        return proposal
    copied = ArrayRef(each, copied_path(each))
    writers = [
        value.array.instruction
        for own in memory.by_array.get(copied, [])
        for value in memory.by_buffer[own.buffer]
        if value is not own and not _is_state(value.array.instruction)
    ]
    writers += [reader for reader in _readers_of(copied) if _updates(reader, copied)]
    if not writers:
        return proposal
    name = array_name(proposal.changes[0].array)
    reason = f"{writers[0].opcode} `{writers[0].name}` is written over the copy of `{name}`"
    return Unknown(reason, each)


def _is_state(instruction: Instruction) -> bool:
    """Return True for what only passes on the state of a loop."""
    return instruction.opcode == "parameter" or isinstance(instruction.op, While)


def _updates(reader: Instruction, array: ArrayRef) -> bool:
    """Return True for a scatter, or a fusion with one, into an array."""
    outer: dict[Instruction, Instruction] = {}
    if isinstance(reader.op, InlineOp):
        called = reader.called_computations[0]
        outer = dict(zip(called.parameters, reader.operands, strict=True))
    updates = [inner for inner in _writers_of(reader) if isinstance(inner.op, Scatter)]
    bases = [
        viewed_array(ArrayRef(base))
        for update in updates
        for base in update.operands[: len(update.operands) // 2]
    ]
    return array in [
        viewed_array(ArrayRef(outer[base.instruction])) if base.instruction in outer else base
        for base in bases
    ]


def _writers_of(reader: Instruction) -> list[Instruction]:
    """Return the instructions that compute the results of a fusion, or an instruction itself."""
    if not isinstance(reader.op, InlineOp):
        return [reader]
    root = reader.called_computations[0].root
    return [viewed_array(ArrayRef(root, path)).instruction for path, _ in leaves(root.shape)]


def _may_write(reader: Instruction) -> bool:
    """Return True if a reader may write over an operand in a way that `Lives` does not know."""
    results = [i if isinstance(i.op, MappedOp) else reader for i in _writers_of(reader)]
    return any(isinstance(element_of(i), OpaqueRule) or isinstance(i.op, Scatter) for i in results)

"""Summaries of modules: sizes, kinds of maps, and the operands that are read most often."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Final, NamedTuple, TypeAlias

from hlo.modules.find import CALLING
from hlo.modules.module import Computation, Instruction, Module
from hlo.modules.patterns import op_name_of
from hlo.shapes.shape import AnyShape, Shape, leaves
from indexing.dataflow.queries import output_to_input
from indexing.maps.answers import Answer, Path, Unknown
from indexing.maps.indexing_map import Grade, IndexingMap
from indexing.maps.multiplicity import multiplicity
from indexing.maps.reasons import Reason
from indexing.memory.counting import counted_maps
from indexing.memory.executions import Executions, executions
from indexing.memory.movement.recomputation import is_free
from indexing.memory.spaces import DEFAULT_SPACE, size_of, space_name, space_of
from indexing.ops.base import RoutingOp
from indexing.ops.element import declarations_of, shared_leaf
from indexing.views.access_kinds import ACCESS_KINDS, kinds_of_map
from indexing.views.array_records import ArrayRecord, SpaceRecord
from indexing.views.summary_records import (
    MAX_ROWS,
    OpcodeRecord,
    ReasonRecord,
    RereadRecord,
    Summary,
)

_NAME: Final = re.compile(r": `[^`]*`$")
_VALUES: Final = re.compile(r"`[^`]*`: pass its values?$")  # the names differ in every instruction

Progress: TypeAlias = "Callable[[int, int], None]"  # (done, total)


def summary(module: Module, limit: int = MAX_ROWS, progress: Progress | None = None) -> Summary:
    """Return a summary of a module: its interface, its maps by kind, its largest arrays.

    Args:
        limit: the maximum number of `largest` and `reread` arrays.
        progress: called with the number of instructions done, and with the number of all.
    Raises:
        HloError: an instruction is invalid.

    >>> import hlo
    >>> result = summary(hlo.parse('''ENTRY e {
    ...   p = f32[20] parameter(0)
    ...   ROOT b = f32[10,20] broadcast(p), dimensions={1}
    ... }''', "m.hlo"))
    >>> result.kinds["broadcasting"], result.reread[0].bytes_again
    (1, 720)
    """
    times = executions(module)
    executed = [c for c in module.computations.values() if c in times]
    every = list(module.instructions)
    counts = _Counts()
    total = len(every) + sum(map(len, executed))
    for done, instruction in enumerate(every):
        if progress is not None:
            progress(done, total)
        counts.add(instruction)
    arrays: list[ArrayRecord] = []
    rereads = _Rereads(times)
    for done, instruction in enumerate((i for c in executed for i in c), len(every)):
        if progress is not None:
            progress(done, total)
        if _holds_arrays(instruction):
            held = _arrays(instruction, instruction.shape)
            arrays += [array for array in held if _is_array(instruction, array)]
        rereads.add(instruction)
    header, entry = module.header, module.entry
    return Summary(
        file=module.filename,
        module=module.name,
        entry=entry.name,
        computations=len(module.computations),
        instructions=len(every),
        characters=len(module.source.text),
        partitions=header("num_partitions", 1),
        replicas=header("replica_count", 1),
        is_scheduled=header("is_scheduled", False),
        aliases=len(header("input_output_alias", ())),
        parameters=tuple(_parameters(module)),
        results=tuple(_results(module)),
        opcodes=counts.opcode_records(),
        kinds={kind: sum(c[kind] for c in counts.kinds.values()) for kind in ACCESS_KINDS},
        unknown=_reasons(counts.unknown),
        may=_reasons(counts.may),
        spaces=tuple(_space_records(arrays)),
        largest=tuple(sorted(arrays, key=_descending_bytes)[:limit]),
        reread=tuple(sorted(rereads.records, key=lambda r: -r.all_bytes_again)[:limit]),
        uncounted=_reasons(rereads.uncounted),
    )


# ---------------------------------------------------------------- arrays


def _parameters(module: Module) -> Iterator[ArrayRecord]:
    """Yield the parameters of the entry, with the layouts of the header if it has them."""
    parameters = module.entry.parameters
    layout = module.header("entry_computation_layout")
    shapes = [parameter.shape for parameter in parameters]
    if layout is not None and len(layout.parameters) == len(shapes):
        shapes = list(layout.parameters)
    for parameter, shape in zip(parameters, shapes, strict=True):
        yield from _arrays(parameter, shape)


def _results(module: Module) -> Iterator[ArrayRecord]:
    """Yield the results of the entry; those of a tuple by the instructions that compute them."""
    root = module.entry.root
    layout = module.header("entry_computation_layout")
    shape = root.shape if layout is None else layout.result
    shapes = leaves(shape)
    operands = root.operands if root.opcode == "tuple" else ()
    for path, leaf in shapes:
        is_operand = path[:1] and path[0] < len(operands)
        source, inside = (operands[path[0]], path[1:]) if is_operand else (root, path)
        yield _array(source, inside, leaf)


def _arrays(instruction: Instruction, shape: AnyShape) -> Iterator[ArrayRecord]:
    for path, leaf in leaves(shape):
        yield _array(instruction, path, leaf)


def _array(instruction: Instruction, path: Path, shape: AnyShape) -> ArrayRecord:
    space = space_of(shape) if isinstance(shape, Shape) else DEFAULT_SPACE
    return ArrayRecord(
        computation=instruction.computation.name,
        instruction=instruction.name,
        opcode=instruction.opcode,
        argument=op_name_of(instruction) if instruction.opcode == "parameter" else "",
        path=path,
        shape=shape,
        size=size_of(shape),
        space=space,
        memory=space_name(space, instruction.computation.module),
    )


def _descending_bytes(array: ArrayRecord) -> tuple[bool, int]:
    return (True, -array.stored_bytes) if array.stored_bytes is not None else (False, 0)


def _space_records(arrays: Iterable[ArrayRecord]) -> Iterator[SpaceRecord]:
    """Yield the sums of the arrays of each memory space, in the order of its number."""
    by_space: dict[int, list[ArrayRecord]] = {}
    for array in arrays:
        by_space.setdefault(array.space, []).append(array)
    for number, held in sorted(by_space.items()):
        sizes = [size for array in held if (size := array.size) is not None]
        yield SpaceRecord(
            space=number,
            memory=held[0].memory,
            arrays=len(held),
            elements=sum(size.elements for size in sizes),
            bytes=sum(size.dense for size in sizes),
            stored_bytes=sum(size.stored for size in sizes),
            is_complete=len(sizes) == len(held),
        )


def _is_array(instruction: Instruction, held: ArrayRecord) -> bool:
    """Return True for an array that is not in the memory of an operand, as the source of a copy."""
    return isinstance(held.shape, Shape) and shared_leaf(instruction, held.path) is None


def _holds_arrays(instruction: Instruction) -> bool:
    """Return True if the arrays of the result are not those of other instructions."""
    if instruction.opcode == "parameter":
        return instruction.computation.is_entry
    return not declarations_of(instruction).is_view and instruction.opcode not in CALLING


# ---------------------------------------------------------------- maps


class _ReasonCounts:
    """Numbers of accesses by opcode and reason, with the first instruction."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, str]] = Counter()
        self.first: dict[tuple[str, str], Instruction] = {}

    def add(self, instruction: Instruction, reason: str) -> None:
        """Count an access; its instruction is named by `first` only, so that reasons agree."""
        named = f"{instruction.opcode} `{instruction.name}`: "
        key = instruction.opcode, reason.removeprefix(named)
        self.counts[key] += 1
        self.first.setdefault(key, instruction)


def _reasons(counted: _ReasonCounts) -> tuple[ReasonRecord, ...]:
    """Return a record for each reason, the most frequent first."""
    return tuple(
        [
            ReasonRecord(opcode, reason, count, _full_name(counted.first[opcode, reason]))
            for (opcode, reason), count in counted.counts.most_common()
        ]
    )


def _full_name(instruction: Instruction) -> str:
    return f"{instruction.computation.name}/{instruction.name}"


def _reason_of_may(instruction: Instruction, reasons: Iterable[Reason]) -> str:
    """Return the reasons of a `may` map as text without names of instructions, so that they agree.

    The opcode of the obstacle is named if another instruction has the obstacle.
    """
    texts = []
    for reason in reasons:
        source, text = reason.instruction, _NAME.sub("", reason.text)
        if source is not None and source is not instruction:
            text = f"`{source.opcode}`: {text}"
        texts.append(text)
    return "; ".join(dict.fromkeys(texts))


class _Counts:
    """Counts of instructions by opcode and by kind of their maps."""

    def __init__(self) -> None:
        self.opcodes: Counter[str] = Counter()
        self.kinds: dict[str, Counter[str]] = {}
        self.unknown, self.may = _ReasonCounts(), _ReasonCounts()
        self._kinds_of = cache(kinds_of_map)

    def add(self, instruction: Instruction) -> None:
        """Count an instruction."""
        kinds: set[str] = set()
        for output in range(len(leaves(instruction.shape))):
            kinds |= self._count(instruction, output_to_input(instruction, output))
        self.opcodes[instruction.opcode] += 1
        self.kinds.setdefault(instruction.opcode, Counter()).update(kinds)

    def _count(self, instruction: Instruction, answer: Answer) -> set[str]:
        """Count the reasons in an answer, and return its kinds."""
        kinds: set[str] = set()
        for unknown in answer.unknown:
            if unknown is not None:
                kinds.add("unknown")
                self.unknown.add(instruction, unknown.reason)
        for maps, reasons in zip(answer.maps, answer.reasons, strict=True):
            for m, why in zip(maps, reasons, strict=True):
                kinds |= self._kinds_of(m)
                if m.grade == "may":
                    self.may.add(instruction, _reason_of_may(instruction, why))
        return kinds

    def opcode_records(self) -> tuple[OpcodeRecord, ...]:
        """Return the counts by opcode, the most frequent first."""
        frequent = sorted(self.opcodes.items(), key=lambda item: (-item[1], item[0]))
        return tuple(
            [
                OpcodeRecord(opcode, n, {kind: self.kinds[opcode][kind] for kind in ACCESS_KINDS})
                for opcode, n in frequent
            ]
        )


# ---------------------------------------------------------------- reads


class _Rereads:
    """Operands that instructions read several times."""

    def __init__(self, executions: Mapping[Computation, Executions]) -> None:
        self.records: list[RereadRecord] = []
        self._executions = executions
        self.uncounted = _ReasonCounts()
        self._counted: dict[tuple[IndexingMap, ...], _Reads | Unknown] = {}

    def add(self, instruction: Instruction) -> None:
        """Count the reads of the operands of an instruction."""
        if isinstance(instruction.op, RoutingOp) or instruction.opcode in CALLING:
            return  # reads each element once, or its computations are executed
        arrays = list(_operand_arrays(instruction))
        for output in range(len(leaves(instruction.shape)) if arrays else 0):
            for array, maps in zip(arrays, counted_maps(instruction, output), strict=True):
                reads = maps if isinstance(maps, Unknown) else self._count(maps)
                if isinstance(reads, Unknown):
                    self._leave_out(instruction, reads)
                elif reads.total > reads.distinct and not _is_free(instruction, array):
                    times = self._executions[instruction.computation]
                    self.records.append(_reread(instruction, output, array, reads, times))

    def _leave_out(self, instruction: Instruction, unknown: Unknown) -> None:
        self.uncounted.add(instruction, _VALUES.sub("runtime values", unknown.reason))

    def _count(self, maps: tuple[IndexingMap, ...]) -> _Reads | Unknown:
        """Count the reads and the distinct elements, once for equal maps."""
        if maps not in self._counted:
            self._counted[maps] = _reads(maps)
        return self._counted[maps]


class _Reads(NamedTuple):
    """The number of reads of an array, and of distinct elements of it."""

    total: int
    distinct: int
    grade: Grade


def _reads(maps: tuple[IndexingMap, ...]) -> _Reads | Unknown:
    counts = multiplicity(maps)
    if isinstance(counts, Unknown):
        return counts
    total, distinct = counts.total, counts.distinct
    if isinstance(total, Unknown):
        return total
    if isinstance(distinct, Unknown):
        return distinct
    return _Reads(total, distinct, counts.grade)


OperandArray: TypeAlias = tuple[int, Path, Shape]


def _is_free(instruction: Instruction, array: OperandArray) -> bool:
    """Return True for an array that costs nothing to read again: a scalar, an iota."""
    number, _, shape = array
    return shape.size <= 1 or is_free(instruction.operands[number])


def _operand_arrays(instruction: Instruction) -> Iterator[OperandArray]:
    """Yield the arrays of the operands, in the order of `counted_maps`."""
    for number, operand in enumerate(instruction.operands):
        for path, leaf in leaves(operand.shape):
            if isinstance(leaf, Shape):
                yield number, path, leaf


def _reread(
    instruction: Instruction,
    output: int,
    array: OperandArray,
    reads: _Reads,
    executions: Executions,
) -> RereadRecord:
    number, path, shape = array
    return RereadRecord(
        computation=instruction.computation.name,
        instruction=instruction.name,
        opcode=instruction.opcode,
        output=output,
        operand=number,
        operand_name=instruction.operands[number].name,
        path=path,
        shape=shape,
        grade=reads.grade,
        reads=reads.total,
        distinct=reads.distinct,
        bytes_again=-(-(reads.total - reads.distinct) * shape.element_bits // 8),
        executions=executions,
    )

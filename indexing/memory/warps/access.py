"""Access: the sectors and lines of memory that the threads of an instruction touch.

The threads compute the elements of the output by a schedule, such as that of
`indexing.thread_map`.  Composed with the maps of the instruction and with the layout of an operand,
it gives the addresses that each lane of each warp loads.  All warps are counted, with the true
alignment of their addresses.

Assumptions: arrays start at a line (XLA aligns buffers to 128 bytes or more); threads whose element
is beyond the output do nothing; caches keep nothing between two instructions of a warp.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, overload

import indexing.methods as methods
from hlo.arguments import checked
from hlo.modules.module import Instruction
from hlo.shapes.shape import Shape
from indexing.dataflow.answering import output_of
from indexing.dataflow.queries import output_to_input
from indexing.devices.gpus import Gpu, gpu
from indexing.devices.grid import thread_map
from indexing.maps.answers import Unknown
from indexing.maps.arrays import ArrayRef, Path
from indexing.maps.displayed import Displayed
from indexing.maps.indexing_map import Grade, IndexingMap
from indexing.memory.movement.amounts import Amount
from indexing.memory.movement.needed_reads import needed_bytes
from indexing.memory.movement.point_counts import Counter
from indexing.memory.warps.coalescing import is_coalesced
from indexing.memory.warps.gathers import Load
from indexing.memory.warps.starts import Started, count_by_starts
from indexing.memory.warps.thread_loads import ThreadLoad, thread_loads
from indexing.memory.warps.transactions import Transactions, WorstWarp
from indexing.memory.warps.warp_classes import MAX_POINTS

ScheduledMap: TypeAlias = tuple[Path, Shape, IndexingMap, IndexingMap]
"""A leaf, its shape, the schedule, and the map from what it computes to elements of the leaf."""


@dataclass(frozen=True, slots=True)
class MemoryInstruction:
    """One load or store of the program, as all warps execute it.

    Attributes:
        transactions: what all warps move.
        bytes_per_lane: the bytes that one lane accesses at once.
        unroll: the number of the first element in the thread's vector.
        path: the leaf of the operand.
    """

    transactions: Transactions
    bytes_per_lane: int
    unroll: int
    path: Path


@dataclass(frozen=True, slots=True, repr=False)
class MemoryAccess:
    """The memory that all warps touch to load an operand, or to store the output.

    If the addresses depend on start indices that are known only at run time, the numbers are those
    of the starts with the most sectors.

    Attributes:
        array: the operand, or the output; `None` for an array without a program.
        device: the GPU.
        transactions: what all warps move.
        instructions: the loads or stores.
        coalesced: the verdict of XLA's rule, `indexing.memory.warps.coalescing`.
        grade: "exact", or "may" if the maps are over-approximate, so that counts are upper bounds;
            the histogram and the ratio are those of the maps then, and no bounds.
        best_starts, worst_starts: the start indices with the fewest and most sectors, by name;
            the elements of an index array are not included.
        best: what all warps move with the best starts; equal to `transactions` without starts.

    >>> import hlo, indexing
    >>> text = "ENTRY e { p = f32[64,64] parameter(0)  ROOT t = f32[64,64] transpose(p), "
    >>> (load,) = indexing.access(hlo.parse(text + "dimensions={1,0} }").entry.root)
    >>> load.bytes_requested, load.bytes_transferred, load.ratio, load.coalesced
    (16384, 131072, 8.0, False)
    >>> load.histogram, str(load.worst), load.plot()  # 128 warps, each touches 32 sectors
    ({32: 128}, '32 sectors at bl_x 0, warp 0', <drawing of 'memory access of p'>)
    """

    array: ArrayRef | None
    device: Gpu
    transactions: Transactions
    instructions: tuple[MemoryInstruction, ...]
    coalesced: bool
    grade: Grade
    best_starts: Mapping[str, int]
    worst_starts: Mapping[str, int]
    best: Transactions

    def __repr__(self) -> str:
        sectors, requested = self.sectors, self.bytes_requested
        of = f" of {self.array.instruction.name!r}" if self.array else ""
        return f"<access{of}: {requested} bytes requested, {sectors} sectors>"

    @property
    def bytes_requested(self) -> int:
        """Bytes that all active lanes request."""
        return self.transactions.bytes_requested

    @property
    def bytes_transferred(self) -> int:
        """Bytes of the sectors touched."""
        return self.transactions.bytes_transferred

    @property
    def sectors(self) -> int:
        """Number of sectors touched, added over all warps."""
        return self.transactions.sectors

    @property
    def ideal_sectors(self) -> int:
        """The fewest sectors with room for the distinct bytes that each warp requests."""
        return self.transactions.ideal_sectors

    @property
    def lines(self) -> int:
        """Number of lines touched, added over all warps."""
        return self.transactions.lines

    @property
    def segments(self) -> Mapping[int, int]:
        """Number of aligned segments touched, by their size in bytes."""
        return self.transactions.segments

    @property
    def histogram(self) -> Mapping[int, int]:
        """Number of warps by the number of sectors that they touch with one instruction."""
        return self.transactions.histogram

    @property
    def ratio(self) -> float:
        """Bytes transferred for each distinct byte that a warp requests; 1 is the optimum."""
        return self.transactions.ratio

    @property
    def worst(self) -> WorstWarp | None:
        """A warp that touches the most sectors; `None` if nothing is accessed."""
        return self.transactions.worst

    @checked
    def plot(self, backend: methods.Backend = "svg", theme: methods.Theme = "auto") -> Any:
        """Return a picture of the sectors that a warp touches.

        Arrows lead from the lanes of a warp with the most sectors to their sectors; bars are the
        numbers of warps by sectors.

        Args:
            backend, theme: as in `Answer.plot`.
        Returns:
            A `Drawing`.
        Raises:
            ImportError: matplotlib is not installed.
        """
        return methods.plot_access(self, backend, theme)


@dataclass(frozen=True, slots=True)
class Accesses(Sequence["MemoryAccess | Unknown"], Displayed):
    """The loads of an instruction, one entry for each operand, and its store.

    As a sequence, it has the loads.

    Attributes:
        loads: the access to each operand.
        store: the access to the output.
        loaded: bytes of the distinct elements of each operand that are loaded for the whole output,
            masked ones included.
        needed: bytes of those of them that the output needs; an upper bound under masks of runtime
            values.

    >>> import hlo, indexing
    >>> text = "ENTRY e { p = f32[64,64] parameter(0)  ROOT t = f32[64,64] transpose(p), "
    >>> accesses = indexing.access(hlo.parse(text + "dimensions={1,0} }").entry.root)
    >>> accesses[0].sectors, accesses.store.sectors, accesses.plot()
    (4096, 512, <drawing of 'memory accesses of t'>)
    """

    loads: tuple[MemoryAccess | Unknown, ...]
    store: MemoryAccess | Unknown
    loaded: tuple[Amount | Unknown, ...]
    needed: tuple[Amount | Unknown, ...]

    def __len__(self) -> int:
        return len(self.loads)

    @overload
    def __getitem__(self, index: int) -> MemoryAccess | Unknown: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[MemoryAccess | Unknown, ...]: ...
    def __getitem__(
        self, index: int | slice
    ) -> MemoryAccess | Unknown | tuple[MemoryAccess | Unknown, ...]:
        return self.loads[index]

    @checked
    def plot(self, backend: methods.Backend = "svg", theme: methods.Theme = "auto") -> Any:
        """Return a picture of each load and of the store, each as by `MemoryAccess.plot`.

        Args:
            backend, theme: as in `Answer.plot`.
        Returns:
            A `Drawing`.
        Raises:
            ImportError: matplotlib is not installed.
        """
        return methods.plot_accesses(self, backend, theme)


@checked
def access(
    instruction: Instruction,
    threads: int | Sequence[int] = 128,
    unroll: int = 1,
    device: str | Gpu = "A100",
    *,
    output_id: int = 0,
    schedule: IndexingMap | None = None,
    offset: int = 0,
    budget: int = MAX_POINTS,
) -> Accesses:
    """Return the bytes, sectors and lines of memory that all warps touch, for each operand.

    Args:
        instruction: the instruction that computes the output; through a fusion, the maps are
            composed down to its operands.
        threads: number of threads per block, along x or along x, y and z.
        unroll: number of elements of a vector, which one thread computes.
        device: a GPU, or the name of a model in `indexing.devices.gpus.GPUS`.
        output_id: number of the output: the leaves of a tuple are counted in order.
        schedule: the map from threads to elements of the output; by default the schedule of XLA's
            loop emitter, `indexing.thread_map`.
        offset: the address of each array, in bytes from a line.
        budget: the number of points, lanes of warps, to enumerate where the access is not periodic.
    Returns:
        An entry for each operand, and the entry ``store``: exact, an upper bound if its grade is
        "may", or `Unknown`.
    Raises:
        HloError: the instruction, or an instruction of a computation it calls, is invalid.
        IndexError: `output_id` is out of range.
        ValueError: an unknown GPU; a number is not positive; the schedule has no thread dimensions
            or another rank than the output.
    Source: NVIDIA "CUDA C++ Best Practices Guide", "Coalesced Access to Global Memory".

    >>> import hlo
    >>> root = hlo.parse('''ENTRY e { p = f32[999] parameter(0)
    ...   ROOT s = f32[499] slice(p), slice={[1:999:2]} }''').entry.root
    >>> loads = access(root, threads=64)
    >>> loads[0].bytes_requested, loads[0].bytes_transferred, loads[0].histogram
    (1996, 4000, {5: 1, 8: 15})
    """
    model = gpu(device)
    output = output_of(instruction, output_id)
    answer = output_to_input(instruction, output_id, exact=True, masks=False)
    shape = output.array_shape
    if shape is None:
        reason = Unknown(f"output {output_id} is not an array: {output.shape}", instruction)
        reasons = (reason,) * len(answer.operands)
        return Accesses(reasons, reason, reasons, reasons)
    if schedule is None:
        schedule = thread_map(shape, threads=threads, unroll=unroll)
    if len(schedule.results) != shape.rank:
        raise ValueError(
            f"the schedule has {len(schedule.results)} results, but the output has rank "
            f"{shape.rank}: {shape}"
        )
    request = _Request(model, _address(offset), budget)
    loads: list[MemoryAccess | Unknown] = []
    for operand, maps, paths, unknown in zip(
        answer.operands, answer.maps, answer.paths, answer.unknown, strict=True
    ):
        if unknown is not None:
            loads.append(unknown)
        else:
            reads = list(zip(paths, maps, strict=True))
            loads.append(request.access(schedule, ArrayRef(operand), reads))
    stores = [(output.path, IndexingMap.identity(shape))]
    store = request.access(schedule, output._replace(path=()), stores, output.path)
    counts = needed_bytes(instruction, output_id, answer, Counter())
    loaded, needed = [
        tuple([each if isinstance(each, Unknown) else each[number] for each in counts])
        for number in range(2)
    ]
    return Accesses(tuple(loads), store, loaded, needed)


@checked
def array_access(
    schedule: IndexingMap | Sequence[IndexingMap],
    shape: Shape,
    device: str | Gpu = "A100",
    *,
    array: ArrayRef | None = None,
    offset: int = 0,
    budget: int = MAX_POINTS,
) -> MemoryAccess | Unknown:
    """Return the bytes, sectors and lines of an array that all warps touch by a map of one's own.

    Args:
        schedule: the map from threads ``th_x``, …, blocks and loops to elements of the array; those
            outside of it are not accessed.  Several maps are several loads, or several stores.
        shape: the shape of the array, with its layout.
        array: the array, which pictures name.
        device, offset, budget: see `access`.
    Raises:
        ValueError: the rank of the array is not the number of results; or as `access`.

    >>> from hlo import parse_shape
    >>> from indexing.devices.grid import row_map
    >>> rows = parse_shape("f32[100,40]")
    >>> reads = array_access(row_map(rows, threads=32), rows)
    >>> reads.histogram, reads.ratio
    ({1: 100, 4: 100}, 1.0)
    """
    schedules = [schedule] if isinstance(schedule, IndexingMap) else schedule
    for each in schedules:
        if len(each.results) != shape.rank:
            raise ValueError(
                f"the map has {len(each.results)} results, but the array has rank {shape.rank}: "
                f"{shape}"
            )
    request = _Request(gpu(device), _address(offset), budget)
    identity = IndexingMap.identity(shape)
    return request.count_access(array, [((), shape, each, identity) for each in schedules])


def _address(offset: int) -> int:
    if offset < 0:
        raise ValueError(f"offset={offset}: expected 0 or more bytes")
    return offset


@dataclass(frozen=True, slots=True)
class _Request:
    device: Gpu
    offset: int
    budget: int

    def access(
        self,
        schedule: IndexingMap,
        array: ArrayRef,
        maps: Sequence[tuple[Path, IndexingMap]],
        path: Path = (),
    ) -> MemoryAccess | Unknown:
        """Return the access of an operand, or of the output, by maps from the output."""
        shaped: list[ScheduledMap] = []
        for leaf, each in maps:
            shape = array._replace(path=leaf).array_shape
            if shape is None:
                return Unknown(f"`{array.instruction.name}` is not an array", array.instruction)
            shaped.append((leaf, shape, schedule, each))
        return self.count_access(array._replace(path=path), shaped)

    def count_access(
        self, array: ArrayRef | None, maps: Sequence[ScheduledMap]
    ) -> MemoryAccess | Unknown:
        """Return the access of an array by maps from what the schedules compute."""
        loads: list[tuple[Path, Shape, ThreadLoad]] = []
        counts: list[Load] = []
        coalesced = True
        for path, shape, schedule, each in maps:
            address = self.offset + shape.layout_or_default.metadata_prefix_bytes
            if address * 8 % shape.element_bits:
                raise ValueError(f"offset={address}: elements of {shape} would be misaligned")
            for load in thread_loads(schedule, each, shape, self.device, address):
                loads.append((path, shape, load))
                counts.append((load, shape.element_bits, address))
            coalesced = coalesced and is_coalesced(schedule, each, shape)
        result = count_by_starts(counts, self.device, self.budget)
        if isinstance(result, Unknown):
            return Unknown(result.reason, result.instruction or (array and array.instruction))
        return MemoryAccess(
            array,
            self.device,
            result.transactions,
            tuple(_instructions(loads, result)),
            coalesced,
            "may" if any("may" in (s.grade, each.grade) for _, _, s, each in maps) else "exact",
            result.best_starts,
            result.worst_starts,
            result.best,
        )


def _instructions(
    loads: Iterable[tuple[Path, Shape, ThreadLoad]], result: Started
) -> Iterator[MemoryInstruction]:
    for (path, shape, load), own in zip(loads, result.parts, strict=True):
        width = -(-load.elements * shape.element_bits // 8)
        yield MemoryInstruction(own, width, load.unroll, path)

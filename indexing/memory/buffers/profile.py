"""The memory that a module holds along its schedule: buffers, their lives, and the peaks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from os.path import basename
from typing import Literal, TypeAlias

from hlo.arguments import checked
from hlo.modules.module import Instruction, Module
from hlo.shapes.shape import Shape, unbounded_leaf
from indexing.maps.arrays import ArrayRef, array_name
from indexing.memory.buffers.assignment import BufferAssignment
from indexing.memory.buffers.drawn_memory import DrawnMemory
from indexing.memory.buffers.usage_report import UsageReport
from indexing.memory.buffers.values import Value, lives_of
from indexing.memory.spaces import DEFAULT_SPACE, space_name, space_of
from indexing.ops.element import declarations_of
from simplifier.unknown import Unknown

Kind: TypeAlias = Literal["argument", "donated", "output", "constant", "temporary"]


@dataclass(frozen=True, slots=True)
class HloBuffer:
    """The memory of an array, or of arrays that share it: a loop's state, an update in place.

    Attributes:
        arrays: the arrays that it holds, in the order in which they are written.
        shape: the shape of the largest of them.
        kind: what holds the memory: an argument, an argument whose memory an output takes
            (`donated`), an output, a constant, or nothing outside of the program (`temporary`).
        life: the steps in which it is alive, as disjoint intervals.

    >>> import hlo, indexing
    >>> text = "ENTRY e { p = f32[9] parameter(0)  n = f32[9] negate(p)  ROOT s = f32[9] sine(n) }"
    >>> for buffer in indexing.memory_profile(hlo.parse(text)).buffers:
    ...     print(buffer.name, buffer.kind, buffer.dense_bytes, buffer.life)
    p argument 36 ((0, 2),)
    n temporary 36 ((1, 2),)
    s output 36 ((2, 2),)
    >>> module = hlo.parse("ENTRY e { ROOT p = f32[3,5]{1,0:T(8,128)} parameter(0) }")
    >>> (buffer,) = indexing.memory_profile(module).buffers  # padded to 8 x 128 elements
    >>> buffer.dense_bytes, buffer.stored_bytes, buffer.padding, buffer.space
    (60, 4096, 4036, 0)
    """

    arrays: tuple[ArrayRef, ...]
    shape: Shape
    kind: Kind
    life: tuple[tuple[int, int], ...]

    @property
    def instruction(self) -> Instruction:
        """The instruction that writes the first array."""
        return self.arrays[0].instruction

    @property
    def name(self) -> str:
        """The name of the first array: that of its instruction, with the leaf of a tuple."""
        return array_name(self.arrays[0])

    @property
    def space(self) -> int:
        """The number of the memory space."""
        return space_of(self.shape)

    @property
    def line(self) -> str:
        """The line of Python behind the first array, such as ``layers.py:14``; empty if unknown.

        >>> import hlo, indexing
        >>> text = 'metadata={source_file="models/layers.py" source_line=14}'
        >>> module = hlo.parse("ENTRY e { ROOT p = f32[3] parameter(0), " + text + " }")
        >>> indexing.memory_profile(module).buffers[0].line
        'layers.py:14'
        """
        frame = self.instruction.source.frame
        return "" if frame is None else f"{basename(frame.file)}:{frame.line}"

    @property
    def dense_bytes(self) -> int:
        """The bytes of the elements."""
        return self.shape.bytes

    @property
    def stored_bytes(self) -> int:
        """The bytes in memory, with padding."""
        return self.shape.physical_bytes

    @property
    def padding(self) -> int:
        """The bytes in memory that hold no element."""
        return self.stored_bytes - self.dense_bytes

    def __repr__(self) -> str:
        return f"<buffer of {self}>"

    def __str__(self) -> str:
        padding = f" with {self.padding:,} of padding" if self.padding else ""
        return f"{self.name}: {self.kind}, {self.stored_bytes:,} bytes{padding}, {self.shape}"

    @checked
    def is_alive(self, step: int) -> bool:
        """Return True if the buffer holds a value in a step.

        >>> import hlo, indexing
        >>> text = "ENTRY e { p = f32[9] parameter(0)  n = f32[9] abs(p)  ROOT s = f32[9] sine(n) }"
        >>> p, n, s = indexing.memory_profile(hlo.parse(text)).buffers
        >>> n.is_alive(0), n.is_alive(1)
        (False, True)
        """
        return any(first <= step <= last for first, last in self.life)


@dataclass(frozen=True, slots=True)
class SpacePeak:
    """The step in which the buffers of one memory space hold the most bytes.

    Attributes:
        space: the number of the space.
        name: what it is on the device.
        step: the number of the first such step.
        stored_bytes, dense_bytes: the bytes with and without padding.

    >>> import hlo, indexing
    >>> text = "ENTRY e { p = f32[9] parameter(0)  n = f32[9] negate(p)  ROOT s = f32[9] sine(n) }"
    >>> peak = indexing.memory_profile(hlo.parse(text)).peaks[0]
    >>> peak.step, peak.dense_bytes  # three arrays of 36 bytes
    (2, 108)
    """

    space: int
    name: str
    step: int
    stored_bytes: int
    dense_bytes: int


@dataclass(frozen=True, repr=False)
class MemoryProfile(DrawnMemory):
    """The buffers of a module along its schedule, which is the order of the text.

    Two instructions share memory where XLA's rules demand it: views, the state of loops, updates in
    place, arguments that outputs alias.  A compiler may place more arrays in the memory of others.

    Attributes:
        module: the module.
        steps: the instructions in the order of their execution, those of called computations
            before their call.
        buffers: all buffers, in the order in which they are first written.
        assignment: the buffer assignment of XLA, if it is given.
        usage: XLA's report of memory usage, if it is given.

    >>> import hlo, indexing
    >>> text = "ENTRY e { p = f32[9] parameter(0)  n = f32[9] negate(p)  ROOT s = f32[9] sine(n) }"
    >>> profile = indexing.memory_profile(hlo.parse(text))
    >>> profile.peak, [buffer.name for buffer in profile.at_peak]
    (108, ['p', 'n', 's'])
    """

    module: Module
    steps: tuple[Instruction, ...]
    buffers: tuple[HloBuffer, ...]
    assignment: BufferAssignment | None = None
    usage: UsageReport | None = None

    def __repr__(self) -> str:
        return f"<memory of {self.module.name}: {self.peak:,} bytes at the peak>"

    def __str__(self) -> str:
        lines = [f"memory of {self.module.name}, {len(self.steps):,} steps"]
        for peak in self.peaks.values():
            step = self.steps[peak.step].name if self.steps else "none"
            lines.append(f"{peak.name}: {peak.stored_bytes:,} bytes at step {peak.step}, `{step}`")
            lines += [f"  {buffer}" for buffer in self.alive(peak.step, peak.space)]
        return "\n".join(lines)

    @property
    def peak(self) -> int:
        """The largest number of stored bytes that are alive in the default memory."""
        return self.peaks[DEFAULT_SPACE].stored_bytes

    @property
    def at_peak(self) -> tuple[HloBuffer, ...]:
        """The buffers of the default memory that are alive at its peak, the largest first."""
        return self.alive(self.peaks[DEFAULT_SPACE].step)

    @cached_property
    def peaks(self) -> Mapping[int, SpacePeak]:
        """The peak of each memory space, by number.

        >>> import hlo, indexing
        >>> text = "ENTRY e { p = f32[9] parameter(0)  ROOT n = f32[9]{0:S(1)} negate(p) }"
        >>> peaks = indexing.memory_profile(hlo.parse(text)).peaks
        >>> {space: peak.stored_bytes for space, peak in peaks.items()}
        {0: 36, 1: 36}
        """
        spaces = {DEFAULT_SPACE, *[buffer.space for buffer in self.buffers]}
        return {space: self._peak(space) for space in sorted(spaces)}

    @checked
    def alive(self, step: int, space: int = DEFAULT_SPACE) -> tuple[HloBuffer, ...]:
        """Return the buffers of a memory space that are alive in a step, the largest first.

        >>> import hlo, indexing
        >>> text = "ENTRY e { p = f32[9] parameter(0)  n = f32[9] abs(p)  ROOT s = f32[9] sine(n) }"
        >>> [buffer.name for buffer in indexing.memory_profile(hlo.parse(text)).alive(1)]
        ['p', 'n']
        """
        alive = [b for b in self.buffers if b.space == space and b.is_alive(step)]
        return tuple(sorted(alive, key=lambda b: -b.stored_bytes))

    @checked
    def alive_by_kind(self, step: int, space: int = DEFAULT_SPACE) -> Mapping[Kind, int]:
        """Return the stored bytes that are alive in a step by the kind of their buffers.

        >>> import hlo, indexing
        >>> text = "ENTRY e { p = f32[9] parameter(0)  n = f32[9] abs(p)  ROOT s = f32[9] sine(n) }"
        >>> dict(indexing.memory_profile(hlo.parse(text)).alive_by_kind(2))
        {'argument': 36, 'output': 36, 'temporary': 36}
        """
        sums: dict[Kind, int] = {}
        for buffer in self.alive(step, space):
            sums[buffer.kind] = sums.get(buffer.kind, 0) + buffer.stored_bytes
        return dict(sorted(sums.items()))

    @checked
    def alive_bytes(self, space: int = DEFAULT_SPACE) -> list[int]:
        """Return the stored bytes that are alive in each step.

        >>> import hlo, indexing
        >>> text = "ENTRY e { p = f32[9] parameter(0)  n = f32[9] abs(p)  ROOT s = f32[9] sine(n) }"
        >>> indexing.memory_profile(hlo.parse(text)).alive_bytes()
        [36, 72, 108]
        """
        changes = [0] * (len(self.steps) + 1)
        for buffer in self.buffers:
            if buffer.space == space:
                for first, last in buffer.life:
                    changes[first] += buffer.stored_bytes
                    changes[last + 1] -= buffer.stored_bytes
        return list(accumulate(changes))[:-1]

    def _peak(self, space: int) -> SpacePeak:
        alive = self.alive_bytes(space)
        most = max(alive, default=0)
        step = alive.index(most) if alive else 0
        dense = sum(buffer.dense_bytes for buffer in self.alive(step, space))
        return SpacePeak(space, space_name(space, self.module), step, most, dense)


@checked
def memory_profile(
    module: Module,
    assignment: BufferAssignment | None = None,
    usage: UsageReport | None = None,
) -> MemoryProfile | Unknown:
    """Return the buffers that a module holds along its schedule, and the peak of each memory space.

    The schedule is the order of the text: that of a compiled module, whose header says
    ``is_scheduled=true``, is the order of execution.  Sizes include the padding of tiled layouts.

    Args:
        assignment: XLA's buffer assignment of the module: results that it writes into the memory
            of operands share their buffers.
        usage: XLA's report of its memory usage.
    Returns:
        The profile; `Unknown` if calls are nested too deep, or called too often, or if an array has
        a dimension of unknown size.
    Raises:
        HloError: an instruction is invalid.

    >>> import hlo
    >>> profile = memory_profile(hlo.parse('''HloModule m, is_scheduled=true
    ... ENTRY e {
    ...   p = f32[64,10]{1,0:T(8,128)} parameter(0)
    ...   n = f32[64,10]{1,0:T(8,128)} negate(p)
    ...   ROOT r = f32[64,10]{1,0:T(8,128)} exponential(n)
    ... }'''))
    >>> profile.peak, profile.peaks[0]
    (98304, SpacePeak(space=0, name='HBM', step=2, stored_bytes=98304, dense_bytes=7680))
    >>> for buffer in profile.at_peak:
    ...     print(buffer.name, buffer.kind, buffer.dense_bytes, buffer.stored_bytes, buffer.life)
    p argument 2560 32768 ((0, 2),)
    n temporary 2560 32768 ((1, 2),)
    r output 2560 32768 ((2, 2),)

    Source: XLA ``xla/hlo/utils/hlo_live_range.cc``.
    """
    lives = lives_of(module, assignment)
    if isinstance(lives, Unknown):
        return lives
    held: dict[Value, list[Value]] = {}
    for value in lives.values:
        if unbounded_leaf(value.shape) is not None:
            name = array_name(value.array)
            return Unknown(
                f"`{name}`: {value.shape} has a dimension of unknown size", value.array.instruction
            )
        held.setdefault(value.buffer, []).append(value)
    arguments = {value.buffer for value in lives.arguments}
    results = {value.buffer for value in lives.results}
    buffers = [
        _buffer(values, _kind(values, buffer in arguments, buffer in results))
        for buffer, values in held.items()
    ]
    return MemoryProfile(module, tuple(lives.steps), tuple(buffers), assignment, usage)


def _buffer(values: list[Value], kind: Kind) -> HloBuffer:
    arrays = tuple(dict.fromkeys([value.array for value in values]))
    shape = max([value.shape for value in values], key=lambda shape: shape.physical_bytes)
    return HloBuffer(
        arrays, shape, kind, tuple(_join_intervals([(v.first, v.last) for v in values]))
    )


def _join_intervals(intervals: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield the union of intervals as disjoint intervals."""
    start, end = min(intervals)
    for first, last in sorted(intervals):
        if first > end + 1:
            yield start, end
            start, end = first, last
        end = max(end, last)
    yield start, end


def _kind(values: list[Value], is_argument: bool, is_result: bool) -> Kind:
    if is_argument:
        return "donated" if is_result and len(values) > 1 else "argument"
    if is_result:
        return "output"
    is_given = declarations_of(values[0].array.instruction).is_given
    return "constant" if is_given else "temporary"

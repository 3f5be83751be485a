"""Values that are overwritten: does an instruction still read an element of them?

A value is safe if each read is before the other value is written.  Maps decide on reads in the same
step, and on later ones, which may be of other elements.

Steps are those of `indexing.memory.buffers.values`.  A loop or a conditional passes the contents of
arrays on, without a copy: what reads them in the loop or after it reads the array that they are of.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple, TypeAlias

from hlo.modules.module import Instruction
from hlo.shapes.shape import Shape, leaves
from indexing.dataflow.queries import output_to_input
from indexing.equivalence.in_place import Hazard
from indexing.equivalence.joined_slices import decide_written
from indexing.equivalence.verdicts import Differs, Proved, Undecided, Verdict
from indexing.equivalence.written_places import OverwrittenElement, Written, first_violation
from indexing.maps.arrays import Path, array_name
from indexing.memory.buffers.values import Lives, ReadStep, Value
from indexing.memory.movement.writes import inner_update
from indexing.ops.element import shared_leaf

RESULT: Final = "what calls the program"


class Bytes(NamedTuple):
    """The place of an array: the allocation, and the bytes in it from `first` to before `end`."""

    allocation: int
    first: int
    end: int

    @property
    def size(self) -> int:
        """The number of bytes."""
        return self.end - self.first

    def overlaps(self, other: Bytes) -> bool:
        """Return True if both have a byte in common."""
        is_near = self.allocation == other.allocation
        return is_near and self.first < other.end and other.first < self.end

    def __str__(self) -> str:
        return f"bytes {self.first:,} to {self.end - 1:,} of allocation {self.allocation}"


DecidedResults: TypeAlias = "Mapping[tuple[Instruction, int, Path], Verdict]"
"""Results in the memory of an operand, by instruction, number of the operand and leaf."""


class Overwriting:
    """Decides on pairs of values that have some of the same bytes.

    Attributes:
        lives: the values along the schedule.
        places: where they are.
        decided: the verdicts on results in the memory of an operand.
    """

    def __init__(
        self, lives: Lives, places: Mapping[Value, Bytes], decided: DecidedResults
    ) -> None:
        self.lives = lives
        self.places = places
        self.decided = decided
        self.arguments = set(lives.arguments)

    def verdict(self, *pair: Value) -> Verdict | None:
        """Return the verdict on two values; None if it is among those on results."""
        earlier, later = sorted(pair, key=written_order)
        if later.origin != "written":
            return None
        known = [self._decide(read, later) for read in earlier.reads]
        if any(isinstance(each, Differs) for each in known):
            return None
        verdicts = list(self._reads(earlier, later))
        if earlier.first == later.first:
            verdicts += self._reads(later, earlier)
        for verdict in verdicts:
            if isinstance(verdict, Differs):
                return verdict
        unclear = [verdict for verdict in verdicts if isinstance(verdict, Undecided)]
        if unclear:
            return unclear[0]
        return Proved("values") if known.count(None) == len(known) else None

    def _decide(self, read: ReadStep, writer: Value) -> Verdict | None:
        """Return the verdict on a result in the memory of what is read in the same step."""
        if read.step != writer.first or read.operand is None:
            return None
        return self.decided.get((writer.array.instruction, read.operand, writer.array.path))

    def _reads(self, value: Value, writer: Value) -> Iterator[Verdict]:
        """Yield a verdict for each read of a value after another is written, or while it is."""
        start = writer.first
        is_constant = value.origin == "given" and value not in self.arguments
        if value.last < start and not is_constant:
            return
        for read in value.reads:
            if is_constant or (read.is_after(start) and not self._exclude(read.step, start)):
                yield from self._later(read, value, writer)
            elif read.step == start:
                yield from self._at_once(read, value, writer)
        for heir in self._heirs(value, start):
            for read in heir.reads:
                yield from self._later(read, value, writer)
            if heir.is_result:
                yield self._overwritten(RESULT, value, writer)
        if value.is_result:
            yield self._overwritten(RESULT, value, writer)

    def _exclude(self, step: int, other: int) -> bool:
        """Return True if two steps are in different branches of a conditional."""
        for branches in self.lives.choices:
            within = [
                next((n for n, (first, last) in enumerate(branches) if first <= s <= last), None)
                for s in (step, other)
            ]
            if None not in within and within[0] != within[1]:
                return True
        return False

    def _heirs(self, value: Value, start: int) -> Iterable[Value]:
        """Return what takes the contents of a value after a step, directly or through others."""
        heirs: dict[Value, None] = {}
        new = [heir for at, heir in value.heirs if at >= start and not self._exclude(at, start)]
        while new:
            heir = new.pop()
            if heir not in heirs:
                heirs[heir] = None
                new += [each for _, each in heir.heirs]
        return heirs

    def _at_once(self, read: ReadStep, value: Value, writer: Value) -> Iterator[Verdict]:
        """Yield the verdict on an instruction that reads one value and writes the other."""
        instruction, path = writer.array.instruction, writer.array.path
        assert read.operand is not None
        if self._decide(read, writer) is not None:
            return
        shape = instruction.operands[read.operand].shape
        if not isinstance(shape, Shape):
            yield Undecided(f"`{instruction.name}` reads a tuple", instruction)
            return
        written = Written(writer.shape, shape, self.places[writer].first - self.places[value].first)
        verdict = decide_written(instruction, read.operand, path, written)
        if isinstance(verdict, Differs):
            verdict = _weaken(verdict, writer)
        yield verdict

    def _later(self, read: ReadStep, value: Value, writer: Value) -> Iterator[Verdict]:
        """Yield the verdict on an instruction that reads a value after the other is written."""
        reader = self.lives.steps[read.step]
        if read.operand is None:
            yield self._overwritten("a loop or a conditional", value, writer)
            return
        offset = self.places[writer].first - self.places[value].first
        element = _read_elements(reader, read, writer.shape, offset)
        own, other = self.places[value], self.places[writer]
        if isinstance(element, Undecided) and other.first <= own.first and own.end <= other.end:
            yield self._overwritten(f"`{reader.name}`", value, writer, reader)
        elif isinstance(element, Undecided):
            reason = f"`{reader.name}` reads `{array_name(value.array)}` later: {element.reason}"
            yield Undecided(reason, reader)
        elif element is not None:
            yield _weaken(_element_hazard(element, reader, value, writer), writer)

    def _overwritten(
        self, reader: str, value: Value, writer: Value, instruction: Instruction | None = None
    ) -> Verdict:
        """Return the verdict on a read of a whole value after it is overwritten."""
        by = writer.array.instruction
        reason = f"{reader} reads `{array_name(value.array)}` after `{by.name}` wrote to its memory"
        return _weaken(Hazard(0, (), reason, "values", reader=instruction or by), writer)


def _element_hazard(
    read: OverwrittenElement, reader: Instruction, value: Value, writer: Value
) -> Hazard:
    """Return the verdict on an element that is read after it is overwritten."""
    name, written = array_name(value.array), array_name(writer.array)
    cell = "padding" if read.writer is None else f"element {list(read.writer)}"
    text = f"element {list(read.point)} of `{reader.name}` reads {list(read.element)} of `{name}`"
    return Hazard(
        0,
        read.point,
        f"{text}, where {cell} of `{written}` is written",
        "values",
        reader=read.point,
        writer=read.writer,
        operand_element=read.element,
    )


def _weaken(hazard: Differs, writer: Value) -> Differs | Undecided:
    """Return a hazard as undecided if the instruction may write elsewhere: an update."""
    instruction, path = writer.array.instruction, writer.array.path
    if inner_update(instruction, path) is None:
        return hazard
    reason = f"`{instruction.name}` writes only its updates, perhaps not there: {hazard.reason}"
    return Undecided(reason, instruction)


def written_order(value: Value) -> tuple[int, bool]:
    """Return what orders values by the steps in which their contents begin."""
    return (-1 if value.origin == "given" else value.first, value.origin == "written")


def _read_elements(
    reader: Instruction, read: ReadStep, written: Shape, offset: int
) -> OverwrittenElement | Undecided | None:
    """Return an element that an instruction reads in the bytes of another array.

    An array of which a `done` reads was read by the `start`, as an operand.
    """
    number, path = read.operand, read.path
    assert number is not None
    while path or not isinstance(reader.operands[number].shape, Shape):
        reader = reader.operands[number]
        shared = shared_leaf(reader, path)
        if shared is None:
            return Undecided(f"`{reader.name}` may still write it", reader)
        number, path = shared
    shape = reader.operands[number].shape
    assert isinstance(shape, Shape)
    undecided: Undecided | None = None
    arrays = leaves(reader.shape)
    if not any(isinstance(leaf, Shape) for _, leaf in arrays):
        undecided = Undecided(f"`{reader.name}` has no result with maps", reader)
    for output, (_, leaf) in enumerate(arrays):
        if isinstance(leaf, Shape):
            answer = output_to_input(reader, output, exact=True)
            element = first_violation(answer.maps[number], Written(written, shape, offset), False)
            if isinstance(element, OverwrittenElement):
                return element
            if (unknown := answer.unknown[number]) is not None:
                element = Undecided(str(unknown), reader)
            undecided = undecided if element is None else element
    return undecided

"""Arrays that a buffer assignment places over each other: is each read before it is overwritten?

Two arrays may take some of the same bytes if what is read of the earlier one is read before the
later one is written; `overwriting` decides it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from hlo.modules.module import Instruction, Module
from indexing.equivalence.in_place import Hazard
from indexing.equivalence.overwriting import Bytes, DecidedResults, Overwriting, written_order
from indexing.equivalence.verdicts import Differs, Proved, Undecided, Verdict
from indexing.maps.arrays import ArrayRef, Path, array_name
from indexing.memory.buffers.assignment import BufferAssignment
from indexing.memory.buffers.values import Lives, Value, lives_of
from indexing.memory.movement.writes import viewed_array
from indexing.ops.element import declarations_of
from simplifier.unknown import Unknown


@dataclass(frozen=True, slots=True)
class Overlap:
    """Two arrays with some of the same bytes that are not proved safe.

    Attributes:
        names: the arrays.
        places: their places.
        verdict: a `Hazard`, or why they are undecided.
        instruction: what overwrites one of them; None if undecided.
    """

    names: tuple[str, str]
    places: tuple[Bytes, Bytes]
    verdict: Differs | Undecided
    instruction: Instruction | None = None

    def __str__(self) -> str:
        word = "undecided" if isinstance(self.verdict, Undecided) else "not safe"
        return f"{word}: {self.where}: {self.verdict.reason}"

    @property
    def where(self) -> str:
        """The bytes of both arrays."""
        (first, second), (own, other) = self.names, self.places
        return f"`{first}` has {own}, `{second}` has {other}"


@dataclass(frozen=True, slots=True)
class Overlaps:
    """The pairs of arrays with some of the same bytes, except results in place of an operand.

    Attributes:
        pairs: their number.
        in_part: the number of those that do not have all bytes in common.
        faults: those that are not safe.
        undecided: those that are not decided.
        reason: why none is known, or "".
    """

    pairs: int = 0
    in_part: int = 0
    faults: tuple[Overlap, ...] = ()
    undecided: tuple[Overlap, ...] = ()
    reason: str = ""

    @property
    def safe(self) -> int:
        """The number of pairs that are safe."""
        return self.pairs - len(self.faults) - len(self.undecided)


def overlaps_of(module: Module, assignment: BufferAssignment, decided: DecidedResults) -> Overlaps:
    """Return the pairs of arrays that have some of the same bytes in an assignment.

    Args:
        decided: the verdicts on results in the memory of an operand.

    >>> import hlo
    >>> module = hlo.parse('''HloModule m, is_scheduled=true
    ... ENTRY e { x = f32[4] parameter(0)  p = f32[4] negate(x)  q = f32[4] sine(x)
    ...   a = f32[2] slice(p), slice={[2:4]}  ROOT r = (f32[2], f32[4]) tuple(a, q) }''')
    >>> assignment = BufferAssignment.parse('''BufferAssignment:
    ... allocation 0: size 24, preallocated-temp:
    ...  value: <1 p @0> (size=16,offset=0): f32[4]{0}
    ...  value: <2 q @0> (size=16,offset=8): f32[4]{0}
    ... ''')
    >>> (fault,) = overlaps_of(module, assignment, {}).faults
    >>> print(fault.verdict.reason)
    element [0] of `a` reads [2] of `p`, where element [0] of `q` is written
    """
    lives = lives_of(module)
    if isinstance(lives, Unknown):
        return Overlaps(reason=str(lives))
    return _AssignedPairs(lives, decided).checked(assignment)


class _Item(NamedTuple):
    """A value that an assignment places, or the name of an array that is not followed.

    Attributes:
        place: its bytes.
        value: the value; None for the table of pointers of a tuple, and if it is in no step.
        name: its name.
    """

    place: Bytes
    value: Value | None
    name: str


class _AssignedPairs:
    """Decides on the pairs of an assignment."""

    def __init__(self, lives: Lives, decided: DecidedResults) -> None:
        self.lives = lives
        self.places: dict[Value, Bytes] = {}
        self.overwriting = Overwriting(lives, self.places, decided)

    def checked(self, assignment: BufferAssignment) -> Overlaps:
        """Return the pairs, with those that are not safe."""
        items = list(self._items(assignment))
        faults, undecided = list(self._moved_contents()), list[Overlap]()
        pairs = in_part = len(faults)
        for first, second in _overlapping(items):
            if (verdict := self._verdict(first, second)) is None:
                continue
            pairs += 1
            in_part += first.place != second.place
            if isinstance(verdict, Proved):
                continue
            names, places = (first.name, second.name), (first.place, second.place)
            if isinstance(verdict, Undecided):
                undecided.append(Overlap(names, places, verdict))
            else:
                faults.append(Overlap(names, places, verdict, _writer(first, second)))
        return Overlaps(pairs, in_part, tuple(faults), tuple(undecided))

    def _items(self, assignment: BufferAssignment) -> Iterator[_Item]:
        """Yield all arrays and tables of the assignment, except those of threads."""
        assigned = {
            (value.name, value.path): Bytes(
                allocation.number, value.offset, value.offset + value.size
            )
            for allocation in assignment.allocations
            if not allocation.is_thread_local
            for value in allocation.values
            if value.size
        }
        followed = set()
        for value in self.lives.values:
            key = _key(value.array)
            if key not in assigned and (inner := _wrapped_array(value.array)) is not None:
                key = _key(inner)
            followed.add(key)
            place = assigned.get(key, self.places.get(value))
            if place is not None:
                self.places[value] = place
                for _, heir in value.heirs:
                    self.places.setdefault(heir, place)  # XLA does not list what a loop keeps
                yield _Item(place, value, array_name(value.array))
        for name, path in assigned.keys() - followed:
            text = "{" + ",".join(map(str, path)) + "}" if path else ""
            yield _Item(assigned[name, path], None, f"{name}{text}")

    def _moved_contents(self) -> Iterator[Overlap]:
        """Yield contents that are taken from another place: by loops, conditionals and joins."""
        for value, taken in self._taken_contents():
            own, other = self.places.get(value), self.places.get(taken)
            is_join = taken.origin == "written"  # of slices, which are parts of the whole
            if own is None or other is None or own == other or (is_join and own.overlaps(other)):
                continue
            names = array_name(value.array), array_name(taken.array)
            reason = f"`{names[1]}` takes `{names[0]}` from another place without a copy"
            hazard = Hazard(0, (), reason, "values", reader=taken.array.instruction)
            yield Overlap(names, (own, other), hazard, taken.array.instruction)

    def _taken_contents(self) -> Iterator[tuple[Value, Value]]:
        """Yield the values whose contents others take."""
        joined = {
            value.first: value
            for value in self.lives.values
            if declarations_of(value.array.instruction).joins_operands
        }
        for value in self.lives.values:
            yield from [(value, heir) for _, heir in value.heirs]
            yield from [(value, joined[read.step]) for read in value.reads if read.step in joined]

    def _verdict(self, first: _Item, second: _Item) -> Verdict | None:
        """Return the verdict on two items; None if there is nothing to decide."""
        if first.value is not None and second.value is not None:
            return self.overwriting.verdict(first.value, second.value)
        if first.value is None and second.value is None:
            return None
        name = (second if second.value is None else first).name
        return Undecided(f"`{name}` is in no step of the schedule")


def _overlapping(items: Iterable[_Item]) -> Iterator[tuple[_Item, _Item]]:
    """Yield the pairs of items with some of the same bytes."""
    active: list[_Item] = []
    for item in sorted(items, key=lambda each: each.place):
        active = [each for each in active if each.place.overlaps(item.place)]
        yield from [(each, item) for each in active]
        active.append(item)


def _writer(*items: _Item) -> Instruction:
    """Return the instruction that writes the later of two values."""
    values = [each.value for each in items if each.value is not None]
    return max(values, key=written_order).array.instruction


def _key(array: ArrayRef) -> tuple[str, Path]:
    return array.instruction.name, array.path


def _wrapped_array(array: ArrayRef) -> ArrayRef | None:
    """Return the array of a wrapped computation that is a leaf of an asynchronous start."""
    called = array.instruction.called_computations
    if len(called) != 1 or not array.path:
        return None
    return viewed_array(ArrayRef(called[0].root, array.path[1:]))

"""Results in the memory of operands, and arrays over each other: the verdicts on a whole module."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from hlo.modules.module import Module
from hlo.shapes.shape import Shape
from hlo.text.source import HloError
from indexing.equivalence.in_place import in_place
from indexing.equivalence.joined_slices import decide_written
from indexing.equivalence.overlaps import Overlaps, overlaps_of
from indexing.equivalence.verdicts import Differs, Proved, Verdict
from indexing.equivalence.written_places import Written
from indexing.maps.arrays import ArrayRef, array_at, array_name
from indexing.memory.buffers.assignment import BufferAssignment
from indexing.memory.buffers.shared_results import SharedResult, shared_results

CODE: Final = "in-place"
Word: TypeAlias = Literal["safe", "not safe", "undecided"]


@dataclass(frozen=True, slots=True)
class DecidedResult:
    """The verdict on a result in the memory of an operand.

    Attributes:
        sharing: the result, the operand, and what places it there.
        verdict: whether it is safe.
    """

    sharing: SharedResult
    verdict: Verdict

    def __str__(self) -> str:
        return f"{self.name}: {self.reason}"

    @property
    def name(self) -> str:
        """The result and the operand."""
        each = self.sharing.instruction
        result = array_name(ArrayRef(each, self.sharing.path))
        return f"`{result}` in the memory of `{each.operands[self.sharing.operand].name}`"

    @property
    def word(self) -> Word:
        """The verdict in a word."""
        if isinstance(self.verdict, Proved):
            return "safe"
        return "not safe" if isinstance(self.verdict, Differs) else "undecided"

    @property
    def reason(self) -> str:
        """Why it is so, in a few words."""
        return self.verdict.note if isinstance(self.verdict, Proved) else self.verdict.reason


@dataclass(frozen=True, slots=True)
class SharedMemory:
    """Verdicts on the memory that the arrays of a module share.

    Attributes:
        results: the results in the memory of operands.
        overlaps: the other pairs of arrays with some of the same bytes in an assignment; None
            without an assignment.
        is_scheduled: the text of the module has the order of execution; before, XLA may add copies.
    """

    results: tuple[DecidedResult, ...] = ()
    overlaps: Overlaps | None = None
    is_scheduled: bool = False

    @property
    def errors(self) -> tuple[HloError, ...]:
        """The hazards, with their places in the text."""
        unsafe = [
            HloError(
                each.reason,
                each.sharing.instruction.span,
                CODE,
                notes=[f"{each.name}: {each.sharing.why}"],
            )
            for each in self.results
            if each.word == "not safe"
        ]
        faults = () if self.overlaps is None else self.overlaps.faults
        overwritten = [
            HloError(each.verdict.reason, each.instruction.span, CODE, notes=[each.where])
            for each in faults
            if each.instruction is not None
        ]
        return (*unsafe, *overwritten)

    def count(self, word: Word) -> int:
        """Return the number of results with a verdict."""
        return sum(each.word == word for each in self.results)


def check_in_place(module: Module, assignment: BufferAssignment | None = None) -> SharedMemory:
    """Decide on the results of a module that are written into the memory of operands.

    With an assignment of XLA, these include the pairs at one place, and all other pairs of arrays
    that have some of the same bytes are checked, too.

    >>> import hlo
    >>> module = hlo.parse('''HloModule m, is_scheduled=true
    ... ENTRY e { x = f32[9] parameter(0)  i = s32[] parameter(1)
    ...   p = f32[9] negate(x)  u = f32[2] slice(x), slice={[0:2]}
    ...   ROOT r = f32[9] dynamic-update-slice(p, u, i) }''')
    >>> for result in check_in_place(module).results:
    ...     print(result.word, result.name)
    safe `r` in the memory of `p`
    """
    results = [DecidedResult(each, _verdict(each)) for each in shared_results(module, assignment)]
    decided = {each.sharing[:3]: each.verdict for each in results}
    overlaps = None if assignment is None else overlaps_of(module, assignment, decided)
    return SharedMemory(tuple(results), overlaps, module.header("is_scheduled", False))


def _verdict(sharing: SharedResult) -> Verdict:
    each, number, path, _ = sharing
    result, operand = array_at(each.shape, path), each.operands[number].shape
    if isinstance(result, Shape) and isinstance(operand, Shape):
        written = Written(result, operand)
        if not written.is_same_place:
            return decide_written(each, number, path, written)
    return in_place(each, number, path)

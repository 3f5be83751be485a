"""Where lines of a program went: instructions by the lines that made them, with their bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hlo.modules.module import Instruction, Module
from hlo.modules.op_source import StackFrame
from hlo.modules.patterns import full_name
from hlo.text.names import counted_noun
from indexing.memory.movement.amounts import TotalBounds
from indexing.memory.movement.analysis import traffic
from indexing.memory.movement.traffic_values import InstructionTraffic
from indexing.views.map_tables import Paint, plain
from indexing.views.records import SCHEMA_VERSION
from indexing.views.source_lines import HOW_TEXTS, Links, inner_instructions
from indexing.views.tables import fit_columns

if TYPE_CHECKING:
    from indexing.equivalence.correspondence import InstructionLink

MAX_NAMED: Final = 4
"""Limit on the instructions that a line names."""


@dataclass(frozen=True, slots=True)
class SourcePlace:
    """A line of a file, or all of its lines.

    Attributes:
        file: the file, or the end of its path.
        line: the number of the line; None for all lines.
    """

    file: str
    line: int | None = None

    @classmethod
    def parse(cls, text: str) -> SourcePlace:
        """Read ``FILE:LINE`` or ``FILE``.

        >>> SourcePlace.parse("models/layers.py:14")
        SourcePlace(file='models/layers.py', line=14)
        """
        file, _, line = text.rpartition(":")
        return cls(file, int(line)) if file and line.isdecimal() else cls(text)

    def has(self, frame: StackFrame) -> bool:
        """Return True for a frame in the place."""
        is_file = frame.file == self.file or frame.file.endswith(f"/{self.file}")
        if not is_file or self.line is None or frame.line is None:
            return is_file and self.line is None
        return frame.line <= self.line <= (frame.end_line or frame.line)

    def __str__(self) -> str:
        return self.file if self.line is None else f"{self.file}:{self.line}"


class SourceKernel(NamedTuple):
    """An instruction that is executed, with the instructions in it that a place made.

    Attributes:
        traffic: the bytes that it moves.
        made: itself, or instructions of its fusion, that the place made by their metadata.
        size: the number of instructions in it.
        linked: instructions that the place made before the passes, and what became of them here.
    """

    traffic: InstructionTraffic
    made: tuple[Instruction, ...]
    size: int
    linked: tuple[InstructionLink, ...] = ()

    @property
    def number(self) -> int:
        """Number of instructions that the place made; at most `size`."""
        return min(len({*self.made, *[link.after for link in self.linked]}), self.size)

    @property
    def bytes(self) -> TotalBounds:
        """Bounds of the bytes of all executions."""
        return self.traffic.totals.bytes


def kernels_of_place(
    module: Module, place: SourcePlace, *, callers: bool = True, links: Links = MappingProxyType({})
) -> list[SourceKernel]:
    """Return the instructions that a place made, by the kernel that computes them.

    Args:
        callers: instructions that functions made which the place calls count, too.
        links: `links_between` the module before the passes and this one, whose places count, too.
    """

    def is_made(instruction: Instruction) -> bool:
        return any(map(place.has, frames_of(instruction, callers)))

    kernels = []
    for each in traffic(module).instructions:
        inner = list(inner_instructions(each.instruction))
        made = tuple(filter(is_made, inner))
        linked: dict[Instruction, InstructionLink] = {}  # by the instruction before
        for link in (link for i in (*inner, each.instruction) for link in links.get(i, ())):
            if is_made(link.before) and (place.line is None or link.after not in made):
                if link.before.source.line != link.after.source.line:
                    linked.setdefault(link.before, link)
        if made or linked:
            kernels.append(SourceKernel(each, made, len(inner), tuple(linked.values())))
    return sorted(kernels, key=lambda kernel: -kernel.bytes.lower)


def lines_of(instructions: Iterable[Instruction]) -> dict[str, list[Instruction]]:
    """Return instructions by the innermost line that made them, those inside of fusions too."""
    lines: dict[str, list[Instruction]] = {}
    for each in instructions:
        for inner in inner_instructions(each):
            frame = inner.source.frame
            if frame is not None:
                lines.setdefault(f"{frame.file}:{frame.line}", []).append(inner)
    return lines


def frames_of(instruction: Instruction, callers: bool) -> Sequence[StackFrame]:
    """Return the places that made an instruction: the innermost, perhaps with its callers."""
    frames = instruction.source.frames
    return frames if callers else frames[:1]


@dataclass(frozen=True, slots=True)
class SourceTable:
    """The kernels that a place of a program made in a module."""

    module: Module
    place: SourcePlace
    kernels: Sequence[SourceKernel]

    def lines(self, paint: Paint = plain, width: int | None = None) -> Iterator[str]:
        """Yield the lines of the text, folded to the `width` of a terminal."""
        total = TotalBounds(0, 0)
        for kernel in self.kernels:
            total = total.plus(kernel.bytes)
        count = sum(kernel.number for kernel in self.kernels)
        made, kernels = (
            counted_noun(count, "instruction"),
            counted_noun(len(self.kernels), "kernel"),
        )
        place = paint(str(self.place), "name")
        yield f"{self.module.filename}: {place}: {made} in {kernels}, {total} bytes moved"
        if self.place.line is None:
            yield from self._by_line(width)
            return
        rows = [
            [
                str(kernel.bytes),
                f"{kernel.number} of {kernel.size}",
                f"{kernel.traffic.instruction.opcode} {full_name(kernel.traffic.instruction)}",
                _name_list(kernel),
            ]
            for kernel in self.kernels
        ]
        if rows:
            head = ["bytes", "made", "kernel", "instructions"]
            yield from fit_columns([head, *rows], [0], 60, width)

    def _by_line(self, width: int | None) -> Iterator[str]:
        """Yield a row for each line that made instructions, the innermost of their places."""
        rows: dict[str, list[tuple[SourceKernel, int]]] = {}
        for kernel in self.kernels:
            before = [link.before for link in kernel.linked]
            for line, made in lines_of([*kernel.made, *before]).items():
                if self.place.has(StackFrame(line.rpartition(":")[0])):
                    rows.setdefault(line, []).append((kernel, len(made)))
        cells = []
        for line, kernels in rows.items():
            moved = TotalBounds(0, 0)
            for kernel, _ in kernels:
                moved = moved.plus(kernel.bytes)
            count = sum(number for _, number in kernels)
            cells.append((moved.lower, [str(moved), str(len(kernels)), str(count), line]))
        cells.sort(key=lambda each: -each[0])
        head = ["bytes of kernels", "kernels", "made", "line"]
        if cells:
            yield from fit_columns([head, *[row for _, row in cells]], range(3), width=width)

    def to_json(self) -> dict[str, Any]:
        """Return the kernels as a value for JSON; `schemas/source.json` is its schema."""
        return {
            "file": self.module.filename,
            "module": self.module.name,
            "place": str(self.place),
            "kernels": [
                {
                    "computation": kernel.traffic.instruction.computation.name,
                    "instruction": kernel.traffic.instruction.name,
                    "opcode": kernel.traffic.instruction.opcode,
                    "bytes": list(kernel.bytes),
                    "made": [
                        {"computation": each.computation.name, "instruction": each.name}
                        for each in kernel.made
                    ],
                    "instructions": kernel.size,
                    "linked": [
                        {
                            "computation": link.after.computation.name,
                            "instruction": link.after.name,
                            "before": link.before.name,
                            "how": link.how,
                        }
                        for link in kernel.linked
                    ],
                }
                for kernel in self.kernels
            ],
            "schema_version": SCHEMA_VERSION,
        }


def _name_list(kernel: SourceKernel) -> str:
    """Return the names of the instructions; those found by the module before, with how."""
    names = [each.name for each in kernel.made]
    for link in kernel.linked:
        names.append(f"{link.after.name} from {link.before.name} ({HOW_TEXTS[link.how]})")
    more = len(names) - MAX_NAMED
    return ", ".join(names[:MAX_NAMED]) + (f" and {more} more" if more > 0 else "")

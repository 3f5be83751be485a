"""Figures of the traffic of instructions: the values that `indexing.traffic` returns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple, TypeAlias

from hlo.modules.module import Computation, Instruction, Module
from hlo.text.names import UnknownName
from indexing.maps.displayed import Displayed
from indexing.maps.indexing_map import Grade
from indexing.memory.executions import Executions
from indexing.memory.movement.amounts import Amount, TotalBounds, Totals, total_amount
from indexing.memory.movement.drawn_traffic import DrawnTraffic
from indexing.memory.movement.memory_spaces import SpaceTotals, SpaceTraffic, traffic_by_space
from indexing.memory.movement.operand_traffic import OperandTraffic
from indexing.memory.movement.writes import Writes, dense_bytes
from indexing.memory.spaces import DEFAULT_SPACE
from indexing.ops.element import Work
from simplifier.unknown import Unknown

Recompute: TypeAlias = "Mapping[Instruction, Fraction | Unknown]"


@dataclass(frozen=True, repr=False)
class InstructionTraffic(Displayed):
    """The traffic of one instruction with memory, in one execution.

    Attributes:
        instruction: an instruction that computes arrays in memory: a fusion, or an op outside of
            fusions.
        executions: bounds of the number of executions.
        operands: the reads of each array.
        writes: the arrays that are written.
        updates: the dynamic-update-slices whose results may stay in place, in the memory of an
            operand: only the update is written, and the rest of the operand is not read.
        work: the operations that compute every value once, and so equal windows once.
        evaluated: the operations if each element of the result computes the values that it needs,
            and so equal windows each.
        recompute: for each instruction in a fusion, the number of its evaluated elements per
            element.
        evaluated_grade: "may" if factors of `recompute`, and so `evaluated`, are upper bounds.
    """

    instruction: Instruction
    executions: Executions
    operands: tuple[OperandTraffic, ...]
    writes: Writes
    updates: tuple[Instruction, ...]
    work: Work | Unknown
    evaluated: Work | Unknown
    recompute: Recompute
    evaluated_grade: Grade = "exact"

    @cached_property
    def read(self) -> Amount:
        """Bytes of the distinct elements of all operands."""
        return total_amount([each.distinct for each in self.operands])

    @property
    def loaded(self) -> Amount:
        """Bytes of the distinct elements that the loop loads, masked ones included: `read`."""
        return self.read

    @cached_property
    def needed(self) -> Amount:
        """Bytes of the distinct elements of all operands that the result needs."""
        return total_amount([each.needed for each in self.operands])

    @cached_property
    def requested(self) -> Amount | Unknown:
        """Bytes of all reads of all operands."""
        amounts: list[Amount] = []
        for each in self.operands:
            requested = each.requested
            if isinstance(requested, Unknown):
                return requested
            amounts.append(requested)
        return total_amount(amounts)

    @cached_property
    def written(self) -> int | Unknown:
        """Bytes of the arrays that are written, without padding."""
        return dense_bytes(self.writes)

    @cached_property
    def spaces(self) -> Mapping[int, SpaceTraffic]:
        """The traffic with each memory space, by its number."""
        reads = [(each.shape, each.elements, each.distinct, each.padding) for each in self.operands]
        return traffic_by_space(reads, self.writes)

    @cached_property
    def all_spaces(self) -> SpaceTraffic | Unknown:
        """The traffic with all memory spaces."""
        if isinstance(self.writes, Unknown):
            return self.writes
        total = SpaceTraffic()
        for own in self.spaces.values():
            total = total.plus(own)
        return total

    @property
    def stored(self) -> Amount | Unknown:
        """Bytes of the default memory that are read and written, with padding."""
        if isinstance(self.writes, Unknown):
            return self.writes
        return self.spaces.get(DEFAULT_SPACE, SpaceTraffic()).stored

    @property
    def bytes(self) -> Amount | Unknown:
        """Bytes that are read, each element once, and written."""
        if isinstance(self.written, Unknown):
            return self.written
        return self.read.plus(Amount(self.written))

    @property
    def flops(self) -> int | Unknown:
        """The operations that compute every value once, without transcendental functions."""
        return self.work if isinstance(self.work, Unknown) else self.work.flops

    @property
    def intensity(self) -> Fraction | Unknown | None:
        """Operations per byte (`flops` / `bytes`), at least; None if no byte is moved."""
        if isinstance(self.flops, Unknown):
            return self.flops
        if isinstance(self.bytes, Unknown):
            return self.bytes
        return Fraction(self.flops, self.bytes.number) if self.bytes.number else None

    @property
    def totals(self) -> Totals:
        """Bounds of the figures over all executions."""
        times, work = self.executions, self.work
        read = needed = TotalBounds(0, 0)
        for each in self.operands:
            read = read.plus(TotalBounds.of(each.distinct, times))
            needed = needed.plus(TotalBounds.of(each.needed, times))
        return Totals(
            read,
            needed,
            TotalBounds.of(self.requested, times),
            TotalBounds.of(self.written, times),
            TotalBounds.of(self.flops, times),
            TotalBounds.of(work if isinstance(work, Unknown) else work.transcendentals, times),
        )

    @property
    def rows(self) -> Iterator[TrafficRow]:
        """A row for each operand; one without operand for an instruction that reads nothing."""
        operands: tuple[OperandTraffic | None, ...] = self.operands or (None,)
        return (TrafficRow(self, each) for each in operands)

    def __repr__(self) -> str:
        return (
            f"<traffic of {self.instruction.opcode} `{self.instruction.name}`: {self.bytes} bytes>"
        )

    def __str__(self) -> str:
        lines = [
            f"{self.instruction.opcode} {self.instruction.name}: reads {self.read}, writes "
            f"{_figure_text(self.written)} bytes, {_figure_text(self.flops)} flops"
        ]
        for each in self.operands:
            requested = each.requested
            needed = "" if each.needed == each.loaded else f"{each.needed} needed, "
            lines.append(
                f"  {each.source.name}: {each.distinct} distinct, {needed}"
                f"{_figure_text(requested)} requested bytes of {each.shape.bytes:,}"
            )
        factors = {i.name: f for i, f in self.recompute.items() if isinstance(f, Unknown) or f != 1}
        for name, factor in factors.items():
            text = f"unknown: {factor}" if isinstance(factor, Unknown) else f"{float(factor):.4g}"
            lines.append(f"  {name} is evaluated {text} times")
        return "\n".join(lines)


class TrafficRow(NamedTuple):
    """One operand of one instruction, with the figures of the instruction.

    Attributes:
        of: the traffic of the instruction.
        read: the reads of the operand; None if the instruction reads nothing.
    """

    of: InstructionTraffic
    read: OperandTraffic | None

    def __repr__(self) -> str:
        reader = f"{self.instruction.opcode} `{self.instruction.name}`"
        return f"<{reader} reads {self.read.text if self.read else 'nothing'}>"

    @property
    def instruction(self) -> Instruction:
        """The instruction that reads and writes."""
        return self.of.instruction

    @property
    def operand(self) -> int | None:
        """The number of the operand; None for a constant in a fusion, or if nothing is read."""
        return self.read.operand if self.read else None

    @property
    def distinct(self) -> int:
        """Bytes of the distinct elements of the operand that are read, at most (`grade`)."""
        return self.read.distinct.number if self.read else 0

    @property
    def loaded(self) -> int:
        """Bytes of the distinct elements that the loop loads, masked ones included: `distinct`."""
        return self.distinct

    @property
    def needed(self) -> int:
        """Bytes of the distinct elements of the operand that the result needs, at most."""
        return self.read.needed.number if self.read else 0

    @property
    def requested(self) -> int | Unknown:
        """Bytes of all reads of the operand, at most (`grade`)."""
        requested = self.read.requested if self.read else Amount(0)
        return requested if isinstance(requested, Unknown) else requested.number

    @property
    def grade(self) -> Grade:
        """Grade "may" if `distinct` or `requested` is an upper bound."""
        amounts = (self.read.elements, self.read.reads) if self.read else ()
        grades = [each.grade for each in amounts if isinstance(each, Amount)]
        return "may" if "may" in grades else "exact"

    @property
    def written(self) -> int | Unknown:
        """Bytes that the instruction writes."""
        return self.of.written

    @property
    def flops(self) -> int | Unknown:
        """Operations of the instruction."""
        return self.of.flops

    @property
    def recompute(self) -> Recompute:
        """The recompute factor of each instruction in a fusion."""
        return self.of.recompute

    @property
    def executions(self) -> Executions:
        """Bounds of the number of executions of the instruction."""
        return self.of.executions


@dataclass(frozen=True, repr=False)
class Traffic(DrawnTraffic):
    """The traffic of a program with memory.

    Attributes:
        target: the module, computation or instruction.
        instructions: the traffic of each instruction that moves bytes, in text order.
    """

    target: Module | Computation | Instruction
    instructions: tuple[InstructionTraffic, ...]

    @property
    def rows(self) -> tuple[TrafficRow, ...]:
        """A row for each operand of each instruction; figures are those of one execution."""
        return tuple([row for each in self.instructions for row in each.rows])

    @property
    def ranked(self) -> list[InstructionTraffic]:
        """The instructions, those that move the most bytes in memory in all executions first."""
        return sorted(self.instructions, key=_rank)

    @cached_property
    def total(self) -> Totals:
        """The figures of all instructions over all executions."""
        sums = [TotalBounds(0, 0)] * len(Totals._fields)
        for each in self.instructions:
            sums = [a.plus(b) for a, b in zip(sums, each.totals, strict=True)]
        return Totals(*sums)

    @cached_property
    def spaces(self) -> Mapping[int, SpaceTotals]:
        """The bytes of all executions by memory space, if the bytes of each are known."""
        sums: dict[int, SpaceTotals] = {}
        for each in self.instructions:
            for number, own in each.spaces.items():
                totals = SpaceTotals.of(own, each.executions)
                sums[number] = sums[number].plus(totals) if number in sums else totals
        return dict(sorted(sums.items()))

    def __getitem__(self, name: str) -> InstructionTraffic:
        """Return the traffic of the instruction with a name.

        Raises:
            UnknownName: no instruction of that name moves bytes.
        """
        for each in self.instructions:
            if each.instruction.name == name:
                return each
        known = [each.instruction.name for each in self.instructions]
        raise UnknownName(name, "instruction that moves bytes is", known)

    def __repr__(self) -> str:
        return f"<traffic of {len(self.instructions)} instructions: {self.total.bytes} bytes>"

    def __str__(self) -> str:
        total = self.total
        head = f"{total.read} bytes read, {total.written} written, {total.flops} flops"
        return "\n".join([head, *[str(each) for each in self.instructions]])


def _rank(each: InstructionTraffic) -> tuple[bool, int]:
    """Sort by the stored bytes of all executions; of one, if their number is not known."""
    moved = each.all_spaces
    if isinstance(moved, Unknown):
        return False, 0
    times = each.executions.number
    return True, -moved.stored.number * (1 if times is None else times)


def _figure_text(figure: Amount | int | Unknown) -> str:
    if isinstance(figure, Unknown):
        return "unknown"
    return f"{figure:,}" if isinstance(figure, int) else str(figure)

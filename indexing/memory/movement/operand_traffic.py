"""The traffic of one operand: the reads of an array by an instruction."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from hlo.modules.module import Instruction
from hlo.shapes.shape import Shape
from indexing.maps.arrays import Path
from indexing.memory.movement.amounts import Amount, bytes_of
from simplifier.unknown import Unknown


@dataclass(frozen=True, repr=False)
class OperandTraffic:
    """The reads of one array by one instruction, in one execution.

    Attributes:
        source: the instruction that holds the array: an operand, or a constant in a fusion.
        operand: the number of the operand; None for a constant in a fusion.
        path: the leaf of a tuple, ``()`` for an array.
        shape: the shape of the array.
        elements: the number of distinct elements that are read.
        reads: the number of reads of elements; `Unknown` with the reason if they are not counted.
        padding: the bytes of padding in the tiles of the layout that hold the elements.
        unknown: why some accesses are unknown, or None: then `elements` counts all elements.
        needed_elements: the number of distinct elements that the result needs, without those that
            a mask hides; None if it is `elements`.
    """

    source: Instruction
    operand: int | None
    path: Path
    shape: Shape
    elements: Amount
    reads: Amount | Unknown
    padding: Amount
    unknown: Unknown | None = None
    needed_elements: Amount | None = None

    def __repr__(self) -> str:
        return f"<read of {self.text}>"

    @property
    def text(self) -> str:
        """The array, and its distinct and requested bytes."""
        requested = self.requested
        count = "unknown" if isinstance(requested, Unknown) else f"{requested} bytes"
        return (
            f"`{self.source.name}` {self.shape}: {self.distinct} bytes distinct, {count} requested"
        )

    @cached_property
    def distinct(self) -> Amount:
        """Bytes of the distinct elements that are read, without padding."""
        return bytes_of(self.elements, self.shape)

    @property
    def loaded(self) -> Amount:
        """Bytes of the distinct elements that the loop loads, masked ones included: `distinct`."""
        return self.distinct

    @property
    def stored(self) -> Amount:
        """Bytes in memory of the distinct elements that are read, with padding."""
        return self.distinct.plus(self.padding)

    @property
    def needed(self) -> Amount:
        """Bytes of the distinct elements that the result needs.

        An upper bound under masks of runtime values.
        """
        known = self.needed_elements
        return bytes_of(self.elements if known is None else known, self.shape)

    @property
    def requested(self) -> Amount | Unknown:
        """Bytes of all reads: an element that is read twice counts twice."""
        return self.reads if isinstance(self.reads, Unknown) else bytes_of(self.reads, self.shape)

    @property
    def utilisation(self) -> Fraction | None:
        """The distinct elements per element of the array, at most; None for an empty array."""
        return Fraction(self.elements.number, self.shape.size) if self.shape.size else None

    @property
    def multiplicity(self) -> Fraction | Unknown | None:
        """The reads of each distinct element on average; None if nothing is read.

        `Unknown` if one of both numbers is an upper bound: their ratio is no bound.
        """
        if isinstance(self.reads, Unknown):
            return self.reads
        if "may" in (self.reads.grade, self.elements.grade):
            return Unknown(f"{self.reads} reads of {self.elements} elements: upper bounds")
        return Fraction(self.reads.number, self.elements.number) if self.elements.number else None

"""`Query`: what `hlo-indexing maps` answers about one instruction.

Worker processes receive queries.  So this module is not compiled: frozen dataclasses that mypyc
compiles cannot be unpickled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from hlo.modules.patterns import Pattern
from hlo.shapes.shape import leaves
from hlo.text.names import did_you_mean, similar

if TYPE_CHECKING:
    from hlo.modules.module import Instruction, Module
    from indexing.maps.answers import Direction
    from indexing.maps.options import OptionChoices

GivenValue: TypeAlias = "int | tuple[Any, ...]"
"""An integer, or a tuple of integers or of such tuples: a value that can be a key."""

GivenValues: TypeAlias = "tuple[tuple[str, GivenValue], ...]"
"""Values of integer or boolean parameters, by name."""

MAX_LISTED = 8
"""Limit on the operands that a message lists."""

DIRECTIONS_BY_OPTION: dict[str, tuple[Direction, ...]] = {
    "output-to-input": ("output-to-input",),
    "input-to-output": ("input-to-output",),
    "both": ("output-to-input", "input-to-output"),
}


@dataclass(frozen=True, slots=True)
class Query:
    """A query about one instruction, with its options."""

    directions: tuple[Direction, ...] = ("output-to-input",)
    to_parameters: bool = False
    operand: int | str | None = None  # a number, or a pattern of names; None: all operands
    output_id: int | None = None  # None: all outputs
    exact: bool = False
    simplify: bool = True
    verify: bool = False
    explain: bool = False
    source: bool = False  # with the source of each instruction
    before: Module | None = None  # before the compiler: its lines, too
    values: GivenValues = ()
    assume: tuple[str, ...] = ()  # names of assumptions

    @property
    def options(self) -> OptionChoices:
        """Keyword arguments for the queries of `indexing`."""
        return {
            "exact": self.exact,
            "simplify": self.simplify,
            "certify": self.verify,
            "assume": self.assume,
        }

    def reads(self, number: int, operand: Instruction) -> bool:
        """Return True if this operand is requested."""
        if isinstance(self.operand, str):
            return Pattern(self.operand).matches(operand.name)
        return self.operand in (None, number)

    def requested(self, operands: Sequence[Instruction]) -> Sequence[int]:
        """Return the numbers of the requested operands."""
        if self.operand is None:
            return range(len(operands))
        return [k for k, operand in enumerate(operands) if self.reads(k, operand)]

    def missing_in(self, instruction: Instruction) -> str | None:
        """Return the requested operand or output that `instruction` lacks, or None."""
        if self.operand is None and self.output_id is None:
            return None
        computation = instruction.computation
        operands = computation.parameters if self.to_parameters else instruction.operands
        if isinstance(self.operand, str):
            if not any(self.reads(k, operand) for k, operand in enumerate(operands)):
                question = _similar_operands(self.operand, [operand.name for operand in operands])
                return f"operand `{self.operand}`" + (f"; {question}" if question else "")
        elif self.operand is not None and self.operand >= len(operands):
            return f"operand {self.operand} (number of operands: {len(operands)})"
        outputs = len(leaves(instruction.shape))
        if self.output_id is not None and self.output_id >= outputs:
            return f"output {self.output_id} (number of outputs: {outputs})"
        return None


def _similar_operands(name: str, names: Sequence[str]) -> str:
    """Return a question with similar names, or else the names of all operands."""
    listed = ", ".join(names[:MAX_LISTED]) + (", ..." if names[MAX_LISTED:] else "")
    return did_you_mean(similar(name, names)) or (f"its operands are {listed}" if names else "")

"""`Reason`: why a map has the grade `may`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from hlo.modules.module import Instruction

MAX_REASONS: Final = 8
"""Limit on the reasons between two arrays; beyond it, `OMITTED` replaces the others."""


@dataclass(frozen=True, slots=True)
class Reason:
    """The obstacle because of which a map over-approximates an access.

    Attributes:
        text: the obstacle.  The name of another instruction ends it, after a colon: summaries omit
            the name, so that equal obstacles are counted together.
        instruction: the instruction with the obstacle; `None` if it is a budget.

    >>> print(Reason("budget: more than 256 maps"))
    budget: more than 256 maps
    """

    text: str
    instruction: Instruction | None = None

    def __str__(self) -> str:
        if self.instruction is None:
            return self.text
        return f"{self.instruction.opcode} `{self.instruction.name}`: {self.text}"


UNDECLARED: Final = Reason("an op with over-approximate maps declares no reason")
"""The reason of maps of ops that declare none, such as ops of users."""
OMITTED: Final = Reason(f"more than {MAX_REASONS} reasons: the others are omitted")

"""Refusals of a search: tilings that were visited, and violate the same rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

AcceptedKind: TypeAlias = Literal["box", "boxes", "bounding"]


@dataclass(frozen=True, slots=True)
class Refusals:
    """Tilings that were built, and are not valid for the same rule.

    Attributes:
        rule: the rule.
        count: number of tilings.
        sizes: the tile sizes of the first.
        reason: its violation of the rule.
    """

    rule: str
    count: int
    sizes: tuple[int, ...]
    reason: str

    def __str__(self) -> str:
        tilings = "1 tiling" if self.count == 1 else f"{self.count} tilings"
        return f"{tilings} refused by {self.rule}: {list(self.sizes)}: {self.reason}"

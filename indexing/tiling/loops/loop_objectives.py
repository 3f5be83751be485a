"""Objectives of the search for tilings with loops: a key to rank by, and a bound of it.

A user's objective is a class with these two methods:

>>> class FewestBlocks(LoopObjective):
...     def key(self, candidate: LoopCandidate) -> tuple[int, ...]:
...         return (candidate.blocks, candidate.bytes)
...     def bound(self, candidate: LoopCandidate, most_blocks: int) -> tuple[int, ...]:
...         return (candidate.blocks,)  # finer tiles have more
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LoopCandidate:
    """Figures of a tiling, by which it is ranked.

    Attributes:
        blocks: the number of blocks, with `split_k`.
        bytes: bytes that all blocks load and store.
        steps: the number of steps of a block.
        split_k: the number of blocks that share the loop of one tile.
        waves: the number of waves of blocks.
    """

    blocks: int
    bytes: int
    steps: int
    split_k: int
    waves: int


class LoopObjective(ABC):
    """An objective: the smallest key is best."""

    @abstractmethod
    def key(self, candidate: LoopCandidate) -> tuple[int, ...]:
        """Return the key of a tiling."""

    @abstractmethod
    def bound(self, candidate: LoopCandidate, most_blocks: int) -> tuple[int, ...]:
        """Return a lower bound for the first parts of the keys of all finer tilings.

        Args:
            candidate: the figures with all sizes that are not chosen as coarse as possible, without
                splits.
            most_blocks: the number of blocks with them as fine as possible, with splits.
        """


@dataclass(frozen=True, slots=True)
class FewestBytes(LoopObjective):
    """The fewest bytes of tilings that use all processors, or as many as possible.

    Ties are broken by the number of steps, then by the number of waves.

    Attributes:
        processors: the number of multiprocessors.
    """

    processors: int

    def key(self, candidate: LoopCandidate) -> tuple[int, ...]:
        """Return the idle processors, the bytes, the steps and the waves."""
        busy = min(candidate.blocks, self.processors)
        return -busy, candidate.bytes, candidate.steps, candidate.waves

    def bound(self, candidate: LoopCandidate, most_blocks: int) -> tuple[int, ...]:
        """Return a bound of the idle processors and the bytes."""
        return -min(most_blocks, self.processors), candidate.bytes

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
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class LoopCandidate:
    """Figures of a tiling, by which it is ranked.

    Attributes:
        blocks: the number of blocks, with `split_k`.
        bytes: bytes that all blocks load and store.
        steps: the number of steps of a block.
        split_k: the number of blocks that share the loop of one tile.
        waves: the number of waves of blocks.

    >>> from indexing import LoopCandidate
    >>> candidate = LoopCandidate(blocks=8, bytes=4096, steps=2, split_k=1, waves=1)
    >>> candidate.bytes // candidate.blocks
    512
    """

    blocks: int
    bytes: int
    steps: int
    split_k: int
    waves: int


class LoopObjective(ABC):
    """An objective: the smallest key is best.

    Class attributes:
        parts: what the parts of a key count, in the singular; empty for objectives without names.

    >>> from indexing import LoopCandidate, LoopObjective
    >>> class FewestSteps(LoopObjective):
    ...     parts = ("step",)
    ...     def key(self, candidate):
    ...         return (candidate.steps,)
    ...     def bound(self, candidate, most_blocks):
    ...         return (candidate.steps,)
    >>> FewestSteps().key(LoopCandidate(blocks=8, bytes=4096, steps=2, split_k=1, waves=1))
    (2,)
    >>> FewestSteps().bound(LoopCandidate(blocks=1, bytes=64, steps=1, split_k=1, waves=1), 8)
    (1,)
    """

    parts: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def key(self, candidate: LoopCandidate) -> tuple[int, ...]:
        """Return the key of a tiling."""

    @abstractmethod
    def bound(self, candidate: LoopCandidate, most_blocks: int) -> tuple[int, ...]:
        """Return a lower bound for the first parts of the keys of all finer tilings.

        Args:
            candidate: figures that no finer tiling is below, such as those with all sizes that are
                not chosen as coarse as possible, without splits; of the steps, 1.
            most_blocks: the number of blocks with them as fine as possible, with splits.
        """


@dataclass(frozen=True, slots=True)
class FewestBytes(LoopObjective):
    """The fewest bytes of tilings that use all processors, or as many as possible.

    Ties are broken by the number of steps, then by the number of waves.

    Attributes:
        processors: the number of multiprocessors.
    """

    parts: ClassVar[tuple[str, ...]] = ("idle processor", "byte", "step", "wave")
    processors: int

    def key(self, candidate: LoopCandidate) -> tuple[int, ...]:
        """Return the idle processors, the bytes, the steps and the waves."""
        busy = min(candidate.blocks, self.processors)
        return -busy, candidate.bytes, candidate.steps, candidate.waves

    def bound(self, candidate: LoopCandidate, most_blocks: int) -> tuple[int, ...]:
        """Return a bound of each part of the key."""
        busy = min(most_blocks, self.processors)
        return -busy, candidate.bytes, candidate.steps, candidate.waves


@dataclass(frozen=True, slots=True)
class BusiestProcessor(LoopObjective):
    """The fewest bytes of the processor with the most blocks, which decides when a kernel ends.

    Blocks are as many as fill whole waves, or fewer: 128 blocks on 132 multiprocessors end with the
    256 blocks of half their size, of which 124 processors have two.  `FewestBytes` prefers those.
    Ties are broken by the bytes of all blocks, the steps and the waves.

    Attributes:
        processors: the number of multiprocessors.

    >>> objective = BusiestProcessor(132)
    >>> [objective.key(LoopCandidate(n, 4096, 1, 1, -(-n // 132)))[0] for n in (64, 128, 256, 264)]
    [64, 32, 32, 32]
    """

    parts: ClassVar[tuple[str, ...]] = ("processor byte", "byte", "step", "wave")
    processors: int

    def key(self, candidate: LoopCandidate) -> tuple[int, ...]:
        """Return the bytes of the busiest processor, all bytes, the steps and the waves."""
        rounds = -(-candidate.blocks // self.processors)
        most = -(-candidate.bytes * rounds // candidate.blocks)
        return most, candidate.bytes, candidate.steps, candidate.waves

    def bound(self, candidate: LoopCandidate, most_blocks: int) -> tuple[int, ...]:
        """Return a bound of each part of the key.

        The busiest processor has at least the average; its bytes follow from a number of blocks
        that is known.
        """
        if candidate.blocks == most_blocks:
            return self.key(candidate)
        most = -(-candidate.bytes // max(1, min(most_blocks, self.processors)))
        return most, candidate.bytes, candidate.steps, candidate.waves


@dataclass(frozen=True, slots=True)
class AverageProcessor(LoopObjective):
    """The fewest bytes of a processor that has blocks, on average.

    The best tiling moves at most as many bytes as that of `FewestBytes`, and leaves processors idle
    only where this saves at least as large a share of the bytes.  Ties are broken by the bytes of
    all blocks, the steps and the waves.

    Attributes:
        processors: the number of multiprocessors.

    >>> objective = AverageProcessor(132)
    >>> [objective.key(LoopCandidate(n, 4224, 1, 1, -(-n // 132)))[0] for n in (64, 128, 256, 264)]
    [66, 33, 32, 32]
    """

    parts: ClassVar[tuple[str, ...]] = ("processor byte", "byte", "step", "wave")
    processors: int

    def key(self, candidate: LoopCandidate) -> tuple[int, ...]:
        """Return the bytes of a processor, all bytes, the steps and the waves."""
        each = -(-candidate.bytes // min(candidate.blocks, self.processors))
        return each, candidate.bytes, candidate.steps, candidate.waves

    def bound(self, candidate: LoopCandidate, most_blocks: int) -> tuple[int, ...]:
        """Return a bound of each part of the key."""
        each = -(-candidate.bytes // max(1, min(most_blocks, self.processors)))
        return each, candidate.bytes, candidate.steps, candidate.waves

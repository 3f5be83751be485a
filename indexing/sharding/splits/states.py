"""States of an array on one mesh axis: split, broadcast, or partial values.

Source: OneFlow, "SBP" (split, broadcast, partial); Shardy ``docs/sharding_representation.md``.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from hlo.shardings.sharding import REDUCTIONS
from indexing.sharding.rules.combiners import COMBINERS

IDEMPOTENT: Final = frozenset([kind for kind, each in COMBINERS.items() if each.is_idempotent])
"""The reductions of which ``x`` and ``x`` is ``x``: equal values are partial values, too."""

_NOTATION: Final = re.compile(rf"B|S\((\d+)\)|P\(({'|'.join(REDUCTIONS)})\)")


class ArrayState(NamedTuple):
    """How the devices along one mesh axis hold an array.

    Attributes:
        dimension: the dimension that is split into contiguous shards, or None.
        reduction: the function that combines the devices' partial values; empty if the devices
            hold values.

    >>> print(split(1), BROADCAST, partial("sum"))
    S(1) B P(sum)
    """

    dimension: int | None = None
    reduction: str = ""

    def __str__(self) -> str:
        if self.reduction:
            return f"P({self.reduction})"
        return "B" if self.dimension is None else f"S({self.dimension})"

    @property
    def is_broadcast(self) -> bool:
        """True if every device holds the whole array."""
        return self.dimension is None and not self.reduction


BROADCAST: Final = ArrayState()


def split(dimension: int) -> ArrayState:
    """The state of an array that is split along a dimension."""
    return ArrayState(dimension)


def partial(reduction: str) -> ArrayState:
    """The state of an array of which each device holds partial values."""
    return ArrayState(None, reduction)


def parse_state(text: str) -> ArrayState | None:
    """Return the state with this text; None if the text is not the notation of a state.

    >>> parse_state("S(2)"), parse_state("P(mean)")
    (ArrayState(dimension=2, reduction=''), None)
    """
    match = _NOTATION.fullmatch(text.replace(" ", ""))
    if match is None:
        return None
    dimension, reduction = match.groups()
    return ArrayState(None if dimension is None else int(dimension), reduction or "")


def shard_size(size: int, shards: int) -> int:
    """Return the number of elements of a shard; the last shards may be shorter or empty.

    >>> shard_size(10, 4)
    3
    """
    return -(-size // shards)

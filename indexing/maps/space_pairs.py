"""`Spaces`: the index spaces of the maps between two arrays."""

from __future__ import annotations

from typing import Final, NamedTuple, Protocol

from simplifier.atoms import Variable


class Spaces(Protocol):
    """The index spaces of the domain and of the results; `None` if not an array (a token)."""

    @property
    def start(self) -> tuple[Variable, ...] | None:
        """The dimensions of the maps."""

    @property
    def sizes(self) -> tuple[int, ...] | None:
        """The sizes of the array that the results index."""


class SpacePair(NamedTuple):
    """`Spaces` as a pair of values."""

    start: tuple[Variable, ...] | None
    sizes: tuple[int, ...] | None


NO_SPACES: Final = SpacePair(None, None)

"""`SpacePair`: the index spaces of the maps between two arrays."""

from __future__ import annotations

from typing import Any, Final, NamedTuple, TypeAlias

from simplifier.atoms import Variable

Space: TypeAlias = tuple[Any, ...] | None
"""The dimensions of the maps from an array, or the sizes of an array; None for a token."""


class SpacePair(NamedTuple):
    """The index spaces of the domain and of the results; None if not an array (a token).

    Attributes:
        start: the dimensions of the maps.
        sizes: the sizes of the array that the results index.
    """

    start: tuple[Variable, ...] | None
    sizes: tuple[int, ...] | None


NO_SPACES: Final = SpacePair(None, None)

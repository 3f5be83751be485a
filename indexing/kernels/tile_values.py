"""Tiles: arrays of values that a program of a tiled kernel computes, element by element."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from indexing.equivalence.values.terms.terms import Formula
from indexing.kernels.accumulation import Accumulated
from indexing.kernels.ir import MlirType
from simplifier.linear import Expr

Element: TypeAlias = Formula | Accumulated


@dataclass(frozen=True, eq=False, slots=True)
class Tile:
    """An array of values.

    Attributes:
        at: the value of an element, by its index in the tile.
    """

    type: MlirType
    at: Callable[[tuple[Expr, ...]], Element]

    @property
    def dims(self) -> tuple[int, ...]:
        """The sizes of the tile."""
        return self.type.dims

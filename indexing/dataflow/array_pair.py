"""`ArrayPair`: the index spaces of the maps from one array to another."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from indexing.maps.arrays import ArrayRef
from indexing.maps.indexing_map import dims
from simplifier.atoms import Variable

_dims = lru_cache(maxsize=1 << 11)(dims)


class ArrayPair(NamedTuple):
    """The index spaces of two arrays, as `indexing.maps.space_pairs.Spaces`."""

    source: ArrayRef
    target: ArrayRef

    @property
    def start(self) -> tuple[Variable, ...] | None:
        shape = self.source.array_shape
        return None if shape is None else _dims(shape.dims)

    @property
    def sizes(self) -> tuple[int, ...] | None:
        shape = self.target.array_shape
        return None if shape is None else shape.dims

"""Summaries of computations, shared by those that are alike.

The layers of a network call computations that differ only in the names of their instructions.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from functools import lru_cache

from hlo.modules.module import Computation
from indexing.maps.arrays import ArrayRef, Path
from indexing.maps.map_set import MapSet
from indexing.ops.structured_ops import InputLeaf, MapsByLeaf


def shared_summary(computation: Computation, reached: Mapping[ArrayRef, MapSet]) -> MapsByLeaf:
    """Return the map sets of parameters; equal summaries of a module are one object.

    Args:
        reached: the maps between a leaf of the root and arrays of the computation.
    """
    numbers = {parameter: number for number, parameter in enumerate(computation.parameters)}
    summary: MapsByLeaf = {
        _input_leaf(numbers[instruction], path): maps
        for (instruction, path, _), maps in reached.items()
        if instruction in numbers
    }
    known: dict[Hashable, MapsByLeaf] = computation.module.memo.setdefault(shared_summary, {})
    return known.setdefault((*summary, *summary.values()), summary)


@lru_cache(maxsize=1 << 12)
def _input_leaf(number: int, path: Path) -> InputLeaf:
    """Return the leaf of a parameter; equal leaves are one object."""
    return InputLeaf(number, path)

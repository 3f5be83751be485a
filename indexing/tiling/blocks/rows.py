"""The elements with one index in a dimension that each tile reads of an operand."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from indexing.maps.indexing_map import IndexingMap
from indexing.tiling.sets.operand_sets import operand_sets
from indexing.tiling.sets.operands import TiledOperand
from indexing.tiling.sets.tile_grid import TileGrid
from indexing.tiling.sets.tile_sets import BudgetError, TileSets, is_start
from simplifier.atoms import Variable
from simplifier.unknown import Unknown

if TYPE_CHECKING:
    from numpy.typing import NDArray


def rows_of_tiles(
    operand: TiledOperand, dimension: int, dims: Sequence[int]
) -> NDArray[np.int64] | Unknown:
    """Return the number of elements with one index in a dimension, of each tile.

    Those of masked elements count, too.  The numbers are added over the dimensions of the grid that
    are not in `dims`, the axes of the array.  `Unknown` if the other indices of an element are
    functions of that in the dimension.
    """
    grid, name = operand.grid, operand.instruction.name
    known: list[IndexingMap] = []
    for m in operand.maps:
        if not m.is_known_empty:
            rest = _other_results(m, dimension, grid.dims)
            if rest is None:
                return Unknown(f"the elements of `{name}` in a block depend on its index")
            known.append(rest)
    try:
        sets = operand_sets(known, grid)
    except BudgetError as error:
        return Unknown(str(error), operand.instruction)
    factors = sets.products[0] if sets.products else ()
    if sets.rows > 1 or len(sets.products) > 1 or any(map(_has_starts, factors)):
        return Unknown(f"runtime values decide on the elements of `{name}`")
    return _sum_over(factors, grid, dims)


def _has_starts(sets: TileSets) -> bool:
    return any(map(is_start, sets.tile_index))


def _sum_over(
    factors: Sequence[TileSets], grid: TileGrid, dims: Sequence[int]
) -> NDArray[np.int64]:
    """The products of the elements that tiles need, added over all dimensions but `dims`."""
    free = tuple([k for k in range(len(grid.counts)) if k not in dims])
    numbers = np.ones([n if k in dims else 1 for k, n in enumerate(grid.counts)], np.int64)
    varying: set[int] = set()
    for sets in factors:
        own = [k for k, tid in enumerate(grid.tile_index) if tid in sets.tile_index]
        counts = np.array([c.count for c in sets.classes], np.int64)[sets.class_of]
        along = counts.reshape([n if k in own else 1 for k, n in enumerate(grid.counts)])
        numbers = numbers * along.sum(free, keepdims=True)
        varying.update(own)
    repeated = prod([grid.counts[k] for k in free if k not in varying])
    return numbers.reshape([grid.counts[k] for k in dims]) * repeated


def _other_results(m: IndexingMap, dimension: int, extents: Sequence[int]) -> IndexingMap | None:
    """The map to the other indices, for one index in a dimension; `None` if they depend on it.

    Conditions on the index are left out.

    Args:
        extents: the sizes of the dimensions of the map, for those that the others do not depend on.
    """
    results = list(m.results)
    index = set(results.pop(dimension).variables())
    used = {v for result in results for v in result.variables()}
    if not index.isdisjoint(used):
        return None
    dims = zip(m.dims, extents, strict=True)
    return IndexingMap(
        tuple([v if v in used else Variable(v.name, 0, n - 1) for v, n in dims]),
        tuple([v for v in m.ranges if v in used]),
        tuple([rt for rt in m.runtime if rt.variable in used]),
        tuple(results),
        tuple([c for c in m.constraints if used.issuperset(c.expr.variables())]),
        m.grade,
    )

"""Tiles of several roots: one root is tiled, and a tile of each further root follows from it.

A tile of another root follows if

* both are the same array, or have the same sizes: then the tile index is the same;
* the tiled root is computed from the other one, whose elements are all needed in some tile; or
* both are computed from one array: its tile determines the elements of the other root that need it,
  and these cover the whole root.

Otherwise it is unknown.  A tile of a further root may be computed several times, never too seldom.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

from indexing.dataflow.edges import LocalEdges
from indexing.dataflow.needed import dependencies_of
from indexing.dataflow.walk import Walk
from indexing.maps.answers import Unknown
from indexing.maps.arrays import ArrayRef
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.options import Options
from indexing.maps.properties import is_surjective_onto
from indexing.tiling.computations.tile_graph import Inside, LoopTable, TileGraph
from simplifier.unknown import first_unknown

MAX_TILED_ROOTS: Final = 4
"""Limit on the roots that are tried as the tiled one."""
MAX_NEEDED: Final = 512
"""Limit on the instructions that such a root depends on; beyond it, no tile is derived so."""
MAX_SHARED: Final = 8
"""Limit on the arrays through which a tile of a further root is derived."""

_OPTIONS: Final = Options(masks=False)
RootMap: TypeAlias = IndexingMap | Unknown


class RootMaps(NamedTuple):
    """The tiled root, and for each root the map from its dimensions.

    Attributes:
        tiled: the number of the tiled root.
        maps: for each root its map, or the reason why no tile of it follows.
        loops: the loops that occur in the maps.
    """

    tiled: int
    maps: tuple[RootMap, ...]
    loops: LoopTable


def root_maps(arrays: Sequence[ArrayRef], inside: Inside) -> RootMaps | Unknown:
    """Return the root to tile, and the map from its dimensions to each root.

    The first root that determines the most other roots is tiled.

    Args:
        arrays: the arrays of the roots.
        inside: see `TileGraph`.
    """
    candidates = [k for k, array in enumerate(arrays) if _reason(array) is None]
    best: RootMaps | None = None
    for tiled in candidates[:MAX_TILED_ROOTS]:
        maps = _maps_from(tiled, arrays, inside)
        if best is None or _count_known(maps) > _count_known(best):
            best = maps
        if _count_known(best) == len(candidates):
            break
    if best is None:
        reason = first_unknown(*map(_reason, arrays))
        return Unknown("the result has no arrays") if reason is None else reason
    return best


def _count_known(maps: RootMaps) -> int:
    return sum([isinstance(m, IndexingMap) for m in maps.maps])


def _reason(array: ArrayRef) -> Unknown | None:
    """Return the reason why an array has no tiles, or None."""
    name, shape = array.instruction.name, array.array_shape
    if shape is None:
        return Unknown(f"`{name}` is {array.shape}, not an array", array.instruction)
    if any(size < 1 for size in shape.dims):  # also of unknown size
        reason = f"`{name}`: {shape} has no elements, or a dimension of unknown size"
        return Unknown(reason, array.instruction)
    return None


def _maps_from(tiled: int, arrays: Sequence[ArrayRef], inside: Inside) -> RootMaps:
    """Return the maps from the dimensions of one root to each root."""
    shape = arrays[tiled].array_shape
    assert shape is not None
    identity = IndexingMap.identity(shape)
    graph: TileGraph | None = None
    maps: list[RootMap] = []
    for array in arrays:
        reason = _reason(array)
        target = array.array_shape
        if reason is not None or target is None:
            assert reason is not None
            maps.append(reason)
        elif target.dims == shape.dims:
            maps.append(identity)
        else:
            graph = graph or TileGraph([(arrays[tiled], identity)], shape.rank, inside)
            maps.append(_derive_map(graph, arrays[tiled], array))
    return RootMaps(tiled, tuple(maps), graph.loop_table if graph else {})


def _derive_map(graph: TileGraph, tiled: ArrayRef, array: ArrayRef) -> RootMap:
    """Return a map from the tiled root to an array that covers the whole array."""
    shape = array.array_shape
    assert shape is not None
    for candidate in _candidates(graph, array):
        if candidate.grade == "exact" and is_surjective_onto(candidate, shape) is True:
            return candidate
    return Unknown(
        f"no tile of `{array.instruction.name}` {shape} follows from a tile of "
        f"`{tiled.instruction.name}` {tiled.shape}",
        array.instruction,
    )


def _candidates(graph: TileGraph, array: ArrayRef) -> Iterator[IndexingMap]:
    """Yield maps to an array that the tiled root depends on, or that shares an operand with it."""
    for node in graph.nodes_of(array):
        if node.map is not None:
            yield node.map
    source = graph.computed_array(array)
    needed = dependencies_of([source.instruction])
    if len(needed) > MAX_NEEDED:
        return
    walk = Walk(LocalEdges(_OPTIONS))
    walk.prepare(needed, backward=False)
    reached = walk.forward(source._replace(calls=()))
    shared = sorted(reached, key=lambda each: -each.instruction.index)
    tried = 0
    for each in shared:
        forward = reached[each]
        nodes = graph.nodes_of(each._replace(calls=source.calls))
        start = nodes[0].map if len(nodes) == 1 else None
        if start is None or len(start.dims) != graph.rank:  # an array inside a loop
            continue
        if forward.unknown is not None or len(forward.maps) != 1:
            continue
        (onward,) = forward.maps
        yield _OPTIONS.compose_maps(start, onward)
        tried += 1
        if tried == MAX_SHARED:
            return

"""Nests: the loops of a block, with the arrays that each reads and the nests that it waits for.

An instruction that reduces or contracts has a nest.  An instruction inside of it whose value
changes with the loops is computed in each of their iterations, so its own loops are nested; one
whose value does not change is computed before, in a nest of its own.  What no nest computes is the
epilogue.

Nests do not depend on sizes; `phases` puts those together that walk in step.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from indexing.maps.arrays import ArrayRef
from indexing.maps.indexing_map import IndexingMap
from indexing.ops.iota import Constant
from indexing.tiling.computations.tile_boxes import used_dims
from indexing.tiling.computations.tile_graph import TileGraph, TileNode
from indexing.tiling.loops.runtime_reads import without_runtime
from indexing.tiling.sizes.tile_sizes import dimension_of
from simplifier.unknown import Unknown

LoopAxes: TypeAlias = tuple[int, ...]


class NestKey(NamedTuple):
    """An instruction with loops, and the tile of its value that a nest computes.

    Attributes:
        array: the instruction, with the calls that lead to it.
        map: the map from the tiled dimensions and outer loops to its value.
    """

    array: ArrayRef
    map: IndexingMap


class NestRead(NamedTuple):
    """An access of an array in a nest.

    Attributes:
        array: the array.
        read: the map from the tiled dimensions and loops to its elements.
        loops: the axes of the loops around the access, the outermost first.
        needed: the map with its runtime variables.
    """

    array: ArrayRef
    read: IndexingMap
    loops: LoopAxes
    needed: IndexingMap


@dataclass(slots=True, eq=False)
class BlockNest:
    """The loops of an instruction, or the epilogue.

    Attributes:
        key: the instruction and its tile; `None` for the epilogue.
        loops: the axes of its loops.
        reads: what is read in its iterations.
        computed: the instructions with loops that are computed in its iterations, itself included.
        operands: the maps to the values that it reduces.
        needs: the nests whose results it uses.
    """

    key: NestKey | None
    loops: LoopAxes
    reads: list[NestRead] = field(default_factory=list)
    computed: list[NestKey] = field(default_factory=list)
    operands: list[tuple[ArrayRef, IndexingMap]] = field(default_factory=list)
    needs: list[BlockNest] = field(default_factory=list)
    starts: list[TileNode] = field(default_factory=list)


def nests_of(graph: TileGraph) -> tuple[BlockNest, ...] | Unknown:
    """Return the nests of a graph of tiles, each after those that it needs, the epilogue last."""
    for node in graph.nodes():
        if node.map is None:
            assert node.unknown is not None
            return node.unknown
    return _Nests(graph).order


class _Nests:
    """The nests, found from the roots."""

    def __init__(self, graph: TileGraph) -> None:
        self._graph = graph
        self._known: dict[NestKey, BlockNest] = {}
        self._owners: dict[NestKey, list[TileNode]] = {}
        for node in graph.nodes():
            if self._loops(node):
                self._owners.setdefault(self._key(node), []).append(node)
        self._listed: list[BlockNest] = []
        epilogue = BlockNest(None, ())
        epilogue.starts = list(graph.roots)
        self._fill(epilogue, epilogue.starts, ())
        self._listed.append(epilogue)
        self.order = tuple(self._listed)

    def _loops(self, node: TileNode) -> LoopAxes:
        owned = self._graph.loop_table.get(node.array._replace(path=()), ())
        return tuple([dimension_of(variable) for _, variable in owned])

    @staticmethod
    def _key(node: TileNode) -> NestKey:
        assert node.map is not None
        return NestKey(node.array._replace(path=()), used_map(node.map))

    def _nest(self, node: TileNode) -> BlockNest:
        """Return the nest of an instruction that is computed before its users."""
        key = self._key(node)
        if key not in self._known:
            nest = self._known[key] = BlockNest(key, self._loops(node))
            nest.starts = self._owners[key]
            nest.computed.append(key)
            self._enter(nest, key, nest.loops)
            self._listed.append(nest)
        return self._known[key]

    def _enter(self, nest: BlockNest, key: NestKey, loops: LoopAxes) -> None:
        """Add what the instruction of `key` reads in its iterations."""
        for node in self._owners[key]:
            for _, operand in node.operands:
                if operand.map is not None:
                    nest.operands.append((operand.array, used_map(operand.map)))
            self._fill(nest, [operand for _, operand in node.operands], loops)

    def _fill(self, nest: BlockNest, starts: Iterable[TileNode], loops: LoopAxes) -> None:
        """Add what is read to compute `starts` within `loops`."""
        seen: set[TileNode] = set()
        stack = list(starts)[::-1]
        while stack:
            node = stack.pop()
            if node in seen:
                continue
            seen.add(node)
            own = self._loops(node)
            if own:
                self._add_owner(nest, node, loops, own)
            elif node.operands:
                stack += [operand for _, operand in reversed(node.operands)]
            elif is_loaded(self._graph, node) and node.map is not None:
                read = NestRead(node.array, used_map(node.map), loops, node.map)
                if read not in nest.reads:
                    nest.reads.append(read)

    def _add_owner(self, nest: BlockNest, node: TileNode, loops: LoopAxes, own: LoopAxes) -> None:
        key = self._key(node)
        used = axes_of(key.map)
        loops = loops[: max([k + 1 for k, axis in enumerate(loops) if axis in used], default=0)]
        if not loops:
            before = self._nest(node)
            if before not in nest.needs:
                nest.needs.append(before)
        elif key not in nest.computed:
            nest.computed.append(key)
            self._enter(nest, key, (*loops, *own))


def is_loaded(graph: TileGraph, node: TileNode) -> bool:
    """Return True if a tile without operands is loaded from memory: it is no constant or iota."""
    if isinstance(node.array.instruction.op, Constant):
        return False
    return graph.is_input(node.array)


def used_map(m: IndexingMap) -> IndexingMap:
    """Return a map without the dimensions on which nothing depends, with runtime values fixed."""
    return used_dims(without_runtime(m))


def axes_of(m: IndexingMap) -> set[int]:
    """Return the axes on which the elements of a map depend."""
    return {dimension_of(d) for d in m.dims}


def waits_for(nest: BlockNest) -> Iterator[BlockNest]:
    """Yield all nests whose results a nest uses, directly or not."""
    seen: set[int] = set()
    stack = list(nest.needs)
    while stack:
        each = stack.pop()
        if id(each) not in seen:
            seen.add(id(each))
            yield each
            stack += each.needs

"""The graph of tiles: for each array inside a fusion or computation, the maps of its tiles.

A walk from the roots, users first, composes one map for each way in which an array is needed; equal
maps of one array are one node.  Computations of fusions and calls are entered, so an instruction of
a computation that is called twice has tiles for each call.  Reduced and contracted dimensions
become dimensions of the maps (`indexing.tiling.computations.loops`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from typing import Final, NamedTuple, TypeAlias

from hlo.modules.module import Instruction
from hlo.shapes.shape import leaves
from indexing.dataflow.copies import source_of
from indexing.dataflow.edges import LocalEdges
from indexing.dataflow.runtime import fold_runtime
from indexing.dataflow.walk import Walk
from indexing.maps.answers import Unknown
from indexing.maps.arrays import ArrayRef
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.options import Options
from indexing.maps.over_approximation import over_approximate
from indexing.ops.access_edge import AccessEdge
from indexing.ops.iota import Parameter
from indexing.ops.structure import GetTupleElement, Tuple
from indexing.ops.structured_ops import InlineOp
from indexing.tiling.computations.loops import LoopDimension, loop_dimensions, with_loops
from simplifier.atoms import Variable
from simplifier.unknown import first_unknown

MAX_TILES: Final = 64
"""Limit on the different tiles of one array; further tiles are unknown."""
MAX_ALL_TILES: Final = 1 << 12
"""Limit on the tiles of all arrays together; further tiles are unknown."""
MAX_ARRAYS: Final = 1 << 14
"""Limit on the arrays of all calls together; the operands of further ones are not visited.  There
are unknown tiles then: each array has a tile, and there are more than `MAX_ALL_TILES`."""
MAX_PARTS: Final = 16
"""Limit on loops, range variables, runtime variables and constraints of one map; beyond it, it is
over-approximated.  A chain of convolutions or windows adds parts with each of them."""
MAX_WEIGHT: Final = 1 << 12
"""Limit on the atoms in the text of one map; beyond it, the tile is unknown."""

_OPTIONS: Final = Options(masks=False)

Inside: TypeAlias = Callable[[ArrayRef], bool]
Loops: TypeAlias = tuple[tuple[LoopDimension, Variable], ...]
LoopTable: TypeAlias = dict[ArrayRef, Loops]
_NO_LOOPS: Final[LoopTable] = {}


@dataclass(slots=True, eq=False)
class TileNode:
    """One tile of one array.

    Attributes:
        array: the array; its `calls` are the fusions and calls that were entered.
        map: the map from the tiled dimensions and loops to the elements; `None` if unknown.
        unknown: the reason.
        operands: the tiles that this tile is computed from, each with the number of the operand.
    """

    array: ArrayRef
    map: IndexingMap | None
    unknown: Unknown | None = None
    operands: list[tuple[int, TileNode]] = field(default_factory=list)


class TileLoop(NamedTuple):
    """A loop over a reduced or contracted dimension of an instruction.

    Attributes:
        array: the instruction, with the calls that lead to it.
        number: the number of the loop of this instruction.
        variable: the dimension of the maps that represents the loop.
    """

    array: ArrayRef
    number: int
    variable: Variable


class TileGraph:
    """The tiles of all arrays that the roots depend on.

    Args:
        starts: for each root array the map from the tiled dimensions to it.
        rank: the number of tiled dimensions; loops are numbered from it.
        inside: True for the arrays whose instructions belong to the fusion or computation; the
            others are its inputs.
        loops: loops that are numbered already, by instruction.
        options: options of the maps; by default, tiles have the elements that masks hide.

    Attributes:
        roots: the node of each start.
        rank: the number of tiled dimensions.
        loop_table: the loops of each instruction.
    """

    def __init__(
        self,
        starts: Iterable[tuple[ArrayRef, IndexingMap]],
        rank: int,
        inside: Inside,
        loops: LoopTable = _NO_LOOPS,
        options: Options = _OPTIONS,
    ) -> None:
        self._inside, self.rank = inside, rank
        self._options, self._walk = options, Walk(LocalEdges(options))
        self._nodes: dict[ArrayRef, dict[IndexingMap | None, TileNode]] = {}
        self.loop_table: LoopTable = dict(loops)
        self._order: list[tuple[tuple[int, ...], ArrayRef]] = []  # a heap, users first
        self._visited: list[ArrayRef] = []
        self._tiles = 0
        self.roots = [self._add(array, start) for array, start in starts]
        while self._order and len(self._visited) < MAX_ARRAYS:
            self._visit(heappop(self._order)[1])
        self._visited += [array for _, array in sorted(self._order)]

    @property
    def loops(self) -> Iterator[TileLoop]:
        """The loops of all instructions, in the order in which the walk reached them."""
        for array, loops in self.loop_table.items():
            for number, (_, variable) in enumerate(loops):
                yield TileLoop(array, number, variable)

    def nodes(self) -> Iterator[TileNode]:
        """Yield the nodes, operands before users."""
        for array in reversed(self._visited):
            yield from reversed(self._nodes[array].values())

    def nodes_of(self, array: ArrayRef) -> list[TileNode]:
        """Return the nodes of one array; without any if the roots do not depend on it."""
        return list(self._nodes.get(self.computed_array(array), {}).values())

    def computed_array(self, array: ArrayRef) -> ArrayRef:
        """Return the array that an array stands for; see `computed_array`."""
        return computed_array(array, self._inside)

    def is_input(self, array: ArrayRef) -> bool:
        """Return True for arrays that the fusion or computation reads and does not compute."""
        return not self._inside(array) or isinstance(array.instruction.op, Parameter)

    # ------------------------------------------------------------ the walk

    def _add(
        self, array: ArrayRef, to_array: IndexingMap | None, unknown: Unknown | None = None
    ) -> TileNode:
        """Return the node of an array with this map."""
        array = self.computed_array(array)
        nodes = self._nodes.get(array)
        if nodes is None:
            nodes = self._nodes[array] = {}
            place = (*[-call.index for call in array.calls], -array.instruction.index)
            heappush(self._order, (place, array))
        if to_array is not None and to_array not in nodes:
            unknown = _over_budget(array, to_array, len(nodes), self._tiles)
            to_array = to_array if unknown is None else None
            self._tiles += unknown is None
        node = nodes.get(to_array)
        if node is None:
            node = nodes[to_array] = TileNode(array, to_array, unknown)
        return node

    def _visit(self, array: ArrayRef) -> None:
        """Add the nodes of the operands that the tiles of an array need."""
        self._visited.append(array)
        if not self._inside(array):
            return
        instruction = array.instruction
        if set(self._nodes[array]) == {None}:
            self._follow_unknown(self._nodes[array][None])
            return
        self._walk.prepare([instruction], backward=True)
        nodes = self._nodes[array].values()
        loops = self._loops_of(array)
        edges = self._walk.backward_edges(array._replace(calls=()), fold=self._options.masks)
        for edge in edges:
            operand = ArrayRef(instruction.operands[edge.operand], edge.operand_path, array.calls)
            placed = _place_sources(edge, array.calls)
            for node in nodes:
                self._follow(node, edge, placed, operand, loops)

    def _follow_unknown(self, node: TileNode) -> None:
        """Add unknown nodes for all operands of an unknown node."""
        for number, each in enumerate(node.array.instruction.operands):
            for path, _ in leaves(each.shape):
                operand = ArrayRef(each, path, node.array.calls)
                node.operands.append((number, self._add(operand, None, node.unknown)))

    def _follow(
        self,
        node: TileNode,
        edge: AccessEdge,
        maps: Iterable[IndexingMap],
        operand: ArrayRef,
        loops: Loops,
    ) -> None:
        """Add the nodes of one operand that one node needs."""
        unknown = first_unknown(node.unknown, edge.unknown)
        if unknown is not None:
            node.operands.append((edge.operand, self._add(operand, None, unknown)))
        if node.map is None:
            return
        for read in maps:
            first, second = with_loops(node.map, read, edge.operand, loops)
            to_operand = _short(self._options.compose_maps(first, second), operand, self.rank)
            if not to_operand.is_known_empty:
                node.operands.append((edge.operand, self._add(operand, to_operand)))

    def _loops_of(self, array: ArrayRef) -> Loops:
        """Return the loops of an instruction; the leaves of its value share them."""
        key = array._replace(path=())
        if key not in self.loop_table:
            start = self.rank + sum(map(len, self.loop_table.values()))
            self.loop_table[key] = tuple(
                [
                    (loop, Variable(f"d{number}", 0, loop.size - 1))
                    for number, loop in enumerate(loop_dimensions(array.instruction), start)
                ]
            )
        return self.loop_table[key]


def computed_array(array: ArrayRef, inside: Inside) -> ArrayRef:
    """Return the array that an array stands for, through tuples, fusions, calls and parameters."""
    while inside(array):
        op = array.instruction.op
        is_forwarded = isinstance(op, Tuple | GetTupleElement | InlineOp)
        if not is_forwarded and not (array.calls and array.instruction.opcode == "parameter"):
            break
        source = source_of(array)
        if source is None:  # a parameter of a computation that a kernel applies
            break
        array = source
    return array


def _place_sources(edge: AccessEdge, calls: tuple[Instruction, ...]) -> list[IndexingMap]:
    """Return the maps of an edge with the sources of runtime variables in the callers' context."""
    return [
        piece
        for read in edge.maps
        for piece in (fold_runtime(_in_calls(read, calls)) if read.runtime else (read,))
    ]


def _in_calls(read: IndexingMap, calls: tuple[Instruction, ...]) -> IndexingMap:
    runtime = [
        replace(rt, array=rt.array._replace(calls=(*calls, *rt.array.calls)))
        if isinstance(rt.array, ArrayRef)
        else rt
        for rt in read.runtime
    ]
    return replace(read, runtime=tuple(runtime))


def _short(to_operand: IndexingMap, operand: ArrayRef, rank: int) -> IndexingMap:
    """Return a map, over-approximated if it has more than `MAX_PARTS` parts beside `rank` dims."""
    parts = len(to_operand.ranges) + len(to_operand.runtime) + len(to_operand.constraints)
    parts += len(to_operand.dims) - rank
    shape = operand.array_shape
    if parts <= MAX_PARTS or shape is None:
        return to_operand
    return over_approximate(to_operand, shape.dims)


def _over_budget(
    array: ArrayRef, to_array: IndexingMap, tiles: int, all_tiles: int
) -> Unknown | None:
    """Return the reason if an array, or all together, have too many tiles, or a map is too long."""
    name = array.instruction.name
    if tiles >= MAX_TILES:
        return Unknown(
            f"budget: `{name}` has more than {MAX_TILES} different tiles", array.instruction
        )
    if all_tiles >= MAX_ALL_TILES:
        return Unknown(f"budget: there are more than {MAX_ALL_TILES} different tiles")
    weight = sum([result.weight for result in to_array.results])
    if weight > MAX_WEIGHT:
        return Unknown(
            f"budget: the map to `{name}` has {weight} atoms, more than {MAX_WEIGHT}",
            array.instruction,
        )
    return None

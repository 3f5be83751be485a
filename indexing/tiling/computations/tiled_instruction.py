"""Tiled instructions: an instruction with the box of elements that one tile of the roots needs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain

from hlo.modules.module import Instruction
from indexing.maps.answers import Unknown
from indexing.maps.arrays import ArrayRef
from indexing.maps.compose import innermost_first
from indexing.maps.indexing_map import IndexingMap
from indexing.tiling.computations.tile_boxes import TileBox
from indexing.tiling.computations.tile_graph import TileNode
from indexing.tiling.sizes.size_constraints import ALWAYS
from simplifier.atoms import Variable
from simplifier.linear import Expr
from simplifier.substitute import Substitution


@dataclass(frozen=True, slots=True, eq=False)
class TiledInstruction:
    """One tile of an instruction; an instruction may have several.

    Attributes:
        array: the instruction, the leaf of its value, and the fusions and calls around it.
        number: the number of the tile among those of the array.
        map: the map from the tiled dimensions and loops to the elements; `None` if unknown.
        tile: the elements that one tile of the roots, in one iteration of the loops, needs; or the
            reason why they are unknown.
        operands: for each operand, its tiles from which this tile is computed.

    >>> import hlo, indexing
    >>> entry = hlo.parse('''ENTRY e {
    ...   p = f32[8,12] parameter(0)
    ...   n = f32[8,12] negate(p)
    ...   ROOT t = f32[12,8] transpose(n), dimensions={1,0}
    ... }''').entry
    >>> for each in indexing.tile_analysis(entry).tiled((3, 4)).instructions:
    ...     print(each.name, [str(side.size) for side in each.tile.sides])
    p.tile_0 ['4', '3']
    n.tile_0 ['4', '3']
    t.tile_0 ['3', '4']
    """

    array: ArrayRef
    number: int
    map: IndexingMap | None
    tile: TileBox | Unknown
    operands: tuple[tuple[TiledInstruction, ...], ...]

    @property
    def instruction(self) -> Instruction:
        """The instruction."""
        return self.array.instruction

    @property
    def name(self) -> str:
        """The name of the tile, such as ``reduce.tile_0``."""
        leaf = "".join([f"#{k}" for k in self.array.path])
        return f"{self.instruction.name}{leaf}.tile_{self.number}"

    def __repr__(self) -> str:
        return f"<{self.name}: {self.tile}>"


# ---------------------------------------------------------------- merging


def numbered_values(
    tiles: Mapping[TileNode, TileBox | Unknown],
) -> dict[TileNode, TileBox | Unknown]:
    """Return tiles whose runtime variables are ``rt_0, rt_1, …``, one name for each value.

    Args:
        tiles: the tile of each node, operands before users; values are numbered users first.
    """
    numbers: dict[object, int] = {}
    numbered = dict(tiles)
    for node, tile in reversed(list(tiles.items())):
        if isinstance(tile, Unknown) or not tile.runtime:
            continue
        swap: dict[Variable, Expr] = {}
        for rt in innermost_first(tile.runtime):
            index = tuple(map(Substitution(swap), rt.index))
            number = numbers.setdefault((rt.array, index, rt.clamp), len(numbers))
            swap[rt.variable] = rt.variable.renamed(f"rt_{number}").as_expr()
        change = Substitution(swap)
        runtime = [
            rt.substituted(change, rt.variable.renamed(str(swap[rt.variable])))
            for rt in tile.runtime
        ]
        numbered[node] = tile.substitute(change)._replace(runtime=tuple(runtime))
    return numbered


def merge_tiles(
    nodes: Iterable[TileNode],
    tiles: Mapping[TileNode, TileBox | Unknown],
    roots: Iterable[TileNode],
) -> tuple[list[TiledInstruction], list[TiledInstruction]]:
    """Return the tiled instructions, operands first, and those of `roots`; equal tiles are one.

    Args:
        nodes: all nodes, operands before users.
        tiles: the tile of each node.
    """
    first: dict[object, TileNode] = {}
    numbers = _Numbers()
    same: dict[TileNode, TileNode] = {}
    for node in nodes:
        tile = tiles[node]
        key = node.array, node.map if isinstance(tile, Unknown) else numbers.of(tile)
        same[node] = first.setdefault(key, node)
    made: dict[TileNode, TiledInstruction] = {}
    counts: dict[ArrayRef, int] = {}
    starts = [same[root] for root in roots]
    for node in _operands_first(starts, same):
        number = counts.setdefault(node.array, 0)
        counts[node.array] += 1
        operands: list[dict[TiledInstruction, None]] = [{} for _ in node.array.instruction.operands]
        for k, operand in node.operands:
            operands[k][made[same[operand]]] = None
        made[node] = TiledInstruction(
            node.array, number, node.map, tiles[node], tuple(map(tuple, operands))
        )
    return list(made.values()), [made[start] for start in starts]


class _Numbers:
    """Numbers boxes: equal boxes have equal numbers, whatever their constraints."""

    def __init__(self) -> None:
        self._of_object: dict[int, int] = {}  # the hash of a box takes long
        self._of_box: dict[TileBox, int] = {}

    def of(self, tile: TileBox) -> int:
        """Return the number of a box, which must not be garbage-collected in between."""
        number = self._of_object.get(id(tile))
        if number is None:
            box = tile._replace(constraints=ALWAYS)
            number = self._of_object[id(tile)] = self._of_box.setdefault(box, len(self._of_box))
        return number


def _operands_first(
    roots: Iterable[TileNode], same: Mapping[TileNode, TileNode]
) -> Iterator[TileNode]:
    """Yield the nodes that `roots` depend on, each once, operands before users."""
    done: set[TileNode] = set()
    waiting = [(root, False) for root in reversed(list(roots))]
    while waiting:
        node, is_ready = waiting.pop()
        if node in done:
            continue
        if is_ready:
            done.add(node)
            yield node
            continue
        waiting.append((node, True))
        waiting += [(same[operand], False) for _, operand in reversed(node.operands)]


def reachable(root: TiledInstruction) -> set[TiledInstruction]:
    """Return an instruction and those that it is computed from."""
    reached = {root}
    waiting = [root]
    while waiting:
        for operand in chain.from_iterable(waiting.pop().operands):
            if operand not in reached:
                reached.add(operand)
                waiting.append(operand)
    return reached

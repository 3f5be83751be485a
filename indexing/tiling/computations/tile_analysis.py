"""`tile_analysis`: one tiling of the roots, carried through a fusion or a computation.

>>> import hlo
>>> root = hlo.parse('''
... add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
... ENTRY e {
...   p = f32[16,97] parameter(0)
...   z = f32[] constant(0)
...   ROOT s = f32[16] reduce(p, z), dimensions={1}, to_apply=add
... }''').entry.root
>>> for line in str(tile_analysis(root).tiled([8, 32])).splitlines():
...     print(line.partition(" hlo:")[0].replace("  offsets", "\\n      offsets"))
Dimensions:
0 type: parallel size: 16 tile size: 8 dim ID:0
1 type: sequential size: 97 tile size: 32 dim ID:1
Root tiles:
0 root tile:
      offsets [tid_0 * 8] sizes [8] strides [1] upper bounds [16]
<BLANKLINE>
Tiled HLO:
  z.tile_0 = constant()
      offsets [] sizes [] strides [] upper bounds []
  s.tile_0 = reduce(p.tile_0, z.tile_0)
      offsets [tid_0 * 8] sizes [8] strides [1] upper bounds [16]
  region #0 {
    p.tile_0 = parameter(0)
      offsets [tid_0 * 8, tid_1 * 32] sizes [8, 32] strides [1, 1] upper bounds [16, 97]
  }
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from hlo.arguments import checked
from hlo.modules.module import Computation, Instruction
from hlo.shapes.shape import Shape, leaves
from indexing.dataflow.needed import dependencies_of
from indexing.dataflow.soundness import require_sound, require_sound_parameters
from indexing.maps.answers import Unknown
from indexing.maps.arrays import ArrayRef
from indexing.maps.displayed import Displayed
from indexing.maps.indexing_map import IndexingMap
from indexing.tiling.computations.root_tiles import RootMaps, root_maps
from indexing.tiling.computations.tile_boxes import (
    TileBox,
    concrete_box,
    symbolic_box,
    with_whole_loops,
)
from indexing.tiling.computations.tile_graph import Inside, TileGraph, TileNode, computed_array
from indexing.tiling.computations.tiled_computation import RootTile, TiledComputation, TileDimension
from indexing.tiling.computations.tiled_instruction import (
    TiledInstruction,
    merge_tiles,
    numbered_values,
)
from indexing.tiling.sizes.size_constraints import SizeConstraints, all_of
from indexing.tiling.sizes.tile_sizes import dimension_of
from indexing.tiling.symbolic.notation_2025 import text_2025


@dataclass(frozen=True, repr=False, eq=False)
class TileAnalysis(Displayed):
    """The tiles of all instructions of a fusion or computation, for tiles of any size.

    Attributes:
        target: what is tiled: a computation, or instructions that are treated as one fusion.
        dimensions: the dimensions of the tiled root, then the loops.
        arrays: the roots.
        root_maps: the map from the dimensions of the tiled root to each root.
        graph: the tiles before their boxes are known.

    >>> import hlo, indexing
    >>> entry = hlo.parse('''ENTRY e {
    ...   p = f32[8,12] parameter(0)
    ...   n = f32[8,12] negate(p)
    ...   ROOT t = f32[12,8] transpose(n), dimensions={1,0}
    ... }''').entry
    >>> analysis = indexing.tile_analysis(entry)
    >>> analysis.rank, [each.name for each in analysis.instructions], analysis.unknown
    (2, ['p.tile_0', 'n.tile_0', 't.tile_0'], ())
    >>> [each.tiled.name for each in analysis.roots], str(analysis.constraints)
    (['t.tile_0'], 'always satisfied')
    """

    target: Computation | tuple[Instruction, ...]
    dimensions: tuple[TileDimension, ...]
    arrays: tuple[ArrayRef, ...]
    root_maps: RootMaps
    graph: TileGraph

    @property
    def rank(self) -> int:
        """The number of dimensions of the tiled root: the other dimensions are loops."""
        return sum([each.kind == "parallel" for each in self.dimensions])

    @cached_property
    def symbolic(self) -> TiledComputation:
        """The tiled computation with symbolic tile sizes.

        >>> import hlo, indexing
        >>> entry = hlo.parse('''ENTRY e { p = f32[8,12] parameter(0)
        ...   ROOT t = f32[12,8] transpose(p), dimensions={1,0} }''').entry
        >>> print(indexing.tile_analysis(entry).symbolic.instructions[0].tile)  # of `p`
        offsets [tid_1 * ts_1, tid_0 * ts_0] sizes [ts_1, ts_0] strides [1, 1] upper bounds [8, 12]
        """
        return self._tile_nodes(self._symbolic, None)

    @property
    def roots(self) -> tuple[RootTile, ...]:
        """The roots, in the order of the leaves of the result."""
        return self.symbolic.roots

    @property
    def instructions(self) -> tuple[TiledInstruction, ...]:
        """The tiled instructions, operands first."""
        return self.symbolic.instructions

    @property
    def unknown(self) -> tuple[Unknown, ...]:
        """The reasons why tiles are unknown for every tile size; empty if all are known."""
        return self.symbolic.unknown

    @cached_property
    def constraints(self) -> SizeConstraints:
        """The tile sizes of the root for which all tiles but unknown ones are boxes.

        The loops are not tiled.

        >>> import hlo, indexing
        >>> text = "ENTRY e { p = f32[6,4] parameter(0)  ROOT r = f32[24] reshape(p) }"
        >>> print(indexing.tile_analysis(hlo.parse(text).entry).constraints)  # rows or parts
        4 mod ts_0 in [0, 0] || ts_0 mod 4 in [0, 0]
        """
        return self._constraints(self.rank)

    @cached_property
    def loop_constraints(self) -> SizeConstraints:
        """The tile sizes of the root and of the loops for which all but unknown tiles are boxes.

        >>> import hlo, indexing
        >>> entry = hlo.parse('''
        ... add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }
        ... ENTRY e { p = f32[5,6,4] parameter(0)  z = f32[] constant(0)  f = f32[5,24] reshape(p)
        ...   ROOT r = f32[5] reduce(f, z), dimensions={1}, to_apply=add }''').entry
        >>> print(indexing.tile_analysis(entry).loop_constraints)  # ts_1: the step along 6 x 4
        4 mod ts_1 in [0, 0] || ts_1 mod 4 in [0, 0]
        """
        return self._constraints(None)

    def _symbolic(self, node: TileNode, whole: int | None = None) -> TileBox | Unknown:
        if node.map is None:
            assert node.unknown is not None
            return node.unknown
        return symbolic_box(node.map, [each.size for each in self.dimensions], whole)

    def _constraints(self, whole: int | None) -> SizeConstraints:
        parts: dict[TileBox, SizeConstraints] = {}
        for node in self.graph.nodes():
            box = self._symbolic(node, whole)
            if isinstance(box, Unknown):  # but maybe not with tiled loops
                box = self._symbolic(node)
            if isinstance(box, TileBox) and box not in parts:
                parts[box] = box.constraints.with_source(
                    node.array.instruction.name, _results_text(node)
                )
        constraints = all_of(parts.values())
        if whole is not None:
            loops = [v for v in constraints.variables if dimension_of(v) >= whole]
            constraints = constraints.bind({v: v.upper for v in loops})
        return constraints.simplify()

    @checked
    def tiled(self, sizes: Sequence[int]) -> TiledComputation:
        """Return the tile of each instruction for given tile sizes.

        A tile is unknown only if it is not known to be a strided box for these sizes.

        Args:
            sizes: the tile size of each dimension of the tiled root, and of each loop; without
                those of the loops, they are not tiled.
        Raises:
            ValueError: there are too few or too many sizes, or a size is not positive.

        >>> import hlo, indexing
        >>> text = "ENTRY e { p = f32[6,4] parameter(0)  ROOT r = f32[24] reshape(p) }"
        >>> analysis = indexing.tile_analysis(hlo.parse(text).entry)
        >>> print(analysis.tiled([8]).instructions[0].tile)  # two rows of `p`
        offsets [tid_0 * 2, 0] sizes [2, 4] strides [1, 1] upper bounds [6, 4]
        >>> print(analysis.tiled([6]).instructions[0].tile.reason.partition(":")[0])
        4 does not divide ts_0 = 6
        """
        given = tuple(sizes)
        if len(given) not in (self.rank, len(self.dimensions)) or any(size < 1 for size in given):
            loops = len(self.dimensions) - self.rank
            both = f", or {len(self.dimensions)} with those of the loops" if loops else ""
            raise ValueError(
                f"sizes={given}: expected {self.rank} positive tile sizes, one for each dimension "
                f"of the root{both}"
            )
        full = (*given, *[each.size for each in self.dimensions[len(given) :]])
        whole = [each.size for each in self.dimensions]
        return self._tile_nodes(lambda node: _concrete(node, full, whole), full)

    def _tile_nodes(
        self, box_of: Callable[[TileNode], TileBox | Unknown], sizes: tuple[int, ...] | None
    ) -> TiledComputation:
        tiles = numbered_values({node: box_of(node) for node in self.graph.nodes()})
        instructions, starts = merge_tiles(tiles, tiles, self.graph.roots)
        known = iter(starts)
        roots = [
            RootTile(array, next(known) if isinstance(m, IndexingMap) else m)
            for array, m in zip(self.arrays, self.root_maps.maps, strict=True)
        ]
        return TiledComputation(self.dimensions, tuple(roots), tuple(instructions), sizes)

    def text_2025(self) -> str:
        """Return the tile of each instruction in XLA's notation of 2025; loops are not tiled.

        >>> import hlo, indexing
        >>> text = "ENTRY e { ROOT p = f32[6,4] parameter(0) }"
        >>> print(indexing.tile_analysis(hlo.parse(text).entry).text_2025())
        p.tile_0: %p = f32[6,4] parameter(0)
        Symbolic tile with
          offset_map: (d0, d1) -> (0, 0)
          size_map: (d0, d1) -> (d0, d1)
          stride_map: (d0, d1) -> (1, 1)
        """
        lines: list[str] = []
        for each in self.instructions:
            lines.append(f"{each.name}: {each.instruction}")
            if each.map is None:
                assert isinstance(each.tile, Unknown)
                lines.append(f"unknown: {each.tile.reason}")
            else:
                lines.append(text_2025(with_whole_loops(each.map, self.rank)))
        return "\n".join(lines)

    def __str__(self) -> str:
        return f"{self.symbolic}\nConstraints: {self.loop_constraints}"

    def __repr__(self) -> str:
        return f"<tile analysis: {len(self.instructions)} tiles, {len(self.arrays)} roots>"


@checked
def tile_analysis(
    target: Instruction | Computation | Iterable[Instruction],
) -> TileAnalysis | Unknown:
    """Return the tiles of all instructions of a fusion or computation that a root tile needs.

    Args:
        target: a computation; an instruction, whose computation is entered if it is a fusion or
            call; or several instructions of one computation, such as a producer and its consumer,
            treated as one fusion whose root is the last one.
    Returns:
        The analysis; `Unknown` if no root can be tiled, for example because its sizes are unknown.
    Raises:
        HloError: an instruction is invalid.
        ValueError: the instructions belong to several computations, or there are none.
    Source: XLA ``xla/codegen/tiling/symbolic_tile_analysis.h``; XLA
    ``xla/codegen/tiling/experimental/tiled_hlo.h``.

    >>> import hlo
    >>> computation = hlo.parse('''ENTRY e {
    ...   p = f32[4,2] parameter(0)
    ...   ROOT r = f32[8] reshape(p)
    ... }''').entry
    >>> analysis = tile_analysis(computation)
    >>> print(analysis.constraints)
    2 mod ts_0 in [0, 0] || ts_0 mod 2 in [0, 0]
    >>> tiled = analysis.tiled([4])
    >>> print(tiled.tiles_of(computation["p"])[0].tile)
    offsets [tid_0 * 2, 0] sizes [2, 2] strides [1, 1] upper bounds [4, 2]
    """
    if isinstance(target, Computation):
        require_sound_parameters(target)
        require_sound(dependencies_of([target.root]))
        return _analysis(target, target.root, _everything)
    instructions = (target,) if isinstance(target, Instruction) else tuple(target)
    if not instructions or len({each.computation for each in instructions}) > 1:
        names = ", ".join([f"`{i.name}` of `{i.computation.name}`" for i in instructions])
        raise ValueError(f"expected instructions of one computation, got {names or 'none'}")
    require_sound(instructions)
    within = set(instructions)
    root = max(instructions, key=lambda each: each.index)
    return _analysis(
        instructions, root, lambda array: bool(array.calls) or array.instruction in within
    )


def _everything(array: ArrayRef) -> bool:
    """Return True: all instructions of a computation belong to it."""
    return True


def _analysis(
    target: Computation | tuple[Instruction, ...], root: Instruction, inside: Inside
) -> TileAnalysis | Unknown:
    arrays = tuple([computed_array(ArrayRef(root, path), inside) for path, _ in leaves(root.shape)])
    maps = root_maps(arrays, inside)
    if isinstance(maps, Unknown):
        return maps
    tiled = arrays[maps.tiled]
    shape = tiled.array_shape
    assert isinstance(shape, Shape)
    pairs = zip(arrays, maps.maps, strict=True)
    starts = [(array, m) for array, m in pairs if isinstance(m, IndexingMap)]
    graph = TileGraph(starts, shape.rank, inside, maps.loops)
    dimensions = [TileDimension("parallel", n, tiled, k) for k, n in enumerate(shape.dims)]
    for array, number, variable in graph.loops:
        leaf = next(iter(leaves(array.instruction.shape)))[1]
        rank = leaf.rank if isinstance(leaf, Shape) else 0
        size = variable.upper + 1
        dimensions.append(TileDimension("sequential", size, array, rank + number))
    return TileAnalysis(target, tuple(dimensions), arrays, maps, graph)


def _concrete(node: TileNode, tile_sizes: Sequence[int], sizes: Sequence[int]) -> TileBox | Unknown:
    if node.map is None:
        assert node.unknown is not None
        return node.unknown
    return concrete_box(node.map, tile_sizes, sizes)


def _results_text(node: TileNode) -> str:
    """Return the results of a map, for the reason of a constraint."""
    assert node.map is not None
    return "(" + ", ".join(map(str, node.map.results)) + ")"

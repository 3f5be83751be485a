"""`TiledComputation`: the dimensions, roots and tiled instructions of one tiling, and their text.

Source: XLA ``xla/codegen/tiling/experimental/tiling_space.h`` and ``tiled_hlo.h``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from hlo.arguments import checked
from hlo.modules.module import Instruction
from indexing.maps.answers import Unknown
from indexing.maps.arrays import ArrayRef
from indexing.maps.displayed import Displayed
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.runtime_variable import RuntimeVariable, element_text, iterations_text
from indexing.tiling.computations.tile_boxes import TileBox
from indexing.tiling.computations.tiled_instruction import TiledInstruction, reachable
from simplifier.atoms import Variable
from simplifier.substitute import Substitution


@dataclass(frozen=True, slots=True)
class TileDimension:
    """A dimension of the tile space: its tile size is ``ts_k``, its tile index ``tid_k``.

    Attributes:
        kind: "parallel" for a dimension of the tiled root, "sequential" for a loop over a reduced
            or contracted dimension.
        size: the number of elements.
        array: the root, or the instruction that reduces or contracts.
        dimension: the number among the dimensions of the instruction: those of its result, then
            the loops.
    """

    kind: Literal["parallel", "sequential"]
    size: int
    array: ArrayRef
    dimension: int

    @property
    def instruction(self) -> Instruction:
        """The instruction that the dimension belongs to."""
        return self.array.instruction


@dataclass(frozen=True, slots=True)
class RootTile:
    """The tile of one root.

    Attributes:
        array: the root.
        tiled: its tiled instruction, or the reason why no tile of it follows from the tiled root.
    """

    array: ArrayRef
    tiled: TiledInstruction | Unknown


@dataclass(frozen=True, slots=True, repr=False)
class TiledComputation(Displayed):
    """One tiling of a computation or fusion: a tile of each instruction.

    Attributes:
        dimensions: the dimensions of the tiled root, then the loops.
        roots: the roots, in the order of the leaves of the result.
        instructions: the tiled instructions, operands first.
        sizes: the tile size of each dimension; `None` if symbolic.

    >>> import hlo, indexing
    >>> entry = hlo.parse('''ENTRY e {
    ...   p = f32[8,12] parameter(0)
    ...   n = f32[8,12] negate(p)
    ...   ROOT t = f32[12,8] transpose(n), dimensions={1,0}
    ... }''').entry
    >>> tiled = indexing.tile_analysis(entry).tiled((3, 4))
    >>> tiled.grid, tiled.sizes
    ((4, 2), (3, 4))
    >>> tiled.tiles_of(entry["n"])[0].name, tiled.unknown, tiled.runtime
    ('n.tile_0', (), ())
    """

    dimensions: tuple[TileDimension, ...]
    roots: tuple[RootTile, ...]
    instructions: tuple[TiledInstruction, ...]
    sizes: tuple[int, ...] | None = None

    @property
    def grid(self) -> tuple[int, ...] | None:
        """The number of tiles, or of iterations, in each dimension; `None` if symbolic."""
        if self.sizes is None:
            return None
        pairs = zip(self.sizes, self.dimensions, strict=True)
        return tuple([-(-each.size // size) for size, each in pairs])

    @property
    def unknown(self) -> tuple[Unknown, ...]:
        """The reasons why tiles are unknown; empty if all are known."""
        reasons = [each.tiled for each in self.roots if isinstance(each.tiled, Unknown)]
        reasons += [each.tile for each in self.instructions if isinstance(each.tile, Unknown)]
        return tuple(dict.fromkeys(reasons))

    @property
    def runtime(self) -> tuple[RuntimeVariable, ...]:
        """The runtime variables ``rt_0, rt_1, …`` of all tiles, each value once."""
        tiles = [each.tile for each in self.instructions if isinstance(each.tile, TileBox)]
        by_name = {rt.name: rt for tile in tiles for rt in tile.runtime}
        return tuple([by_name[name] for name in sorted(by_name, key=lambda name: int(name[3:]))])

    @checked
    def tiles_of(self, instruction: Instruction) -> tuple[TiledInstruction, ...]:
        """Return the tiles of an instruction; without any if no root depends on it."""
        return tuple([each for each in self.instructions if each.instruction is instruction])

    @checked
    def offsets(self, tiled: TiledInstruction) -> IndexingMap | Unknown:
        """Return the map from the tile index to the offsets of a tile.

        The dimensions are the tile indices of the root, and of the loops with several iterations.

        >>> import hlo, indexing
        >>> entry = hlo.parse('''ENTRY e { p = f32[8,12] parameter(0)
        ...   ROOT t = f32[12,8] transpose(p), dimensions={1,0} }''').entry
        >>> tiled = indexing.tile_analysis(entry).tiled((3, 4))
        >>> print(tiled.offsets(tiled.instructions[0]))  # of the tiles of `p`, which are 4 x 3
        (d0, d1) -> (d1 * 4, d0 * 3), domain: d0 in [0, 3], d1 in [0, 1]
        """
        if isinstance(tiled.tile, Unknown):
            return tiled.tile
        grid = self.grid
        if grid is None:
            return Unknown("the tile sizes are symbolic: write .tiled(sizes)")
        dims: dict[str, Variable] = {}
        for k, each in enumerate(self.dimensions):
            if each.kind == "parallel" or grid[k] > 1:
                dims[f"tid_{k}"] = Variable(f"d{k}", 0, grid[k] - 1)
        index = {
            v: dims[v.name].as_expr()
            for side in tiled.tile.sides
            for v in side.offset.variables()
            if v.name in dims
        }
        located = tiled.tile.substitute(Substitution(index))
        offsets = [side.offset for side in located.sides]
        return IndexingMap.of(dims.values(), offsets, runtime=located.runtime)

    def __str__(self) -> str:
        return "\n".join(_lines(self))

    def __repr__(self) -> str:
        tiles, roots = len(self.instructions), len(self.roots)
        return f"<tiled computation: {tiles} tiles, {roots} roots>"


# ---------------------------------------------------------------- text


def _lines(tiled: TiledComputation) -> Iterator[str]:
    """Yield the lines of the text, which is that of XLA's tiled computations."""
    yield "Dimensions:"
    for number, each in enumerate(tiled.dimensions):
        size = "" if tiled.sizes is None else f" tile size: {tiled.sizes[number]}"
        yield (
            f"{number} type: {each.kind} size: {each.size}{size} dim ID:{each.dimension} "
            f"hlo: {each.instruction}"
        )
    if tiled.runtime:
        yield "Runtime variables:"
        for number, rt in enumerate(tiled.runtime):
            low, high = rt.clamp or rt.variable.bounds
            element = f" element {element_text(rt.element)}" if rt.element else ""
            element += f" {iterations_text(rt.iterations)}" if rt.iterations else ""
            yield f"{number} bounds: [{low}, {high}] hlo: {rt.source}{element}"
    yield "Root tiles:"
    for number, root in enumerate(tiled.roots):
        tile = root.tiled if isinstance(root.tiled, Unknown) else root.tiled.tile
        yield f"{number} root tile:  {_tile_text(tile)}"
    yield ""
    yield "Tiled HLO:"
    regions = _Regions(tiled)
    yield from regions.lines(regions.outside(), "  ")


def _tile_text(tile: TileBox | Unknown) -> str:
    return f"unknown: {tile.reason}" if isinstance(tile, Unknown) else str(tile)


def _instruction_text(each: TiledInstruction) -> str:
    operands = ", ".join([operand.name for tiles in each.operands for operand in tiles])
    instruction = each.instruction
    if instruction.opcode == "parameter" and instruction.literal is not None:
        operands = instruction.literal.printed
    return f"{each.name} = {instruction.opcode}({operands})  {_tile_text(each.tile)}"


class _Regions:
    """The tiled instructions by region: an instruction that has loops has a region.

    An instruction belongs to the region of the innermost loop on which its tile depends; what does
    not depend on a loop is outside of it.
    """

    def __init__(self, tiled: TiledComputation) -> None:
        grid = tiled.grid
        loops = {
            k: each.array._replace(path=())
            for k, each in enumerate(tiled.dimensions)
            if each.kind == "sequential" and (grid is None or grid[k] > 1)
        }
        self._all = tiled.instructions
        self._own: dict[ArrayRef, set[int]] = {}
        for k, owner in loops.items():
            self._own.setdefault(owner, set()).add(k)
        self._needed = {each: loops.keys() & _dimensions_of(each) for each in self._all}
        self._printed: set[TiledInstruction] = set()

    def outside(self) -> list[TiledInstruction]:
        """Return the instructions outside of all loops."""
        return [each for each in self._all if not self._needed[each]]

    def lines(self, members: Iterable[TiledInstruction], indent: str) -> Iterator[str]:
        """Yield the lines of instructions and of their regions."""
        count = 0
        for each in members:
            if each in self._printed:
                continue
            self._printed.add(each)
            yield indent + _instruction_text(each)
            inside = self._region(each)
            if inside:
                yield f"{indent}region #{count} {{"
                yield from self.lines(inside, indent + "  ")
                yield f"{indent}}}"
                count += 1

    def _region(self, owner: TiledInstruction) -> list[TiledInstruction]:
        """Return the instructions that only the loops of `owner` and those around it repeat."""
        own = self._own.get(owner.array._replace(path=()))
        if not own:
            return []
        around = self._needed[owner] | own
        used = reachable(owner)
        return [
            e
            for e in self._all
            if e in used and self._needed[e] & own and self._needed[e] <= around
        ]


def _dimensions_of(each: TiledInstruction) -> set[int]:
    """Return the numbers of the dimensions on which a tile depends."""
    if isinstance(each.tile, TileBox):
        names = each.tile.variables()
        return {int(name.removeprefix("tid_")) for name in names if name.startswith("tid_")}
    return set() if each.map is None else {int(d.name[1:]) for d in each.map.dims}

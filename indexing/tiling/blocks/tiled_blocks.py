"""`TiledBlocks`: the blocks of one dimension of an operand that each tile reads, or skips."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, get_args

import numpy as np

import indexing.methods as methods
from hlo.arguments import checked, integers
from indexing.dataflow.given_parameters import with_computed_values
from indexing.maps.answers import Answer
from indexing.maps.displayed import Displayed
from indexing.maps.given_values import by_value_name, check_names, given_values
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.runtime_variable import RuntimeVariable
from indexing.tiling.blocks.block_relations import BLOCK, BlockRelations, block_relations
from indexing.tiling.blocks.loop_bounds import loop_bounds
from indexing.tiling.blocks.rows import rows_of_tiles
from indexing.tiling.sets.operands import TiledOperand
from indexing.tiling.sets.tile_grid import TileGrid
from simplifier.exact.cells import CellSets, Pieces, cell_sets, cell_sets_of_all
from simplifier.unknown import Unknown

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

BlockState: TypeAlias = Literal["skipped", "partial", "full", "runtime"]

STATES: Final[tuple[BlockState, ...]] = get_args(BlockState)
"""The states, by their numbers in `TiledBlocks.states`."""

MAX_CELLS: Final = 1 << 22
"""Maximum number of different pairs of a tile and a block."""


@dataclass(frozen=True, eq=False, repr=False)
class TiledBlocks(Displayed):
    """The blocks of one dimension of an operand that each tile reads, or skips.

    Block ``b`` has the elements of the operand whose index in the dimension is in
    ``[b * size, (b + 1) * size)``.  For a tile, it is

    * "full" if each element of the tile needs, for each index in the block, an element with it;
    * "skipped" if no element of the tile needs any element of the block;
    * "partial" if it is neither;
    * "runtime" if the state depends on runtime values, or may do so; or if a map of the grade
      "may" does not decide it.

    Attributes:
        operand: the operand.
        dimension: the dimension that is cut into blocks.
        size: the size of a block; the last one may be smaller.
        dims: the dimensions of the grid on which the states depend.
        states: the numbers of the states in `STATES`, by tile index in `dims`, and block.

    >>> import hlo, indexing
    >>> dot = hlo.parse('''ENTRY e {
    ...   p = f32[64,32] parameter(0)
    ...   q = f32[32,64] parameter(1)
    ...   ROOT dot = f32[64,64] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    ... }''').entry.root
    >>> blocks = indexing.tile(dot, (32, 64)).blocks("p", 8)
    >>> blocks.at(1, 0), blocks.counts
    (('full', 'full', 'full', 'full'), {'skipped': 0, 'partial': 0, 'full': 8, 'runtime': 0})
    >>> blocks.extent, blocks.count, blocks.lengths, blocks.is_masked
    (32, 4, array([8, 8, 8, 8]), False)
    >>> blocks.pairs["full"], blocks.bytes["full"]  # 64 * 64 elements by 32 indices, 64 * 32 floats
    (131072, 8192)
    """

    operand: TiledOperand
    answer: Answer
    dimension: int
    size: int
    dims: tuple[int, ...]
    states: NDArray[np.int8]
    _relations: BlockRelations

    @property
    def grid(self) -> TileGrid:
        """The tiles."""
        return self.operand.grid

    @property
    def extent(self) -> int:
        """The size of the dimension."""
        return self.operand.shape.dims[self.dimension]

    @property
    def count(self) -> int:
        """The number of blocks."""
        return -(-self.extent // self.size)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """The number of indices in each block."""
        return _lengths(self.extent, self.size)

    @property
    def runtime(self) -> tuple[RuntimeVariable, ...]:
        """The runtime values that decide on the states, with their index over the tile index."""
        return self._relations.runtime

    @property
    def is_masked(self) -> bool:
        """True if some tile does not need all indices of a block."""
        return bool((self.states != STATES.index("full")).any())

    @property
    def counts(self) -> dict[BlockState, int]:
        """The number of pairs of a tile and a block in each state."""
        counts = np.bincount(self.states.ravel(), minlength=len(STATES)) * self._repeated
        return dict(zip(STATES, counts.tolist(), strict=True))

    @property
    def _repeated(self) -> int:
        """The number of tiles with equal states."""
        return prod([n for k, n in enumerate(self.grid.counts) if k not in self.dims])

    @property
    def pairs(self) -> dict[BlockState, int]:
        """The number of pairs of an element of a tile and an index of a block in each state.

        The operations on scores of an attention are proportional to it.
        """
        grid = self.grid
        others = prod([n for k, n in enumerate(grid.dims) if k not in self.dims])
        return self._sums(
            others * _outer([_lengths(grid.dims[k], grid.sizes[k]) for k in self.dims])
        )

    @cached_property
    def bytes(self) -> dict[BlockState, int] | Unknown:
        """The bytes of blocks in each state, summed over all tiles.

        Of a block, the elements count that a tile needs if none of them is masked; `Unknown` if no
        tile needs any element.
        """
        if not self.operand.maps:
            return Unknown("no element of the array is needed", self.operand.instruction)
        rows = rows_of_tiles(self.operand, self.dimension, self.dims)
        if isinstance(rows, Unknown):
            return rows
        bits = self.operand.shape.element_bits
        return {state: -(-n * bits // 8) for state, n in self._sums(rows).items()}

    def _sums(self, tiles: NDArray[Any]) -> dict[BlockState, int]:
        """The sum of a number of each tile times the length of blocks, by the states."""
        largest = prod(self.grid.dims) * prod(self.operand.shape.dims)
        number = np.int64 if largest < 1 << 62 else object
        weights = tiles[..., None].astype(number) * self.lengths
        return {s: int(weights[self.states == k].sum()) for k, s in enumerate(STATES)}

    @cached_property
    def loop_bounds(self) -> tuple[IndexingMap, ...] | Unknown:
        """Maps from the tile index to the first and the last block that a tile reads.

        All blocks that a tile reads lie between them.  Of the grade "exact", the tile reads both;
        tiles that read nothing are outside of the domain, or the last block is before the first
        one.  Of the grade "may", it may read fewer.  Usually there is one map.  If no minimum or
        maximum gives the bounds of all tiles, there are several with disjoint domains.

        >>> import hlo, indexing
        >>> dot = hlo.parse('''ENTRY e { p = f32[64,32] parameter(0)  q = f32[32,64] parameter(1)
        ...   ROOT dot = f32[64,64] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}
        ... }''').entry.root
        >>> print(*indexing.tile(dot, (32, 64)).blocks("p", 8).loop_bounds)  # each tile reads all 4
        (tid_0, tid_1) -> (0, 3), domain: tid_0 in [0, 1], tid_1 in [0, 0]
        """
        return loop_bounds(self._relations, self.grid)

    def at(self, *index: int, **values: ArrayLike) -> tuple[BlockState, ...]:
        """Return the state of each block for one tile.

        Args:
            index: the index of the tile, from 0, in each dimension.
            values: values of runtime variables, as in `Answer.at`.
        Raises:
            IndexError: the tile is outside of the grid.
            TypeError: a value is not that of a runtime variable.
            ValueError: the number of indices is not the rank.
        """
        self.grid.slices(integers("TiledBlocks", "index", index))
        place = tuple([index[k] for k in self.dims])
        states = self.states[place]
        given = self._given_values(index, values)
        if given is not None and not isinstance(self._sets, Unknown):
            cells = self._relations.points.cells
            own = {v.name: n for v, n in zip(cells, place, strict=False)}
            states = _states(self._sets, {**own, **given, BLOCK: np.arange(self.count)})
        return tuple([STATES[k] for k in states])

    @cached_property
    def _sets(self) -> CellSets | Unknown:
        """The states as sets, for each of the runtime values."""
        return cell_sets(self._relations.points)

    def _given_values(
        self, index: Sequence[int], values: Mapping[str, ArrayLike]
    ) -> dict[str, int] | None:
        """The runtime values of a tile; `None` if there are none, or some are not given."""
        values = with_computed_values(self.answer, values)
        maps = [m for own in self.answer.maps for m in own]
        check_names(maps, values)
        values = by_value_name(maps, values)
        at = dict(zip(self.grid.tile_index, index, strict=True))
        given: dict[str, int] = {}
        for rt in self.runtime:
            known = given_values(rt, values)
            if known is None:
                return None
            given[rt.name] = int(known.at([i.value(at) for i in rt.index]))
        return given or None

    @checked
    def plot(self, backend: methods.Backend = "svg", theme: methods.Theme = "auto") -> Any:
        """Return a picture: a row for each tile whose states may differ, a column for each block.

        Args:
            backend, theme: as in `Answer.plot`.
        Raises:
            ImportError: matplotlib is not installed.

        >>> import hlo, indexing
        >>> dot = hlo.parse('''ENTRY e { p = f32[64,32] parameter(0)  q = f32[32,64] parameter(1)
        ...   ROOT dot = f32[64,64] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}
        ... }''').entry.root
        >>> indexing.tile(dot, (32, 64)).blocks("p", 8).plot()
        <drawing of 'the blocks of p that tiles of [32, 64] need'>
        """
        return methods.plot_blocks(self, backend, theme)

    def __str__(self) -> str:
        return methods.blocks_text(self)

    def __repr__(self) -> str:
        name = self.operand.instruction.name
        return f"<blocks of {self.size} in dimension {self.dimension} of {name!r}>"


def tiled_blocks(
    operand: TiledOperand, answer: Answer, size: int, dimension: int | None = None
) -> TiledBlocks | Unknown:
    """Return which blocks of one dimension of an operand each tile reads, or skips.

    Args:
        answer: the maps of all operands.
        size, dimension: see `Tiling.blocks`.
    """
    name, rank = operand.instruction.name, operand.shape.rank
    if size < 1:
        raise ValueError(f"a block has at least 1 index, got a size of {size}")
    if operand.unknown is not None:
        return operand.unknown
    if dimension is not None:
        if not 0 <= dimension < rank:
            raise IndexError(f"`{name}` has dimensions 0 to {rank - 1}, got {dimension}")
        return _blocks_along(operand, answer, size, dimension)
    looped = [_blocks_along(operand, answer, size, k) for k in looped_dimensions(operand)]
    if not looped:
        return Unknown(f"no loop runs over a dimension of `{name}`", operand.instruction)
    return next((b for b in looped if isinstance(b, TiledBlocks) and b.is_masked), looped[0])


def looped_dimensions(operand: TiledOperand) -> list[int]:
    """Return the dimensions of which one element of the tiled array may need several indices."""
    walked = [(k, r, m) for m in operand.maps for k, r in enumerate(m.results)]
    return sorted({k for k, r, m in walked if not set(m.ranges).isdisjoint(r.variables())})


def _blocks_along(
    operand: TiledOperand, answer: Answer, size: int, dimension: int
) -> TiledBlocks | Unknown:
    extent = operand.shape.dims[dimension]
    if not extent or not all(operand.grid.dims):
        return Unknown("an array has no elements", operand.instruction)
    relations = block_relations(operand.maps, operand.grid, dimension, extent, size)
    cells = relations.points.cells
    shape = tuple([v.size for v in cells])
    if prod(shape) > MAX_CELLS:
        return Unknown(f"budget: {prod(shape)} tiles and blocks, more than {MAX_CELLS}")
    sets = cell_sets_of_all(relations.points)
    if isinstance(sets, Unknown):
        return sets
    each = [
        np.arange(n).reshape([-1 if j == k else 1 for j in range(len(shape))])
        for k, n in enumerate(shape)
    ]
    states = _states(sets, {v.name: at for v, at in zip(cells, each, strict=True)})
    whole = np.broadcast_to(states, shape)
    return TiledBlocks(operand, answer, dimension, size, relations.dims, whole, relations)


def _states(sets: CellSets, at: Mapping[str, Any]) -> NDArray[np.int8]:
    """The numbers of the states of cells."""
    touched, lacking, surely_touched, surely_lacking = [_members(each, at) for each in sets]
    partial = np.where(surely_touched & surely_lacking, 1, 3)
    states = np.where(touched, np.where(lacking, partial, 2), 0)
    return states.astype(np.int8)


def _members(pieces: Pieces, at: Mapping[str, Any]) -> NDArray[np.bool_]:
    """True for the points that are in one of the pieces."""
    members = np.zeros(np.broadcast_shapes(*map(np.shape, at.values())), np.bool_)
    for piece in pieces:
        values = {v: at[v.name] for v in piece.inputs}
        own: Any = True
        for v, value in values.items():
            own = own & (value >= v.lower) & (value <= v.upper)
        for c in piece.constraints:
            value = c.expr.value(values)
            own = own & (value >= c.lower) & (value <= c.upper)
        members = members | own
    return members


def _lengths(extent: int, size: int) -> NDArray[np.int64]:
    """The number of indices in each part of a dimension that is cut by a size."""
    return np.array([min(size, extent - start) for start in range(0, extent, size)], np.int64)


def _outer(factors: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """The products of numbers, each factor along an axis of its own."""
    product = np.ones((), np.int64)
    for factor in factors:
        product = product[..., None] * factor
    return product

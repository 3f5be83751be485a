"""`tile`: the tiles of an instruction, and the elements of its operands that each tile needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, overload

import indexing.methods as methods
from hlo.arguments import checked, integers
from hlo.modules.module import Instruction
from hlo.shapes.shape import Shape
from indexing.dataflow.queries import input_to_output, output_to_input, to_parameters
from indexing.maps.answers import Answer
from indexing.maps.displayed import Displayed
from indexing.maps.regions.answers import OperandRegion
from indexing.tiling.blocks.tiled_blocks import TiledBlocks, tiled_blocks
from indexing.tiling.sets.finished_outputs import exact_answer, finished_regions, values_in
from indexing.tiling.sets.operands import TiledOperand
from indexing.tiling.sets.tile_grid import TileGrid
from indexing.tiling.sets.tiled_answers import Target as Target
from indexing.tiling.sets.tiled_answers import TileDirection as TileDirection
from indexing.tiling.sets.tiled_answers import start_of, sum_of, tiled_operands, tiled_shape
from simplifier.unknown import Unknown

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from indexing.tiling.loops.loop_tiling import LoopTiling


@dataclass(frozen=True, eq=False, repr=False)
class Tiling(Displayed):
    """The tiles of one array, and the elements of other arrays that each tile needs.

    Attributes:
        instruction: the instruction whose output, or operand, is tiled.
        sizes: the size of a tile in each dimension.
        to: "operands" or "parameters": the arrays whose elements are needed.
        direction: "output-to-input": a tile is a part of an output; "input-to-output": a part of an
            operand, and the regions are those of the outputs that read it.
        answer: the maps.
        operands: the elements needed of each array; those of a tuple have one entry for each leaf.

    >>> import hlo, indexing
    >>> text = "ENTRY e { p = f32[9] parameter(0)  ROOT n = f32[9] negate(p) }"
    >>> tiles = indexing.tile(hlo.parse(text).entry.root, (4,))
    >>> print(tiles.grid, tiles.edge_tiles, tiles.slices(2)[0], *tiles.at(2), tiles.bytes)
    (3,) 1 slice(8, 9, None) [8] 36
    """

    instruction: Instruction
    sizes: tuple[int, ...]
    to: Target
    direction: TileDirection
    answer: Answer
    operands: tuple[TiledOperand, ...]
    _grid: TileGrid

    @property
    def shape(self) -> Shape:
        """The shape of the tiled array."""
        return tiled_shape(self.answer)

    @property
    def grid(self) -> tuple[int, ...]:
        """The number of tiles along each dimension."""
        return self._grid.counts

    @property
    def divides(self) -> tuple[bool, ...]:
        """For each dimension, True if all tiles are whole."""
        return self._grid.divides

    @property
    def edge_tiles(self) -> int:
        """The number of tiles that the array cuts off."""
        return self._grid.edge_tiles

    @property
    def bytes(self) -> int | Unknown:
        """The sum of `TiledOperand.bytes` over all operands."""
        return sum_of([operand.bytes for operand in self.operands])

    @property
    def bytes_touched(self) -> int | Unknown:
        """The sum of `TiledOperand.bytes_touched` over all operands."""
        return sum_of([operand.bytes_touched for operand in self.operands])

    @property
    def tile_bytes(self) -> int | Unknown:
        """The sum of `TiledOperand.tile_bytes` over all operands."""
        return sum_of([operand.tile_bytes for operand in self.operands])

    @property
    def reuse(self) -> Fraction | Unknown:
        """`bytes` / `bytes_touched`; `Unknown` if the reuse of an operand is."""
        needed, touched = self.bytes, self.bytes_touched
        for operand in self.operands:
            if isinstance(own := operand.reuse, Unknown):
                return own
        if isinstance(needed, Unknown):
            return needed
        if isinstance(touched, Unknown):
            return touched
        return Fraction(needed, touched) if touched else Fraction(1)

    @checked
    def with_sizes(self, sizes: Sequence[int]) -> Tiling:
        """Return the tiling of the same array by other sizes; the maps are not computed again.

        Raises:
            ValueError: `sizes` has not one positive size for each dimension.

        >>> import hlo
        >>> text = "ENTRY e { p = f32[9] parameter(0)  ROOT n = f32[9] negate(p) }"
        >>> list(tile(hlo.parse(text).entry.root, (4,)).with_sizes((5,)).tiles())
        [(0,), (1,)]
        """
        grid = TileGrid.check_sizes(self.instruction.name, self.shape.dims, sizes)
        operands = tiled_operands(self.answer, grid)
        return replace(self, sizes=grid.sizes, operands=operands, _grid=grid)

    def slices(self, *index: int) -> tuple[slice, ...]:
        """Return the elements of one tile, as slices of the tiled array.

        Raises:
            IndexError: the tile is outside of the grid.
            ValueError: the number of indices is not the rank.
        """
        return self._grid.slices(integers("Tiling", "index", index))

    def tiles(self) -> Iterator[tuple[int, ...]]:
        """Yield the index of each tile, in row-major order: the order of `Vectorized.tiles`."""
        yield from self._grid.tiles()

    def at(self, *index: int, **values: ArrayLike) -> tuple[OperandRegion, ...]:
        """Return the elements of each operand that one tile needs.

        Args:
            index: the index of the tile, from 0, in each dimension.
            values: values of runtime variables, as in `Answer.at`.
        Returns:
            For each of the operands of the answer: a `Region`, a tuple of them for a tuple-shaped
            operand, or `Unknown`.
        Raises:
            IndexError: the tile is outside of the grid.
            ValueError: the number of indices is not the rank.

        >>> import hlo
        >>> fusion = hlo.load("examples/attention.opt.hlo").entry["ynn_fusion.7"]
        >>> print(*tile(fusion, (4, 3)).at(0, 2))
        [0:4, 0:64] [0:64, 6:9]
        """
        return self.answer.at(*self.slices(*index), **values)

    @checked
    def blocks(
        self, operand: int | str, size: int, dimension: int | None = None
    ) -> TiledBlocks | Unknown:
        """Return which blocks of one dimension of an operand each tile reads, or skips.

        Args:
            operand: the number of an entry of `operands`, or the name of its instruction.
            size: the number of indices in a block, at least 1.
            dimension: the dimension of the operand that is cut into blocks; by default the first
                one that a loop runs over and of which tiles skip blocks, or read some in part.
        Returns:
            The blocks; `Unknown` if the maps are incomplete, no loop runs over a dimension, or a
            budget is exceeded.
        Raises:
            IndexError: there is no such operand or dimension.
            ValueError: the direction is "input-to-output", or the size is less than 1.

        >>> import hlo
        >>> module = hlo.parse('''
        ... add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }
        ... ENTRY e {
        ...   x = f32[12,12] parameter(0)
        ...   i = s32[12,12] iota(), iota_dimension=0
        ...   j = s32[12,12] iota(), iota_dimension=1
        ...   below = pred[12,12] compare(j, i), direction=LE
        ...   zero = f32[] constant(0)
        ...   zeros = f32[12,12] broadcast(zero), dimensions={}
        ...   masked = f32[12,12] select(below, x, zeros)
        ...   ROOT sums = f32[12] reduce(masked, zero), dimensions={1}, to_apply=add
        ... }''')
        >>> blocks = tile(module.entry.root, (4,), to="parameters").blocks("x", 4)
        >>> for tid in range(3):
        ...     print(*blocks.at(tid))
        partial skipped skipped
        full partial skipped
        full full partial
        >>> print(*blocks.loop_bounds)
        (tid_0) -> (0, tid_0), domain: tid_0 in [0, 2]
        """
        if self.direction != "output-to-input":
            raise ValueError('only tiles of outputs read blocks: write direction="output-to-input"')
        names = [each.instruction.name for each in self.operands]
        if operand in names:
            operand = names.index(operand)
        if isinstance(operand, str) or not 0 <= operand < len(names):
            raise IndexError(f"no operand {operand!r}: there are {', '.join(names)}")
        return tiled_blocks(self.operands[operand], self.answer, size, dimension)

    @checked
    def plot(
        self,
        *index: int,
        backend: methods.Backend = "svg",
        theme: methods.Theme = "auto",
        **values: ArrayLike,
    ) -> Any:
        """Return a picture of a tile, and of the elements of each operand that it needs.

        Args:
            index, values: as in `at`.  Without an index, the first tile; notebooks have sliders
                over the tiles if anywidget is installed (extra ``[notebook]``).
            backend, theme: as in `Answer.plot`.
        Returns:
            A `Drawing`, in which frames are the borders of tiles.
        Raises:
            ImportError: matplotlib is not installed.
            IndexError, ValueError: as `at`.

        >>> import hlo
        >>> fusion = hlo.load("examples/attention.opt.hlo").entry["ynn_fusion.7"]
        >>> tile(fusion, (4, 3)).plot(0, 2)
        <drawing of 'what tile (0, 2) of 16 x 22 of ynn_fusion.7 needs'>
        """
        return methods.plot_tiling(self, index, values, backend, theme)

    def finished(self, *index: int, **values: ArrayLike) -> tuple[OperandRegion, ...]:
        """Return the elements of each output that need this tile, and no other of the operand.

        They can be computed as soon as the tile is there.  Exact maps are used where they exist,
        also if the tiling has over-approximations.

        Args:
            index: the index of the tile, from 0, in each dimension.
            values: values of runtime variables, as in `Answer.at`.
        Returns:
            A region for each output.  One of the grade "exact" has these elements.  One of the
            grade "may" is an under-approximation (``side="under"``, printed "at least"): its
            elements need this tile and no other for all values of runtime variables that have no
            value here, and other elements may do so, too.
        Raises:
            IndexError: the tile is outside of the grid.
            TypeError: a value is not that of a runtime variable.
            ValueError: the direction is not "input-to-output", or the number of indices is not the
                rank.

        >>> import hlo
        >>> text = "ENTRY e { p = f32[9] parameter(0)  q = f32[9] parameter(1)  "
        >>> module = hlo.parse(text + "ROOT c = f32[18] concatenate(p, q), dimensions={0} }")
        >>> tiling = tile(module.entry.root, (4,), direction="input-to-output", operand_id=1)
        >>> print(*tiling.finished(2))
        [17]
        >>> module = hlo.parse('''ENTRY e { p = f32[6] parameter(0)  u = f32[2] parameter(1)
        ...   i = s32[] parameter(2)  ROOT d = f32[6] dynamic-update-slice(p, u, i) }''')
        >>> tiling = tile(module.entry.root, (4,), direction="input-to-output")
        >>> print(*tiling.finished(0, i=2), *tiling.finished(0, i=0))
        [0:2] [2:4]
        >>> print(*tiling.finished(0))
        at least ∅ for all rt0 in [0, 4]
        """
        if self.direction != "input-to-output":
            raise ValueError(
                'only tiles of operands finish outputs: write tile(…, direction="input-to-output")'
            )
        part = self.slices(*index)
        given = values_in(self._pieces, self.answer, values)
        return finished_regions(self._pieces, self.shape.dims, part, given)

    @cached_property
    def _pieces(self) -> Answer:
        """The exact maps to the outputs."""
        return exact_answer(self.answer)

    def __str__(self) -> str:
        return methods.tiling_text(self)

    def __repr__(self) -> str:
        return f"<tiling of {self.instruction.name!r}: sizes {self.sizes}, grid {self.grid}>"


@overload
def tile(
    instruction: Instruction,
    sizes: Sequence[int],
    to: Target = "operands",
    output_id: int = 0,
    direction: TileDirection = "output-to-input",
    operand_id: int = 0,
    exact: bool = False,
    masks: bool = True,
    loop_sizes: None = None,
) -> Tiling | Unknown: ...
@overload
def tile(
    instruction: Instruction,
    sizes: Sequence[int],
    to: Target = "operands",
    output_id: int = 0,
    direction: TileDirection = "output-to-input",
    operand_id: int = 0,
    exact: bool = False,
    masks: bool = True,
    *,
    loop_sizes: Mapping[str, int] | Sequence[int],
    online: bool = True,
    split_k: int = 1,
) -> LoopTiling | Unknown: ...
@checked
def tile(
    instruction: Instruction,
    sizes: Sequence[int],
    to: Target = "operands",
    output_id: int = 0,
    direction: TileDirection = "output-to-input",
    operand_id: int = 0,
    exact: bool = False,
    masks: bool = True,
    loop_sizes: Mapping[str, int] | Sequence[int] | None = None,
    online: bool = True,
    split_k: int = 1,
) -> Tiling | LoopTiling | Unknown:
    """Return the elements that each tile of an output needs; or those that need a tile of an input.

    Tile ``tid`` has the elements ``d_k = tid_k * sizes[k] + e`` with ``0 <= e < sizes[k]`` that are
    in the array.  A size may be larger than the dimension.

    Args:
        instruction: the instruction whose output or operand is tiled.
        sizes: the size of a tile in each dimension of the tiled array, at least 1.
        to: "operands" of the instruction, or "parameters" of its computation.
        output_id: number of the tiled output.
        direction: "input-to-output" for tiles of an operand, and the outputs that need them.
        operand_id: number of the operand, for "input-to-output".
        exact: use exact maps, in pieces, instead of one over-approximation; see `output_to_input`.
        masks: leave out elements that a mask makes unneeded; False for what a program loads that
            computes every element.
        loop_sizes: the steps in which each block runs over contracted, reduced and window
            dimensions: by the name of a loop, such as ``{"k": 64}``, or one for each.  Loops that
            are not named have one step.  ``d1`` is dimension 1 of the result, which a block then
            walks serially.
        online: with `loop_sizes`, run a reduction in step with a statistic that it needs, such as
            the maximum of a row, where partial results can be rescaled.
        split_k: with `loop_sizes`, the number of blocks that share the loop of one tile.
    Returns:
        The tiling, with `loop_sizes` a `LoopTiling`; `Unknown` if the maps of all arrays are
        unknown, or the tiled array has no elements of known number.
    Raises:
        HloError: the instruction, or one that it depends on, is invalid.
        IndexError: `output_id` or `operand_id` is out of range.
        ValueError: `sizes` has not one positive size for each dimension, there is no such loop, or
            `loop_sizes` is combined with tiles of an operand or with `exact`.

    >>> import hlo
    >>> module = hlo.parse('''ENTRY e { p = f32[9] parameter(0)  q = f32[7] parameter(1)
    ...   ROOT c = f32[16] concatenate(p, q), dimensions={0} }''')
    >>> tiling = tile(module.entry.root, (4,))
    >>> tiling.grid, tiling.divides, [operand.kind for operand in tiling.operands]
    ((4,), (True,), ['box', 'box'])
    >>> print(*tiling.at(2), *tiling.operands[0].offsets, *tiling.operands[0].sizes)
    [8] [0:3] tid_0 * 4 max(min(tid_0 * -4 + 9, 4), 0)
    """
    if loop_sizes is not None:
        if direction == "input-to-output":
            raise ValueError('only tiles of outputs have loops: write direction="output-to-input"')
        if exact:
            raise ValueError("exact=True is for tiles without loops")
        return methods.loop_tiling(
            instruction, sizes, loop_sizes, to, output_id, masks, online, split_k
        )
    if direction == "input-to-output":
        if to == "parameters":
            raise ValueError('direction="input-to-output" has no parameters: write to="operands"')
        answer = input_to_output(instruction, operand_id, exact=exact, masks=masks)
    elif to == "parameters":
        answer = to_parameters(instruction, output_id, exact=exact, masks=masks)
    else:
        answer = output_to_input(instruction, output_id, exact=exact, masks=masks)
    return tiling_of(answer, sizes, to)


def tiling_of(answer: Answer, sizes: Sequence[int], to: Target) -> Tiling | Unknown:
    """Return the tiling by the maps of an answer about operands or parameters; see `tile`."""
    shape, instruction, direction = start_of(answer), answer.instruction, answer.direction
    if isinstance(shape, Unknown):
        return shape
    grid = TileGrid.check_sizes(instruction.name, shape.dims, sizes)
    reasons = [reason for reason in answer.unknown if reason is not None]
    if reasons and len(reasons) == len(answer.unknown):
        return reasons[0]
    operands = tiled_operands(answer, grid)
    assert direction != "output-to-root"
    return Tiling(instruction, grid.sizes, to, direction, answer, operands, grid)

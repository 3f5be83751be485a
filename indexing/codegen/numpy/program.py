"""Loop nests as executable NumPy programs: of the whole result, or tile by tile."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from math import prod
from typing import Any, TypeAlias

import numpy as np

from hlo.arguments import integers
from indexing.codegen.graph import (
    Array,
    Body,
    Buffer,
    BufferRead,
    Reduction,
    topological_order,
    with_cases,
)
from indexing.codegen.numpy.block import WriterState, define
from indexing.codegen.numpy.writer import write_stages
from indexing.codegen.sources import SourceBuilder, functions_in, functions_of
from indexing.codegen.stages import Nest, Repeat, Stage, all_stages
from indexing.codegen.text import dtype_text, tuple_text
from indexing.tiling.sets.tile_grid import TileGrid
from simplifier.atoms import Variable, point_count
from simplifier.substitute import Substitution

Box: TypeAlias = tuple[tuple[int, int], ...]
"""For each dimension, the half-open interval of its indices."""


def function_on_arrays(name: str, body: Body) -> Callable[..., Any]:
    """Return a computation of scalars as a function of arrays, applied elementwise."""
    functions = functions_in(topological_order(body.results, with_cases))
    source = SourceBuilder(functions, [name])
    define(source, name, body)
    _, function = source.execute(name, "computation")
    (first, *_) = body.results
    function.returns_second = (
        len(body.parameters) == 2
        and isinstance(first, BufferRead)
        and first.buffer is body.parameters[1]
    )
    return function  # type: ignore[no-any-return]


class Vectorized:
    """A loop nest as a NumPy program.

    >>> import hlo, indexing
    >>> module = hlo.parse('''
    ... ENTRY e {
    ...   p = f32[2,3] parameter(0)
    ...   t = f32[3,2] transpose(p), dimensions={1,0}
    ...   ROOT e = f32[3,2] exponential(t)
    ... }''')
    >>> program = indexing.loop_nest(module.entry).vectorized()
    >>> print(program.source)
    def e(p):
        out = np.exp(p.T)
        return out
    """

    def __init__(self, nest: Nest) -> None:
        self.nest = nest

    @cached_property
    def source(self) -> str:
        """The program as readable Python: the text that `run` executes."""
        return self._full[0]

    @cached_property
    def tile_source(self) -> str:
        """The program for one tile of the result, which `tiles` and ``run(tile=…)`` execute."""
        return self._tile[0]

    def run(
        self, *arrays: Array, tile: Sequence[int] | None = None, out: Array | None = None
    ) -> Array:
        """Execute the program on these inputs; the result may be a view of one of them.

        Args:
            arrays: one for each of the nest's inputs.
            tile: tile sizes, one for each dimension of the result.  The result is computed tile by
                tile; memory is bounded by the tile and the boxes of the stages that it needs.
            out: an array that receives the tiles, for example a ``np.memmap``.
        Returns:
            The result, or `out`.
        Raises:
            ValueError: the number of arrays, a shape or a type differs from the inputs; the tile
                has another rank than the result; or `out` has another shape or type.

        >>> import hlo, indexing
        >>> module = hlo.parse("ENTRY e { p = s32[4] parameter(0)  ROOT n = s32[4] negate(p) }")
        >>> program = indexing.loop_nest(module.entry).vectorized()
        >>> program.run(np.int32([1, 2, 3, 4]), tile=(2,)).tolist()
        [-1, -2, -3, -4]
        """
        if tile is None and out is None:
            parameters = self.nest.with_constants(arrays)
            with np.errstate(all="ignore"):
                full = np.asarray(self._full[1](*parameters))
            assert full.shape == self.nest.output.dims, (full.shape, self.source)
            return full.astype(self.nest.output.dtype, copy=False)
        dims = self.nest.output.dims
        result = np.empty(dims, self.nest.output.dtype) if out is None else out
        if result.shape != dims or result.dtype != self.nest.output.dtype:
            actual = f"{result.dtype.name}{list(result.shape)}"
            expected = f"{self.nest.output.dtype.name}{list(dims)}"
            raise ValueError(f"`out`: expected {expected}, got {actual}")
        grid = TileGrid.whole(dims) if tile is None else self._grid(tile)
        parameters = self.nest.with_constants(arrays)
        for index in grid.tiles():
            box = grid.slices(index)
            result[box] = self._block(box, parameters)
        return result

    def tiles(
        self, sizes: Sequence[int], *arrays: Array
    ) -> Iterator[tuple[tuple[slice, ...], Array]]:
        """Yield the tiles of the result, in row-major order, as slices with their elements.

        Tiles at the end of a dimension are smaller if the tile size does not divide its size.

        Args:
            sizes: tile sizes, one for each dimension of the result.
            arrays: one for each of the nest's inputs.
        Raises:
            ValueError: `sizes` is not one positive size for each dimension, or an array does not
                match the inputs.

        >>> import hlo, indexing
        >>> module = hlo.parse("ENTRY e { p = s32[3] parameter(0)  ROOT n = s32[3] negate(p) }")
        >>> program = indexing.loop_nest(module.entry).vectorized()
        >>> tiles = program.tiles((2,), np.int32([1, 2, 3]))
        >>> [(box[0].start, block.tolist()) for box, block in tiles]
        [(0, [-1, -2]), (2, [-3])]
        """
        grid, parameters = self._grid(sizes), self.nest.with_constants(arrays)
        for index in grid.tiles():
            box = grid.slices(index)
            yield box, self._block(box, parameters)

    def tile(self, sizes: Sequence[int], index: Sequence[int], *arrays: Array) -> Array:
        """Return the elements of one tile of the result, computed alone.

        The program uses no input element outside of the regions of ``nest.tiling(sizes)``.

        Args:
            sizes: tile sizes, one for each dimension of the result.
            index: the index of the tile, from 0, in each dimension.
            arrays: one for each of the nest's inputs.
        Raises:
            IndexError: the tile is outside of the grid.
            ValueError: `sizes` is not one positive size for each dimension, the number of indices
                is not the rank, or an array does not match the inputs.

        >>> import hlo, indexing
        >>> module = hlo.parse("ENTRY e { p = s32[3] parameter(0)  ROOT n = s32[3] negate(p) }")
        >>> program = indexing.loop_nest(module.entry).vectorized()
        >>> program.tile((2,), (1,), np.int32([1, 2, 3])).tolist()
        [-3]
        """
        box = self._grid(sizes).slices(integers("tile", "index", index))
        return self._block(box, self.nest.with_constants(arrays))

    def _block(self, box: tuple[slice, ...], parameters: Sequence[Array]) -> Array:
        """The elements of a box of the result."""
        boxes = self._boxes(tuple([(s.start, s.stop) for s in box]))
        with np.errstate(all="ignore"):
            return np.asarray(self._tile[1](*parameters, *boxes.values()))

    def tile_bytes(self, sizes: Sequence[int]) -> int:
        """Estimate the memory in bytes of one tile of these sizes, without the inputs.

        Each stage allocates its box; a reduction also allocates twice the values that it reduces.

        Args:
            sizes: tile sizes, one for each dimension of the result.
        Raises:
            ValueError: the tile does not match the result.
        """
        box = tuple([(0, size) for size in self._grid(sizes).largest])
        boxes = self._boxes(box)
        total = 0
        for stage in all_stages(self.nest.stages):
            own = boxes.get(stage) or tuple([(0, v.upper + 1) for v in stage.dims])
            elements = prod(high - low for low, high in own)
            for buffer in stage.buffers:
                total += elements * buffer.dtype.itemsize
            if isinstance(stage.body, Reduction) and not stage.body.is_product:
                iterations = point_count(stage.body.ranges)
                total += 2 * elements * iterations * stage.buffers[0].dtype.itemsize
        return total

    def _grid(self, sizes: Sequence[int]) -> TileGrid:
        """The tiles of the result; raise an error if the sizes do not match it."""
        given = integers("tile", "sizes", sizes)
        return TileGrid.check_sizes(self.nest.name, self.nest.output.dims, given)

    # ------------------------------------------------------------ the programs

    @cached_property
    def _full(self) -> tuple[str, Callable[..., Any]]:
        return self._program({})

    @cached_property
    def _tile(self) -> tuple[str, Callable[..., Any]]:
        stages = [stage for stage in self.nest.stages if isinstance(stage, Stage)]
        return self._program({stage: f"{stage.name}_box" for stage in stages})

    def _program(self, boxes: Mapping[Stage, str]) -> tuple[str, Callable[..., Any]]:
        """Return the source and its function; `boxes` names the box parameters of stages."""
        nest = self.nest
        taken = ["out", nest.name, *[buffer.name for buffer in nest.buffers]]
        source = SourceBuilder(functions_of(nest), taken)
        for function in source.defined_functions():
            define(source, source.function_name(function), function.body)
        state = WriterState(source, _unread(nest))
        parameters = [*[buffer.name for buffer in nest.parameters], *boxes.values()]
        with source.text.indent_below(f"def {nest.name}({', '.join(parameters)}):"):
            write_stages(state, nest.stages, boxes)
            source.text.delete(state.large - {nest.output.name})
            if not nest.stages:
                dims, kind = tuple_text(nest.output.dims), dtype_text(nest.output.dtype)
                source.text.add(f"out = np.empty({dims}, {kind})")
            source.text.add("return out")
        return source.execute(nest.name, "NumPy program of")

    # ------------------------------------------------------------ boxes of stages

    def _boxes(self, box: Box) -> dict[Stage, Box]:
        """Return the box of each stage that a box of the result depends on.

        A loop needs all elements of the arrays that it reads.
        """
        needed: dict[Buffer, Box] = {self.nest.output: box}
        boxes: dict[Stage, Box] = {}
        for stage in reversed(self.nest.stages):
            if isinstance(stage, Repeat):
                reads = [(each.buffer, _whole(each.buffer)) for each in stage.carried]
                reads += [(buffer, _whole(buffer)) for buffer in _read_in([stage])]
            else:
                read = [needed[buffer] for buffer in stage.buffers if buffer in needed]
                own = _hull(read) if read else _whole(stage.buffers[0])  # of an unused index
                boxes[stage] = own
                reads = list(_reads(stage, own))
            for buffer, part in reads:
                needed[buffer] = _hull([part, needed[buffer]] if buffer in needed else [part])
        return dict(reversed(boxes.items()))


def _unread(nest: Nest) -> frozenset[Buffer]:
    """Return the buffers of stages that no stage reads."""
    return frozenset(nest.buffers) - _read_in(nest.stages) - {nest.output}


def _read_in(stages: Iterable[Stage | Repeat]) -> set[Buffer]:
    """Return the buffers that stages read, and that loops carry or pass to the next iteration."""
    buffers: set[Buffer] = set()
    for stage in stages:
        if isinstance(stage, Repeat):
            buffers |= _read_in(stage.stages)
            count = topological_order([stage.count], with_cases)
            buffers.update([n.buffer for n in count if isinstance(n, BufferRead)])
            buffers.update([buffer for c in stage.carried for buffer in (c.buffer, c.following)])
        else:
            buffers.update([n.buffer for n in stage.nodes() if isinstance(n, BufferRead)])
    return buffers


def _whole(buffer: Buffer) -> Box:
    return tuple([(0, size) for size in buffer.dims])


def _hull(boxes: Sequence[Box]) -> Box:
    return tuple(
        [(min(a for a, _ in ends), max(b for _, b in ends)) for ends in zip(*boxes, strict=True)]
    )


def _reads(stage: Stage, box: Box) -> Iterator[tuple[Buffer, Box]]:
    """Yield the boxes that a box of a stage reads of other stages: the bounds of each index."""
    narrow = {
        d: Variable(d.name, low, high - 1).as_expr()
        for d, (low, high) in zip(stage.dims, box, strict=True)
    }
    swap = Substitution(narrow)
    for node in stage.nodes():
        if isinstance(node, BufferRead) and node.buffer.role == "stage":
            ends = []
            for e, size in zip(node.index, node.buffer.dims, strict=True):
                lower, upper = swap(e).bounds
                low = min(max(lower, 0), size - 1)
                ends.append((low, max(min(upper, size - 1), low) + 1))
            yield node.buffer, tuple(ends)

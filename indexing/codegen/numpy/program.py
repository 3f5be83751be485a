"""Loop nests as NumPy programs that run: all at once, or box by box."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import product, zip_longest
from math import prod
from typing import Any, TypeAlias

import numpy as np

from indexing.codegen.graph import (
    Array,
    Body,
    Buffer,
    BufferRead,
    Fold,
    Nest,
    Stage,
    in_order,
    with_cases,
)
from indexing.codegen.numpy import helpers
from indexing.codegen.numpy.block import WriterState, define
from indexing.codegen.numpy.spaces import Axis, Space
from indexing.codegen.numpy.writer import write_stage
from indexing.codegen.sources import SourceBuilder, functions_in, functions_of
from indexing.codegen.text import dtype_text, tuple_text
from simplifier.atoms import Variable
from simplifier.substitute import Substitution

Box: TypeAlias = tuple[tuple[int, int], ...]
"""For each dimension the first index, and the one after the last."""

_HELPERS = {
    "clamped": helpers.clamped,
    "contract": helpers.contract,
    "put": helpers.put,
    "window": helpers.window,
}


def function_on_arrays(name: str, body: Body) -> Callable[..., Any]:
    """A computation of scalars as a function of arrays, applied element by element."""
    functions = functions_in(in_order(body.results, with_cases))
    source = SourceBuilder(functions, [name], {})
    define(source, name, body)
    _, function = source.executed(name, "computation")
    (first, *_) = body.results
    function.picks_second = (
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
        """The program as Python that a person can read; `run` executes just this."""
        return self._whole[0]

    @cached_property
    def tile_source(self) -> str:
        """The program for one box of the result, which `tiles` and ``run(tile=…)`` execute."""
        return self._tile[0]

    def run(
        self, *arrays: Array, tile: Sequence[int] | None = None, out: Array | None = None
    ) -> Array:
        """The result for these inputs; it may be a view of one of them.

        Args:
            arrays: one for each of the nest's inputs.
            tile: sizes of a box: the result is computed box by box, so that memory is bounded by
                the box and by the boxes of the stages that it needs.
            out: where the boxes are stored, for instance a ``np.memmap``.
        Raises:
            ValueError: arrays or sizes do not fit.
        """
        if tile is None and out is None:
            given = self.nest.with_constants(arrays)
            with np.errstate(all="ignore"):
                found = np.asarray(self._whole[1](*given))
            assert found.shape == self.nest.output.dims, (found.shape, self.source)
            assert found.dtype == self.nest.output.dtype, (found.dtype, self.source)
            return found
        dims = self.nest.output.dims
        result = np.empty(dims, self.nest.output.dtype) if out is None else out
        if result.shape != dims or result.dtype != self.nest.output.dtype:
            raise ValueError(f"`out` is {result.dtype.name}{list(result.shape)}, not {list(dims)}")
        for box, block in self.tiles(tile or dims, *arrays):
            result[box] = block
        return result

    def tiles(
        self, sizes: Sequence[int], *arrays: Array
    ) -> Iterator[tuple[tuple[slice, ...], Array]]:
        """Every box of the result of these sizes, as slices, with its elements.

        Boxes at the end are smaller where the sizes do not divide those of the result.

        Raises:
            ValueError: `sizes` does not hold one positive size for each dimension.
        """
        dims = self.nest.output.dims
        if len(sizes) != len(dims) or any(size < 1 for size in sizes):
            raise ValueError(
                f"a tile of `{self.nest.name}` has {len(dims)} sizes of at least 1, one for each "
                f"dimension of {list(dims)}; given is {tuple(sizes)}"
            )
        given = self.nest.with_constants(arrays)
        if 0 in dims:
            return
        corners = product(*[range(0, n, size) for n, size in zip(dims, sizes, strict=True)])
        for corner in corners:
            box = tuple([(c, min(c + s, n)) for c, s, n in zip(corner, sizes, dims, strict=True)])
            with np.errstate(all="ignore"):
                block = self._tile[1](*given, *self._boxes(box))
            yield tuple([slice(*ends) for ends in box]), np.asarray(block)

    def tile_bytes(self, sizes: Sequence[int]) -> int:
        """Estimate the memory in bytes of one tile of these sizes, without the inputs.

        Each stage allocates its box; a reduction also allocates twice the values that it folds.
        """
        dims = self.nest.output.dims
        box = tuple([(0, min(size, n)) for size, n in zip(sizes, dims, strict=True)])
        total = 0
        for stage, own in zip(self.nest.stages, self._boxes(box), strict=True):
            elements = prod(high - low for low, high in own)
            for buffer in stage.buffers:
                total += elements * buffer.dtype.itemsize
            if isinstance(stage.body, Fold) and not stage.body.is_product:
                iterations = prod(v.upper - v.lower + 1 for v in stage.body.ranges)
                total += 2 * elements * iterations * stage.buffers[0].dtype.itemsize
        return total

    def held_bytes(self, sizes: Sequence[int]) -> int:
        """Call `tile_bytes`; a deprecated name."""
        message = "Vectorized.held_bytes is deprecated: use Vectorized.tile_bytes"
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        return self.tile_bytes(sizes)

    # ------------------------------------------------------------ the programs

    @cached_property
    def _whole(self) -> tuple[str, Callable[..., Any]]:
        return self._program([])

    @cached_property
    def _tile(self) -> tuple[str, Callable[..., Any]]:
        return self._program([f"{stage.name}_box" for stage in self.nest.stages])

    def _program(self, boxes: Sequence[str]) -> tuple[str, Callable[..., Any]]:
        """The source and its function; with `boxes`, which name the box of each stage, a tile."""
        nest = self.nest
        taken = ["out", nest.name, *[buffer.name for buffer in nest.buffers]]
        source = SourceBuilder(functions_of(nest), taken, _HELPERS)
        for function in source.composed():
            define(source, source.name(function), function.body)
        state = WriterState(source, _unread(nest))
        parameters = [*[buffer.name for buffer in nest.given], *boxes]
        with source.text.under(f"def {nest.name}({', '.join(parameters)}):"):
            for stage, name in zip_longest(nest.stages, boxes):
                write_stage(state, stage, _box_of(state, stage, name) if name else None)
            source.text.delete(state.large - {nest.output.name})
            if not nest.stages:
                dims, kind = tuple_text(nest.output.dims), dtype_text(nest.output.dtype)
                source.text.add(f"out = np.empty({dims}, {kind})")
            source.text.add("return out")
        return source.executed(nest.name, "NumPy program of")

    # ------------------------------------------------------------ boxes of stages

    def _boxes(self, box: Box) -> list[Box]:
        """For a box of the result, the box of each stage that it needs."""
        wanted: dict[Buffer, Box] = {self.nest.output: box}
        found: list[Box] = []
        for stage in reversed(self.nest.stages):
            own = _hull([wanted[b] for b in stage.buffers if b in wanted])
            found.append(own)
            for buffer, needed in _needs(stage, own):
                wanted[buffer] = _hull([needed, wanted[buffer]] if buffer in wanted else [needed])
        return found[::-1]


def _unread(nest: Nest) -> frozenset[Buffer]:
    """The buffers of stages that no stage reads."""
    nodes = [node for stage in nest.stages for node in stage.nodes()]
    read = {node.buffer for node in nodes if isinstance(node, BufferRead)}
    return frozenset(nest.buffers) - read - {nest.output}


def _box_of(state: WriterState, stage: Stage, name: str) -> Space:
    """The space of the box `name` of a stage; its arrays begin where the box does."""
    source, ends = state.source, []
    for k, n in enumerate(stage.buffers[0].dims):
        low = Variable(source.names.new(f"{stage.name}_lo{k}"), 0, n - 1)
        ends.append((low, Variable(source.names.new(f"{stage.name}_hi{k}"), 0, n)))
    if ends:
        pairs = tuple_text([f"({low.name}, {high.name})" for low, high in ends])
        source.text.add(f"{pairs[1:-1] if len(ends) > 1 else pairs} = {name}")
    for buffer in stage.buffers:
        state.origins[buffer] = tuple([low.as_expr() for low, _ in ends])
    bounds = zip(stage.dims, ends, strict=True)
    axes = [Axis(d, a.as_expr(), b.as_expr()) for d, (a, b) in bounds if d.lower < d.upper]
    return Space(tuple(axes))


def _hull(boxes: Sequence[Box]) -> Box:
    return tuple(
        [(min(a for a, _ in ends), max(b for _, b in ends)) for ends in zip(*boxes, strict=True)]
    )


def _needs(stage: Stage, box: Box) -> Iterator[tuple[Buffer, Box]]:
    """What a box of a stage reads of other stages: the bounds of each index."""
    narrow = {
        d: Variable(d.name, low, high - 1).as_expr()
        for d, (low, high) in zip(stage.dims, box, strict=True)
    }
    swap = Substitution(narrow)
    for node in stage.nodes():
        if isinstance(node, BufferRead) and node.buffer.origin == "stage":
            ends = []
            for e, size in zip(node.index, node.buffer.dims, strict=True):
                least, most = swap(e).bounds
                low = min(max(least, 0), size - 1)
                ends.append((low, max(min(most, size - 1), low) + 1))
            yield node.buffer, tuple(ends)

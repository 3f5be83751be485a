"""Chains of index maps, as composed tensor operations give them to a simplifier.

A `Chain` is a list of `Step`, consumers first.  A step has a formula, not an expression: the
formula applies to the expressions of any system and to NumPy arrays, so NumPy is the oracle
(`Chain.values`).  `Tensor` builds chains; `benchmarks.problems` has the measured chains.

>>> reading = Tensor((4, 6)).transpose(1, 0).reshape(3, 8).chain("example")
>>> rows, columns = reading.values([np.array([0, 2]), np.array([5, 7])])
>>> rows.tolist(), columns.tolist()
([1, 3], [1, 5])
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, reduce
from math import prod
from typing import Any, TypeAlias

import numpy as np

Index: TypeAlias = Sequence[Any]
Divide: TypeAlias = Callable[[Any, int], Any]
Bounds: TypeAlias = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Condition:
    """The constraint ``lower <= formula(index, divide) <= upper`` of an access."""

    formula: Callable[[Index, Divide], Any]
    lower: int
    upper: int


@dataclass(frozen=True, slots=True)
class Step:
    """One map, from an index within `bounds` to the index that it reads.

    The formula uses ``+ - *`` and ``%`` of the index's own type, and `divide` for floor division by
    a positive constant.
    """

    bounds: Bounds
    formula: Callable[[Index, Divide], list[Any]]
    conditions: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True)
class Chain:
    """Maps to compose, consumers first; `expected` is their composition, if known."""

    name: str
    steps: tuple[Step, ...]
    expected: Callable[[Index], list[Any]] | None = None

    @property
    def bounds(self) -> Bounds:
        """The box of the variables of the whole chain."""
        return self.steps[0].bounds

    def values(self, index: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Evaluate the chain step by step, at points that satisfy its conditions."""
        for step in self.steps:
            index = step.formula(index, operator.floordiv)
        return [np.broadcast_to(result, np.shape(index[0])) for result in index]

    def points(self, count: int, seed: int = 0) -> list[np.ndarray]:
        """Return points that satisfy all conditions: all of a small box, or random points."""
        sizes = [upper - lower + 1 for lower, upper in self.bounds]
        if prod(sizes) <= count:
            flat = np.indices(sizes).reshape(len(sizes), -1)
            index = [axis + lower for axis, (lower, _) in zip(flat, self.bounds, strict=True)]
        else:
            random = np.random.default_rng(seed)
            index = [random.integers(low, high, count, endpoint=True) for low, high in self.bounds]
        return [axis[self._inside(index)] for axis in index]

    def _inside(self, index: Sequence[np.ndarray]) -> np.ndarray:
        inside = np.ones(np.shape(index[0]), dtype=bool)
        for step in self.steps:
            for condition in step.conditions:
                value = condition.formula(index, operator.floordiv)
                inside &= (condition.lower <= value) & (value <= condition.upper)
            index = step.formula(index, operator.floordiv)
        return inside


# ---------------------------------------------------------------- linear positions


def box(shape: Iterable[int]) -> Bounds:
    """Return the bounds of an index of a tensor."""
    return tuple([(0, size - 1) for size in shape])


def strides(shape: Iterable[int]) -> tuple[int, ...]:
    """Return the row-major stride of each dimension."""
    return _strides(tuple(shape))


@cache  # called by formulas while they are timed
def _strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple([prod(shape[k + 1 :]) for k in range(len(shape))])


def position(index: Index, shape: Sequence[int]) -> Any:
    """Return the row-major position of `index`."""
    return reduce(operator.add, [i * s for i, s in zip(index, strides(shape), strict=True)])


def index_at(at: Any, shape: Sequence[int], divide: Divide, mod_first: bool = False) -> list[Any]:
    """Return the index at row-major position `at`, with mod after or before the division."""
    pairs = list(zip(shape, strides(shape), strict=True))
    major = divide(at, pairs[0][1])
    if mod_first:
        return [major, *[divide(at % (size * step), step) for size, step in pairs[1:]]]
    return [major, *[divide(at, step) % size for size, step in pairs[1:]]]


# ---------------------------------------------------------------- operations


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor, with the maps from its index back to the index of the original tensor."""

    shape: tuple[int, ...]
    steps: tuple[Step, ...] = ()

    def read_through(self, shape: Iterable[int], step: Step) -> Tensor:
        """Return a tensor of `shape` that reads this tensor by `step`."""
        return Tensor(tuple(shape), (step, *self.steps))

    def chain(self, name: str, expected: Callable[[Index], list[Any]] | None = None) -> Chain:
        """Return the chain of maps so far; the identity for a new tensor."""
        return Chain(name, self.steps or (Step(box(self.shape), lambda d, _: [*d]),), expected)

    def _reads(
        self,
        shape: Sequence[int],
        formula: Callable[[Index, Divide], list[Any]],
        *conditions: Condition,
    ) -> Tensor:
        return self.read_through(shape, Step(box(shape), formula, conditions))

    def reshape(self, *shape: int, mod_first: bool = False) -> Tensor:
        """Reshape in row-major order."""
        assert prod(shape) == prod(self.shape), f"{self.shape} and {shape} have different sizes"
        old = self.shape
        return self._reads(shape, lambda d, div: index_at(position(d, shape), old, div, mod_first))

    def transpose(self, *permutation: int) -> Tensor:
        """Permute: dimension k of the result is dimension ``permutation[k]``."""
        inverse = [permutation.index(k) for k in range(len(permutation))]
        shape = [self.shape[p] for p in permutation]
        return self._reads(shape, lambda d, _: [d[k] for k in inverse])

    def reverse(self, *dims: int) -> Tensor:
        """Reverse the order along `dims`."""
        old = self.shape
        return self._reads(
            old,
            lambda d, _: [
                n - 1 - i if k in dims else i for k, (i, n) in enumerate(zip(d, old, strict=True))
            ],
        )

    def slice(self, *cuts: tuple[int, int, int]) -> Tensor:
        """Slice by ``(start, stride, size)`` for each dimension."""
        shape = [size for _, _, size in cuts]
        return self._reads(
            shape,
            lambda d, _: [i * step + start for i, (start, step, _) in zip(d, cuts, strict=True)],
        )

    def pad(self, *edges: tuple[int, int, int]) -> Tensor:
        """Pad by ``(low, high, interior)`` for each dimension; the padding reads nothing."""
        spread = [
            (n - 1) * (interior + 1) for n, (_, _, interior) in zip(self.shape, edges, strict=True)
        ]
        shape = [low + s + 1 + high for s, (low, high, _) in zip(spread, edges, strict=True)]
        conditions = []
        for k, (low, high, interior) in enumerate(edges):
            if low or high:
                conditions.append(Condition(_shift(k, low), 0, spread[k]))
            if interior:
                conditions.append(Condition(_remainder(k, low, interior + 1), 0, 0))
        return self._reads(
            shape,
            lambda d, div: [
                div(i - low, inner + 1) if inner else i - low
                for i, (low, _, inner) in zip(d, edges, strict=True)
            ],
            *conditions,
        )

    def joined(self, dim: int, before: int, after: int) -> Tensor:
        """Concatenate along `dim`; only the part of this operand is read."""
        shape = [n + before + after if k == dim else n for k, n in enumerate(self.shape)]
        part = Condition(lambda d, _: d[dim], before, before + self.shape[dim] - 1)
        return self._reads(
            shape, lambda d, _: [i - before if k == dim else i for k, i in enumerate(d)], part
        )

    def broadcast(self, shape: Sequence[int], dims: Sequence[int]) -> Tensor:
        """Broadcast to `shape`: dimension k becomes dimension ``dims[k]``."""
        return self._reads(shape, lambda d, _: [d[k] for k in dims])

    def launch(self, threads: int, unroll: int, loops: int = 1, mod_first: bool = False) -> Tensor:
        """Read by a grid (block, thread, element, iteration) with as many blocks as needed."""
        shape, total = self.shape, prod(self.shape)
        blocks = -(-total // (threads * unroll * loops))
        grid = [blocks, threads, unroll, loops]

        def at(d: Index) -> Any:
            block, thread, element, iteration = d
            return position([iteration, block, thread, element], [loops, *grid[:3]])

        spare = prod(grid) != total
        inside = [Condition(lambda d, _: at(d), 0, total - 1)] if spare else []
        return self._reads(grid, lambda d, div: index_at(at(d), shape, div, mod_first), *inside)

    def in_memory(self, *tiles: tuple[int, ...]) -> Tensor:
        """Read by position in memory: each tiling in `tiles` divides the tiles of the previous."""
        shapes = tiled_shapes(self.shape, tiles)
        inside = [
            Condition(_coordinate(k, shapes, tiles), 0, size - 1)
            for k, size in enumerate(self.shape)
            if prod(shapes[-1]) != prod(self.shape)
        ]
        return self._reads(
            [prod(shapes[-1])], lambda d, div: _join_tiles(d[0], shapes, tiles, div), *inside
        )

    def from_memory(self, shape: Sequence[int], *tiles: tuple[int, ...]) -> Tensor:
        """Return the tensor of `shape` stored in this one-dimensional tensor, in tiles."""
        shapes = tiled_shapes(shape, tiles)
        assert self.shape == (prod(shapes[-1]),), f"{shape} needs {prod(shapes[-1])} positions"
        return self._reads(
            shape, lambda d, div: [position(_split_into_tiles(d, tiles, div), shapes[-1])]
        )


def _shift(k: int, low: int) -> Callable[[Index, Divide], Any]:
    return lambda d, _: d[k] - low


def _remainder(k: int, low: int, step: int) -> Callable[[Index, Divide], Any]:
    return lambda d, _: (d[k] - low) % step


def tiled_shapes(shape: Sequence[int], tiles: Sequence[tuple[int, ...]]) -> list[list[int]]:
    """Return the shape after zero, one, … tilings."""
    shapes = [list(shape)]
    for tile in tiles:
        kept = len(shapes[-1]) - len(tile)
        last = shapes[-1][kept:]
        grid = [-(-size // t) for size, t in zip(last, tile, strict=True)]
        shapes.append([*shapes[-1][:kept], *grid, *tile])
    return shapes


def _split_into_tiles(index: Index, tiles: Sequence[tuple[int, ...]], divide: Divide) -> list[Any]:
    tiled = list(index)
    for tile in tiles:
        kept = len(tiled) - len(tile)
        last = list(zip(tiled[kept:], tile, strict=True))
        tiled = [*tiled[:kept], *[divide(i, t) for i, t in last], *[i % t for i, t in last]]
    return tiled


def _join_tiles(
    at: Any, shapes: Sequence[list[int]], tiles: Sequence[tuple[int, ...]], divide: Divide
) -> list[Any]:
    index = index_at(at, shapes[-1], divide)
    for tile in reversed(tiles):
        rank = len(tile)
        kept = len(index) - 2 * rank
        grid, inner = index[kept : kept + rank], index[kept + rank :]
        index = [*index[:kept], *[g * t + i for g, t, i in zip(grid, tile, inner, strict=True)]]
    return index


def _coordinate(
    k: int, shapes: Sequence[list[int]], tiles: Sequence[tuple[int, ...]]
) -> Callable[[Index, Divide], Any]:
    return lambda d, divide: _join_tiles(d[0], shapes, tiles, divide)[k]

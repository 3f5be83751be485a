"""Chains of index maps: what a simplifier is given when tensor operations are composed.

A `Chain` is a list of `Step`, the consumer's first.  A step holds a formula, not an expression: the
formula can be applied to the expressions of any system, and to NumPy arrays, which makes NumPy the
oracle (`Chain.values`).  `Tensor` makes chains; `benchmarks.problems` are those that are measured.

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
    """``lower <= formula(index, divide) <= upper`` where something is read."""

    formula: Callable[[Index, Divide], Any]
    lower: int
    upper: int


@dataclass(frozen=True, slots=True)
class Step:
    """One map: from an index within `bounds` to the index that it reads.

    The formula uses ``+ - *`` and ``%`` of the index's own type, and `divide` for floor division by
    a positive constant.
    """

    bounds: Bounds
    formula: Callable[[Index, Divide], list[Any]]
    conditions: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True)
class Chain:
    """Maps to compose, the consumer's first; `wanted` is what they are together, where we know."""

    name: str
    steps: tuple[Step, ...]
    wanted: Callable[[Index], list[Any]] | None = None

    @property
    def bounds(self) -> Bounds:
        """The box of the variables of the whole chain."""
        return self.steps[0].bounds

    def values(self, index: Sequence[np.ndarray]) -> list[np.ndarray]:
        """What the chain reads at points that satisfy its conditions, computed step by step."""
        for step in self.steps:
            index = step.formula(index, operator.floordiv)
        return [np.broadcast_to(result, np.shape(index[0])) for result in index]

    def points(self, count: int, seed: int = 0) -> list[np.ndarray]:
        """Points that satisfy all conditions: the whole box if it is small, else random ones."""
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
    """The bounds of an index of a tensor."""
    return tuple([(0, size - 1) for size in shape])


def strides(shape: Iterable[int]) -> tuple[int, ...]:
    """How far apart neighbours along each dimension are, in row-major order."""
    return _strides(tuple(shape))


@cache  # formulas ask for them while they are timed
def _strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple([prod(shape[k + 1 :]) for k in range(len(shape))])


def position(index: Index, shape: Sequence[int]) -> Any:
    """The row-major position of `index`."""
    return reduce(operator.add, [i * s for i, s in zip(index, strides(shape), strict=True)])


def index_at(at: Any, shape: Sequence[int], divide: Divide, mod_first: bool = False) -> list[Any]:
    """The index with the row-major position `at`, in one of the two usual spellings."""
    pairs = list(zip(shape, strides(shape), strict=True))
    major = divide(at, pairs[0][1])
    if mod_first:
        return [major, *[divide(at % (size * step), step) for size, step in pairs[1:]]]
    return [major, *[divide(at, step) % size for size, step in pairs[1:]]]


# ---------------------------------------------------------------- operations


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor, with the maps that lead from its index back to that of the tensor it is made of."""

    shape: tuple[int, ...]
    steps: tuple[Step, ...] = ()

    def read_through(self, shape: Iterable[int], step: Step) -> Tensor:
        """A tensor of `shape` that reads this one by `step`."""
        return Tensor(tuple(shape), (step, *self.steps))

    def chain(self, name: str, wanted: Callable[[Index], list[Any]] | None = None) -> Chain:
        """The maps so far; of an untouched tensor the identity."""
        return Chain(name, self.steps or (Step(box(self.shape), lambda d, _: [*d]),), wanted)

    def _reads(
        self,
        shape: Sequence[int],
        formula: Callable[[Index, Divide], list[Any]],
        *conditions: Condition,
    ) -> Tensor:
        return self.read_through(shape, Step(box(shape), formula, conditions))

    def reshape(self, *shape: int, mod_first: bool = False) -> Tensor:
        """The same elements in row-major order."""
        assert prod(shape) == prod(self.shape), f"{self.shape} has not the size of {shape}"
        old = self.shape
        return self._reads(shape, lambda d, div: index_at(position(d, shape), old, div, mod_first))

    def transpose(self, *permutation: int) -> Tensor:
        """Dimension k of the result is dimension ``permutation[k]``."""
        place = [permutation.index(k) for k in range(len(permutation))]
        shape = [self.shape[p] for p in permutation]
        return self._reads(shape, lambda d, _: [d[k] for k in place])

    def reverse(self, *dims: int) -> Tensor:
        """The order along `dims` turned round."""
        old = self.shape
        return self._reads(
            old,
            lambda d, _: [
                n - 1 - i if k in dims else i for k, (i, n) in enumerate(zip(d, old, strict=True))
            ],
        )

    def slice(self, *cuts: tuple[int, int, int]) -> Tensor:
        """``(start, stride, size)`` for each dimension."""
        shape = [size for _, _, size in cuts]
        return self._reads(
            shape,
            lambda d, _: [i * step + start for i, (start, step, _) in zip(d, cuts, strict=True)],
        )

    def pad(self, *edges: tuple[int, int, int]) -> Tensor:
        """``(low, high, interior)`` for each dimension; the padding reads nothing."""
        spread = [
            (n - 1) * (interior + 1) for n, (_, _, interior) in zip(self.shape, edges, strict=True)
        ]
        shape = [low + s + 1 + high for s, (low, high, _) in zip(spread, edges, strict=True)]
        conditions = []
        for k, (low, high, interior) in enumerate(edges):
            if low or high:
                conditions.append(Condition(_shifted(k, low), 0, spread[k]))
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
        """A concatenation, of which only this operand's part is read."""
        shape = [n + before + after if k == dim else n for k, n in enumerate(self.shape)]
        part = Condition(lambda d, _: d[dim], before, before + self.shape[dim] - 1)
        return self._reads(
            shape, lambda d, _: [i - before if k == dim else i for k, i in enumerate(d)], part
        )

    def broadcast(self, shape: Sequence[int], dims: Sequence[int]) -> Tensor:
        """Dimension k becomes dimension ``dims[k]`` of `shape`."""
        return self._reads(shape, lambda d, _: [d[k] for k in dims])

    def launched(
        self, threads: int, unroll: int, loops: int = 1, mod_first: bool = False
    ) -> Tensor:
        """Read by a grid: (block, thread, element, iteration), as many blocks as are needed."""
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
        """Read by position in memory: `tiles` divide this tensor, then its tiles, and so on."""
        shapes = tiled_shapes(self.shape, tiles)
        inside = [
            Condition(_coordinate(k, shapes, tiles), 0, size - 1)
            for k, size in enumerate(self.shape)
            if prod(shapes[-1]) != prod(self.shape)
        ]
        return self._reads(
            [prod(shapes[-1])], lambda d, div: _untiled(d[0], shapes, tiles, div), *inside
        )

    def from_memory(self, shape: Sequence[int], *tiles: tuple[int, ...]) -> Tensor:
        """The tensor of `shape` whose elements lie in this one, in memory order, in tiles."""
        shapes = tiled_shapes(shape, tiles)
        assert self.shape == (prod(shapes[-1]),), f"{shape} takes {prod(shapes[-1])} positions"
        return self._reads(shape, lambda d, div: [position(_tiled(d, tiles, div), shapes[-1])])


def _shifted(k: int, low: int) -> Callable[[Index, Divide], Any]:
    return lambda d, _: d[k] - low


def _remainder(k: int, low: int, step: int) -> Callable[[Index, Divide], Any]:
    return lambda d, _: (d[k] - low) % step


def tiled_shapes(shape: Sequence[int], tiles: Sequence[tuple[int, ...]]) -> list[list[int]]:
    """The shape, and what each tiling in turn makes of it."""
    shapes = [list(shape)]
    for tile in tiles:
        kept = len(shapes[-1]) - len(tile)
        last = shapes[-1][kept:]
        grid = [-(-size // t) for size, t in zip(last, tile, strict=True)]
        shapes.append([*shapes[-1][:kept], *grid, *tile])
    return shapes


def _tiled(index: Index, tiles: Sequence[tuple[int, ...]], divide: Divide) -> list[Any]:
    found = list(index)
    for tile in tiles:
        kept = len(found) - len(tile)
        last = list(zip(found[kept:], tile, strict=True))
        found = [*found[:kept], *[divide(i, t) for i, t in last], *[i % t for i, t in last]]
    return found


def _untiled(
    at: Any, shapes: Sequence[list[int]], tiles: Sequence[tuple[int, ...]], divide: Divide
) -> list[Any]:
    found = index_at(at, shapes[-1], divide)
    for tile in reversed(tiles):
        rank = len(tile)
        kept = len(found) - 2 * rank
        grid, inner = found[kept : kept + rank], found[kept + rank :]
        found = [*found[:kept], *[g * t + i for g, t, i in zip(grid, tile, inner, strict=True)]]
    return found


def _coordinate(
    k: int, shapes: Sequence[list[int]], tiles: Sequence[tuple[int, ...]]
) -> Callable[[Index, Divide], Any]:
    return lambda d, divide: _untiled(d[0], shapes, tiles, divide)[k]

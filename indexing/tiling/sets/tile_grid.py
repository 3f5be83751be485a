"""`TileGrid`: the tiles of an array and their elements, in analyses and in programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod
from typing import Final

from simplifier.atoms import Variable
from simplifier.linear import Expr

_MAX_LISTED: Final = 1 << 16
"""Limit on the tiles along a dimension that are listed at once."""


@dataclass(frozen=True)
class TileGrid:
    """An array of these dimensions, cut into tiles of these sizes.

    Tile ``tid`` has the elements ``d_k = tid_k * sizes[k] + e`` with ``0 <= e < sizes[k]`` that are
    in the array.  A size may be larger than the dimension.

    >>> grid = TileGrid((10, 8), (4, 16))
    >>> grid.counts, grid.divides, grid.edge_tiles, grid.slices((2, 0))
    ((3, 1), (False, False), 3, (slice(8, 10, None), slice(0, 8, None)))
    """

    dims: tuple[int, ...]
    sizes: tuple[int, ...]

    @classmethod
    def check_sizes(cls, name: str, dims: Sequence[int], sizes: Sequence[int]) -> TileGrid:
        """Return the grid of the array `name`.

        Raises:
            ValueError: `sizes` has not one positive size for each dimension.

        >>> TileGrid.check_sizes("p", (10, 8), (4, 0))
        Traceback (most recent call last):
        ValueError: tile sizes are at least 1, got 0 for dimension 1 of `p`; the dimension has 8
        """
        if len(sizes) != len(dims):
            raise ValueError(
                f"a tile of `{name}` needs one size for each of the {len(dims)} dimensions of "
                f"{list(dims)}, got {len(sizes)}: {list(sizes)}; "
                f"for example {[min(n, 32) or 1 for n in dims]}"
            )
        for k, (n, size) in enumerate(zip(dims, sizes, strict=True)):
            if size < 1:
                raise ValueError(
                    f"tile sizes are at least 1, got {size} for dimension {k} of `{name}`; "
                    f"the dimension has {n}"
                )
        return cls(tuple(dims), tuple(sizes))

    @classmethod
    def whole(cls, dims: Sequence[int]) -> TileGrid:
        """Return the grid of one tile, or of none if the array has no elements.

        >>> TileGrid.whole((10, 0)).sizes
        (10, 1)
        """
        return cls(tuple(dims), tuple([max(n, 1) for n in dims]))

    @property
    def counts(self) -> tuple[int, ...]:
        """The number of tiles along each dimension."""
        return tuple([-(-n // size) for n, size in zip(self.dims, self.sizes, strict=True)])

    @property
    def divides(self) -> tuple[bool, ...]:
        """For each dimension, True if all tiles are whole."""
        return tuple([n % size == 0 for n, size in zip(self.dims, self.sizes, strict=True)])

    @property
    def edge_tiles(self) -> int:
        """The number of tiles that the array cuts off."""
        full = prod([n // size for n, size in zip(self.dims, self.sizes, strict=True)])
        return prod(self.counts) - full

    @property
    def largest(self) -> tuple[int, ...]:
        """The number of elements of the largest tile along each dimension."""
        return tuple(map(min, self.dims, self.sizes))

    def tiles(self) -> Iterator[tuple[int, ...]]:
        """Yield the index of each tile, in row-major order.

        >>> list(TileGrid((3, 4), (2, 3)).tiles())
        [(0, 0), (0, 1), (1, 0), (1, 1)]
        """
        if max(self.counts, default=0) < _MAX_LISTED:
            yield from product(*map(range, self.counts))
        elif 0 not in self.counts:  # `product` lists each range, also if another one is empty
            yield from _lazy_product(self.counts)

    def slices(self, index: Sequence[int]) -> tuple[slice, ...]:
        """Return the elements of one tile, as slices of the array.

        Raises:
            IndexError: the tile is outside of the grid.
            ValueError: the number of indices is not the rank.
        """
        if len(index) != len(self.dims):
            raise ValueError(
                f"a tile has one index for each of the {len(self.dims)} dimensions of "
                f"{list(self.dims)}, got {len(index)}"
            )
        for k, (at, count) in enumerate(zip(index, self.counts, strict=True)):
            if not 0 <= at < count:
                raise IndexError(f"tid_{k} = {at} is outside [0, {count - 1}]")
        both = zip(index, self.dims, self.sizes, strict=True)
        return tuple([slice(i * size, min((i + 1) * size, n)) for i, n, size in both])

    @cached_property
    def tile_index(self) -> tuple[Variable, ...]:
        """The variables ``tid_0, tid_1, …``."""
        return tuple([Variable(f"tid_{k}", 0, n - 1) for k, n in enumerate(self.counts)])

    @cached_property
    def inner(self) -> tuple[Variable, ...]:
        """The variables ``e_0, e_1, …``, the index of an element inside of a tile."""
        return tuple([Variable(f"e_{k}", 0, size - 1) for k, size in enumerate(self.largest)])

    @cached_property
    def index(self) -> tuple[Expr, ...]:
        """The index of an element of the array, by tile index and index inside of the tile."""
        parts = zip(self.tile_index, self.inner, self.sizes, strict=True)
        return tuple([tid * size + e for tid, e, size in parts])


def _lazy_product(counts: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Yield all indices below `counts` in row-major order, without lists of them.

    >>> list(_lazy_product((2, 1, 2)))
    [(0, 0, 0), (0, 0, 1), (1, 0, 0), (1, 0, 1)]
    """
    if not counts:
        yield ()
        return
    for first in range(counts[0]):
        for rest in _lazy_product(counts[1:]):
            yield first, *rest

"""Tile sizes to try: an enumeration for each dimension, and the order of refinement between them.

>>> [sizes for sizes in TileSizes.of((3, 2))]
[(1, 1), (1, 2), (2, 1), (2, 2), (3, 1), (3, 2)]

A tiling by `inner` **refines** one by `outer` if each tile of `inner` lies in one tile of `outer`.
In each dimension, of size n, that holds if the outer size is a multiple of the inner size, or at
least n.  Then every tile of `inner` reads a part of what its tile of `outer` reads, so all tiles of
`inner` together read at least as many bytes, and no tile of `inner` needs more memory.  The search
of `indexing.tiling.search.candidates` prunes by these two facts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import isqrt, prod
from typing import Final, Literal, TypeAlias, get_args

from indexing.tiling.sets.tile_grid import TileGrid

SizeChoice: TypeAlias = Literal["powers", "divisors", "xla", "all"]
"""An enumeration of the tile sizes of a dimension of size n: ``powers``: the powers of two below n,
and n; ``divisors``: those, and the divisors of n; ``xla``: the enumeration of XLA; ``all``: 1 to
n."""

_CHOICES: Final = get_args(SizeChoice)


def dimension_sizes(size: int, choice: SizeChoice) -> tuple[int, ...]:
    """Return the tile sizes to try in one dimension, in ascending order.

    An empty dimension has the one tile size 1; XLA has 0 for it.

    Raises:
        ValueError: the size is negative.
    Source: XLA ``xla/codegen/tiling/symbolic_tile_analysis.cc``,
        ``PossibleTileSizesForOneDimension``, for ``xla``.

    >>> dimension_sizes(12, "powers"), dimension_sizes(12, "divisors")
    ((1, 2, 4, 8, 12), (1, 2, 3, 4, 6, 8, 12))
    >>> dimension_sizes(0, "powers"), dimension_sizes(0, "xla")
    ((1,), (0,))
    """
    if size < 0:
        raise ValueError(f"a dimension of size {size}: expected at least 0")
    if size == 0:
        return (0,) if choice == "xla" else (1,)
    if choice == "all":
        return tuple(range(1, size + 1))
    powers = [1 << k for k in range((size - 1).bit_length())]
    if choice == "divisors":
        small = [k for k in range(1, isqrt(size) + 1) if size % k == 0]
        powers += [*small, *[size // k for k in small]]
    return tuple(sorted({*powers, size}))


@dataclass(frozen=True, slots=True)
class TileSizes:
    """The product of the tile sizes to try in each dimension of an array.

    Attributes:
        dims: sizes of the array.
        choices: for each dimension, the tile sizes to try, ascending and distinct.
    """

    dims: tuple[int, ...]
    choices: tuple[tuple[int, ...], ...]

    @classmethod
    def of(
        cls, dims: Sequence[int], sizes: SizeChoice | Sequence[Sequence[int]] = "powers"
    ) -> TileSizes:
        """Return the tile sizes to try for an array.

        Args:
            dims: sizes of the array.
            sizes: an enumeration by name, or the tile sizes for each dimension.
        Raises:
            ValueError: another enumeration is named, `sizes` has not one entry for each dimension,
                or a tile size is not positive.

        >>> TileSizes.of((8, 5), [[4], [1, 5]]).choices
        ((4,), (1, 5))
        """
        if isinstance(sizes, str):
            if sizes not in _CHOICES:
                raise ValueError(f"sizes={sizes!r}: expected one of {', '.join(_CHOICES)}")
            return cls(tuple(dims), tuple([dimension_sizes(size, sizes) for size in dims]))
        if len(sizes) != len(dims):
            raise ValueError(
                f"sizes={list(map(list, sizes))}: expected a list of tile sizes for each of the "
                f"{len(dims)} dimensions, not {len(sizes)}"
            )
        for k, own in enumerate(sizes):
            if not own or min(own) < 1:
                raise ValueError(
                    f"sizes[{k}]={list(own)}: expected one or more tile sizes, each at least 1"
                )
        return cls(tuple(dims), tuple([tuple(sorted(set(own))) for own in sizes]))

    def __len__(self) -> int:
        return prod(map(len, self.choices))

    def __iter__(self) -> Iterator[tuple[int, ...]]:
        """Yield the tile sizes, the last dimension varying fastest, as XLA enumerates them."""
        return product(*self.choices)

    def grid(self, sizes: Sequence[int]) -> TileGrid:
        """Return the tiles of these sizes; a size of 0, of an empty dimension, counts as 1.

        >>> TileSizes.of((10, 4)).grid((4, 2)).counts
        (3, 2)
        """
        return TileGrid(self.dims, tuple([max(1, size) for size in sizes]))

    def coarsest(self) -> Iterator[tuple[int, ...]]:
        """Yield the tile sizes that refine no others.

        >>> list(TileSizes.of((8, 5)).coarsest()), list(TileSizes.of((9,), [[4, 6]]).coarsest())
        ([(8, 5)], [(4,), (6,)])
        """
        return product(*[_maximal(own, n) for own, n in zip(self.choices, self.dims, strict=True)])

    def finer(self, sizes: Sequence[int]) -> Iterator[tuple[int, ...]]:
        """Yield the next tile sizes that refine `sizes`, smaller in one dimension.

        >>> list(TileSizes.of((8, 5)).finer((4, 5)))
        [(2, 5), (4, 4)]
        """
        for k, (own, n) in enumerate(zip(self.choices, self.dims, strict=True)):
            for size in _finer(own, sizes[k], n):
                yield (*sizes[:k], size, *sizes[k + 1 :])

    def thin(self, limit: int) -> TileSizes:
        """Return about `limit` tile sizes at most.

        Every other size is left out of the dimension with the most sizes, until the limit holds.
        The smallest and the largest size of each dimension remain.

        >>> TileSizes.of((64, 8)).thin(16).choices
        ((1, 4, 16, 64), (1, 2, 4, 8))
        """
        choices = list(self.choices)
        while prod(map(len, choices)) > limit:
            k = max(range(len(choices)), key=lambda k: len(choices[k]))
            own = choices[k]
            if len(own) <= 2:
                break
            choices[k] = tuple(dict.fromkeys((*own[:-1:2], own[-1])))
        return TileSizes(self.dims, tuple(choices))

    def refines(self, inner: Sequence[int], outer: Sequence[int]) -> bool:
        """True if each tile of `inner` lies in one tile of `outer`.

        >>> sizes = TileSizes.of((8, 5))
        >>> sizes.refines((2, 4), (4, 5)), sizes.refines((2, 2), (4, 3))
        (True, False)
        """
        return all(map(_refines, inner, outer, self.dims))


def _refines(inner: int, outer: int, size: int) -> bool:
    return outer >= size or (inner > 0 and outer % inner == 0)


@lru_cache(maxsize=1 << 11)
def _finer(own: tuple[int, ...], outer: int, size: int) -> tuple[int, ...]:
    smaller = [s for s in own if s < outer and _refines(s, outer, size)]
    return tuple(_maximal(smaller, size))


def _maximal(sizes: Sequence[int], size: int) -> list[int]:
    """Return those of `sizes` that refine no larger one of `sizes`."""
    return [s for s in sizes if not any(s < other and _refines(s, other, size) for other in sizes)]

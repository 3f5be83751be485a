"""Best-first search over tile sizes.

`best_first` visits tile sizes from coarse to fine.  If `inner` refines `outer` (see
`indexing.tiling.search.candidate_sizes`), its value is not smaller; so the value of a tiling bounds
the values of all its refinements, and the search builds only tilings whose bound is at most the
value of the last one that it returns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from heapq import heappop, heappush
from math import prod
from typing import Generic, TypeVar

from indexing.tiling.search.candidate_sizes import TileSizes

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Evaluated(Generic[T]):
    """One tiling that the search has built.

    Attributes:
        item: the tiling; `None` if it is not valid.
        value: the value to minimise.
        bound: a lower bound on the values of all its refinements.
    """

    item: T | None
    value: int
    bound: int


@dataclass(frozen=True, slots=True)
class SearchResult(Generic[T]):
    """The best tilings, in order.

    Attributes:
        items: the tilings with their values, the best first.
        built: number of tilings that were built.
        is_complete: False if the budget ended the search: better tilings may exist.
    """

    items: tuple[tuple[int, T], ...]
    built: int
    is_complete: bool


def best_first(
    sizes: TileSizes,
    is_refused: Callable[[tuple[int, ...]], bool],
    evaluate: Callable[[tuple[int, ...]], Evaluated[T]],
    top: int,
    budget: int,
    floor: int = 0,
) -> SearchResult[T]:
    """Return the tilings of the smallest values.

    Ties are broken by the number of tiles, fewest first, and then by the larger size in the last
    dimensions.

    Args:
        sizes: the tile sizes to try.
        is_refused: a test of tile sizes that needs no tiling.
        evaluate: builds a tiling.
        top: number of tilings to return.
        budget: maximum number of tilings to build.
        floor: a lower bound on all values.

    >>> sizes = TileSizes.of((8, 8))
    >>> rows = lambda s: Evaluated(s, 64 // s[0], 64 // s[0])
    >>> best_first(sizes, lambda s: s[0] > 4, rows, top=2, budget=100)
    SearchResult(items=((16, (4, 8)), (16, (4, 4))), built=4, is_complete=True)
    """

    def key(own: tuple[int, ...], bound: int) -> tuple[int, int, tuple[int, ...]]:
        return bound, prod(sizes.grid(own).counts), tuple([-s for s in reversed(own)])

    heap: list[tuple[tuple[int, int, tuple[int, ...]], int, tuple[int, ...]]] = []
    seen: set[tuple[int, ...]] = set()
    valid: dict[tuple[int, ...], tuple[int, T]] = {}

    def push(own: tuple[int, ...], bound: int) -> None:
        if own not in seen:
            seen.add(own)
            heappush(heap, (key(own, bound), 1, own))

    for own in sizes.coarsest():
        push(own, floor)
    best: list[tuple[int, T]] = []
    built = 0
    while heap and len(best) < top:
        (bound, *_), is_new, own = heappop(heap)
        if not is_new:
            best.append(valid[own])
            continue
        if not is_refused(own):
            if built == budget:
                return SearchResult(tuple(_rest(best, heap, valid, top)), built, False)
            built += 1
            evaluated = evaluate(own)
            bound = max(bound, evaluated.bound)
            if evaluated.item is not None:
                valid[own] = evaluated.value, evaluated.item
                heappush(heap, (key(own, evaluated.value), 0, own))
        for finer in sizes.finer(own):
            push(finer, bound)
    return SearchResult(tuple(best), built, True)


def _rest(
    best: list[tuple[int, T]],
    heap: list[tuple[tuple[int, int, tuple[int, ...]], int, tuple[int, ...]]],
    valid: dict[tuple[int, ...], tuple[int, T]],
    top: int,
) -> list[tuple[int, T]]:
    """Complete the best tilings by those that are built, although better ones may exist."""
    rest = [valid[own] for _, is_new, own in sorted(heap) if not is_new]
    return (best + rest)[:top]

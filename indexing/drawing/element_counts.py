"""Counts of the elements of an array, which pictures show in bins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, product
from math import prod
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from indexing.maps.regions.boxes import Box, Progression
from indexing.maps.regions.region import Region
from simplifier.unknown import Unknown

if TYPE_CHECKING:
    from numpy.typing import NDArray


class ElementCounts(Protocol):
    """A number for each element of an array: how often it is read, or 1 for one of a region."""

    def bounds(self, dim: int) -> tuple[int, int] | None:
        """Return the smallest and largest index with a number above 0; None without any."""

    def slices(self, dims: Sequence[int], limit: int) -> tuple[list[tuple[int, ...]], int]:
        """Return the first indices along `dims` with a number above 0, and their number."""

    def bin_sums(
        self, fixed: Mapping[int, int], dims: Sequence[int], edges: Sequence[Sequence[int]]
    ) -> NDArray[Any]:
        """Return the sums over bins along `dims`; the other indices are `fixed`."""


@dataclass(frozen=True)
class ListedCounts:
    """The numbers of elements that are listed; those of others are 0.

    Attributes:
        elements: an array ``(count, rank)`` of distinct elements, in lexicographic order.
        numbers: their numbers, above 0.
    """

    elements: NDArray[Any]
    numbers: NDArray[Any]

    @classmethod
    def of_array(cls, counts: NDArray[Any]) -> ListedCounts:
        """Return the numbers above 0 of an array with a number for each element."""
        elements = np.argwhere(counts > 0)
        return cls(elements, counts[counts > 0].reshape(-1))

    def bounds(self, dim: int) -> tuple[int, int] | None:
        """Return the smallest and largest index with a number above 0; None without any."""
        if not len(self.elements):
            return None
        return int(self.elements[:, dim].min()), int(self.elements[:, dim].max())

    def slices(self, dims: Sequence[int], limit: int) -> tuple[list[tuple[int, ...]], int]:
        """Return the first indices along `dims` with a number above 0, and their number."""
        rows = np.unique(self.elements[:, list(dims)], axis=0)
        return [tuple(map(int, row)) for row in rows[:limit]], len(rows)

    def bin_sums(
        self, fixed: Mapping[int, int], dims: Sequence[int], edges: Sequence[Sequence[int]]
    ) -> NDArray[Any]:
        """Return the sums over bins along `dims`; the other indices are `fixed`."""
        kept = np.ones(len(self.elements), bool)
        for dim, at in fixed.items():
            kept &= self.elements[:, dim] == at
        for dim, own in zip(dims, edges, strict=True):
            kept &= (self.elements[:, dim] >= own[0]) & (self.elements[:, dim] < own[-1])
        if not dims:
            return np.array(self.numbers[kept].sum())
        result = np.zeros([len(own) - 1 for own in edges], self.numbers.dtype)
        places = tuple(
            np.searchsorted(np.asarray(own), self.elements[kept, dim], side="right") - 1
            for dim, own in zip(dims, edges, strict=True)
        )
        np.add.at(result, places, self.numbers[kept])
        return result


@dataclass(frozen=True)
class BoxCounts:
    """The number 1 for each element of disjoint boxes, which may have any size."""

    boxes: tuple[Box, ...]

    @cached_property
    def _sides(self) -> list[tuple[Progression, ...]]:
        return [box.progressions for box in self.boxes]

    def bounds(self, dim: int) -> tuple[int, int] | None:
        """Return the smallest and largest index with a number above 0; None without any."""
        sides = [own[dim] for own in self._sides]
        if not sides:
            return None
        return min(side.offset for side in sides), max(side.last for side in sides)

    def slices(self, dims: Sequence[int], limit: int) -> tuple[list[tuple[int, ...]], int]:
        """Return the first indices along `dims` with a number above 0, and their number."""
        first: set[tuple[int, ...]] = set()
        for own in self._sides:
            spans = [range(own[k].offset, own[k].last + 1, own[k].stride) for k in dims]
            first |= set(islice(product(*spans), limit))
        projected = [Box.of([own[k] for k in dims]) for own in self._sides]
        total = Region.of_boxes(projected, rank=len(dims)).count()
        return sorted(first)[:limit], len(first) if isinstance(total, Unknown) else total

    def bin_sums(
        self, fixed: Mapping[int, int], dims: Sequence[int], edges: Sequence[Sequence[int]]
    ) -> NDArray[Any]:
        """Return the sums over bins along `dims`; the other indices are `fixed`."""
        size = prod(own[-1] - own[0] for own in edges)
        result = np.zeros([len(own) - 1 for own in edges], object if size >> 62 else np.int64)
        for own in self._sides:
            if all(at in own[dim] for dim, at in fixed.items()):
                term = np.ones((), result.dtype)
                for dim, cuts in zip(dims, edges, strict=True):
                    below = [_count_below(own[dim], cut) for cut in cuts]
                    term = np.multiply.outer(term, np.diff(np.array(below, result.dtype)))
                result += term
        return result


def _count_below(side: Progression, bound: int) -> int:
    """Return the number of integers of a progression below a bound."""
    if bound <= side.offset:
        return 0
    return min((bound - 1 - side.offset) // side.stride + 1, side.size)


def region_counts(region: Region) -> ElementCounts | Unknown:
    """Return 1 for each element of a region; `Unknown` if it has too many, and is no few boxes.

    >>> counts = region_counts(Region.of_boxes([Box((0, 1), (9, 3), (1, 2))], rank=2))
    >>> counts.bin_sums({}, (0, 1), ((0, 8, 16), (0, 4, 8))).tolist()
    [[16, 8], [2, 1]]
    """
    boxes = region.boxes()
    if boxes is not None:
        return BoxCounts(boxes)
    elements = region.elements()
    if isinstance(elements, Unknown):
        return elements
    return ListedCounts(elements, np.ones(len(elements), np.int64))

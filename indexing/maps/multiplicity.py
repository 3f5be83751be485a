"""Read counts: the number of domain points that read each element.

A map reads an element once for each value of its dimensions and range variables that it maps to the
element.  `simplify` drops range variables on which nothing depends, and changes the counts: use
maps simplified with ``keep_multiplicity=True``.

Counts are exact.  Results without common variables count independently, and their counts multiply.
The counts of affine parts have a closed form (`indexing.maps.counts`); other parts are enumerated,
or beyond the enumeration budget counted if they are injective
(`indexing.maps.properties.is_injective`).

>>> from indexing.maps.text import parse_map
>>> window = parse_map("(d0, d1)[s0] -> (d0 + s0, d1), domain: d0 in [0, 3], d1 in [0, 999], "
...                    "s0 in [0, 1]")
>>> reads = multiplicity(window)
>>> reads.total, reads.distinct, reads.maximum, reads.histogram()
(8000, 5000, 2, {1: 2000, 2: 3000})
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from hlo.arguments import checked
from indexing.maps.counting import Counted, beyond_budget
from indexing.maps.counts.queries import are_apart
from indexing.maps.counts.tally import MAX_READ_COUNTS, Tally, disjoint
from indexing.maps.displayed import Displayed
from indexing.maps.given_values import unknown_count
from indexing.maps.indexing_map import Extents, Grade, IndexingMap, dims
from indexing.maps.relation import MapOrMaps, as_maps, check_spaces
from simplifier.unknown import Unknown

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


class Multiplicity(Displayed):
    """The read counts of the elements that some maps reach.

    For maps with the grade "may" the counts are upper bounds of those of the program.

    Attributes:
        maps: the maps; an element's counts by several maps are added.
        grade: "may" if a map has the grade "may", else "exact".

    >>> half = IndexingMap.over((7,), lambda d: [d[0] // 2])
    >>> reads = multiplicity(half)
    >>> reads.total, reads.distinct, reads.maximum, reads.at((3,)), reads.histogram()
    (7, 4, 2, 1, {1: 1, 2: 3})
    """

    def __init__(self, maps: tuple[IndexingMap, ...], counted: Sequence[Counted]) -> None:
        self.maps = maps
        self.grade: Grade = "may" if any(m.grade == "may" for m in maps) else "exact"
        self._counted = counted

    def __repr__(self) -> str:
        total = "unknown" if isinstance(self.total, Unknown) else self.total
        noun = "map" if len(self.maps) == 1 else "maps"
        return f"<multiplicity of {len(self.maps)} {noun}: {total} reads>"

    @property
    def total(self) -> int | Unknown:
        """Number of reads of all elements together."""
        return _sum([counted.total for counted in self._counted])

    @property
    def distinct(self) -> int | Unknown:
        """Number of distinct elements that are read."""
        tally = self._tally
        return tally if isinstance(tally, Unknown) else tally.distinct

    @property
    def maximum(self) -> int | Unknown:
        """The largest read count of an element; 0 if nothing is read."""
        tally = self._tally
        return tally if isinstance(tally, Unknown) else tally.maximum

    @checked
    def at(self, element: Sequence[int]) -> int | Unknown:
        """Return the read count of `element`; `Unknown` if it depends on a missing value.

        >>> pairs = multiplicity(IndexingMap.over((4,), lambda d, s: [d[0] + s[0]], ranges=(2,)))
        >>> pairs.at((0,)), pairs.at((1,)), pairs.at((9,))  # no point reads element 9
        (1, 2, 0)
        """
        for counted in self._counted:
            if counted.translated_by:
                return unknown_count(counted.translated_by, tuple(element))
        return _sum([counted.at(element) for counted in self._counted])

    def histogram(self) -> dict[int, int] | Unknown:
        """Return the number of elements for each read count above 0.

        >>> pairs = multiplicity(IndexingMap.over((4,), lambda d, s: [d[0] + s[0]], ranges=(2,)))
        >>> pairs.histogram()  # elements 0 and 4 are read once, 1 to 3 twice
        {1: 2, 2: 3}
        """
        tally = self._tally
        if isinstance(tally, Unknown):
            return tally
        if tally.histogram is None:
            return Unknown(f"the elements have more than {MAX_READ_COUNTS} different read counts")
        return dict(sorted(tally.histogram.items()))

    @cached_property
    def _tally(self) -> Tally | Unknown:
        """The read counts of all elements together."""
        groups: list[list[tuple[IndexingMap, Counted]]] = []
        for m, counted in zip(self.maps, self._counted, strict=True):
            total = counted.total
            if isinstance(total, Unknown):
                return total
            if not total:
                continue
            near = [g for g in groups if any(not are_apart(m, other) for other, _ in g)]
            groups = [group for group in groups if group not in near]
            groups.append([*[pair for group in near for pair in group], (m, counted)])
        tallies: list[Tally] = []
        for group in groups:
            every = [counted for _, counted in group]
            own = every[0].tally if len(every) == 1 else self._together(every)
            if isinstance(own, Unknown):
                return own
            tallies.append(own)
        return disjoint(tallies)

    @checked
    def counts(self, extents: Extents) -> NDArray[Any] | Unknown:
        """Return the read count of each element of an array of these sizes.

        Args:
            extents: the shape of the array, or its sizes: one size for each result of the maps.
        Returns:
            An array of these sizes, with 64-bit integers, or with Python integers if counts may
            overflow; `Unknown` if the array exceeds the enumeration budget, or if `at` is unknown.
        Raises:
            ValueError: the number of sizes is not the number of results.

        >>> half = IndexingMap.over((7,), lambda d: [d[0] // 2])
        >>> multiplicity(half).counts((5,))  # of 5 elements, the last one is not read
        array([2, 2, 2, 1, 0])
        """
        box = dims(extents)
        check_spaces(self.maps, len(self.maps[0].dims) if self.maps else None, len(box))
        sizes = tuple([v.upper + 1 for v in box])
        beyond = beyond_budget(prod(sizes), f"an array of {sizes}")
        return (
            self._add_counts(self._counted, sizes, [0] * len(sizes)) if beyond is None else beyond
        )

    def _together(self, every: Sequence[Counted]) -> Tally | Unknown:
        """The read counts of several maps, added element by element."""
        bounds = [counted.bounds() for counted in every]
        lower = [min(b[k][0] for b in bounds) for k in range(len(bounds[0]))]
        upper = [max(b[k][1] for b in bounds) for k in range(len(bounds[0]))]
        sizes = tuple([high - low + 1 for low, high in zip(lower, upper, strict=True)])
        beyond = beyond_budget(prod(sizes), f"a box of {sizes} that several maps read from")
        counts = self._add_counts(every, sizes, lower) if beyond is None else beyond
        if isinstance(counts, Unknown):
            return counts
        return Tally.of(Counter(counts[counts > 0].ravel().tolist()))

    def _add_counts(
        self, every: Sequence[Counted], sizes: Sequence[int], origin: Sequence[int]
    ) -> NDArray[Any] | Unknown:
        """The counts of the elements of a box whose first element is `origin`."""
        total = self.total
        if isinstance(total, Unknown):
            return total
        counts: NDArray[Any] = np.zeros(sizes, np.int64 if total < 1 << 62 else object)
        for counted in every:
            if counted.translated_by:
                return unknown_count(counted.translated_by)
            failure = counted.add_to(counts, origin)
            if failure is not None:
                return failure
        return counts


def _sum(terms: Sequence[int | Unknown]) -> int | Unknown:
    total = 0
    for term in terms:
        if isinstance(term, Unknown):
            return term
        total += term
    return total


@checked
def multiplicity(
    maps: MapOrMaps, values: Mapping[str, ArrayLike] | None = None
) -> Multiplicity | Unknown:
    """Count the reads of each element by one map or several.

    Args:
        values: values of the runtime variables: arrays by the name of their source, or numbers by
            the name of the variable. They are clamped as the operation clamps them.
    Returns:
        The counts; `Unknown` if they depend on a missing value. A start index that only translates
        the reads may be missing.
    Raises:
        ValueError: the maps have different numbers of dimensions or results, or a value has another
            rank or shape than its source.

    >>> from indexing.maps.text import parse_map
    >>> pairs = parse_map("(d0, d1) -> (d0 + d1), domain: d0 in [0, 2], d1 in [0, 2]")
    >>> multiplicity(pairs).counts((5,)).tolist()
    [1, 2, 3, 2, 1]
    """
    maps = as_maps(maps)
    check_spaces(maps)
    every: list[Counted] = []
    for m in maps:
        counted = Counted.of(m, values or {})
        if isinstance(counted, Unknown):
            return counted
        every.append(counted)
    return Multiplicity(maps, every)

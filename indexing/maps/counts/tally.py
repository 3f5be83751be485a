"""`Tally`: how many results are reached by how many points."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Final

MAX_READ_COUNTS: Final = 1 << 16
"""Maximum number of different read counts of one tally."""


@dataclass(frozen=True, slots=True)
class Tally:
    """The read counts of the results of a map.

    Attributes:
        total: number of points.
        distinct: number of results.
        maximum: largest number of points with the same result.
        histogram: number of results for each number of points above 0; `None` if the numbers of
            points differ more than `MAX_READ_COUNTS` times.
    """

    total: int
    distinct: int
    maximum: int
    histogram: Mapping[int, int] | None

    @classmethod
    def of(cls, histogram: Mapping[int, int]) -> Tally:
        """Return the tally with a histogram.

        >>> Tally.of({1: 2000, 2: 3000}).total
        8000
        """
        total = sum(times * count for times, count in histogram.items())
        distinct = sum(histogram.values())
        short = histogram if len(histogram) <= MAX_READ_COUNTS else None
        return cls(total, distinct, max(histogram, default=0), short)


EMPTY: Final = Tally.of({})


def uniform(times: int, count: int = 1) -> Tally:
    """Return the tally of `count` results, each of `times` points.

    >>> uniform(3, 5)
    Tally(total=15, distinct=5, maximum=3, histogram={3: 5})
    """
    return Tally.of({times: count}) if times and count else EMPTY


def independent(tallies: Iterable[Tally]) -> Tally:
    """Return the tally of results whose parts share no variables: read counts multiply.

    >>> independent([uniform(3, 5), Tally.of({1: 2, 2: 1})]).histogram
    {3: 10, 6: 5}
    """
    parts = list(tallies)
    if len(parts) == 1:
        return parts[0]
    return Tally(
        prod([part.total for part in parts]),
        prod([part.distinct for part in parts]),
        prod([part.maximum for part in parts]),
        _product_of([part.histogram for part in parts]),
    )


def _product_of(histograms: Iterable[Mapping[int, int] | None]) -> Mapping[int, int] | None:
    counts = {1: 1}
    for histogram in histograms:
        if histogram is None or len(histogram) * len(counts) > MAX_READ_COUNTS:
            return None
        before, counts = counts, {}
        for (a, m), (b, n) in product(before.items(), histogram.items()):
            counts[a * b] = counts.get(a * b, 0) + m * n
    return counts


def disjoint(tallies: Iterable[Tally]) -> Tally:
    """Return the tally of a union of disjoint domains whose results are disjoint as well.

    >>> disjoint([uniform(4, 2), uniform(3)])
    Tally(total=11, distinct=3, maximum=4, histogram={4: 2, 3: 1})
    """
    parts = list(tallies)
    if len(parts) == 1:
        return parts[0]
    histogram = Counter[int]()
    for part in parts:
        if part.histogram is None:
            break
        histogram.update(part.histogram)
    else:
        return Tally.of(dict(histogram))
    return Tally(
        sum([part.total for part in parts]),
        sum([part.distinct for part in parts]),
        max([part.maximum for part in parts], default=0),
        None,
    )

"""How often each element is read: not only whether, but by how many points of the domain.

A map reads an element once for each value of its dimensions and range variables that leads to it.
Simplifying drops range variables on which nothing depends, and with them the count; so what is
asked here starts from maps that keep them.

Exact, by taking the map apart: results that have no variable in common count independently, and
their counts multiply. So only the parts are enumerated, never the array; a part that is too large
for that is still known where no element is read twice (`indexing.maps.properties.is_injective`).

>>> from indexing.maps.text import parse_map
>>> window = parse_map("(d0, d1)[s0] -> (d0 + s0, d1), domain: d0 in [0, 3], d1 in [0, 999], "
...                    "s0 in [0, 1]")
>>> found = multiplicity(window)
>>> found.total, found.distinct, found.maximum, found.histogram()
(8000, 5000, 2, {1: 2000, 2: 3000})
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from indexing.maps.counting import Counted, beyond_budget
from indexing.maps.given_values import depends_on_value
from indexing.maps.indexing_map import Extents, Grade, IndexingMap, dims
from indexing.maps.relation import MapOrMaps, as_maps, same_spaces
from simplifier.unknown import Unknown

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


class Multiplicity:
    """How often the elements are read to which some maps lead.

    A map with the grade "may" is counted as it is written: the program reads perhaps less.

    Attributes:
        maps: what is counted; several are read one after the other.
        grade: "may" if one of the maps is.
    """

    def __init__(self, maps: tuple[IndexingMap, ...], counted: Sequence[Counted]) -> None:
        self.maps = maps
        self.grade: Grade = "may" if any(m.grade == "may" for m in maps) else "exact"
        self._counted = counted

    @property
    def total(self) -> int | Unknown:
        """How many reads there are in all."""
        return _sum([counted.total for counted in self._counted])

    @property
    def distinct(self) -> int | Unknown:
        """How many elements are read."""
        found = self.histogram()
        return found if isinstance(found, Unknown) else sum(found.values())

    @property
    def maximum(self) -> int | Unknown:
        """How often the element is read that is read most often; 0 if none is."""
        found = self.histogram()
        return found if isinstance(found, Unknown) else max(found, default=0)

    def at(self, element: Sequence[int]) -> int | Unknown:
        """How often this element is read; unknown if that depends on a value of the program."""
        for counted in self._counted:
            if counted.moves_with:
                return depends_on_value(counted.moves_with, tuple(element))
        return _sum([counted.at(element) for counted in self._counted])

    def histogram(self) -> dict[int, int] | Unknown:
        """For each number of times how many elements are read so often, for those that are read."""
        alive: list[Counted] = []
        for counted in self._counted:
            total = counted.total
            if isinstance(total, Unknown):
                return total
            if total:
                alive.append(counted)
        if not alive:
            return {}
        found = alive[0].histogram() if len(alive) == 1 else self._together(alive)
        if isinstance(found, Unknown):
            return found
        return dict(sorted((times, count) for times, count in found.items() if times))

    def counts(self, extents: Extents) -> NDArray[Any] | Unknown:
        """How often each element of an array of these sizes is read.

        An array of 64-bit integers, or of Python's where counts may not fit into these. Unknown if
        the array is too large to be enumerated, or where `at` is.

        Raises:
            ValueError: the maps do not lead to elements of such an array.
        """
        box = dims(extents)
        same_spaces(self.maps, len(self.maps[0].dims) if self.maps else None, len(box))
        sizes = tuple([v.upper + 1 for v in box])
        beyond = beyond_budget(prod(sizes), f"an array of {sizes}")
        return self._added(self._counted, sizes, [0] * len(sizes)) if beyond is None else beyond

    def _together(self, alive: Sequence[Counted]) -> Counter[int] | Unknown:
        """The counts of several maps, added up element by element."""
        bounds = [counted.bounds() for counted in alive]
        lower = [min(b[k][0] for b in bounds) for k in range(len(bounds[0]))]
        upper = [max(b[k][1] for b in bounds) for k in range(len(bounds[0]))]
        sizes = tuple([high - low + 1 for low, high in zip(lower, upper, strict=True)])
        beyond = beyond_budget(prod(sizes), f"a box of {sizes} that several maps read from")
        found = self._added(alive, sizes, lower) if beyond is None else beyond
        return found if isinstance(found, Unknown) else Counter(found[found > 0].ravel().tolist())

    def _added(
        self, every: Sequence[Counted], sizes: Sequence[int], origin: Sequence[int]
    ) -> NDArray[Any] | Unknown:
        """The counts of the elements of a box, whose first one is `origin`."""
        total = self.total
        if isinstance(total, Unknown):
            return total
        found: NDArray[Any] = np.zeros(sizes, np.int64 if total < 1 << 62 else object)
        for counted in every:
            if counted.moves_with:
                return depends_on_value(counted.moves_with)
            failure = counted.add_to(found, origin)
            if failure is not None:
                return failure
        return found


def _sum(terms: Sequence[int | Unknown]) -> int | Unknown:
    found = 0
    for term in terms:
        if isinstance(term, Unknown):
            return term
        found += term
    return found


def multiplicity(
    asked: MapOrMaps, values: Mapping[str, ArrayLike] | None = None
) -> Multiplicity | Unknown:
    """How often one map, or several, lead to each element.

    Args:
        values: what runtime variables are: arrays by the name of their source, or numbers by the
            name of the variable. They are clamped as the operation does.
    Returns:
        The counts; unknown where they depend on values that are not given. A start that only moves
        what is read need not be given.
    Raises:
        ValueError: the maps have different numbers of dimensions or results, or a value has another
            rank than its source.

    >>> from indexing.maps.text import parse_map
    >>> pairs = parse_map("(d0, d1) -> (d0 + d1), domain: d0 in [0, 2], d1 in [0, 2]")
    >>> multiplicity(pairs).counts((5,)).tolist()
    [1, 2, 3, 2, 1]
    """
    maps = as_maps(asked)
    same_spaces(maps)
    counted: list[Counted] = []
    for m in maps:
        found = Counted.of(m, values or {})
        if isinstance(found, Unknown):
            return found
        counted.append(found)
    return Multiplicity(maps, counted)

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

from indexing.maps.counting import Counted, within_budget
from indexing.maps.indexing_map import Extents, Grade, IndexingMap, dims
from indexing.maps.relation import MapOrMaps, UndecidedError, as_maps, same_spaces

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


class Multiplicity:
    """How often the elements are read to which some maps lead.

    A map with the grade "may" is counted as it is written: the program reads perhaps less.

    Attributes:
        maps: what is counted; several are read one after the other.
        grade: "may" if one of the maps is.
    """

    def __init__(self, maps: tuple[IndexingMap, ...], values: Mapping[str, ArrayLike]) -> None:
        self.maps = maps
        self.grade: Grade = "may" if any(m.grade == "may" for m in maps) else "exact"
        self._counted = [Counted.of(m, values) for m in maps]

    @property
    def total(self) -> int:
        """How many reads there are in all."""
        return sum(counted.total for counted in self._counted)

    @property
    def distinct(self) -> int:
        """How many elements are read."""
        return sum(self.histogram().values())

    @property
    def maximum(self) -> int:
        """How often the element is read that is read most often; 0 if none is."""
        return max(self.histogram(), default=0)

    def at(self, element: Sequence[int]) -> int:
        """How often this element is read.

        Raises:
            UndecidedError: that depends on a value that the program knows.
        """
        for counted in self._counted:
            if counted.moves_with:
                raise UndecidedError(
                    f"how often {tuple(element)} is read depends on `{counted.moves_with}`: "
                    "give its value"
                )
        return sum(counted.at(element) for counted in self._counted)

    def histogram(self) -> dict[int, int]:
        """For each number of times how many elements are read so often, for those that are read.

        Raises:
            UndecidedError: that is beyond the budget.
        """
        alive = [counted for counted in self._counted if counted.total]
        if not alive:
            return {}
        if len(alive) == 1:
            found = alive[0].histogram()
        else:
            found = Counter(self._together(alive))
        return dict(sorted((times, count) for times, count in found.items() if times))

    def counts(self, extents: Extents) -> NDArray[Any]:
        """How often each element of an array of these sizes is read.

        An array of 64-bit integers, or of Python's where counts may not fit into these.

        Raises:
            ValueError: the maps do not lead to elements of such an array.
            UndecidedError: the array is too large to be enumerated, or see `at`.
        """
        box = dims(extents)
        same_spaces(self.maps, len(self.maps[0].dims) if self.maps else None, len(box))
        sizes = tuple([v.upper + 1 for v in box])
        within_budget(prod(sizes), f"an array of {sizes}")
        found: NDArray[Any] = np.zeros(sizes, self._dtype)
        for counted in self._counted:
            if counted.moves_with:
                self.at((0,) * len(sizes))
            counted.add_to(found, [0] * len(sizes))
        return found

    @property
    def _dtype(self) -> type:
        return np.int64 if self.total < 1 << 62 else object

    def _together(self, alive: Sequence[Counted]) -> list[int]:
        """The counts of several maps, added up element by element."""
        for counted in alive:
            if counted.moves_with:
                raise UndecidedError(
                    f"how often an element is read depends on `{counted.moves_with}`: "
                    "give its value"
                )
        bounds = [counted.bounds() for counted in alive]
        lower = [min(b[k][0] for b in bounds) for k in range(len(bounds[0]))]
        upper = [max(b[k][1] for b in bounds) for k in range(len(bounds[0]))]
        sizes = [high - low + 1 for low, high in zip(lower, upper, strict=True)]
        within_budget(prod(sizes), f"a box of {tuple(sizes)} that several maps read from")
        found: NDArray[Any] = np.zeros(sizes, self._dtype)
        for counted in alive:
            counted.add_to(found, lower)
        times: list[int] = found[found > 0].ravel().tolist()
        return times


def multiplicity(asked: MapOrMaps, values: Mapping[str, ArrayLike] | None = None) -> Multiplicity:
    """How often one map, or several, lead to each element.

    Args:
        values: what runtime variables are: arrays by the name of their source, or numbers by the
            name of the variable. They are clamped as the operation does.
    Raises:
        ValueError: the maps have different numbers of dimensions or results, or a value has another
            rank than its source.
        UndecidedError: it depends on values that are not given. A start that only moves what is
            read need not be given.

    >>> from indexing.maps.text import parse_map
    >>> pairs = parse_map("(d0, d1) -> (d0 + d1), domain: d0 in [0, 2], d1 in [0, 2]")
    >>> multiplicity(pairs).counts((5,)).tolist()
    [1, 2, 3, 2, 1]
    """
    maps = as_maps(asked)
    same_spaces(maps)
    return Multiplicity(maps, values or {})

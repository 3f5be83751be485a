"""Exact questions about a map, answered by ISL: methods of `IndexingMap`.

Beyond ISL's budget the answer is `Unknown`, which is neither true nor false: test ``isinstance(
answer, Unknown)`` first, or compare with ``is True``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import indexing.methods as methods
from indexing.maps.map_methods import MapMethods
from simplifier.unknown import Unknown

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


@dataclass(frozen=True, slots=True)
class Difference:
    """The answer of `IndexingMap.is_equal` for different maps; its truth value is false.

    Attributes:
        witness: values of dimensions and runtime variables, by name.
        results: results that only one map has at the witness.
        only_in: the map that relates the witness to `results`: "first" (self) or "second".

    >>> from indexing import IndexingMap
    >>> double = IndexingMap.over((4,), lambda d: [d[0] * 2])
    >>> double.is_equal(IndexingMap.over((4,), lambda d: [d[0] + 1]))
    Difference(witness={'d0': 0}, results=(0,), only_in='first')
    """

    witness: dict[str, int]
    results: tuple[int, ...]
    only_in: Literal["first", "second"]

    def __bool__(self) -> bool:
        return False


class Questions(MapMethods):
    """Methods that maps inherit; the functions of the same names take several maps, too."""

    __slots__ = ()

    def is_empty(self) -> bool | Unknown:
        """No point is in the domain; decided exactly."""
        return methods.is_empty(self._itself())

    def is_equal(self, other: methods.IndexingMap) -> Literal[True] | methods.Difference | Unknown:
        """The same relation between dimensions, runtime variables and results; else a `Difference`.

        Range variables are no part of the relation: which of them reads an element is not compared.
        Runtime variables are matched by source and element, else by name.
        """
        found = methods.difference(self._itself(), other)
        return True if found is None else found

    def inverse(self) -> tuple[methods.IndexingMap, ...] | Unknown:
        """The relation from results to dimensions, in disjoint pieces.

        >>> from indexing import IndexingMap
        >>> rows = IndexingMap.over((4, 8), lambda d: [d[0] * 8 + d[1]])
        >>> print(*rows.inverse())
        (d0) -> (d0 floordiv 8, d0 mod 8), domain: d0 in [0, 31]
        """
        return methods.inverse(self._itself())

    def image(self) -> tuple[methods.IndexingMap, ...] | Unknown:
        """All results, as maps from nothing in disjoint pieces.

        >>> from indexing import IndexingMap
        >>> print(*IndexingMap.over((4,), lambda d: [d[0] * 2]).image())
        ()[s0] -> (s0 * 2), domain: s0 in [0, 3]
        """
        return methods.image(self._itself())

    def preimage(self, elements: methods.Points) -> tuple[methods.IndexingMap, ...] | Unknown:
        """All points that have one of `elements` as a result, as maps from nothing.

        >>> from indexing import IndexingMap
        >>> print(*IndexingMap.over((8,), lambda d: [d[0] // 2]).preimage((3,)))
        ()[s0] -> (s0), domain: s0 in [6, 7]
        """
        return methods.preimage(self._itself(), elements)

    def is_injective(self) -> methods.Decision:
        """No two points have a result in common; see `indexing.is_injective`."""
        return methods.is_injective(self._itself())

    def is_single_valued(self) -> methods.Decision:
        """No point has two results; see `indexing.is_single_valued`."""
        return methods.is_single_valued(self._itself())

    def is_surjective_onto(self, onto: methods.Extents) -> methods.Decision:
        """Every index of an array is a result; see `indexing.is_surjective_onto`."""
        return methods.is_surjective_onto(self._itself(), onto)

    def is_bijection(self, onto: methods.Extents | None = None) -> methods.Decision:
        """Each point has one result, and no other has it; see `indexing.is_bijection`."""
        return methods.is_bijection(self._itself(), onto)

    def depends_on(self, dimension: int | str) -> bool | methods.Verdict | Unknown:
        """Whether the results change with a dimension; see `indexing.depends_on`.

        >>> from indexing import IndexingMap
        >>> bool(IndexingMap.over((4, 2), lambda d: [(d[0] * 2 + d[1]) // 2]).depends_on("d1"))
        False
        """
        return methods.depends_on(self._itself(), dimension)

    def multiplicity(
        self, values: Mapping[str, ArrayLike] | None = None
    ) -> methods.Multiplicity | Unknown:
        """How often each element is reached; see `indexing.maps.multiplicity.multiplicity`.

        >>> from indexing import IndexingMap
        >>> IndexingMap.over((3, 3), lambda d: [d[0] + d[1]]).multiplicity().histogram()
        {1: 2, 2: 2, 3: 1}
        """
        return methods.multiplicity(self._itself(), values)

    def count_image(self) -> int | Unknown:
        """How many different results there are: an element that is read twice counts once.

        >>> from indexing import IndexingMap
        >>> IndexingMap.over((1000, 1000), lambda d: [d[0] + d[1]]).count_image()
        1999
        """
        return methods.count_image(self._itself())

    def count_domain(self) -> int | Unknown:
        """How many points the domain has: how often an element is read, counted each time.

        >>> from indexing import IndexingMap
        >>> IndexingMap.over((1000, 1000), lambda d: [d[0] + d[1]]).count_domain()
        1000000
        """
        return methods.count_domain(self._itself())

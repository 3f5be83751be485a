"""Exact queries on a map, answered by ISL: methods of `IndexingMap`.

Beyond ISL's budget the answer is `Unknown`, which is neither true nor false.  Test
``isinstance(answer, Unknown)`` first, or compare with ``is True``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import indexing.methods as methods
from hlo.arguments import checked
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


class MapQueries(MapMethods):
    """Query methods of `IndexingMap`; the functions of the same names also take several maps."""

    __slots__ = ()

    def is_empty(self) -> bool | Unknown:
        """Return True if the domain has no points, decided exactly.

        Source: isl manual, "Unary Properties" (``isl_map_is_empty``).

        >>> from indexing import parse_map
        >>> text = "(d0) -> (d0), domain: d0 in [0, 9], d0 mod 4 in [1, 1], d0 mod 2 in [0, 0]"
        >>> parse_map(text).is_empty()
        True
        """
        return methods.is_empty(self._itself())

    @checked
    def is_equal(self, other: methods.IndexingMap) -> Literal[True] | methods.Difference | Unknown:
        """Return True if both maps relate dimensions and runtime variables to the same results.

        Range variables are existentially quantified, so their values are not compared.  Runtime
        variables are matched by source and element, or by name if they have no source.

        Returns:
            `True`; a `Difference` with a witness; or `Unknown`.
        Raises:
            ValueError: the maps have different numbers of dimensions or results.
        Source: isl manual, "Binary Properties" (``isl_map_is_equal``).

        >>> from indexing import IndexingMap, parse_map
        >>> shifted = parse_map("()[s0] -> (s0 - 4), domain: s0 in [4, 7]")
        >>> shifted.is_equal(parse_map("()[s0] -> (s0), domain: s0 in [0, 3]"))
        True
        """
        difference = methods.difference(self._itself(), other)
        return True if difference is None else difference

    def inverse(self) -> tuple[methods.IndexingMap, ...] | Unknown:
        """Return the inverse relation, from results to dimensions, as disjoint maps.

        Source: isl manual, "Unary Operations" (``isl_map_reverse``).

        >>> from indexing import IndexingMap
        >>> rows = IndexingMap.over((4, 8), lambda d: [d[0] * 8 + d[1]])
        >>> print(*rows.inverse())
        (d0) -> (d0 floordiv 8, d0 mod 8), domain: d0 in [0, 31]
        """
        return methods.inverse(self._itself())

    def image(self) -> tuple[methods.IndexingMap, ...] | Unknown:
        """Return all results, as disjoint maps without dimensions.

        Source: isl manual, "Unary Operations" (``isl_map_range``).

        >>> from indexing import IndexingMap
        >>> print(*IndexingMap.over((4,), lambda d: [d[0] * 2]).image())
        ()[s0] -> (s0 * 2), domain: s0 in [0, 3]
        """
        return methods.image(self._itself())

    def preimage(self, elements: methods.Points) -> tuple[methods.IndexingMap, ...] | Unknown:
        """Return all points with a result in `elements`, as disjoint maps without dimensions.

        Args:
            elements: one element, or maps without dimensions whose results are the elements.
        Raises:
            ValueError: the results of the map and the elements differ in number.

        >>> from indexing import IndexingMap
        >>> print(*IndexingMap.over((8,), lambda d: [d[0] // 2]).preimage((3,)))
        ()[s0] -> (s0), domain: s0 in [6, 7]
        """
        return methods.preimage(self._itself(), elements)

    def is_injective(self) -> methods.Decision:
        """Return True if no two points have a common result; see `indexing.is_injective`.

        >>> from indexing import IndexingMap
        >>> IndexingMap.over((4, 8), lambda d: [d[0] * 8 + d[1]]).is_injective()
        True
        """
        return methods.is_injective(self._itself())

    def is_single_valued(self) -> methods.Decision:
        """Return True if no point has two results; see `indexing.is_single_valued`.

        >>> from indexing import parse_map
        >>> bool(parse_map("()[s0] -> (s0), domain: s0 in [0, 1]").is_single_valued())
        False
        """
        return methods.is_single_valued(self._itself())

    def is_surjective_onto(self, onto: methods.Extents) -> methods.Decision:
        """Return True if every index of an array is a result; see `indexing.is_surjective_onto`.

        >>> from indexing import IndexingMap
        >>> IndexingMap.over((8,), lambda d: [d[0] // 2]).is_surjective_onto((4,))
        True
        """
        return methods.is_surjective_onto(self._itself(), onto)

    def is_bijection(self, onto: methods.Extents | None = None) -> methods.Decision:
        """Return True if the map is a bijection onto its image, or `onto`.

        See `indexing.is_bijection`.

        >>> from indexing import IndexingMap
        >>> IndexingMap.over((3, 5), lambda d: [d[1], d[0]]).is_bijection(onto=(5, 3))
        True
        """
        return methods.is_bijection(self._itself(), onto)

    def depends_on(self, dimension: int | str) -> bool | methods.Verdict | Unknown:
        """Return a true value if the results change with a dimension; see `indexing.depends_on`.

        >>> from indexing import IndexingMap
        >>> bool(IndexingMap.over((4, 2), lambda d: [(d[0] * 2 + d[1]) // 2]).depends_on("d1"))
        False
        """
        return methods.depends_on(self._itself(), dimension)

    def multiplicity(
        self, values: Mapping[str, ArrayLike] | None = None
    ) -> methods.Multiplicity | Unknown:
        """Count the reads of each element; see `indexing.maps.multiplicity.multiplicity`.

        >>> from indexing import IndexingMap
        >>> IndexingMap.over((3, 3), lambda d: [d[0] + d[1]]).multiplicity().histogram()
        {1: 2, 2: 2, 3: 1}
        """
        return methods.multiplicity(self._itself(), values)

    def count_image(self) -> int | Unknown:
        """Return the number of distinct results: an element that is read twice counts once.

        >>> from indexing import IndexingMap
        >>> IndexingMap.over((1000, 1000), lambda d: [d[0] + d[1]]).count_image()
        1999
        """
        return methods.count_image(self._itself())

    def count_domain(self) -> int | Unknown:
        """Return the number of points of the domain: an element that is read twice counts twice.

        >>> from indexing import IndexingMap
        >>> IndexingMap.over((1000, 1000), lambda d: [d[0] + d[1]]).count_domain()
        1000000
        """
        return methods.count_domain(self._itself())

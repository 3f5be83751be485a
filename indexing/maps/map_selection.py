"""Evaluation and selection: methods of `IndexingMap` on points, arrays of points and slices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any, Literal

import indexing.methods as methods
from indexing.maps.map_methods import MapMethods
from simplifier.unknown import Unknown

if TYPE_CHECKING:
    from types import EllipsisType

    from numpy.typing import ArrayLike


class MapSelection(MapMethods):
    """Methods of `IndexingMap` that evaluate it, or restrict it to a part of its domain."""

    __slots__ = ()

    def __call__(
        self,
        *point: ArrayLike,
        outside: Literal["mask", "raise"] = "mask",
        **values: ArrayLike,
    ) -> tuple[Any, ...] | None:
        """Return the results at one point, or at all points of integer arrays.

        Args:
            point: one integer, or integer array, for each dimension; arrays broadcast.
            outside: "mask": points outside the domain give `None`, or masked elements of arrays;
                "raise": they raise `IndexError`.
            values: values of range variables and runtime variables by name, such as ``s0=2``.
        Returns:
            A tuple of integers, or of NumPy masked arrays if an argument is an array; `None` for
            one point outside the domain.
        Raises:
            TypeError: a value is missing, unknown or not an integer.
            IndexError: a point is outside the domain, and `outside` is "raise".

        >>> from indexing import parse_map
        >>> m = parse_map("(d0)[s0] -> (d0 * 2 + s0), domain: d0 in [0, 9], s0 in [0, 1]")
        >>> m(3, s0=1), m(12, s0=0)
        ((7,), None)
        >>> m([3, 4, 50], s0=0)[0].tolist()
        [6, 8, None]
        """
        return methods.evaluate_at(self._itself(), point, outside, values)

    def points(
        self, runtime: Sequence[int] = ()
    ) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
        """Enumerate the related pairs ``(dims, results)``; for small maps and tests.

        >>> from indexing import IndexingMap
        >>> list(IndexingMap.over((2,), lambda d: [d[0] * 3]).points())
        [((0,), (0,)), ((1,), (3,))]
        """
        m = self._itself()
        boxes = [range(v.lower, v.upper + 1) for v in (*m.dims, *m.ranges)]
        count = len(m.dims)
        for values in product(*boxes):
            results = m.evaluate(values[:count], values[count:], runtime)
            if results is not None:
                yield values[:count], results

    def at(self, *point: int | slice | EllipsisType, **values: ArrayLike) -> methods.Region:
        """Return the elements that one point, or a tile of points, needs.

        Args:
            point: an integer, a slice or ``...`` (all indices) for each dimension.  One ``...``
                may stand for several dimensions.  Slices are clipped to the domain.
            values: values of range and runtime variables by name (``s0=2``, ``rt0=3``), or of
                runtime variables by the name of their source.  Values that the operation clamps
                are clamped.  A runtime variable without a value takes all its values; the region
                names it in `Region.runtime`.
        Raises:
            IndexError: an integer is outside the bounds of its dimension.
            TypeError, ValueError: the number or kind of indices is wrong, or a value is unknown.

        >>> from indexing import parse_map
        >>> text = "(d0, d1)[s0] -> (d0, s0), domain: d0 in [0, 9], d1 in [0, 9], s0 in [0, 63]"
        >>> m = parse_map(text)
        >>> print(m.at(1, 2), m.at(slice(0, 8, 2), ...))
        [1, 0:64] [0:7:2, 0:64]
        """
        return methods.region_at(self._itself(), point, values)

    def fix(self, **values: int) -> methods.IndexingMap:
        """Return the map with values for some of its variables, which it no longer has.

        Raises:
            TypeError: a name is no variable of the map, or a value is not an integer.

        >>> from indexing import IndexingMap
        >>> print(IndexingMap.over((4, 8), lambda d: [d[0] * 8 + d[1]]).fix(d0=3))
        (d1) -> (d1 + 24), domain: d1 in [0, 7]
        """
        return methods.fix_variables(self._itself(), values)

    def restrict(self, **slices: slice) -> methods.IndexingMap:
        """Return the map on a part of its domain.

        Args:
            slices: a slice for each dimension or range variable to restrict, by name; it is clipped
                to the bounds of the variable.
        Raises:
            TypeError: a name is no variable of the map, or a value is not a slice.
            ValueError: a step is not positive, or an index is negative.

        >>> from indexing import IndexingMap
        >>> m = IndexingMap.over((4, 64), lambda d: [d[0], d[1] // 32])
        >>> print(m.restrict(d1=slice(0, 32)))
        (d0, d1) -> (d0, 0), domain: d0 in [0, 3], d1 in [0, 31]
        """
        return methods.restrict_domain(self._itself(), slices)

    def count(self) -> int | Unknown:
        """Return the number of related pairs of a point and an element that it needs.

        An element that several points need counts once for each point.  Runtime variables take all
        their values.

        Source: isl manual, "Counting" of the relation (cardinality of a map).

        >>> from indexing import IndexingMap
        >>> m = IndexingMap.over((8,), lambda d, s: [d[0] // 2 + s[0]], ranges=(3,))
        >>> m.count(), m.count_domain(), m.count_image()
        (24, 24, 6)
        """
        return methods.count_pairs(self._itself())

    def __matmul__(self, inner: methods.IndexingMap) -> methods.IndexingMap:
        """Return the composition ``x -> self(inner(x))``, which is ``inner.then(self)``.

        >>> from indexing import IndexingMap
        >>> double = IndexingMap.over((99,), lambda d: [d[0] * 2])
        >>> shift = IndexingMap.over((98,), lambda d: [d[0] + 1])
        >>> print(double @ shift)
        (d0) -> (d0 * 2 + 2), domain: d0 in [0, 97]
        """
        if not isinstance(inner, methods.IndexingMap):
            return NotImplemented
        return inner.then(self._itself())

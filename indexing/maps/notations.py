"""How maps are written in other notations, and read from them: methods of `IndexingMap`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import indexing.methods as methods
from indexing.maps.map_methods import MapMethods
from simplifier.interval import Interval
from simplifier.unknown import Unknown


class Notations(MapMethods):
    """Methods that maps inherit; `indexing.maps.interchange` has them as functions, and says more.

    What a notation needs is loaded when it is used.
    """

    __slots__ = ()

    def to_isl(self) -> object:
        """The relation as an ``islpy.Map`` from dimensions; runtime variables are parameters."""
        return methods.to_isl(self._itself())

    @classmethod
    def from_isl(
        cls, given: object, bounds: Mapping[str, Interval] | None = None
    ) -> methods.IndexingMap | Unknown:
        """A map, set or function of ``islpy``, or its text, if it is one map.

        `indexing.maps.interchange.from_isl` reads those that are several.

        >>> from indexing import IndexingMap
        >>> print(IndexingMap.from_isl("[n] -> { [i] -> [i + n] : 0 <= i, n < 4 }"))
        (i){n} -> (i + n), domain: i in [0, 3], n in [0, 3]
        """
        return methods.one_from_isl(given, bounds)

    def to_mlir(self, kind: methods.MlirKind = "indexing_map") -> str:
        """The map as ``#xla.indexing_map<"…">``, its results as "affine_map", or "affine_set"."""
        return methods.to_mlir(self._itself(), kind)

    @classmethod
    def from_mlir(
        cls,
        given: object,
        *,
        dims: Sequence[methods.Extent] | None = None,
        symbols: Sequence[methods.Extent] | None = None,
        runtime: Sequence[methods.Extent] = (),
    ) -> methods.IndexingMap:
        """An ``affine_map``, ``affine_set`` or ``#xla.indexing_map`` as text or object of jaxlib.

        The first of these is given bounds, as sizes or pairs.

        >>> from indexing import IndexingMap
        >>> print(IndexingMap.from_mlir("affine_map<(d0)[s0] -> (d0 - s0)>", dims=[4], symbols=[3]))
        (d0)[s0] -> (d0 - s0), domain: d0 in [0, 3], s0 in [0, 2]
        """
        return methods.from_mlir(given, dims=dims, symbols=symbols, runtime=runtime)

    def to_json(self) -> str:
        """The map as a JSON object, which `from_json` reads."""
        return methods.to_json(self._itself())

    @classmethod
    def from_json(cls, text: str | bytes) -> methods.IndexingMap:
        """The map that `to_json` wrote; sources of runtime variables are names.

        Raises:
            ValueError: `text` is no such object; the message begins with the place.
        """
        return methods.from_json(text)

    def to_sympy(self) -> methods.SympyMap:
        """The results as a tuple of SymPy's expressions, with limits and constraints beside them.

        >>> from indexing import IndexingMap
        >>> IndexingMap.over((8,), lambda d: [d[0] // 4]).to_sympy()
        (floor(d0/4),)
        """
        return methods.to_sympy(self._itself())

    @classmethod
    def from_sympy(
        cls,
        results: object,
        *,
        dims: methods.Limits = (),
        ranges: methods.Limits = (),
        runtime: methods.Limits = (),
        constraints: object = (),
    ) -> methods.IndexingMap:
        """SymPy's expressions of symbols with limits.

        >>> import sympy
        >>> from indexing import IndexingMap
        >>> i = sympy.Symbol("i", integer=True)
        >>> print(IndexingMap.from_sympy([sympy.floor(i / 4)], dims=[(i, 0, 9)]))
        (i) -> (i floordiv 4), domain: i in [0, 9]
        """
        return methods.from_sympy(
            results, dims=dims, ranges=ranges, runtime=runtime, constraints=constraints
        )

    def to_latex(self) -> str:
        """The map as LaTeX, for mathematics mode."""
        return methods.to_latex(self._itself())

    def _repr_latex_(self) -> str:
        return f"$\\displaystyle {self.to_latex()}$"

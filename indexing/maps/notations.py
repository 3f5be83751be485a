"""Conversions of maps to and from other notations: methods of `IndexingMap`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import indexing.methods as methods
from hlo.arguments import checked
from indexing.maps.displayed import Displayed
from indexing.maps.map_methods import MapMethods
from simplifier.interval import Interval
from simplifier.unknown import Unknown


class Notations(MapMethods, Displayed):
    """Conversion methods of `IndexingMap`; `indexing.maps.interchange` documents each notation.

    The library that a notation needs is imported on first use.
    """

    __slots__ = ()

    def to_isl(self) -> object:
        """Return the relation as an ``islpy.Map``; runtime variables become parameters.

        >>> from indexing import IndexingMap
        >>> print(IndexingMap.over((8,), lambda d: [d[0] + 2]).to_isl())
        { [d0] -> [o0 = 2 + d0] : 0 <= d0 <= 7 }
        """
        return methods.to_isl(self._itself())

    @classmethod
    @checked
    def from_isl(
        cls, given: object, bounds: Mapping[str, Interval] | None = None
    ) -> methods.IndexingMap | Unknown:
        """Return the map for an ``islpy`` map, set or function, or for its text.

        Args:
            given: an object of ``islpy``, or text in isl notation.
            bounds: inclusive bounds of variables and parameters that isl does not bound, by name.
        Raises:
            ValueError: the relation needs several maps (use `indexing.maps.interchange.from_isl`),
                or is not a relation of isl.

        >>> from indexing import IndexingMap
        >>> print(IndexingMap.from_isl("[n] -> { [i] -> [i + n] : 0 <= i, n < 4 }"))
        (i){n} -> (i + n), domain: i in [0, 3], n in [0, 3]
        """
        return methods.one_from_isl(given, bounds)

    def loop_nest(self) -> methods.MapLoopNest:
        """Return the loops that visit the pairs of the map: Python source, and a generator.

        >>> from indexing import IndexingMap
        >>> nest = IndexingMap.over((4, 8), lambda d: [d[0] * 8 + d[1]]).loop_nest()
        >>> print(nest)
        def pairs():
            for d0 in range(4):
                for d1 in range(8):
                    yield (d0, d1), (d0 * 8 + d1,)
        >>> next(nest())
        ((0, 0), (0,))
        """
        return methods.loop_nest_of_map(self._itself())

    def to_python(self, name: str = "pairs") -> str:
        """Return the source of a Python generator function that yields all related pairs.

        Each pair of a point and an element occurs once for each value of the range variables, in
        lexicographic order.  Runtime variables are parameters.

        Args:
            name: the name of the function.
        Raises:
            ValueError: `name` is not an identifier, or an expression is too long to write.

        >>> from indexing import parse_map
        >>> text = "(d0)[s0] -> (d0 + s0), domain: d0 in [0, 9], s0 in [0, 2], d0 + s0 in [0, 9]"
        >>> print(parse_map(text).to_python("window"), end="")
        def window():
            for d0 in range(10):
                for s0 in range(3):
                    if d0 + s0 <= 9:
                        yield (d0,), (d0 + s0,)
        """
        return methods.to_python(self._itself(), name)

    def to_c(self, name: str = "visit") -> str:
        """Return the source of a C function that calls a function for each related pair.

        ``void name(int64_t rt0, …, void (*f)(const int64_t *point, const int64_t *element,
        void *data), void *data)``: the pairs are those of `to_python`.

        Args:
            name: the name of the function.
        Raises:
            ValueError: `name` is not an identifier of C, an expression is too long to write, or
                numbers may exceed 64 bits.

        >>> from indexing import IndexingMap
        >>> source = IndexingMap.over((4,), lambda d: [d[0] // 2]).to_c()
        >>> print(*source.splitlines()[-6:], sep="\\n")
            for (int64_t d0 = 0; d0 <= 3; ++d0) {
                const int64_t point[1] = {d0};
                const int64_t element[1] = {floordiv(d0, 2)};
                f(point, element, data);
            }
        }
        """
        return methods.to_c(self._itself(), name)

    def to_xla(self, division: methods.XlaDivision = "/") -> str:
        """Return the map as XLA prints it: `indexing.maps.interchange.to_xla`.

        Args:
            division: how XLA prints a floor division: ``/`` since 2026, ``floordiv`` before.

        >>> from indexing import IndexingMap
        >>> print(IndexingMap.over((8,), lambda d: [d[0] // 2]).to_xla())
        (d0) -> (d0 / 2), domain: d0 in [0, 7]
        """
        return methods.to_xla(self._itself(), division)

    def to_mlir(self, kind: methods.MlirKind = "indexing_map") -> str:
        """Return the map as an MLIR attribute.

        Args:
            kind: "indexing_map" for ``#xla.indexing_map<"…">``; "affine_map" for the results
                without domain; "affine_set" for the domain.

        >>> from indexing import IndexingMap
        >>> print(IndexingMap.over((8,), lambda d: [d[0] // 2]).to_mlir("affine_map"))
        affine_map<(d0) -> (d0 floordiv 2)>
        """
        return methods.to_mlir(self._itself(), kind)

    @classmethod
    def from_mlir(
        cls,
        given: object,
        *,
        dims: Sequence[methods.SizeOrBounds] | None = None,
        symbols: Sequence[methods.SizeOrBounds] | None = None,
        runtime: Sequence[methods.SizeOrBounds] = (),
    ) -> methods.IndexingMap:
        """Return the map for an ``affine_map``, ``affine_set`` or ``#xla.indexing_map`` attribute.

        Args:
            given: the text of the attribute, or an object of ``jaxlib.mlir.ir``.
            dims, symbols, runtime: bounds of the variables, which an ``affine_map`` needs: sizes,
                or pairs of inclusive bounds.
        Raises:
            HloError: the text is not such an attribute, or a variable has no bounds.
            ValueError: the number of bounds is not the number of variables.

        >>> from indexing import IndexingMap
        >>> print(IndexingMap.from_mlir("affine_map<(d0)[s0] -> (d0 - s0)>", dims=[4], symbols=[3]))
        (d0)[s0] -> (d0 - s0), domain: d0 in [0, 3], s0 in [0, 2]
        """
        return methods.from_mlir(given, dims=dims, symbols=symbols, runtime=runtime)

    def to_json(self) -> str:
        """Return the map as the text of a JSON object, which `from_json` reads.

        >>> from indexing import IndexingMap
        >>> double = IndexingMap.over((4,), lambda d: [d[0] * 2])
        >>> IndexingMap.from_json(double.to_json()) == double
        True
        """
        return methods.to_json(self._itself())

    @classmethod
    def from_json(cls, text: str | bytes) -> methods.IndexingMap:
        """Return the map that `to_json` wrote; sources of runtime variables become names.

        Raises:
            ValueError: `text` is not such an object; the message starts with the location.

        >>> from indexing import IndexingMap
        >>> print(IndexingMap.from_json(IndexingMap.identity((4,)).to_json()))
        (d0) -> (d0), domain: d0 in [0, 3]
        """
        return methods.from_json(text)

    def to_sympy(self) -> methods.SympyMap:
        """Return the results as a tuple of SymPy expressions with limits and constraints.

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
        """Return the map with SymPy expressions as results.

        Args:
            results: SymPy expressions, or the answer of `to_sympy`.
            dims, ranges, runtime: ``(symbol, lower, upper)`` for each variable, bounds included.
            constraints: relations between the symbols.
        Raises:
            ValueError: an expression or constraint has no equivalent in maps.

        >>> import sympy
        >>> from indexing import IndexingMap
        >>> i = sympy.Symbol("i", integer=True)
        >>> print(IndexingMap.from_sympy([sympy.floor(i / 4)], dims=[(i, 0, 9)]))
        (i) -> (i floordiv 4), domain: i in [0, 9]
        """
        return methods.from_sympy(
            results, dims=dims, ranges=ranges, runtime=runtime, constraints=constraints
        )

    @classmethod
    def from_cute(cls, layout: str | methods.CuteLayout) -> methods.IndexingMap:
        """Return the map from the coordinates of a layout of CuTe to the offset.

        There is one dimension for each mode.  A nested mode is one dimension: its colexicographic
        index.

        Args:
            layout: the layout, or its text, with or without a swizzle.
        Raises:
            HloError: the text is not a layout.

        >>> from indexing import IndexingMap
        >>> print(IndexingMap.from_cute("(3,(2,4)):(2,(1,6))"))
        (d0, d1) -> (d0 * 2 + d1 + (d1 floordiv 2) * 4), domain: d0 in [0, 2], d1 in [0, 7]
        >>> IndexingMap.from_cute("Sw<2,0,3> o 0 o (4,(2,3)):(2,(1,8))")(3, 5)
        (21,)
        """
        return methods.map_of_cute(layout)

    def to_cute(self) -> methods.CuteLayout | Unknown:
        """Return the layout of CuTe with the same offsets: one mode for each dimension.

        Shape and stride are found for maps of any size, swizzles by evaluation of all points.

        Returns:
            `Unknown` if no shape, stride, offset and swizzle have these offsets, with the term and
            its modulus; if the domain is no box; or if there are several results.

        >>> from indexing import IndexingMap, parse_map
        >>> m = IndexingMap.over((3, 8), lambda d: [d[0] * 2 + d[1] % 2 + d[1] // 2 * 6])
        >>> print(m.to_cute())
        (3,(2,4)):(2,(1,6))
        >>> print(parse_map("(d0) -> (d0 mod 7), domain: d0 in [0, 9]").to_cute())
        no layout of CuTe: the modulus 7 of d0 does not divide the size 10
        """
        return methods.to_cute(self._itself())

    def to_linear_layout(self) -> methods.LinearLayout | Unknown:
        """Return the layout of Triton with the same results, if the map is linear over F2.

        Returns:
            `Unknown` if a size or modulus is no power of two, if results are not the XOR of the
            results at powers of two, or if the domain is no box.

        >>> from indexing import IndexingMap
        >>> swap = IndexingMap.over((4, 2), lambda d: [d[0] % 2, d[0] // 2 + d[1] * 2])
        >>> swap.to_linear_layout().bases
        {'d0': [[1, 0], [0, 1]], 'd1': [[0, 2]]}
        >>> print(IndexingMap.over((8,), lambda d: [d[0] // 3]).to_linear_layout())
        no linear layout: the modulus 3 in d0 floordiv 3 is not a power of two
        """
        return methods.to_linear_layout(self._itself())

    @classmethod
    def from_bases(
        cls,
        bases: Mapping[str, Sequence[Sequence[int]]],
        out_dims: Sequence[str] | Mapping[str, int] | None = None,
    ) -> methods.IndexingMap:
        """Return the map of a linear layout of Triton.

        Args:
            bases: for each input dimension, the results of 1, 2, 4, ….
            out_dims: names of the results, or names and sizes; they only check the bases.
        Raises:
            ValueError: the bases have different lengths, or one is outside the sizes.

        >>> from indexing import IndexingMap
        >>> print(IndexingMap.from_bases({"lane": [[1], [2]], "warp": [[8], [4]]}))
        (lane, warp) -> (lane + warp * 8 - (warp floordiv 2) * 12), \
domain: lane in [0, 3], warp in [0, 3]
        """
        return methods.map_of_bases(bases, out_dims)

    def to_latex(self) -> str:
        r"""Return the map as LaTeX for math mode: notebooks show ``IPython.display.Math(…)``.

        >>> from indexing import IndexingMap
        >>> print(IndexingMap.identity((8,)).to_latex())
        (d_{0}) \mapsto \left(d_{0}\right),
        \quad 0 \le d_{0} \le 7
        """
        return methods.to_latex(self._itself())

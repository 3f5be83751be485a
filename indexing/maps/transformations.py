"""Transformations of the variables of a map: methods of `IndexingMap`."""

from __future__ import annotations

from dataclasses import replace

import indexing.methods as methods
from hlo.arguments import checked, checked_on_failure
from indexing.maps.map_fields import GRADES, closed_map
from indexing.maps.map_methods import MapMethods
from indexing.maps.runtime_variable import RuntimeVariable


class Transformations(MapMethods):
    """Methods of `IndexingMap` that add, drop or replace variables."""

    __slots__ = ()

    def ranges_to_dims(self) -> methods.IndexingMap:
        """Return the map with its range variables as further dimensions: one point per read.

        >>> from indexing.maps.indexing_map import IndexingMap, dims, ranges
        >>> reads = IndexingMap.of(dims((4,)), ranges(3), ranges=ranges(3))
        >>> print(reads.ranges_to_dims())
        (d0, s0) -> (s0), domain: d0 in [0, 3], s0 in [0, 2]
        """
        m = self._itself()
        return replace(m, dims=(*m.dims, *m.ranges), ranges=())

    def rescale(self) -> methods.IndexingMap:
        """Return `simplify()`, which replaces strided range variables by ``k·s + r``.

        >>> from indexing.maps.text import parse_map
        >>> print(parse_map("()[s0] -> (s0), domain: s0 in [0, 7], s0 mod 4 in [1, 1]").rescale())
        ()[s0] -> (s0 * 4 + 1), domain: s0 in [0, 1]
        """
        return self._itself().simplify()

    @checked
    def source_map(self, runtime: RuntimeVariable) -> methods.IndexingMap:
        """Return the map to the element of ``runtime.source`` that the runtime variable reads.

        Its dimensions are those of this map, then the range variables and runtime variables that
        occur in the index of the element.  A source inside of loops has such an element in each
        iteration; ``runtime.iterations`` are the iterations in which it is read.

        >>> from indexing import IndexingMap, RuntimeVariable
        >>> from indexing.maps.indexing_map import dims
        >>> from simplifier import Variable, as_expr
        >>> rt = RuntimeVariable(Variable("rt0", 0, 4), "i", (as_expr(2),))
        >>> m = IndexingMap.of(dims((3,)), [rt.variable], runtime=[rt])
        >>> print(m.source_map(rt))
        (d0) -> (2), domain: d0 in [0, 2]
        """
        m = self._itself()
        mentioned = {v for expr in runtime.element for v in expr.variables()}
        others = [v for v in m.variables if v in m.dims or v in mentioned]
        return methods.IndexingMap.of(others, runtime.element)

    @checked_on_failure
    def with_grade(self, grade: methods.Grade) -> methods.IndexingMap:
        """Return the same relation with another grade.

        >>> from indexing import IndexingMap
        >>> IndexingMap.identity((3,)).with_grade("may").grade
        'may'
        """
        m = self._itself()
        if grade == m.grade:
            return m
        if grade not in GRADES or type(m) is not methods.IndexingMap:
            return replace(m, grade=grade)
        fields = m.dims, m.ranges, m.runtime, m.results, m.constraints
        return closed_map(methods.IndexingMap, *fields, grade)

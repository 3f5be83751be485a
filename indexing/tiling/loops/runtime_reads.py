"""Reads at runtime values, for counting: a value is fixed, or stands for as many as there may be.

The number of elements of a tile does not depend on an offset of which the tile has one value, as
that of a dynamic-slice.  Values that vary within a tile, such as the rows of a gather, may all
differ: each is counted, and the map has the grade "may".
"""

from __future__ import annotations

from indexing.maps.indexing_map import IndexingMap
from simplifier.atoms import Variable
from simplifier.linear import Expr, as_expr, constant


def without_runtime(m: IndexingMap) -> IndexingMap:
    """Return a map with as many elements in each tile, or more, without runtime variables.

    >>> from indexing.maps.text import parse_map
    >>> print(without_runtime(parse_map(
    ...     "(d0){rt0} -> (d0 + rt0), domain: d0 in [0, 4], rt0 in [0, 4]")))
    (d0) -> (d0), domain: d0 in [0, 4]
    """
    if not m.runtime:
        return m
    grade = m.grade
    swap: dict[Variable, Expr] = {}
    for rt in m.runtime:
        variables = {v for each in rt.index for v in each.variables()}
        if variables:
            grade = "may"
        swap[rt.variable] = _number(rt.index) if variables else constant(rt.variable.lower)
    fixed = set(swap)
    kept = [c for c in m.constraints if fixed.isdisjoint(c.expr.variables())]
    if len(kept) < len(m.constraints):
        grade = "may"
    results, _ = m.substituted(swap)
    return IndexingMap.of(m.dims, results, ranges=m.ranges, constraints=kept, grade=grade)


def _number(index: tuple[Expr, ...]) -> Expr:
    """Return a number that differs between different elements of the source."""
    total = as_expr(0)
    for each in index:
        low, high = each.bounds
        total = total * (high - low + 1) + (each - low)
    return total

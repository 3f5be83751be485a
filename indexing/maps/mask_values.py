"""Mask values: runtime variables that decide only whether a map reads an element."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from hlo.shapes.element_type import range_of
from indexing.maps.arrays import ArrayRef
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.runtime_variable import RuntimeVariable


def mask_values(m: IndexingMap) -> list[RuntimeVariable]:
    """Return the runtime variables with a source that occur in constraints only."""
    if not m.runtime:
        return []
    used = {v for expr in m.results for v in expr.variables()}
    used |= {v for rt in m.runtime for expr in rt.index for v in expr.variables()}
    return [rt for rt in m.runtime if rt.variable not in used and _is_unclamped(rt)]


def _is_unclamped(rt: RuntimeVariable) -> bool:
    """Return True for an element of an array, of any value of its type."""
    shape = rt.array.array_shape if isinstance(rt.array, ArrayRef) else None
    return shape is not None and rt.clamp == range_of(shape.element_type)


def without_values(m: IndexingMap, dropped: Collection[RuntimeVariable]) -> IndexingMap:
    """Return a map without some of its mask values, and the constraints that mention them.

    It reads what the map reads for any of their values.
    """
    if not dropped:
        return m
    variables = {rt.variable for rt in dropped}
    return replace(
        m,
        runtime=tuple([rt for rt in m.runtime if rt.variable not in variables]),
        constraints=tuple([c for c in m.constraints if variables.isdisjoint(c.expr.variables())]),
    )

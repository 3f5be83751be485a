"""Scatters at indices that the program determines: exactly which update each element has.

The reference kernel scatters the numbers of the updates, so windows, batches and updates out of
bounds follow its semantics.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from hlo.modules.module import Instruction
from hlo.shapes.mixed_radix import digits_of
from hlo.shapes.shape import Shape
from indexing.dataflow.alike import evaluated_in_calls
from indexing.dataflow.constants import MAX_ELEMENTS
from indexing.dataflow.copies import origin_of_copy
from indexing.dataflow.tables import table_maps
from indexing.maps.arrays import ArrayRef
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.joining import join_maps
from indexing.ops.access_edge import AccessEdge
from indexing.ops.scatter import Scatter
from simplifier.constraints import Constraint

Maps: TypeAlias = tuple[IndexingMap, ...]


class KnownScatter(NamedTuple):
    """The elements of a scatter that have no update, one update, and several.

    Attributes:
        kept: parts of the identity: the elements without updates.
        updated: maps to the only updates of elements.
        repeated: parts of the identity: the elements of which any of several updates may be last.
    """

    kept: Maps
    updated: Maps
    repeated: Maps

    def updates(self, edge: AccessEdge) -> AccessEdge:
        """Return the edge to the updates, given that for any indices."""
        if not self.repeated:
            return replace(edge, maps=self.updated, reasons=(), control=())
        several = [part.then(m).simplify() for part in self.repeated for m in edge.maps]
        may = [m.with_grade("may") for m in several if not m.is_known_empty]
        return replace(edge, maps=(*self.updated, *may), control=())


def scatter_edges(
    instruction: Instruction, edges: Iterable[AccessEdge], calls: int = 0
) -> Iterable[AccessEdge]:
    """Return the backward edges of a scatter, exact for elements with one update at most.

    Other edges are returned as they are.

    Args:
        calls: the number of calls around the computation whose arguments count.
    """
    known = instruction.module.memoised(
        (scatter_edges, instruction, calls), lambda: _known_scatter(instruction, calls)
    )
    if known is None:
        return edges
    return [
        replace(edge, maps=known.kept, reasons=(), control=())
        if edge.operand == 0
        else known.updates(edge)
        if edge.operand == 2
        else edge
        for edge in edges
    ]


def _known_scatter(instruction: Instruction, calls: int) -> KnownScatter | None:
    """Return the updates of a scatter of one array that replace elements.

    None if the indices are unknown.
    """
    op, shapes = instruction.op, [operand.shape for operand in instruction.operands]
    if not isinstance(op, Scatter) or len(shapes) != 3 or not replaces(instruction):
        return None
    base, _, updates = shapes
    if not isinstance(base, Shape) or not isinstance(updates, Shape):
        return None
    indices = evaluated_in_calls(ArrayRef(instruction.operands[1]), calls)
    if indices is None or not all(0 < s.size <= MAX_ELEMENTS for s in (base, updates)):
        return None

    def scatter(start: int, values: Any, combine: Any) -> Any:
        return op.kernel(
            np.full(base.dims, start), indices, values.reshape(updates.dims), to_apply=combine
        )

    count = scatter(0, np.ones(updates.size, np.int64), lambda a, b: a + b)
    number = np.where(count > 1, -1, scatter(-1, np.arange(updates.size), lambda a, b: b))
    tables = (count == 0).astype(np.int64), number, (count > 1).astype(np.int64)
    kept, updated, repeated = map(table_maps, tables)
    if kept is None or updated is None or repeated is None:
        return None
    return KnownScatter(
        tuple(_marked_elements(kept)),
        tuple(_updated_elements(updated, updates)),
        tuple(_marked_elements(repeated)),
    )


def replaces(instruction: Instruction) -> bool:
    """Return True if the combiner returns the update."""
    called = instruction.called_computations[0]
    return origin_of_copy(ArrayRef(called.root)).instruction is called.parameters[1]


def _marked_elements(maps: Maps) -> list[IndexingMap]:
    """Return parts of the identity where a table is 1."""
    parts = []
    for m in maps:
        where = m.with_constraints([Constraint(m.results[0], 1, 1)])
        parts.append(replace(where, results=tuple([d.as_expr() for d in where.dims])))
    joined = [part.simplify() for part in join_maps(parts)]
    return [part for part in joined if not part.is_known_empty]


def _updated_elements(maps: Maps, updates: Shape) -> Iterator[IndexingMap]:
    """Yield the maps to the updates whose numbers a table has, where it is not negative."""
    for m in maps:
        where = m.with_constraints([Constraint(m.results[0], 0, updates.size - 1)])
        index = digits_of(where.results[0], updates.dims)
        where = replace(where, results=tuple(index)).simplify()
        if not where.is_known_empty:
            yield where

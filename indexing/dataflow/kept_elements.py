"""Elements that a scatter at indices of run time keeps: where no update has its target.

If the indices leave each element at most one update, as in a scatter of one window or of one for
each batch, the kept elements are the complement of the domains of the maps to the updates.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from hlo.modules.module import Instruction
from hlo.shapes.shape import Shape
from indexing.dataflow.equal_elements import complement
from indexing.dataflow.masks import drop_mask_values, folded_pieces
from indexing.dataflow.scatters import replaces
from indexing.dataflow.value_pieces import Surroundings
from indexing.maps.indexing_map import IndexingMap, dims
from indexing.maps.joining import join_maps
from indexing.maps.shared_runtime import share_runtime
from indexing.ops.access_edge import AccessEdge
from indexing.ops.dynamic import DynamicUpdateSlice
from indexing.ops.scatter import Scatter
from simplifier.atoms import Variable
from simplifier.constraints import Constraint

Parts: TypeAlias = list[tuple[Constraint, ...]]
MAX_KEPT: Final = 8
"""Limit on the parts of the kept elements; beyond it, the map to the base is `may`."""


def kept_edges(
    instruction: Instruction, edges: Iterable[AccessEdge], around: Surroundings | None = None
) -> Iterable[AccessEdge]:
    """Return the backward edges of a scatter, with exact maps to the elements that it keeps.

    Other edges are returned as they are.

    Args:
        around: what is known about the parameters of the computation: in the body of a loop.
    """
    edges = list(edges)
    kept = None if all(edge.is_exact for edge in edges) else _kept_maps(instruction, edges, around)
    if kept is None:
        return edges
    return [
        replace(edge, maps=kept, reasons=(), control=()) if edge.operand == 0 else edge
        for edge in edges
        if edge.operand or kept
    ]


def _kept_maps(
    instruction: Instruction, edges: Iterable[AccessEdge], around: Surroundings | None
) -> tuple[IndexingMap, ...] | None:
    """Return the maps to the kept elements; None if they are not known."""
    shape, updated = instruction.shape, [edge for edge in edges if edge.operand == 2]
    if not isinstance(shape, Shape) or len(instruction.operands) != 3 or not updated:
        return None
    if not replaces(instruction) or _is_in_chain(instruction):
        return None
    if not all(edge.is_exact for edge in updated):
        return None
    hits = [hit for edge in updated for m in edge.maps for hit in _hits(m, around)]
    known = all(_is_kept(hit, instruction, around) for hit in hits)
    return _complement(shape, hits, around) if known else None


def _is_in_chain(scatter: Instruction) -> bool:
    """Return True for one of several updates of an array, whose parts would multiply."""
    base = scatter.operands[0]
    users = [user for user in scatter.users if user.operands[0] is scatter]
    return any(isinstance(each.op, Scatter | DynamicUpdateSlice) for each in (base, *users))


def _hits(m: IndexingMap, around: Surroundings | None) -> Iterator[IndexingMap]:
    """Yield the pieces of a map to the updates, with formulas for its runtime values."""
    for piece in folded_pieces(m, around):
        hit = piece.simplify()
        if not hit.is_known_empty:
            yield hit


def _is_kept(hit: IndexingMap, scatter: Instruction, around: Surroundings | None) -> bool:
    """Return True if the domain of a piece is known, and tells where the updates are."""
    if around is not None:
        return not hit.ranges and all(rt.array is None for rt in hit.runtime)
    alone = replace(hit, results=())
    is_named = drop_mask_values(alone, scatter) == alone
    return not hit.ranges and is_named and all(rt.clamp for rt in hit.runtime)


def _complement(
    shape: Shape, hits: Sequence[IndexingMap], around: Surroundings | None
) -> tuple[IndexingMap, ...] | None:
    """Return disjoint parts of the identity outside of the domains of maps; None if too many."""
    shared, runtime = share_runtime([_widen_piece(hit, shape, around) for hit in hits])
    variables = dims(shape)
    whole = IndexingMap.of(variables, [d.as_expr() for d in variables])
    kept = [replace(whole, runtime=runtime)]
    for hit in shared:
        parts = [
            replace(part, constraints=(*part.constraints, *outside))
            for part in kept
            for outside in complement(hit.constraints)
        ]
        kept = [part for part in parts if not part.simplify().is_known_empty]
        if len(kept) > MAX_KEPT**2:
            return None
    joined = [part.simplify() for part in join_maps(kept)]
    joined = [part for part in joined if not part.is_known_empty]
    return tuple(joined) if len(joined) <= MAX_KEPT else None


def _widen_piece(hit: IndexingMap, shape: Shape, around: Surroundings | None) -> IndexingMap:
    """Return a piece whose bounds of variables are constraints, after the others."""
    if around is not None:
        runtime = [around.symbol(rt.name) for rt in hit.runtime]
    else:
        runtime = [
            replace(rt, variable=Variable(rt.name, *(rt.clamp or rt.variable.bounds)))
            for rt in hit.runtime
        ]
    variables = dims(shape)
    wide = [*zip(hit.dims, variables, strict=True)]
    wide += [(rt.variable, other.variable) for rt, other in zip(hit.runtime, runtime, strict=True)]
    swap = {old: new.as_expr() for old, new in wide}
    _, constraints = hit.substituted(swap)
    bounds = [Constraint(new.as_expr(), *old.bounds) for old, new in wide]
    return IndexingMap.of(
        variables,
        [],
        runtime=runtime,
        constraints=[c for c in (*constraints, *bounds) if not c.is_true],
    )

"""Edges of an instruction, refined by what the program around it determines.

Runtime variables become formulas (`runtime`), and reads are restricted to where a mask needs them
(`masks`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Final

from hlo.modules.module import Instruction
from indexing.dataflow.alike import evaluated_in_calls
from indexing.dataflow.branches import branch_edges, restrict_to_parts
from indexing.dataflow.equal_runtime import share_equal_values
from indexing.dataflow.kept_elements import kept_edges
from indexing.dataflow.masked_weights import weigh_edges
from indexing.dataflow.masks import (
    Conditions,
    can_be_decided,
    conditions,
    drop_mask_values,
    folded_pieces,
    name_mask_values,
)
from indexing.dataflow.scatter_batches import batch_edges
from indexing.dataflow.scatters import scatter_edges
from indexing.dataflow.value_pieces import Surroundings
from indexing.maps.arrays import ArrayRef
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.mask_values import mask_values
from indexing.maps.options import Options
from indexing.maps.runtime_variable import RuntimeVariable
from indexing.ops.access_edge import AccessEdge
from indexing.ops.base import MappedOp
from indexing.ops.control import Conditional
from indexing.ops.dynamic import DynamicUpdateSlice
from indexing.ops.scatter import Scatter
from indexing.ops.structured_ops import StructuredOp

FEW_PIECES: Final = 2
"""Exact pieces that are preferred to one `may` map: those on both sides of a window."""


def refine_edges(
    instruction: Instruction,
    edges: Iterable[AccessEdge],
    around: Surroundings | None,
    *,
    backward: bool,
    options: Options,
    calls: int = 0,
) -> Iterable[AccessEdge]:
    """Return edges with formulas for runtime values, where the result needs the operand.

    Args:
        around: what is known about the parameters of the computation: in the body of a loop.
        backward: maps lead from the result to operands.
        options: whether reads are restricted by masks, and what is assumed.
        calls: the number of calls around the computation whose arguments count.
    """
    limits: Conditions = {}
    if options.follows_masks:
        limits = conditions(instruction, around, options.runtime_masks, calls)
    of_runtime = options.follows_runtime_masks and around is None
    if backward:
        edges = _known_edges(instruction, edges, around, of_runtime, calls)
    if backward and options.assume and options.follows_masks:
        edges = weigh_edges(instruction, edges, of_runtime)
    is_restricted = of_runtime or around is not None
    if is_restricted and isinstance(instruction.op, Conditional):
        edges = branch_edges(instruction, instruction.op, edges, around, backward=backward)
    edges = tuple(edges)
    if not limits and not any(m.runtime for edge in edges for m in edge.maps):
        return edges
    return _restricted_edges(instruction, edges, limits, around, backward=backward)


def can_refine(instruction: Instruction, op: MappedOp) -> bool:
    """Return True if `refine_edges` may change edges that follow from an op and its shapes."""
    is_update = isinstance(op, Scatter) or has_exact_pieces(instruction)
    return is_update or reads_by_values(instruction) or can_be_decided(instruction)


def reads_by_values(instruction: Instruction) -> bool:
    """Return True if values of some operands decide which elements of others are read."""
    return isinstance(instruction.op, MappedOp) and instruction.op.values_decide_reads


def _restricted_edges(
    instruction: Instruction,
    edges: Iterable[AccessEdge],
    limits: Conditions,
    around: Surroundings | None,
    *,
    backward: bool,
) -> Iterator[AccessEdge]:
    """Yield edges with formulas for runtime values, within the limits of their operands."""
    for edge in edges:
        parts = limits.get(edge.operand)
        if parts is not None:
            if not parts:
                continue
            edge = edge.change_maps(partial(restrict_to_parts, parts, backward))
        if any(m.runtime for m in edge.maps):
            edge = edge.change_maps(lambda m: _fold(m, instruction, around))
        yield edge


def _known_edges(
    instruction: Instruction,
    edges: Iterable[AccessEdge],
    around: Surroundings | None,
    of_runtime: bool,
    calls: int,
) -> Iterable[AccessEdge]:
    """Return backward edges with what known indices, group sizes or keys decide."""
    if isinstance(instruction.op, Scatter):
        edges = scatter_edges(instruction, batch_edges(instruction, edges, calls), calls)
        is_restricted = of_runtime or around is not None
        return kept_edges(instruction, edges, around) if is_restricted else edges
    if reads_by_values(instruction):
        from indexing.dataflow.known_reads import known_edges  # few modules need it

        return known_edges(instruction, edges, calls)
    return edges


def _fold(
    m: IndexingMap, instruction: Instruction, around: Surroundings | None
) -> Iterator[IndexingMap]:
    """Yield the disjoint pieces of a map with formulas for its runtime values."""
    for piece in folded_pieces(m, around):
        yield drop_mask_values(piece, instruction)


def has_exact_pieces(instruction: Instruction) -> bool:
    """Return True if runtime values decide which elements of an operand are needed at all."""
    return isinstance(instruction.op, DynamicUpdateSlice)


def prefer_exact(
    instruction: Instruction,
    edges: Iterable[AccessEdge],
    exact: Iterable[AccessEdge],
    options: Options,
    calls: int = 0,
) -> Iterator[AccessEdge]:
    """Yield each edge, or its exact pieces if they depend on no runtime value, or are few.

    Args:
        calls: the number of calls around the computation whose arguments are no runtime values.
    """
    pieces = {(e.operand, e.operand_path, e.output_path): e for e in exact}
    few = FEW_PIECES if options.follows_masks and not _is_in_chain(instruction) else 0
    for edge in edges:
        other = pieces.get((edge.operand, edge.operand_path, edge.output_path), edge)
        runtime = [rt for m in other.maps for rt in m.runtime]
        are_few = len(other.maps) <= few or all(_is_known(rt, calls) for rt in runtime)
        yield other if are_few and not edge.is_exact else edge


def _is_known(rt: RuntimeVariable, calls: int) -> bool:
    """Return True for a value that follows from constants of the callers."""
    return isinstance(rt.array, ArrayRef) and evaluated_in_calls(rt.array, calls) is not None


def _is_in_chain(update: Instruction) -> bool:
    """Return True for one of several updates of an array, whose pieces would multiply."""
    base = update.operands[0]
    users = [user for user in update.users if user.operands[0] is update]
    return any(isinstance(each.op, DynamicUpdateSlice) for each in (base, *users))


def unfolded_edges(
    instruction: Instruction,
    edges: Iterable[AccessEdge],
    around: Surroundings | None,
    of_runtime: bool,
    *,
    backward: bool,
) -> Iterable[AccessEdge]:
    """Return edges without formulas for runtime values, and without masks that have no name.

    Args:
        around: what is known about the parameters of the computation: in the body of a loop.
        of_runtime: restrict branches to the runtime values that execute them.
        backward: maps lead from the result to operands.
    """
    if not isinstance(instruction.op, StructuredOp):
        return edges
    if (of_runtime or around is not None) and isinstance(instruction.op, Conditional):
        branches = branch_edges(instruction, instruction.op, edges, around, backward=backward)
        return [each.change_maps(partial(_possible_pieces, instruction)) for each in branches]
    return [
        edge.change_maps(lambda m: [drop_mask_values(m, instruction)]) if _has_masks(edge) else edge
        for edge in edges
    ]


def _possible_pieces(instruction: Instruction, m: IndexingMap) -> Iterator[IndexingMap]:
    """Yield the pieces of a map of a branch that some runtime values need."""
    if not mask_values(m):
        yield m
        return
    for piece in name_mask_values(m):
        shared = share_equal_values(drop_mask_values(piece, instruction)).simplify()
        if not shared.is_known_empty:
            yield shared


def _has_masks(edge: AccessEdge) -> bool:
    return any(mask_values(m) for m in edge.maps)

"""Edges made from the maps of one op."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

from hlo.modules.bind import why_unsupported
from hlo.modules.module import Instruction
from hlo.shapes.shape import Shape, leaves
from indexing.maps.answers import Unknown
from indexing.maps.arrays import ArrayRef, Path
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.reasons import Reason
from indexing.ops.access_edge import AccessEdge, bound_edge, identity
from indexing.ops.base import MappedOp, RoutingOp
from indexing.ops.needed_operands import NeededOperands


def routed_edges(
    op: RoutingOp,
    instruction: Instruction,
    operands: Collection[int],
    outputs: Collection[Path],
) -> Iterator[AccessEdge]:
    """Yield the edges to these outputs, or those from these operands, whichever are fewer."""
    if len(outputs) <= len(operands):
        for output in outputs:
            operand, path = op.route(output)
            yield _forwarding_edge(instruction, operand, path, output)
        return
    for operand in operands:
        for path, _ in leaves(instruction.operands[operand].shape):
            back = op.route_back(operand, path)
            if back is not None:
                yield _forwarding_edge(instruction, operand, path, back)


def _forwarding_edge(
    instruction: Instruction, operand: int, path: Path, output: Path
) -> AccessEdge:
    maps = identity(ArrayRef(instruction, output))
    return bound_edge(instruction, AccessEdge(operand, path, output, maps))


def edge_of(
    instruction: Instruction, operand: int, output: Path, maps: tuple[IndexingMap, ...] | Unknown
) -> AccessEdge:
    if isinstance(maps, Unknown):
        reason = f"{instruction.opcode} `{instruction.name}`: {maps.reason}"
        return AccessEdge(operand, (), output, (), Unknown(reason, instruction))
    placed = tuple([_with_sources(m, instruction) for m in maps])
    if "may" not in [m.grade for m in maps]:
        return AccessEdge(operand, (), output, placed)
    op = instruction.op
    assert isinstance(op, MappedOp)
    obstacle = op.why_may(operand)
    reasons = (Reason(obstacle, instruction),) if obstacle else ()
    return AccessEdge(operand, (), output, placed, None, reasons)


def graded_edge(
    edge: AccessEdge, instruction: Instruction, needed: NeededOperands, *, reads_several: bool
) -> AccessEdge:
    """Return an edge with the grade of the reads of the called computation."""
    if edge.operand in needed.certain:
        return replace(edge.change_maps(lambda m: [m.with_grade("exact")]), reasons=())
    obstacle = needed.obstacle(edge.operand, reads_several=reads_several)
    if not obstacle or all(m.grade == "may" for m in edge.maps):
        return edge
    return edge.over_approximate(Reason(obstacle, instruction))


def _with_sources(op_map: IndexingMap, instruction: Instruction) -> IndexingMap:
    """Return a map of an op with the operands of `instruction` as runtime variable sources."""
    if not op_map.runtime:
        return op_map
    operands = instruction.operands
    runtime = [
        replace(rt, array=ArrayRef(operands[rt.source])) if isinstance(rt.source, int) else rt
        for rt in op_map.runtime
    ]
    return replace(op_map, runtime=tuple(runtime))


def unknown_edges(
    instruction: Instruction, operands: Iterable[int], outputs: Iterable[Path]
) -> Iterator[AccessEdge]:
    """Yield unknown edges: no maps are defined for the opcode, or not for this form of it."""
    reason = why_unsupported(instruction) or "no maps are defined for this opcode"
    unknown = Unknown(
        f"{instruction.opcode} `{instruction.name}`: {reason}",
        instruction,
    )
    for output in outputs:
        for operand in operands:
            for path, shape in leaves(instruction.operands[operand].shape):
                if isinstance(shape, Shape):
                    yield AccessEdge(operand, path, output, (), unknown)

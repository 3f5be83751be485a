"""Evaluations: the maps from the result of an instruction to every array that its loop evaluates.

A fusion is one loop over the elements of its result.  For each element, the loop evaluates every
value that the element needs, as often as paths lead to it.  Paths with equal maps are one
evaluation; so are equal maps from several outputs, which one loop computes if they have equal
dimensions.  An op without an element rule, such as a sort, is computed as a whole.

A scatter has loops of its own: one copies the base, the others run over the index array and over
the updates.  Whether an update changes an element is only known at run time, so a loop over the
result would have to read all updates for each element.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from hlo.modules.module import Instruction
from hlo.shapes.shape import Shape, leaves, unbounded_leaf
from indexing.dataflow.edges import LocalEdges
from indexing.dataflow.needed import needed_by
from indexing.dataflow.soundness import require_sound
from indexing.dataflow.walk import Walk
from indexing.maps.arrays import ArrayRef
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.map_set import MapSet
from indexing.maps.options import Options
from indexing.memory.movement.amounts import Maps
from indexing.ops.base import RoutingOp
from indexing.ops.element import OpaqueRule, element_of
from indexing.ops.scatter import Scatter
from indexing.ops.structured_ops import InlineOp, StructuredOp
from simplifier.unknown import Unknown, first_unknown

WALK: Final = Walk(LocalEdges(Options(keep_multiplicity=True)))


@dataclass(frozen=True, slots=True)
class Evaluations:
    """The maps from all outputs of an instruction to one array.

    Attributes:
        maps: the maps; the array is an operand of the instruction, or inside of a fusion.
        unknown: why maps may be missing, or None.
        uncounted: why the points of the maps are not the number of evaluations, or None.
    """

    maps: Maps = ()
    unknown: Unknown | None = None
    uncounted: Unknown | None = None


@dataclass(frozen=True, slots=True)
class LoopEvaluations:
    """The evaluations of the loop of an instruction.

    Attributes:
        instruction: the instruction.
        operands: those of each array of the operands, by operand number.
        inner: those of the arrays inside of a fusion, in text order.
    """

    instruction: Instruction
    operands: dict[tuple[int, ArrayRef], Evaluations]
    inner: dict[ArrayRef, Evaluations]


def evaluations(instruction: Instruction) -> LoopEvaluations:
    """Return the evaluations of a fusion, call or other instruction.

    Raises:
        HloError: the instruction, or one of a computation it calls, is invalid.

    >>> import hlo
    >>> root = hlo.parse('''
    ... fused { p = f32[9] parameter(0)  n = f32[9] negate(p)
    ...   a = f32[8] slice(n), slice={[0:8]}  b = f32[8] slice(n), slice={[1:9]}
    ...   ROOT s = f32[8] add(a, b) }
    ... ENTRY e { x = f32[9] parameter(0)
    ...   ROOT f = f32[8] fusion(x), kind=kLoop, calls=fused }''').entry.root
    >>> for array, each in evaluations(root).inner.items():
    ...     print(array.instruction.name, *each.maps)
    n (d0) -> (d0 + 1), domain: d0 in [0, 7] (d0) -> (d0), domain: d0 in [0, 7]
    a (d0) -> (d0), domain: d0 in [0, 7]
    b (d0) -> (d0), domain: d0 in [0, 7]
    s (d0) -> (d0), domain: d0 in [0, 7]
    """
    scatter = _scatter_of(instruction)
    by_output = list(map_sets(instruction).values())
    if scatter is not None:
        by_output = list(_loops_of(scatter, by_output, is_fused=scatter is not instruction))
    arrays: dict[ArrayRef, list[MapSet]] = {}
    for reached in by_output:
        for array, map_set in reached.items():
            arrays.setdefault(array, []).append(map_set)
    whole = computed_as_a_whole(instruction)
    ends = operand_arrays(instruction)
    operands = {key: _evaluations(arrays.get(end, ()), whole, end) for key, end in ends.items()}
    inner = {}
    for array in sorted(arrays, key=lambda array: array.instruction.index):
        if array not in ends.values():
            inner[array] = _evaluations(arrays[array], whole, array)
    return LoopEvaluations(instruction, operands, inner)


def _scatter_of(instruction: Instruction) -> Instruction | None:
    """Return the instruction, or the root of the fusion, if it is a scatter."""
    root = instruction
    if isinstance(instruction.op, InlineOp):
        root = instruction.called_computations[0].root
    return root if isinstance(root.op, Scatter) else None


def _loops_of(
    scatter: Instruction, by_output: Iterable[dict[ArrayRef, MapSet]], *, is_fused: bool
) -> Iterator[dict[ArrayRef, MapSet]]:
    """Yield the maps of each loop: over the results, the bases, the indices and the updates.

    Bases may be updated in place or replaced, and updates may be out of bounds: these reads are
    upper bounds.
    """
    for reached in by_output:
        yield {array: maps for array, maps in reached.items() if array.instruction is scatter}
    indices = scatter.operands[len(scatter.operands) // 2]
    for operand in dict.fromkeys(scatter.operands):
        array = ArrayRef(operand)
        loop = WALK.backward(array) if is_fused else {array: _identity(array)}
        if operand is not indices:
            loop = {
                each: maps.like([m.with_grade("may") for m in maps.effective])
                for each, maps in loop.items()
            }
        yield loop


def _identity(array: ArrayRef) -> MapSet:
    """Return the identity map of an array; no map if its size is unknown: such are not counted."""
    shape = array.array_shape
    if shape is None or unbounded_leaf(shape):
        return MapSet()
    return MapSet([IndexingMap.identity(shape)])


def _evaluations(
    sets: list[MapSet] | tuple[()], whole: dict[Instruction, Unknown], array: ArrayRef
) -> Evaluations:
    unknown = first_unknown(*[each.unknown for each in sets])
    lost = [each.uncounted for each in sets]
    uncounted = first_unknown(unknown, whole.get(array.instruction), *lost)
    maps: dict[IndexingMap, None] = {}
    for each in sets:
        maps.update(dict.fromkeys(each.effective))
    return Evaluations(tuple(maps), unknown, uncounted)


def operand_arrays(instruction: Instruction) -> dict[tuple[int, ArrayRef], ArrayRef]:
    """Return the arrays at which the maps of an instruction end, by operand number and array.

    For a fusion, these are the leaves of the parameters of its computation.
    """
    ends: dict[tuple[int, ArrayRef], ArrayRef] = {}
    holders = instruction.operands
    if isinstance(instruction.op, InlineOp):
        holders = tuple(instruction.called_computations[0].parameters)
    for number, (operand, holder) in enumerate(zip(instruction.operands, holders, strict=True)):
        for path, leaf in leaves(operand.shape):
            if isinstance(leaf, Shape):
                ends[number, ArrayRef(operand, path)] = ArrayRef(holder, path)
    return ends


def map_sets(instruction: Instruction) -> dict[ArrayRef, dict[ArrayRef, MapSet]]:
    """Return the maps from each output of an instruction to the arrays of `evaluations`."""
    require_sound([instruction])
    outputs = [ArrayRef(instruction, path) for path, _ in leaves(instruction.shape)]
    if isinstance(instruction.op, InlineOp):
        root = instruction.called_computations[0].root
        WALK.prepare(needed_by([root]), backward=True)
        return {output: WALK.backward(ArrayRef(root, output.path)) for output in outputs}
    WALK.prepare([instruction], backward=True)
    return {output: dict(_operand_sets(output)) for output in outputs}


def _operand_sets(output: ArrayRef) -> Iterator[tuple[ArrayRef, MapSet]]:
    sets: dict[ArrayRef, MapSet] = {}
    for edge in WALK.backward_edges(output, fold=True):
        end = ArrayRef(output.instruction.operands[edge.operand], edge.operand_path)
        if end not in sets:
            sets[end] = WALK.edges.empty_map_set(output, end)
        simpler = map(WALK.edges.options.simplified, edge.maps)
        sets[end].extend(simpler, edge.unknown, edge.reasons)
    yield from sets.items()


def computed_as_a_whole(instruction: Instruction) -> dict[Instruction, Unknown]:
    """Return the instructions in a fusion that an op without an element rule depends on.

    The loop of the fusion does not determine how often such an op evaluates them.
    """
    if not isinstance(instruction.op, InlineOp):
        return {}
    reasons: dict[Instruction, Unknown] = {}
    for inner in instruction.called_computations[0].instructions:
        if is_whole(inner):
            reason = f"{inner.opcode} `{inner.name}` has no per-element rule"
            for needed in needed_by(inner.operands):
                reasons.setdefault(needed, Unknown(reason, inner))
    return reasons


def is_whole(instruction: Instruction) -> bool:
    """Return True if an op has no element rule, and reads its operands as a whole."""
    op = instruction.op
    if isinstance(op, InlineOp | RoutingOp) or instruction.opcode == "parameter":
        return False
    if isinstance(op, StructuredOp) or op is None:
        return True
    return isinstance(element_of(instruction), OpaqueRule)

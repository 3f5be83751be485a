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

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from hlo.modules.forms import InstructionForm
from hlo.modules.module import Instruction
from hlo.shapes.shape import Shape, leaves, unbounded_leaf
from indexing.dataflow.edges import LocalEdges
from indexing.dataflow.needed import dependencies_of
from indexing.dataflow.soundness import require_sound
from indexing.dataflow.walk import Walk
from indexing.maps.arrays import ArrayRef
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.map_set import MapSet
from indexing.maps.options import Options
from indexing.memory.movement.point_counts import Maps
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
    if not isinstance(instruction.op, InlineOp):
        return LoopEvaluations(instruction, _of_operands(instruction), {})
    by_output = list(map_sets(instruction).values())
    loops = [by_output]
    root = instruction.called_computations[0].root
    if isinstance(root.op, Scatter):
        own = [{a: maps for a, maps in each.items() if a.instruction is root} for each in by_output]
        loops = [own, *[[loop] for loop in _loops_of(root)]]
    reached = _evaluations_of_arrays(loops, computed_as_a_whole(instruction))
    ends = operand_arrays(instruction)
    operands = {key: reached.get(end, Evaluations()) for key, end in ends.items()}
    outer = set(ends.values())
    inner = {array: each for array, each in reached.items() if array not in outer}
    return LoopEvaluations(instruction, operands, inner)


def _evaluations_of_arrays(
    loops: Sequence[Sequence[dict[ArrayRef, MapSet]]], whole: dict[Instruction, Unknown]
) -> dict[ArrayRef, Evaluations]:
    """Return the evaluations of each array, in text order."""
    arrays = dict.fromkeys([array for loop in loops for each in loop for array in each])
    in_order = sorted(arrays, key=lambda array: array.instruction.index)
    if any(len(loop) != 1 for loop in loops) or len(loops) != 1:
        every = [(array, whole.get(array.instruction)) for array in in_order]
        return {array: _evaluations(_sets_of(array, loops), own) for array, own in every}
    ((sets,),) = loops
    made: dict[tuple[MapSet, Unknown | None], Evaluations] = {}  # arrays share few sets
    for array in in_order:
        key = sets[array], whole.get(array.instruction)
        if key not in made:
            made[key] = _evaluations([[key[0]]], key[1])
    return {array: made[sets[array], whole.get(array.instruction)] for array in in_order}


def _of_operands(instruction: Instruction) -> dict[tuple[int, ArrayRef], Evaluations]:
    """Return the evaluations of the operands of an op: an array may be several of them."""
    require_sound([instruction])
    WALK.prepare([instruction], backward=True)
    sets: dict[tuple[int, ArrayRef], list[MapSet]] = {
        key: [] for key in operand_arrays(instruction)
    }
    if isinstance(instruction.op, Scatter):
        for number, array in sets:
            sets[number, array].append(_loop_maps(instruction, number, _identity(array)))
    else:
        for path, _ in leaves(instruction.shape):
            output = ArrayRef(instruction, path)
            for key, maps in _operand_sets(output).items():
                if key in sets:  # not a token
                    sets[key].append(maps)
    return {key: _evaluations([own]) for key, own in sets.items()}


def _loops_of(scatter: Instruction) -> Iterator[dict[ArrayRef, MapSet]]:
    """Yield the maps of each loop of a fused scatter: over the bases, indices and updates."""
    for number, operand in enumerate(scatter.operands):
        reached = WALK.backward(ArrayRef(operand))
        yield {array: _loop_maps(scatter, number, maps) for array, maps in reached.items()}


def _loop_maps(scatter: Instruction, number: int, maps: MapSet) -> MapSet:
    """Return the maps of the loop over an operand of a scatter.

    Bases may be updated in place or replaced, and updates may be out of bounds: these reads are
    upper bounds.
    """
    if number == len(scatter.operands) // 2:  # the indices
        return maps
    return maps.like([m.with_grade("may") for m in maps.effective])


def _identity(array: ArrayRef) -> MapSet:
    """Return the identity map of an array; no map if its size is unknown: such are not counted."""
    shape = array.array_shape
    if shape is None or unbounded_leaf(shape):
        return MapSet()
    return MapSet([IndexingMap.identity(shape)])


def _sets_of(
    array: ArrayRef, loops: Sequence[Sequence[dict[ArrayRef, MapSet]]]
) -> list[list[MapSet]]:
    """The maps to an array, by loop."""
    return [[each[array] for each in loop if array in each] for loop in loops]


def _evaluations(loops: Sequence[Sequence[MapSet]], whole: Unknown | None = None) -> Evaluations:
    """Equal maps of one loop are one evaluation; those of several loops are several."""
    sets = [each for loop in loops for each in loop]
    unknown = first_unknown(*[each.unknown for each in sets])
    uncounted = first_unknown(unknown, whole, *[each.uncounted for each in sets])
    maps = [dict.fromkeys([m for each in loop for m in each.effective]) for loop in loops]
    return Evaluations(tuple([m for loop in maps for m in loop]), unknown, uncounted)


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
    """Return the maps from each output of a fusion or call to the arrays of `evaluations`."""
    require_sound([instruction])
    root = instruction.called_computations[0].root
    WALK.prepare(dependencies_of([root]), backward=True)
    outputs = [ArrayRef(instruction, path) for path, _ in leaves(instruction.shape)]
    shared = WALK.compositions(instruction.module)
    return {output: WALK.backward(ArrayRef(root, output.path), shared=shared) for output in outputs}


def _operand_sets(output: ArrayRef) -> dict[tuple[int, ArrayRef], MapSet]:
    sets: dict[tuple[int, ArrayRef], MapSet] = {}
    for edge in WALK.backward_edges(output, fold=True):
        end = ArrayRef(output.instruction.operands[edge.operand], edge.operand_path)
        key = edge.operand, end
        if key not in sets:
            sets[key] = WALK.edges.empty_map_set(output, end)
        simpler = map(WALK.edges.options.simplify_map, edge.maps)
        sets[key].extend(simpler, edge.unknown, edge.reasons)
    return sets


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
            for needed in dependencies_of(inner.operands):
                reasons.setdefault(needed, Unknown(reason, inner))
    return reasons


def is_whole(instruction: Instruction) -> bool:
    """Return True if an op has no element rule, and reads its operands as a whole."""
    form = instruction.form
    if form is None:
        return _is_whole(instruction)
    known: dict[InstructionForm, bool] = instruction.module.memo.setdefault(is_whole, {})
    is_known = known.get(form)
    if is_known is None:
        is_known = known[form] = _is_whole(instruction)
    return is_known


def _is_whole(instruction: Instruction) -> bool:
    op = instruction.op
    if isinstance(op, InlineOp | RoutingOp) or instruction.opcode == "parameter":
        return False
    if isinstance(op, StructuredOp) or op is None:
        return True
    return isinstance(element_of(instruction), OpaqueRule)

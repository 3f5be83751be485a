"""Level ``counts``: how many times each output element reads each parameter element.

The reads of an output element are counted along all paths: a value with two uses is read twice, as
if every use computed it again.  These numbers are those of the occurrences of the parameter element
in the formula of the output element, so sharing, fusing and inlining do not change them.

Equal counts are proved, by equal maps or by enumeration; different counts are no fault of a program
and cannot be observed by executing it, so a difference is a reason, not a verdict.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import prod
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hlo.modules.module import Computation, Instruction
from hlo.shapes.shape import leaves
from indexing.dataflow.called import callees
from indexing.dataflow.edges import LocalEdges
from indexing.dataflow.needed import dependencies_of
from indexing.dataflow.soundness import require_sound
from indexing.dataflow.walk import Walk
from indexing.equivalence.pairing import Pair, Side
from indexing.maps.answers import Unknown
from indexing.maps.arrays import ArrayRef, Path
from indexing.maps.equality import difference
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.multiplicity import multiplicity
from indexing.maps.options import Options
from indexing.maps.properties import is_injective
from indexing.ops.access_edge import AccessEdge, why_unbounded
from indexing.ops.element import declarations_of
from indexing.ops.structured_ops import InlineOp
from simplifier.unknown import first_unknown

Paths: TypeAlias = Counter[IndexingMap]
"""Maps along paths between two arrays, with the number of paths that have each map."""

PathsByArray: TypeAlias = Mapping[ArrayRef, Paths]

MAX_PATHS: Final = 64
"""Limit on different maps between two arrays."""
MAX_PAIRS: Final = 1 << 20
"""Limit on pairs of an output element and a parameter element whose counts are enumerated."""
MAX_COUNT: Final = 1 << 62


class PathCounts:
    """The paths from the outputs of one program to its parameter leaves."""

    def __init__(self, side: Side) -> None:
        self.side = side
        self.walk = Walk(LocalEdges(Options(exact=True, keep_multiplicity=True)))
        self.summaries: dict[tuple[Computation, Path], PathsByArray | Unknown] = {}
        needed = dependencies_of([side.root])
        require_sound(needed)
        computations, instructions = _inlined_computations(needed)
        self.unknown = first_unknown(*map(_uncounted_op, instructions))
        if self.unknown is not None:
            return
        own = [i for i in instructions if not isinstance(i.op, InlineOp)]
        self.walk.prepare(own, backward=True)
        for computation in computations:
            for path, _ in leaves(computation.root.shape):
                root = ArrayRef(computation.root, path)
                self.summaries[computation, path] = self._to_parameters(root)

    def of_output(self, output: int) -> list[Paths] | Unknown:
        """Return the paths from an output to each input, in the order of the inputs."""
        if self.unknown is not None:
            return self.unknown
        paths = [path for path, _ in leaves(self.side.root.shape)]
        start = ArrayRef(self.side.root, paths[self.side.outputs[output]])
        reached = self._to_parameters(start)
        if isinstance(reached, Unknown):
            return reached
        return [reached.get(ArrayRef(*leaf), Counter()) for leaf in self.side.inputs]

    def _to_parameters(self, start: ArrayRef) -> PathsByArray | Unknown:
        """Return the paths to parameters: users precede operands, each array is visited once."""
        unknown = why_unbounded(start)
        if unknown is not None:
            return unknown
        waiting: dict[ArrayRef, Paths] = {start: Counter(self.walk.edges.identity(start))}
        reached: dict[ArrayRef, Paths] = {}
        while waiting:
            array = max(waiting, key=lambda array: array.instruction.index)
            here = waiting.pop(array)
            if array.instruction.opcode == "parameter":
                reached[array] = here
                continue
            steps = self._steps(array)
            if isinstance(steps, Unknown):
                return steps
            for to, maps in steps:
                there = waiting.setdefault(to, Counter())
                for first, paths_before in here.items():
                    for second, paths_after in maps.items():
                        m = self.walk.edges.options.compose_maps(first, second)
                        if not m.is_known_empty:
                            there[m] += paths_before * paths_after
                if len(there) > MAX_PATHS:
                    reason = (
                        f"there are more than {MAX_PATHS} different maps to `{to.instruction.name}`"
                    )
                    return Unknown(reason, to.instruction)
        return reached

    def _steps(self, array: ArrayRef) -> list[tuple[ArrayRef, Paths]] | Unknown:
        """Return the paths from an array to the operands of its instruction."""
        instruction = array.instruction
        if isinstance(instruction.op, InlineOp):
            summary = self.summaries[instruction.called_computations[0], array.path]
            if isinstance(summary, Unknown):
                return summary
            numbers = {p: k for k, p in enumerate(instruction.called_computations[0].parameters)}
            return [
                (ArrayRef(instruction.operands[numbers[end.instruction]], end.path), paths)
                for end, paths in summary.items()
            ]
        steps = []
        for edge in self.walk.backward_edges(array, fold=True):
            reason = _why_uncounted(edge)
            if reason is not None:
                return Unknown(f"`{instruction.name}`: {reason}", instruction)
            to = ArrayRef(instruction.operands[edge.operand], edge.operand_path)
            steps.append((to, Counter(edge.maps)))
        return steps


def _inlined_computations(
    needed: Iterable[Instruction],
) -> tuple[list[Computation], list[Instruction]]:
    """Return the computations of fusions and calls, callees first, and all needed instructions."""
    instructions = list(needed)
    called = {c for i in instructions if isinstance(i.op, InlineOp) for c in i.called_computations}
    computations = []
    for computation in reversed(callees(instructions)):
        if computation in called:
            computations.append(computation)
            inner = dependencies_of([computation.root])
            instructions.extend(inner)
            called.update(
                c for i in inner if isinstance(i.op, InlineOp) for c in i.called_computations
            )
    return computations[::-1], instructions


def compare_counts(pair: Pair) -> Unknown | None:
    """Return None if all read counts are equal, else why they are not proved equal."""
    counts = [PathCounts(side) for side in (pair.before, pair.after)]
    for output in range(len(pair.before.outputs)):
        before, after = [each.of_output(output) for each in counts]
        if isinstance(before, Unknown):
            return before
        if isinstance(after, Unknown):
            return after
        for number, paths in enumerate(zip(before, after, strict=True)):
            root, (parameter, path) = pair.before.root, pair.before.inputs[number]
            array = ArrayRef(root, [p for p, _ in leaves(root.shape)][pair.before.outputs[output]])
            reason = _difference(*paths, array, ArrayRef(parameter, path))
            if reason is not None:
                return Unknown(f"output {output}, parameter {number}: {reason}")
    return None


def _uncounted_op(instruction: Instruction) -> Unknown | None:
    """Return why the reads of an instruction are not counted, or None."""
    if declarations_of(instruction).counts_reads or isinstance(instruction.op, InlineOp):
        return None
    return Unknown(f"the reads of `{instruction.opcode}` are not counted", instruction)


def _why_uncounted(edge: AccessEdge) -> str | None:
    """Return why the points of an edge's maps are not its reads, or None."""
    if edge.unknown is not None:
        return edge.unknown.reason
    if any(m.grade == "may" for m in edge.maps) or edge.control:
        return "the reads are over-approximated"
    if any(m.runtime for m in edge.maps):
        return "reads at runtime indices are not counted"
    return None


def _difference(before: Paths, after: Paths, output: ArrayRef, end: ArrayRef) -> str | None:
    """Return why two multisets of maps do not have the same counts, or None if they have."""
    mine, theirs = before - after, after - before
    if not mine and not theirs:
        return None
    if all(is_injective(_all_points(m)) is True for m in (*mine, *theirs)) and _are_balanced(
        mine, theirs
    ):
        return None
    sizes = [array.array_shape.dims for array in (output, end) if array.array_shape is not None]
    return _enumerated_difference(mine, theirs, (*sizes[0], *sizes[1]), len(sizes[0]))


def _enumerated_difference(
    before: Paths, after: Paths, extents: tuple[int, ...], rank: int
) -> str | None:
    """Return a pair of elements with different counts, or why there are too many pairs.

    Args:
        extents: sizes of the output and of the parameter.
        rank: number of dimensions of the output.
    """
    if prod(extents) > MAX_PAIRS:
        return f"there are more than {MAX_PAIRS} pairs of elements to count"
    counts = pair_counts(before, extents), pair_counts(after, extents)
    if isinstance(counts[0], Unknown):
        return counts[0].reason
    if isinstance(counts[1], Unknown):
        return counts[1].reason
    change = counts[1] - counts[0]
    points = np.argwhere(change)
    if not len(points):
        return None
    point = tuple(points[0].tolist())
    more = int(change[point])
    noun = "time" if abs(more) == 1 else "times"
    where = f"{list(point[:rank])} reads {list(point[rank:])}"
    return f"{where} {abs(more)} {noun} more {'after' if more > 0 else 'before'}"


def _all_points(m: IndexingMap) -> IndexingMap:
    """Return the map from every point of a domain to its output element and the element read.

    If it is injective, no output element reads an element twice through `m`.
    """
    return replace(m, dims=(*m.dims, *m.ranges), ranges=(), results=_pairs(m).results)


def _pairs(m: IndexingMap) -> IndexingMap:
    """Return the map with the output element as further results."""
    return replace(m, results=(*[v.as_expr() for v in m.dims], *m.results))


def _are_balanced(before: Paths, after: Paths) -> bool:
    """Return True if each relation has as many paths before as after."""
    classes: list[tuple[IndexingMap, int]] = []
    signed = [*before.items(), *[(m, -count) for m, count in after.items()]]
    for m, count in signed:
        for k, (representative, total) in enumerate(classes):
            if difference(representative, m) is None:
                classes[k] = representative, total + count
                break
        else:
            classes.append((m, count))
    return all(total == 0 for _, total in classes)


def pair_counts(paths: Paths, extents: tuple[int, ...]) -> NDArray[Any] | Unknown:
    """Return the number of reads of each pair of an output element and a parameter element."""
    counts: NDArray[Any] = np.zeros(extents, np.int64)
    reads = 0
    for m, count in paths.items():
        own = multiplicity(_pairs(m))
        if isinstance(own, Unknown):
            return own
        each, total = own.counts(extents), own.total
        if isinstance(each, Unknown):
            return each
        if isinstance(total, Unknown):
            return total
        reads += count * total
        if reads >= MAX_COUNT:
            return Unknown("the counts overflow")
        counts += count * each
    return counts

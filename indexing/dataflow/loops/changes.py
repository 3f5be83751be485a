"""The elements of a carried array that each iteration may change.

An element that no iteration after time T changes has its final value at time T.  Whether it has it
is decided by the condition at times before T only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from indexing.dataflow.copies import origin_of_copy
from indexing.dataflow.loops.iteration import Iteration
from indexing.dataflow.loops.steps import for_any_values, timed_maps
from indexing.dataflow.runtime import fold_runtime
from indexing.dataflow.soundness import fault_of
from indexing.maps.arrays import ArrayRef, Path
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.runtime_variable import RuntimeVariable
from indexing.ops.dynamic import DynamicUpdateSlice
from simplifier.unknown import Unknown

MAX_UPDATES: Final = 16
"""Limit on the updates of one array in one iteration."""


def changing_elements(iteration: Iteration, leaf: Path) -> list[IndexingMap] | None:
    """Return maps whose domain ``(d, t)`` has the elements that iteration ``t - 1`` may change.

    None if any iteration may change any element: the body does not only update the array.
    """
    changes: list[IndexingMap] = []
    array = origin_of_copy(ArrayRef(iteration.body.root, leaf))
    for _ in range(MAX_UPDATES):
        if array == ArrayRef(iteration.parameter, leaf):
            return changes
        op, operands = array.instruction.op, array.instruction.operands
        if not isinstance(op, DynamicUpdateSlice) or fault_of(array.instruction):
            return None
        _, windows, *_ = op.reads(array.instruction.shape, tuple([o.shape for o in operands]))
        if isinstance(windows, Unknown):
            return None
        for window in windows:
            placed = replace(window, runtime=tuple(_place_sources(window.runtime, array)))
            for piece in fold_runtime(placed, iteration):
                changes += [for_any_values(m, iteration) for m in timed_maps(piece, iteration)]
        array = origin_of_copy(ArrayRef(operands[0], (), array.calls))
    return None


def _place_sources(runtime: Iterable[RuntimeVariable], at: ArrayRef) -> Iterator[RuntimeVariable]:
    """Yield the runtime variables of the op of an instruction with its operands as sources."""
    for rt in runtime:
        assert isinstance(rt.source, int)
        source = ArrayRef(at.instruction.operands[rt.source], (), at.calls)
        yield replace(rt, array=source)

"""Waves: blocks that run in lockstep and share the loads of each step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np

from indexing.maps.arrays import ArrayRef
from indexing.tiling.loops.axes import Axes, IntArray, StepAxis
from indexing.tiling.loops.block_figures import bytes_of
from indexing.tiling.loops.phases import LoopPhase, PhaseReads
from indexing.tiling.loops.set_tables import SetTable
from indexing.tiling.loops.step_loads import StepLoads, step_loads
from indexing.tiling.loops.step_sets import StepSets
from simplifier.unknown import Unknown


def wave_bytes(
    phases: Sequence[LoopPhase],
    axes: Axes,
    blocks: frozenset[int],
    tables: Mapping[ArrayRef, SetTable],
    order: IntArray,
    wave: int,
) -> int | Unknown:
    """Return the bytes that waves of `wave` blocks load, each step's elements once in a wave.

    Args:
        phases, axes, blocks, tables: as for `measure`.
        order: the row-major numbers of the blocks, in the order in which they start.
        wave: the number of blocks that run at once.
    """
    counts = [axes[axis].count if axis in blocks else 1 for axis in sorted({*blocks})]
    index = np.stack(np.unravel_index(order, counts or [1]))
    place = {axis: index[k] for k, axis in enumerate(sorted(blocks))}
    loads = step_loads(phases, axes, tables)
    if isinstance(loads, Unknown):
        return loads
    total = 0
    for each in loads:
        own = _loads(each, axes, tables[each.array], place, wave)
        if isinstance(own, Unknown):
            return own
        total += bytes_of(each.array, own)
    return total


def _loads(
    each: StepLoads, axes: Axes, table: SetTable, place: Mapping[int, IntArray], wave: int
) -> int | Unknown:
    """Return the elements of one array that all waves load."""
    sets, along = each.sets, each.along
    own = [axis for axis in sets.axes if axis in place]
    numbers = np.zeros(len(next(iter(place.values()), np.zeros(1))), np.int64)
    for axis in own:
        numbers = numbers * axes[axis].count + place[axis]
    if not _is_disjoint(sets, each.reads, axes, table, own):
        return _listed_loads(each.reads, axes, table, own, along, numbers, wave)
    changed = sets.changes(along)
    loads = sets.count().along(changed.axes) * changed.values
    others = tuple([k for k, axis in enumerate(changed.axes) if axis not in own])
    by_block = loads.sum(axis=others).reshape(-1)
    return sum(
        int(by_block[np.unique(numbers[start : start + wave])].sum())
        for start in range(0, len(numbers), wave)
    )


def _is_disjoint(
    sets: StepSets, each: PhaseReads, axes: Axes, table: SetTable, own: Sequence[int]
) -> bool:
    """Return True if blocks with different indices have no element in common, in any step."""
    whole = dict(axes) | {axis: StepAxis(axes[axis].size, axes[axis].size) for axis in own}
    united = table.union(each.reads, whole)
    if isinstance(united, Unknown):
        return False
    count, places = sets.count(), [sets.axes.index(axis) for axis in own]
    by_step = count.values.sum(axis=tuple(places), keepdims=True)
    return bool(np.array_equal(by_step, united.count().along(sets.axes)))


def _listed_loads(
    each: PhaseReads,
    axes: Axes,
    table: SetTable,
    own: Sequence[int],
    along: Sequence[int],
    numbers: IntArray,
    wave: int,
) -> int | Unknown:
    """Return the elements that all waves load, of blocks with elements in common."""
    sets = table.listed(each.reads, axes)
    if isinstance(sets, Unknown):
        return sets
    rows = np.arange(prod(sets.shape)).reshape(sets.shape)
    order = [sets.axes.index(axis) for axis in (*own, *[a for a in along if a in sets.axes])]
    rest = [k for k in range(len(sets.axes)) if k not in order]
    tiles = rows.transpose([*order, *rest]).reshape(prod([axes[a].count for a in own]), -1)
    if set(along) - set(sets.axes):
        return Unknown("a loop around those on which a read depends has several steps")
    changed = sets.changes(along)
    order = [changed.axes.index(axis) for axis in (*own, *along)]
    rest = [k for k in range(len(changed.axes)) if k not in order]
    flags = changed.values.transpose([*order, *rest]).reshape(tiles.shape)
    total = 0
    for start in range(0, len(numbers), wave):
        chosen = np.unique(numbers[start : start + wave])
        for step in range(tiles.shape[1]):
            moving = chosen[flags[chosen, step]]
            total += sets.elements_of(tiles[moving, step].tolist())
    return total

"""Accumulators of a block: the tiles that it computes and keeps in registers or in VMEM."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from indexing.devices.tpus import padded_bytes
from indexing.maps.arrays import ArrayRef
from indexing.maps.indexing_map import IndexingMap
from indexing.ops.convolution import Convolution
from indexing.ops.dot import Dot
from indexing.tiling.loops.axes import Axes
from indexing.tiling.loops.loop_model import LoopModel
from indexing.tiling.loops.phases import LoopPhase
from simplifier.unknown import Unknown


class Accumulators(NamedTuple):
    """The registers and bytes of accumulators: the most of any phase of a block.

    Attributes:
        registers: their elements, one 32-bit register each.
        vmem_bytes: their bytes in VMEM, where each tile is padded.
    """

    registers: int
    vmem_bytes: int


def accumulators_of(
    model: LoopModel, phases: Sequence[LoopPhase], axes: Axes
) -> Accumulators | Unknown:
    """Return the most accumulators of a phase.

    The tiles of the dots and convolutions of a phase, those in its iterations included, are held
    together: ``bm * bn`` of a dot, ``bm * (dv + bk)`` of an attention.  A phase without any holds
    the largest tile of what it reduces, such as a tile of rows.
    """
    most = Accumulators(0, 0)
    for phase in phases:
        tiles: dict[tuple[ArrayRef, IndexingMap], Accumulators] = {}
        rows = Accumulators(0, 0)
        for nest in phase.nests:
            for key in nest.computed:
                if isinstance(key.array.instruction.op, Dot | Convolution):
                    tile = _tile(model, key.array, key.map, axes)
                    if isinstance(tile, Unknown):
                        return tile
                    # one instruction in two nests that walk in step is computed once
                    tiles[key.array, _align_loops(key.map, phase)] = tile
            read = list(nest.operands)
            if nest.key is None:
                read.append((model.array, IndexingMap.identity(model.shape)))
            for array, to_array in read:
                tile = _tile(model, array, to_array, axes)
                rows = rows if isinstance(tile, Unknown) else _larger(rows, tile)
        held = Accumulators(*map(sum, zip(*tiles.values(), strict=True))) if tiles else rows
        most = _larger(most, held if held.registers else rows)
    return most


def _tile(
    model: LoopModel, array: ArrayRef, to_array: IndexingMap, axes: Axes
) -> Accumulators | Unknown:
    """Return the registers and bytes of the largest tile of one array."""
    if array.array_shape is None:
        return Accumulators(0, 0)
    sets = model.sets(array, to_array, axes)
    if isinstance(sets, Unknown):
        return sets
    largest = sets.largest()
    return Accumulators(largest, padded_bytes(sets.extents, "f32", 32) if largest else 0)


def _larger(first: Accumulators, second: Accumulators) -> Accumulators:
    return Accumulators(*map(max, first, second))


def _align_loops(m: IndexingMap, phase: LoopPhase) -> IndexingMap:
    """Return a map with the loops of a phase under one name."""
    swap = {
        d: d.renamed(f"d{phase.renamed[int(d.name[1:])]}")
        for d in m.dims
        if int(d.name[1:]) in phase.renamed
    }
    if not swap:
        return m
    results, constraints = m.substituted({d: new.as_expr() for d, new in swap.items()})
    return IndexingMap.of(
        [swap.get(d, d) for d in m.dims],
        results,
        ranges=m.ranges,
        constraints=constraints,
        grade=m.grade,
    )

"""Accumulators of a block: the tiles that it computes and keeps in registers."""

from __future__ import annotations

from collections.abc import Sequence

from indexing.maps.arrays import ArrayRef
from indexing.maps.indexing_map import IndexingMap
from indexing.ops.convolution import Convolution
from indexing.ops.dot import Dot
from indexing.tiling.loops.axes import Axes
from indexing.tiling.loops.loop_model import LoopModel
from indexing.tiling.loops.phases import LoopPhase
from simplifier.unknown import Unknown


def accumulator_registers(
    model: LoopModel, phases: Sequence[LoopPhase], axes: Axes
) -> int | Unknown:
    """Return the most elements of accumulators of a phase, one 32-bit register each.

    The tiles of the dots and convolutions of a phase, those in its iterations included, are held
    together: ``bm * bn`` of a dot, ``bm * (dv + bk)`` of an attention.  A phase without any holds
    the largest tile of what it reduces, such as a tile of rows.
    """
    most = 0
    for phase in phases:
        tiles: dict[tuple[ArrayRef, IndexingMap], int] = {}
        rows = 0
        for nest in phase.nests:
            for key in nest.computed:
                if isinstance(key.array.instruction.op, Dot | Convolution):
                    count = model.elements(key.array, key.map, axes)
                    if isinstance(count, Unknown):
                        return count
                    # one instruction in two nests that walk in step is computed once
                    tiles[key.array, _align_loops(key.map, phase)] = count
            for array, to_array in nest.operands:
                own = model.elements(array, to_array, axes)
                rows = max(rows, 0 if isinstance(own, Unknown) else own)
            if nest.key is None:
                own = model.elements(model.array, IndexingMap.identity(model.shape), axes)
                rows = max(rows, 0 if isinstance(own, Unknown) else own)
        most = max(most, sum(tiles.values()) or rows)
    return most


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

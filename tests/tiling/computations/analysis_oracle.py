"""Brute-force oracle for tile analyses: every tile against the elements that its users read.

The root tiles must partition into the elements of the root, or cover it.  For each tiled
instruction, each tile index and each operand, the tiles of the operand must be the elements that
`indexing.output_to_input` relates to the elements of the instruction's tile; those of a loop only
in the current iteration.  By induction all tiles are right.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any, TypeAlias

import hlo
import indexing
from hlo import Instruction
from indexing import IndexingMap, Unknown
from indexing.maps.runtime_variable import RuntimeVariable
from indexing.tiling.computations.loops import loop_dimensions
from indexing.tiling.computations.tile_analysis import TileAnalysis
from indexing.tiling.computations.tile_boxes import TileBox
from indexing.tiling.computations.tiled_computation import TiledComputation
from indexing.tiling.computations.tiled_instruction import TiledInstruction
from tests.tiling.symbolic.needed import elements_at

Elements: TypeAlias = frozenset[tuple[int, ...]]
Index: TypeAlias = dict[str, int]
RUNTIME = 1
"""The value of each runtime variable, clamped to its bounds."""


def elements(box: TileBox, index: Index) -> Elements:
    """Return the elements of a tile at one tile index."""
    values = dict(index)
    for rt in box.runtime:
        values[rt.name] = _clamp(rt.variable.bounds)
    for condition in box.conditions:
        start, lower, upper = [_value(expr, values) for expr in condition]
        if not lower <= start <= upper:
            return frozenset()
    sides = []
    for each in box.sides:
        offset, size, stride, low, high = [_value(e, values) for e in each if e is not None]
        side = [offset + stride * i for i in range(size)]
        sides.append(sorted({x for x in side if low <= x < high}))
    return frozenset(product(*sides))


def _clamp(bounds: tuple[int, int]) -> int:
    return min(max(RUNTIME, bounds[0]), bounds[1])


def _constant(rt: RuntimeVariable, _: object) -> int:
    return _clamp(rt.variable.bounds)


def _value(expr: Any, values: Index) -> int:
    return int(expr.value({v: values[v.name] for v in expr.variables()}))


def check(analysis: TileAnalysis, sizes: tuple[int, ...], most: int = 200) -> int:
    """Compare all tiles for given sizes with the oracle; return the number of tiles compared.

    Args:
        most: the number of tile indices that are compared at most.
    """
    tiled = analysis.tiled(sizes)
    grid = tiled.grid
    assert grid is not None
    every = product(*map(range, grid))
    count = 0
    covered: dict[TiledInstruction, set[tuple[int, ...]]] = {}
    is_complete = True
    for number, point in enumerate(every):
        if number == most:
            is_complete = False
            break
        index = {f"tid_{k}": i for k, i in enumerate(point)}
        for each in tiled.instructions:
            count += _check_tile(tiled, each, index)
        for root in tiled.roots:
            if isinstance(root.tiled, TiledInstruction) and isinstance(root.tiled.tile, TileBox):
                covered.setdefault(root.tiled, set()).update(elements(root.tiled.tile, index))
    if is_complete:
        for root_tile, reached in covered.items():
            shape = root_tile.array.array_shape
            assert shape is not None
            assert len(reached) == shape.size, root_tile
    return count


def _check_tile(tiled: TiledComputation, each: TiledInstruction, index: Index) -> int:
    """Compare the tiles of the operands of one tile with what it needs."""
    if isinstance(each.tile, Unknown) or not any(each.operands) or each.array.path:
        return 0
    here, count = [*elements(each.tile, index)], 0
    answer = indexing.output_to_input(each.instruction, simplify=False)
    for number, tiles in enumerate(each.operands):
        boxes = [operand.tile for operand in tiles]
        if not boxes or any(isinstance(box, Unknown) for box in boxes):
            continue
        reads = answer.maps[number]
        if _is_folded(reads, boxes):
            continue
        loops = _loops(tiled, each.instruction, number, reads, index)
        expected = {
            element
            for read, limits in zip(reads, loops, strict=True)
            for element in elements_at(read, here, _constant, limits)
        }
        actual: set[tuple[int, ...]] = set()
        for box in boxes:
            assert isinstance(box, TileBox)
            actual |= elements(box, index)
            _check_at(box, index)
        is_exact = all(isinstance(b, TileBox) and b.grade == "exact" for b in boxes)
        where = f"{each.name}, operand {number}, tile {index}: {tiles}"
        assert actual == expected if is_exact else actual >= expected, where
        count += 1
    return count


def _is_folded(reads: Sequence[IndexingMap], boxes: Sequence[TileBox | Unknown]) -> bool:
    """Return True if the tiles know a runtime value: the maps of one instruction do not."""
    kept = [len(box.runtime) for box in boxes if isinstance(box, TileBox)]
    return any(len(read.runtime) > min(kept) for read in reads)


def _check_at(box: TileBox, index: Index) -> None:
    """Compare `TileBox.at` with the enumeration of the formulas."""
    runtime = {rt.name: _clamp(rt.variable.bounds) for rt in box.runtime}
    region = box.at([index[f"tid_{k}"] for k in range(len(index))], runtime)
    actual = set() if region is None else {tuple(e) for e in region.elements().tolist()}
    assert actual == elements(box, index), f"{box} at {index}"


def _loops(
    tiled: TiledComputation,
    instruction: Instruction,
    operand: int,
    reads: tuple[IndexingMap, ...],
    index: Index,
) -> list[dict[str, range]]:
    """Return for each map the values of its range variables in the current iterations."""
    sizes = tiled.sizes
    assert sizes is not None
    own = [
        k
        for k, each in enumerate(tiled.dimensions)
        if each.kind == "sequential" and each.instruction is instruction
    ]
    limits: list[dict[str, range]] = []
    for read in reads:
        limits.append({})
        for k, loop in zip(own, loop_dimensions(instruction), strict=True):
            place = loop.places[operand]
            if place is None or place >= len(read.results):
                continue
            start = index[f"tid_{k}"] * min(sizes[k], loop.size)
            for variable in read.results[place].variables():
                if variable in read.ranges:
                    limits[-1][variable.name] = range(start, min(start + sizes[k], loop.size))
    return limits


def entry(text: str) -> hlo.Computation:
    """Return the computation of a module with the lines `text`, and with ``add`` and ``max``."""
    reducers = "\n".join(
        f"{name} {{ a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] {op}(a, b) }}"
        for name, op in (("add", "add"), ("max", "maximum"))
    )
    return hlo.parse(f"{reducers}\nENTRY e {{\n{text}\n}}").entry

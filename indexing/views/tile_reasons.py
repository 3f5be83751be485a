"""Why the tiles of an array are boxes or not, in words, and sizes for which they are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from indexing.maps.indexing_map import IndexingMap
from indexing.tiling.sets.nearest_boxes import nearest_boxes
from indexing.tiling.sets.operands import TiledOperand
from indexing.tiling.sizes.size_constraints import ALWAYS
from indexing.tiling.sizes.size_violations import Violation
from indexing.tiling.symbolic.symbolic_tiles import SymbolicTile, symbolic_tile
from indexing.views.map_tables import map_line
from indexing.views.tables import cell_text
from simplifier.unknown import Unknown

MAX_EXPLAINED: Final = 4
"""Maximum number of maps of an array that are explained."""


def reasons(operand: TiledOperand, instruction: str) -> Iterator[str]:
    """Yield the reasons why the tiles of an array are boxes or not, and the nearest sizes.

    Args:
        instruction: the name of the instruction that the maps are those of.

    >>> import hlo, indexing
    >>> text = "ENTRY e { p = f32[3,4] parameter(0)  ROOT r = f32[12] reshape(p) }"
    >>> tiling = indexing.tile(hlo.parse(text).entry.root, [5])
    >>> for line in reasons(tiling.operands[0], "r"):
    ...     print(line)
    boxes: a tile needs up to 2 boxes by (d0) -> (d0 floordiv 4, d0 mod 4), domain: d0 in [0, 11]
    the smallest boxes have 1.5 times the elements that are needed
    violated: 4 does not divide ts_0 = 5: ts_0 mod 4 = 1 (`r`: d0 floordiv 4, d0 mod 4); \
legal sizes nearby: 4 and 8
    sizes nearby for which every tile is one box: ts_0 = 4 and 8
    """
    if operand.unknown is not None:
        return
    if operand.reason:
        yield f"{operand.kind}: {operand.reason}"
    yield from _sharing_texts(operand)
    is_violated = False
    for m in operand.maps[:MAX_EXPLAINED]:
        tile = symbolic_tile_of(m, instruction)
        if isinstance(tile, Unknown):
            yield f"no symbolic tile: {tile.reason}"
            continue
        violation = tile.violation(operand.grid.sizes)
        is_violated |= violation is not None
        yield from _constraint_text(tile, violation)
    if (count := len(operand.maps) - MAX_EXPLAINED) > 0:
        yield f"… {count} more map{'s' if count > 1 else ''}"
    if operand.kind == "box":
        if is_violated:
            yield "the constraints are sufficient, not necessary: every tile is one box"
    elif not isinstance(operand.sets, Unknown) and all(m.grade == "exact" for m in operand.maps):
        sizes = [f"{each.name} = {each}" for each in nearest_boxes(operand)]
        if sizes:
            yield f"sizes nearby for which every tile is one box: {', or '.join(sizes)}"
        else:
            yield "no size of one dimension makes every tile one box"


def _sharing_texts(operand: TiledOperand) -> Iterator[str]:
    """Yield the elements that neighbouring tiles share, and those of boxes that are not needed."""
    shared = [
        f"{count:,} in dimension {k}"
        for k, count in enumerate(operand.halo)
        if not isinstance(count, Unknown) and count
    ]
    if shared:
        yield f"elements that two neighbouring tiles share, at most: {', '.join(shared)}"
    factor = operand.overfetch
    if not isinstance(factor, Unknown) and factor > 1:
        yield f"the smallest boxes have {cell_text(factor)} times the elements that are needed"


def _constraint_text(tile: SymbolicTile, violation: Violation | None) -> Iterator[str]:
    if violation is not None:
        yield f"violated: {violation}"
    elif tile.constraints != ALWAYS:
        yield f"satisfied: {tile.constraints.pretty()}"


def symbolic_tile_of(m: IndexingMap, instruction: str) -> SymbolicTile | Unknown:
    """Return the symbolic tile of a map; its constraints name the instruction."""
    tile = symbolic_tile(m)
    if isinstance(tile, Unknown):
        return tile
    return replace(tile, constraints=tile.constraints.with_source(instruction))


def symbolic_parts(tile: SymbolicTile) -> list[str]:
    """Return the offsets, sizes, strides and bounds of a symbolic tile, each with its name."""
    cells = symbolic_cells(tile)
    names = ["offsets", "sizes", "strides", "upper_bounds"]
    if any(bound.constant != 0 for bound in tile.lower_bounds):
        names.append("lower_bounds")
    return [f"{name.replace('_', ' ')} {cell_text([*cells[name]])}" for name in names]


def symbolic_cells(tile: SymbolicTile) -> dict[str, Any]:
    """Return the offsets, sizes, strides, bounds, constraints and runtime values of a tile."""
    return {
        "offsets": tile.offsets.results,
        "sizes": tile.sizes.results,
        "strides": tile.strides.results,
        "lower_bounds": tile.lower_bounds,
        "upper_bounds": tile.upper_bounds,
        "constraints": str(tile.constraints),
        "runtime": tile.runtime,
    }


NO_TILE: Final[dict[str, Any]] = {
    **dict.fromkeys(("offsets", "sizes", "strides", "lower_bounds", "upper_bounds", "constraints")),
    "runtime": (),
}
"""The `symbolic_cells` of a map without a symbolic tile."""


def map_text(m: IndexingMap) -> str:
    """Return a map with its grade."""
    return map_line(m) if m.grade == "exact" else f"may: {map_line(m)}"

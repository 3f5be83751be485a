"""The elements that each of all tiles needs, as translates of the sets of a few classes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from hlo.shapes.shape import leaves
from indexing.maps.regions.answers import OperandRegion
from indexing.maps.regions.boxes import Box
from indexing.maps.regions.images import product_boxes
from indexing.maps.regions.region import Region, disjoint_region
from indexing.tiling.sets.operands import TiledOperand
from indexing.tiling.sets.tiling import Tiling
from indexing.tiling.sets.united_sets import translate_region
from simplifier.unknown import Unknown


def regions_of_tiles(tiling: Tiling) -> Iterator[tuple[OperandRegion, ...]]:
    """Yield ``tiling.at(*index)`` for each tile, in row-major order.

    All tiles are analysed together: `at` is faster for a few of many tiles.

    >>> import hlo, indexing
    >>> text = "ENTRY e { p = f32[6] parameter(0)  ROOT r = f32[6] reverse(p), dimensions={0} }"
    >>> for regions in regions_of_tiles(indexing.tile(hlo.parse(text).entry.root, [4])):
    ...     print(*regions)
    [2:6]
    [0:2]
    """
    is_known = tiling.direction == "output-to-input" and all(
        operand.unknown is None and all(m.grade == "exact" and not m.runtime for m in operand.maps)
        for operand in tiling.operands
    )
    for index in tiling.tiles():
        regions = _regions_of_classes(tiling, index) if is_known else None
        yield tiling.at(*index) if regions is None else regions


def _regions_of_classes(tiling: Tiling, index: Sequence[int]) -> tuple[OperandRegion, ...] | None:
    """The elements of each operand that a tile needs; `None` if some are not known as boxes."""
    by_leaf: dict[tuple[int, tuple[int, ...]], Region] = {}
    for operand in tiling.operands:
        region = _region_of_class(operand, index)
        if region is None:
            return None
        by_leaf[operand.number, operand.path] = region
    nothing = Region.of_boxes((), 0)  # of a token
    regions: list[OperandRegion] = []
    for k, instruction in enumerate(tiling.answer.operands):
        paths = [path for path, _ in leaves(instruction.shape)]
        each = [by_leaf.get((k, path), nothing) for path in paths]
        regions.append(each[0] if paths == [()] else tuple(each))
    return tuple(regions)


def _region_of_class(operand: TiledOperand, index: Sequence[int]) -> Region | None:
    sets, rank = operand.sets, operand.shape.rank
    if isinstance(sets, Unknown) or len(sets.products) > 1:
        return None
    if not sets.products:
        return Region.of_boxes((), rank)
    at = dict(zip(operand.grid.tile_index, index, strict=True))
    factors: list[tuple[tuple[int, ...], tuple[Box, ...]]] = []
    for own in sets.products[0]:
        place = [at[v] for v in own.tile_index]
        number = int(np.ravel_multi_index(place, own.shape)) if place else 0
        region = own.classes[own.class_of[number]].region
        boxes = translate_region(region, own.shifts[number].tolist()).boxes()
        if boxes is None:
            return None
        factors.append((own.places, boxes))
    product = product_boxes(factors)
    return None if product is None else disjoint_region(product, rank)

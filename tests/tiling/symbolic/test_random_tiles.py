"""Boxes of random maps against the elements that each tile needs."""

from __future__ import annotations

from hypothesis import given

from indexing import IndexingMap
from tests.oracles import fuzz
from tests.tiling.symbolic.needed import Point, check_tiles
from tests.tiling.symbolic.random_maps import all_sizes, tiled_maps


@fuzz(80)
@given(tiled_maps())
def test_boxes_have_exactly_the_needed_elements(
    example: tuple[IndexingMap, list[int], Point],
) -> None:
    m, array, sizes = example
    if not m.is_known_empty:
        for each in (sizes, *all_sizes(array, limit=5)):
            check_tiles(m, each, array)

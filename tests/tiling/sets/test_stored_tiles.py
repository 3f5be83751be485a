"""Tiles of a layout that tiles of an array touch, compared with the positions of all elements."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import hlo
import indexing
from hlo.shapes.shape import Shape
from hlo.shapes.tiling import position_of
from indexing.maps.regions.region import Region
from indexing.memory.movement.amounts import Amount
from indexing.memory.movement.part_padding import bytes_of_tiles
from indexing.tiling.sets.operands import TiledOperand
from indexing.tiling.sets.stored_tiles import StoredTiles
from indexing.tiling.sets.tiling import Tiling
from indexing.views.tilings import best_tilings_table, stored_notes
from simplifier.unknown import Unknown

# fmt: off
CASES = [
    # an instruction, the layout of its operand p, the sizes of tiles
    ("f32[13,150] negate(p)", "{1,0:T(8,128)}", [5, 40]),
    ("f32[13,150] negate(p)", "{0,1:T(8,128)}", [8, 128]),
    ("f32[150,13] transpose(p), dimensions={1,0}", "{1,0:T(8,128)}", [70, 4]),
    ("f32[4,30] slice(p), slice={[1:13:3], [7:127:4]}",
     "{1,0:T(8,128)}", [2, 7]),
    ("f32[13,150] reverse(p), dimensions={0,1}", "{1,0:T(4,64)}", [3, 50]),
    ("f32[3,13,150] broadcast(p), dimensions={1,2}", "{1,0:T(8,128)}", [2, 7, 149]),
    ("f32[1950] reshape(p)", "{1,0:T(8,128)}", [170]),
    ("f32[26,150] concatenate(p, p), dimensions={0}", "{1,0:T(8,128)}", [9, 60]),
    ("f32[13] reduce(p, z), dimensions={1}, to_apply=add",
     "{1,0:T(2,128)}", [5]),
    ("f32[12,150] reduce-window(p, z), window={size=2x1}, to_apply=add",
     "{1,0:T(8,128)}", [4, 128]),
    ("bf16[13,150] convert(p)", "{1,0:T(8,128)(4,1)S(1)}", [13, 150]),
]
# fmt: on


def tile_operand(text: str, layout: str, sizes: list[int]) -> TiledOperand:
    """Return what the tiles of an instruction need of the operand `p`."""
    module = hlo.parse(f"""
    add {{ a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }}
    ENTRY e {{ p = f32[13,150]{layout} parameter(0)  z = f32[] parameter(1)  i = s32[] parameter(2)
      ROOT r = {text} }}""")
    tiling: Tiling = indexing.tile(module.entry.root, sizes)
    return tiling.operands[0]


def touched_tiles(
    operand: TiledOperand, tile: tuple[int, ...], starts: tuple[int, ...] = ()
) -> set[int]:
    """Return the numbers of the tiles of the layout that a tile touches, element by element."""
    shape = operand.shape
    elements = 1
    for size in shape.layout_or_default.tiles[0]:
        elements *= size
    places = set()
    for m in operand.maps:
        ranges = [range(v.lower, v.upper + 1) for v in m.ranges]
        rows = [range(s.start, s.stop) for s in operand.grid.slices(tile)]
        for dims, inner in product(product(*rows), product(*ranges)):
            index = m.evaluate(dims, inner, starts)
            if index is not None:
                position = shape.linear_index(index)
                assert isinstance(position, int)
                places.add(position // elements)
    return places


def bytes_of_tile(shape: Shape) -> int:
    elements = shape.element_bits // 8
    for size in shape.layout_or_default.tiles[0]:
        elements *= size
    return elements


@pytest.mark.parametrize(("text", "layout", "sizes"), CASES)
def test_stored_bytes_are_those_of_the_tiles_that_hold_the_elements(
    text: str, layout: str, sizes: list[int]
) -> None:
    operand = tile_operand(text, layout, sizes)
    stored, unit = operand.stored, bytes_of_tile(operand.shape)
    assert isinstance(stored, StoredTiles)
    each = [touched_tiles(operand, tile) for tile in operand.grid.tiles()]
    assert stored.grade == "exact"
    assert stored.tile_bytes == unit * max(map(len, each))
    assert stored.bytes == unit * sum(map(len, each))
    assert stored.bytes_touched == unit * len(set().union(*each))


@pytest.mark.parametrize(("text", "layout", "sizes"), CASES)
def test_the_region_of_one_tile_has_the_bytes_of_the_layout_tiles_that_hold_it(
    text: str, layout: str, sizes: list[int]
) -> None:
    operand = tile_operand(text, layout, sizes)
    tiling = indexing.tile(operand.instruction.computation.root, sizes)
    for tile in list(operand.grid.tiles())[:40]:
        region = tiling.at(*tile)[0]
        assert isinstance(region, Region)
        expected = bytes_of_tile(operand.shape) * len(touched_tiles(operand, tile))
        assert bytes_of_tiles(region, operand.shape) == Amount(expected)


def test_ranked_tilings_load_and_store_whole_tiles_of_layouts() -> None:
    module = hlo.parse("""ENTRY e { p = f32[13,150]{1,0:T(8,128)} parameter(0)
      ROOT t = f32[150,13]{1,0:T(8,128)} transpose(p), dimensions={1,0} }""")
    best = indexing.best_tilings(module.entry.root, top=12)
    for ranked in best.ranked:
        (operand,) = ranked.tiling.operands
        unit = 8 * 128 * 4
        tiles = 0
        for tile in operand.grid.tiles():
            rows, columns = operand.grid.slices(tile)
            index = np.indices((150, 13))[:, rows, columns].reshape(2, -1)
            result = position_of(list(index), (150, 13), ranked.tiling.shape.layout_or_default)
            tiles += len(touched_tiles(operand, tile)) + len(np.unique(result // 1024))
        assert ranked.layout_bytes == (unit * tiles, "exact")
    table = str(best_tilings_table(best))
    assert table.splitlines()[1].split()[-1] == "stored"


def test_stored_bytes_at_runtime_starts_are_upper_bounds() -> None:
    operand = tile_operand(
        "f32[7,150] dynamic-slice(p, i, i), dynamic_slice_sizes={7,150}", "{1,0:T(4,128)}", [2, 150]
    )
    stored, unit = operand.stored, bytes_of_tile(operand.shape)
    assert isinstance(stored, StoredTiles)
    (m,) = operand.maps
    bounds = [own.variable.bounds for own in m.runtime]
    for starts in product(*[range(low, high + 1) for low, high in bounds]):
        each = [touched_tiles(operand, tile, starts) for tile in operand.grid.tiles()]
        assert stored.tile_bytes >= unit * max(map(len, each))
        assert stored.bytes >= unit * sum(map(len, each))
    assert stored.grade == "may"


def test_arrays_without_tiles_store_their_elements() -> None:
    operand = tile_operand(CASES[0][0], "{1,0}", [5, 40])
    assert operand.stored == StoredTiles(
        5 * 40 * 4, 13 * 150 * 4, operand.shape.physical_bytes, "exact"
    )
    assert operand.elements == operand.elements_touched == 13 * 150


def test_dimensions_that_a_layout_combines_are_unknown() -> None:
    operand = tile_operand(CASES[0][0], "{1,0:T(*,128)}", [5, 40])
    answer = operand.stored
    assert isinstance(answer, Unknown)
    assert "combines dimensions" in str(answer)
    (note,) = stored_notes(operand)
    assert note.startswith("stored in HBM: unknown: the layout of")

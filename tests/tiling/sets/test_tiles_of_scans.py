"""Tiles of associative scans: many maps with strides, of which each tile needs a few elements."""

from __future__ import annotations

import pytest

import hlo
import indexing
import indexing.tiling.sets.nearest_boxes as nearest_boxes_module
from hlo import Instruction
from indexing import TiledOperand, Tiling, Unknown, methods
from indexing.maps.regions import boxes as box_algebra
from indexing.tiling.sets import tile_sets, united_sets
from indexing.tiling.sets.nearest_boxes import MAX_TILINGS, nearest_boxes
from indexing.tiling.sets.tile_regions import regions_of_tiles
from tests.growth.work import calls_of
from tests.report_page.reading import details

LEVELS = 3


def level(size: int) -> Instruction:
    """Return a fusion of a scan, as XLA:CPU compiles `jax.lax.associative_scan`.

    Sums of pairs, three times over; the even ones with zeros between them.  An output element needs
    eight elements: there are two maps for each, since the first sum is concatenated to the others.
    """
    lines = []
    for k in range(LEVELS):
        n = size << (LEVELS - 1 - k)
        lines += [
            f"even{k} = f32[{n}] slice(x{k}), slice={{[0:{2 * n}:2]}}",
            f"odd{k} = f32[{n}] slice(x{k}), slice={{[1:{2 * n}:2]}}",
            f"x{k + 1} = f32[{n}] add(even{k}, odd{k})",
        ]
    text = f"""fused {{
      x0 = f32[{size << LEVELS}] parameter(0)
      {"  ".join(lines)}
      zero = f32[] constant(0)
      first = f32[1] slice(x{LEVELS}), slice={{[0:1]}}
      rest = f32[{size // 2 - 1}] slice(x{LEVELS}), slice={{[2:{size}:2]}}
      joined = f32[{size // 2}] concatenate(first, rest), dimensions={{0}}
      ROOT padded = f32[{size}] pad(joined, zero), padding=0_1_1
    }}
    ENTRY e {{
      p = f32[{size << LEVELS}] parameter(0)
      ROOT f = f32[{size}] fusion(p), kind=kLoop, calls=fused
    }}"""
    return hlo.parse(text).entry.root


@pytest.fixture(autouse=True)
def keep_maps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the maps as composed: coalesced, they are one."""
    monkeypatch.setattr(methods, "coalesce_maps", lambda maps, options, is_readable: list(maps))


def tiling_of(root: Instruction, size: int) -> tuple[Tiling, TiledOperand]:
    tiling = indexing.tile(root, [size])
    assert isinstance(tiling, Tiling)
    (operand,) = tiling.operands
    assert len(operand.maps) == 2 << LEVELS
    return tiling, operand


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8, 64])
def test_all_tiles_together_are_the_tiles_one_by_one(size: int) -> None:
    tiling, _ = tiling_of(level(64), size)
    for index, (region,) in zip(tiling.tiles(), regions_of_tiles(tiling), strict=True):
        points = range(64)[tiling.slices(*index)[0]]
        needed = [8 * d + k for d in points if d % 2 == 0 for k in range(8)]
        assert not isinstance(region, Unknown | tuple)
        assert region.grade == "exact"
        elements = region.elements()
        assert not isinstance(elements, Unknown)
        assert elements[:, 0].tolist() == needed
        (alone,) = tiling.at(*index)
        assert str(alone) == str(region)


@pytest.mark.parametrize("size", [1, 3, 4, 30, 63, 64])
def test_the_nearest_sizes_are_the_first_whose_tiles_are_all_boxes(size: int) -> None:
    root = level(64)
    _, operand = tiling_of(root, size)

    def nearest(sizes: range) -> int | None:
        tried = [*sizes[: MAX_TILINGS - 1], *sizes[MAX_TILINGS - 1 :][-1:]]
        boxes = [n for n in tried if tiling_of(root, n)[1].kind == "box"]
        return boxes[0] if boxes else None

    expected = nearest(range(size - 1, 0, -1)), nearest(range(size + 1, 65))
    pairs = [(each.smaller, each.larger) for each in nearest_boxes(operand)]
    assert pairs == ([expected] if any(expected) else [])


@pytest.mark.parametrize("size", [256, 4096])
def test_the_tiles_of_a_report_take_few_comparisons_of_boxes(
    monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    root = level(size)
    tile_sets._memoised_sets.cache_clear()
    compared = calls_of(monkeypatch, box_algebra, "difference")
    unions = calls_of(monkeypatch, united_sets, "_union")
    page = details(indexing.report(root.module).html)
    assert "boxes by 16 maps" in str(page)
    assert 0 < len(unions) < 30
    assert 0 < len(compared) < 2_000


def test_operands_with_the_same_maps_share_the_nearest_boxes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = "ENTRY e { p = f32[7,11] parameter(0)  ROOT r = f32[77] reshape(p) }"
    (first,) = indexing.tile(hlo.parse(text).entry.root, [13]).operands
    (again,) = indexing.tile(hlo.parse(text).entry.root, [13]).operands
    (other,) = indexing.tile(hlo.parse(text).entry.root, [17]).operands
    expected = nearest_boxes(first)
    monkeypatch.setattr(nearest_boxes_module, "_nearest_boxes", lambda _: None)
    assert nearest_boxes(again) == expected
    assert nearest_boxes(other) is None

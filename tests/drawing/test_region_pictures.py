"""Pictures of regions and answers: cells are compared with the points of maps, by brute force."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hlo
import indexing
from indexing.maps import Box, Region
from tests.drawing.pictures import agrees, cells, numbers, texts, total, tree

CONVOLUTION = """p = f32[1,8,9,2] parameter(0)  k = f32[3,3,2,4] parameter(1)
  ROOT r = f32[1,6,7,4] convolution(p, k), window={size=3x3}, dim_labels=b01f_01io->b01f"""
ADD = "add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }\n"

TRANSPOSE = "p = f32[70,90] parameter(0)  ROOT r = f32[90,70] transpose(p), dimensions={1,0}"
SLICE = "p = f32[9,20] parameter(0)  ROOT r = f32[4,6] slice(p), slice={[1:9:2], [2:20:3]}"
DOT = """p = f32[3,5] parameter(0)  q = f32[5,7] parameter(1)
  ROOT r = f32[3,7] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}"""
POOLING = """p = f32[6,5] parameter(0)  z = f32[] constant(0)
  ROOT r = f32[4,4] reduce-window(p, z), window={size=3x2}, to_apply=add"""
LONG = "p = f32[3000] parameter(0)  ROOT r = f32[3000] negate(p)"

CASES: list[tuple[str, tuple[Any, ...]]] = [
    (CONVOLUTION, (0, slice(1, 3), slice(2, 5), 0)),
    (TRANSPOSE.replace("70", "5").replace("90", "7"), (slice(0, 3), 2)),
    ("p = f32[11] parameter(0)  ROOT r = f32[11] reverse(p), dimensions={0}", (slice(2, 5),)),
    (SLICE, (..., slice(1, 6, 2))),
    (DOT, (slice(0, 2), slice(3, 7))),
    (POOLING, (slice(1, 4), ...)),
    ("p = f32[3] parameter(0)  ROOT r = f32[4,3] broadcast(p), dimensions={1}", (...,)),
    ("p = f32[] parameter(0)  ROOT r = f32[5] broadcast(p), dimensions={}", (slice(0, 3),)),
    ("p = f32[2,3,4] parameter(0)  ROOT r = f32[24] reshape(p)", (slice(5, 14),)),
    (TRANSPOSE, (...,)),
    (TRANSPOSE, (slice(60, 64), 50)),
    (LONG, (slice(0, 2000, 3),)),
    (LONG, (slice(2000, 2010),)),
]


def root_of(body: str) -> hlo.Instruction:
    return hlo.parse(f"{ADD if 'to_apply' in body else ''}ENTRY e {{ {body} }}").entry.root


def inside(point: tuple[int, ...], tile: tuple[Any, ...], shape: tuple[int, ...]) -> bool:
    """Return True for a point of a tile."""
    mask = np.zeros(shape, bool)
    mask[tile] = True
    return bool(mask[point])


def read_counts(answer: indexing.Answer, k: int, tile: tuple[Any, ...]) -> np.ndarray[Any, Any]:
    """Count the reads of each element of an operand by the points of a tile, one by one."""
    start, end = answer.instruction.shape, answer.operands[k].shape
    assert isinstance(start, hlo.Shape)
    assert isinstance(end, hlo.Shape)
    counts = np.zeros(end.dims, int)
    for m in answer.maps[k]:
        for point, element in m.points():
            if inside(point, tile, start.dims):
                counts[element] += 1
    return counts


@pytest.mark.parametrize("body, tile", CASES)
def test_heat_is_the_number_of_reads(body: str, tile: tuple[Any, ...]) -> None:
    answer = indexing.output_to_input(root_of(body))
    svg = answer.plot(*tile).svg
    for k, operand in enumerate(answer.operands):
        counts = read_counts(answer, k, tile)
        agrees(svg, operand.name, counts)
        assert total(svg, operand.name) == counts.sum()
        region = answer.at(*tile)[k]
        assert isinstance(region, Region)
        elements = region.elements()
        assert not isinstance(elements, indexing.Unknown)
        if max(counts.shape, default=0) <= 20:  # one element in each cell
            shown = {index for index, value in cells(svg, operand.name).items() if value != "0"}
            assert shown == {",".join(map(str, element)) for element in elements.tolist()}


@pytest.mark.parametrize("body, tile", CASES)
def test_the_tile_is_drawn(body: str, tile: tuple[Any, ...]) -> None:
    root = root_of(body)
    assert isinstance(root.shape, hlo.Shape)
    mask = np.zeros(root.shape.dims, int)
    mask[tile] = 1
    agrees(indexing.output_to_input(root).plot(*tile).svg, "r", mask)


def test_a_gather_with_values_reads_the_rows_that_they_name() -> None:
    root = root_of("""p = f32[6,3] parameter(0)  i = s32[4,1] parameter(1)
      ROOT r = f32[4,3] gather(p, i), offset_dims={1}, collapsed_slice_dims={0},
        start_index_map={0}, index_vector_dim=1, slice_sizes={1,3}""")
    answer = indexing.output_to_input(root)
    rows = np.array([[5], [2], [5], [9]])
    counts = np.zeros((6, 3), int)
    for row in (5, 2, 5):
        counts[row] += 1
    svg = answer.plot(slice(0, 3), ..., i=rows).svg
    agrees(svg, "p", counts)
    assert total(svg, "p") == 9
    without = answer.plot(slice(0, 3), ...).svg
    assert set(cells(without, "p").values()) == {"1"}
    assert "hatched" in texts(without)
    assert "rt0 takes all values from 0 to 5" in texts(without)


def test_slices_of_the_leading_dimensions_have_panels() -> None:
    root = root_of("p = f32[2,9,13,20] parameter(0)  ROOT n = f32[2,9,13,20] negate(p)")
    svg = indexing.output_to_input(root).plot(1, slice(2, 8), 0, ...).svg
    mask = np.zeros((2, 9, 13, 20), int)
    mask[1, 2:8, 0] = 1
    agrees(svg, "p", mask)
    assert {index.split(",")[1] for index in cells(svg, "p")} == {"2", "3", "4", "5"}
    assert "4 of 18 slices; 6 have reads" in texts(svg)
    plane = indexing.output_to_input(root).plot(1, slice(2, 8), 0, ..., plane=(1, 2)).svg
    agrees(plane, "p", mask)
    assert "8 of 40 slices; 20 have reads" in texts(plane)


def test_the_other_direction_shows_the_outputs() -> None:
    root = root_of("p = f32[5,7] parameter(0)  ROOT r = f32[7,5] transpose(p), dimensions={1,0}")
    svg = indexing.input_to_output(root).plot(2, slice(1, 4)).svg
    counts = np.zeros((7, 5), int)
    counts[1:4, 2] = 1
    agrees(svg, "r", counts)
    assert total(svg, "p") == 3


def test_unknown_accesses_are_listed() -> None:
    root = root_of("p = f32[5] parameter(0)  ROOT r = f32[5] no-such-opcode(p)")
    svg = indexing.output_to_input(root).plot(1).svg
    assert "`p`: unknown: " in texts(svg)
    assert not cells(svg, "p")


def test_arrays_of_unknown_sizes_are_not_drawn() -> None:
    svg = indexing.output_to_input(root_of("p = f32[?] parameter(0)  ROOT r = f32[?] negate(p)"))
    assert "`r`: f32[?] is not drawn" in texts(svg.plot().svg)


def test_leaves_of_tuples_and_composed_maps() -> None:
    root = root_of("""p = (f32[3], f32[4]) parameter(0)  a = f32[4] get-tuple-element(p), index=1
      ROOT r = f32[4] reverse(a), dimensions={0}""")
    svg = indexing.to_parameters(root).plot(0).svg
    assert [k for k, value in cells(svg, "p{1}").items() if value == "1"] == ["3"]
    assert "`p{0}`: no element is needed" in texts(svg)


# ---------------------------------------------------------------- regions


def test_a_region_in_its_array() -> None:
    region = Region.of_boxes([Box((1, 5), (2, 2), (1, 2)), Box((0, 0), (1, 1), (1, 1))], rank=2)
    mask = np.zeros((4, 9), int)
    mask[1:3, [5, 7]] = mask[0, 0] = 1
    svg = region.plot((4, 9)).svg
    agrees(svg, "array", mask)
    assert len(cells(svg, "array")) == 36
    assert len(cells(region.plot().svg, "array")) == 3 * 8


def test_an_approximation_names_its_side() -> None:
    pieces = Region.of_boxes([Box((0,), (2,), (1,))], rank=1).pieces
    over, under = (Region(1, pieces, "may", side=side) for side in ("over", "under"))
    assert "upper bounds" in texts(over.plot((4,)).svg)
    shown = texts(under.plot((4,)).svg)
    assert "an under-approximation" in shown
    assert "upper bounds" not in shown
    assert "at least [0:2]" in shown


def test_a_diagonal_is_no_box() -> None:
    region = indexing.parse_map(
        "(d0)[s0] -> (d0 + s0 * 3, s0 floordiv 2), domain: d0 in [0, 1], s0 in [0, 8]"
    ).at(...)
    elements = region.elements()
    assert not isinstance(elements, indexing.Unknown)
    mask = np.zeros((30, 6), int)
    mask[tuple(elements.T)] = 1
    agrees(region.plot((30, 6)).svg, "array", mask)


def test_large_regions_are_counted_in_bins() -> None:
    size = 1 << 20
    region = Region.of_boxes([Box((0, 3), (size, size // 4), (1, 3))], rank=2)
    svg = region.plot((size, size)).svg
    shown = numbers(svg, "array")
    assert total(svg, "array") == size * (size // 4)
    assert all(
        value == size // 32 * len(range(*inner(columns, size))) for (_, columns), value in shown
    )
    assert "every cell shows 32768 x 32768 elements" in texts(svg)


def inner(columns: slice, size: int) -> tuple[int, int, int]:
    """Return the elements 3, 6, 9, … in a range of columns, below ``3 + 3 * size / 4``."""
    first = max(3, -(-columns.start // 3) * 3)
    return first, max(min(columns.stop, 3 + 3 * (size // 4)), first), 3


def test_empty_and_scalar_regions() -> None:
    assert set(cells(Region.of_boxes([], rank=1).plot((3,)).svg, "array").values()) == {"0"}
    assert cells(Region.of_boxes([Box((), (), ())], rank=0).plot(()).svg, "array") == {"": "1"}
    assert "no elements" in texts(Region.of_boxes([], rank=2).plot((0, 3)).svg)


def test_wrong_sizes_are_refused() -> None:
    region = Region.of_boxes([Box((4,), (2,), (1,))], rank=1)
    with pytest.raises(ValueError, match="is not inside of an array of sizes"):
        region.plot((5,))
    with pytest.raises(ValueError, match="`dims` has 2 sizes, but the region has rank 1"):
        region.plot((5, 5))
    with pytest.raises(ValueError, match="`plane` is two different dimensions below 1"):
        region.plot((8,), plane=(0, 0))
    with pytest.raises(IndexError, match="`operand` is 3, but the answer has 1 operands"):
        indexing.output_to_input(root_of(TRANSPOSE)).plot(0, 0, operand=3)


# ---------------------------------------------------------------- drawings


def test_names_are_escaped() -> None:
    name = '"<script>alert(1)</script>&\x1b\u202e"'
    module = hlo.parse("ENTRY e { p = f32[3] parameter(0)  ROOT n = f32[3] negate(p) }")
    drawing = indexing.output_to_input(module.entry.root).plot()
    from indexing.drawing.figures import CellGrid, DrawnCell, Figure

    grid = CellGrid(name, name, 1, 1, (DrawnCell(0, 0, name, name, 1, name, name),), notes=(name,))
    svg = indexing.Drawing((Figure(name, (grid,), (name,)),)).svg
    tree(svg)
    assert "<script" not in svg
    assert not {"\x1b", "\u202e"} & set(svg)
    assert drawing.html.startswith("<!DOCTYPE html>")


def test_themes_have_their_colours() -> None:
    drawing = Region.of_boxes([Box((0,), (2,), (1,))], rank=1).plot((4,))
    light, dark = drawing.with_theme("light").svg, drawing.with_theme("dark").svg
    assert "prefers-color-scheme" in drawing.svg
    assert "prefers-color-scheme" not in light + dark
    assert "#14181d" in drawing.svg
    assert "#14181d" in dark
    assert "#14181d" not in light
    shown = [cells(each, "array") for each in (drawing.svg, light, dark)]
    assert shown[0] == shown[1] == shown[2]
    assert drawing.svg == drawing.with_theme("light").with_theme("auto").svg


def test_files(tmp_path: Path) -> None:
    drawing = Region.of_boxes([Box((0,), (2,), (1,))], rank=1).plot((4,))
    drawing.save(tmp_path / "a.svg")
    drawing.save(str(tmp_path / "a.html"))
    assert (tmp_path / "a.svg").read_text(encoding="utf-8") == drawing.svg + "\n"
    assert drawing.svg in (tmp_path / "a.html").read_text(encoding="utf-8")
    with pytest.raises(ValueError, match=r"the suffix must be \.svg or \.html"):
        drawing.save(tmp_path / "a.png")
    assert drawing._repr_svg_() == drawing.svg
    assert drawing.svg in drawing._repr_html_()


def test_matplotlib_shows_the_same_numbers() -> None:
    pytest.importorskip("matplotlib", reason="needs the extra plot")
    answer = indexing.output_to_input(root_of(CONVOLUTION))
    tile = 0, slice(1, 3), slice(2, 5), 0
    figure = answer.plot(*tile, operand=0, backend="matplotlib")
    shown = [value for _, value in numbers(answer.plot(*tile, operand=0).svg, "p")]
    images = [axes.get_images()[0].get_array() for axes in figure.axes if axes.get_images()]
    drawn = np.concatenate([image.ravel() for image in images])[-len(shown) :]
    assert drawn.tolist() == shown


def test_matplotlib_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    region = Region.of_boxes([Box((0,), (2,), (1,))], rank=1)
    with pytest.raises(ImportError, match=r"pip install 'hlo-indexing\[plot\]'"):
        region.plot(backend="matplotlib")


def test_shades_grow_with_values() -> None:
    from indexing.drawing.figures import heat_shades

    for highest, step in product((1, 2, 3, 5, 6, 7, 40, 1000), (1, 7)):
        values = list(range(0, highest * step + 1, step))
        shades, legend = heat_shades(values)
        listed = [shades[value] for value in values]
        assert listed == sorted(listed)
        assert listed[0] == 0
        assert 0 not in listed[1:]
        assert {shade for shade, _ in legend} == set(listed)

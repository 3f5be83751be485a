"""Pictures of tilings: cells are compared with the reads of the tile, by brute force."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hlo
import indexing
from tests.drawing.pictures import SVG, agrees, cells, texts, total, tree
from tests.drawing.test_region_pictures import DOT, TRANSPOSE, read_counts, root_of

EXAMPLES = Path(__file__).parents[2] / "examples"


def tiling_of(instruction: hlo.Instruction, *sizes: int, **options: Any) -> indexing.Tiling:
    tiling = indexing.tile(instruction, sizes, **options)
    assert isinstance(tiling, indexing.Tiling)
    return tiling


@pytest.mark.parametrize("body, sizes", [(DOT, (2, 3)), (TRANSPOSE.replace("70", "71"), (16, 40))])
def test_each_tile_shows_its_reads(body: str, sizes: tuple[int, ...]) -> None:
    tiling = tiling_of(root_of(body), *sizes)
    for index in [*tiling.tiles()][::4]:
        svg = tiling.plot(*index).svg
        for k, operand in enumerate(tiling.answer.operands):
            counts = read_counts(tiling.answer, k, tiling.slices(*index))
            agrees(svg, operand.name, counts)
            assert total(svg, operand.name) == counts.sum()


def test_rows_of_a_softmax() -> None:
    """The sums of a softmax read the rows of the exponentials."""
    module = hlo.load(EXAMPLES / "attention.opt.hlo")
    fusion = module.entry["ynn_fusion.2"]
    assert isinstance(fusion.shape, hlo.Shape)
    tiling = tiling_of(fusion, 1, 2, 8)
    index = tuple(count - 1 for count in tiling.grid)
    svg = tiling.plot(*index).svg
    for operand, region in zip(tiling.answer.operands, tiling.at(*index), strict=True):
        assert isinstance(region, indexing.maps.Region)
        elements = region.elements()
        assert isinstance(elements, np.ndarray)
        assert isinstance(operand.shape, hlo.Shape)
        needed = np.zeros(operand.shape.dims, int)
        needed[tuple(elements.T)] = 1
        counts = read_counts(
            tiling.answer, tiling.answer.operands.index(operand), tiling.slices(*index)
        )
        assert ((counts > 0) == needed).all()
        agrees(svg, operand.name, counts)


def test_tiles_have_borders() -> None:
    tiling = tiling_of(root_of(DOT), 2, 3)
    frames = [
        r for r in tree(tiling.plot(0, 0).svg).iter(f"{SVG}rect") if r.get("class") == "frame"
    ]
    assert len(frames) == 2 * 3


def test_tiles_of_an_operand() -> None:
    tiling = tiling_of(root_of(DOT), 2, 4, direction="input-to-output")
    svg = tiling.plot(0, 1).svg
    assert "what tile (0, 1) of 2 x 2 of p is needed by" in texts(svg)
    counts = np.zeros((3, 7), int)
    counts[0:2] = 1  # each output reads one element of the tile, of column 4
    agrees(svg, "r", counts)


def test_without_an_index_the_first_tile_is_drawn() -> None:
    tiling = tiling_of(root_of(DOT), 2, 3)
    drawing = tiling.plot()
    assert drawing.svg == tiling.plot(0, 0).svg
    assert drawing.with_theme("dark").svg == tiling.plot(0, 0, theme="dark").svg
    with pytest.raises(IndexError):
        tiling.plot(2, 0)


def test_notebooks_have_sliders(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without anywidget, and without a kernel, they show the picture of the first tile."""
    import sys

    drawing = tiling_of(root_of(DOT), 2, 3).plot()
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "anywidget", None)
        assert drawing.svg in drawing._repr_mimebundle_()["text/html"]
    pytest.importorskip("anywidget", reason="needs the extra notebook")
    from indexing.drawing.sliders import slider_of

    data, _ = drawing._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in data
    assert (drawing.svg in data["text/html"], data["text/plain"]) == (True, repr(drawing))
    slider = slider_of(drawing.counts, drawing.drawing_at)
    assert slider is not None
    assert slider.counts == [2, 3]
    slider.index = [1, 2]
    assert cells(slider.svg, "p") == cells(tiling_of(root_of(DOT), 2, 3).plot(1, 2).svg, "p")

"""Pictures of tilings: one tile, and what it needs of each operand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from indexing.drawing.drawing import Backend, Drawing, as_drawing
from indexing.drawing.figures import Figure
from indexing.drawing.region_pictures import AnswerPicture
from indexing.drawing.style import Theme
from indexing.tiling.sets.tiling import Tiling


@dataclass(frozen=True, slots=True, repr=False)
class TileDrawing(Drawing):
    """The picture of the first tile; notebooks show sliders for the others if anywidget is there.

    Attributes:
        counts: the number of tiles along each dimension.
        drawing_at: the picture of the tile with an index.
    """

    counts: tuple[int, ...] = ()
    drawing_at: Callable[[Sequence[int]], Drawing] = field(kw_only=True)

    def _repr_mimebundle_(self, **options: Any) -> Any:
        from indexing.drawing.sliders import slider_of

        still = {"text/html": self._repr_html_(), "text/plain": repr(self)}
        slider = slider_of(
            self.counts, lambda at: self.drawing_at(at).with_theme(self.theme), self.theme
        )
        if slider is None:
            return still
        data, metadata = slider._repr_mimebundle_(**options)
        return {**data, **still}, metadata  # viewers without a kernel show the first tile


def plot_tiling(
    tiling: Tiling, index: Sequence[int], values: Mapping[str, Any], backend: Backend, theme: Theme
) -> Any:
    """Return a picture of a tile; see `Tiling.plot`."""

    def drawing_at(at: Sequence[int]) -> Drawing:
        drawing = as_drawing(tile_figure(tiling, at, values), "svg", theme)
        assert isinstance(drawing, Drawing)
        return drawing

    first = drawing_at(index or (0,) * len(tiling.grid))
    if backend == "matplotlib":
        return first.matplotlib()
    if index or not tiling.grid:
        return first
    return TileDrawing(first.figures, theme, tiling.grid, drawing_at=drawing_at)


def tile_figure(tiling: Tiling, index: Sequence[int], values: Mapping[str, Any]) -> Figure:
    """Return a tile, and what it needs of each operand."""
    slices = tiling.slices(*index)
    picture = AnswerPicture(tiling.answer, slices, values, tile=tiling.sizes)
    grid = " x ".join(map(str, tiling.grid))
    verb = "needs" if tiling.direction == "output-to-input" else "is needed by"
    name = tiling.instruction.name
    if tiling.direction == "input-to-output":
        name = tiling.instruction.operands[tiling.answer.domain_id].name
    return picture.figure(f"what tile ({', '.join(map(str, index))}) of {grid} of {name} {verb}")

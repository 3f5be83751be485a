"""Sliders over the tiles of a picture, for notebooks with anywidget (extra ``[notebook]``)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from indexing.drawing.drawing import Drawing

_SCRIPT: Final = """
function render({ model, el }) {
  const picture = document.createElement("div");
  picture.style.overflowX = "auto";
  model.get("counts").forEach((count, k) => {
    const label = document.createElement("label");
    const slider = document.createElement("input");
    const text = document.createElement("output");
    Object.assign(slider, { type: "range", min: 0, max: count - 1, value: model.get("index")[k] });
    const show = () => { text.textContent = ` tile ${slider.value} of ${count}`; };
    slider.addEventListener("input", () => {
      const index = [...model.get("index")];
      index[k] = Number(slider.value);
      model.set("index", index);
      model.save_changes();
      show();
    });
    show();
    label.append(`d${k} `, slider, text);
    label.style.display = "block";
    if (count > 1) { el.append(label); }
  });
  const draw = () => { picture.innerHTML = model.get("svg"); };
  model.on("change:svg", draw);
  draw();
  el.append(picture);
}
export default { render };
"""


def slider_of(counts: Sequence[int], drawing_at: Callable[[Sequence[int]], Drawing]) -> Any | None:
    """Return a widget with a slider for each dimension; None if anywidget is not installed."""
    try:
        import anywidget
        import traitlets
    except ImportError:
        return None

    class TileSlider(anywidget.AnyWidget):  # type: ignore[misc]  # anywidget may be missing
        """Sliders, and the picture of the chosen tile."""

        _esm = _SCRIPT
        counts: Any = traitlets.List().tag(sync=True)
        index: Any = traitlets.List().tag(sync=True)
        svg = traitlets.Unicode().tag(sync=True)

        @traitlets.observe("index")
        def _draw(self, change: Any) -> None:
            self.svg = drawing_at(tuple(change["new"])).svg

    start = [0] * len(counts)
    return TileSlider(counts=list(counts), index=start, svg=drawing_at(start).svg)

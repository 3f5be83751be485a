"""The sliders of `Tiling.plot` in Chromium, with the widget's Python part behind a stub model."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest

import indexing
from indexing.drawing.sliders import slider_of
from tests.drawing.test_region_pictures import DOT, read_counts, root_of

pytest.importorskip("anywidget", reason="needs the extra notebook")

# The model has the events of Backbone, as in notebooks; `python` sets traits and returns all.
PAGE = """<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">
<meta name="color-scheme" content="light dark"><style>%s</style></head><body>
<script type="module">
class Model {
  listeners = [];
  changed = {};
  get(name) { return this.state[name]; }
  set(name, value) { this.changed[name] = value; this.update({ [name]: value }); }
  on(event, listener) { this.listeners.push([event, listener]); }
  off(event, gone) { this.listeners = this.listeners.filter(([, each]) => each !== gone); }
  update(state) {
    const changed = Object.keys(state).filter((k) => "" + state[k] !== "" + this.state[k]);
    Object.assign(this.state, state);
    for (const name of changed) {
      for (const [event, call] of this.listeners) if (event === `change:${name}`) call();
    }
  }
  async save_changes() {
    const { changed } = this;
    this.changed = {};
    this.update(await python(changed));
  }
}
const code = new Blob([%s], { type: "text/javascript" });
const { default: widget } = await import(URL.createObjectURL(code));
window.model = new Model();
model.state = await python({});
const view = (id) => {
  const el = document.createElement("section");
  el.id = id;
  document.body.append(el);
  return widget.render({ model, el });
};
const removals = [view("first"), view("second")];
window.removeViews = () => removals.forEach((remove) => remove());
document.documentElement.dataset.ready = "";
</script></body></html>"""

Open = Callable[..., Any]
Shoot = Callable[[Any, str], None]


class Notebook:
    """The page of a tiling, whose model sets the traits of a widget in Python."""

    def __init__(self, open_page: Open, tiling: indexing.Tiling, theme: str = "light") -> None:
        drawing = tiling.plot()
        self.tiling = tiling
        self.widget = slider_of(drawing.counts, drawing.drawing_at)
        assert self.widget is not None
        html = PAGE % (self.widget._css, json.dumps(self.widget._esm))
        self.page = open_page(html, theme=theme, functions={"python": self.set})

    def set(self, traits: dict[str, Any]) -> dict[str, Any]:
        """Set traits, and return the state that a view sees."""
        assert self.widget is not None
        for name, value in traits.items():
            setattr(self.widget, name, value)
        return {k: getattr(self.widget, k) for k in ("counts", "index", "svg", "theme")}

    def shows(self, view: str, *index: int) -> None:
        """Check sliders, labels and cells of a view against the reads of a tile, one by one."""
        page, tiling = self.page, self.tiling
        page.wait_for_function(
            "([view, title]) => document.querySelector(`#${view} svg text`).textContent === title",
            arg=[view, f"what tile {index} of 2 x 3 of r needs"],
        )
        assert self.values(view) == [str(k) for k in index]
        assert page.locator(f"#{view} output").all_inner_texts() == [
            f"tile {k} in [0, {n - 1}]" for k, n in zip(index, tiling.grid, strict=True)
        ]
        for k, operand in enumerate(tiling.answer.operands):
            counts = read_counts(tiling.answer, k, tiling.slices(*index))
            shown = page.locator(f"#{view} [data-panel={operand.name}] [data-index]")
            cells = dict(shown.evaluate_all("all => all.map((c) => Object.values(c.dataset))"))
            places = product(*map(range, counts.shape))
            assert cells == {",".join(map(str, at)): str(counts[at]) for at in places}

    def values(self, view: str) -> list[str]:
        return [each.input_value() for each in self.page.locator(f"#{view} input").all()]


def tiling() -> indexing.Tiling:
    result = indexing.tile(root_of(DOT), (2, 3))
    assert isinstance(result, indexing.Tiling)
    return result


def test_keys_move_to_each_tile(open_page: Open) -> None:
    notebook = Notebook(open_page, tiling())
    notebook.shows("first", 0, 0)
    page = notebook.page
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowRight")
    notebook.shows("first", 1, 0)
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowRight")
    notebook.shows("first", 1, 1)
    page.keyboard.press("End")
    notebook.shows("first", 1, 2)
    page.keyboard.press("ArrowRight")
    notebook.shows("first", 1, 2)  # there is no further tile
    page.keyboard.press("Home")
    notebook.shows("first", 1, 0)


def test_the_mouse_moves_all_views(open_page: Open) -> None:
    """A notebook may show one widget twice, and Python may choose the tile."""
    notebook = Notebook(open_page, tiling())
    slider = notebook.page.locator("#second").get_by_role("slider", name="d1")
    box = slider.bounding_box()
    assert box is not None
    notebook.page.mouse.click(box["x"] + box["width"] - 3, box["y"] + box["height"] / 2)
    notebook.shows("second", 0, 2)
    notebook.shows("first", 0, 2)
    notebook.set({"index": [1, 1]})
    notebook.page.evaluate("async () => model.update(await python({}))")
    notebook.shows("first", 1, 1)
    notebook.page.evaluate("removeViews()")
    assert notebook.page.evaluate("model.listeners.length") == 0


def test_a_dimension_of_one_tile_has_no_slider(open_page: Open) -> None:
    whole = indexing.tile(root_of(DOT), (3, 2))
    assert isinstance(whole, indexing.Tiling)
    notebook = Notebook(open_page, whole)
    (slider,) = notebook.page.locator("#first").get_by_role("slider").all()
    assert slider.get_attribute("aria-label") == "tile along d1"
    slider.focus()
    notebook.page.keyboard.press("End")
    notebook.page.wait_for_selector("#first svg text:text('what tile (0, 3)')")


# Relative luminance as in WCAG 2.1; texts need a contrast of 4.5, controls one of 3.
CONTRAST = """() => {
  const luminance = (text) => {
    const linear = text.match(/\\d+/g).slice(0, 3).map((v) => v / 255)
      .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  };
  const style = getComputedStyle(document.querySelector("#first > div"));
  const ground = luminance(style.backgroundColor);
  return [style.color, style.accentColor].map(luminance)
    .map((l) => (Math.max(l, ground) + 0.05) / (Math.min(l, ground) + 0.05));
}"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_labels_are_readable(open_page: Open, shoot: Shoot, theme: str) -> None:
    notebook = Notebook(open_page, tiling(), theme)
    text, control = notebook.page.evaluate(CONTRAST)
    assert text > 4.5
    assert control > 3
    shoot(notebook.page, f"sliders-{theme}")

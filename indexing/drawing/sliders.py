"""Sliders over the tiles of a picture, for notebooks with anywidget (extra ``[notebook]``)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from indexing.drawing.drawing import Drawing
from indexing.drawing.style import DARK, LIGHT, SANS, Colours, Theme

_SCRIPT: Final = Path(__file__).parent / "assets" / "sliders.js"


def slider_of(
    counts: Sequence[int], drawing_at: Callable[[Sequence[int]], Drawing], theme: Theme = "auto"
) -> Any | None:
    """Return a widget with a slider for each dimension; None if anywidget is not installed."""
    try:
        import anywidget
        import traitlets
    except ImportError:
        return None

    class TileSlider(anywidget.AnyWidget):  # type: ignore[misc]  # anywidget may be missing
        """Sliders, and the picture of the chosen tile."""

        _esm = _SCRIPT.read_text(encoding="utf-8")
        _css = _style()
        counts: Any = traitlets.List().tag(sync=True)
        index: Any = traitlets.List().tag(sync=True)
        svg = traitlets.Unicode().tag(sync=True)
        theme = traitlets.Unicode().tag(sync=True)

        @traitlets.observe("index")
        def _draw(self, change: Any) -> None:
            self.svg = drawing_at(tuple(change["new"])).svg

    return TileSlider(counts=list(counts), index=[0] * len(counts), theme=theme)


def _style() -> str:
    """Return the style of the sliders, which have the ground and the text of the picture.

    The page around them may be of another theme than the picture.
    """
    rules = [
        f".hlo-tiles {{ padding: 8px 16px 0; font: 13px {SANS}; }}",
        ".hlo-tiles label { display: flex; align-items: center; gap: 8px; }",
        ".hlo-tiles-picture { margin: 0 -16px; overflow-x: auto; }",
        f".hlo-tiles-auto, .hlo-tiles-light {{ {_colours(LIGHT, 'light')} }}",
        f".hlo-tiles-dark {{ {_colours(DARK, 'dark')} }}",
        "@media (prefers-color-scheme: dark) {",
        f".hlo-tiles-auto {{ {_colours(DARK, 'dark')} }}",
        "}",
    ]
    return "\n".join(rules)


def _colours(colours: Colours, scheme: str) -> str:
    return (
        f"background: {colours.paper}; color: {colours.ink}; accent-color: {colours.accent}; "
        f"color-scheme: {scheme};"
    )

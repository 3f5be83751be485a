"""`Drawing`: a picture that notebooks show, and that files store."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

from hlo.arguments import checked, checked_constructor
from indexing.drawing.canvas import attribute
from indexing.drawing.figures import Figure
from indexing.drawing.style import Theme
from indexing.drawing.svg_text import svg_text

Backend: TypeAlias = Literal["svg", "matplotlib"]


@checked_constructor
@dataclass(frozen=True, slots=True, repr=False)
class Drawing:
    """A picture, the result of ``plot()``.

    Attributes:
        figures: what is drawn, as data; figures are below each other.
        theme: "light", "dark", or "auto": as the reader prefers.

    >>> from indexing import IndexingMap
    >>> drawing = IndexingMap.over((8,), lambda d: [d[0] * 2]).at(slice(0, 3)).plot()
    >>> drawing, drawing.svg.count("data-index")
    (<drawing of 'region [0:5:2]'>, 5)
    """

    figures: tuple[Figure, ...]
    theme: Theme = "auto"

    @property
    def svg(self) -> str:
        """The text of an SVG file, which refers to nothing outside of it."""
        return svg_text(self.figures, self.theme)

    @property
    def html(self) -> str:
        """The text of an HTML page with the picture alone.

        >>> from indexing import IndexingMap
        >>> drawing = IndexingMap.over((8,), lambda d: [d[0] * 2]).at(slice(0, 3)).plot()
        >>> drawing.html.splitlines()[0], drawing.svg in drawing.html
        ('<!DOCTYPE html>', True)
        """
        title = attribute("; ".join(figure.title for figure in self.figures))
        colours = "light dark" if self.theme == "auto" else self.theme
        return (
            '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
            f'<meta name="color-scheme" content="{colours}"><title>{title}</title></head>\n'
            f"<body>{self.svg}</body></html>\n"
        )

    @checked
    def with_theme(self, theme: Theme) -> Drawing:
        """Return the picture with another theme: "auto", "light" or "dark".

        Raises:
            ValueError: there is no such theme.

        >>> from indexing import IndexingMap
        >>> drawing = IndexingMap.over((8,), lambda d: [d[0] * 2]).at(slice(0, 3)).plot()
        >>> drawing.theme, drawing.with_theme("dark").theme
        ('auto', 'dark')
        """
        return replace(self, theme=theme)

    @checked
    def save(self, path: str | Path) -> None:
        """Write the picture into a file, whose suffix is ``.svg`` or ``.html``.

        Raises:
            ValueError: the path has another suffix.
            OSError: the file cannot be written.

        >>> import tempfile, indexing
        >>> from pathlib import Path
        >>> m = indexing.parse_map("(d0) -> (d0 * 2), domain: d0 in [0, 7]")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     m.at(slice(0, 3)).plot((16,)).save(Path(folder) / "region.svg")
        ...     print([path.name for path in Path(folder).iterdir()])
        ['region.svg']
        """
        suffix = Path(path).suffix.lower()
        if suffix not in (".svg", ".html"):
            raise ValueError(f"cannot write {str(path)!r}: the suffix must be .svg or .html")
        text = self.html if suffix == ".html" else self.svg + "\n"
        Path(path).write_text(text, encoding="utf-8")

    def matplotlib(self) -> Any:
        """Return the picture as a figure of matplotlib, with an axes for each panel.

        Raises:
            ImportError: matplotlib is not installed.

        >>> from indexing import IndexingMap
        >>> drawing = IndexingMap.over((8,), lambda d: [d[0] * 2]).at(slice(0, 3)).plot()
        >>> figure = drawing.matplotlib()
        >>> figure.axes[0].get_title()
        'array [5]'
        """
        from indexing.drawing.matplotlib_axes import matplotlib_figure

        return matplotlib_figure(self.figures)

    def _repr_svg_(self) -> str:
        return self.svg

    def _repr_html_(self) -> str:
        return f'<div style="overflow-x: auto">{self.svg}</div>'

    def __repr__(self) -> str:
        return f"<drawing of {'; '.join(figure.title for figure in self.figures)!r}>"


def as_drawing(figure: Figure, backend: Backend, theme: Theme) -> Any:
    """Return a figure as a `Drawing`, or as a figure of matplotlib.

    Raises:
        ImportError: matplotlib is not installed.
    """
    drawing = Drawing((figure,), theme)
    return drawing.matplotlib() if backend == "matplotlib" else drawing

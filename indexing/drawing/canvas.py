"""`Canvas`: elements of SVG at growing positions; all text is escaped."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from html import escape
from typing import Final

from hlo.text.source import printable
from indexing.drawing.style import SIZES

_NO_XML: Final = re.compile("[\ud800-\udfff\ufffe\uffff]")
"""Characters that XML 1.0 excludes, beside the control characters."""


def number(value: float) -> str:
    """Return a coordinate as text, in hundredths of a pixel.

    >>> number(2.0), number(2.345)
    ('2', '2.35')
    """
    return f"{value:.2f}".rstrip("0").rstrip(".") or "0"


def attribute(text: object) -> str:
    """Return a text for an attribute or element: escaped, and without what XML has no place for.

    >>> attribute('<a "b">' + chr(27) + chr(0xD800))
    '&lt;a &quot;b&quot;&gt;\\\\x1b\\\\ud800'
    """
    return escape(_NO_XML.sub(lambda match: ascii(match[0])[1:-1], printable(str(text))))


class Canvas:
    """The elements of a picture, which are collected as text."""

    def __init__(self) -> None:
        self.parts: list[str] = []

    @contextmanager
    def group(self, x: float, y: float, **attributes: object) -> Iterator[None]:
        """Draw in a group whose origin is at a place."""
        names = "".join(
            f' {name.rstrip("_").replace("_", "-")}="{attribute(value)}"'
            for name, value in attributes.items()
        )
        self.parts.append(f'<g transform="translate({number(x)},{number(y)})"{names}>')
        yield
        self.parts.append("</g>")

    def text(self, x: float, y: float, text: str, style: str) -> None:
        """Draw a line of text; `y` is its baseline."""
        if text:
            self.parts.append(
                f'<text x="{number(x)}" y="{number(y)}" class="{style}">{attribute(text)}</text>'
            )

    def rect(
        self,
        box: tuple[float, float, float, float],
        style: str,
        title: str = "",
        data: tuple[object, object] | None = None,
        fill: str = "",
    ) -> None:
        """Draw a rectangle.

        Args:
            box: x, y, width and height.
            style: its class.
            title: the text shown on hover.
            data: the index and the value that it shows.
            fill: the name of a hatching.
        """
        x, y, width, height = map(number, box)
        marks = ""
        if data is not None:
            marks = f' data-index="{attribute(data[0])}" data-value="{attribute(data[1])}"'
        if fill:
            marks += f' fill="url(#{fill})"'
        style = f' class="{style}"' if style else ""
        head = f'<rect x="{x}" y="{y}" width="{width}" height="{height}"{style}{marks}'
        self.parts.append(
            f"{head}><title>{attribute(title)}</title></rect>" if title else f"{head}/>"
        )

    def line(self, start: tuple[float, float], end: tuple[float, float], style: str) -> None:
        """Draw a line."""
        (x1, y1), (x2, y2) = [tuple(map(number, p)) for p in (start, end)]
        self.parts.append(f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" class="{style}"/>')

    def path(self, points: Sequence[tuple[float, float]], style: str) -> None:
        """Draw lines through points."""
        text = "L".join(f"{number(x)},{number(y)}" for x, y in points)
        self.parts.append(f'<path d="M{text}" class="{style}"/>')

    def tip(self, x: float, y: float, dx: float, dy: float, size: float = 4.5) -> None:
        """Draw the tip of an arrow that ends at a place and comes from direction ``(dx, dy)``."""
        length = (dx * dx + dy * dy) ** 0.5 or 1
        dx, dy = dx / length * size, dy / length * size
        corners = (x, y), (x - dx - dy / 2, y - dy + dx / 2), (x - dx + dy / 2, y - dy - dx / 2)
        text = " ".join(f"{number(a)},{number(b)}" for a, b in corners)
        self.parts.append(f'<polygon points="{text}" class="tip"/>')

    def circle(
        self, x: float, y: float, radius: float, title: str, data: tuple[object, object]
    ) -> None:
        """Draw a point, with the index and the value that it shows."""
        self.parts.append(
            f'<circle cx="{number(x)}" cy="{number(y)}" r="{number(radius)}" class="tip" '
            f'data-index="{attribute(data[0])}" data-value="{attribute(data[1])}">'
            f"<title>{attribute(title)}</title></circle>"
        )

    def disc(self, x: float, y: float, radius: float) -> None:
        """Draw the ground of a number."""
        place = f'cx="{number(x)}" cy="{number(y)}" r="{number(radius)}"'
        self.parts.append(f'<circle {place} class="tip"/>')

    def lines(self, x: float, y: float, texts: Sequence[str], style: str) -> float:
        """Draw lines of text below each other; return the bottom of the last one."""
        step = SIZES[style] + 4
        for k, text in enumerate(texts):
            self.text(x, y + step * (k + 1) - 4, text, style)
        return y + step * len(texts)


def wrap_text(text: str, columns: int) -> list[str]:
    """Return a text as lines of at most `columns` characters; longer words are cut.

    >>> wrap_text("a long text", 6)
    ['a long', 'text']
    """
    from textwrap import wrap

    return wrap(printable(text), max(columns, 1)) or [""]

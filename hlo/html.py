"""HTML for notebooks: text in a monospace font, as it prints.

>>> preformatted_html("%p < %q")
'<pre style="white-space: pre; overflow-x: auto; text-align: left">%p &lt; %q</pre>'
"""

from __future__ import annotations

from html import escape
from typing import Final

MAX_LINES: Final = 100
"""Maximum number of lines of a text; the HTML counts the others."""


def preformatted_html(text: str, max_lines: int = MAX_LINES) -> str:
    """Return a text as HTML: one line for each of its lines, which are never wrapped.

    >>> print(preformatted_html("a\\nb\\nc", max_lines=1).partition(">")[2])
    a
    … 2 more lines: print shows all</pre>
    """
    lines = text.splitlines()
    hidden = len(lines) - max_lines
    if hidden > 0:
        noun = "line" if hidden == 1 else "lines"
        lines = [*lines[:max_lines], f"… {hidden} more {noun}: print shows all"]
    style = "white-space: pre; overflow-x: auto; text-align: left"
    return f'<pre style="{style}">{escape(chr(10).join(lines))}</pre>'


class Preformatted:
    """A value that notebooks show as its text."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return preformatted_html(str(self))

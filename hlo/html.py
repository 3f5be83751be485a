"""HTML for notebooks: texts and panels that open and close, in the colours of the page.

The colours are those of light pages, and of dark ones where JupyterLab, VS Code, Sphinx or the
browser is dark.

>>> print(preformatted_html("%p < %q"))  # doctest: +ELLIPSIS
<pre style="font-family: monospace; white-space: pre; ...">%p &lt; %q</pre>
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
    style = "font-family: monospace; white-space: pre; overflow-x: auto; text-align: left"
    return f'<pre style="{style}">{escape(chr(10).join(lines))}</pre>'


_LIGHT: Final = "--hlo-good:#1a7f37;--hlo-warn:#9a6700;--hlo-bad:#cf222e;--hlo-mute:#59636e"
_DARK: Final = "--hlo-good:#3fb950;--hlo-warn:#d29922;--hlo-bad:#ff7b72;--hlo-mute:#9198a1"
_DARK_PAGES: Final = (
    'body[data-jp-theme-light="false"] .hlo-repr,body.vscode-dark .hlo-repr,'
    'html[data-theme="dark"] .hlo-repr,html[theme="dark"] .hlo-repr'
)
_UNDECIDED_PAGES: Final = (
    'html:not([data-theme="light"]) body:not([data-jp-theme-light="true"]):not(.vscode-light) '
    ".hlo-repr"
)
_TABLES: Final = ".hlo-repr.hlo-repr.hlo-repr"  # more specific than rules of notebooks for tables
STYLE: Final = (
    f"<style>.hlo-repr{{{_LIGHT};font-family:monospace;text-align:left;overflow-x:auto}}"
    f"@media (prefers-color-scheme:dark){{{_UNDECIDED_PAGES}{{{_DARK}}}}}"
    f"{_DARK_PAGES}{{{_DARK}}}"
    ".hlo-repr summary{cursor:pointer}.hlo-repr details details{margin-left:1.5em}"
    ".hlo-repr pre{margin:.25em 0 .5em 1.5em}.hlo-repr b{font-weight:600}"
    ".hlo-repr .mute{color:var(--hlo-mute)}.hlo-repr .good{color:var(--hlo-good)}"
    ".hlo-repr .warn{color:var(--hlo-warn)}.hlo-repr .bad{color:var(--hlo-bad)}"
    ".hlo-repr table{border-collapse:collapse;margin:.25em 0 .5em 1.5em}"
    f"{_TABLES} th,{_TABLES} td{{white-space:pre;text-align:left;vertical-align:top;"
    "padding:.1em .6em;font-family:monospace}"
    ".hlo-repr th{border-bottom:1px solid rgba(128,128,128,.5)}"
    f"{_TABLES} td.wrapped{{white-space:pre-wrap;min-width:24em}}"
    f"{_TABLES} th.right,{_TABLES} td.right{{text-align:right}}</style>"
)
"""The style of `.hlo-repr`, which each value has: a notebook may show one of them only."""

GRADES: Final = {
    "exact": "good", "proved": "good", "true": "good",
    "may": "warn", "undecided": "warn",
    "unknown": "bad", "differs": "bad", "false": "bad",
}  # fmt: skip
"""Classes of colours, by grades and verdicts."""


def graded_html(text: str) -> str:
    """Return a text as HTML, in its colour if it is a grade or a verdict.

    >>> graded_html("may")
    '<span class="warn">may</span>'
    """
    kind = GRADES.get(text)
    return escape(text) if kind is None else f'<span class="{kind}">{escape(text)}</span>'


def panel_html(
    head: str, body: str = "", *, meta: str = "", grade: str = "", is_open: bool = True
) -> str:
    """Return a line that opens and closes what is below it, as HTML without a style.

    Args:
        head: the text of the line.
        body: the HTML below it; without it, the line does not open.
        meta: a muted text after it.
        grade: a grade or a verdict before it.
    """
    first = f"{graded_html(grade)}: " if grade else ""
    muted = f' <span class="mute">{escape(meta)}</span>' if meta else ""
    line = f"{first}<b>{escape(head)}</b>{muted}"
    if not body:
        return f"<div>{line}</div>"
    return f"<details{' open' if is_open else ''}><summary>{line}</summary>{body}</details>"


def styled_html(html: str) -> str:
    """Return HTML with the style of notebooks."""
    return f'<div class="hlo-repr">{STYLE}{html}</div>'


class Preformatted:
    """A value that notebooks show as its text."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return preformatted_html(str(self))


class DescribedShape:
    """A shape, which notebooks show as its text with the number of elements and bytes."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        try:
            size = f"{self.size:,} elements, {self.bytes:,} bytes"  # type: ignore[attr-defined]
        except ValueError:
            size = "a dimension of unknown size"
        return styled_html(panel_html(str(self), meta=size))

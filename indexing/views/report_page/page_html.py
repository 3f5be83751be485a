"""The HTML of a page: one file with its scripts, its style, and packed data."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from html import escape
from pathlib import Path
from typing import Final

from indexing.drawing.style import DARK, LIGHT, MONO, SANS, Colours, colour_rules

ASSETS: Final = Path(__file__).parent / "assets"
SCRIPTS: Final = (
    *("data.js", "search.js", "groups.js", "layout.js", "graph.js", "links.js", "fitting.js"),
    *("details.js", "pictures.js", "table.js", "memory.js", "kernels.js", "app.js"),
)


def page_html(title: str, data: Sequence[tuple[str, str]]) -> str:
    """Return the page; only scripts with these hashes run, and nothing is loaded."""
    theme, *rest = scripts = _scripts()
    hashes = " ".join([f"'sha256-{_digest(text)}'" for text in scripts])
    policy = f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data:"
    blocks = [
        f'<script type="application/octet-stream" id="{name}">{text}</script>'
        for name, text in data
    ]
    parts = {
        "title": escape(_visible(title)),
        "policy": escape(policy),
        "style": f"{_colours()}\n{_asset('report.css')}",
        "data": "\n".join(blocks),
        "theme": f"<script>{theme}</script>",
        "scripts": "\n".join([f"<script>{text}</script>" for text in rest]),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], _asset("report.html"))


def _colours() -> str:
    """Return the colours of the page as CSS variables, and those of the pictures in it.

    The theme is that of the reader, unless the root has another one in ``data-theme``.
    """
    light = f"{_variables(LIGHT)} --link: #0550ae; --good: #1a7f37; --bad: #b42318;"
    dark = f"{_variables(DARK)} --link: #79b8ff; --good: #56d364; --bad: #ff8f84;"
    chosen = ':root[data-theme="{}"]'.format
    rules = [
        f":root {{ --sans: {SANS}; --mono: {MONO}; {light} }}",
        f"@media (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}",
    ]
    for name, variables, colours in (("light", light, LIGHT), ("dark", dark, DARK)):
        rules.append(f"{chosen(name)} {{ color-scheme: {name}; {variables} }}")
        rules += colour_rules(f"{chosen(name)} .hlo-auto", colours)
    return "\n".join(rules)


def _variables(colours: Colours) -> str:
    values = {name: getattr(colours, name) for name in ("paper", "ink", "faint", "line", "accent")}
    values |= {f"h{k}": shade for k, shade in enumerate(colours.heat)}
    values["other"] = colours.other_label
    return " ".join([f"--{name}: {value};" for name, value in values.items()])


def _visible(text: str) -> str:
    """Return text with control characters, and halves of characters, as escapes."""
    return "".join([c if c.isprintable() else ascii(c)[1:-1] for c in text])


def _digest(text: str) -> str:
    return b64encode(sha256(text.encode()).digest()).decode()


def _scripts() -> Sequence[str]:
    """Return the script that sets the theme first, and the others."""
    return [
        _asset("theme.js"),
        _asset("vendor/dagre.min.js"),
        "\n".join([_asset(name) for name in SCRIPTS]),
    ]


@cache
def _asset(name: str) -> str:
    return (ASSETS / name).read_text(encoding="utf-8")

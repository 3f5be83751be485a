"""The terms of ``docs/glossary.md``, which answers and pages use.

A wheel has a copy of the page beside this module.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

_INSTALLED: Final = Path(__file__).parent / "glossary.md"
_SOURCE: Final = Path(__file__).parents[2] / "docs" / "glossary.md"
_ENTRY: Final = re.compile(r"\* <a id=\"[^\"]*\"></a>\*\*(?P<term>[^*]+)\*\*: (?P<text>.*)")
_ROW: Final = re.compile(r"\| <a id=\"[^\"]*\"></a>(?P<term>[^|]+) \| (?P<text>[^|]+) \|")
_LINK: Final = re.compile(r"\[([^\]]+)\]\([^)\s]+\)")
_EMPHASIS: Final = re.compile(r"(?<!\w)\*([^*]+)\*(?!\w)")


def terms() -> dict[str, str]:
    """Return the explanation of each term, without the marks of Markdown.

    >>> terms()["grade"]
    'the precision of a map: exact or may.'
    >>> terms()["moved"].partition(",")[0]
    'distinct bytes that are read'
    """
    page = _INSTALLED if _INSTALLED.is_file() else _SOURCE
    meanings = {}
    for line in page.read_text(encoding="utf-8").splitlines():
        if entry := _ENTRY.match(line) or _ROW.match(line):
            meanings[entry["term"]] = _EMPHASIS.sub(r"\1", _LINK.sub(r"\1", entry["text"]))
    return meanings

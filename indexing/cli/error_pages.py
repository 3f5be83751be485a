"""The pages of ``docs/errors``: one for each error code, with its meaning, an example, the repair.

A wheel has a copy of them beside this module.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_INSTALLED: Final = Path(__file__).parent / "error_pages"
_SOURCES: Final = Path(__file__).parents[2] / "docs" / "errors"
_LINK: Final = re.compile(r"\[([^\]]+)\]\([^)\s]+\)")


def codes() -> dict[str, Path]:
    """Return the page of each documented code.

    >>> codes()["syntax"].name
    'syntax.md'
    """
    folder = _INSTALLED if _INSTALLED.is_dir() else _SOURCES
    return {page.stem: page for page in sorted(folder.glob("*.md"))}


def meaning(page: Path) -> str:
    """Return the first sentence of a page, as Markdown."""
    paragraph = page.read_text(encoding="utf-8").split("\n\n")[1]
    return re.split(r"(?<=\.)\s", " ".join(paragraph.split()))[0]


def text_lines(page: Path, width: int | None = None) -> Iterator[str]:
    """Yield the lines of a page without the marks of Markdown; code is indented.

    Args:
        width: the number of columns of a terminal, to which prose is filled.

    >>> [*text_lines(codes()["syntax"])][:3]
    ['error[syntax]', '', 'The text does not follow the grammar of HLO. The error names what the \
parser expects at this place.']
    """
    is_code = False
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines()):
        if line.startswith("```"):
            is_code = not is_code
        elif is_code:
            yield f"    {line}".rstrip()
        elif number == 0:
            yield f"error[{page.stem}]"
        else:
            prose = _LINK.sub(r"\1", line).removeprefix("## ")
            yield from textwrap.wrap(prose, width or len(prose) + 1, break_long_words=False) or [""]

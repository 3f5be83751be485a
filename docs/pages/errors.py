"""The index of error codes, from the pages of ``docs/errors``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parents[1] / "errors"


def codes() -> dict[str, Path]:
    """Return the page of each documented code."""
    return {path.stem: path for path in sorted(FOLDER.glob("*.md"))}


def meaning(page: Path) -> str:
    """Return the first sentence of a page."""
    paragraph = page.read_text(encoding="utf-8").split("\n\n")[1]
    return re.split(r"(?<=\.)\s", " ".join(paragraph.split()))[0]


def index() -> str:
    """Return the Markdown of the index."""
    lines = [
        "# Errors by code",
        "",
        "An error names its kind in brackets: `error[undefined]`. In Python it is `error.code` of "
        "`hlo.HloError`, with `--format json` the key `code`. The tests raise the error of every "
        "page, and run its repair.",
        "",
        "| code | meaning |",
        "|---|---|",
        *(f"| [`{code}`]({code}.md) | {meaning(page)} |" for code, page in codes().items()),
        "",
        "```{toctree}",
        ":hidden:",
        "",
        *(f"{code} <{code}>" for code in codes()),
        "```",
        "",
    ]
    return "\n".join(lines)

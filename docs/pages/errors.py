"""The index of error codes, from the pages of ``docs/errors``."""

from __future__ import annotations

from indexing.cli.error_pages import codes, meaning


def index() -> str:
    """Return the Markdown of the index."""
    lines = [
        "# Errors by code",
        "",
        "An error names its kind in brackets: `error[undefined]`. In Python it is `error.code` of "
        "`hlo.HloError`, with `--format json` the key `code`. `hlo-indexing explain undefined` "
        "prints its page. The tests raise the error of every page, and run its repair.",
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

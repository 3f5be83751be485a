"""``hlo-indexing explain``: the meaning of error codes, and of the terms of answers."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

import click

from indexing.cli.completion import complete_codes
from indexing.cli.reporter import Reporter


@click.command("explain")
@click.argument("names", metavar="[WORD]...", nargs=-1, shell_complete=complete_codes)
@click.pass_obj
def command(reporter: Reporter, names: Sequence[str]) -> None:
    """Explain error codes and terms: the meaning of each, of a code also the repair.

    WORD is the name in the brackets of an error, such as `syntax` of `error[syntax]: ...`, or a
    term of the glossary, such as `may`. Without WORD, list the codes and the terms.

    \b
    Examples:
      hlo-indexing explain
      hlo-indexing explain op-constraint
      hlo-indexing explain may exact
    """
    from indexing.cli.error_pages import codes, meaning, text_lines
    from indexing.cli.glossary_terms import terms
    from indexing.cli.selected import did_you_mean

    pages, meanings = codes(), terms()
    if not names:
        width = max(map(len, pages))
        for code, page in pages.items():
            reporter.print(f"{code:{width}}  {meaning(page)}")
        reporter.print("", *_wrap(f"terms: {', '.join(meanings)}", reporter.width))
    for number, name in enumerate(names):
        code = name.removeprefix("error[").removesuffix("]")
        term = code if code in meanings else code.replace("-", " ").lower()
        known = [code in pages, term in meanings]
        if not any(known):
            near = did_you_mean(code, [*pages, *meanings])
            reporter.error(f"error[name]: unknown error code or term `{code}`", *near)
            continue
        if number:
            reporter.print("")
        if code in pages:
            reporter.print(*text_lines(pages[code], reporter.width))
        if all(known):
            reporter.print("")
        if term in meanings:
            reporter.print(*_wrap(f"{term}: {meanings[term]}", reporter.width))


def _wrap(text: str, width: int | None) -> list[str]:
    """Return the lines of a text; with a width, at most as long."""
    return textwrap.wrap(text, width, break_long_words=False) if width else [text]

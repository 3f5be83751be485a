"""``hlo-indexing explain``: the meaning of error codes."""

from __future__ import annotations

from collections.abc import Sequence

import click

from indexing.cli.completion import complete_codes
from indexing.cli.reporter import Reporter


@click.command("explain")
@click.argument("names", metavar="[CODE]...", nargs=-1, shell_complete=complete_codes)
@click.pass_obj
def command(reporter: Reporter, names: Sequence[str]) -> None:
    """Explain the error codes: what each means, an example, and its repair.

    CODE is the name in the brackets of an error: `syntax` of `error[syntax]: ...`. Without CODE,
    list the codes.

    \b
    Examples:
      hlo-indexing explain
      hlo-indexing explain op-constraint
    """
    from indexing.cli.error_pages import codes, meaning, text_lines
    from indexing.cli.selected import did_you_mean

    pages = codes()
    if not names:
        width = max(map(len, pages))
        for code, page in pages.items():
            reporter.print(f"{code:{width}}  {meaning(page)}")
    for number, name in enumerate(names):
        code = name.removeprefix("error[").removesuffix("]")
        if code not in pages:
            reporter.error(f"error[name]: unknown error code `{code}`", *did_you_mean(code, pages))
            continue
        if number:
            reporter.print("")
        reporter.print(*text_lines(pages[code], reporter.width))

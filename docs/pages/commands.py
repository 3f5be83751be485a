"""Pages of the command, from the help texts of `click`: one for each subcommand."""

from __future__ import annotations

import re
from collections.abc import Iterator
from inspect import cleandoc
from typing import Final

import click

from indexing.cli.group import COMMANDS, PROGRAM, cli

_VERBATIM: Final = "\b"  # `click` keeps the lines of such a paragraph
_CODE: Final = re.compile(r"(`[^`]+`)|(?<![\w-])(--?[a-zA-Z][\w-]*)")
_SPECIAL: Final = re.compile(r"([\\*_<>\[\]{}#|])")


def pages() -> dict[str, str]:
    """Return the Markdown of each page by its file name.

    >>> list(pages())[:2]
    ['index.md', 'ls.md']
    """
    context = click.Context(cli, info_name=PROGRAM, **cli.context_settings)
    result = {"index.md": "\n".join([*_page(context), *_contents()])}
    for name in COMMANDS:
        command = cli.get_command(context, name)
        assert command is not None
        inner = click.Context(command, info_name=name, parent=context)
        result[f"{name}.md"] = "\n".join(_page(inner))
    return result


def _contents() -> Iterator[str]:
    yield from ("## Commands", "")
    yield from (
        f"* [{PROGRAM} {name}]({name}.md): {text(about)}." for name, about in COMMANDS.items()
    )
    yield from ("", "```{toctree}", ":hidden:", "", *(f"{PROGRAM} {n} <{n}>" for n in COMMANDS))
    yield from ("```", "")


def _page(context: click.Context) -> Iterator[str]:
    command = context.command
    path = context.command_path
    usage = " ".join(command.collect_usage_pieces(context))
    is_group = isinstance(command, click.Group)
    yield from ("# The command" if is_group else f"# {path}", "")
    yield from ("```text", f"{path} {usage}", "```", "")
    for paragraph in re.split(r"\n{2,}", cleandoc(command.help or "")):
        if paragraph.startswith(_VERBATIM):
            heading, *body = paragraph.removeprefix(_VERBATIM).strip("\n").split("\n")
            if heading.endswith(":"):
                yield from (f"## {text(heading.removesuffix(':'))}", "")
            else:
                yield from (text(heading), "")
            yield from ("```text", cleandoc("\n".join(["", *body])), "```", "")
        else:
            yield from (text(" ".join(paragraph.split())), "")
    yield from ("## Options", "", "```{program} " + path, "```", "")
    for option in command.get_params(context):
        record = option.get_help_record(context) if isinstance(option, click.Option) else None
        if record is not None:
            yield from ("````{option} " + record[0], text(record[1]), "````", "")


def text(help_text: str) -> str:
    r"""Return Markdown of a help text: options are code, other characters are literal.

    >>> print(text("Print at most N maps of *fusion*: see --limit and `-o`."))
    Print at most N maps of \*fusion\*: see `--limit` and `-o`.
    """
    parts, end = [], 0
    for match in _CODE.finditer(help_text):
        parts += [
            _SPECIAL.sub(r"\\\1", help_text[end : match.start()]),
            match[1] or f"`{match[2]}`",
        ]
        end = match.end()
    escaped = "".join([*parts, _SPECIAL.sub(r"\\\1", help_text[end:])])
    return re.sub(r"docs/(\w+\.md)", r"[](../\1)", escaped)

"""Manual pages, made from the help texts of the commands: ``docs/man``, by ``make docs``.

Source: groff ``man(7)``; ``click`` has the usage lines and the texts of the options.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from importlib.metadata import version
from inspect import cleandoc
from pathlib import Path
from typing import Final

import click

from indexing.cli.group import COMMANDS, PROGRAM, cli

SECTIONS: Final = ("Examples", "Exit status", "Environment")
"""Headings of help texts that are sections of the page; others are in its description."""

_VERBATIM: Final = "\b"  # `click` keeps the lines of such a paragraph
_CODE: Final = re.compile(r"`([^`]+)`|(?<![\w-])(--?[a-zA-Z][\w-]*)")
_ESCAPES: Final = {"\\": r"\e", "-": r"\-", "'": r"\(aq", "`": r"\(ga", "^": r"\(ha", "~": r"\(ti"}


def write_pages(folder: str) -> None:
    """Write all pages into a folder, in place of its earlier pages."""
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    for old in target.glob("*.1"):
        old.unlink()
    for name, text in pages().items():
        (target / name).write_text(text, encoding="utf-8")


def pages() -> dict[str, str]:
    """Return the text of each page by its file name.

    >>> list(pages())[:2]
    ['hlo-indexing.1', 'hlo-indexing-ls.1']
    """
    context = click.Context(cli, info_name=PROGRAM, **cli.context_settings)
    result = {f"{PROGRAM}.1": _page(context, cleandoc(cli.help or "").partition(".")[0])}
    for name, summary in COMMANDS.items():
        command = cli.get_command(context, name)
        assert command is not None
        inner = click.Context(command, info_name=name, parent=context)
        result[f"{PROGRAM}-{name}.1"] = _page(inner, summary)
    return result


def _page(context: click.Context, summary: str) -> str:
    """Return the page of one command."""
    command = context.command
    name = context.command_path.replace(" ", "-")
    usage = " ".join(command.collect_usage_pieces(context))
    description, sections = _parts(command.help or "", command.epilog or "")
    lines = [
        f'.TH "{escape_roff(name.upper())}" 1 "" "{PROGRAM} {version(PROGRAM)}"',
        ".SH NAME",
        rf"{escape_roff(name)} \- {escape_roff(summary[0].lower() + summary[1:])}",
        ".SH SYNOPSIS",
        rf"\fB{escape_roff(context.command_path)}\fR {escape_roff(usage)}",
        ".SH DESCRIPTION",
        *description,
        *(_commands() if isinstance(command, click.Group) else ()),
        ".SH OPTIONS",
        *_options(context),
        *sections,
        ".SH SEE ALSO",
        _see_also(name),
    ]
    return "\n".join(lines) + "\n"


def _parts(*texts: str) -> tuple[list[str], list[str]]:
    """Return the lines of the description, and those of the other sections."""
    description: list[str] = []
    sections: list[str] = []
    for paragraph in re.split(r"\n{2,}", "\n\n".join(cleandoc(text) for text in texts if text)):
        if not paragraph.startswith(_VERBATIM):
            separator = [".PP"] if description else []
            description += [*separator, *_sentences(paragraph)]
            continue
        heading, *body = paragraph.removeprefix(_VERBATIM).strip("\n").split("\n")
        title = heading.removesuffix(":")
        if title in SECTIONS:
            sections += [f".SH {title.upper()}", *_verbatim(body)]
        else:
            description += [".PP", _bold_options(heading), ".PP", *_verbatim(body)]
    return description, sections


def _sentences(paragraph: str) -> Iterator[str]:
    """Yield each sentence on a line, as the authors of manual pages write them."""
    for sentence in re.split(r"(?<=[.:;]) ", " ".join(paragraph.split())):
        yield _bold_options(sentence)


def _verbatim(lines: Iterable[str]) -> Iterator[str]:
    """Yield lines that are not filled, indented by the macros."""
    yield from (".RS 4", ".nf")
    yield from (_line(escape_roff(line.removeprefix("  "))) for line in lines)
    yield from (".fi", ".RE")


def _commands() -> Iterator[str]:
    yield ".SH COMMANDS"
    for name, summary in COMMANDS.items():
        yield from (
            ".TP",
            rf"\fB{escape_roff(f'{PROGRAM}-{name}')}\fR(1)",
            _bold_options(summary + "."),
        )


def _options(context: click.Context) -> Iterator[str]:
    for option in context.command.get_params(context):
        record = option.get_help_record(context) if isinstance(option, click.Option) else None
        if record is not None:
            spelling, text = record
            yield from (".TP", _bold_options(spelling), *_sentences(text))


def _see_also(name: str) -> str:
    others = [PROGRAM, *(f"{PROGRAM}-{command}" for command in COMMANDS)]
    return ",\n".join(rf"\fB{escape_roff(other)}\fR(1)" for other in others if other != name)


def _bold_options(text: str) -> str:
    """Return a text whose options and code are bold.

    >>> print(_bold_options("FILE is `m.hlo`: see --output."))
    FILE is \\fBm.hlo\\fR: see \\fB\\-\\-output\\fR.
    """
    parts: list[str] = []
    end = 0
    for match in _CODE.finditer(text):
        code = escape_roff(match[1] or match[2])
        parts += [escape_roff(text[end : match.start()]), rf"\fB{code}\fR"]
        end = match.end()
    return _line("".join([*parts, escape_roff(text[end:])]))


def _line(text: str) -> str:
    r"""Return a line of text that is not a macro.

    >>> print(_line(".hlo files"))
    \&.hlo files
    """
    return rf"\&{text}" if text.startswith((".", "'")) else text


def escape_roff(text: str) -> str:
    r"""Return text without characters that roff interprets.

    >>> print(escape_roff("a-b \\ '…'"))
    a\-b \e \(aq\[u2026]\(aq
    """
    return "".join(_ESCAPES.get(c, c) if c.isascii() else rf"\[u{ord(c):04X}]" for c in text)

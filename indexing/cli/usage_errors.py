"""Errors in command lines, in the style of errors in inputs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from shlex import quote
from typing import Final

import click

from hlo.text.source import printable

_QUOTED: Final = re.compile(r"(?<!\w)'([^']*)'(?!\w)")
"""A name in the quotes of click."""


class NoArguments(click.UsageError):
    """A command line without arguments: the help precedes the error."""


class UnknownCommand(click.UsageError):
    """A command that does not exist.

    Attributes:
        name: its name.
        known: the names of commands.
    """

    def __init__(self, name: str, known: Sequence[str], context: click.Context) -> None:
        super().__init__(f"unknown command `{name}`", context)
        self.name = name
        self.known = known


def usage_error_lines(error: click.ClickException) -> list[str]:
    """Return an error in a command line as lines.

    >>> error = click.NoSuchOption("--limt", possibilities=["--limit"])
    >>> print(*usage_error_lines(error), sep=chr(10))
    error[usage]: no such option `--limt`
      = help: did you mean `--limit`?
    """
    if isinstance(error, NoArguments) and error.ctx is not None:
        return [*error.ctx.get_help().split("\n"), "", f"error[usage]: {error.message}"]
    message = (
        printable(error.message) if isinstance(error, click.NoSuchOption) else _message_text(error)
    )
    first, *others = (message or "invalid command line").split("\n")
    if first[1:2].islower():  # not such as JSON
        first = first[0].lower() + first[1:]
    helps = [*_suggestions(error), *_help_command(error)]
    first = _with_backticks(first.removesuffix("."), error)
    return [f"error[usage]: {first}", *others, *(f"  = help: {each}" for each in helps)]


def _with_backticks(text: str, error: click.ClickException) -> str:
    """Return a message of click with names in backticks; messages of ours have theirs."""
    if type(error) is click.UsageError:
        return text
    named, colon, reason = text.partition(": ")
    if isinstance(error, click.BadParameter) and not _has_choices(error):
        return _QUOTED.sub(r"`\1`", named) + colon + reason
    return _QUOTED.sub(r"`\1`", text)


def _has_choices(error: click.BadParameter) -> bool:
    return error.param is not None and isinstance(error.param.type, click.Choice)


def _message_text(error: click.ClickException) -> str:
    """Return the message of an error, with the parameter that it is about."""
    error.message = printable(error.message)  # type: ignore[misc]  # before it is formatted
    if isinstance(error, click.BadParameter) and isinstance(error.param_hint, str):
        error.param_hint = printable(error.param_hint)
    return error.format_message()


def _suggestions(error: click.ClickException) -> Iterator[str]:
    """Yield a question with similar names, and what an option without its value is for."""
    from hlo.text.names import did_you_mean

    if question := did_you_mean(_similar_names(error)):
        yield question
    elif isinstance(error, UnknownCommand) and Path(error.name).exists():
        yield f"a command comes first: write `hlo-indexing summary {quote(error.name)}`"
    if isinstance(error, click.BadOptionUsage) and error.ctx is not None:
        for option in error.ctx.command.get_params(error.ctx):
            if isinstance(option, click.Option) and error.option_name in option.opts:
                purpose = f": {option.help}" if option.help else ""
                yield f"`{error.option_name} {option.make_metavar(error.ctx)}`{purpose}"


def _similar_names(error: click.ClickException) -> Sequence[str]:
    """Return the known names that are similar to an unknown one."""
    from hlo.text.names import similar

    if isinstance(error, UnknownCommand):
        return similar(error.name, error.known)
    if isinstance(error, click.NoSuchOption):
        return similar(error.option_name, error.possibilities or ())
    if isinstance(error, click.BadParameter) and error.param is not None:
        kind = error.param.type
        given = re.match(r"'([^']*)'", error.message)
        if isinstance(kind, click.Choice) and given is not None:
            return similar(given[1], [str(each) for each in kind.choices])
    return ()


def _help_command(error: click.ClickException) -> Iterator[str]:
    """Yield the command that prints the options of the command."""
    if isinstance(error, click.UsageError) and error.ctx is not None:
        yield f"`{error.ctx.command_path} --help` lists the arguments and options"

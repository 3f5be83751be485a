"""Options of every command: the file and the colours of its results, and notes."""

from __future__ import annotations

from copy import copy
from typing import Final

import click

from indexing.cli.colours import COLOUR_CHOICES
from indexing.cli.jax_inputs import function_options, with_functions
from indexing.cli.paths import OutputPath
from indexing.cli.reporter import reporter_of

HELP: Final = "Print this help"


def with_common_options(command: click.Command) -> click.Command:
    """Return a copy of `command` that also has the common options, after its own.

    An option whose name the command gives to an option of its own is left out.
    """
    own = {name for parameter in command.params for name in parameter.opts}
    added: list[click.Parameter] = [o for o in _options() if own.isdisjoint(o.opts)]
    result = copy(command)
    result.params = [*command.params, *function_options(command), *added]
    result.callback = with_functions(command)
    return click.help_option("--help", "-h", help=HELP)(result)


def _options() -> list[click.Option]:
    """Return the common options; they act on the `Reporter` and are no arguments of commands."""
    return [
        click.Option(
            ["--output-file", "-o"],
            metavar="FILE",
            type=OutputPath(stdout="text"),
            expose_value=False,
            is_eager=True,  # the files are checked against it
            callback=_write_to,
            help="Write the results into FILE, a regular file other than the inputs, which is "
            "replaced when they are complete; `-` is standard output",
        ),
        click.Option(
            ["--color"],
            type=click.Choice(COLOUR_CHOICES),
            expose_value=False,
            callback=_choose_colours,
            help="Print colours: by default on a terminal, unless NO_COLOR is set, and elsewhere "
            "if FORCE_COLOR is set",
        ),
        click.Option(
            ["--quiet", "-q"],
            is_flag=True,
            expose_value=False,
            callback=_print_no_notes,
            help="Print results and errors only: no notes, no warnings, no progress bar",
        ),
    ]


def _write_to(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
    if value is not None and not context.resilient_parsing:
        reporter_of(context).write_to(value)


def _choose_colours(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
    if value is not None and not context.resilient_parsing:
        reporter_of(context).colours = value


def _print_no_notes(context: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value and not context.resilient_parsing:
        reporter_of(context).is_quiet = True

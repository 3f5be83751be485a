"""The command `hlo-indexing`: options and messages; what it does is in the rooms below.

Imports every room.  Each command is a module of `indexing.cli.commands`, loaded on use; what a
command needs is imported inside it, so that ``--help`` answers at once.  Exit status: 0 fine, 1
something is wrong in the input, 2 wrong usage; 130 interrupted, 141 the output was closed.
"""

from __future__ import annotations

import gc
import io
import os
import sys
from collections.abc import Sequence
from importlib import import_module

import click

from indexing.cli.reporter import Reporter

COMMANDS = {
    "maps": "Print indexing maps of the modules in FILE...",
    "simplify": "Print each MAP simplified.",
    "compose": "Print the map x -> SECOND(FIRST(x)), simplified.",
    "check": "Check syntax, attributes and shapes of each FILE.",
    "run": "Run the module in FILE and print or write its results.",
    "validate": "Compute each instruction from its maps, and compare with kernels and XLA.",
    "ops": "List the declared ops and what is known of each.",
}


class Commands(click.Group):
    """The commands by name; ``--help`` lists them without loading any."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        found = import_module(f"indexing.cli.commands.{cmd_name}").command
        assert isinstance(found, click.Command)
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(
    cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(package_name="hlo-indexing", message="%(prog)s %(version)s")
@click.option("--debug", is_flag=True, help="Show the traceback of an internal error.")
@click.pass_obj
def cli(reporter: Reporter, debug: bool) -> None:
    """Which elements of one tensor another one needs: indexing maps of HLO modules."""
    reporter.debug = debug


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command and end the process with its exit status."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # whatever the terminal's encoding is
    gc.set_threshold(50_000, 20, 50)  # nearly all that is made lives on: looking for less is waste
    sys.exit(run(sys.argv[1:] if arguments is None else arguments))


def run(arguments: Sequence[str]) -> int:
    """Run the command; its exit status."""
    try:
        with cli.make_context("hlo-indexing", list(arguments)) as context:
            reporter = context.ensure_object(Reporter)
            with reporter.reporting("hlo-indexing"):
                cli.invoke(context)
            sys.stdout.flush()
            return 1 if reporter.failed else 0
    except click.exceptions.Exit as wish:
        return wish.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        return 130
    except BrokenPipeError:
        # Nobody reads on: what is still buffered must not complain when the interpreter ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141

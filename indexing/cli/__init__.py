"""The command `hlo-indexing`: options, messages and exit status.

Imports every room.  Each command is a module of `indexing.cli.commands`, loaded on use.  It imports
its dependencies inside its function, so that ``--help`` stays fast.  Exit status: 0 success,
1 error in the input, 2 usage error, 130 interrupted, 141 output closed by its reader, 128 + n ended
by signal n.
"""

from __future__ import annotations

import gc
import io
import os
import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from types import FrameType

import click

from hlo.text.source import printable
from indexing.cli.reporter import Reporter

COMMANDS = {
    "maps": "Print indexing maps of HLO modules",
    "simplify": "Simplify indexing maps",
    "compose": "Compose two indexing maps",
    "check": "Verify the syntax, attributes and shapes of HLO modules",
    "run": "Execute an HLO module on NumPy",
    "validate": "Check maps by executing them, and modules against XLA",
    "ops": "List the supported ops and the grades of their maps",
}


class UnknownCommand(click.UsageError):
    """A usage error with the names of similar commands."""

    def __init__(self, name: str, context: click.Context) -> None:
        from indexing.cli.printing import did_you_mean

        super().__init__(f"unknown command `{name}`", context)
        self.help = did_you_mean(name, COMMANDS)

    def format_message(self) -> str:
        return "\n".join([super().format_message(), *self.help])


class Commands(click.Group):
    """The group of all commands; ``--help`` lists them without loading their modules."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command = import_module(f"indexing.cli.commands.{cmd_name}").command
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in COMMANDS and not args[0].startswith("-"):
            raise UnknownCommand(args[0], ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(
    cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(package_name="hlo-indexing", message="%(prog)s %(version)s")
@click.option("--debug", is_flag=True, help="Print the traceback of internal errors")
@click.pass_obj
def cli(reporter: Reporter, debug: bool) -> None:
    """Compute indexing maps of HLO modules: which elements of a tensor another tensor needs."""
    reporter.debug = debug


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command and exit with its status."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # for any terminal encoding
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:  # `nohup` ignores SIGHUP
            signal.signal(number, _end)
    gc.set_threshold(50_000, 20, 50)  # most objects are long-lived: collect rarely
    sys.exit(run(sys.argv[1:] if arguments is None else arguments))


def _end(number: int, frame: FrameType | None) -> None:
    """End the command by an exception, so that its temporary files are removed."""
    raise SystemExit(128 + number)


def run(arguments: Sequence[str]) -> int:
    """Run the command and return its exit status."""
    try:
        with cli.make_context("hlo-indexing", list(arguments)) as context:
            reporter = context.ensure_object(Reporter)
            with reporter.reporting("hlo-indexing"):
                cli.invoke(context)
            sys.stdout.flush()
            return 1 if reporter.failed else 0
    except click.exceptions.Exit as request:
        return request.exit_code
    except click.ClickException as error:
        error.message = printable(error.message)  # type: ignore[misc]  # before it is shown
        error.show()
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        return 130
    except BrokenPipeError:
        # The reader closed the pipe: flushing the buffer at exit must not raise again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141

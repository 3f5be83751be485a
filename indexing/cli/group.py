"""The commands of `hlo-indexing`.

Each command is a module of `indexing.cli.commands`, loaded on use.  It imports its dependencies
inside its function, so that ``--help`` stays fast.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any, Final

import click

from indexing.cli.common_options import HELP, with_common_options
from indexing.cli.reporter import OutputError, Reporter
from indexing.cli.terminals import fit_message
from indexing.cli.usage_errors import NoArguments, UnknownCommand, usage_error_lines

PROGRAM = "hlo-indexing"

SECTIONS: Final = {
    "Read modules": {
        "ls": "List the instructions of HLO modules",
        "summary": "Summarise HLO modules: parameters, kinds of maps, large arrays, repeated reads",
        "source": "Show what a line of a program became: kernels and their bytes",
        "report": "Write an HTML page: graph, instructions, maps, tiles, bytes, changes",
        "check": "Verify the syntax, attributes and shapes of HLO modules",
    },
    "Maps": {
        "maps": "Print indexing maps of HLO modules",
        "simplify": "Simplify indexing maps",
        "compose": "Compose two indexing maps",
        "ops": "List the supported ops and the grades of their maps",
    },
    "Execution": {
        "run": "Execute an HLO module on NumPy",
        "validate": "Check maps by executing them, and modules against XLA",
    },
    "Bytes, memory and tiles": {
        "bytes": "Count the bytes that instructions move, and their operations",
        "memory": "List the buffers of modules: sizes with padding, lives, peaks of memory spaces",
        "tile": "Tile instructions: which elements each tile needs, as boxes, and which bytes move",
        "access": "Count the sectors and lines of memory that the warps of an instruction touch",
    },
    "Comparisons": {
        "diff": "Compare two HLO modules: proved equal, or an output element that differs",
        "passes": "Validate each compiler pass of a folder of dumps",
        "triage": "Sort modules on which compilations diverge by what differs, and by its cause",
        "kernels": "Compare the kernels that XLA emits with the fusions that they compute",
    },
    "Devices and functions of JAX": {
        "shard": "Split programs over devices: plans, sharding rules, signatures",
        "dump": "Compile a function of JAX for any target, and write what XLA dumps",
        "pallas": "Check the blocks of the Pallas calls of a function of JAX",
    },
    "Errors": {
        "explain": "Explain error codes: their meaning, an example, the repair",
    },
}
"""The commands with their purposes, as the help groups them."""

COMMANDS: Final = {name: about for own in SECTIONS.values() for name, about in own.items()}

_HELP: Final = """\
Compute indexing maps of HLO modules: which elements of a tensor another tensor needs.

\b
Examples:
  hlo-indexing summary m.hlo
  hlo-indexing ls m.hlo
  hlo-indexing maps m.hlo -i dot.7
  hlo-indexing maps m.hlo --to parameters
  hlo-indexing help maps
"""

_EPILOG: Final = """\
\b
Exit status:
  0        success
  1        an error in the input
  2        a usage error
  3        undecided (diff, kernels, pallas, passes, triage)
  130      interrupted by Ctrl-C
  141      the reader of the output closed it
  128 + N  ended by signal N

\b
Environment:
  NO_COLOR     if not empty, print no colours
  FORCE_COLOR  if not empty, print colours also where there is no terminal
"""
"""The help after the commands; no docstring, because ``python -OO`` drops those."""


class Commands(click.Group):
    """The group of all commands; ``--help`` lists them without loading their modules."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command = import_module(f"indexing.cli.commands.{cmd_name}").command
        assert isinstance(command, click.Command)
        command.help = command.help or COMMANDS[cmd_name]  # `python -OO` drops docstrings
        return with_common_options(command)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments; ``help COMMAND`` stands for ``COMMAND --help``."""
        if not (args or ctx.resilient_parsing):
            raise NoArguments("no command is given", ctx)
        if args[:1] == ["help"]:
            args = [*args[1:], "--help"]
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        is_command = args[0] in COMMANDS or args[0].startswith("-")
        if not (is_command or ctx.resilient_parsing):
            raise UnknownCommand(args[0], list(COMMANDS), ctx)
        ctx.ensure_object(Reporter).bar.update(args[0], 0)
        return super().resolve_command(ctx, args)

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        with _exit_statuses():  # help is printed here
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> int:
        """Run a command and return the exit status."""
        reporter = ctx.ensure_object(Reporter)
        with _exit_statuses(), reporter.bar, reporter.reporting(PROGRAM), reporter.writing():
            try:
                super().invoke(ctx)
            except click.UsageError as error:
                error.ctx = error.ctx or self._context_of_command(ctx)
                raise
        with _exit_statuses():
            reporter.flush()
            reporter.note_explanations()
        return 1 if reporter.failed else reporter.verdict

    def _context_of_command(self, ctx: click.Context) -> click.Context | None:
        """Return a context of the command whose arguments cannot be parsed: it has the options."""
        name = ctx.invoked_subcommand
        command = None if name is None else self.get_command(ctx, name)
        return None if command is None else click.Context(command, ctx, name)

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        _write_paragraphs(formatter, (self.help or "").rstrip())

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self.format_commands(ctx, formatter)
        click.Command.format_options(self, ctx, formatter)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, COMMANDS))
        for title, commands in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), about) for name, about in commands.items()])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        _write_paragraphs(formatter, (self.epilog or "").rstrip())


def _write_paragraphs(formatter: click.HelpFormatter, text: str) -> None:
    """Write a text of the help, indented and wrapped, after an empty line."""
    formatter.write_paragraph()
    with formatter.indentation():
        indent = " " * formatter.current_indent
        lines = click.wrap_text(text, formatter.width, indent, indent, preserve_paragraphs=True)
        formatter.write(f"{lines}\n")


def _print_version(context: click.Context, _: click.Parameter, is_wanted: bool) -> None:
    if is_wanted and not context.resilient_parsing:
        from indexing.cli.build import version_text

        click.echo(version_text(PROGRAM))
        context.exit()


@click.group(
    cls=Commands,
    help=_HELP,
    epilog=_EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Print the version, whether it has compiled modules, and that of Python",
)
@click.option("--debug", is_flag=True, help="Print the traceback of internal errors")
@click.help_option("--help", "-h", help=HELP)
@click.pass_obj
def cli(reporter: Reporter, debug: bool) -> None:
    reporter.debug = debug


def invoke(arguments: Sequence[str]) -> int:
    """Run the command, or complete a command line for the shell; return the exit status."""
    try:
        status = cli.main(list(arguments), PROGRAM, standalone_mode=False, obj=Reporter())
    except click.ClickException as error:
        with suppress(OSError):  # a usage error that cannot be shown keeps its status
            sys.stderr.write("\n".join([*fit_message(usage_error_lines(error)), ""]))
        return error.exit_code
    except click.Abort:
        return 130
    except OutputError as error:
        return _report_output_failure(error.file, error.strerror)
    except OSError as error:  # `click` prints help itself
        return _report_output_failure("standard output", error.strerror or str(error))
    assert isinstance(status, int)
    return status


def _report_output_failure(file: str, reason: str) -> int:
    with suppress(OSError):
        sys.stderr.write(f"error[io]: {file}: {reason}\n")
    return 1


@contextmanager
def _exit_statuses() -> Iterator[None]:
    """Exit with 130 if interrupted, and with 141 if the reader of the output closed it."""
    try:
        yield
    except KeyboardInterrupt:
        raise click.exceptions.Exit(130) from None
    except BrokenPipeError:
        raise click.exceptions.Exit(141) from None

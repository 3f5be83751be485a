"""``hlo-indexing ops``: the supported ops and their maps."""

from __future__ import annotations

from collections.abc import Sequence

import click

from indexing.cli.completion import complete_opcodes
from indexing.cli.options import format_option
from indexing.cli.reporter import Reporter


@click.command("ops")
@click.argument("opcodes", metavar="[OPCODE]...", nargs=-1, shell_complete=complete_opcodes)
@format_option(click.Choice(["text", "json", "markdown"]))
@click.pass_obj
def command(reporter: Reporter, opcodes: Sequence[str], notation: str) -> None:
    """List the grades and kinds of the maps of each op, in both directions.

    For each OPCODE given, also print its semantics, attributes and constraints.

    \b
    Examples:
      hlo-indexing ops
      hlo-indexing ops dot transpose
    """
    from indexing.cli.selected import did_you_mean
    from indexing.views.op_table import named_ops, op_lines

    for unknown in [name for name in opcodes if name not in named_ops()]:
        help_ = did_you_mean(unknown, named_ops())
        reporter.error(f"error[name]: unknown opcode `{unknown}`", *help_)
    known = [name for name in opcodes if name in named_ops()]
    if known or not opcodes:
        reporter.print(*op_lines(notation, known, reporter.width))

"""``hlo-indexing ops``: the declared ops and what is known of each."""

from __future__ import annotations

import click

from indexing.commands.reporter import Reporter


@click.command("ops")
@click.option(
    "--format",
    "notation",
    default="text",
    show_default=True,
    type=click.Choice(["text", "json", "markdown"]),
)
@click.pass_obj
def command(reporter: Reporter, notation: str) -> None:
    """List the declared ops: what each computes, its attributes, its rules, and what is known."""
    from indexing.op_table import op_lines

    for line in op_lines(notation):
        reporter.print(line)

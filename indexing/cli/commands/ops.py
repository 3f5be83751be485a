"""``hlo-indexing ops``: the declared ops and what is known of each."""

from __future__ import annotations

from collections.abc import Sequence

import click

from indexing.cli.reporter import Reporter


@click.command("ops")
@click.argument("opcodes", metavar="[OPCODE]...", nargs=-1)
@click.option(
    "--format",
    "notation",
    default="text",
    show_default=True,
    type=click.Choice(["text", "json", "markdown"]),
)
@click.pass_obj
def command(reporter: Reporter, opcodes: Sequence[str], notation: str) -> None:
    """List what is answered for each opcode in both directions: grades, and kinds of maps.

    Of each OPCODE that is named, all that is known: what it computes, attributes, rules.
    """
    from difflib import get_close_matches

    from indexing.views.op_table import named_ops, op_lines

    for strange in [name for name in opcodes if name not in named_ops()]:
        close = get_close_matches(strange, named_ops())
        help_ = f"\n  = help: did you mean {' or '.join(close)}?" if close else ""
        reporter.error(f"error[name]: no op is called `{strange}`{help_}")
    known = [name for name in opcodes if name in named_ops()]
    if known or not opcodes:
        for line in op_lines(notation, known):
            reporter.print(line)

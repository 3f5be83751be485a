"""``hlo-indexing simplify``: maps in their simplest form."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from indexing.commands.map_texts import MAP_FORMATS, read_map, show_map
from indexing.commands.reporter import Reporter


@click.command("simplify")
@click.argument("maps", metavar="[MAP]...", nargs=-1)
@click.option("--verify", is_flag=True, help="Prove that each simplified map equals the original.")
@click.option("--explain", is_flag=True, help="Show the steps that led there, too.")
@click.option("--format", "notation", default="text", show_default=True, type=MAP_FORMATS)
@click.pass_obj
def command(
    reporter: Reporter, maps: Sequence[str], verify: bool, explain: bool, notation: str
) -> None:
    """Print each MAP simplified; without MAP, the maps on standard input, one a line."""
    from indexing.simplify import Rewrite

    source = "<map>" if maps else "<stdin>"
    for line, text in enumerate(maps or sys.stdin, 1):
        if text.strip():
            with reporter.reporting(f"{source}:{line}"):
                found = read_map(text, source, 1 if maps else line)
                trace: list[Rewrite] = []
                simple = found.simplify(certify=verify, trace=trace if explain else None)
                show_map(reporter, simple, notation)
                for rewrite in trace:
                    reporter.print(f"  {rewrite.law}: {rewrite.after}")

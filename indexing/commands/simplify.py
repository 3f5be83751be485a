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
    from indexing.certificate import proved_as_written
    from indexing.simplify import Rewrite
    from simplifier.trace import Applied, recorded

    source = "<map>" if maps else "<stdin>"
    for line, text in enumerate(maps or sys.stdin, 1):
        if text.strip():
            with reporter.reporting(f"{source}:{line}"):
                steps: list[Rewrite | Applied] = []
                if explain:  # laws of expressions are applied when they are built
                    with recorded() as steps_of_reading:
                        found = read_map(text, source, 1 if maps else line)
                    steps.extend(steps_of_reading)
                else:
                    found = read_map(text, source, 1 if maps else line)
                simple = found.simplify(trace=steps if explain else None)
                if verify:
                    proved_as_written(text, simple)
                show_map(reporter, simple, notation)
                for step in steps:
                    before = f"{step.before} = " if isinstance(step, Applied) else ""
                    reporter.print(f"  {step.law}: {before}{step.after}")
                if verify:
                    reporter.print(f"  proved equal to {text.strip()}")

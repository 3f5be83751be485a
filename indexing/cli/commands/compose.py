"""``hlo-indexing compose``: one map after another."""

from __future__ import annotations

import click

from indexing.cli.map_texts import MAP_FORMATS, read_map, show_map
from indexing.cli.reporter import Reporter


@click.command("compose")
@click.argument("first")
@click.argument("second")
@click.option("--no-simplify", is_flag=True, help="Show the map as it was composed.")
@click.option("--verify", is_flag=True, help="Prove that the simplified map equals the original.")
@click.option("--format", "notation", default="text", show_default=True, type=MAP_FORMATS)
@click.pass_obj
def command(
    reporter: Reporter, first: str, second: str, no_simplify: bool, verify: bool, notation: str
) -> None:
    """Print the map x -> SECOND(FIRST(x)), simplified."""

    with reporter.reporting("compose"):
        before, after = read_map(first), read_map(second)
        try:
            composed = before.then(after)
        except ValueError as error:  # the spaces differ
            reporter.error(f"error[compose]: {error}")
            return
        show_map(reporter, composed if no_simplify else composed.simplify(certify=verify), notation)

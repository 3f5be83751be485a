"""``hlo-indexing simplify``: maps in normal form."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import ExitStack

import click

from indexing.cli.map_texts import MAP_FORMATS, read_map, show_map
from indexing.cli.options import EXPLAIN_HELP, VERIFY_HELP
from indexing.cli.reporter import Reporter


@click.command("simplify")
@click.argument("maps", metavar="[MAP]...", nargs=-1)
@click.option("--verify", is_flag=True, help=VERIFY_HELP)
@click.option("--explain", is_flag=True, help=EXPLAIN_HELP)
@click.option(
    "--format",
    "notation",
    default="text",
    show_default=True,
    type=MAP_FORMATS,
    help="Choose the output format",
)
@click.pass_obj
def command(
    reporter: Reporter, maps: Sequence[str], verify: bool, explain: bool, notation: str
) -> None:
    """Simplify each MAP; without MAP or with `-`, read maps from standard input, one per line.

    \b
    A MAP is text in the notation of docs/notation.md or of MLIR:
      hlo-indexing simplify "(d0) -> (d0 mod 8), domain: d0 in [0, 7]"
    """
    from indexing.maps.certificate import prove_text
    from indexing.maps.explanation import step_text
    from indexing.maps.simplify import Rewrite
    from simplifier.trace import Applied, recorded

    is_stdin = tuple(maps) in ((), ("-",))
    source = "<stdin>" if is_stdin else "<map>"
    for line, text in enumerate(sys.stdin if is_stdin else maps, 1):
        if text.strip() or not is_stdin:
            with reporter.reporting(f"{source}:{line}"):
                with ExitStack() as reading:  # building an expression applies laws, too
                    laws = reading.enter_context(recorded()) if explain else []
                    original = read_map(text, source, line if is_stdin else 1)
                steps: list[Rewrite | Applied] = [*laws]
                simple = original.simplify(trace=steps if explain else None)
                if verify:
                    prove_text(text, simple)
                show_map(reporter, simple, notation)
                for step in steps:
                    reporter.print(f"  {step_text(step)}")
                if verify:
                    reporter.print(f"  proved equal to {text.strip()}")

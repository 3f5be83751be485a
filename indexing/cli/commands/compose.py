"""``hlo-indexing compose``: the composition of two maps."""

from __future__ import annotations

import click

from indexing.cli.map_texts import MAP_FORMATS, read_map, show_map
from indexing.cli.options import format_option, verify_option
from indexing.cli.reporter import Reporter


@click.command("compose")
@click.argument("first")
@click.argument("second")
@click.option("--no-simplify", is_flag=True, help="Do not simplify the composed map")
@verify_option
@format_option(MAP_FORMATS)
@click.pass_obj
def command(
    reporter: Reporter, first: str, second: str, no_simplify: bool, verify: bool, notation: str
) -> None:
    """Compose two maps: print x -> SECOND(FIRST(x)), simplified.

    Each map is text in the notation of docs/notation.md or of MLIR.

    \b
    Examples:
      hlo-indexing compose "(d0) -> (d0 * 2), domain: d0 in [0, 3]" \\
          "(d0) -> (d0 floordiv 2), domain: d0 in [0, 7]"
    """
    if verify and no_simplify:
        raise click.UsageError("--verify cannot be used with --no-simplify")
    from indexing.maps.certificate import proofs

    with reporter.reporting("compose"):
        inner, outer = read_map(first, "<FIRST>"), read_map(second, "<SECOND>")
        try:
            composed = inner.then(outer)
        except ValueError as error:  # incompatible index spaces
            reporter.error(*f"error[compose]: {error}".split("\n"))
            return
        before = proofs()
        show_map(reporter, composed if no_simplify else composed.simplify(certify=verify), notation)
        if verify:
            reporter.note_proofs(proofs() - before)

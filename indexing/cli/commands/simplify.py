"""``hlo-indexing simplify``: maps in normal form."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import click

from indexing.cli.map_texts import (
    MAP_FORMATS,
    UNKNOWN,
    Bounds,
    MlirBounds,
    map_blocks,
    read_map,
    show_map,
)
from indexing.cli.options import format_option, verify_option
from indexing.cli.reporter import Reporter

if TYPE_CHECKING:
    from indexing.maps.indexing_map import IndexingMap


@click.command("simplify")
@click.argument("maps", metavar="[MAP]...", nargs=-1)
@click.option(
    "--dims",
    type=MlirBounds(),
    help="Give the dimensions of each `affine_map` these sizes or inclusive bounds: 64,0:15",
)
@click.option(
    "--symbols",
    type=MlirBounds(),
    help="Give the symbols of each `affine_map` these sizes or inclusive bounds",
)
@verify_option
@click.option("--explain", is_flag=True, help="List the simplification laws applied to each map")
@format_option(MAP_FORMATS)
@click.pass_obj
def command(
    reporter: Reporter,
    maps: Sequence[str],
    dims: Bounds | None,
    symbols: Bounds | None,
    verify: bool,
    explain: bool,
    notation: str,
) -> None:
    """Simplify each MAP; without MAP or with `-`, read maps from standard input.

    On standard input, a map is one line or several, as XLA logs it and `IndexingMap.pretty` prints
    it: lines of a domain continue the preceding map. Labels such as `operand id = 0`, sources of
    runtime variables, maps of replica IDs and the prefixes of XLA's log, such as
    `I0000 00:00:1700000000.1 1234 file.cc:99] `, are skipped.

    A MAP is text in the notation of docs/notation.md or of MLIR. An `affine_map` has no bounds:
    --dims and --symbols give them.

    \b
    Examples:
      hlo-indexing simplify "(d0) -> (d0 mod 8), domain: d0 in [0, 7]"
      hlo-indexing simplify --explain "(d0) -> ((d0 * 8) floordiv 4), domain: d0 in [0, 3]"
      echo "(d0) -> (d0 + d0), domain: d0 in [0, 3]" | hlo-indexing simplify --format isl
      hlo-indexing simplify --dims 64,0:15 "affine_map<(i, j) -> (i mod 64, j)>"
    """
    from hlo.formats.reading import stdin
    from indexing.maps.certificate import prove_text

    bounds = {"dims": dims, "symbols": symbols}
    proofs: Counter[str] = Counter()
    is_stdin = tuple(maps) in ((), ("-",))
    texts: Iterable[tuple[int, str | bytes]] = (
        map_blocks(stdin()) if is_stdin else enumerate(maps, 1)
    )
    for number, given in texts:
        if given.strip() == UNKNOWN:
            reporter.note(f"note: <stdin>:{number}: unknown indexing has no map")
            continue
        source = "<stdin>" if is_stdin else "<map>" if len(maps) == 1 else f"<MAP {number}>"
        line = number if is_stdin else 1
        with reporter.reporting(f"{source}:{line}" if is_stdin else source):
            text = given if isinstance(given, str) else _decode_line(given, number)
            simple, steps = _simplify_text(text, source, line, explain, bounds)
            if verify:
                prove_text(text, simple)
                proofs["unchanged" if text.split() == str(simple).split() else "proved"] += 1
            show_map(reporter, simple, notation, steps if explain else None)
    if verify:
        reporter.note_proofs(proofs)


def _decode_line(line: bytes, number: int) -> str:
    """Decode line `number` of standard input."""
    from hlo.formats.files import decode
    from hlo.text.source import HloError, Source

    try:
        return decode(line, "<stdin>")
    except HloError as error:
        before = "\n" * (number - 1)
        source = Source(before + error.span.source.text, "<stdin>")
        raise error.moved(source, len(before)) from None


def _simplify_text(
    text: str, source: str, line: int, explain: bool, bounds: Mapping[str, Bounds | None]
) -> tuple[IndexingMap, Sequence[str]]:
    """Return the simplified map, and its steps if they are requested."""
    from indexing.maps.explanation import step_text
    from indexing.maps.simplify import Rewrite
    from simplifier.trace import Applied, record_laws

    if not explain:
        return read_map(text, source, line, bounds).simplify(), ()
    with record_laws() as laws:  # building an expression applies laws, too
        original = read_map(text, source, line, bounds)
    steps: list[Rewrite | Applied] = [*laws]
    simple = original.simplify(trace=steps)
    # the reason for an empty map before the empty map
    steps.sort(key=lambda step: isinstance(step, Rewrite) and step.after.is_known_empty)
    return simple, [step_text(step) for step in steps] or ["already simplified"]

"""``hlo-indexing source``: what lines of a program became."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Final

import click

from indexing.cli.options import (
    before_option,
    files_argument,
    format_option,
    max_input_size_option,
)
from indexing.cli.reporter import Reporter
from indexing.cli.selected import did_you_mean

if TYPE_CHECKING:
    from indexing.views.source_tables import SourcePlace

MAX_FILES: Final = 4
"""Maximum number of files that an error lists."""


@click.command("source")
@click.argument("place", metavar="FILE.py[:LINE]")
@files_argument
@click.option(
    "--innermost",
    is_flag=True,
    help="Omit instructions made by functions that the line calls",
)
@before_option
@max_input_size_option
@format_option(click.Choice(["text", "json"]))
@click.pass_obj
def command(
    reporter: Reporter,
    place: str,
    files: Sequence[str],
    innermost: bool,
    before: str | None,
    notation: str,
) -> None:
    """Show what a line of a program became in the modules in FILE...

    The place is a file of Python, or the end of its path, with or without the number of a line. A
    FILE is HLO text, a protobuf or StableHLO; `-` is standard input. The metadata of an instruction
    records the lines that made it, and their callers.

    Each kernel, an instruction that is executed, has a row: the bytes that it moves in all
    executions, how many of its instructions the place made, and their names. Without a number, each
    line of the file has a row, with the bytes of the kernels that have a part of it: a kernel of
    several lines counts for each. XLA keeps the metadata of only one instruction where it replaces
    several, so lines may be missing: --before MODULE adds the lines of instructions of MODULE with
    equal values or the same op_name.

    \b
    Examples:
      hlo-indexing source models.py:167 m.hlo
      hlo-indexing source models.py m.hlo --innermost
      hlo-indexing source models.py:167 after.hlo --before before.hlo
      hlo-indexing source models.py:167 m.hlo --format json | jq '.kernels[].instruction'
    """
    from indexing.cli.printing import reported_valid
    from indexing.views.source_lines import links_between
    from indexing.views.source_tables import SourcePlace, SourceTable, kernels_of_place, lines_of

    import_module("indexing.ops")  # registers the ops
    earlier = None if before is None else reporter.only_module(before)
    if before is not None and (earlier is None or not reported_valid(earlier, reporter)):
        return
    where, is_found = SourcePlace.parse(place), False
    known: dict[str, None] = {}
    for module in reporter.modules(files):
        with reporter.reporting(module.filename):
            if reported_valid(module, reporter):
                links = {} if earlier is None else links_between(earlier, module)
                kernels = kernels_of_place(module, where, callers=not innermost, links=links)
                is_found |= bool(kernels)
                known |= dict.fromkeys(() if is_found else lines_of(module.instructions))
                table = SourceTable(module, where, kernels)
                lines = table.lines(reporter.paint, reporter.width)
                reporter.print_answer(notation, lines, [table.to_json()])
    if not is_found and not reporter.failed:
        _report_missing(reporter, where, known)


def _report_missing(reporter: Reporter, place: SourcePlace, known: Collection[str]) -> None:
    """Report that no instruction records the place, with similar lines that some record."""
    error = f"error[name]: no instruction records the place `{place}`"
    if known:
        files = list(dict.fromkeys([line.rpartition(":")[0] for line in known]))
        listed = ", ".join([f"`{file}`" for file in files[:MAX_FILES]])
        more = f" and {len(files) - MAX_FILES:,} more" if len(files) > MAX_FILES else ""
        repairs = [*did_you_mean(str(place), known)]
        reporter.error(error, *(repairs or [f"  = help: lines of {listed}{more} are recorded"]))
    else:
        note = "no instruction records a line: print the module with its metadata"
        reporter.error(error, f"  = note: {note}")

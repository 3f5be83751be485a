"""``hlo-indexing ls``: the instructions of modules."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

import click

from indexing.cli.options import (
    files_argument,
    format_option,
    instruction_option,
    max_input_size_option,
    source_option,
)
from indexing.cli.reporter import Reporter
from indexing.cli.selected import note_matches, report_missed


@click.command("ls")
@files_argument
@instruction_option
@source_option
@max_input_size_option
@format_option(click.Choice(["text", "json"]))
@click.pass_obj
def command(
    reporter: Reporter,
    files: Sequence[str],
    names: Sequence[str],
    with_source: bool,
    notation: str,
) -> None:
    """List the instructions of the modules in FILE...

    A FILE is HLO text, a protobuf or StableHLO; `-` is standard input.
    Each computation has a heading, and each instruction a line with its name, opcode, shape and
    operands; `->` precedes the computations that it calls. Shapes of many elements and long lists
    of operands are elided. JSON has everything, an object for each instruction. With --instruction,
    only the selected instructions are listed, and the headings of their computations.

    \b
    Examples:
      hlo-indexing ls m.hlo
      hlo-indexing ls m.hlo -i 'dot*'
      hlo-indexing ls m.hlo --source | less
    """
    from indexing.views.listing import computation_lines, instruction_records
    from indexing.views.selection import Selection

    import_module("indexing.ops")  # registers the ops, which infer missing shapes
    selection, is_one_file = Selection(names=tuple(names)), len(files) == 1
    for module in reporter.modules(files):
        note_matches(reporter, module, selection.conditions, is_one_file)
        for computation in module.computations.values():
            selected = selection.instructions(module, [computation]) if names else None
            if selected == []:
                continue
            with reporter.reporting(f"{module.filename}: {computation.name}"):
                lines = computation_lines(computation, reporter.paint, with_source, selected)
                records = instruction_records(selected or computation.instructions, with_source)
                reporter.print_answer(notation, lines, records)
    report_missed(reporter, selection.conditions, is_one_file)

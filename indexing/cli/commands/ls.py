"""``hlo-indexing ls``: the instructions of modules."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from importlib import import_module
from itertools import islice
from typing import TYPE_CHECKING, Literal

import click

from indexing.cli.options import (
    PatternText,
    files_argument,
    format_option,
    instruction_option,
    max_input_size_option,
    source_option,
    with_options,
)
from indexing.cli.reporter import Reporter
from indexing.cli.selected import did_you_mean, note_matches, report_missed
from indexing.cli.selection_options import listing_options

if TYPE_CHECKING:
    from hlo.modules.module import Computation, Instruction, Module
    from indexing.views.selection import Selection


@click.command("ls")
@files_argument
@instruction_option
@partial(with_options, options=listing_options)
@click.option(
    "--computation",
    "computations",
    metavar="NAME",
    multiple=True,
    type=PatternText(),
    help="Only instructions of this computation, a glob or /regex/; may be repeated",
)
@source_option
@max_input_size_option
@format_option(click.Choice(["text", "json"]))
@click.pass_obj
def command(
    reporter: Reporter,
    files: Sequence[str],
    names: tuple[str, ...],
    opcodes: tuple[str, ...],
    reads: tuple[str, ...],
    op_names: tuple[str, ...],
    kinds: tuple[str, ...],
    order: Literal["name", "bytes", "elements"] | None,
    limit: int | None,
    computations: tuple[str, ...],
    with_source: bool,
    notation: str,
) -> None:
    """List the instructions of the modules in FILE...

    A FILE is HLO text, a protobuf or StableHLO; `-` is standard input.
    Each computation has a heading, and each instruction a line with its name, opcode, shape and
    operands; `->` precedes the computations that it calls. ENTRY comes first. Shapes of many
    elements and long lists of operands are elided. JSON has everything, an object for each
    instruction. With options that select, only the selected instructions are listed, and the
    headings of their computations; with --sort and --limit, one list with the computation in each
    line.

    \b
    Examples:
      hlo-indexing ls m.hlo
      hlo-indexing ls m.hlo -i 'dot*'
      hlo-indexing ls m.hlo --opcode fusion --sort bytes --limit 5
      hlo-indexing ls m.hlo --kind reducing --kind runtime
      hlo-indexing ls m.hlo --source | less
    """
    from indexing.views.listing import computation_lines, instruction_records
    from indexing.views.selection import Selection

    import_module("indexing.ops")  # registers the ops, which infer missing shapes
    is_all = not (names or opcodes or reads or op_names or kinds)
    selection = Selection(names, opcodes, reads, op_names, kinds, is_all, order, limit)
    is_one_file = len(files) == 1
    for module in reporter.modules(files):
        note_matches(reporter, module, selection.conditions, is_one_file)
        with reporter.reporting(module.filename):
            inside = _computations(reporter, module, computations)
            if inside and (order is not None or limit is not None):
                chosen = _of_kinds(selection, selection.instructions(module, inside), limit)
                _print_ranked(reporter, module, chosen, order, with_source, notation)
                continue
        for computation in inside:
            with reporter.reporting(f"{module.filename}: {computation.name}"):
                selected = _select_instructions(selection, module, computation)
                if selected == []:
                    continue
                lines = computation_lines(
                    computation, reporter.paint, with_source, selected, reporter.width
                )
                records = instruction_records(selected or computation.instructions, with_source)
                reporter.print_answer(notation, lines, records)
    report_missed(reporter, selection.conditions, is_one_file)
    if kinds and not (reporter.has_printed or reporter.failed):
        reporter.error(f"error[name]: no instruction matches {selection.text}")


def _computations(reporter: Reporter, module: Module, patterns: Sequence[str]) -> list[Computation]:
    """Return the computations with one of the names, ENTRY first; report an error for none."""
    from hlo.modules.patterns import Pattern

    every = sorted(module.computations.values(), key=lambda each: each is not module.entry)
    if not patterns:
        return every
    wanted = [Pattern(text) for text in patterns]
    matched = [each for each in every if any(p.matches(each.name) for p in wanted)]
    if not matched:
        names = ", ".join([f"`{pattern}`" for pattern in patterns])
        repairs = [*did_you_mean(patterns[0], [each.name for each in every])]
        entry = f"  = help: the ENTRY computation is `{module.entry.name}`"
        reporter.error(
            f"error[name]: {module.filename}: no computation named {names}", *(repairs or [entry])
        )
    return matched


def _print_ranked(
    reporter: Reporter,
    module: Module,
    chosen: Sequence[Instruction],
    order: Literal["name", "bytes", "elements"] | None,
    with_source: bool,
    notation: str,
) -> None:
    """Print one list of the instructions of a module, with the computation in each line."""
    from indexing.views.listing import instruction_records, ranked_lines

    unit = None if order == "name" else order
    lines = ranked_lines(module, chosen, reporter.paint, with_source, reporter.width, unit)
    reporter.print_answer(notation, lines, instruction_records(chosen, with_source))


def _select_instructions(
    selection: Selection, module: Module, computation: Computation
) -> list[Instruction] | None:
    """Return the selected instructions of a computation; None for all."""
    if selection.everything:
        return None
    return _of_kinds(selection, selection.instructions(module, [computation]), None)


def _of_kinds(
    selection: Selection, instructions: Sequence[Instruction], limit: int | None
) -> list[Instruction]:
    """Return at most `limit` instructions, those with a map of one of the kinds."""
    if not selection.kinds:
        return list(instructions[:limit])
    from hlo.shapes.shape import leaves
    from indexing.dataflow.queries import output_to_input
    from indexing.views.access_kinds import kinds_of_answer

    def has_kind(each: Instruction) -> bool:
        answers = (output_to_input(each, output) for output in range(len(leaves(each.shape))))
        return any(not kinds_of_answer(a).isdisjoint(selection.kinds) for a in answers)

    return list(islice(filter(has_kind, instructions), limit))

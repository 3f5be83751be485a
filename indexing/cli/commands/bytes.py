"""``hlo-indexing bytes``: the bytes that instructions move, and their operations."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING

import click

from indexing.cli.corpus import Corpus
from indexing.cli.corpus_options import corpus_options
from indexing.cli.options import (
    files_argument,
    format_option,
    instruction_option,
    limit_option,
    max_input_size_option,
    values_option,
)
from indexing.cli.parsed_text import ParsedText
from indexing.cli.reporter import Reporter
from indexing.cli.selected import report_missed
from indexing.cli.tasks import ValidModules, answer_files

if TYPE_CHECKING:
    from hlo.modules.module import Module
    from indexing.cli.tasks import Progress, View
    from indexing.memory.movement.roofline import Peak
    from indexing.views.map_query import GivenValues
    from indexing.views.map_tables import Paint
    from indexing.views.selection import Condition

DEFAULT_ROWS = 20


class PeakText(ParsedText):
    """Peak rates of a device, or the name of a GPU.

    >>> PeakText().convert("67TF/s", None, None)
    Peak(bytes=None, flops=67000000000000)
    """

    name = "rates"

    def parse(self, text: str) -> Peak:
        from indexing.memory.movement.roofline import Peak

        return Peak.parse(text)


@click.command("bytes")
@files_argument
@instruction_option
@click.option(
    "--peak",
    metavar="RATES",
    type=PeakText(),
    help="Print the roofline bound of a GPU or TPU, such as H100 or v5e, or of a device with these "
    "peak rates, such as 4.8TB/s,67TF/s",
)
@limit_option(f"Print at most N instructions; by default {DEFAULT_ROWS}, in JSON all")
@click.option(
    "--collectives",
    is_flag=True,
    help="Print the bytes that each collective sends, and the fewest that the maps need",
)
@values_option
@max_input_size_option
@format_option(click.Choice(["text", "json", "svg"]))
@corpus_options
@click.pass_obj
def command(
    reporter: Reporter,
    corpus: Corpus,
    names: tuple[str, ...],
    peak: Peak | None,
    limit: int | None,
    collectives: bool,
    values: GivenValues,
    notation: str,
) -> None:
    """Print the bytes that the instructions of the modules in FILE... move.

    A FILE is HLO text, a protobuf, StableHLO, or a folder of them, such as dumps of
    XLA; `-` is standard input. The table has the instructions of ENTRY and of the
    computations that `call`, `while` and `conditional` execute; a fusion is one instruction. Those
    that move the most bytes in all executions come first, counted as stored, with padding; the
    other figures are those of one execution.

    Sizes are without padding, but those `stored`. If the module has several memory spaces (on TPUs
    HBM, VMEM and others) or padded layouts, a table has the traffic with each space. The roofline
    counts what is stored in the default memory. `<=` marks upper bounds, from `may` maps and
    unknown values; `?` is unknown, with the reasons below the table. With --set, masks of
    instructions of ENTRY that integer parameters decide have their values; the other figures are
    those of any values.

    With --instruction, all figures are those of the selected instructions, and a second table has
    their operands, with the number of reads of an element.

    With --collectives, a table has the bytes that one execution of each collective sends as a ring,
    on the device that sends most, and the fewest bytes after which each device has the elements
    that the outputs need. If each device reads only its part of an all-reduce, for example, a
    reduce-scatter suffices.

    \b
    Columns:
      bytes        read and written, in all executions
      read         bytes of the distinct elements of the operands that the loop loads
      needed       those of them that the result needs, if a mask hides some: an upper bound if
                   runtime values decide
      written      bytes of the result; of the update if it stays in place
      stored       bytes in memory that are read and written, with the padding of tiled layouts
      padding      those of them that hold no element; of a part of an array, the padding of the
                   tiles of its layout that hold the part, without neighbours in these tiles
      requested    bytes of all reads if each element computes the values that it needs
      recompute    operations that the loop of a fusion executes, per operation that computes a
                   value; without scalars and values of constants and iotas
      flops        operations that compute every value once, counted as by XLA, except that
                   windows over the same elements are one value
      flops/byte   arithmetic intensity
      time, bound  shortest time at the peak rates, and the rate that limits it

    \b
    Examples:
      hlo-indexing bytes m.hlo
      hlo-indexing bytes m.hlo -i ynn_fusion
      hlo-indexing bytes m.hlo --peak 4.8TB/s,67TF/s --limit 5
      hlo-indexing bytes m.hlo --collectives
      hlo-indexing bytes m.hlo --peak 4.8TB/s,67TF/s --format svg -o bytes.svg
      hlo-indexing bytes m.hlo --format json | jq '.instructions[0].operands'
    """
    if notation != "svg":
        question = TrafficQuestion(
            peak, limit, values, notation, reporter.width, collectives, names
        )
        answer_files(reporter, corpus, question)
        report_missed(reporter, question.conditions, len(corpus.files) == 1)
        return
    if names:
        raise click.UsageError("--format svg cannot be used with --instruction")
    if collectives:
        raise click.UsageError("--format svg cannot be used with --collectives")
    if values:
        raise click.UsageError("--format svg, which draws what is read, cannot be used with --set")
    if corpus.workers is not None or corpus.journal is not None:
        raise click.UsageError("--format svg cannot be used with --jobs, --scheduler and --resume")
    from indexing.cli.pictures import draw_traffic

    draw_traffic(reporter, corpus.files, peak, limit or DEFAULT_ROWS)


@dataclass(frozen=True, slots=True)
class TrafficQuestion(ValidModules):
    """The bytes that the instructions of each module move.

    Attributes:
        peak: the peak rates of a device.
        limit: the number of instructions; None for the default of the format.
        values: of integer parameters of ENTRY, by name.
        notation: the output format.
        width: the number of columns of a terminal; None without a terminal.
        collectives: add a table of the collectives.
        names: patterns of the instructions whose figures are requested; () for all.
    """

    peak: Peak | None
    limit: int | None
    values: GivenValues
    notation: str
    width: int | None
    collectives: bool = False
    names: tuple[str, ...] = ()

    @property
    def conditions(self) -> Sequence[Condition]:
        """A condition for each name of instructions, and for each parameter with a value."""
        from indexing.views.selection import Condition, Selection

        given = [Condition("--set", name) for name, _ in self.values]
        return [*Selection(self.names).conditions, *given]

    def view(self, module: Module, progress: Progress, paint: Paint) -> View:
        """Return a table, and its record."""
        from indexing.memory.movement.analysis import traffic
        from indexing.views.map_answers import given_values
        from indexing.views.selection import Selection
        from indexing.views.traffic_tables import TrafficTable, operand_lines

        chosen = {*Selection(self.names).instructions(module, [*module.computations.values()])}
        if self.names and not chosen:
            return (), ()
        counted = traffic(module, progress, given_values(module.entry, self.values))
        count, selected = len(counted.instructions), ""
        if self.names:
            kept = tuple([each for each in counted.instructions if each.instruction in chosen])
            counted = replace(counted, instructions=kept)
            selected = f": {len(counted.instructions)} of {count} instructions that move bytes"
        table = TrafficTable(module.filename, counted, self.peak, selected)
        lines: Iterable[str] = table.lines(self.limit or DEFAULT_ROWS, paint, self.width)
        if self.names:
            lines = chain(lines, (f"  {line}" for line in operand_lines(counted, self.width)))
        if not self.collectives:
            return lines, map(table.to_json, [self.limit])
        from indexing.views.collective_tables import collective_lines, collective_records

        lines = chain(lines, (f"  {line}" for line in collective_lines(module)))
        records = (
            table.to_json(limit) | {"collectives": collective_records(module)}
            for limit in [self.limit]
        )
        return lines, records

"""``hlo-indexing summary``: an overview of modules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from indexing.cli.corpus import Corpus
from indexing.cli.corpus_options import corpus_options
from indexing.cli.options import (
    files_argument,
    format_option,
    limit_option,
    max_input_size_option,
)
from indexing.cli.reporter import Reporter
from indexing.cli.tasks import ValidModules, answer_files

if TYPE_CHECKING:
    from hlo.modules.module import Module
    from indexing.cli.tasks import Progress, View
    from indexing.views.map_tables import Paint


@click.command("summary")
@files_argument
@limit_option(
    "Print at most N rows of each table; JSON elides only the largest and re-read arrays",
    default=10,
)
@max_input_size_option
@format_option(click.Choice(["text", "json"]))
@corpus_options
@click.pass_obj
def command(reporter: Reporter, corpus: Corpus, limit: int, notation: str) -> None:
    """Summarise the modules in FILE...

    A FILE is HLO text, a protobuf, StableHLO, or a folder of them, such as dumps of
    XLA; `-` is standard input. The summary lists parameters and results, counts the
    instructions by opcode and by the kind of their maps (as `maps --kind` selects them), gives the
    reasons of unknown and `may` maps, and ranks arrays by size and operands by the bytes read
    again.

    Reads are counted for each output of the instructions of ENTRY and of the computations that
    `call`, `while` and `conditional` execute. `<=` marks upper bounds, from `may` maps. Sizes
    are without padding, but those `stored`. If the module has several memory spaces (on TPUs HBM,
    VMEM and others) or padded layouts, arrays have their bytes in memory, the part of them that is
    padding, and their memory space; a table has the sums of each space.

    \b
    Examples:
      hlo-indexing summary m.hlo
      hlo-indexing summary m.hlo --limit 100 | less
      hlo-indexing summary dumps --stage after_optimizations --jobs 4
      hlo-indexing summary *.hlo --format json | jq '{file, instructions, kinds}'
    """
    answer_files(reporter, corpus, SummaryQuestion(limit, notation, reporter.width))


@dataclass(frozen=True, slots=True)
class SummaryQuestion(ValidModules):
    """An overview of each module.

    Attributes:
        limit: the number of rows of each table.
        notation: the output format.
        width: the number of columns of a terminal.
    """

    limit: int
    notation: str
    width: int | None

    def view(self, module: Module, progress: Progress, paint: Paint) -> View:
        """Return the lines of a summary, and its record."""
        from indexing.views.module_summary import summary

        result = summary(module, self.limit, progress)
        return result.lines(self.limit, paint, self.width), map(type(result).to_json, [result])

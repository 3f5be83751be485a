"""``hlo-indexing summary``: an overview of modules."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from importlib import import_module

import click

from indexing.cli.corpus import Corpus
from indexing.cli.corpus_options import corpus_options
from indexing.cli.integers import IntegerRange
from indexing.cli.options import (
    files_argument,
    format_option,
    max_input_size_option,
)
from indexing.cli.progress import Bar
from indexing.cli.reporter import Reporter
from indexing.cli.tasks import Task, WholeFiles, answer_files


@click.command("summary")
@files_argument
@click.option(
    "--limit",
    metavar="N",
    type=IntegerRange(min=1),
    default=10,
    show_default=True,
    help="Print at most N rows of each table; JSON elides only the largest and re-read arrays",
)
@max_input_size_option
@format_option(click.Choice(["text", "json"]))
@corpus_options
@click.pass_obj
def command(reporter: Reporter, corpus: Corpus, limit: int, notation: str) -> None:
    """Summarise the modules in FILE...

    A FILE is HLO text, a protobuf (.pb), StableHLO (.mlir), or a folder of them, such as dumps of
    XLA; `-` is HLO text on standard input. The summary lists parameters and results, counts the
    instructions by opcode and by the kind of their maps (as `maps --kind` selects them), gives the
    reasons of unknown and `may` maps, and ranks arrays by size and operands by the bytes read
    again.

    Reads are counted for each output of the instructions of ENTRY and of the computations that
    `call`, `while` and `conditional` execute. `<=` marks upper bounds, from `may` maps. All sizes
    are without padding.

    \b
    Examples:
      hlo-indexing summary m.hlo
      hlo-indexing summary m.hlo --limit 100 | less
      hlo-indexing summary dumps --stage after_optimizations --jobs 4
      hlo-indexing summary *.hlo --format json | jq '{file, instructions, kinds}'
    """
    answer_files(reporter, corpus, SummaryQuestion(limit, notation))


@dataclass(frozen=True, slots=True)
class SummaryQuestion(WholeFiles):
    """An overview of each module.

    Attributes:
        limit: the number of rows of each table.
        notation: the output format.
    """

    limit: int
    notation: str

    def answer(self, reporter: Reporter, task: Task, bar: Bar) -> None:
        """Print the summary of each module of a file."""
        from indexing.cli.printing import reported_valid
        from indexing.views.module_summary import summary

        import_module("indexing.ops")  # registers the ops
        for module in task.modules(reporter):
            with reporter.reporting(module.filename):
                if not reported_valid(module, reporter):
                    continue
                reporter.count_instructions(module)
                result = summary(module, self.limit, partial(bar.update, module.filename))
                bar.hide()
                if self.notation == "json":
                    reporter.print(json.dumps(result.to_json()))
                    continue
                for line in result.lines(self.limit, reporter.paint):
                    reporter.print(line)

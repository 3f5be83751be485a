"""``hlo-indexing summary``: an overview of modules."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module

import click

from indexing.cli.options import (
    files_argument,
    format_option,
    max_input_size_option,
    workers_options,
)
from indexing.cli.progress import Bar
from indexing.cli.reporter import Reporter
from indexing.cli.tasks import Task, WholeFiles, Workers, answer_files


@click.command("summary")
@files_argument
@click.option(
    "--limit",
    metavar="N",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    help="Print at most N rows of each table; JSON elides only the largest and re-read arrays",
)
@max_input_size_option
@format_option(click.Choice(["text", "json"]))
@workers_options
@click.pass_obj
def command(
    reporter: Reporter, files: Sequence[str], limit: int, notation: str, workers: Workers | None
) -> None:
    """Summarise the modules in FILE..., HLO text, protobufs (.pb) or StableHLO (.mlir).

    `-` is HLO text on standard input. The summary lists parameters and results, counts the
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
      hlo-indexing summary *.hlo --format json | jq '{file, instructions, kinds}'
    """
    answer_files(reporter, files, SummaryQuestion(limit, notation), workers)


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
                result = summary(module, self.limit, partial(bar.update, module.filename))
                bar.hide()
                if self.notation == "json":
                    reporter.print(json.dumps(result.to_json()))
                    continue
                for line in result.lines(self.limit, reporter.paint):
                    reporter.print(line)

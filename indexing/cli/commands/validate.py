"""``hlo-indexing validate``: check maps against kernels, and modules against XLA."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

import click

from hlo.text.source import printable
from indexing.cli.corpus import Corpus
from indexing.cli.corpus_options import corpus_options
from indexing.cli.integers import IntegerRange
from indexing.cli.options import (
    files_argument,
    format_option,
    instruction_option,
    max_input_size_option,
    seed_option,
)
from indexing.cli.progress import Bar
from indexing.cli.reporter import Reporter
from indexing.cli.selected import note_matches, place_of, report_missed
from indexing.cli.signals import ending_on_signals
from indexing.cli.status_table import is_wide_enough
from indexing.cli.tasks import Task, WholeFiles, answer_files

if TYPE_CHECKING:
    from hlo.modules.module import Instruction, Module
    from indexing.codegen.findings import Report
    from indexing.views.command_records import Scope
    from indexing.views.selection import Selection

MAX_ELEMENTS = 1 << 20
"""Default limit on the elements of an array."""

STATUSES = ("ok", "skipped", "wrong")
HEADINGS = ("status", "computation", "instruction", "opcode", "check", "details")


@click.command("validate")
@files_argument
@instruction_option
@seed_option("Seed of random operands")
@click.option(
    "--max-elements",
    metavar="N",
    default=MAX_ELEMENTS,
    show_default=True,
    type=IntegerRange(min=1),
    help="Skip instructions whose arrays exceed this many elements, and the comparison with XLA "
    "beyond 16 times as many",
)
@max_input_size_option
@click.option("--no-xla", is_flag=True, help="Do not compare with XLA")
@click.option(
    "--strict",
    is_flag=True,
    help="Exit with status 1 if a read of an exact map through a fusion is not observed",
)
@format_option(click.Choice(["text", "json"]))
@corpus_options
@click.pass_obj
def command(
    reporter: Reporter,
    corpus: Corpus,
    names: Sequence[str],
    seed: int,
    max_elements: int,
    no_xla: bool,
    strict: bool,
    notation: str,
) -> None:
    """Validate the maps of every instruction and fusion in FILE... by executing them.

    A FILE is HLO text, a protobuf, StableHLO, or a folder of them, such as dumps of
    XLA; `-` is standard input. Operands are random.

    \b
    Checks:
      numpy  the NumPy program generated from the maps computes the result of the
             op's reference kernel
      loops  the same for the Python loops, if they have at most 20,000 iterations
      poke   a perturbation test: changing one element of an operand changes only
             outputs that depend on it by the maps, and an element that an exact
             map reads can change the output; at most 65,536 elements
      exact  the same for a sample of the reads of exact maps through fusions, with
             values that defeat masks: integers in range, at borders, beyond and negative
      xla    the entry computation agrees with XLA, if jax is installed: `kernels = xla`
             through reference kernels, `maps = xla` through generated programs

    A map through a fusion is exact for each path: it leads to each element that some path reads,
    even if a mask, a product with zero or a minimum makes its value irrelevant. Such a read is `not
    observed`, which is not a failure; with --strict, the exit status is 1. `tight` follows the
    checks of a fusion if its maps are exact and an execution showed each read that was tried: all
    reads of small arrays, a sample of others. In a fusion with masks, elements on both sides of a
    mask are poked, for integers for which it hides other elements.

    Skipped checks are listed with the reason. The exit status is 1 if a check fails. JSON has an
    object for each instruction, and one for the comparison of a module with XLA.

    \b
    Examples:
      hlo-indexing validate m.hlo -i dot.7
      hlo-indexing validate m.hlo --no-xla --max-elements 3000
    """
    from indexing.views.selection import Selection

    selection = Selection(names=tuple(names))
    is_one_file = len(corpus.files) == 1
    question = ValidationQuestion(
        selection, seed, max_elements, not no_xla, strict, notation == "json", is_one_file
    )
    answer_files(reporter, corpus, question)
    report_missed(reporter, selection.conditions, is_one_file)


@dataclass(frozen=True, slots=True)
class ValidationQuestion(WholeFiles):
    """The outcome of the checks of each module.

    Attributes:
        selection: the instructions.
        seed: seed of the random operands.
        max_elements: limit on the elements of an array.
        with_xla: compare modules with XLA.
        is_strict: reads of exact maps that are not observed are errors.
        is_json: print JSON.
        is_one_file: True if the command has one file.
    """

    selection: Selection
    seed: int
    max_elements: int
    with_xla: bool
    is_strict: bool
    is_json: bool
    is_one_file: bool

    def answer(self, reporter: Reporter, task: Task, bar: Bar) -> None:
        """Print the outcome of the checks of each module of a file."""
        import_module("indexing.ops")  # registers the indexing of each opcode
        with ending_on_signals():
            self._answer(reporter, task, bar)

    def _answer(self, reporter: Reporter, task: Task, bar: Bar) -> None:
        for module in task.modules(reporter):
            if reporter.report_errors(module):
                continue
            note_matches(reporter, module, self.selection.conditions, self.is_one_file)
            bar.update(module.filename, 0)
            reports = self._reports(reporter, module, bar)
            if self.is_json:
                _print_json(reporter, module, reports)
                continue
            counts: Counter[str] = Counter()
            _show(reporter, module, self._counted_rows(reporter, reports, counts), bar)
            summary = ", ".join(f"{counts[status]} {status}" for status in STATUSES)
            if counts["not observed"]:
                summary += f", {counts['not observed']} not observed"
            if counts["tight"]:
                summary += f", {counts['tight']} tight"
            reporter.print(f"{module.filename}: {summary}")

    def _counted_rows(
        self, reporter: Reporter, reports: Iterable[tuple[Scope, Report]], counts: Counter[str]
    ) -> Iterator[tuple[str, ...]]:
        """Yield the rows of all reports; count the reports by status."""
        for _, report in reports:
            counts[report.status] += 1
            counts["not observed"] += bool(report.not_observed)
            counts["tight"] += report.is_tight
            for status, *cells in _rows(reporter, report):
                is_fault = self.is_strict and report.not_observed and status == "ok"
                yield "not observed" if is_fault else status, *cells

    def _reports(
        self, reporter: Reporter, module: Module, bar: Bar
    ) -> Iterator[tuple[Scope, Report]]:
        """Yield the report of each instruction, and that of the module compared with XLA."""
        for instruction in _chosen_instructions(module, self.selection):
            with reporter.reporting(place_of(instruction)):
                from indexing.codegen.validation import validate_instruction

                report = validate_instruction(instruction, self.seed, self.max_elements)
                reporter.counts.update(["instructions", report.status])
                reporter.failed |= self.is_strict and bool(report.not_observed)
                yield "instruction", report
        if self.with_xla and not self.selection.names:
            with reporter.reporting(module.filename):
                from indexing.codegen.whole_modules import against_xla
                from indexing.frontends.xla_execution import run_elsewhere

                limit = self.max_elements * 16
                yield "module", against_xla(module, self.seed, limit, run_elsewhere)


def _print_json(
    reporter: Reporter, module: Module, reports: Iterable[tuple[Scope, Report]]
) -> None:
    """Print a JSON object for each report."""
    from indexing.views.command_records import report_json

    for scope, report in reports:
        reporter.failed |= report.status == "wrong"
        reporter.print(report_json(report, scope))


def _chosen_instructions(module: Module, selection: Selection) -> Iterator[Instruction]:
    """Yield the instructions to validate, in text order."""
    from indexing.codegen.validation import is_checked

    if not selection.names:
        yield from filter(is_checked, module.instructions)
        return
    yield from selection.instructions(module, list(module.computations.values()))


def _rows(reporter: Reporter, report: Report) -> Iterator[tuple[str, ...]]:
    """Yield the rows of one instruction: passed and skipped checks, or else the failed ones."""
    instruction = report.instruction
    place = instruction.computation.name, instruction.name, instruction.opcode
    reasons: dict[str, dict[str, None]] = {}
    for finding in report.findings:
        if finding.status == "skipped":
            reasons.setdefault(finding.check, {}).update(dict.fromkeys(finding.details))
    if report.status != "wrong":
        checks = list(_passed_checks(report, reasons))
        notes = [f"{check} skipped: {text}" for check, texts in reasons.items() for text in texts]
        notes += [f"not observed: {text}" for text in report.not_observed]
        yield report.status, *place, ", ".join(checks) or "no check", "; ".join(notes)
        return
    reporter.failed = True
    for finding in dict.fromkeys(report.findings):
        if finding.status == "wrong":
            for detail in finding.details:
                yield "wrong", *place, finding.check, detail


def _passed_checks(report: Report, reasons: dict[str, dict[str, None]]) -> Iterator[str]:
    """Yield the passed checks; remove the reasons of those that passed in part."""
    for check in dict.fromkeys([f.check for f in report.findings if f.status == "ok"]):
        parts = reasons.pop(check, None)
        yield f"{check} (partly: {'; '.join(parts)})" if parts else check
    if report.is_tight:
        yield "tight"


def _show(reporter: Reporter, module: Module, rows: Iterable[tuple[str, ...]], bar: Bar) -> None:
    """Print a table on a terminal that is wide enough for its names, otherwise a line per row."""
    if reporter.width is not None:
        rows = list(rows)
        table = [HEADINGS, *[tuple(map(printable, row)) for row in rows]]
        bar.hide()
        if is_wide_enough(reporter.width, table):
            reporter.table(printable(module.filename), table)
            return
        reporter.print(f"{module.filename}:")
    for status, computation, name, opcode, check, details in rows:
        file = module.filename if reporter.width is None else ""
        place = ": ".join(filter(None, [file, computation, name]))
        text = f"{status}: {place}: {opcode}: {check}"
        reporter.print(f"{text}: {details}" if details else text)

"""``hlo-indexing report``: a page for browsers about a module, two modules or a dump folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from indexing.cli.commands.bytes import PeakText
from indexing.cli.dump_folder import listed_modules, note_kernels
from indexing.cli.integers import IntegerRange
from indexing.cli.loading import load_only
from indexing.cli.options import (
    files_argument,
    jobs_option,
    level_option,
    max_input_size_option,
)
from indexing.cli.reporter import Reporter

if TYPE_CHECKING:
    from hlo.modules.module import Module
    from indexing.equivalence.verdicts import Level
    from indexing.memory.movement.roofline import Peak
    from indexing.views.report_page.detail_parts import DetailWorkers
    from indexing.views.report_page.page import ReportPage
    from simplifier.unknown import Unknown

FORMATS = ("html", "model-explorer", "perfetto")


@click.command("report")
@files_argument
@click.option(
    "--peak",
    metavar="RATES",
    type=PeakText(),
    help="Add the roofline bound of a GPU, such as H100, or of a device with these peak rates, "
    "such as 4.8TB/s,67TF/s",
)
@click.option(
    "--tiles",
    "tiled",
    metavar="N",
    type=IntegerRange(min=0),
    default=100,
    show_default=True,
    help="Add tiles and pictures of the N instructions that move the most bytes",
)
@level_option
@jobs_option
@click.option(
    "--format",
    "notation",
    type=click.Choice(FORMATS),
    default="html",
    show_default=True,
    help="Write a page, graphs for Model Explorer, or a trace for Perfetto",
)
@max_input_size_option
@click.pass_obj
def command(
    reporter: Reporter,
    files: Sequence[str],
    peak: Peak | None,
    tiled: int,
    level: Level,
    jobs: int,
    notation: str,
) -> None:
    """Write an HTML page about the module in FILE, or about the changes between two.

    FILE is HLO text, a protobuf or StableHLO; `-` is standard input. The
    page has the graph of each computation, a table of the instructions, and for each instruction
    its maps, the elements that a tile reads, and the bytes that it moves. It is one file, which
    browsers open without a network.

    If XLA dumped kernels beside FILE (`hlo-indexing kernels --help`), the page also has their
    verdicts, launches and sectors.

    With two files, or a folder of pass dumps (`hlo-indexing passes --help`), the page also has the
    verdict of each comparison and the instructions that were added, removed and changed.

    --jobs divides the details of a module's instructions; the page is the same.

    `--format model-explorer` writes the graphs as JSON for AI Edge Model Explorer, with bytes,
    grades and, of two modules, links between counterparts. `--format perfetto` writes the schedule
    of one module and its live bytes as a trace.

    \b
    Examples:
      hlo-indexing report m.hlo --peak H100 -o report.html
      hlo-indexing report before.hlo after.hlo -o report.html
      hlo-indexing report dumps -o report.html
      hlo-indexing report m.hlo --format model-explorer -o m.json
      hlo-indexing report m.hlo --format perfetto --peak H100 -o m.trace.json
    """
    from indexing.views.report_page.page import page_of_dumps, page_of_modules

    if reporter.width is not None:
        raise click.UsageError("the page needs a file: write -o report.html")
    if len(files) > 2:
        raise click.UsageError(f"expected one or two files, got {len(files)}")
    import_module("indexing.ops")  # registers the ops
    if notation != "html":
        _write_json(reporter, files, notation, peak, level)
        return
    with reporter.bar as bar:
        bar.update("reading", 0)
        page: ReportPage | None = None
        with reporter.reporting(", ".join(files)):
            options: Any = {"peak": peak, "tiled": tiled, "level": level, "progress": bar.update}
            if len(files) == 1 and os.path.isdir(files[0]):
                if dumps := listed_modules(reporter, files[0]):
                    limit = reporter.input_limit
                    page = page_of_dumps(files[0], dumps, **options, max_bytes=limit)
                else:
                    repair = "give the file of their module, *_after_optimizations.txt"
                    note_kernels(reporter, files[0], repair)
            elif modules := _modules(reporter, files):
                page = page_of_modules(modules, **options, workers=_workers(reporter, files, jobs))
    if page is not None:
        for fault in page.faults:
            reporter.error(*fault.splitlines())
        reporter.print_document(page.html)


def _workers(reporter: Reporter, files: Sequence[str], jobs: int) -> DetailWorkers | None:
    """Return the processes that make details; None if they cannot read the files."""
    if jobs == 1 or not all(map(os.path.isfile, files)):
        return None
    from indexing.cli.workers import results
    from indexing.views.report_page.detail_parts import DetailWorkers

    def load(module: Module) -> Callable[[], Module]:
        return partial(load_only, module.filename, reporter.max_bytes, reporter.uses_cache)

    return DetailWorkers(jobs, partial(results, jobs=jobs), load)


def _write_json(
    reporter: Reporter, files: Sequence[str], notation: str, peak: Peak | None, level: Level
) -> None:
    """Print the graphs or the trace of one module, or of two."""
    from indexing.views.report_page.chunks import json_text
    from simplifier.unknown import Unknown

    if any(os.path.isdir(file) for file in files):
        raise click.UsageError(f"--format {notation} takes modules, not a folder")
    if notation == "perfetto" and len(files) > 1:
        raise click.UsageError("--format perfetto takes one module")
    with reporter.reporting(", ".join(files)):
        if modules := _modules(reporter, files):
            value = _json_value(modules, notation, peak, level)
            if isinstance(value, Unknown):
                reporter.error(f"no trace: {value}")
            else:
                reporter.print_document(json_text(value) + "\n")


def _json_value(
    modules: Sequence[Module], notation: str, peak: Peak | None, level: Level
) -> dict[str, Any] | Unknown:
    """Return the graphs or the trace as a value for JSON."""
    from indexing.equivalence.compare import equivalent
    from indexing.views.report_page.explorer_graphs import explorer_collection
    from indexing.views.report_page.schedule_trace import schedule_trace

    first, last = modules[0], modules[-1]
    if notation == "perfetto":
        return schedule_trace(first, peak)
    if first is last:
        return explorer_collection(first, peak=peak)
    return explorer_collection(first, last, equivalent(first, last, level), peak)


def _modules(reporter: Reporter, files: Sequence[str]) -> Sequence[Module]:
    """Return the module of each file; nothing if one of them is invalid."""
    from indexing.cli.printing import reported_valid

    modules: list[Module] = []
    for file in files:
        module = reporter.only_module(file)
        if module is not None and reported_valid(module, reporter):
            modules.append(module)
    return modules if len(modules) == len(files) else ()

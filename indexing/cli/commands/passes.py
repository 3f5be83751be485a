"""``hlo-indexing passes``: the passes of a folder of dumps validated."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from indexing.cli.options import exact_arithmetic_option, format_option, level_option
from indexing.cli.progress import Bar
from indexing.cli.reporter import Reporter
from indexing.cli.workers import WorkerDeath, results

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from indexing.equivalence.dumps import ModuleDumps
    from indexing.equivalence.passes import PassResult
    from indexing.equivalence.verdicts import Level

UNDECIDED = 3
"""Exit status of a folder with an undecided pair."""


@click.command("passes")
@click.argument("folder", metavar="DUMPDIR", type=click.Path(file_okay=False))
@level_option
@exact_arithmetic_option
@click.option(
    "--jobs",
    metavar="N",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Use N worker processes, one for each module",
)
@click.option(
    "--bisect",
    metavar="FILE",
    type=click.Path(dir_okay=False, writable=True),
    help="Reduce the first pair that differs, and write its smallest part to FILE",
)
@format_option(click.Choice(["text", "json"]))
@click.pass_obj
def command(
    reporter: Reporter,
    folder: str,
    level: Level,
    exact_arithmetic: bool,
    jobs: int,
    bisect: str | None,
    notation: str,
) -> None:
    """Compare the modules before and after each pass of the dumps in DUMPDIR.

    DUMPDIR, or a folder in it, was written by XLA with the flags `--xla_dump_to=DUMPDIR
    --xla_dump_hlo_as_text --xla_dump_hlo_pass_re=.* --xla_dump_large_constants`. Pairs that are
    equal up to names, order and metadata are skipped. The table counts the changed pairs of each
    pass by the level that is proved; then the first pair that differs is printed with its witness.
    JSON has an object for each changed pair. `hlo-indexing diff --help` describes the levels.

    With --bisect, FILE has the smallest part of the modules before and after the pass that still
    differs, separated by a line `// -----`.

    The exit status is 0 if all pairs are proved, 1 if a pair differs, and 3 if none differs but
    some are undecided.

    \b
    Examples:
      hlo-indexing passes dumps
      hlo-indexing passes dumps --level reads --jobs 4
      hlo-indexing passes dumps --bisect part.hlo
      hlo-indexing passes dumps --format json | jq '{pass, verdict, element}'
    """
    from indexing.equivalence.dumps import modules_in
    from indexing.equivalence.verdicts import Differs
    from indexing.views.verdict_tables import pass_record, pass_table

    modules: Sequence[ModuleDumps] = ()
    try:
        modules = modules_in(Path(folder))
    except FileNotFoundError as error:
        reporter.error(f"error[io]: {error}")
        return
    done: list[PassResult] = []
    with Bar(not reporter.is_quiet) as bar:
        for result in _results(reporter, modules, level, exact_arithmetic, jobs, bar):
            done.append(result)
            if notation == "json" and result.verdict is not None:
                reporter.print(json.dumps(pass_record(result)))
    first = next((each for each in done if isinstance(each.verdict, Differs)), None)
    if notation == "text":
        for line in pass_table(done):
            reporter.print(line)
    if first is not None:
        _report_first(reporter, first, notation, bisect)
    if first is not None or reporter.failed:
        raise click.exceptions.Exit(1)
    if any(each.verdict is not None and not each.verdict for each in done):
        raise click.exceptions.Exit(UNDECIDED)


def _report_first(
    reporter: Reporter, result: PassResult, notation: str, bisect: str | None
) -> None:
    """Report the first pair that differs."""
    if notation == "text":
        _print_witness(reporter, result)
    if bisect is not None:
        _write_part(reporter, result, bisect)


def _results(
    reporter: Reporter,
    modules: Sequence[ModuleDumps],
    level: Level,
    exact_arithmetic: bool,
    jobs: int,
    bar: Bar,
) -> Iterator[PassResult]:
    """Yield the results of all passes, computed by worker processes if there are several."""
    validate = partial(_validated, level=level, exact_arithmetic=exact_arithmetic)
    finished: Any = results(validate, modules, jobs) if jobs > 1 else map(validate, modules)
    for number, module in enumerate(modules):
        bar.update(f"passes of {module.name}", number, len(modules))
        with reporter.reporting(module.name):
            outcome = next(finished)
            if isinstance(outcome, WorkerDeath):
                reporter.error(f"error[worker]: {module.name}: the worker process {outcome}")
            else:
                yield from outcome


def _validated(module: ModuleDumps, level: Level, exact_arithmetic: bool) -> list[PassResult]:
    from indexing.equivalence.passes import validated

    return list(validated(module, level, exact_arithmetic))


def _print_witness(reporter: Reporter, result: PassResult) -> None:
    from indexing.views.verdict_tables import verdict_lines

    assert result.verdict is not None
    reporter.print("")
    reporter.print(f"{result.module}: {result.pass_name} changes the values of the module")
    reporter.print(f"  {result.before.path}")
    reporter.print(f"  {result.after.path}")
    for line in verdict_lines(result.verdict):
        reporter.print(line)


def _write_part(reporter: Reporter, result: PassResult, file: str) -> None:
    from hlo import load
    from indexing.equivalence.reduction import smallest_part

    with reporter.reporting(file):
        part = smallest_part(load(result.before.path), load(result.after.path))
        Path(file).write_text(part.text)
        reporter.note(f"wrote {file}: {part.count} instructions before and after")

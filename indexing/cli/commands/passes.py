"""``hlo-indexing passes``: the passes of a folder of dumps validated."""

from __future__ import annotations

import json
import os
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from indexing.cli.colours import paint_outcomes
from indexing.cli.commands.diff import DIFFERENT, UNDECIDED
from indexing.cli.dump_folder import listed_modules, note_kernels
from indexing.cli.options import (
    exact_arithmetic_option,
    format_option,
    jobs_option,
    level_option,
    max_input_size_option,
)
from indexing.cli.paths import InputPath, OutputPath
from indexing.cli.progress import Bar
from indexing.cli.reporter import Reporter
from indexing.cli.workers import WorkerDeath, results

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from indexing.equivalence.dumps import ModuleDumps
    from indexing.equivalence.passes import PassResult
    from indexing.equivalence.verdicts import Level
    from indexing.views.kernel_steps import KernelStep


@click.command("passes")
@click.argument("folder", metavar="DUMPDIR", type=InputPath("passes"))
@level_option
@exact_arithmetic_option
@jobs_option
@click.option(
    "--bisect",
    metavar="FILE",
    type=OutputPath(),
    help="Reduce the first pair that differs, and write its smallest part to FILE",
)
@max_input_size_option
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

    DUMPDIR, or a folder in it, was written by XLA with these flags:

    \b
      XLA_FLAGS="--xla_dump_to=DUMPDIR --xla_dump_hlo_as_text
        --xla_dump_hlo_pass_re=.* --xla_dump_large_constants"

    Dumps may be compressed (.gz, .xz), and those that have no text may be protobufs (.hlo.pb).
    Neighbouring dumps of a module are compared. Pairs that are equal up to names, order and
    metadata are skipped. The table has a row for each pass that changed a module, and counts the
    changed pairs by verdict:

    \b
      values               proved: equal formulas, by laws that hold for every float
      values, laws         proved, by laws that hold only for real numbers
      reads                proved at the level that --level names; counts likewise
      reads only           undecided at a stronger level, proved at level reads
      undecided            nothing is proved
      differs              executions of both modules differ
      differs by rounding  the same, but executions in f64 agree

    Below the table follow the first pair that differs, with its witness, and the undecided pairs
    with the smallest subterms that are not proved equal. A pair spans several passes if a dump
    between them is invalid or missing; its line names that dump. JSON has an object for each
    changed pair. `hlo-indexing diff --help` describes the levels.

    If the folder also has the kernels of a module, which XLA writes with --xla_dump_emitter_re=.*,
    they are its last step: each kernel is compared with its fusion at level values, as by
    `hlo-indexing kernels`. A line counts them by verdict, and those that are not proved are listed.

    With --bisect, FILE has the smallest part of the modules before and after the first pass that
    differs, separated by a line `// -----`.

    The exit status is 0 if all pairs and kernels are proved, 1 if one differs or a dump is invalid
    or cannot be read, and 3 if none differs but some are undecided.

    \b
    Examples:
      hlo-indexing passes dumps
      hlo-indexing passes dumps --level reads --jobs 4
      hlo-indexing passes dumps --bisect part.hlo
      hlo-indexing passes dumps --format json | jq '{pass, verdict, element}'
    """
    from indexing.equivalence.verdicts import Differs
    from indexing.views.kernel_steps import kernel_step_lines
    from indexing.views.verdict_tables import pass_record

    modules = listed_modules(reporter, folder)
    if not modules:
        note_kernels(reporter, folder, f"hlo-indexing kernels {folder}")
        return
    _note_missing(reporter, modules)
    done: list[PassResult] = []
    with reporter.bar as bar:
        for result in _results(reporter, modules, level, exact_arithmetic, jobs, bar):
            done.append(result)
            for fault in result.faults:
                reporter.error(*fault.splitlines())
            if notation == "json" and result.verdict is not None:
                reporter.print(json.dumps(pass_record(result)))
        steps = _kernel_steps(reporter, folder, notation, bar)
    different = [each for each in done if isinstance(each.verdict, Differs)]
    different.sort(key=lambda each: each.verdict is not None and each.verdict.word != "differs")
    first = next(iter(different), None)
    if notation == "text":
        _print_results(reporter, done, first, level)
        reporter.print(*kernel_step_lines(steps))
    if bisect is not None:
        _write_part(reporter, first, bisect)
    _set_verdict(reporter, done, steps)


def _set_verdict(
    reporter: Reporter, done: Sequence[PassResult], steps: Sequence[KernelStep]
) -> None:
    """Set the exit status by the verdicts on passes and kernels."""
    from indexing.equivalence.verdicts import Differs

    words = {step.result.word for step in steps}
    verdicts = [each.verdict for each in done if each.verdict is not None]
    if "differs" in words or any(isinstance(each, Differs) for each in verdicts):
        reporter.verdict = DIFFERENT
    elif "undecided" in words or not all(verdicts):
        reporter.verdict = UNDECIDED


def _kernel_steps(reporter: Reporter, folder: str, notation: str, bar: Bar) -> Sequence[KernelStep]:
    """Return the kernels of a folder with their verdicts; print their JSON."""
    from indexing.kernels.dumps import module_kernels
    from indexing.views.kernel_steps import KernelStep, kernel_step_record
    from indexing.views.kernel_tables import checked_kernel

    steps: list[KernelStep] = []
    with reporter.reporting(folder):
        for module, kernels in module_kernels(folder, max_bytes=reporter.input_limit):
            for number, kernel in enumerate(kernels):
                bar.update(f"kernels of {os.path.basename(module)}", number, len(kernels))
                steps.append(KernelStep(os.path.relpath(module, folder), checked_kernel(kernel)))
                fault = steps[-1].result.fault
                if fault is not None:
                    reporter.error(*str(fault).splitlines())
                if notation == "json":
                    reporter.print(json.dumps(kernel_step_record(steps[-1])))
    return steps


def _note_missing(reporter: Reporter, modules: Sequence[ModuleDumps]) -> None:
    """Note the numbers of dumps that are missing."""
    from indexing.equivalence.dumps import numbers_text

    for module in modules:
        for run in module.missing:
            numbers = numbers_text(*run)
            reporter.note(f"{module.name}: no dump {numbers}: a pair spans several passes")


def _print_results(
    reporter: Reporter, done: Sequence[PassResult], first: PassResult | None, level: Level
) -> None:
    """Print the table, the first pair that differs and the undecided pairs."""
    from indexing.views.verdict_tables import difference_lines, pass_table, undecided_lines

    reporter.print(*paint_outcomes(pass_table(done), reporter.paint))
    if first is not None:
        reporter.print("", *paint_outcomes(difference_lines(first, level), reporter.paint))
    reporter.print(*paint_outcomes(undecided_lines(done, level), reporter.paint))


def _results(
    reporter: Reporter,
    modules: Sequence[ModuleDumps],
    level: Level,
    exact_arithmetic: bool,
    jobs: int,
    bar: Bar,
) -> Iterator[PassResult]:
    """Yield the results of all passes, computed by worker processes if there are several."""
    parts = modules
    if jobs > len(modules):
        parts = [part for module in modules for part in module.parts(-(-jobs // len(modules)))]
    total = sum(len(part.dumps) - part.first for part in parts)
    from indexing.equivalence.passes import validate_passes

    options: Any = {"level": level, "exact_arithmetic": exact_arithmetic}
    options["max_bytes"] = reporter.input_limit
    finished: Any = map(partial(validate_passes, **options), parts)
    if jobs > 1:
        finished = results(partial(_list_results, **options), parts, jobs)
    count = 0
    for part in parts:
        bar.update(f"passes of {part.name}", count, total)
        with reporter.reporting(part.name):
            outcome = next(finished)
            if isinstance(outcome, WorkerDeath):
                reporter.error(f"error[worker]: {part.name}: the worker process {outcome}")
            else:
                for result in outcome:
                    count += 1
                    yield result
                    bar.update(f"{part.name}: {result.pass_name}", count, total)


def _list_results(module: ModuleDumps, **options: Any) -> list[PassResult]:
    """Return the results of a worker process."""
    from indexing.equivalence.passes import validate_passes

    return list(validate_passes(module, **options))


def _write_part(reporter: Reporter, result: PassResult | None, file: str) -> None:
    from hlo import load
    from indexing.equivalence.reduction import smallest_part
    from indexing.execution.output_file import replace_file

    if result is None:
        reporter.note(f"{file} is not written: no pair differs")
        return
    with reporter.reporting(file):
        dumps = (result.before.path, result.after.path)
        part = smallest_part(*[load(path, reporter.input_limit) for path in dumps])
        with replace_file(file) as written:
            written.write(part.text.encode())
        reporter.note(f"wrote {file}: {part.count} instructions before and after")

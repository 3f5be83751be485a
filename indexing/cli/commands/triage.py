"""``hlo-indexing triage``: diverging modules, sorted by what differs and by its cause."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from indexing.cli.options import format_option, max_input_size_option
from indexing.cli.paths import InputPath, OutputFolder
from indexing.cli.reporter import Reporter

if TYPE_CHECKING:
    from indexing.equivalence.triage import TriagedCase

DIFFERENT, UNDECIDED = 1, 3
"""Exit statuses: a case differs, or is undecided."""


@click.command("triage")
@click.argument("folder", metavar="FOLDER", type=InputPath())
@click.option(
    "--save",
    metavar="DIR",
    type=OutputFolder(),
    help="Write the smallest module, or pair, of each case that differs into the folder DIR",
)
@max_input_size_option
@format_option(click.Choice(["text", "json"]))
@click.pass_obj
def command(reporter: Reporter, folder: str, save: str | None, notation: str) -> None:
    """Sort modules on which compilations diverge by what differs and by its cause.

    FOLDER has cases: pairs NAME.pre.hlo and NAME.opt.hlo (or before and after, a and b), files of
    two modules separated by a line `// -----`, folders of dumps of passes, and single modules.
    Pairs are proved or executed as by `diff`, dumps as by `passes`. A single module is compiled and
    executed by XLA:CPU in a process of its own, and by the reference kernels; its passes are
    compared. Cases are grouped, and one that differs is reduced to the fewest instructions that
    still differ.

    \b
    Classes:
      wrong element        executions differ, with a witness
      no result            XLA aborts, or fails with an internal error
      NaN, infinity or undefined value   only such values differ
      rounding             executions differ, but agree in f64
      law of real numbers  proved by laws that floats obey up to rounding, which are named
      undecided            neither is proved
      no difference        proved by exact laws; of a module, executions agree

    The exit status is 1 if a case differs or has no result, 3 if none does but some are undecided.

    \b
    Examples:
      hlo-indexing triage cases
      hlo-indexing triage cases --save smallest
      hlo-indexing triage cases --format json | jq 'select(.class == "wrong element")'
    """
    from indexing.equivalence.triage import group_cases, triaged_cases
    from indexing.views.triage_tables import case_record, triage_lines

    reporter.paths.reads(sorted([str(path) for path in Path(folder).rglob("*") if path.is_file()]))
    done: list[TriagedCase] = []
    with reporter.reporting(folder), reporter.bar as bar:
        for case in triaged_cases(Path(folder), reporter.input_limit):
            done.append(case)
            bar.update(case.name, len(done), len(done))
            if notation == "json":
                reporter.print(json.dumps(case_record(case)))
            if save is not None and case.smallest:
                _save(reporter, Path(save), case)
    if notation == "text" and done:
        reporter.print(*triage_lines(group_cases(done)))
    kinds = {case.kind for case in done}
    if kinds & {"wrong element", "no result", "rounding", "NaN, infinity or undefined value"}:
        reporter.verdict = DIFFERENT
    elif "undecided" in kinds:
        reporter.verdict = UNDECIDED


def _save(reporter: Reporter, folder: Path, case: TriagedCase) -> None:
    """Write the smallest module of a case."""
    name = re.sub(r"[^\w.-]+", "_", case.name.removesuffix(".hlo"))
    path = folder / f"{name}.hlo"
    with reporter.reporting(str(path)):
        folder.mkdir(parents=True, exist_ok=True)
        head = f"// {case.kind}, {case.cause}: {case.detail}".replace("\n", " ")
        path.write_text(f"{head}\n{case.smallest}", encoding="utf-8")

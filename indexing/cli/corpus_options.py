"""The options of commands that answer many files: folders, stages, the journal and the totals."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import click

from hlo.formats.dump_names import STAGES
from hlo.text.names import counted_noun
from indexing.cli.corpus import Corpus
from indexing.cli.jax_inputs import STAGE_OF_DUMP
from indexing.cli.options import with_options
from indexing.cli.paths import OutputPath
from indexing.cli.reporter import Reporter
from indexing.cli.worker_options import workers_options

if TYPE_CHECKING:
    from indexing.cli.journal import Journal
    from indexing.cli.workers import Workers
    from indexing.frontends.dump_folders import ModuleFiles

F = TypeVar("F", bound=Callable[..., Any])

EXPECTED: Final = "*.hlo, *.mlir, *.pb, or *.txt that XLA dumped"
NO_QUESTION: Final = frozenset(
    {"files", "stage", "patterns", "resume", "has_totals", "jobs", "scheduler", "send"}
)
"""Parameters that do not change the results of a file."""

DUMP_OF_STAGE: Final[Mapping[str, str]] = {stage: dump for dump, stage in STAGE_OF_DUMP.items()}
"""The stage of XLA's dumps for that of a function."""

_OPTIONS: Final = (
    workers_options,
    click.option(
        "--stage",
        metavar="STAGE",
        default="all",
        show_default=True,
        help="In folders, choose only XLA's dumps of this stage: "
        f"{', '.join(STAGES)}; of a function jax:..., choose lowered, optimized, or the module "
        "after a pass",
    ),
    click.option(
        "--include",
        "patterns",
        metavar="GLOB",
        multiple=True,
        help="In folders, choose only files whose name, or path if GLOB has a `/`, matches; may be "
        "repeated",
    ),
    click.option(
        "--resume",
        metavar="FILE",
        type=OutputPath(),
        help="Skip what the journal FILE lists as done, and append to it what this run finishes; "
        "the results are appended to those of -o",
    ),
    click.option(
        "--totals",
        "has_totals",
        is_flag=True,
        help="End with totals and failures on standard error, as for folders, and in JSON with a "
        "record as well",
    ),
)


def corpus_options(command: F) -> F:
    """The options of a corpus: the arguments `files` and `workers` become a `Corpus`."""

    @wraps(command)
    def with_corpus(
        files: Sequence[str],
        stage: str,
        patterns: Sequence[str],
        resume: str | None,
        has_totals: bool,
        workers: Workers | None,
        **options: Any,
    ) -> None:
        reporter = click.get_current_context().obj
        corpus = Corpus((), workers, has_totals=has_totals)
        chosen = None if stage == "all" else DUMP_OF_STAGE.get(stage, stage)
        corpus.files = _expand_folders(reporter, corpus, files, chosen, patterns)
        with _journal(reporter, resume, corpus.files) as corpus.journal:
            command(corpus=corpus, **options)
            corpus.report_totals(reporter, options["notation"])

    return with_options(cast(F, with_corpus), _OPTIONS)


def _expand_folders(
    reporter: Reporter,
    corpus: Corpus,
    files: Sequence[str],
    stage: str | None,
    patterns: Sequence[str],
) -> list[str]:
    """Return the files, with those of folders in place of the folders."""
    expanded = []
    for file in files:
        if not os.path.isdir(file):
            expanded.append(file)
            continue
        if stage is not None and stage not in STAGES:
            raise click.UsageError(
                f"{stage!r} is not a stage of XLA's dumps in a folder: expected {', '.join(STAGES)}"
            )
        from indexing.frontends.dump_folders import module_files

        corpus.is_folder = True
        with reporter.reporting(file):
            listed = module_files(file, stage, patterns)
            reporter.paths.reads([*listed.files, *listed.unselected])
            expanded += listed.files
            for fault in listed.faults:
                corpus.add_fault(reporter, fault)
            if listed.files:
                _note_folder(reporter, listed)
            elif not listed.faults:
                _report_empty(reporter, listed)
    return expanded


def _note_folder(reporter: Reporter, listed: ModuleFiles) -> None:
    """Note the number of modules and of other files in a folder."""
    from hlo.formats.dump_names import STAGES

    stages = [f"{listed.stages[stage]} {stage}" for stage in STAGES if listed.stages[stage]]
    selects = "; --stage selects one" if len(stages) > 1 else ""
    dumps = f" ({', '.join(stages)}{selects})" if stages else ""
    parts = [f"note: {listed.folder}: {counted_noun(len(listed.files), 'module')}{dumps}"]
    if listed.unselected:
        parts.append(f"{len(listed.unselected)} not selected")
    if listed.skipped:
        parts.append(f"{counted_noun(listed.skipped.total(), 'other file')}: {_kinds(listed)}")
    reporter.note("; ".join(parts))


def _kinds(listed: ModuleFiles) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in listed.skipped.most_common())


def _report_empty(reporter: Reporter, listed: ModuleFiles) -> None:
    """Report a folder without a selected module."""
    if listed.unselected:
        reason = f"none of {counted_noun(len(listed.unselected), 'module')} is selected"
        repair = "change --stage or --include"
    else:
        others = f", but {_kinds(listed)}" if listed.skipped else ""
        reason = f"no module{others}: expected {EXPECTED}"
        repair = f"compile with XLA_FLAGS='--xla_dump_to={listed.folder} --xla_dump_hlo_as_text'"
    reporter.error(f"error[folder]: {listed.folder}: {reason}", f"  = help: {repair}")


@contextmanager
def _journal(
    reporter: Reporter, path: str | None, files: Sequence[str]
) -> Iterator[Journal | None]:
    """Open the journal, and continue the output file where it ends; None without a path."""
    from indexing.cli.journal import Journal, JournalError

    if path is None:
        yield None
        return
    if "-" in files:
        raise click.UsageError("--resume cannot be used with standard input")
    journal = None
    with reporter.reporting(path):
        try:
            journal = Journal(path, {**_question(), "--output-file": reporter.output_name})
        except JournalError as error:
            raise click.UsageError(str(error)) from None
    if journal is None:
        raise click.exceptions.Exit(1)
    with closing(journal):
        continued = False
        with reporter.reporting(reporter.output_name):
            reporter.continue_results(journal.end)
            continued = True
        if not continued:
            raise click.exceptions.Exit(1)
        yield journal


def _question() -> Mapping[str, str]:
    """Return the command, and the options that decide its results."""
    context = click.get_current_context()
    parameters = [each for each in context.command.params if each.name not in NO_QUESTION]
    values = {p.opts[0]: context.params[p.name] for p in parameters if p.name in context.params}
    return {"command": str(context.info_name), **{k: repr(v) for k, v in values.items()}}

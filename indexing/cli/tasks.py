"""Files answered one by one, by this process or by others, with the same output.

A command has a `FileQuestion`.  This process prints its answers at once; a worker process, which
receives only names, stores them in the `BufferedReporter` of its task, and this process prints them
in the order of the files.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from indexing.cli import loading
from indexing.cli.progress import Bar
from indexing.cli.reporter import Reporter
from indexing.cli.workers import WorkerDeath

if TYPE_CHECKING:
    from hlo.modules.module import Module
    from indexing.cli.corpus import Corpus
    from indexing.maps.indexing_map import IndexingMap
    from indexing.views.map_tables import Paint
    from indexing.views.selection import Condition

MessageKind: TypeAlias = Literal["print", "table", "note", "error"]
"""The method of `Reporter` that prints a message."""

View: TypeAlias = "tuple[Iterable[str], Iterable[dict[str, Any]]]"
"""The lines and the JSON records of an answer."""

Progress: TypeAlias = "Callable[[int, int], None]"
"""Is called with the number of steps done, and of all."""

Printer: TypeAlias = "Callable[[Reporter], str]"
"""Prints the answer for a file, and returns the digest of the file."""


class FileQuestion(Protocol):
    """The question of a command about each file: a frozen value that workers receive."""

    @property
    def conditions(self) -> Sequence[Condition]:
        """The conditions on instructions, one of which a file may meet."""

    def parts(self, file: str, jobs: int) -> int:
        """Return the number of tasks of a file, which balances the load of `jobs` processes."""

    def answer(self, reporter: Reporter, task: Task, bar: Bar) -> None:
        """Print the answers for the modules of one task, and report errors."""


class WholeFiles:
    """The base of questions that are answered in one task for each file."""

    @property
    def conditions(self) -> Sequence[Condition]:
        return ()

    def parts(self, file: str, jobs: int) -> int:
        return 1


class ValidModules(WholeFiles):
    """The base of questions about each module without an invalid instruction."""

    notation: str

    def view(self, module: Module, progress: Progress, paint: Paint) -> View:
        """Return the lines of the answer for a module, and its JSON records."""
        raise NotImplementedError

    def answer(self, reporter: Reporter, task: Task, bar: Bar) -> None:
        """Print the answer for each module of a file."""
        from indexing.cli.printing import reported_valid
        from indexing.cli.selected import note_given, note_matches
        from indexing.views.selection import Selection

        import_module("indexing.ops")  # registers the ops
        for module in task.modules(reporter):
            with reporter.reporting(module.filename):
                if reported_valid(module, reporter):
                    note_given(reporter, module, Selection(), self.conditions)
                    named = [each for each in self.conditions if each.option != "--set"]
                    note_matches(reporter, module, named, is_one_file=True)
                    reporter.count_instructions(module)
                    progress = partial(bar.update, module.filename)
                    lines, records = self.view(module, progress, reporter.paint)
                    bar.hide()
                    reporter.print_answer(self.notation, lines, records)


@dataclass(slots=True)
class BufferedReporter(Reporter):
    """A reporter that stores results and errors, in order, for printing by the parent process."""

    width: int | None = None
    colours: str = "auto"
    debug: bool = False
    max_bytes: int | None = None
    uses_cache: bool = True
    failed: bool = False
    has_answer: bool = False
    reported: set[str] = field(default_factory=set)
    matched: set[Condition] = field(default_factory=set)
    missed: dict[Condition, tuple[str, str]] = field(default_factory=dict)
    undecided: dict[IndexingMap, str] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    messages: list[tuple[MessageKind, tuple[Any, ...]]] = field(default_factory=list)
    sha256: str = ""

    @classmethod
    def of(cls, reporter: Reporter) -> BufferedReporter:
        """Return an empty record with the settings of `reporter`."""
        colours = "always" if reporter.coloured else "never"
        return cls(reporter.width, colours, reporter.debug, reporter.max_bytes, reporter.uses_cache)

    def print(self, *lines: str) -> None:
        self.messages.append(("print", lines))

    def table(self, title: str, rows: Sequence[tuple[str, ...]]) -> None:
        self.messages.append(("table", (title, rows)))

    def note(self, message: str) -> None:
        self.messages.append(("note", (message,)))

    def error(self, *lines: str) -> None:
        self.failed = True
        self.messages.append(("error", lines))

    @property
    def errors(self) -> set[str]:
        """The codes of the errors."""
        return {
            f"{lines[0].partition(']')[0]}]" for kind, lines in self.messages if kind == "error"
        }

    def replay(self, reporter: Reporter, *, with_results: bool = True) -> None:
        """Print all messages, or errors and notes alone; add what was counted and matched."""
        reporter.counts += self.counts
        reporter.matched |= self.matched
        for condition, missed in self.missed.items():
            if not any(reporter.missed.get(condition, ())[1:]):
                reporter.missed[condition] = missed
        reporter.has_answer |= self.has_answer
        reporter.failed |= self.failed
        for kind, arguments in self.messages:
            if with_results or kind in ("note", "error"):
                getattr(reporter, kind)(*arguments)


@dataclass(frozen=True, slots=True)
class Task:
    """Part number `index` of the `count` parts of a file.

    Attributes:
        file: the name of the file.
        question: the question about it.
        record: an empty record, which a worker fills and returns.
        has_digest: True if the record needs the digest of the file, for a journal.
        stored: the contents or the place of the file; None if `file` is its place.
    """

    file: str
    index: int
    count: int
    question: FileQuestion
    record: BufferedReporter
    has_digest: bool = False
    stored: loading.Stored | None = None

    def modules(self, reporter: Reporter, *, lazy: bool = False) -> Iterator[Module]:
        """Yield the modules of the file; its first part reports if it cannot be read."""
        modules: list[Module] = []
        if self.count == 1:
            with reporter.reporting(self.file):
                modules = self.load(lazy=lazy)
        else:
            try:  # a worker often has several parts of a file
                modules = self._load_lazily()
            except Exception:
                if self.index == 0:
                    with reporter.reporting(self.file):
                        self.load(lazy=True)
        yield from modules

    def load(self, *, lazy: bool = False) -> list[Module]:
        """Load the modules of the file.

        Raises:
            HloError: the file is not valid HLO, or too large.
            OSError: the file cannot be read.
        """
        record = self.record
        return loading.load(self.file, record.max_bytes, self.stored, lazy, record.uses_cache)

    def _load_lazily(self) -> list[Module]:
        record = self.record
        return loading.load_lazily(self.file, record.max_bytes, self.stored, record.uses_cache)

    def with_contents(self) -> Task:
        """Return this task with the contents of the file, for a process that cannot read it."""
        return replace(self, stored=loading.read(self.file, self.record.max_bytes))

    def with_place(self) -> Task:
        """Return this task with the absolute path, for a process in another folder."""
        return replace(self, stored=Path(self.file).absolute())

    def digest(self) -> str:
        """Return the digest of the file before it is read, if the first part needs it."""
        from indexing.cli.journal import digest

        if not self.has_digest or self.index > 0:
            return ""
        if isinstance(self.stored, bytes):
            return sha256(self.stored).hexdigest()
        return digest(str(self.stored) if isinstance(self.stored, Path) else self.file)

    @property
    def is_last(self) -> bool:
        """True for the last part of a file."""
        return self.index == self.count - 1

    def death_message(self, death: WorkerDeath) -> list[str]:
        """Return the lines of the error for a worker that died with this task."""
        part = f" (part {self.index + 1} of {self.count})" if self.count > 1 else ""
        return [
            f"error[worker]: {self.file}{part}: no answer: the worker process {death}",
            f"  = help: {death.help}",
        ]


def answer_files(reporter: Reporter, corpus: Corpus, question: FileQuestion) -> None:
    """Print the answers to `question` for each file, in order; write each to the journal.

    Only this process can read standard input.
    """
    pending = corpus.resume(reporter, question.conditions)
    with reporter.bar as bar:
        bar.update("reading", 0)
        with closing(_printers(reporter, corpus, pending, question, bar)) as printers:
            for file, answer in zip(pending, printers, strict=True):
                _finish(reporter, corpus, file, answer)


def _printers(
    reporter: Reporter, corpus: Corpus, files: Sequence[str], question: FileQuestion, bar: Bar
) -> Generator[Printer]:
    """Yield for each file the function that prints its answer, and returns its digest."""
    has_digest = corpus.journal is not None
    if corpus.workers is None:
        for file in files:
            task = Task(file, 0, 1, question, BufferedReporter.of(reporter), has_digest)
            yield partial(_answer_here, task, bar)
        return
    tasks = []
    for file in files:
        count = question.parts(file, corpus.workers.jobs)
        record = BufferedReporter.of(reporter)
        tasks += [Task(file, k, count, question, record, has_digest) for k in range(count)]
    sent = [task for task in tasks if task.file != "-"]
    with closing(corpus.workers.results(answer_task, sent)) as received:
        done = 0
        while done < len(tasks):
            first = tasks[done]
            bar.update(first.file, done, len(tasks))
            if first.file == "-":
                yield partial(_answer_here, first, bar)
            else:
                yield partial(_answer_elsewhere, tasks[done : done + first.count], received, bar)
            done += first.count


def _answer_here(task: Task, bar: Bar, reporter: Reporter) -> str:
    """Print the answer of this process."""
    sha256 = task.digest()
    with reporter.reporting(task.file):
        task.question.answer(reporter, task, bar)
    return sha256


def _answer_elsewhere(
    tasks: Sequence[Task],
    received: Iterator[BufferedReporter | WorkerDeath],
    bar: Bar,
    reporter: Reporter,
) -> str:
    """Print the answers of workers for the tasks of a file."""
    sha256 = ""
    for task in tasks:
        outcome = next(received)
        bar.hide()
        if isinstance(outcome, WorkerDeath):
            reporter.error(*task.death_message(outcome))
        else:
            outcome.replay(reporter)
            sha256 = sha256 or outcome.sha256
    return sha256


def _finish(reporter: Reporter, corpus: Corpus, file: str, answer: Printer) -> None:
    """Print the answer for a file, and list it in the journal if it is done.

    It is done if it has a digest, and did not fail without results.  With a journal, a file that is
    tried again leaves no results: without an output file, which can be cut off, they are held back
    until the file is finished.
    """
    from indexing.cli.journal import RETRIED, FileOutcome

    lines, counts, matched = reporter.lines, reporter.counts.copy(), reporter.matched.copy()
    failed, has_answer = reporter.failed, reporter.has_answer
    reporter.failed = reporter.has_answer = False
    start = reporter.position() if corpus.journal is not None else None
    if corpus.journal is None or start is not None:
        sha256 = answer(reporter)
    else:
        held = BufferedReporter.of(reporter)
        sha256 = answer(held)
        held.replay(reporter, with_results=RETRIED.isdisjoint(held.errors))
    outcome = FileOutcome(
        file,
        sha256,
        reporter.failed,
        reporter.counts - counts,
        sorted(map(repr, reporter.matched - matched)),
        reporter.has_answer,
    )
    is_broken = not RETRIED.isdisjoint(outcome.counts)
    if start is not None and is_broken:
        reporter.rewind(start)
    outcome.end = reporter.position()
    reporter.failed |= failed
    reporter.has_answer |= has_answer
    corpus.add(outcome)
    has_results = reporter.lines > lines or not outcome.failed
    if corpus.journal is not None and sha256 and has_results and not is_broken:
        corpus.journal.add(outcome)


def answer_task(task: Task) -> BufferedReporter:
    """Answer a task in a worker; return its record."""
    task.record.sha256 = task.digest()
    with task.record.reporting(task.file):
        task.question.answer(task.record, task, Bar(lambda: False))
    return task.record

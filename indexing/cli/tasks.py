"""Files answered one by one, by this process or by others, with the same output.

A command has a `FileQuestion`.  This process prints its answers at once; a worker process, which
receives only names, stores them in the `BufferedReporter` of its task, and this process prints them
in the order of the files.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from indexing.cli.progress import Bar
from indexing.cli.reporter import Reporter, load_modules
from indexing.cli.workers import Result, WorkerDeath, results
from indexing.cli.workers import Task as Argument

if TYPE_CHECKING:
    from hlo.modules.module import Module
    from indexing.maps.indexing_map import IndexingMap
    from indexing.views.selection import Condition

MessageKind: TypeAlias = Literal["print", "table", "note", "error"]
"""The method of `Reporter` that prints a message."""

_loaded = lru_cache(maxsize=1)(load_modules)


class FileQuestion(Protocol):
    """The question of a command about each file: a frozen value that workers receive."""

    def parts(self, file: str, jobs: int) -> int:
        """Return the number of tasks of a file, which balances the load of `jobs` processes."""

    def answer(self, reporter: Reporter, task: Task, bar: Bar) -> None:
        """Print the answers for the modules of one task, and report errors."""


class WholeFiles:
    """The base of questions that are answered in one task for each file."""

    def parts(self, file: str, jobs: int) -> int:
        return 1


@dataclass(slots=True)
class BufferedReporter(Reporter):
    """A reporter that stores results and errors, in order, for printing by the parent process."""

    width: int | None = None
    colours: str = "auto"
    debug: bool = False
    max_bytes: int | None = None
    failed: bool = False
    has_answer: bool = False
    reported: set[str] = field(default_factory=set)
    matched: set[Condition] = field(default_factory=set)
    missed: dict[Condition, tuple[str, str]] = field(default_factory=dict)
    undecided: dict[IndexingMap, str] = field(default_factory=dict)
    unmarked: Counter[str] = field(default_factory=Counter)
    messages: list[tuple[MessageKind, tuple[Any, ...]]] = field(default_factory=list)
    proved: Counter[str] = field(default_factory=Counter)

    @classmethod
    def of(cls, reporter: Reporter) -> BufferedReporter:
        """Return an empty record with the settings of `reporter`."""
        return cls(reporter.width, reporter.colours, reporter.debug, reporter.max_bytes)

    def print(self, line: str) -> None:
        self.messages.append(("print", (line,)))

    def table(self, title: str, rows: Sequence[tuple[str, ...]]) -> None:
        self.messages.append(("table", (title, rows)))

    def note(self, message: str) -> None:
        self.messages.append(("note", (message,)))

    def error(self, *lines: str) -> None:
        self.failed = True
        self.messages.append(("error", lines))

    def replay(self, reporter: Reporter) -> None:
        """Print all messages, and add what was counted and matched."""
        reporter.proved += self.proved
        reporter.matched |= self.matched
        for condition, missed in self.missed.items():
            if not any(reporter.missed.get(condition, ())[1:]):
                reporter.missed[condition] = missed
        reporter.unmarked += self.unmarked
        reporter.has_answer |= self.has_answer
        reporter.failed |= self.failed
        for kind, arguments in self.messages:
            getattr(reporter, kind)(*arguments)


@dataclass(frozen=True, slots=True)
class Task:
    """Part number `index` of the `count` parts of a file.

    Attributes:
        file: the name of the file.
        question: the question about it.
        record: an empty record, which a worker fills and returns.
    """

    file: str
    index: int
    count: int
    question: FileQuestion
    record: BufferedReporter

    def modules(self, reporter: Reporter, *, lazy: bool = False) -> Iterator[Module]:
        """Yield the modules of the file; its first part reports if it cannot be read."""
        if self.count == 1:
            yield from reporter.modules([self.file], lazy=lazy)
            return
        try:  # a worker often has several parts of a file
            yield from _loaded(self.file, reporter.max_bytes, True)
        except Exception:
            if self.index == 0:
                yield from reporter.modules([self.file], lazy=True)

    @property
    def is_last(self) -> bool:
        """True for the last part of a file."""
        return self.index == self.count - 1

    def death_message(self, death: WorkerDeath) -> list[str]:
        """Return the lines of the error for a worker that died with this task."""
        part = f" (part {self.index + 1} of {self.count})" if self.count > 1 else ""
        return [
            f"error[worker]: {self.file}{part}: no answer: the worker process {death}",
            "  = help: if memory ran out, use fewer --jobs",
        ]


class Workers(Protocol):
    """Processes that answer tasks.

    Attributes:
        jobs: the number of tasks that they answer at a time.
    """

    jobs: int

    def results(
        self, function: Callable[[Argument], Result], tasks: Sequence[Argument]
    ) -> Generator[Result | WorkerDeath]:
        """Yield ``function(task)`` for each task, in order, as `indexing.cli.workers.results`."""


@dataclass(frozen=True, slots=True)
class Processes:
    """Worker processes on this machine, ``--jobs N``."""

    jobs: int

    def results(
        self, function: Callable[[Argument], Result], tasks: Sequence[Argument]
    ) -> Generator[Result | WorkerDeath]:
        """Yield ``function(task)`` for each task, in order."""
        return results(function, tasks, self.jobs)


def answer_files(
    reporter: Reporter,
    files: Sequence[str],
    question: FileQuestion,
    workers: Workers | None = None,
) -> None:
    """Print the answers to `question` for each of `files`, in order.

    Args:
        reporter: the printer of this process.
        files: names of files; ``-`` is standard input, which only this process can read.
        question: the question about each file.
        workers: the processes that answer; None for this process.
    """
    with Bar(not reporter.is_quiet) as bar:
        bar.update("reading", 0)
        if workers is None:
            for file in files:
                task = Task(file, 0, 1, question, BufferedReporter.of(reporter))
                question.answer(reporter, task, bar)
        else:
            _answer_elsewhere(reporter, files, question, workers, bar)


def _answer_elsewhere(
    reporter: Reporter, files: Sequence[str], question: FileQuestion, workers: Workers, bar: Bar
) -> None:
    """Print the answers of workers."""
    tasks = []
    for file in files:
        count = question.parts(file, workers.jobs)
        record = BufferedReporter.of(reporter)
        tasks += [Task(file, index, count, question, record) for index in range(count)]
    sent = [task for task in tasks if task.file != "-"]
    with closing(workers.results(answered, sent)) as received:
        for done, task in enumerate(tasks):
            bar.update(task.file, done, len(tasks))
            if task.file == "-":
                question.answer(reporter, task, bar)
                continue
            record_or_death = next(received)
            bar.hide()
            if isinstance(record_or_death, WorkerDeath):
                reporter.error(*task.death_message(record_or_death))
            else:
                record_or_death.replay(reporter)


def answered(task: Task) -> BufferedReporter:
    """Answer a task in a worker; return its record."""
    task.question.answer(task.record, task, Bar(is_wanted=False))
    return task.record

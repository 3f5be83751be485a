"""Worker processes that end with this process, and whose death costs one task.

`concurrent.futures` discards all tasks when a worker is killed, and does not name the task that the
worker had.  Its workers survive a parent that is killed.
"""

from __future__ import annotations

import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import get_context, parent_process, resource_tracker
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol, TypeVar

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

Task = TypeVar("Task")
Result = TypeVar("Result")

AHEAD: Final = 16
"""Number of tasks of each worker whose results wait for an earlier one."""


@dataclass(frozen=True, slots=True)
class WorkerDeath:
    """The end of a worker process before it returned a result.

    Attributes:
        reason: how it ended; the worker process is the subject of the sentence.
        help: the repair, if memory ran out.

    >>> str(WorkerDeath.with_status(-9)), str(WorkerDeath.with_status(3))
    ('was killed by signal 9 (Killed)', 'ended with exit status 3')
    """

    reason: str
    help: str = "if memory ran out, use fewer --jobs"

    @classmethod
    def with_status(cls, status: int) -> WorkerDeath:
        """The end of a process with this exit status, which is ``-n`` if signal n killed it."""
        if status >= 0:
            return cls(f"ended with exit status {status}")
        return cls(f"was killed by signal {-status} ({signal.strsignal(-status)})")

    def __str__(self) -> str:
        return self.reason


def results(
    function: Callable[[Task], Result], tasks: Sequence[Task], jobs: int, method: str | None = None
) -> Generator[Result | WorkerDeath]:
    """Yield ``function(task)`` for each task, in order, computed by at most `jobs` processes.

    If a worker dies, the result of its task is a `WorkerDeath`, and another worker takes its place.
    Workers pause when they are `AHEAD` tasks each ahead of the result that is awaited, so that few
    results are in memory.  Closing the iterator kills all workers.

    Args:
        function: a function of a module, which workers import.
        tasks: its arguments.
        jobs: the maximum number of processes.
        method: how processes start, as for `multiprocessing.get_context`.

    >>> list(results(abs, [-3, 4], jobs=2))
    [3, 4]
    """
    waiting = deque(enumerate(tasks))
    done: dict[int, Result | WorkerDeath] = {}
    busy: dict[Any, _Worker] = {}
    paused: list[_Worker] = []
    try:
        for number in range(len(tasks)):
            while True:
                while waiting and waiting[0][0] < number + AHEAD * jobs and len(busy) < jobs:
                    worker = paused.pop() if paused else None
                    if worker is None or not worker.gave(waiting):
                        worker = _started(function, *waiting.popleft(), method)
                    busy[worker.connection] = worker
                if number in done:
                    break
                for connection in wait(list(busy)):
                    worker = busy.pop(connection)
                    done[worker.task] = outcome = worker.receive()
                    if not isinstance(outcome, WorkerDeath):
                        paused.append(worker)
            while paused and not waiting:
                paused.pop().gave(waiting)
            yield done.pop(number)
    finally:
        _kill([*busy.values(), *paused])


def _kill(workers: Sequence[_Worker]) -> None:
    for worker in workers:
        worker.process.kill()
    for worker in workers:
        worker.process.join()


class Workers(Protocol):
    """Processes that answer tasks.

    Attributes:
        option: the option that chooses them.
    """

    option: ClassVar[str]

    @property
    def jobs(self) -> int:
        """The number of tasks that they answer at a time."""

    def results(
        self, function: Callable[[Task], Result], tasks: Sequence[Task]
    ) -> Generator[Result | WorkerDeath]:
        """Yield ``function(task)`` for each task, in order, as `results`."""


@dataclass(frozen=True, slots=True)
class Processes:
    """Worker processes on this machine, ``--jobs N``."""

    option: ClassVar[str] = "--jobs"
    jobs: int

    def results(
        self, function: Callable[[Task], Result], tasks: Sequence[Task]
    ) -> Generator[Result | WorkerDeath]:
        """Yield ``function(task)`` for each task, in order."""
        return results(function, tasks, self.jobs)


@dataclass(slots=True)
class _Worker:
    """A worker process, from the side of its parent.

    Attributes:
        task: the position of the task that it has.
    """

    process: BaseProcess
    connection: Connection[Any, Any]
    task: int

    def receive(self) -> Any:
        """Return the result of the task, or how the process died."""
        try:
            return self.connection.recv()
        except (EOFError, OSError):
            return WorkerDeath.with_status(self._end())

    def gave(self, waiting: deque[tuple[int, Any]]) -> bool:
        """Move the first of `waiting` to this process; end the process if there is none."""
        with suppress(OSError):  # it was killed after its last result
            if waiting:
                self.connection.send(waiting[0][1:])
                self.task, _ = waiting.popleft()
                return True
            self.connection.send(())
        self._end()
        return False

    def _end(self) -> int:
        """Wait for the end of the process, and return its exit status."""
        self.process.join()
        self.connection.close()
        assert self.process.exitcode is not None
        return self.process.exitcode


def _started(
    function: Callable[[Any], Any], position: int, task: Any, method: str | None
) -> _Worker:
    """Start a process with its first task."""
    context = get_context(method)
    if context.get_start_method() != "fork":
        resource_tracker.ensure_running()  # starting it unblocks SIGINT: not between the next lines
    ours, theirs = context.Pipe()
    process: BaseProcess = context.Process(  # type: ignore[attr-defined]  # typeshed: on subclasses
        target=_work, args=(function, theirs, task), daemon=True
    )
    with interrupts_blocked():
        process.start()
    theirs.close()
    return _Worker(process, ours, position)


@contextmanager
def interrupts_blocked() -> Iterator[None]:
    """Start processes that Ctrl-C does not end: it reaches the whole group; the parent responds."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])


def _work(function: Callable[[Any], Any], connection: Connection[Any, Any], task: Any) -> None:
    """Send the result of each task, until the parent sends no further task."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in {signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)}:  # not on Windows
        if callable(signal.getsignal(number)):  # a forked process has the parent's handlers
            signal.signal(number, signal.SIG_DFL)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    given = (task,)
    while given:
        connection.send(function(*given))
        given = connection.recv()


def _end_with_parent() -> None:
    """End this process as soon as its parent ends, by whatever signal."""
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)

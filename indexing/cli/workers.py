"""Worker processes that end with this process, and whose death costs one task.

A worker is a pool of one process: the death of one of several processes ends the whole pool, and
does not tell the task that it had.
"""

from __future__ import annotations

import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import get_context, parent_process, resource_tracker
from multiprocessing.process import BaseProcess
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol, TypeVar

if TYPE_CHECKING:
    from multiprocessing.context import BaseContext

Task = TypeVar("Task")
Result = TypeVar("Result")

AHEAD: Final = 16
"""Number of tasks of each worker whose results wait for an earlier one."""

FILES: Final = 8
"""Number of open files that a worker costs this process."""


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

    The workers start with this call, and answer while this process does other work.  If a worker
    dies, the result of its task is a `WorkerDeath`, and another worker takes its place.
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
    started = _start(function, tasks, jobs, method)
    next(started)
    return started


def _start(
    function: Callable[[Task], Any], tasks: Sequence[Task], jobs: int, method: str | None
) -> Generator[Any]:
    """Start the workers and yield None; then yield the results."""
    context = get_context(method)
    _allow_files(FILES * min(jobs, len(tasks)))
    waiting = deque(enumerate(tasks))
    done: dict[int, Any] = {}
    workers = [_Worker(context) for _ in range(min(jobs, len(tasks)))]
    busy: dict[Future[Any], tuple[int, _Worker]] = {}

    def give_tasks(number: int) -> None:
        """Give a task to each idle worker while the result of a task is awaited."""
        for worker in workers:
            if worker.is_idle and waiting and waiting[0][0] < number + AHEAD * jobs:
                position, task = waiting.popleft()
                busy[worker.give(function, task)] = position, worker

    try:
        give_tasks(0)
        yield None
        for number in range(len(tasks)):
            while True:
                give_tasks(number)
                if number in done:
                    break
                for future in wait(busy, return_when=FIRST_COMPLETED).done:
                    position, worker = busy.pop(future)
                    done[position] = worker.outcome(future)
            yield done.pop(number)
    finally:
        for worker in workers:
            worker.kill()
        for worker in workers:
            worker.end()


def _allow_files(count: int) -> None:
    """Raise the limit of open files by `count`, as far as the system allows it."""
    try:
        import resource
    except ImportError:  # Windows, which has no limit
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY:
        limit = soft + count if hard == resource.RLIM_INFINITY else min(soft + count, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))


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


class _PoolContext:
    """A context of `multiprocessing` that remembers the process that it made.

    The process of a pool may have died before `multiprocessing.active_children` could tell it.
    """

    def __init__(self, context: Any) -> None:
        self._context = context
        self.process: BaseProcess | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def Process(self, **arguments: Any) -> BaseProcess:
        """Return the process of a pool."""
        self.process = process = self._context.Process(**arguments)
        assert isinstance(process, BaseProcess)
        return process


class _Worker:
    """A pool of one process, which starts with its first task."""

    def __init__(self, context: BaseContext) -> None:
        self._context: Any = _PoolContext(context)
        self._executor: ProcessPoolExecutor | None = None
        self.is_idle = True

    @property
    def _is_alive(self) -> bool:
        return self._context.process is not None and self._context.process.is_alive()

    def give(self, function: Callable[[Any], Any], task: Any) -> Future[Any]:
        """Start a task; in another process, if this one died."""
        self.is_idle = False
        if self._executor is not None and self._is_alive:
            with suppress(BrokenProcessPool):  # it dies now
                return self._executor.submit(function, task)
        self.end()
        if self._context.get_start_method() != "fork":
            resource_tracker.ensure_running()  # starting it unblocks SIGINT: not below
        self._executor = ProcessPoolExecutor(1, self._context, _prepare)
        with block_interrupts():
            future = self._executor.submit(function, task)
        # If a process dies while it writes a result, the stream ends only if nobody else can write.
        with suppress(AttributeError):  # in a later version of Python
            self._executor._result_queue._writer.close()  # type: ignore[attr-defined]
        return future

    def outcome(self, future: Future[Any]) -> Any:
        """Return the result of the task, or how its process died."""
        self.is_idle = True
        error = future.exception()
        if error is None:
            return future.result()
        if not isinstance(error, BrokenProcessPool):
            return WorkerDeath(f"raised {type(error).__name__}: {error}")
        self.end()
        return WorkerDeath.with_status(self._context.process.exitcode)

    def kill(self) -> None:
        """Kill the process if it has a task."""
        if not self.is_idle and self._is_alive:
            self._context.process.kill()

    def end(self) -> None:
        """Wait for the end of the process."""
        if self._executor is not None:
            self._executor.shutdown()


@contextmanager
def block_interrupts() -> Iterator[None]:
    """Start processes that Ctrl-C does not end: it reaches the whole group; the parent responds."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])


def _prepare() -> None:
    """Let a new worker end by signals and with its parent, but not by Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in {signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)}:  # not on Windows
        if callable(signal.getsignal(number)):  # a forked process has the parent's handlers
            signal.signal(number, signal.SIG_DFL)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End this process as soon as its parent ends, by whatever signal."""
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)

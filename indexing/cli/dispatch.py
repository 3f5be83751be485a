"""Tasks computed by the workers of a Dask cluster, with the results in the order of the tasks.

Dask chooses the workers, and repeats the tasks of a worker that dies.  It gives up a task after
more deaths than its `allowed-failures`, and then blames every task that the worker had.  Such a
task is repeated once, alone: its next death has one cause.
"""

from __future__ import annotations

import pickle
import threading
import time
from asyncio import CancelledError
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Final

from indexing.cli.versions import Environment, differences, environment
from indexing.cli.workers import WorkerDeath

if TYPE_CHECKING:
    from distributed import Client, Future

AHEAD: Final = 32  # tasks per worker that may be complete before the next one in order
MAX_SENT: Final = 256 << 20  # bytes of tasks that workers have; one larger task is sent alone
PATIENCE: Final = 60.0  # seconds to wait for a worker
NOTE_AFTER: Final = 2.0  # seconds without a worker before a note
POLL: Final = 1.0  # seconds between two looks at the workers
START_WORKERS: Final = "start workers: dask worker ADDRESS"
SAME_VERSIONS: Final = "install the same versions on this machine, the scheduler and all workers"
MEMORY_HELP: Final = "if memory ran out, give the workers more: dask worker --memory-limit"
LOST: Final = ("the connection to the scheduler is lost", "look at the log of the scheduler")


class ClusterError(Exception):
    """A cluster cannot compute the tasks.

    Attributes:
        reason: what failed, without the address of the scheduler.
        help: the repair.
    """

    def __init__(self, reason: str, help_: str) -> None:
        super().__init__(reason, help_)
        self.reason = reason
        self.help = help_

    def __str__(self) -> str:
        return self.reason


_LOCK: Final = threading.Lock()
"""Held while a task is computed: maps and counters of proofs belong to a whole process."""


def compute(expected: Environment, payload: bytes) -> Any:
    """Return the result of a pickled function and its argument, on a worker.

    Raises:
        ClusterError: the versions of this worker differ from the expected ones.
    """
    if different := differences(expected, environment()):
        from distributed import get_worker

        reason = f"worker {get_worker().address} has {'; '.join(different)}"
        raise ClusterError(reason, SAME_VERSIONS)
    with _LOCK:
        function, task = pickle.loads(payload)
        try:
            return function(task)
        except Exception as error:
            return WorkerDeath(f"raised {type(error).__name__}: {error}", MEMORY_HELP)


@dataclass(slots=True)
class _Job:
    """A task, from the first attempt to its result.

    Attributes:
        position: its place in the order.
        payload: the pickled function and task.
        last_worker: the last worker that died before Dask gave up the task; "" at first.
    """

    position: int
    payload: bytes
    last_worker: str = ""


class _Watch:
    """The number of workers that take tasks: often looked at when they start, each second later.

    Args:
        client: a connected client.
        note: called with a message if there is no worker.
    """

    def __init__(self, client: Client, note: Callable[[str], None]) -> None:
        self._client, self._note = client, note
        self._has_noted = False
        self._last_ready = time.monotonic()
        self.restart()

    def restart(self) -> None:
        """Look now, because workers join or have left, and soon again."""
        self.pause = POLL / 32
        self.ready = self._look()

    def update(self) -> None:
        """Look at the workers, if the pause is over.

        Raises:
            ClusterError: the connection is lost, or no worker is ready for `PATIENCE` seconds.
        """
        if time.monotonic() - self._looked >= self.pause:
            self.pause = min(2 * self.pause, POLL)
            self.ready = self._look()

    def _look(self) -> int:
        if self._client.status != "running":
            raise ClusterError(*LOST)
        try:
            workers = self._client.scheduler_info(n_workers=-1)["workers"]
        except OSError:
            raise ClusterError(*LOST) from None
        ready: int = sum(each["status"] == "running" for each in workers.values())
        self._looked = time.monotonic()
        if ready:
            self._last_ready, self._has_noted = self._looked, False
            return ready
        state = "the scheduler has no workers"
        if workers:
            state = f"all {len(workers)} workers are paused, because their memory is almost full"
        waited = self._looked - self._last_ready
        if waited > PATIENCE:
            raise ClusterError(f"{state} after {PATIENCE:g} s", START_WORKERS)
        if waited > NOTE_AFTER and not self._has_noted:
            self._has_noted = True
            self._note(f"{state}: waiting for workers")
        return 0


def results(
    client: Client,
    function: Callable[[Any], Any],
    tasks: Iterable[Any],
    note: Callable[[str], None],
) -> Generator[Any]:
    """Yield the result of each task, in order, or a `WorkerDeath`.

    Each worker has one task at a time.

    Args:
        client: a connected client.
        function: a function of a module, which workers import.
        tasks: its arguments, taken when workers are free.
        note: called with a message if there is no worker.

    Raises:
        ClusterError: the connection is lost, there are no workers, or one has other versions.
    """
    jobs = (_Job(n, pickle.dumps((function, task))) for n, task in enumerate(tasks))
    following = next(jobs, None)
    suspects: deque[_Job] = deque()
    running: dict[str, tuple[_Job, Future[Any]]] = {}
    finished: SimpleQueue[Future[Any]] = SimpleQueue()
    done: dict[int, Any] = {}
    number = 0

    def send(job: _Job) -> None:
        future = client.submit(compute, environment(), job.payload, pure=False)
        running[future.key] = job, future
        future.add_done_callback(finished.put)

    watch = _Watch(client, note)
    try:
        while following or suspects or running:
            watch.update()
            sent = [job for job, _ in running.values()]
            if following and _fits(following, number, sent, watch.ready):
                send(following)
                following = next(jobs, None)
                continue
            if suspects and not running and watch.ready:
                send(suspects.popleft())
            with suppress(Empty):
                future = finished.get(timeout=watch.pause)
                job, _ = running.pop(future.key)
                outcome = _outcome(job, future)
                if outcome is job:
                    suspects.append(job)
                else:
                    done[job.position] = outcome
                if job.last_worker:  # a worker has died
                    watch.restart()
            while number in done:
                yield done.pop(number)
                number += 1
    finally:
        for _, future in running.values():
            future.release()


def _fits(job: _Job, number: int, running: Sequence[_Job], workers: int) -> bool:
    """Return True if a task can be sent while result `number` is awaited.

    Each worker has one task; none is sent beside one that is repeated.
    """
    sent = sum(len(each.payload) for each in running)
    return (
        job.position < number + AHEAD * workers
        and len(running) < workers
        and (not running or sent + len(job.payload) <= MAX_SENT)
        and not any(each.last_worker for each in running)
    )


def _outcome(job: _Job, future: Future[Any]) -> Any:
    """Return the result of a task, or the job itself, if it is repeated.

    Raises:
        ClusterError: the connection is lost, or the scheduler or a worker has other versions.
    """
    from distributed.scheduler import KilledWorker

    try:
        return future.result()
    except KilledWorker as error:
        worker = error.last_worker.address
        if job.last_worker:
            return WorkerDeath(f"ended on {job.last_worker} and again on {worker}", MEMORY_HELP)
        job.last_worker = worker
        return job
    except ClusterError:
        raise
    except (Exception, CancelledError) as error:
        if future.status != "error":  # the task did not raise it: it has no result
            raise ClusterError(*LOST) from None
        reason = str(error).partition("\n")[0]
        if "deserialization of the task graph" in reason:
            raise ClusterError("the scheduler cannot import hlo-indexing", SAME_VERSIONS) from None
        kind = type(error).__name__
        raise ClusterError(f"a task fails: {kind}: {reason}", SAME_VERSIONS) from None

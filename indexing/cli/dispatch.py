"""Tasks computed by the workers of a Dask cluster, with the results in the order of the tasks.

Dask would give a worker several tasks, repeat all of them if the worker dies, and blame each one.
Here every task is sent to one worker by name.  A worker has one task that it computes and one that
waits, which hides the time of a message.  If it dies, both are repeated, each alone on a worker, so
that the next death has one cause.
"""

from __future__ import annotations

import asyncio
import pickle
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Final

from indexing.cli.versions import Environment, environment
from indexing.cli.workers import WorkerDeath

if TYPE_CHECKING:
    from distributed import Client, Future

DEPTH: Final = 2  # tasks of a worker: one that it computes, one that waits
AHEAD: Final = 32  # tasks per worker that may be complete before the next one in order
MAX_SENT: Final = 256 << 20  # bytes of tasks that workers have; one larger task is sent alone
MAX_DEATHS: Final = 2  # workers that may die of a task
PATIENCE: Final = 60.0  # seconds to wait for a worker
NOTE_AFTER: Final = 2.0  # seconds without a worker before a note
POLL: Final = 1.0  # seconds between two looks at the connection
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
        super().__init__(reason)
        self.reason = reason
        self.help = help_


@dataclass(slots=True, eq=False)
class _Job:
    """A task, from the first attempt to its result.

    Attributes:
        position: its place in the order.
        payload: the pickled function and task.
        deaths: the workers that died while they computed it.
        is_suspect: a worker died that had it: it must be alone on the next one.
    """

    position: int
    payload: bytes
    deaths: list[str] = field(default_factory=list)
    is_suspect: bool = False
    is_done: bool = False


@dataclass(slots=True, eq=False)
class _Attempt:
    """A job at a worker; None is the question for the versions of the worker."""

    job: _Job | None
    future: Future[Any]


@dataclass(slots=True, eq=False)
class _Seat:
    """A worker of the cluster; its oldest attempt is the one that it computes."""

    address: str
    attempts: list[_Attempt] = field(default_factory=list)
    is_checked: bool = False
    is_paused: bool = False

    @property
    def is_ready(self) -> bool:
        return self.is_checked and not self.is_paused

    @property
    def size(self) -> int:
        """The number of bytes of the tasks."""
        return sum(len(each.job.payload) for each in self.attempts if each.job is not None)

    @property
    def load(self) -> int:
        is_alone = any(each.job is not None and each.job.is_suspect for each in self.attempts)
        return DEPTH if is_alone else len(self.attempts)


_LOCK: Final = threading.Lock()
"""Held while a task is computed: maps and counters of proofs belong to a whole process."""


def compute(payload: bytes) -> bytes:
    """Return the pickled result of a pickled function and its argument, on a worker."""
    with _LOCK:
        function, task = pickle.loads(payload)
        return pickle.dumps(function(task), pickle.HIGHEST_PROTOCOL)


class Dispatcher:
    """Sends tasks to the workers of a cluster.

    All methods run in the thread that iterates over the results, except those of the client's event
    loop, which only put calls into `_inbox`.

    Args:
        client: a connected client.
        function: a function of a module, which workers import.
        tasks: its arguments, taken when workers are free.
        check: called with the address and the environment of each worker before it gets a task.
        note: called with a message if there is no worker.
    """

    def __init__(
        self,
        client: Client,
        function: Callable[[Any], Any],
        tasks: Iterable[Any],
        check: Callable[[str, Environment], None],
        note: Callable[[str], None],
    ) -> None:
        self._client, self._check, self._note = client, check, note
        self._payloads = (pickle.dumps((function, task)) for task in tasks)
        self._name = f"hlo-indexing-{uuid.uuid4().hex}"
        self._inbox: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._seats: dict[str, _Seat] = {}
        self._next: _Job | None = None  # taken from the tasks, but not sent yet
        self._again: deque[_Job] = deque()  # their worker left without a fault of theirs
        self._suspects: deque[_Job] = deque()  # their worker died
        self._done: dict[int, Any] = {}
        self._taken = self._yielded = self._submitted = 0
        self._idle_since: float | None = None  # when it was noticed that no worker is ready
        self._has_noted = False

    def results(self) -> Generator[Any]:
        """Yield the result of each task, in order, or the `WorkerDeath` of two workers.

        Raises:
            ClusterError: the connection is lost, there are no workers, or one has other versions.
        """
        try:
            self._client.subscribe_topic("all", self._on_event)
            self._look_at_workers()
            while self._has_tasks():
                while self._yielded not in self._done:
                    self._send_tasks()
                    self._receive()
                yield self._done.pop(self._yielded)
                self._yielded += 1
        finally:
            for seat in self._seats.values():
                self._release(seat)

    def _has_tasks(self) -> bool:
        if self._yielded == self._taken:
            self._take()
        return self._yielded < self._taken

    def _take(self) -> None:
        """Take the next task, if there is one."""
        if self._next is None and (payload := next(self._payloads, None)) is not None:
            self._next = _Job(self._taken, payload)
            self._taken += 1

    # --- sending -------------------------------------------------------------------------------

    def _send_tasks(self) -> None:
        """Give tasks to all workers that can take one."""
        ready = [seat for seat in self._seats.values() if seat.is_ready]
        while ready:
            seat = min(ready, key=lambda seat: seat.load)
            job = None if seat.load >= DEPTH else self._job_for(seat, ready)
            if job is None:
                return
            self._submit(seat, job)

    def _job_for(self, seat: _Seat, ready: Sequence[_Seat]) -> _Job | None:
        """Return the next task for the worker with the fewest tasks."""
        for repeated in (self._suspects, self._again):
            while repeated and repeated[0].is_done:  # by another attempt
                repeated.popleft()
        if self._suspects:  # each alone at a worker: wait for one without tasks
            return None if seat.attempts else self._suspects.popleft()
        if self._again:
            return self._again.popleft()
        if self._taken - self._yielded < AHEAD * len(ready):
            self._take()
        if (job := self._next) is not None:
            sent = sum(each.size for each in self._seats.values())
            if sent == 0 or sent + len(job.payload) <= MAX_SENT:
                self._next = None
                return job
        busiest = max(ready, key=lambda each: len(each.attempts))
        if seat.attempts or len(busiest.attempts) < 2:
            return None
        return self._withdraw(busiest, busiest.attempts[-1])

    def _withdraw(self, seat: _Seat, attempt: _Attempt) -> _Job | None:
        """Take back a task that a worker has."""
        seat.attempts.remove(attempt)
        attempt.future.release()
        return attempt.job

    def _submit(self, seat: _Seat, job: _Job | None) -> None:
        """Send a task to a worker; None asks for its environment."""
        call: tuple[Any, ...] = (environment,) if job is None else (compute, job.payload)
        self._submitted += 1
        key = f"{self._name}-{self._submitted}"
        future = self._client.submit(*call, key=key, workers=[seat.address], pure=False)
        attempt = _Attempt(job, future)
        seat.attempts.append(attempt)
        loop = self._client.loop.asyncio_loop
        asyncio.run_coroutine_threadsafe(self._fetch(seat, attempt), loop)

    # --- in the event loop of the client -------------------------------------------------------

    async def _fetch(self, seat: _Seat, attempt: _Attempt) -> None:
        """Wait for the result of an attempt."""
        try:
            result = await self._client.gather(attempt.future, asynchronous=True)
        except (Exception, asyncio.CancelledError) as error:
            self._inbox.put(partial(self._failed, seat, attempt, error))
        else:
            self._inbox.put(partial(self._finished, seat, attempt, result))

    def _on_event(self, event: tuple[float, Any]) -> None:
        """Pass on that a worker joined or left."""
        match event[1]:
            case {"action": "add-worker", "worker": str(address)}:
                self._inbox.put(partial(self._joined, address))
            case {"action": "remove-worker", "worker": str(address), **rest}:
                self._inbox.put(partial(self._left, address, bool(rest.get("expected"))))

    def _on_status(self, address: str, event: tuple[float, Any]) -> None:
        """Pass on that a worker pauses, because its memory is almost full, or continues."""
        match event[1]:
            case {"action": "worker-status-change", "status": str(status)}:
                self._inbox.put(partial(self._changed, address, status))

    # --- receiving -----------------------------------------------------------------------------

    def _receive(self) -> None:
        """Wait for one event and respond to it."""
        try:
            respond = self._inbox.get(timeout=POLL)
        except Empty:
            if self._client.status != "running":
                raise ClusterError(*LOST) from None
            self._look_at_workers()
        else:
            respond()
        if any(seat.is_ready for seat in self._seats.values()):
            self._idle_since, self._has_noted = None, False
            return
        now = time.monotonic()
        self._idle_since = self._idle_since or now
        waited = now - self._idle_since
        state = self._state_of_workers()
        if waited > PATIENCE:
            raise ClusterError(f"{state} after {PATIENCE:g} s", START_WORKERS)
        if waited > NOTE_AFTER and not self._has_noted:
            self._has_noted = True
            self._note(f"{state}: waiting for workers")

    def _state_of_workers(self) -> str:
        paused = sum(seat.is_paused for seat in self._seats.values())
        if paused:
            return f"all {paused} workers are paused, because their memory is almost full"
        return "no worker answers" if self._seats else "the scheduler has no workers"

    def _look_at_workers(self) -> None:
        """Compare the workers with those of the scheduler: the first events may be missed."""
        try:
            workers = self._client.scheduler_info(n_workers=-1)["workers"]
        except OSError:
            raise ClusterError(*LOST) from None
        for address in self._seats.keys() - workers.keys():
            self._left(address, False)
        for address, worker in workers.items():
            self._joined(address)
            self._changed(address, worker.get("status", "running"))

    def _joined(self, address: str) -> None:
        if address not in self._seats:
            self._seats[address] = seat = _Seat(address)
            self._client.subscribe_topic(address, partial(self._on_status, address))
            self._submit(seat, None)

    def _changed(self, address: str, status: str) -> None:
        """Use a worker that runs; a paused one starts no task that it has."""
        if (seat := self._seats.get(address)) is None:
            return
        was_paused, seat.is_paused = seat.is_paused, status != "running"
        if seat.is_paused and not was_paused:
            jobs = [each.job for each in seat.attempts if each.job is not None]
            self._again.extend(jobs)  # also the one that it may have started: the first answer wins

    def _left(self, address: str, is_expected: bool) -> None:
        """Repeat the tasks of a worker that left or died."""
        seat = self._seats.pop(address, None)
        if seat is None:
            return
        self._client.unsubscribe_topic(address)
        for number, job in enumerate(self._release(seat)):
            if job.is_done:
                continue
            if is_expected:
                self._again.append(job)
                continue
            job.is_suspect = True
            if number == 0:  # the others waited
                job.deaths.append(address)
            if len(job.deaths) < MAX_DEATHS:
                self._suspects.append(job)
            else:
                places = " and again on ".join(job.deaths)
                self._finish(job, WorkerDeath(f"ended on {places}", MEMORY_HELP))

    def _release(self, seat: _Seat) -> list[_Job]:
        """Take back all tasks of a worker."""
        jobs = [self._withdraw(seat, attempt) for attempt in list(seat.attempts)]
        return [job for job in jobs if job is not None]

    def _finish(self, job: _Job, result: Any) -> None:
        if not job.is_done:
            job.is_done, job.payload = True, b""
            self._done[job.position] = result

    def _finished(self, seat: _Seat, attempt: _Attempt, result: Any) -> None:
        if attempt not in seat.attempts:
            return  # it was withdrawn
        job = self._withdraw(seat, attempt)
        if job is None:
            self._check(seat.address, result)
            seat.is_checked = True
        else:
            self._finish(job, pickle.loads(result))

    def _failed(self, seat: _Seat, attempt: _Attempt, error: BaseException) -> None:
        from distributed.scheduler import KilledWorker

        if attempt not in seat.attempts:
            return
        if attempt.future.status != "error":  # the task did not raise it: it has no result
            raise ClusterError(*LOST)
        if isinstance(error, KilledWorker):  # before the event that the worker left
            self._left(seat.address, False)
            return
        job = self._withdraw(seat, attempt)
        if job is None:
            reason = str(error).partition("\n")[0]
            if "deserialization of the task graph" in reason:
                raise ClusterError("the scheduler cannot import hlo-indexing", SAME_VERSIONS)
            raise ClusterError(f"worker {seat.address}: {reason}", SAME_VERSIONS)
        self._finish(job, WorkerDeath(f"raised {type(error).__name__}: {error}", MEMORY_HELP))

"""Tasks of a cluster: sent when workers are free, and repeated alone when Dask gives them up."""

from __future__ import annotations

import pickle
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from indexing.cli import dispatch
from indexing.cli.dispatch import AHEAD, LOST, SAME_VERSIONS, ClusterError
from indexing.cli.versions import environment
from indexing.cli.workers import WorkerDeath
from tests.cli.cluster_tasks import double

pytest.importorskip("distributed", reason="needs the extra [dask]")


@dataclass(eq=False)
class Attempt:
    """A future of Dask."""

    key: str
    future: Future[Any]

    def add_done_callback(self, call: Callable[[Any], None]) -> None:
        self.future.add_done_callback(lambda _: call(self))

    @property
    def status(self) -> str:
        return "cancelled" if self.future.cancelled() else "error"

    def result(self) -> Any:
        return self.future.result()

    def release(self) -> None:
        self.future.cancel()


class Threads:
    """A client of workers that are threads.

    Args:
        respond: called in a worker with each number, and the number of its earlier attempts.
        workers: the number of workers that take tasks.
        paused: that of others.
    """

    def __init__(self, respond: Callable[[int, int], None], workers: int, paused: int = 0) -> None:
        self.pool = ThreadPoolExecutor(max(1, workers))
        self.respond = respond
        self.status = "running"
        self.statuses = [*["running"] * workers, *["paused"] * paused]
        self.running: set[int] = set()
        self.most_running = 0
        self.attempts: Counter[int] = Counter()

    def scheduler_info(self, n_workers: int) -> dict[str, Any]:
        assert n_workers == -1
        return {"workers": {str(k): {"status": each} for k, each in enumerate(self.statuses)}}

    def submit(self, function: Any, *arguments: Any, pure: bool) -> Attempt:
        assert not pure
        number = pickle.loads(arguments[1])[1]
        self.running.add(number)  # before the future is done
        self.most_running = max(self.most_running, len(self.running))
        future = self.pool.submit(self._answer, number, function, *arguments)
        return Attempt(f"{number}-{self.attempts[number]}", future)

    def _answer(self, number: int, function: Any, *arguments: Any) -> Any:
        self.attempts[number] += 1
        try:
            self.respond(number, self.attempts[number] - 1)
            return function(*arguments)
        finally:
            self.running.remove(number)


def worker_death(worker: str) -> Exception:
    """The exception of Dask for a task of a worker that died."""
    from distributed.scheduler import KilledWorker

    last: Any = SimpleNamespace(address=worker)
    error: Exception = KilledWorker("task", last, allowed_failures=3)
    return error


def nothing(number: int, attempts: int) -> None: ...


def results(client: Any, tasks: Iterable[int], note: Any = pytest.fail) -> Iterator[Any]:
    return dispatch.results(client, double, tasks, note)


@pytest.mark.parametrize("seed", range(12))
def test_only_poisonous_tasks_are_blamed(seed: int) -> None:
    """Dask blames all tasks of a worker: an innocent one does not die when it is alone."""
    rng = random.Random(seed)
    count, workers = rng.randrange(60), rng.randrange(1, 5)
    poisonous = set(rng.sample(range(count), min(count, rng.randrange(4))))
    innocent = set(rng.sample(range(count), min(count, rng.randrange(20)))) - poisonous

    def respond(number: int, attempts: int) -> None:
        assert attempts == 0 or client.running == {number}
        if number in poisonous or (number in innocent and attempts == 0):
            raise worker_death(f"worker-{number}-{attempts}")

    client = Threads(respond, workers)
    assert [*results(client, range(count))] == [
        WorkerDeath(f"ended on worker-{n}-0 and again on worker-{n}-1", dispatch.MEMORY_HELP)
        if n in poisonous
        else 2 * n
        for n in range(count)
    ]
    blamed = poisonous | innocent
    assert client.attempts == Counter({n: 2 if n in blamed else 1 for n in range(count)})


def test_a_worker_compares_its_versions_before_it_loads_a_task(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("distributed.get_worker", lambda: SimpleNamespace(address="tcp://w:1"))
    with pytest.raises(ClusterError, match=r"worker tcp://w:1 has numpy \d.*, here 0$") as caught:
        dispatch.compute({**environment(), "numpy": "0"}, b"no pickle")
    received = pickle.loads(pickle.dumps(caught.value))
    assert (received.reason, received.help) == (str(caught.value), SAME_VERSIONS)


@pytest.mark.parametrize("workers, paused", [(1, 0), (2, 3), (5, 0)])
def test_no_task_waits_for_another(workers: int, paused: int) -> None:
    client = Threads(nothing, workers, paused)
    assert [*results(client, range(40))] == [2 * n for n in range(40)]
    assert client.most_running <= workers


def test_workers_that_join_get_tasks() -> None:
    both = threading.Barrier(2, timeout=60)

    def respond(number: int, attempts: int) -> None:
        client.statuses = ["running"] * 2
        if number < 2:
            both.wait()

    client = Threads(respond, 2)
    client.statuses = ["running"]
    assert [*results(client, range(4))] == [0, 2, 4, 6]


def test_tasks_are_taken_when_workers_are_free_and_results_printed() -> None:
    taken: list[int] = []

    def tasks() -> Iterator[int]:
        for number in range(200):
            taken.append(number)
            yield number

    def respond(number: int, attempts: int) -> None:
        while number == 0 and len(taken) < AHEAD * 2:
            time.sleep(0.001)

    for number, result in enumerate(results(Threads(respond, 2), tasks())):
        assert result == 2 * number
        assert len(taken) <= number + 1 + AHEAD * 2


def test_large_tasks_are_sent_one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "MAX_SENT", 1)
    client = Threads(nothing, 3)
    assert [*results(client, range(8))] == [2 * n for n in range(8)]
    assert client.most_running == 1


@pytest.mark.parametrize(
    "paused, state",
    [
        (0, "the scheduler has no workers"),
        (2, "all 2 workers are paused, because their memory is almost full"),
    ],
)
def test_no_workers_is_an_error_after_a_note(
    paused: int, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for limit, seconds in (("POLL", 0.001), ("NOTE_AFTER", 0.002), ("PATIENCE", 0.02)):
        monkeypatch.setattr(dispatch, limit, seconds)
    notes: list[str] = []
    ended = threading.Event()

    def respond(number: int, attempts: int) -> None:
        ended.wait(60)

    client = Threads(respond, 0, paused)
    with pytest.raises(ClusterError, match=f"{state} after 0.02 s"):
        next(results(client, [1], notes.append))
    ended.set()
    assert notes == [f"{state}: waiting for workers"]


def test_a_connection_that_is_lost_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "POLL", 0.001)
    ended = threading.Event()

    def respond(number: int, attempts: int) -> None:
        client.status = "closed"
        ended.wait(60)

    client = Threads(respond, 1)
    with pytest.raises(ClusterError, match=LOST[0]):
        next(results(client, [1]))
    ended.set()


def test_a_task_that_dask_cancels_is_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    future = Future[Any]()
    future.cancel()
    client = Threads(nothing, 1)
    monkeypatch.setattr(client, "submit", lambda *_, pure: Attempt("key", future))
    with pytest.raises(ClusterError, match=LOST[0]):
        next(results(client, [1]))
